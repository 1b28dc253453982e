"""Rows of a split: of a data file, without deleted and invisible rows, or of the inlined tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.positions import filter_rows, mask_of, rows_without_columns
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.corrupt_files import absent_file_error, check_size, named_in_errors
from snapshot_explorer.formats.ducklake.files import columns as file_columns
from snapshot_explorer.formats.ducklake.files.columns import ROW_ID, SNAPSHOT_ID, FileColumn, Projection
from snapshot_explorer.formats.ducklake.files.deletes import deleted_positions
from snapshot_explorer.formats.ducklake.files.values import cast_texts, default_value
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_field, arrow_type
from snapshot_explorer.formats.ducklake.scan.plans import Context, FilePlan, InlinedPlan, InlinedRows
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

HIDDEN = pa.schema([("_row_id", pa.int64()), ("_snapshot_id", pa.int64())])
"""The metadata columns: the id of a row, which updates keep, and the snapshot that wrote this version of it."""
_IDS = {"_row_id": ROW_ID, "_snapshot_id": SNAPSHOT_ID}


def metadata_columns(names: Sequence[str], fields: Sequence[LakeField]) -> pa.Schema:
    """Return the metadata columns among the names that are not columns of the table."""
    own = {field.name for field in fields}
    return pa.schema([field for field in HIDDEN if field.name in names and field.name not in own])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requested:
    """The requested columns: of the table, or metadata columns by name."""

    columns: tuple[LakeField | str, ...]
    schema: pa.Schema

    @classmethod
    def of(cls, context: Context, names: Sequence[str]) -> "_Requested":
        known = {field.name: field for field in context.fields}
        unknown = [name for name in names if name not in known and name not in HIDDEN.names]
        if unknown:
            raise InvalidArgumentError(f"Unknown column {unknown[0]!r}. Columns: {', '.join(known)}.")
        columns = tuple(known.get(name, name) for name in names)
        fields = [HIDDEN.field(item) if isinstance(item, str) else arrow_field(item) for item in columns]
        return cls(columns=columns, schema=pa.schema(fields))

    @property
    def fields(self) -> list[LakeField]:
        """The columns of the table."""
        return [item for item in self.columns if not isinstance(item, str)]

    @property
    def hidden(self) -> list[str]:
        """The metadata columns."""
        return [item for item in self.columns if isinstance(item, str)]

    def batch(self, own: Sequence[pa.Array], hidden: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
        """Return a batch of the columns of the table, in order, and of the metadata columns by name."""
        if not self.columns:
            return rows_without_columns(rows)
        stored = iter(own)
        arrays = [hidden[item] if isinstance(item, str) else next(stored) for item in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def read_split(
    storage: Storage, split: Split, columns: Sequence[str], predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

    Args:
        predicate: Row groups in which no row matches it may be left out.
    """
    plan = split.detail
    if isinstance(plan, InlinedPlan):
        return _inlined(plan, _Requested.of(plan.context, columns))
    if isinstance(plan, FilePlan):
        return read_file(storage, plan, columns, predicate)
    raise InvalidArgumentError("The split does not belong to a DuckLake table. Use a split of its own plan.")


def read_file(
    storage: Storage,
    plan: FilePlan,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    *,
    keep: Positions | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the visible rows of a data file.

    Args:
        keep: Positions, ascending: only these rows are read, even if deleted; None for all that are not deleted.
    """
    requested = _Requested.of(plan.context, columns)
    shown = f"The data file {plan.path}"
    with (
        named_in_errors(plan.path, "parquet", partial(absent_file_error, shown)),
        storage.open(plan.path, size_bytes=plan.size_bytes) as source,
    ):
        check_size(shown, source.size(), plan.size_bytes, by="the catalog")
        parquet = open_parquet(source)
        footer = parquet.reader.metadata
        stored = file_columns.file_columns(parquet.reader.schema_arrow, plan.mapping, plan.positions)
        constants = file_columns.partition_constants(plan.location, plan.mapping, requested.fields)
        mapping = file_columns.projection(requested.fields, stored, constants, shown)
        reserved = _reserved(plan, requested, stored)
        if keep is None:
            deleted = deleted_positions(storage, plan.deletes, plan.inlined_deletes, footer.num_rows, plan.path)
        names = list(dict.fromkeys([*mapping.names, *(column.name for column in reserved.values())]))
        log.debug("reading %s of %s", names, plan.path)
        matching = row_groups.matching(footer, _as_stored(mapping), _on(predicate, mapping))
        for groups, start, rows in row_groups.runs(footer, keep, matching):
            at = start
            for batch in parquet.batches(names, groups, rows):
                kept = _kept(plan, batch, reserved, at, None if keep is not None else deleted, keep)
                yield from _rows(requested, mapping, batch, _hidden(plan, requested, batch, reserved, at), kept)
                at += batch.num_rows
            if at != start + rows:
                raise CorruptTableError(
                    f"{shown} returned {at - start} rows, but {rows} are expected. It is damaged; compare it with "
                    "a copy of the table."
                )


def file_positions(storage: Storage, plan: FilePlan, rows: int) -> Positions:
    """Return the positions of the rows of a file that its deletes delete. Reads the delete files."""
    return deleted_positions(storage, plan.deletes, plan.inlined_deletes, rows, plan.path)


def _reserved(plan: FilePlan, requested: _Requested, stored: Sequence[FileColumn]) -> dict[str, FileColumn]:
    """Return the file's own columns of row ids and snapshots that are needed, by the names of the metadata columns."""
    by_id = {column.id: column for column in stored}
    needed = [*requested.hidden, *(["_snapshot_id"] if plan.up_to is not None else [])]
    found = {name: by_id[_IDS[name]] for name in needed if _IDS[name] in by_id}
    if plan.up_to is not None and "_snapshot_id" not in found:
        raise CorruptTableError(
            f"The data file {plan.path} has rows of several snapshots, and no column that says which. It is damaged, "
            "or the catalog is; compare them with a copy."
        )
    return found


def _as_stored(mapping: Projection) -> dict[str, pa.Field]:
    return {
        field.name: pa.field(source.name, source.type)
        for field, source in mapping.targets
        if source is not None and source.type == arrow_type(field)
    }


def _on(predicate: Predicate | None, mapping: Projection) -> Predicate | None:
    """Return the part of a condition on columns that the file has: defaults and values in the path are not in it."""
    names = frozenset(field.name for field, source in mapping.targets if source is not None)
    return None if predicate is None else predicate.on(names)


def _kept(
    plan: FilePlan,
    batch: pa.RecordBatch,
    reserved: dict[str, FileColumn],
    start: int,
    deleted: Positions | None,
    keep: Positions | None,
) -> np.ndarray | None:
    """Return which rows of a batch are visible; None for all."""
    rows = batch.num_rows
    kept = np.ones(rows, np.bool_)
    if keep is not None:
        first, last = np.searchsorted(keep, (start, start + rows))
        kept[:] = False
        kept[keep[first:last] - start] = True
    if deleted is not None and len(deleted):
        first, last = np.searchsorted(deleted, (start, start + rows))
        kept[deleted[first:last] - start] = False
    if plan.up_to is not None:
        snapshots = batch.column(reserved["_snapshot_id"].name)
        kept &= np.asarray(pc.fill_null(pc.less_equal(snapshots, plan.up_to), False).to_numpy(zero_copy_only=False))  # noqa: FBT003
    if plan.first_rows is not None:
        kept &= np.arange(start, start + rows) < plan.first_rows
    return None if kept.all() else kept


def _hidden(
    plan: FilePlan, requested: _Requested, batch: pa.RecordBatch, reserved: dict[str, FileColumn], start: int
) -> dict[str, pa.Array]:
    rows = batch.num_rows
    result = {}
    for name in requested.hidden:
        if name in reserved:
            result[name] = batch.column(reserved[name].name).cast(pa.int64())
        elif name == "_snapshot_id":
            result[name] = pa.repeat(pa.scalar(plan.begin, pa.int64()), rows)
        elif plan.row_id_start is None:
            result[name] = pa.nulls(rows, pa.int64())
        else:
            result[name] = pa.array(np.arange(rows, dtype=np.int64) + (plan.row_id_start + start))
    return result


def _rows(
    requested: _Requested,
    mapping: Projection,
    batch: pa.RecordBatch,
    hidden: dict[str, pa.Array],
    kept: np.ndarray | None,
) -> Iterator[pa.RecordBatch]:
    if kept is not None and not kept.any():
        return
    if kept is not None:
        mask = mask_of(kept)
        batch = filter_rows(batch, mask)
        hidden = {name: values.filter(mask) for name, values in hidden.items()}
    yield requested.batch(file_columns.project(batch, mapping), hidden, batch.num_rows)


def _inlined(plan: InlinedPlan, requested: _Requested) -> Iterator[pa.RecordBatch]:
    for table in plan.tables:
        rows = len(table.rows)
        own = [_inlined_column(table, field, is_native=plan.is_native) for field in requested.fields]
        sources = {"_row_id": "row_id", "_snapshot_id": "begin_snapshot"}
        hidden = {name: table.rows.column(sources[name]).combine_chunks() for name in requested.hidden}
        yield requested.batch(own, hidden, rows)


def _inlined_column(table: InlinedRows, field: LakeField, *, is_native: bool) -> pa.Array:
    """Return a column of inlined rows: by its id among the columns under which they were written.

    Source: reference, "Inlined data".
    """
    rows = len(table.rows)
    shown = f"the inlined table {table.name}"
    index = next((number for number, item in enumerate(table.fields) if item.id == field.id), None)
    with file_columns.named_in_errors(field, shown):
        if index is None:
            value = default_value(field)
            return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, arrow_type(field))
        written = table.fields[index]
        values = table.rows.column(str(index)).combine_chunks()
        if not is_native and pa.types.is_string(values.type):
            values = cast_texts(values, written)
        return file_columns.conform(values, field, file_columns.columns_like(written, str(index)))


def of_deleted(plan: FilePlan) -> FilePlan:
    """Return the plan of all rows of a file, also deleted ones."""
    return replace(plan, deletes=(), inlined_deletes=())
