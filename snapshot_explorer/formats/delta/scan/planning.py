"""Plan the splits of a version: which files to read, which to skip, and which to read together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_rows import SharedRows, equal_rows
from snapshot_explorer.core.records import PlannedPair, Predicate, ReadPlan, Split
from snapshot_explorer.formats.delta.files.data_files import DeltaDataFile
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.metadata.checkpoints import NeededColumns
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, parts
from snapshot_explorer.formats.delta.metadata.partitions import DeltaPartitions, partitions_of
from snapshot_explorer.formats.delta.metadata.records import DeltaState, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.replay import concat_adds
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, schema_of
from snapshot_explorer.formats.delta.metadata.supported import check_readable
from snapshot_explorer.formats.delta.scan import statistics
from snapshot_explorer.formats.delta.scan.metadata_columns import row_tracking
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan, RowTracking
from snapshot_explorer.formats.skipped import Reasons, add_groups, by_statistics, frame_of, skipped_groups
from snapshot_explorer.formats.spatial import SPATIAL
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import is_full_location

_IDENTITY = ["path", "partition_values", "deletion_vector", "base_row_id", "default_row_commit_version"]
"""The columns of ADDS that determine which rows of a file are read; see `Plan.identity`."""
_TARGET_BYTES = 128 * 2**20
_OPEN_BYTES = 4 * 2**20


def needed_columns(metadata: Metadata, predicate: Predicate) -> NeededColumns:
    """Return the columns of ADDS that the plan of a condition reads."""
    parsed = {field.stored for field in schema_of(metadata).fields if field.name in predicate.columns}
    return NeededColumns(names=frozenset({*_IDENTITY, "stats"}), parsed=frozenset(parsed))


def plan(
    storage: Storage,
    predicate: Predicate | None,
    protocol: Protocol,
    metadata: Metadata,
    live_files: Iterable[pa.Table],
) -> ReadPlan:
    """Return the splits of the rows of a version, and the files that the predicate skips.

    Files are skipped by partition and by statistics, all from the log: no data file is opened. Skipped files are
    dropped before the next ones are consumed.

    Args:
        storage: The table's storage, which resolves files at full locations. Nothing is read.
        predicate: The rows to read; all for None.
        live_files: ADDS of the live files, some at a time.
    """
    schema = check_readable(protocol, metadata)
    read: list[_Scan] = []
    skipped: list[pa.Table] = []
    numbers: dict[tuple[tuple[str, str | None], ...], int] = {}
    for adds in live_files:
        scan = _scan(schema, adds, predicate)
        read.append(scan.where(scan.is_read))
        if len(read[-1].adds) < len(adds):
            add_groups(skipped, _skipped_groups(scan, numbers))
    splits = file_splits(
        storage,
        concat_adds([scan.adds for scan in read]),
        schema,
        rows=pa.concat_arrays([scan.rows for scan in read]),
        partitions=read[0].partitions if len(read) == 1 else None,
        tracking=row_tracking(metadata),
    )
    return ReadPlan(splits=tuple(splits), skipped=lambda: frame_of(skipped, [dict(partition) for partition in numbers]))


def _skipped_groups(scan: "_Scan", numbers: dict[tuple[tuple[str, str | None], ...], int]) -> pa.Table:
    """Return the counts of skipped files by partition, which is numbered among those so far."""
    positions = [numbers.setdefault(tuple(texts.items()), len(numbers)) for texts in scan.partitions.texts]
    files = scan.adds.select(["size_bytes"]).append_column("rows", scan.rows)
    of_files = np.array(positions, np.int64)[scan.partitions.of_rows]
    return skipped_groups(files, scan.reasons, of_files=of_files)


def plan_pair(storage: Storage, states: Sequence[DeltaState], predicates: Sequence[Predicate | None]) -> PlannedPair:
    """Return the splits of two versions, without the files that both read in the same way; see `plan`."""
    schemas = [check_readable(state.protocol, state.metadata) for state in states]
    tracking = [row_tracking(state.metadata) for state in states]
    first, last = (
        _scan(schema, state.adds, predicate)
        for schema, state, predicate in zip(schemas, states, predicates, strict=True)
    )
    if (schemas[0], tracking[0]) != (schemas[1], tracking[1]):
        shared = np.zeros(len(first.adds), np.bool_), np.zeros(len(last.adds), np.bool_)
    else:
        shared = equal_rows(first.adds.select(_IDENTITY), last.adds.select(_IDENTITY), "path")
    before, after = (
        tuple(file_splits(storage, left.adds, schema, rows=left.rows, partitions=left.partitions, tracking=ids))
        for left, schema, ids in zip(
            (first.where(first.is_read & ~shared[0]), last.where(last.is_read & ~shared[1])),
            schemas,
            tracking,
            strict=True,
        )
    )
    return PlannedPair(splits=(before, after), shared_files=int((first.is_read & shared[0]).sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    adds: pa.Table
    partitions: DeltaPartitions
    rows: pa.Int64Array
    reasons: Reasons

    @property
    def is_read(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.reasons == None, np.bool_)  # noqa: E711 - element by element

    def where(self, chosen: npt.NDArray[np.bool_]) -> "_Scan":
        """Return the scan of some of the files."""
        if chosen.all():
            return self
        mask = pa.array(chosen)
        return _Scan(
            adds=self.adds.filter(mask),
            partitions=self.partitions.where(chosen),
            rows=self.rows.filter(mask),
            reasons=self.reasons[chosen],
        )


def _scan(schema: DeltaSchema, adds: pa.Table, predicate: Predicate | None) -> _Scan:
    partitions = partitions_of(adds, schema)
    rows = statistics.rows_of(adds)
    reasons = _reasons(adds, rows, schema, partitions, predicate)
    return _Scan(adds=adds, partitions=partitions, rows=rows, reasons=reasons)


def _reasons(
    adds: pa.Table, rows: pa.Int64Array, schema: DeltaSchema, partitions: DeltaPartitions, predicate: Predicate | None
) -> Reasons:
    reasons = np.full(len(adds), None, np.object_)
    if predicate is None or not len(adds):
        return reasons
    part = predicate.on(frozenset(schema.partition_columns)) if schema.partition_columns else None
    if part is not None:
        passes = np.asarray(part.mask(partitions.values).to_numpy(zero_copy_only=False), np.bool_)
        reasons[~passes[partitions.of_rows]] = "partition"
    left = np.flatnonzero(reasons == None).astype(np.int64)  # noqa: E711 - element by element
    if len(left) < len(adds):
        adds, rows, partitions = adds.take(pa.array(left)), rows.take(pa.array(left)), partitions.where(left)
    fields = [field for field in schema.fields if field.name in predicate.columns]
    known = statistics.bounds(adds, fields, rows, partitions, careful=True)
    reasons[left] = by_statistics(predicate, known)
    return reasons


def file_splits(
    storage: Storage,
    files: pa.Table,
    schema: DeltaSchema,
    *,
    rows: pa.Int64Array | None = None,
    partitions: DeltaPartitions | None = None,
    tracking: RowTracking | None = None,
) -> Iterator[Split]:
    """Yield splits for files.

    Files of one partition are packed together up to 128 MB (a file counts as at least 4 MB), in order, raw ones
    separate from others. A split is raw if no file has a deletion vector and every column is stored under its own name,
    never had another type and is not a char(n). Its files may lack columns that were added later, and contain no
    partition columns: `Split.detail` has both.

    Args:
        storage: The table's storage, which resolves files at full locations. Nothing is read.
        files: ADDS, REMOVES or CDC.
        schema: The schema to read the files with.
        rows: The result of `statistics.rows_of`; computed by default.
        partitions: Their partitions; computed by default.
        tracking: The columns of row ids.
    """
    partitions = partitions_of(files, schema) if partitions is None else partitions
    is_plain = _is_plain(DeltaDataType(root="struct", fields=schema.fields))
    members = _files(storage, files, statistics.rows_of(files) if rows is None else rows)
    costs = [max(file.size_bytes or 0, _OPEN_BYTES) for file in members]
    stats = _stats(files)
    for number, group in _groups(partitions.of_rows):
        values = SharedRows(partitions.values, (number,)) if schema.partition_columns else None
        for is_raw in (True, False):
            alike = [index for index in group if (is_plain and members[index].vector is None) is is_raw]
            for indices in pack(alike, costs.__getitem__, target=_TARGET_BYTES):
                packed = tuple(members[index] for index in indices)
                yield Split(
                    files=tuple(file.path for file in packed),
                    raw=is_raw,
                    partition=partitions.texts[number],
                    rows=_sum([file.rows for file in packed]),
                    size_bytes=sum(file.size_bytes or 0 for file in packed),
                    live_rows=_sum([_live_row_count(file) for file in packed]),
                    detail=DeltaPlan(
                        files=packed,
                        schema=schema,
                        partition_values=values,
                        row_tracking=tracking,
                        stats=None if stats is None else SharedRows(stats, tuple(indices)),
                    ),
                )


def _groups(of_rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    """Yield each partition, in the order of their first files, with the indices of its files."""
    order = np.argsort(of_rows, kind="stable")
    numbers, starts = np.unique(of_rows[order], return_index=True)
    bounds = np.append(starts, len(order))
    indices = order.tolist()
    for index in np.argsort(order[starts]).tolist():
        yield int(numbers[index]), indices[bounds[index] : bounds[index + 1]]


def _stats(files: pa.Table) -> pa.Array | None:
    if "stats" not in files.column_names or files.column("stats").null_count == len(files):
        return None
    return single_chunk(files.column("stats"))


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _live_row_count(file: DeltaDataFile) -> int | None:
    """Return the number of live rows of a file; None if the log does not contain it, or contradicts itself."""
    if file.rows is None or file.vector is None:
        return file.rows
    return file.rows - file.vector.cardinality if file.vector.cardinality <= file.rows else None


def _is_plain(data_type: DeltaDataType) -> bool:
    """Return whether every field in a type is stored under its own name and has no other type in old files."""
    if data_type.element is None and not data_type.fields:
        return data_type.root not in ("variant", *SPATIAL) and data_type.char_length is None
    if any(field.stored != field.name or field.changes for field in data_type.fields):
        return False
    return all(map(_is_plain, parts(data_type)))


def _files(storage: Storage, files: pa.Table, rows: pa.Int64Array) -> list[DeltaDataFile]:
    names = ("deletion_vector", "base_row_id", "default_row_commit_version")
    columns = [
        files.column(name).to_pylist()
        if name in files.column_names and files.column(name).null_count < len(files)
        else [None] * len(files)
        for name in names
    ]
    result = []
    for path, size, count, vector, base, version in zip(
        files.column("path").to_pylist(),
        files.column("size_bytes").to_pylist(),
        rows.to_pylist(),
        *columns,
        strict=True,
    ):
        if is_full_location(path):
            storage.resolve_external(path)  # refuses one on another storage before any row
        result.append(
            DeltaDataFile(
                path=path,
                size_bytes=size,
                rows=count,
                vector=None if vector is None else vector_of(vector, storage, path),
                base_row_id=base,
                commit_version=version,
            )
        )
    return result
