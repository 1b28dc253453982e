"""Plan and read the rows of a version: live data files with what is visible in them, and the inlined rows.

Files are skipped by the bounds and partition values that the catalog records: text, cast to the types of the columns. A
partition value is recorded by the file and by its position in the file's own spec.

Source: DuckLake specification 1.0, "Queries", "ducklake_file_column_stats", "ducklake_file_partition_value"; reference,
"Data files", "Deletes", "Merged and rewritten files", "Statistics", "Partitions and sorting".
"""

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.positions import filter_rows, kept_rows, mask_of, rows_without_columns
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.records import Bounds, Predicate, ReadPlan, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.corrupt_files import (
    check_read,
    check_size,
    column_named_in_errors,
    named_in_errors,
)
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.files import (
    DELETE_FORMATS,
    RULES,
    DeleteFile,
    MappedName,
    cast_texts,
    columns_like,
    conform_leaf,
    deleted_positions,
    file_columns,
    partition_constants,
)
from snapshot_explorer.formats.ducklake.metadata.data_types import (
    NESTED,
    LakeField,
    arrow_field,
    arrow_type,
    type_of,
    type_text,
)
from snapshot_explorer.formats.ducklake.metadata.paths import absent_data_error, readable_paths
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    ENDLESS,
    FLUSHES,
    DuckLakeLog,
    DuckLakeMetadata,
    InlinedTable,
    Ints,
    live_mask,
    live_rows,
    numbers,
    option,
)
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files.field_columns import Projection, project, projection, unconverted_columns
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.skipped import Reasons, by_statistics, skipped_frame
from snapshot_explorer.formats.split_requests import detail_of, named_fields
from snapshot_explorer.formats.statistics import bounds_from
from snapshot_explorer.storage import Storage

logger = logger_of(__name__)

_SNAPSHOTS_INSIDE_SINCE = ("0.4-dev1", "0.4", "1.0")
"""The format versions in which delete files may contain the snapshot of each delete."""
ROW_ID, SNAPSHOT = (
    LakeField(id=number, name=name, type="int64", nullable=True, initial_default=None)
    for number, name in ((2147483540, "_row_id"), (2147483539, "_snapshot_id"))
)
"""The metadata columns: the id of a row, which updates keep, and the snapshot that wrote this version of it.

Data files that contain rows of several snapshots have them, under these field ids."""
HIDDEN = (ROW_ID, SNAPSHOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The rows of a data file that a version sees: by default all."""

    deletes: tuple[DeleteFile, ...] = ()
    inlined_deletes: tuple[int, ...] = ()
    """Positions that the catalog deletes."""
    up_to: int | None = None
    """Only rows of snapshots up to this one are visible; None for all."""
    first_rows: int | None = None
    """Only so many rows at the start of the file are visible; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """The plan of a split. Picklable."""

    fields: tuple[LakeField, ...]
    """The columns of the table, the same object in all splits of a version."""
    fields_key: str
    """A text that is equal for equal columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan(SplitPlan):
    """The plan of a split of a data file."""

    path: str
    """The path for `Storage`."""
    location: str
    """The recorded path, whose folders added files may have values in."""
    size_bytes: int
    begin: int
    """The snapshot that wrote its rows, unless the file has the snapshot of each."""
    row_id_start: int | None
    """The id of its first row, unless the file has an id for each; None if its rows have none."""
    visible: Visible
    mapping: tuple[MappedName, ...] | None
    positions: tuple[LakeField, ...]
    """The columns by position, for a file without ids and without a mapping."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read; see `Split.identity`."""
        return self.path, self.begin, self.row_id_start, self.visible, self.mapping, self.fields_key


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedPlan(SplitPlan):
    """The plan of the split of all inlined rows."""

    tables: tuple[InlinedTable, ...]
    """The live rows of each inlined table."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read."""
        parts = []
        for table in self.tables:
            columns = [table.rows.column(name).to_numpy().tobytes() for name in ("row_id", "begin_snapshot")]
            parts.append((table.name, hashlib.sha256(b"".join(columns)).hexdigest(), len(table.rows)))
        return "inlined", tuple(parts), self.fields_key


def plan(
    log: DuckLakeLog,
    metadata: DuckLakeMetadata,
    snapshot: int,
    predicate: Predicate | None = None,
    *,
    fields: tuple[LakeField, ...] | None = None,
) -> ReadPlan:
    """Return the splits of the rows at a snapshot, and the files that the predicate skips.

    A split is a data file with its deletes, and one split has all inlined rows. No data file and no delete file is
    opened; statistics of the columns of the predicate are read from the catalog.

    Args:
        fields: The columns to read; by default the snapshot's columns.

    Raises:
        UnsupportedFeatureError: The lake is encrypted, or needs another feature that is not read.
        CorruptTableError: The catalog contradicts itself.
    """
    fields = metadata.fields_at(snapshot) if fields is None else fields
    for field in fields:
        arrow_type(field)  # refuses types that are not read
    files = live_rows(metadata.rows["data_file"], snapshot)
    deletes = live_rows(metadata.rows["delete_file"], snapshot)
    _check_readable(metadata, files, deletes)
    _warn_of_lost_deletes(log.storage, metadata, files, snapshot)
    reasons = np.full(len(files), None, np.object_)
    chosen = [field for field in fields if predicate is not None and field.name in predicate.columns]
    if predicate is not None and chosen:
        partitions = partition_bounds(metadata, files, chosen)
        if partitions is not None:
            reasons[[reason is not None for reason in by_statistics(predicate, partitions)]] = "partition"
        left = np.flatnonzero([reason is None for reason in reasons])
        counted = files.select(["data_file_id", "record_count"])
        known = file_bounds(log, metadata, counted.take(pa.array(left, pa.int64())), chosen)
        reasons[left] = by_statistics(predicate, known)
    read = files.filter(pa.array([reason is None for reason in reasons], pa.bool_())) if chosen else files
    splits = [
        *_file_splits(log, metadata, read, deletes, snapshot, fields),
        *_inlined_split(metadata, snapshot, fields),
    ]
    return ReadPlan(splits=tuple(splits), skipped=partial(_skipped, metadata, files, reasons))


def _skipped(metadata: DuckLakeMetadata, files: pa.Table, reasons: Reasons) -> pa.Table:
    partitions = [tuple(partition.items()) for partition in partition_texts(metadata, files)]
    distinct = {partition: index for index, partition in enumerate(dict.fromkeys(partitions))}
    sizes = files.select(["record_count", "file_size_bytes"]).rename_columns(["rows", "size_bytes"])
    of_files = pa.array([distinct[partition] for partition in partitions], pa.int64())
    return skipped_frame(sizes, reasons, partitions=list(map(dict, distinct)), of_files=of_files)


def _check_readable(metadata: DuckLakeMetadata, files: pa.Table, deletes: pa.Table) -> None:
    if (option(metadata.rows["metadata"], "encrypted") or "false").lower() not in ("false", "0"):
        raise refusal(features.ENCRYPTED, what=f"The lake of {metadata.catalog}")
    for rows, column, known in ((files, "file_format", ("parquet",)), (deletes, "format", DELETE_FORMATS)):
        with_key = rows.filter(rows.column("encryption_key").is_valid())
        if len(with_key):
            raise refusal(features.ENCRYPTED, what=f"The file {metadata.locate(with_key)[0].as_py()}")
        others = rows.filter(pc.invert(pc.is_in(rows.column(column), value_set=pa.array(known))))
        if len(others):
            path, word = metadata.locate(others)[0].as_py(), others.column(column)[0].as_py()
            raise refusal(features.OTHER_FILE_FORMATS, path=path, file_format=word)


def _warn_of_lost_deletes(storage: Storage, metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> None:
    """Log that deletes of a version are lost, because a later deletion vector has replaced them.

    Source: reference, "Deletes": a second vector of a data file replaces the row of the first.
    """
    deletes = metadata.rows["delete_file"]
    vectors = deletes.filter(pc.equal(deletes.column("format"), "puffin"))
    later = vectors.filter(pa.array(numbers(vectors, "begin_snapshot") > snapshot))
    files = files.filter(pc.is_in(files.column("data_file_id"), value_set=single_chunk(later.column("data_file_id"))))
    if not len(files):
        return
    ends = [metadata.rows["data_file"], *(table.rows for table in metadata.inlined)]
    recorded = {number for rows in ends for number in rows.column("end_snapshot").to_pylist()}
    for rows in (deletes, metadata.rows["inlined_delete"]):
        recorded.update(rows.column("begin_snapshot").to_pylist())
    first = int(numbers(files, "begin_snapshot").min())
    for number, words in metadata.words.items():
        is_lost = "deleted_from_table" in words and not FLUSHES.intersection(words) and number not in recorded
        if is_lost and first < number <= snapshot:
            storage.warn_once(
                logger,
                "%s: rows that snapshot %d deleted are shown at snapshots before %d, because a later deletion vector "
                "replaced its own: the catalog has no earlier deletes.",
                metadata.name,
                number,
                int(numbers(later, "begin_snapshot").min()),
            )


def _file_splits(
    log: DuckLakeLog,
    metadata: DuckLakeMetadata,
    files: pa.Table,
    deletes: pa.Table,
    snapshot: int,
    fields: tuple[LakeField, ...],
) -> Iterator[Split]:
    visible, whole, fields_key = _visible_parts(log, metadata, deletes, snapshot), Visible(), _key_of(fields)
    mappings: dict[int | None, tuple[MappedName, ...] | None] = {None: None}
    names = ("data_file_id", "file_size_bytes", "begin_snapshot", "row_id_start", "mapping_id", "record_count")
    columns = [files.column(name).to_pylist() for name in names]
    locations = metadata.locate(files)
    paths = readable_paths(locations, log.storage)
    for path, location, partition, number, size, begin, row_id, mapping_id, rows in zip(
        paths, locations.to_pylist(), partition_texts(metadata, files), *columns, strict=True
    ):
        own = visible.get(number, whole)
        if mapping_id not in mappings:
            mappings[mapping_id] = _mapping_of(metadata, mapping_id, location)
        yield Split(
            files=(path,),
            raw=own is whole and mapping_id is None,
            partition=partition,
            rows=rows,
            size_bytes=size,
            live_rows=rows if own is whole else None,
            delete_files=tuple(file.path for file in own.deletes),
            detail=FilePlan(
                path=path,
                location=location,
                size_bytes=size,
                begin=begin,
                row_id_start=row_id,
                visible=own,
                mapping=mappings[mapping_id],
                positions=metadata.fields_at(begin) if metadata.format_version == "0.1" else (),
                fields=fields,
                fields_key=fields_key,
            ),
        )


def _visible_parts(
    log: DuckLakeLog, metadata: DuckLakeMetadata, deletes: pa.Table, snapshot: int
) -> Mapping[int, Visible]:
    """Return the visible rows of the data files that have others, by data_file_id.

    Source: reference, "Merged and rewritten files".
    """
    result: dict[int, Visible] = {}
    for number, item in metadata.partials.items():
        if item.last > snapshot and item.counts is None:
            result[number] = Visible(up_to=snapshot)
        elif item.last > snapshot:
            counts = (count for begin, count in item.counts or () if begin <= snapshot)
            result[number] = Visible(first_rows=max(counts, default=0))
    for number, positions in inlined_positions(metadata, snapshot).items():
        result[number] = replace(result.get(number, Visible()), inlined_deletes=positions)
    of_files: dict[int, list[DeleteFile]] = {}
    paths = readable_paths(metadata.locate(deletes), log.storage)
    columns = [deletes.column(name).to_pylist() for name in ("data_file_id", "format", "file_size_bytes")]
    is_complete = (last_deletes(metadata, deletes) <= snapshot).tolist()
    for path, complete, number, file_format, size in zip(paths, is_complete, *columns, strict=True):
        up_to = None if complete else snapshot
        file = DeleteFile(path=path, format=file_format, size_bytes=size, up_to=up_to)
        of_files.setdefault(number, []).append(file)
    for number, files in of_files.items():
        ordered = tuple(sorted(files, key=lambda file: file.path))
        result[number] = replace(result.get(number, Visible()), deletes=ordered)
    return result


def last_deletes(metadata: DuckLakeMetadata, deletes: pa.Table) -> Ints:
    """Return for each delete file a snapshot after which nothing in it was deleted."""
    if metadata.format_version not in _SNAPSHOTS_INSIDE_SINCE:
        return numbers(deletes, "begin_snapshot")
    # Otherwise the first snapshot that knows the id of the file: nothing in it was written later.
    next_ids = np.maximum.accumulate(numbers(metadata.rows["snapshot"], "next_file_id", 0))
    indices = np.searchsorted(next_ids, numbers(deletes, "delete_file_id"), side="right")
    lasts = numbers(deletes, "partial_max")
    return np.where(lasts == ENDLESS, np.append(metadata.snapshot_ids, ENDLESS)[indices], lasts)


def inlined_positions(metadata: DuckLakeMetadata, snapshot: int) -> Mapping[int, tuple[int, ...]]:
    """Return the positions that the catalog deletes at a snapshot, ascending, by data file."""
    rows = metadata.rows["inlined_delete"]
    rows = rows.filter(pa.array(numbers(rows, "begin_snapshot") <= snapshot))
    result: dict[int, set[int]] = {}
    for number, position in zip(rows.column("file_id").to_pylist(), rows.column("row_id").to_pylist(), strict=True):
        result.setdefault(number, set()).add(position)
    return {number: tuple(sorted(positions)) for number, positions in result.items()}


def _mapping_of(metadata: DuckLakeMetadata, mapping_id: int, path: str) -> tuple[MappedName, ...]:
    types = {row["mapping_id"]: row["type"] for row in metadata.rows["column_mapping"].to_pylist()}
    if types.get(mapping_id) != "map_by_name":
        raise refusal(features.OTHER_MAPPINGS, path=path, type=types.get(mapping_id))
    below: dict[int | None, list[Mapping[str, Any]]] = {}
    for row in metadata.rows["name_mapping"].to_pylist():
        if row["mapping_id"] == mapping_id:
            below.setdefault(row["parent_column"], []).append(row)

    def parts(parent: int | None) -> tuple[MappedName, ...]:
        return tuple(
            MappedName(
                name=str(row["source_name"]),
                id=row["target_field_id"],
                is_partition=bool(row["is_partition"]),
                children=parts(row["column_id"]),
            )
            for row in below.pop(parent, ())  # each once: no cycle is followed
        )

    return parts(None)


def _inlined_split(metadata: DuckLakeMetadata, snapshot: int, fields: tuple[LakeField, ...]) -> Iterator[Split]:
    tables = inlined_rows(metadata, snapshot)
    rows = sum(len(table.rows) for table in tables)
    if rows:
        yield Split(
            files=(),
            raw=False,
            partition={},
            rows=rows,
            size_bytes=sum(table.rows.nbytes for table in tables),
            live_rows=rows,
            detail=InlinedPlan(tables=tables, fields=fields, fields_key=_key_of(fields)),
        )


def _key_of(fields: tuple[LakeField, ...]) -> str:
    return hashlib.sha256(repr(fields).encode()).hexdigest()


def inlined_rows(metadata: DuckLakeMetadata, snapshot: int) -> tuple[InlinedTable, ...]:
    """Return the live inlined rows at a snapshot, of each inlined table that has some."""
    return tuple(
        replace(table, rows=table.rows.filter(pa.array(mask)))
        for table in metadata.inlined
        if (mask := live_mask(table.rows, snapshot)).any()
    )


def file_bounds(log: DuckLakeLog, metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds:
    """Return the bounds of files in columns, by the names of the columns. Opens the catalog once.

    They also cover rows that are deleted, or that a version does not see. All are unknown if the catalog was replaced
    by another one, in which ids mean other files.

    Args:
        files: Rows of ducklake_data_file, with data_file_id and record_count.
    """
    ids = single_chunk(files.column("data_file_id"))
    columns = {}
    with log.file.reading() as reader:
        is_same = metadata.is_of(reader)
        for field in fields:
            unknown = pa.nulls(len(files), arrow_type(field))
            columns[field.name] = unknown, unknown, pa.nulls(len(files), pa.int64())
            if is_same and field.type not in NESTED:
                rows = reader.read("file_column_stats", {"table_id": metadata.table_id, "column_id": field.id})
                columns[field.name] = _ends(rows, ids, field)
    return bounds_from(columns, single_chunk(files.column("record_count")))


def _ends(rows: pa.Table, ids: pa.Array, field: LakeField) -> tuple[pa.Array, pa.Array, pa.Array]:
    positions = pc.index_in(ids, value_set=single_chunk(rows.column("data_file_id")))
    lower, upper, nulls, nan = (
        single_chunk(rows.column(name)).take(positions)
        for name in ("min_value", "max_value", "null_count", "contains_nan")
    )
    if type_of(field.type).family == "float":  # NaN is in neither bound
        is_known = pc.fill_null(pc.invert(nan), False)  # noqa: FBT003 - the value of nulls
        lower, upper = (pc.if_else(is_known, values, pa.scalar(None, pa.string())) for values in (lower, upper))
    return _typed_texts(lower, field), _typed_texts(upper, field), nulls


def _typed_texts(texts: pa.Array, field: LakeField) -> pa.Array:
    """Return values of texts in the catalog in the type of a column; null for all if one is not of the type."""
    if type_of(field.type).has_bounds:
        try:
            return conform_leaf(cast_texts(texts, field), field)
        except (ValueError, pa.ArrowException, UnsupportedFeatureError):
            pass
    return pa.nulls(len(texts), arrow_type(field))


def partition_bounds(metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds | None:
    """Return the values of columns by which files are partitioned, as bounds; None if none of these columns is one."""
    rows = single_chunk(files.column("record_count"))
    columns = {}
    for field in fields:
        texts, is_known = _identity_values(metadata, files, field)
        if type_of(field.type).family == "float" or not is_known.true_count:
            continue
        values = _typed_texts(texts, field)
        if values.null_count < len(values):
            values = pc.if_else(is_known, values, pa.scalar(None, values.type))
            counts = pc.if_else(texts.is_valid(), pa.scalar(0, pa.int64()), rows)
            columns[field.name] = values, values, pc.if_else(is_known, counts, pa.scalar(None, pa.int64()))
    return bounds_from(columns, rows) if columns else None


def partition_maps(metadata: DuckLakeMetadata, files: pa.Table) -> pa.MapArray:
    """Return for each file the text of each value by the column, or by the transform of it, as in FILES."""
    specs, of_files = np.unique(numbers(files, "partition_id", -1), return_inverse=True)
    names = [[_name(*item) for item in metadata.partition_fields(spec)] for spec in specs.tolist()]
    counts = np.asarray([len(own) for own in names], np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts[of_files])])
    owners = np.repeat(np.arange(len(files)), counts[of_files])
    indices = np.arange(len(owners)) - offsets[owners]
    starts = (np.cumsum(counts) - counts)[of_files[owners]]
    keys = pa.array([name for own in names for name in own], pa.string()).take(pa.array(starts + indices, pa.int64()))
    values, _ = _texts(metadata, numbers(files, "data_file_id")[owners], indices)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)


def partition_texts(metadata: DuckLakeMetadata, files: pa.Table) -> list[dict[str, str | None]]:
    """Return `partition_maps` as dictionaries; one for all files if none is partitioned."""
    maps = partition_maps(metadata, files)
    return list(map(dict, maps.to_pylist())) if len(maps.keys) else [{}] * len(maps)


def _identity_values(metadata: DuckLakeMetadata, files: pa.Table, field: LakeField) -> tuple[pa.Array, pa.Array]:
    """Return for each file the value of a column by which it is partitioned, as text, and whether it is known."""
    specs, of_files = np.unique(numbers(files, "partition_id", -1), return_inverse=True)
    indices = np.full(len(specs), -1, np.int64)
    for number, spec in enumerate(specs.tolist()):
        for index, (column, transform) in enumerate(metadata.partition_fields(spec)):
            if transform == "identity" and column is not None and column.id == field.id:
                indices[number] = index
    texts, is_known = _texts(metadata, numbers(files, "data_file_id"), indices[of_files])
    return texts, pc.and_(is_known, pa.array(indices[of_files] >= 0, pa.bool_()))


def _texts(metadata: DuckLakeMetadata, ids: Ints, indices: Ints) -> tuple[pa.Array, pa.Array]:
    """Return the values of files at indices of their specs, and which of them are recorded."""
    rows = metadata.rows["file_partition_value"]
    of_rows = numbers(rows, "partition_key_index", 0)
    width = 1 + max(int(of_rows.max(initial=0)), int(indices.max(initial=0)))
    recorded = pa.array(numbers(rows, "data_file_id", -1) * width + of_rows, pa.int64())
    positions = pc.index_in(pa.array(ids * width + indices, pa.int64()), value_set=recorded)
    return single_chunk(rows.column("partition_value")).take(positions), positions.is_valid()


def _name(field: LakeField | None, transform: str) -> str:
    column = "?" if field is None else field.name
    return column if transform == "identity" else f"{transform}({column})"


def read_split(
    storage: Storage, split: Split, names: Sequence[str], predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

    Args:
        predicate: Row groups in which no row matches it may be left out.
    """
    fields = detail_of(split, SplitPlan, "DuckLake").fields
    return read_fields(storage, split, named_fields(names, fields, HIDDEN), predicate)


def read_fields(
    storage: Storage, split: Split, fields: Sequence[LakeField], predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split with columns of its version and metadata columns; see `read_split`."""
    if isinstance(split.detail, InlinedPlan):
        yield from _inlined_rows(split.detail, fields)
    elif isinstance(split.detail, FilePlan):
        yield from _file_rows(storage, split.detail, fields, predicate)


def _file_rows(
    storage: Storage, plan: FilePlan, fields: Sequence[LakeField], predicate: Predicate | None
) -> Iterator[pa.RecordBatch]:
    shown, visible = f"The data file {plan.path}", plan.visible
    with (
        named_in_errors(plan.path, "parquet", partial(absent_data_error, storage, shown)),
        storage.open(plan.path, size_bytes=plan.size_bytes) as source,
    ):
        check_size(shown, source.size(), plan.size_bytes, by="the catalog")
        parquet = open_parquet(source)
        footer = parquet.reader.metadata
        stored = file_columns(parquet.reader.schema_arrow, plan.mapping, plan.positions)
        constants = partition_constants(plan.location, plan.mapping, fields)
        snapshots = next((column.name for column in stored if column.id == SNAPSHOT.id), None)
        if snapshots is None:
            if visible.up_to is not None:
                raise CorruptTableError(
                    f"{shown} has rows of several snapshots, and no column that says which. It is damaged, or the "
                    "catalog is; compare them with a copy."
                )
            constants[SNAPSHOT.id] = pa.scalar(plan.begin, pa.int64())
        mapping = projection(RULES, fields, stored, constants, f"the data file {plan.path}")
        names = mapping.names
        if visible.up_to is not None and snapshots not in names:
            names = [*names, str(snapshots)]
        deleted = deleted_positions(storage, visible.deletes, visible.inlined_deletes, footer.num_rows, plan.path)
        logger.debug("reading %s of %s", names, plan.path)
        matching = row_groups.matching(footer, unconverted_columns(mapping, RULES), predicate)
        for groups, start, rows in row_groups.runs(footer, matching=matching):
            at = start
            for batch in parquet.batches(names, groups, rows):
                kept = kept_rows(deleted, at, batch.num_rows)
                if visible.first_rows is not None:
                    kept[max(0, visible.first_rows - at) :] = False
                if visible.up_to is not None:
                    kept &= np.asarray(batch.column(snapshots).fill_null(visible.up_to + 1)) <= visible.up_to
                yield from _kept_rows(plan, batch, mapping, kept, at)
                at += batch.num_rows
            check_read(shown, at - start, rows)


def _kept_rows(
    plan: FilePlan, batch: pa.RecordBatch, mapping: Projection[LakeField], kept: np.ndarray, start: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch that are kept. Its first row has the position `start` in the file."""
    if not kept.any():
        return
    if not kept.all():
        batch = filter_rows(batch, mask_of(kept))
    arrays = project(batch, mapping, batch.num_rows, RULES)
    for index, (field, source) in enumerate(mapping.targets):
        if field.id == ROW_ID.id and source is None and plan.row_id_start is not None:
            arrays[index] = pa.array(np.flatnonzero(kept) + (plan.row_id_start + start), pa.int64())
    yield _batch(arrays, [field for field, _ in mapping.targets], batch.num_rows)


def _inlined_rows(plan: InlinedPlan, fields: Sequence[LakeField]) -> Iterator[pa.RecordBatch]:
    """Yield inlined rows: a column is found by its id among the columns under which they were written.

    Source: reference, "Inlined data".
    """
    for table in plan.tables:
        columns = [columns_like(field, str(index)) for index, field in enumerate(table.fields)]
        columns += [columns_like(ROW_ID, "row_id"), columns_like(SNAPSHOT, "begin_snapshot")]
        mapping = projection(RULES, fields, columns, {}, f"the inlined table {table.name}")
        for batch in table.rows.combine_chunks().to_batches():
            values = _typed(batch, table, mapping)
            yield _batch(project(values, mapping, batch.num_rows, RULES), fields, batch.num_rows)


def _typed(batch: pa.RecordBatch, table: InlinedTable, mapping: Projection[LakeField]) -> pa.RecordBatch:
    """Return inlined rows with the values that the catalog has as text in the types of data files."""
    columns = []
    for name in mapping.names:
        values = batch.column(name)
        if name.isdecimal() and pa.types.is_string(values.type):
            field = table.fields[int(name)]
            with column_named_in_errors(field.name, type_text(field), mapping.shown):
                values = cast_texts(values, field)
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, names=mapping.names)


def _batch(arrays: Sequence[pa.Array], fields: Sequence[LakeField], rows: int) -> pa.RecordBatch:
    if not fields:
        return rows_without_columns(rows)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([arrow_field(field) for field in fields]))
