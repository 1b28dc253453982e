"""Splits: which files are read together, which need a merge, and which anyone may read as they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import BrokenTableError, UnsupportedFeatureError
from snapshot_explorer.formats.paimon import binary_row, evolution
from snapshot_explorer.formats.paimon.data_files import DataFile
from snapshot_explorer.formats.paimon.merge import Rules, order_codes
from snapshot_explorer.formats.paimon.refusals import (
    check_entries,
    check_table,
    check_write_columns,
    file_format,
    flag,
    refused,
)
from snapshot_explorer.formats.paimon.schema import DataType, Field, Schema
from snapshot_explorer.model import Split

_TARGET_BYTES = 128 * 2**20
_OPEN_BYTES = 4 * 2**20
_IGNORE_DELETE = (
    "ignore-delete",
    "first-row.ignore-delete",
    "deduplicate.ignore-delete",
    "partial-update.ignore-delete",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What reading a split needs beyond its files. `Split.detail` of a Paimon split; picklable."""

    files: tuple[DataFile, ...]
    """The files, in the order to read."""
    schema: Schema
    """The version's schema, without options."""
    file_schemas: Mapping[int, Schema]
    """The schemas that the files were written with, by id, without options."""
    partition: pa.Table | None
    """One row: the typed value of each partition column. None for a table without partitions."""
    merge: Rules | None
    """How to merge; None where no two rows have one key."""
    legacy_zones: bool
    """Whether ORC files hold TIMESTAMP_LTZ as clock times of the writer's zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What all splits of a version share."""

    schema: Schema
    rules: Rules | None
    legacy_zones: bool
    version: int
    file_schemas: Mapping[int, Schema]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The files of one partition and bucket."""

    files: tuple[DataFile, ...]
    rows: tuple[int, ...]
    """The row of each in the entries."""
    values: pa.Table | None
    partition: Mapping[str, str | None]
    bucket: int


def splits(  # noqa: PLR0913 - the parts of a version, all named
    *,
    schema: Schema,
    options: Mapping[str, str],
    entries: pa.Table,
    indexes: pa.Table,
    partitions: Sequence[Mapping[str, str | None]],
    paths: Sequence[str],
    file_schemas: Mapping[int, Schema],
    version: int,
) -> list[Split]:
    """Return the units of reading the rows of a version. Reads no file.

    Files without overlapping keys are packed together up to 128 MB (a file counts 4 MB at least), in the order of
    their sequence numbers for append tables; files that need a merge make a split per section of overlapping keys.
    A split is raw where its files are parquet or ORC, have the version's own columns, and every row counts: Avro
    files never are, as their times mean other than Avro says.

    Args:
        schema: The version's schema.
        options: The newest options, which Paimon applies to every version.
        entries: The live manifest entries.
        indexes: The index entries in force.
        partitions: For each entry, its partition as text.
        paths: For each entry, the path of its data file.
        file_schemas: Each schema that an entry names.
        version: For messages.

    Raises:
        UnsupportedFeatureError: The rows need a feature that is not read; the message names it.
        BrokenTableError: An entry names a schema that is not there.

    Source: paimon MergeTreeSplitGenerator, AppendOnlySplitGenerator, IntervalPartition.
    """
    check_table(schema, options, version)
    check_entries(entries, indexes, schema, version)
    table = _Table(
        schema=_bare(schema),
        rules=_rules(schema, options, version) if schema.primary_keys else None,
        legacy_zones=options.get("orc.timestamp-ltz.legacy.type", "true").strip().lower() != "false",
        version=version,
        file_schemas={number: _bare(found) for number, found in file_schemas.items()},
    )
    found: list[Split] = []
    for group in _groups(entries, table, partitions, paths):
        if table.rules is None:
            ordered = sorted(group.files, key=lambda file: (file.min_sequence, file.max_sequence))
            found.extend(_packed(group, ordered, table))
        else:
            found.extend(_merge_splits(group, entries, table, table.rules))
    return found


def unmerged_splits(
    *,
    schema: Schema,
    options: Mapping[str, str],
    entries: pa.Table,
    partitions: Sequence[Mapping[str, str | None]],
    paths: Sequence[str],
    file_schemas: Mapping[int, Schema],
    version: int,
) -> list[Split]:
    """Return a split per partition and bucket, in the order in which the entries first name them. Reads no file.

    Its files are all the entries', in their order, and are for who reads them one by one, without merge and without
    deletion vectors; arguments as `splits`.

    Raises:
        UnsupportedFeatureError: A file is of a format that is not read, or holds only some columns.
        BrokenTableError: An entry names a schema that is not there.
    """
    table = _Table(
        schema=_bare(schema),
        rules=None,
        legacy_zones=options.get("orc.timestamp-ltz.legacy.type", "true").strip().lower() != "false",
        version=version,
        file_schemas={number: _bare(found) for number, found in file_schemas.items()},
    )
    return [_split(group, group.files, table, None) for group in _groups(entries, table, partitions, paths)]


def rules_of(schema: Schema, options: Mapping[str, str], version: int) -> Rules:
    """Return how the rows of a primary-key table are merged."""
    return _rules(schema, options, version)


def _bare(schema: Schema) -> Schema:
    """Return the schema without options: splits travel, and options may hold what should not."""
    return replace(schema, options={}, comment=None)


def _rules(schema: Schema, options: Mapping[str, str], version: int) -> Rules:
    names = {field.name for field in schema.fields}
    fields = tuple(name.strip() for name in options.get("sequence.field", "").split(",") if name.strip())
    for name in fields:
        if name not in names:
            raise refused(
                version, f"the sequence field {name!r}, which its schema lacks", f"the option sequence.field={name}"
            )
        if schema.field(name).type.root in ("ARRAY", "MAP", "MULTISET", "ROW", "VARIANT"):
            raise refused(version, "an order by nested values", f"the option sequence.field={name}")
    return Rules(
        keys=schema.trimmed_primary_keys,
        sequence_fields=fields,
        descending=options.get("sequence.field.sort-order", "").strip().lower() == "descending",
        ignore_delete=any(flag(options, name) for name in _IGNORE_DELETE),
        lookup=options.get("changelog-producer", "").strip().lower() == "lookup" or flag(options, "force-lookup"),
    )


def _groups(
    entries: pa.Table, table: _Table, partitions: Sequence[Mapping[str, str | None]], paths: Sequence[str]
) -> Iterator[_Group]:
    """Yield the files of each partition and bucket, in the order in which the entries first name them."""
    members: dict[tuple[bytes, int], list[int]] = {}
    keys = zip(entries.column("partition").to_pylist(), entries.column("bucket").to_pylist(), strict=True)
    for row, key in enumerate(keys):
        members.setdefault(key, []).append(row)
    files = _files(entries, table, paths)
    values = _partition_values(list(members), table.schema)
    for index, ((_, bucket), rows) in enumerate(members.items()):
        yield _Group(
            files=tuple(files[row] for row in rows),
            rows=tuple(rows),
            values=None if values is None else values.slice(index, 1),
            partition=dict(partitions[rows[0]]),
            bucket=bucket,
        )


def _partition_values(keys: Sequence[tuple[bytes, int]], schema: Schema) -> pa.Table | None:
    if not schema.partition_keys:
        return None
    fields = [schema.field(name) for name in schema.partition_keys]
    return binary_row.decode(pa.array([partition for partition, _ in keys], pa.binary()), fields)


_ENTRY_COLUMNS = (
    "file_name",
    "schema_id",
    "rows",
    "size_bytes",
    "level",
    "min_sequence",
    "max_sequence",
    "deleted_rows",
    "write_columns",
)


def _files(entries: pa.Table, table: _Table, paths: Sequence[str]) -> list[DataFile]:
    columns = [entries.column(name).to_pylist() for name in _ENTRY_COLUMNS]
    wanted = [field.name for field in table.schema.fields]
    checked: set[tuple[int, tuple[str, ...] | None]] = set()
    files = []
    for path, (name, schema_id, rows, size, level, least, most, deleted, written) in zip(
        paths, zip(*columns, strict=True), strict=True
    ):
        file = DataFile(
            path=path,
            format=file_format(name, table.version),
            schema_id=schema_id,
            rows=rows,
            size_bytes=size,
            level=level,
            min_sequence=least,
            max_sequence=most,
            deleted_rows=deleted,
            write_columns=None if written is None else tuple(written),
        )
        if (file.schema_id, file.write_columns) not in checked:
            checked.add((file.schema_id, file.write_columns))
            _check_file(file, name, table, wanted)
        files.append(file)
    return files


def _check_file(file: DataFile, name: str, table: _Table, wanted: Sequence[str]) -> None:
    """Refuse a file whose columns can not become the version's."""
    found = table.file_schemas.get(file.schema_id)
    if found is None:
        raise BrokenTableError(
            f"The data file {file.path} was written with schema/schema-{file.schema_id}, which is not there. "
            "Compare the table with a copy of it."
        )
    check_write_columns(file.write_columns, (field.name for field in found.fields), name, table.version)
    fields = [field for field in table.schema.fields if field.name in wanted]
    try:
        evolution.mapping(_from_files(fields, table.schema), found.fields, file.write_columns)
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"Version {table.version}, data file {name}: {error}") from error


def _from_files(fields: Sequence[Field], schema: Schema) -> list[Field]:
    """Return the columns that files are read for: partition columns come from the manifests."""
    return [field for field in fields if field.name not in schema.partition_keys]


def _merge_splits(group: _Group, entries: pa.Table, table: _Table, rules: Rules) -> Iterator[Split]:
    """Yield the splits of a primary-key bucket: what stands alone is packed, what overlaps is merged."""
    files = group.files
    if all(file.level and not file.deleted_rows for file in files) and len({file.level for file in files}) == 1:
        yield from _packed(group, files, table)
        return
    alone: list[DataFile] = []
    for section in _sections(group, entries, table):
        if len(section) == 1 and not section[0].deleted_rows:
            alone.append(section[0])
        else:
            yield _split(group, section, table, rules)
    yield from _packed(group, alone, table)


def _sections(group: _Group, entries: pa.Table, table: _Table) -> Iterator[list[DataFile]]:
    """Yield the files in sections: keys of one section lie wholly before those of the next.

    Files whose schemas have other key types are one section: merging more at once is never wrong.
    """
    bounds = _bounds(group, entries, table)
    if bounds is None:
        yield list(group.files)
        return
    least, most = bounds
    section: list[DataFile] = []
    greatest = -1
    for index in np.lexsort((most, least)).tolist():
        if section and least[index] > greatest:
            yield section
            section = []
        section.append(group.files[index])
        greatest = max(greatest, int(most[index]))
    yield section


def _bounds(group: _Group, entries: pa.Table, table: _Table) -> tuple[np.ndarray, np.ndarray] | None:
    """Return each file's least and greatest key as numbers in the order of the keys."""
    keys = [table.schema.field(name) for name in table.schema.trimmed_primary_keys]
    for number in {file.schema_id for file in group.files}:
        theirs = table.file_schemas[number]
        if [_key_type(theirs.field(name)) for name in theirs.trimmed_primary_keys] != [_key_type(key) for key in keys]:
            return None
    rows = entries.take(pa.array(group.rows, pa.int64()))
    both = pa.chunked_array(rows.column("min_key").chunks + rows.column("max_key").chunks, pa.binary())
    ends = binary_row.decode(both, keys)
    # Ranks, first column first: the place of each end in the order of all ends, equal for equal keys.
    ranks = [
        order_codes(pa.chunked_array([column]) if isinstance(column, pa.Array) else column) for column in ends.columns
    ]
    order = np.lexsort(ranks[::-1])
    steps = np.any([rank[order][1:] != rank[order][:-1] for rank in ranks], axis=0)
    place = np.empty(len(order), np.int64)
    place[order] = np.concatenate([[0], np.cumsum(steps)])
    return place[: len(group.files)], place[len(group.files) :]


def _key_type(field: Field) -> tuple[int, DataType]:
    return field.id, replace(field.type, nullable=False)


def _packed(group: _Group, files: Sequence[DataFile], table: _Table) -> Iterator[Split]:
    """Yield splits of files that need no merge, raw ones apart from others, each up to the target size."""
    plain = [_is_plain(file, table) for file in files]
    for wanted in (True, False):
        pack: list[DataFile] = []
        weight = 0
        for file in (file for file, is_plain in zip(files, plain, strict=True) if is_plain is wanted):
            cost = max(file.size_bytes, _OPEN_BYTES)
            if pack and weight + cost > _TARGET_BYTES:
                yield _split(group, pack, table, None, raw=wanted)
                pack, weight = [], 0
            pack.append(file)
            weight += cost
        if pack:
            yield _split(group, pack, table, None, raw=wanted)


def _is_plain(file: DataFile, table: _Table) -> bool:
    """Return whether any reader of the file's format finds in it the version's rows, under the version's names."""
    if file.format == "avro" or (table.rules is not None and file.deleted_rows != 0):
        return False
    theirs = table.file_schemas[file.schema_id]
    mine = {field.id: field for field in table.schema.fields}
    if {field.id for field in theirs.fields} != set(mine):
        return False
    return all(
        field.name == mine[field.id].name
        and evolution.same(field.type, mine[field.id].type)
        and not _peculiar(field.type, file.format)
        for field in theirs.fields
    )


def _peculiar(kind: DataType, file_format: str) -> bool:
    """Return whether a type is stored in a way that other readers take for something else.

    INT96 says nothing of zones; ORC holds a TIME as an integer, and a TIMESTAMP_LTZ by the writer's clock.
    """
    if file_format == "parquet" and kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (kind.precision or 0) > 6:  # noqa: PLR2004 - microseconds
        return True
    if file_format == "orc" and kind.root in ("TIME", "TIMESTAMP_LTZ"):
        return True
    parts = [part for part in (kind.key, kind.element) if part] + [field.type for field in kind.fields]
    return any(_peculiar(part, file_format) for part in parts)


def _split(group: _Group, files: Sequence[DataFile], table: _Table, rules: Rules | None, *, raw: bool = False) -> Split:
    numbers = {file.schema_id for file in files}
    return Split(
        files=tuple(file.path for file in files),
        raw=raw,
        partition=group.partition,
        bucket=group.bucket,
        rows=sum(file.rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        detail=Plan(
            files=tuple(files),
            schema=table.schema,
            file_schemas={number: table.file_schemas[number] for number in numbers},
            partition=group.values,
            merge=rules,
            legacy_zones=table.legacy_zones,
        ),
    )
