"""Plan the splits of a version: live data files with their deletes, what is visible in them, and the inlined rows.

Source: DuckLake specification 1.0, "Queries"; reference, "Data files", "Deletes", "Merged and rewritten files".
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.records import Predicate, ReadPlan, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.files.columns import MappedName
from snapshot_explorer.formats.ducklake.files.deletes import DELETE_FORMATS, DeleteFile
from snapshot_explorer.formats.ducklake.metadata.changes_made import FLUSHES
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_type
from snapshot_explorer.formats.ducklake.metadata.log import DuckLakeLog
from snapshot_explorer.formats.ducklake.metadata.paths import readable_path
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    ENDLESS,
    DuckLakeMetadata,
    Ints,
    Partial,
    live_mask,
    live_rows,
    numbers,
)
from snapshot_explorer.formats.ducklake.scan.plans import Context, FilePlan, InlinedPlan, InlinedRows, context_of
from snapshot_explorer.formats.ducklake.scan.statistics import file_bounds, named_partitions, partition_bounds
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.skipped import Reasons, by_statistics, skipped_frame
from snapshot_explorer.storage import Storage

logger = logger_of(__name__)

_MAPPING = "map_by_name"
_SNAPSHOTS_INSIDE_SINCE = ("0.4-dev1", "0.4", "1.0")
"""The format versions in which delete files may contain the snapshot of each delete."""


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
    files = live_rows(metadata.data_files, snapshot)
    deletes = live_rows(metadata.delete_files, snapshot)
    _check_readable(metadata, files, deletes)
    _warn_of_lost_deletes(log.storage, metadata, snapshot)
    reasons = _reasons(log, metadata, files, fields, predicate)
    is_read = pa.array([reason is None for reason in reasons], pa.bool_())
    context = context_of(fields)
    splits = [
        *_file_splits(log, metadata, files.filter(is_read), deletes, snapshot, context),
        *_inlined_splits(metadata, snapshot, context),
    ]
    return ReadPlan(splits=tuple(splits), skipped=partial(_skipped, metadata, files, reasons))


def _skipped(metadata: DuckLakeMetadata, files: pa.Table, reasons: Reasons) -> pa.Table:
    partitions = named_partitions(metadata, files)
    sizes = files.select(["record_count", "file_size_bytes"]).rename_columns(["rows", "size_bytes"])
    return skipped_frame(sizes, reasons, partitions=partitions, of_files=np.arange(len(files)))


def _check_readable(metadata: DuckLakeMetadata, files: pa.Table, deletes: pa.Table) -> None:
    if (metadata.option("encrypted") or "false").lower() not in ("false", "0"):
        raise refusal(features.ENCRYPTED, what=f"The lake of {metadata.catalog}")
    for rows, column, known in ((files, "file_format", ("parquet",)), (deletes, "format", DELETE_FORMATS)):
        with_key = rows.filter(rows.column("encryption_key").is_valid())
        if len(with_key):
            raise refusal(features.ENCRYPTED, what=f"The file {with_key.column('location')[0].as_py()}")
        is_known = pc.is_in(rows.column(column), value_set=pa.array(known))
        others = rows.filter(pc.invert(is_known))
        if len(others):
            path, word = (others.column(name)[0].as_py() for name in ("location", column))
            raise refusal(features.OTHER_FILE_FORMATS, path=path, file_format=word)


def _warn_of_lost_deletes(storage: Storage, metadata: DuckLakeMetadata, snapshot: int) -> None:
    """Log that deletes of a version are lost, because a later deletion vector has replaced them.

    Source: reference, "Deletes": a second vector of a data file replaces the row of the first.
    """
    vectors = metadata.delete_files.filter(pc.equal(metadata.delete_files.column("format"), "puffin"))
    later = vectors.filter(pa.array(numbers(vectors, "begin_snapshot") > snapshot))
    if not len(later):
        return
    files = live_rows(metadata.data_files, snapshot)
    files = files.filter(
        pc.is_in(files.column("data_file_id"), value_set=later.column("data_file_id").combine_chunks())
    )
    if not len(files):
        return
    recorded = {
        *numbers(metadata.data_files, "end_snapshot").tolist(),
        *numbers(metadata.delete_files, "begin_snapshot").tolist(),
        *numbers(metadata.inlined_deletes, "begin_snapshot").tolist(),
        *(end for table in metadata.inlined for end in numbers(table.rows, "end_snapshot").tolist()),
    }
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


def _reasons(
    log: DuckLakeLog,
    metadata: DuckLakeMetadata,
    files: pa.Table,
    fields: Sequence[LakeField],
    predicate: Predicate | None,
) -> Reasons:
    reasons = np.full(len(files), None, np.object_)
    if predicate is None or not len(files):
        return reasons
    chosen = [field for field in fields if field.name in predicate.columns]
    partitions = partition_bounds(metadata, files, chosen)
    if partitions is not None:
        reasons[[reason is not None for reason in by_statistics(predicate, partitions)]] = "partition"
    left = np.flatnonzero([reason is None for reason in reasons])
    if len(left) and chosen:
        known = file_bounds(log, metadata, files.take(pa.array(left)), chosen)
        reasons[left] = by_statistics(predicate, known)
    return reasons


def _file_splits(
    log: DuckLakeLog,
    metadata: DuckLakeMetadata,
    files: pa.Table,
    deletes: pa.Table,
    snapshot: int,
    context: Context,
) -> Iterator[Split]:
    of_files = _deletes_of(log, metadata, deletes, snapshot)
    inlined = inlined_positions(metadata, snapshot)
    mappings = _mappings(metadata)
    partitions = named_partitions(metadata, files)
    for row, partition in zip(files.to_pylist(), partitions, strict=True):
        number = row["data_file_id"]
        up_to, first_rows = _visible(metadata.partials.get(number), snapshot)
        mapping = None
        if row["mapping_id"] is not None:
            mapping = _mapping_of(mappings, metadata, row["mapping_id"], row["location"])
        plan_of_file = FilePlan(
            path=readable_path(row["location"], log.storage),
            location=row["location"],
            file_id=number,
            size_bytes=row["file_size_bytes"],
            begin=row["begin_snapshot"],
            row_id_start=row["row_id_start"],
            deletes=tuple(of_files.get(number, ())),
            inlined_deletes=inlined.get(number, ()),
            up_to=up_to,
            first_rows=first_rows,
            mapping=mapping,
            positions=metadata.fields_at(row["begin_snapshot"]) if metadata.format_version == "0.1" else (),
            context=context,
        )
        rows = row["record_count"]
        yield Split(
            files=(plan_of_file.path,),
            raw=plan_of_file.is_whole and mapping is None,
            partition=partition,
            bucket=None,
            rows=rows,
            size_bytes=row["file_size_bytes"],
            live_rows=rows if plan_of_file.is_whole else None,
            detail=plan_of_file,
        )


def _visible(partial_file: Partial | None, snapshot: int) -> tuple[int | None, int | None]:
    """Return the snapshot up to which rows of a file are visible, or the number of visible rows; None for all.

    Source: reference, "Merged and rewritten files".
    """
    if partial_file is None or partial_file.last <= snapshot:
        return None, None
    if partial_file.counts is None:
        return snapshot, None
    return None, max((count for number, count in partial_file.counts if number <= snapshot), default=0)


def _deletes_of(
    log: DuckLakeLog, metadata: DuckLakeMetadata, deletes: pa.Table, snapshot: int
) -> Mapping[int, Sequence[DeleteFile]]:
    result: dict[int, list[DeleteFile]] = {}
    is_complete = last_deletes(metadata, deletes) <= snapshot
    for row, complete in zip(deletes.to_pylist(), is_complete.tolist(), strict=True):
        file = DeleteFile(
            path=readable_path(row["location"], log.storage),
            format=row["format"],
            size_bytes=row["file_size_bytes"],
            up_to=None if complete else snapshot,
        )
        result.setdefault(row["data_file_id"], []).append(file)
    return {number: sorted(files, key=lambda file: file.path) for number, files in result.items()}


def last_deletes(metadata: DuckLakeMetadata, deletes: pa.Table) -> Ints:
    """Return for each delete file a snapshot after which nothing in it was deleted."""
    lasts = numbers(deletes, "partial_max")
    if metadata.format_version not in _SNAPSHOTS_INSIDE_SINCE:
        return numbers(deletes, "begin_snapshot")
    return np.where(lasts == ENDLESS, metadata.last_in_files(numbers(deletes, "delete_file_id")), lasts)


def inlined_positions(metadata: DuckLakeMetadata, snapshot: int) -> Mapping[int, tuple[int, ...]]:
    """Return the positions that the catalog deletes at a snapshot, ascending, by data file."""
    rows = metadata.inlined_deletes
    rows = rows.filter(pa.array(numbers(rows, "begin_snapshot") <= snapshot))
    result: dict[int, set[int]] = {}
    for number, position in zip(rows.column("file_id").to_pylist(), rows.column("row_id").to_pylist(), strict=True):
        result.setdefault(number, set()).add(position)
    return {number: tuple(sorted(positions)) for number, positions in result.items()}


def _mappings(metadata: DuckLakeMetadata) -> Mapping[int, Mapping[int | None, Sequence[Mapping[str, Any]]]]:
    """Return the rows of each mapping by their parent in it."""
    result: dict[int, dict[int | None, list[Mapping[str, Any]]]] = {}
    for row in metadata.name_mappings.to_pylist():
        result.setdefault(row["mapping_id"], {}).setdefault(row["parent_column"], []).append(row)
    return result


def _mapping_of(
    mappings: Mapping[int, Mapping[int | None, Sequence[Mapping[str, Any]]]],
    metadata: DuckLakeMetadata,
    mapping_id: int,
    path: str,
) -> tuple[MappedName, ...]:
    types = {row["mapping_id"]: row["type"] for row in metadata.column_mappings.to_pylist()}
    if types.get(mapping_id) != _MAPPING:
        raise refusal(features.OTHER_MAPPINGS, path=path, type=types.get(mapping_id))
    below = dict(mappings.get(mapping_id, {}))

    def parts(parent: int | None) -> tuple[MappedName, ...]:
        rows = below.pop(parent, ())  # each once: no cycle is followed
        return tuple(
            MappedName(
                name=str(row["source_name"]),
                id=row["target_field_id"],
                is_partition=bool(row["is_partition"]),
                children=parts(row["column_id"]),
            )
            for row in rows
        )

    return parts(None)


def _inlined_splits(metadata: DuckLakeMetadata, snapshot: int, context: Context) -> Iterator[Split]:
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
            detail=InlinedPlan(tables=tables, is_native=metadata.has_native_values, context=context),
        )


def inlined_rows(metadata: DuckLakeMetadata, snapshot: int) -> tuple[InlinedRows, ...]:
    """Return the live inlined rows at a snapshot, of each inlined table that has some."""
    return tuple(
        InlinedRows(name=table.name, fields=table.fields, rows=table.rows.filter(pa.array(mask)))
        for table in metadata.inlined
        if (mask := live_mask(table.rows, snapshot)).any()
    )
