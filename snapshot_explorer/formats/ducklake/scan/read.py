"""Rows of a split: of a data file, without deleted and invisible rows, or of the inlined tables."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.positions import filter_rows, kept_rows, mask_of, rows_without_columns
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.corrupt_files import (
    check_read,
    check_size,
    column_named_in_errors,
    named_in_errors,
)
from snapshot_explorer.formats.ducklake.files import (
    RULES,
    cast_texts,
    columns_like,
    deleted_positions,
    file_columns,
    partition_constants,
)
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_field, type_text
from snapshot_explorer.formats.ducklake.metadata.paths import absent_data_error
from snapshot_explorer.formats.ducklake.metadata.table_metadata import InlinedTable
from snapshot_explorer.formats.ducklake.scan.planning import FilePlan, InlinedPlan, SplitPlan
from snapshot_explorer.formats.files.field_columns import Projection, project, projection, unconverted_columns
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.split_requests import detail_of, named_fields
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

ROW_ID, SNAPSHOT = (
    LakeField(id=number, name=name, type="int64", nullable=True, initial_default=None)
    for number, name in ((2147483540, "_row_id"), (2147483539, "_snapshot_id"))
)
"""The metadata columns: the id of a row, which updates keep, and the snapshot that wrote this version of it.

Data files that contain rows of several snapshots have them, under these field ids."""
HIDDEN = (ROW_ID, SNAPSHOT)


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
        log.debug("reading %s of %s", names, plan.path)
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
            values = batch if plan.is_native else _typed(batch, table, mapping)
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
