"""Split planning: the files to read together, the files to merge, and the files that any reader can read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.bin_packing import bins, pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.records import Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.files import blobs, evolution
from snapshot_explorer.formats.paimon.files.column_groups import BLOB_FORMAT, ColumnGroup, column_groups
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.files.deletion_vectors import PaimonVector, Vectors
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes
from snapshot_explorer.formats.paimon.merge.rules import FirstRow, Rules, merge_rules
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.metadata.supported import (
    check_no_blobs,
    check_table,
    check_write_columns,
    file_format,
)
from snapshot_explorer.formats.paimon.scan.plans import DataFiles, PaimonFiles, PaimonPlan, has_plain_columns
from snapshot_explorer.formats.paimon.scan.visibility import applied_vectors, has_vectors, is_included
from snapshot_explorer.formats.settings import parse_flag

_TARGET_BYTES = 128 * 2**20
_OPEN_BYTES = 4 * 2**20
_UNKNOWN = np.iinfo(np.int64).min

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    schema: PaimonSchema
    legacy_zones: bool
    version: int
    file_schemas: Mapping[int, PaimonSchema]
    vectors: Vectors
    rules: Rules | None = None
    has_vectors: bool = False
    row_tracking: bool = False
    evolving: bool = False
    """Whether the columns of a row can be in several files."""
    blob_bytes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    fields: Sequence[npt.NDArray[Any] | None]
    """For each field of DataFile the values of all files; None for nulls."""
    paths: npt.NDArray[np.object_]
    schema_ids: Numbers
    sizes: Numbers
    rows: Numbers
    live: Numbers
    """The rows of each file that no deletion vector removes; _UNKNOWN where the metadata does not determine it."""
    sequences: tuple[Numbers, Numbers]
    """The lowest and the highest sequence number of each file."""
    is_plain: Mask
    """Whether any reader can read each file; see `is_plain` and `has_plain_columns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    file_numbers: Numbers
    values: pa.Table | None
    partition: Mapping[str, str | None]
    bucket: int


def splits(
    files: PaimonFiles,
    vectors: Vectors,
    paths: Callable[[PaimonFiles], Sequence[str]],
    version: int,
    *,
    chosen: Mask | None = None,
) -> tuple[list[Split], Mask]:
    """Return the splits of a version, and which of the files are skipped. Reads no file.

    Skipped are files of a primary-key table with a reason in the column `ruled_out` that no other file is merged with.

    Files without overlapping keys are packed together up to 128 MB (a file counts as at least 4 MB), in the order of
    their sequence numbers for append tables. Files that need a merge form a split per section of overlapping keys.
    A split is raw if its files are Parquet or ORC, have the version's own columns, and every row is live. Avro files
    are never raw: their times do not follow Avro's logical types. Nor are files with a deletion vector, which is part
    of the split's detail, or files with only some columns of their rows.

    Args:
        paths: Returns the path of each file.
        chosen: The files whose splits are returned, all or none of a partition and bucket; None for all.

    Source: paimon MergeTreeSplitGenerator, AppendOnlySplitGenerator, IntervalPartition.
    """
    schema, options = files.schema, files.options
    check_table(schema, options, version)
    mask = np.asarray(is_included(files.entries, schema, options, version))
    files = files if mask.all() else files.where(mask)
    vectors = applied_vectors(vectors, files.entries, schema, options, version, files.storage)
    blob_bytes = blobs.column_sizes(files.entries, files.file_schemas)
    if chosen is not None:
        files, mask = files.where(chosen[mask]), mask & chosen
    table = _table(
        files,
        vectors,
        version,
        rules=merge_rules(schema, options, version) if schema.primary_keys else None,
        has_vectors=has_vectors(options),
        row_tracking=parse_flag(options, "row-tracking.enabled") and not schema.primary_keys,
        evolving=parse_flag(options, "data-evolution.enabled"),
        blob_bytes=blob_bytes,
    )
    skipped = np.zeros(len(mask), np.bool_)
    if table.rules is not None:
        result, skipped[mask] = _keyed_splits(files, table, paths, table.rules)
        return result, skipped
    columns = _columns(files.entries, table, paths(files))
    if table.evolving:
        return [split for group in _groups(files) for split in _evolving_splits(group, columns, table)], skipped
    groups = _groups(files, order=columns.sequences)
    return list(_pack([(group, group.file_numbers) for group in groups], columns, table)), skipped


def unmerged_splits(files: PaimonFiles, vectors: Vectors, paths: Sequence[str], version: int) -> list[Split]:
    """Return a split per partition and bucket, in the order in which the entries first name them. Reads no file.

    A split contains the files of all entries, in their order, to be read one by one. Arguments as `splits`, except that
    `vectors` are the vectors to apply.
    """
    table = _table(files, vectors, version)
    columns = _columns(files.entries, table, paths)
    return [_split(group, DataFiles(columns.fields, group.file_numbers), table, None) for group in _groups(files)]


def _table(files: PaimonFiles, vectors: Vectors, version: int, **features: Any) -> _Table:
    return _Table(
        schema=_bare(files.schema),
        legacy_zones=parse_flag(files.options, "orc.timestamp-ltz.legacy.type", default=True),
        version=version,
        file_schemas={number: _bare(schema) for number, schema in files.file_schemas.items()},
        vectors=vectors,
        **features,
    )


def _bare(schema: PaimonSchema) -> PaimonSchema:
    """Return the schema without options: splits are sent to other machines, and options may contain secrets."""
    return replace(schema, options={}, comment=None)


def _groups(files: PaimonFiles, *, order: Sequence[Numbers] = ()) -> Iterator[_Group]:
    """Yield the files of each partition and bucket, in the order in which the entries first name them.

    The files of a group are ordered by these numbers, by default by the order of the entries.
    """
    if not len(files.entries):
        return
    partitions = files.partitions
    of_files = partitions.of_rows.to_numpy().astype(np.int64)
    buckets = files.entries.column("bucket").to_numpy().astype(np.int64)
    _, firsts, of_rows = np.unique(of_files << 32 | buckets & 0xFFFFFFFF, return_index=True, return_inverse=True)
    members = np.split(np.lexsort((*reversed(order), of_rows)), np.cumsum(np.bincount(of_rows))[:-1])
    for group in np.argsort(firsts).tolist():
        first = int(firsts[group])
        partition = int(of_files[first])
        yield _Group(
            file_numbers=members[group],
            values=partitions.values.slice(partition, 1) if files.schema.partition_keys else None,
            partition=partitions.texts[partition],
            bucket=int(buckets[first]),
        )


def _columns(entries: pa.Table, table: _Table, paths: Sequence[str]) -> _Columns:
    numbers = {
        name: entries.column(name).to_numpy().astype(np.int64)
        for name in ("schema_id", "rows", "size_bytes", "level", "min_sequence", "max_sequence")
    }
    formats, of_names = _formats(entries.column("file_name"), table.version)
    written = [None if item is None else tuple(item) for item in _values(entries.column("write_columns"))]
    vectors = list(_vectors_of(entries, table.vectors))
    deleted, first_ids = (entries.column(name) for name in ("deleted_rows", "first_row_id"))
    fields = [
        _objects(paths),
        _objects(formats)[of_names],
        *numbers.values(),
        *(
            None if values is None else _objects(values)
            for values in (_none_if_all_null(deleted), _none_if_all_null(written))
        ),
        *(
            None if values is None else _objects(values)
            for values in (_none_if_all_null(first_ids), _none_if_all_null(vectors))
        ),
    ]
    kinds, of_kinds = _kinds(numbers["schema_id"], of_names, written, first_ids.is_null().to_numpy())
    examples = DataFiles(fields, np.array(kinds, np.int64))
    for index, file in sorted(zip(kinds, examples, strict=True), key=itemgetter(0)):
        _check_file(file, entries.column("file_name")[index].as_py(), table)
    plain = [_has_plain_columns(file, table) for file in examples]
    has_vector, live = _live_rows(numbers["rows"], vectors)
    if table.rules is not None:
        uncounted = pc.fill_null(pc.not_equal(deleted, 0), True).to_numpy()  # noqa: FBT003 - the value for nulls
        has_vector, live = has_vector | uncounted, np.where(uncounted, _UNKNOWN, live)
    return _Columns(
        fields=fields,
        paths=fields[0],
        schema_ids=numbers["schema_id"],
        sizes=numbers["size_bytes"],
        rows=numbers["rows"],
        live=live,
        sequences=(numbers["min_sequence"], numbers["max_sequence"]),
        is_plain=np.array(plain, np.bool_)[of_kinds] & ~has_vector,
    )


def _none_if_all_null(values: pa.ChunkedArray | Sequence[Any]) -> Sequence[Any] | None:
    known = list(_values(values)) if isinstance(values, pa.ChunkedArray) else values
    return None if known.count(None) == len(known) else known


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    return np.fromiter(values, np.object_, len(values))


def _formats(names: pa.ChunkedArray, version: int) -> tuple[list[str], Numbers]:
    """Return the formats of files, and for each file the index of its own. Raise for an unknown one."""
    endings = pc.replace_substring_regex(single_chunk(names), "^[^.]*", "").dictionary_encode()
    of_names = endings.indices.to_numpy().astype(np.int64)
    _, firsts = np.unique(of_names, return_index=True)
    return [file_format(names[index].as_py(), version) for index in firsts.tolist()], of_names


def _kinds(
    schema_ids: Numbers, formats: Numbers, written: Sequence[tuple[str, ...] | None], is_unplaced: Mask
) -> tuple[list[int], Numbers]:
    """Return an entry of each kind of file, and for each entry the index of its kind.

    Files of a kind have the same schema, format and written columns, and all or none of them have a row id.
    """
    numbers: dict[tuple[str, ...] | None, int] = {}
    of_written = np.array([numbers.setdefault(item, len(numbers)) for item in written], np.int64)
    codes = np.zeros(len(written), np.int64)
    for column in (schema_ids, formats, of_written, is_unplaced):
        _, more = np.unique(column, return_inverse=True)
        codes = codes * (int(more.max(initial=0)) + 1) + more
    _, firsts, of_kinds = np.unique(codes, return_index=True, return_inverse=True)
    return firsts.tolist(), of_kinds


def _live_rows(rows: Numbers, vectors: Sequence[PaimonVector | None]) -> tuple[Mask, Numbers]:
    """Return whether each file has a deletion vector, and its number of live rows; _UNKNOWN if not recorded."""
    has_vector = np.array([vector is not None for vector in vectors], np.bool_)
    live = rows.copy()
    for index in np.flatnonzero(has_vector).tolist():
        vector = vectors[index]
        if vector is not None:
            live[index] = _UNKNOWN if vector.cardinality is None else rows[index] - vector.cardinality
    return has_vector, live


def _values(column: pa.ChunkedArray) -> Iterable[Any]:
    """Return the values of a column. Faster where no value or every value is null."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    values: list[Any] = column.to_pylist() if column.null_count else column.to_numpy().tolist()
    return values


def _vectors_of(entries: pa.Table, vectors: Vectors) -> Iterable[PaimonVector | None]:
    if not vectors:
        return repeat(None, len(entries))
    names = (entries.column(name).to_pylist() for name in ("partition", "bucket", "file_name"))
    return map(vectors.get, zip(*names, strict=True))


def _check_file(file: PaimonDataFile, name: str, table: _Table) -> None:
    file_schema = table.file_schemas.get(file.schema_id)
    if file_schema is None:
        raise CorruptTableError(
            f"The data file {file.path} was written with schema/schema-{file.schema_id}, which does not exist. "
            "Compare the table with a copy of it."
        )
    if not table.evolving or file.first_row_id is None:
        check_write_columns(file.write_columns, (field.name for field in file_schema.fields), name, table.version)
        if file.format == BLOB_FORMAT:
            raise refusal(features.BLOB_FILES, version=table.version, file=name)
    if file.format != BLOB_FORMAT:
        check_no_blobs(file.write_columns, file_schema.fields, name, table.version)
    try:
        evolution.mapping(
            [field for field in table.schema.fields if field.name not in table.schema.partition_keys],
            file_schema.fields,
            file.write_columns,
        )
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"Version {table.version}, data file {name}: {error}") from error


def _keyed_splits(
    files: PaimonFiles, table: _Table, paths: Callable[[PaimonFiles], Sequence[str]], rules: Rules
) -> tuple[list[Split], Mask]:
    """Return the splits of a primary-key table, and which of the files are skipped."""
    keys = files.entries.select(["level", "deleted_rows", "min_key", "max_key", "schema_id"]).combine_chunks()
    groups = [(group, *_sections_of(group.file_numbers, keys, table, rules)) for group in _groups(files)]
    skipped = np.zeros(len(files.entries), np.bool_)
    if "ruled_out" in files.entries.column_names:
        for _, _, alone in groups:
            skipped[alone] = True
        skipped &= files.entries.column("ruled_out").is_valid().to_numpy()
        files = files.where(~skipped)
    columns = _columns(files.entries, table, paths(files))
    indices = np.cumsum(~skipped) - 1
    result: list[Split] = []
    for group, merged, alone in groups:
        result += [_split(group, DataFiles(columns.fields, indices[part]), table, rules) for part in merged]
        result += _pack([(group, indices[alone[~skipped[alone]]])], columns, table)
    return result, skipped


def _sections_of(indices: Numbers, keys: pa.Table, table: _Table, rules: Rules) -> tuple[Sequence[Numbers], Numbers]:
    """Return the files of a primary-key bucket: those that are merged with each other, and those that are not."""
    some = keys.take(pa.array(indices))
    levels = some.column("level").to_numpy()
    # Writers that do not count deletions do not write deletion vectors either, whatever the options are.
    retracts = pc.fill_null(pc.not_equal(some.column("deleted_rows"), 0), table.has_vectors).to_numpy()
    disjoint = table.has_vectors or isinstance(rules.engine, FirstRow) or bool((levels == levels[0]).all())
    if disjoint and levels.all() and not retracts.any():
        return (), indices
    order, ends = sections(some, table.schema, table.file_schemas)
    begins = np.concatenate([[0], ends[:-1]])
    is_alone = (ends - begins == 1) & ~retracts[order[begins]]
    merged = zip(begins[~is_alone].tolist(), ends[~is_alone].tolist(), strict=True)
    return [indices[order[begin:end]] for begin, end in merged], indices[order[begins[is_alone]]]


def _pack(groups: Sequence[tuple[_Group, Numbers]], columns: _Columns, table: _Table) -> Iterator[Split]:
    """Yield splits of files that need no merge, each up to the target size, in the order of the groups.

    Within each group, splits of raw files come before the others.

    Args:
        groups: Groups, and the entries of each that are packed, in this order.
    """
    if not sum(len(indices) for _, indices in groups):
        return
    of_groups = np.repeat(np.arange(len(groups)), [len(indices) for _, indices in groups])
    indices = np.concatenate([indices for _, indices in groups])
    order = np.lexsort((~columns.is_plain[indices], of_groups))
    indices, of_groups = indices[order], of_groups[order]
    plain = columns.is_plain[indices]
    starts = np.flatnonzero((np.diff(of_groups) != 0) | (plain[1:] != plain[:-1])) + 1
    sizes, live = columns.sizes[indices], columns.live[indices]
    bounds = bins(np.maximum(sizes, _OPEN_BYTES), target=_TARGET_BYTES, starts=starts)
    begins = bounds[:-1]
    totals = (np.add.reduceat(numbers, begins).tolist() for numbers in (columns.rows[indices], sizes))
    live_rows = np.add.reduceat(live, begins).astype(np.object_)
    live_rows[np.minimum.reduceat(live, begins) == _UNKNOWN] = None
    paths, schema_ids = columns.paths[indices].tolist(), columns.schema_ids[indices].tolist()
    for begin, end, number, is_raw, rows, size, known in zip(
        begins.tolist(),
        bounds[1:].tolist(),
        of_groups[begins].tolist(),
        plain[begins].tolist(),
        *totals,
        live_rows.tolist(),
        strict=True,
    ):
        group = groups[number][0]
        yield Split(
            files=tuple(paths[begin:end]),
            raw=is_raw,
            partition=group.partition,
            bucket=group.bucket,
            rows=rows,
            size_bytes=size,
            live_rows=known,
            detail=_plan(group, DataFiles(columns.fields, indices[begin:end]), set(schema_ids[begin:end]), table),
        )


def _has_plain_columns(file: PaimonDataFile, table: _Table) -> bool:
    file_schema = table.file_schemas[file.schema_id]
    return file.format != "avro" and has_plain_columns(file, table.schema, file_schema)


def _evolving_splits(group: _Group, columns: _Columns, table: _Table) -> Iterator[Split]:
    """Yield the splits of a bucket whose rows can span several files. Files with whole rows get splits of their own."""
    files = tuple(DataFiles(columns.fields, group.file_numbers))
    indices = {id(file): index for file, index in zip(files, group.file_numbers.tolist(), strict=True)}
    groups = column_groups(files)
    whole = [indices[id(group.files[0])] for group in groups if len(group.everything) == 1]
    yield from _pack([(group, np.array(whole, np.int64))], columns, table)
    spread = [group for group in groups if len(group.everything) > 1]
    for row_group in spread:
        anchor = row_group.anchor
        other = next((file for file in row_group.everything if file.vector and file is not anchor), None)
        if other is not None:
            raise refusal(features.EVOLUTION_WITH_VECTORS, version=table.version, file=other.path)
    for packed in pack(
        spread,
        lambda row_group: sum(max(file.size_bytes, _OPEN_BYTES) for file in row_group.everything),
        target=_TARGET_BYTES,
    ):
        yield _split(group, [file for item in packed for file in item.everything], table, None, packed)


def _split(
    group: _Group,
    members: Sequence[PaimonDataFile],
    table: _Table,
    rules: Rules | None,
    groups: Sequence[ColumnGroup] = (),
) -> Split:
    files = tuple(members)
    return Split(
        files=tuple(file.path for file in files),
        raw=False,
        partition=group.partition,
        bucket=group.bucket,
        rows=sum(item.rows for item in groups or files),
        size_bytes=sum(file.size_bytes for file in files),
        live_rows=_live_row_count(groups or files, table) if rules is None else None,
        detail=_plan(group, files, {file.schema_id for file in files}, table, rules, groups),
    )


def _plan(
    group: _Group,
    files: Sequence[PaimonDataFile],
    schema_ids: Iterable[int],
    table: _Table,
    rules: Rules | None = None,
    groups: Sequence[ColumnGroup] = (),
) -> PaimonPlan:
    return PaimonPlan(
        files=files,
        schema=table.schema,
        file_schemas={number: table.file_schemas[number] for number in schema_ids},
        partition=group.values,
        merge=rules,
        legacy_zones=table.legacy_zones,
        row_tracking=table.row_tracking,
        groups=tuple(groups),
        blob_bytes=table.blob_bytes,
    )


def _live_row_count(parts: Sequence[PaimonDataFile | ColumnGroup], table: _Table) -> int | None:
    """Return the number of live rows; None if the metadata does not determine it."""
    total = 0
    for part in parts:
        file = part.anchor if isinstance(part, ColumnGroup) else part
        total += file.rows
        if table.rules is not None and file.deleted_rows != 0:
            return None
        if file.vector is not None:
            if file.vector.cardinality is None:
                return None
            total -= file.vector.cardinality
    return total


Indices = npt.NDArray[np.int64]


def sections(
    entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]
) -> tuple[Indices, Indices]:
    """Return files in sections: all keys of a section are less than all keys of the next.

    Files whose schemas have other key types are one section: larger sections have the same rows.

    Args:
        entries: The manifest entries of the files of a bucket, at least one: min_key, max_key and schema_id.
        file_schemas: The schemas that the files were written with, by id.

    Returns:
        The indices of the files, section by section, and the end of each section in them.

    Source: paimon IntervalPartition.
    """
    bounds = _bounds(entries, schema, file_schemas)
    if bounds is None:
        return np.arange(len(entries)), np.array([len(entries)])
    minimum, maximum = bounds
    order = np.lexsort((maximum, minimum))
    maximum_so_far = np.maximum.accumulate(maximum[order])
    return order, np.append(np.flatnonzero(minimum[order][1:] > maximum_so_far[:-1]) + 1, len(order))


def _bounds(
    entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]
) -> tuple[Indices, Indices] | None:
    """Return each file's minimum and maximum key as numbers in the order of the keys."""
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    for number in pc.unique(entries.column("schema_id")).to_pylist():
        file_schema = file_schemas[number]
        if [_key_type(file_schema.field(name)) for name in file_schema.trimmed_primary_keys] != [
            _key_type(key) for key in keys
        ]:
            return None
    both = pa.chunked_array(entries.column("min_key").chunks + entries.column("max_key").chunks, pa.binary())
    ends = binary_row.decode(both, keys)
    # Rank of each bound among all bounds, by the first column first; equal for equal keys.
    ranks = [
        order_codes(pa.chunked_array([column]) if isinstance(column, pa.Array) else column) for column in ends.columns
    ]
    order = np.lexsort(ranks[::-1])
    steps = np.any([rank[order][1:] != rank[order][:-1] for rank in ranks], axis=0)
    index = np.empty(len(order), np.int64)
    index[order] = np.concatenate([[0], np.cumsum(steps)])
    return index[: len(entries)], index[len(entries) :]


def _key_type(field: PaimonField) -> tuple[int, PaimonDataType]:
    return field.id, replace(field.type, nullable=False)
