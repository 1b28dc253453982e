"""Plan the splits of a version: live data files with their deletes, what is visible in them, and the inlined rows.

Source: DuckLake specification 1.0, "Queries"; reference, "Data files", "Deletes", "Merged and rewritten files".
"""

import hashlib
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.records import Predicate, ReadPlan, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.files import DELETE_FORMATS, DeleteFile, MappedName
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_type
from snapshot_explorer.formats.ducklake.metadata.paths import readable_paths
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
from snapshot_explorer.formats.ducklake.scan.statistics import file_bounds, partition_bounds, partition_texts
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.skipped import Reasons, by_statistics, skipped_frame
from snapshot_explorer.storage import Storage

logger = logger_of(__name__)

_SNAPSHOTS_INSIDE_SINCE = ("0.4-dev1", "0.4", "1.0")
"""The format versions in which delete files may contain the snapshot of each delete."""


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
    is_native: bool
    """Whether values have their own types. Otherwise some are text."""

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
        fields: The columns to read; by default those of the snapshot.

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
            bucket=None,
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
            bucket=None,
            rows=rows,
            size_bytes=sum(table.rows.nbytes for table in tables),
            live_rows=rows,
            detail=InlinedPlan(
                tables=tables, is_native=metadata.has_native_values, fields=fields, fields_key=_key_of(fields)
            ),
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
