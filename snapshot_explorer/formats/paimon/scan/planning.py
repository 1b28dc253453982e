"""Split planning: which files are read together, which are merged, and which any reader can read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.files import blobs, evolution
from snapshot_explorer.formats.paimon.files.column_groups import BLOB_FORMAT, ColumnGroup, column_groups
from snapshot_explorer.formats.paimon.files.data_files import DataFile
from snapshot_explorer.formats.paimon.files.deletion_vectors import Vector, Vectors
from snapshot_explorer.formats.paimon.merge.engines import FirstRow
from snapshot_explorer.formats.paimon.merge.key_groups import Rules
from snapshot_explorer.formats.paimon.merge.rules import merge_rules
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.schema import Field, Schema
from snapshot_explorer.formats.paimon.readable import (
    check_no_blobs,
    check_table,
    check_write_columns,
    file_format,
    flag,
)
from snapshot_explorer.formats.paimon.scan.plans import Plan, has_plain_columns, is_plain
from snapshot_explorer.formats.paimon.scan.sections import sections
from snapshot_explorer.formats.paimon.scan.visibility import applied_vectors, has_vectors, visible
from snapshot_explorer.model import Split

_TARGET_BYTES = 128 * 2**20
_OPEN_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The properties that all splits of a version share."""

    schema: Schema
    rules: Rules | None
    legacy_zones: bool
    version: int
    file_schemas: Mapping[int, Schema]
    vectors: Vectors
    has_vectors: bool
    row_tracking: bool
    evolving: bool
    """Whether the columns of a row can be in several files."""
    blob_bytes: Mapping[int, int]
    plain: dict[tuple[int, str, tuple[str, ...] | None], bool] = field(default_factory=dict)
    """Results of `has_plain_columns`, by schema, format and written columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The files of one partition and bucket."""

    files: tuple[DataFile, ...]
    rows: tuple[int, ...]
    """The index of each file's entry."""
    values: pa.Table | None
    partition: Mapping[str, str | None]
    bucket: int


def splits(  # noqa: PLR0913 - the parts of a version, all named
    *,
    schema: Schema,
    options: Mapping[str, str],
    entries: pa.Table,
    vectors: Vectors,
    partitions: Sequence[Mapping[str, str | None]],
    paths: Sequence[str],
    file_schemas: Mapping[int, Schema],
    version: int,
) -> list[Split]:
    """Return the splits of a version. Reads no file.

    Files without overlapping keys are packed together up to 128 MB (a file counts as at least 4 MB), in the order of
    their sequence numbers for append tables. Files that need a merge form a split per section of overlapping keys.
    A split is raw if its files are Parquet or ORC, have the version's own columns, and every row is live. Avro files
    are never raw: their times do not follow Avro's logical types. Nor are files with a deletion vector, which is part
    of the split's detail, or files with only some columns of their rows.

    Args:
        schema: The version's schema.
        options: The newest options, which Paimon applies to every version.
        entries: The live manifest entries.
        vectors: The deletion vectors of the version.
        partitions: For each entry, its partition as text.
        paths: For each entry, the path of its data file.
        file_schemas: Each schema that an entry names.
        version: For messages.

    Raises:
        UnsupportedFeatureError: The rows need a feature that is not supported; the message names it.
        CorruptTableError: The schema of an entry does not exist.

    Source: paimon MergeTreeSplitGenerator, AppendOnlySplitGenerator, IntervalPartition.
    """
    check_table(schema, options, version)
    shown = visible(entries, schema, options, version)
    if not pc.all(shown, min_count=0).as_py():
        rows = np.flatnonzero(shown).tolist()
        partitions, paths = [partitions[row] for row in rows], [paths[row] for row in rows]
        entries = entries.filter(shown)
    table = _Table(
        schema=_bare(schema),
        rules=merge_rules(schema, options, version) if schema.primary_keys else None,
        legacy_zones=options.get("orc.timestamp-ltz.legacy.type", "true").strip().lower() != "false",
        version=version,
        file_schemas={number: _bare(found) for number, found in file_schemas.items()},
        vectors=applied_vectors(vectors, entries, schema, options, version),
        has_vectors=has_vectors(options),
        row_tracking=flag(options, "row-tracking.enabled") and not schema.primary_keys,
        evolving=flag(options, "data-evolution.enabled"),
        blob_bytes=blobs.column_sizes(entries, file_schemas),
    )
    found: list[Split] = []
    keys = entries.select(["min_key", "max_key"]).combine_chunks()
    for group in _groups(entries, table, partitions, paths):
        if table.evolving:
            found.extend(_evolving_splits(group, table))
        elif table.rules is None:
            ordered = sorted(group.files, key=lambda file: (file.min_sequence, file.max_sequence))
            found.extend(_packed(group, ordered, table))
        else:
            found.extend(_merge_splits(group, keys, table, table.rules))
    return found


def unmerged_splits(  # noqa: PLR0913 - as `splits`
    *,
    schema: Schema,
    options: Mapping[str, str],
    entries: pa.Table,
    partitions: Sequence[Mapping[str, str | None]],
    paths: Sequence[str],
    file_schemas: Mapping[int, Schema],
    version: int,
    vectors: Vectors,
) -> list[Split]:
    """Return a split per partition and bucket, in the order in which the entries first name them. Reads no file.

    A split contains the files of all entries, in their order, to be read one by one. Arguments as `splits`, except that
    `vectors` are those to apply.

    Raises:
        UnsupportedFeatureError: The format of a file is not supported, or a file has only some columns.
        CorruptTableError: The schema of an entry does not exist.
    """
    table = _Table(
        schema=_bare(schema),
        rules=None,
        legacy_zones=options.get("orc.timestamp-ltz.legacy.type", "true").strip().lower() != "false",
        version=version,
        file_schemas={number: _bare(found) for number, found in file_schemas.items()},
        vectors=vectors,
        has_vectors=False,
        row_tracking=False,
        evolving=False,
        blob_bytes={},
    )
    return [_split(group, group.files, table, None) for group in _groups(entries, table, partitions, paths)]


def _bare(schema: Schema) -> Schema:
    """Return the schema without options: splits are sent to other machines, and options may contain secrets."""
    return replace(schema, options={}, comment=None)


def _groups(
    entries: pa.Table, table: _Table, partitions: Sequence[Mapping[str, str | None]], paths: Sequence[str]
) -> Iterator[_Group]:
    """Yield the files of each partition and bucket, in the order in which the entries first name them."""
    if not len(entries):
        return
    encoded = single_chunk(entries.column("partition")).dictionary_encode()
    buckets = entries.column("bucket").to_numpy()
    keys = encoded.indices.to_numpy().astype(np.int64) << 32 | buckets.astype(np.int64) & 0xFFFFFFFF
    _, firsts, of_rows = np.unique(keys, return_index=True, return_inverse=True)
    members = np.split(np.argsort(of_rows, kind="stable"), np.cumsum(np.bincount(of_rows))[:-1])
    files = _files(entries, table, paths)
    values = _partition_values(encoded.take(pa.array(np.sort(firsts))).dictionary_decode(), table.schema)
    for index, group in enumerate(np.argsort(firsts).tolist()):
        rows, bucket = members[group].tolist(), int(buckets[firsts[group]])
        yield _Group(
            files=tuple(files[row] for row in rows),
            rows=tuple(rows),
            values=None if values is None else values.slice(index, 1),
            partition=dict(partitions[rows[0]]),
            bucket=bucket,
        )


def _partition_values(partitions: pa.BinaryArray, schema: Schema) -> pa.Table | None:
    if not schema.partition_keys:
        return None
    fields = [schema.field(name) for name in schema.partition_keys]
    return binary_row.decode(partitions, fields)


_ENTRY_COLUMNS = (
    "schema_id",
    "rows",
    "size_bytes",
    "level",
    "min_sequence",
    "max_sequence",
    "deleted_rows",
    "first_row_id",
)


def _files(entries: pa.Table, table: _Table, paths: Sequence[str]) -> list[DataFile]:
    columns = [_values(entries.column(name)) for name in _ENTRY_COLUMNS]
    names = entries.column("file_name").to_pylist()
    formats: dict[str, str] = {}
    checked: set[tuple[int, tuple[str, ...] | None, bool]] = set()
    files = []
    for path, name, written, vector, (schema_id, rows, size, level, least, most, deleted, first) in zip(
        paths,
        names,
        _values(entries.column("write_columns")),
        _vectors_of(entries, table.vectors),
        zip(*columns, strict=True),
        strict=True,
    ):
        ending = name[name.find(".") :]
        if ending not in formats:
            formats[ending] = file_format(name, table.version)
        file = DataFile(
            path=path,
            format=formats[ending],
            schema_id=schema_id,
            rows=rows,
            size_bytes=size,
            level=level,
            min_sequence=least,
            max_sequence=most,
            deleted_rows=deleted,
            write_columns=None if written is None else tuple(written),
            first_row_id=first,
            vector=vector,
        )
        kind = (file.schema_id, file.write_columns, first is None)
        if kind not in checked:
            checked.add(kind)
            _check_file(file, name, table)
        files.append(file)
    return files


def _values(column: pa.ChunkedArray) -> Iterable[Any]:
    """Return the values of a column. Faster where no value or every value is null."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    values: list[Any] = column.to_pylist() if column.null_count else column.to_numpy().tolist()
    return values


def _vectors_of(entries: pa.Table, vectors: Vectors) -> Iterable[Vector | None]:
    """Return the deletion vector of each entry's file."""
    if not vectors:
        return repeat(None, len(entries))
    names = (entries.column(name).to_pylist() for name in ("partition", "bucket", "file_name"))
    return map(vectors.get, zip(*names, strict=True))


def _check_file(file: DataFile, name: str, table: _Table) -> None:
    """Raise if the columns of a file cannot be read as the version's."""
    found = table.file_schemas.get(file.schema_id)
    if found is None:
        raise CorruptTableError(
            f"The data file {file.path} was written with schema/schema-{file.schema_id}, which does not exist. "
            "Compare the table with a copy of it."
        )
    if not table.evolving or file.first_row_id is None:
        check_write_columns(file.write_columns, (field.name for field in found.fields), name, table.version)
        if file.format == BLOB_FORMAT:
            raise refusal(features.BLOB_FILES, version=table.version, file=name)
    if file.format != BLOB_FORMAT:
        check_no_blobs(file.write_columns, found.fields, name, table.version)
    try:
        evolution.mapping(_from_files(table.schema.fields, table.schema), found.fields, file.write_columns)
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"Version {table.version}, data file {name}: {error}") from error


def _from_files(fields: Sequence[Field], schema: Schema) -> list[Field]:
    """Return the columns to read from files, without the partition columns, which come from the manifests."""
    return [field for field in fields if field.name not in schema.partition_keys]


def _merge_splits(group: _Group, keys: pa.Table, table: _Table, rules: Rules) -> Iterator[Split]:
    """Yield the splits of a primary-key bucket: files without overlap are packed, overlapping files merged."""
    files = group.files
    if not files:
        return
    one_level = len({file.level for file in files}) == 1
    disjoint = table.has_vectors or isinstance(rules.engine, FirstRow) or one_level
    if all(file.level and not file.deleted_rows for file in files) and disjoint:
        yield from _packed(group, files, table)
        return
    disjoint_files: list[DataFile] = []
    overlapping = sections(files, keys.take(pa.array(group.rows, pa.int64())), table.schema, table.file_schemas)
    for section in overlapping:
        if len(section) == 1 and not section[0].deleted_rows:
            disjoint_files.append(section[0])
        else:
            yield _split(group, section, table, rules)
    yield from _packed(group, disjoint_files, table)


def _packed(group: _Group, files: Sequence[DataFile], table: _Table) -> Iterator[Split]:
    """Yield splits of files that need no merge, raw files separate from others, each up to the target size."""
    plain = [is_plain(file, table.schema) and _has_plain_columns(file, table) for file in files]
    for wanted in (True, False):
        alike = [file for file, found in zip(files, plain, strict=True) if found is wanted]
        for some in pack(alike, _cost, target=_TARGET_BYTES):
            yield _split(group, some, table, None, raw=wanted)


def _cost(file: DataFile) -> int:
    return max(file.size_bytes, _OPEN_BYTES)


def _has_plain_columns(file: DataFile, table: _Table) -> bool:
    kind = (file.schema_id, file.format, file.write_columns)
    if kind not in table.plain:
        table.plain[kind] = has_plain_columns(file, table.schema, table.file_schemas[file.schema_id])
    return table.plain[kind]


def _evolving_splits(group: _Group, table: _Table) -> Iterator[Split]:
    """Yield the splits of a bucket whose rows can span several files. Files with whole rows get splits of their own."""
    groups = column_groups(group.files)
    whole = [one.files[0] for one in groups if len(one.everything) == 1]
    yield from _packed(group, whole, table)
    spread = [one for one in groups if len(one.everything) > 1]
    for one in spread:
        if any(file.vector for file in one.everything):
            raise refusal(features.EVOLUTION_WITH_VECTORS, version=table.version, file=one.files[0].path)
    for some in pack(spread, lambda one: sum(map(_cost, one.everything)), target=_TARGET_BYTES):
        yield _split(group, [file for one in some for file in one.everything], table, None, groups=some)


def _split(
    group: _Group,
    files: Sequence[DataFile],
    table: _Table,
    rules: Rules | None,
    *,
    raw: bool = False,
    groups: Sequence[ColumnGroup] = (),
) -> Split:
    numbers = {file.schema_id for file in files}
    return Split(
        files=tuple(file.path for file in files),
        raw=raw,
        partition=group.partition,
        bucket=group.bucket,
        rows=sum(one.rows for one in groups or files),
        size_bytes=sum(file.size_bytes for file in files),
        counted=_counted(groups or files, table) if rules is None else None,
        detail=Plan(
            files=tuple(files),
            schema=table.schema,
            file_schemas={number: table.file_schemas[number] for number in numbers},
            partition=group.values,
            merge=rules,
            legacy_zones=table.legacy_zones,
            row_tracking=table.row_tracking,
            groups=tuple(groups),
            blob_bytes=table.blob_bytes,
        ),
    )


def _counted(parts: Sequence[DataFile | ColumnGroup], table: _Table) -> int | None:
    """Return the number of live rows; None if the metadata does not determine it."""
    total = 0
    for part in parts:
        total += part.rows
        if isinstance(part, ColumnGroup):
            continue
        if table.rules is not None and part.deleted_rows != 0:
            return None
        if part.vector is not None:
            if part.vector.cardinality is None:
                return None
            total -= part.vector.cardinality
    return total
