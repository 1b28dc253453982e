"""Rows of a split: reads files, casts their columns to the table's, drops deleted rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.positions import filter_rows, kept_rows, mask_of, rows_without_columns
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.formats.delta.files.absent_columns import ExpectedColumns
from snapshot_explorer.formats.delta.files.data_files import DeltaColumns, DeltaOpenFile, batches, open_data_file
from snapshot_explorer.formats.delta.files.deletion_vectors import read_deleted_positions
from snapshot_explorer.formats.delta.files.missing_files import Removals
from snapshot_explorer.formats.delta.metadata.data_types import DeltaField, arrow_field
from snapshot_explorer.formats.delta.scan import metadata_columns
from snapshot_explorer.formats.delta.scan.metadata_columns import HIDDEN
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan
from snapshot_explorer.formats.split_requests import detail_of, named_fields
from snapshot_explorer.storage import Storage


def read(
    storage: Storage,
    split: Split,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    *,
    removals: Removals | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

    Files are streamed one after another, some megabytes at a time.

    Args:
        split: A split from `planning`, maybe from another machine.
        columns: Names of the version's columns, and of hidden columns if the table tracks its rows. Without names, the
            batches contain rows without columns.
        predicate: Row groups in which no row matches it may be left out.
        removals: For the error if a file does not exist.
    """
    yield from _read(storage, split, columns, {}, predicate, removals)


def read_rows(
    storage: Storage,
    split: Split,
    columns: Sequence[str],
    *,
    keep: Mapping[str, Positions],
    removals: Removals | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split as `read` does, but from some files only the rows at given positions.

    Args:
        keep: Positions by path (`DataFile.path`), ascending: these rows are read, even if a deletion vector removes
            them. Row groups without such a row are not read. Other files are read as usual.
    """
    yield from _read(storage, split, columns, keep, None, removals)


def _read(
    storage: Storage,
    split: Split,
    columns: Sequence[str],
    keep: Mapping[str, Positions],
    predicate: Predicate | None,
    removals: Removals | None,
) -> Iterator[pa.RecordBatch]:
    plan = detail_of(split, DeltaPlan, "Delta Lake")
    target = _target(plan, _fields(plan, columns))
    if predicate is not None:
        predicate = predicate.on(frozenset(target.stored))
    for index, file in enumerate(plan.files):
        expected = ExpectedColumns(schema=plan.schema, stats=plan.stats_of(index))
        with open_data_file(storage, file, plan.schema.mode, removals) as source:
            positions = keep.get(file.path)
            if positions is not None and len(positions) and positions[-1] >= source.rows:
                raise CorruptTableError(
                    f"Row {positions[-1]} of the data file {file.path} is requested, but the file has {source.rows} "
                    "rows. The log, or a deletion vector of the file, is damaged; compare them with a copy of "
                    "the table."
                )
            gone = None
            if file.vector and positions is None:
                gone = read_deleted_positions(storage, file.vector, file.path, source.rows, removals)
            for start, batch in _batches(source, target, expected, positions, predicate):
                kept = _kept_mask(start, batch.num_rows, positions, gone)
                yield batch if kept is None else filter_rows(batch, mask_of(kept))


def _fields(plan: DeltaPlan, columns: Sequence[str]) -> list[DeltaField]:
    own = {field.name for field in plan.schema.fields}
    unknown = [name for name in columns if name not in own]
    return named_fields(columns, plan.schema.fields, metadata_columns.metadata_fields(unknown, plan.row_tracking))


def _kept_mask(
    start: int, rows: int, positions: Positions | None, gone: Positions | None
) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the rows to read from a position on; None for all."""
    if positions is not None:
        return kept_rows(positions, start, rows, are_kept=True)
    kept = None if gone is None else kept_rows(gone, start, rows)
    return None if kept is None or kept.all() else kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The columns to return and their sources. Shared by all files of a split."""

    fields: Sequence[DeltaField]
    schema: pa.Schema
    constants: Mapping[str, pa.Scalar]
    stored: Sequence[str]
    tracked: Sequence[str]
    columns: DeltaColumns

    @property
    def is_stored(self) -> bool:
        """Whether files contain all columns, so that their batches are returned unchanged."""
        return 0 < len(self.stored) == len(self.fields)


def _target(plan: DeltaPlan, fields: Sequence[DeltaField]) -> _Target:
    partition = plan.partition
    constants = {} if partition is None else {name: partition.column(name)[0] for name in partition.column_names}
    stored = [field for field in fields if field.name not in constants and field not in HIDDEN]
    tracked = metadata_columns.stored_columns([field for field in fields if field in HIDDEN], plan.row_tracking)
    return _Target(
        fields=fields,
        schema=pa.schema([arrow_field(field) for field in fields]),
        constants=constants,
        stored=[field.name for field in stored],
        tracked=[field.name for field, _ in tracked],
        columns=DeltaColumns([*stored, *(field for _, field in tracked)]),
    )


def _batches(
    source: DeltaOpenFile,
    target: _Target,
    expected: ExpectedColumns,
    positions: Positions | None,
    predicate: Predicate | None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a file with these columns, each batch after the position of its first row."""
    fields, constants, count = target.fields, target.constants, len(target.stored)
    for start, batch in batches(source, target.columns, expected, positions, predicate):
        if target.is_stored:
            yield start, batch
            continue
        rows = batch.num_rows
        columns = dict(zip(target.stored, batch.columns, strict=False))
        own = dict(zip(target.tracked, batch.columns[count:], strict=True))
        arrays = [
            metadata_columns.values(field, own.get(field.name), source.file, start, rows)
            if field in HIDDEN
            else pa.repeat(constants[field.name], rows)
            if field.name in constants
            else columns[field.name]
            for field in fields
        ]
        yield start, pa.RecordBatch.from_arrays(arrays, schema=target.schema) if fields else rows_without_columns(rows)
