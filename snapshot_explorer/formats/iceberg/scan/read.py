"""Rows of a split: reads a data file, drops deleted rows, adds metadata columns."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import under
from snapshot_explorer.arrow.positions import filter_rows, kept_rows, mask_of, rows_without_columns
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.formats.iceberg.deletes.equality import DeletedRows, EqualityColumn, comparable_values, leaf
from snapshot_explorer.formats.iceberg.deletes.reading import DeleteReader
from snapshot_explorer.formats.iceberg.files.data_files import Layouts, Rows, open_data_file, read
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, arrow_field
from snapshot_explorer.formats.iceberg.scan import metadata_columns
from snapshot_explorer.formats.iceberg.scan.metadata_columns import LINEAGE, POSITION
from snapshot_explorer.formats.iceberg.scan.plans import Context, IcebergPlan
from snapshot_explorer.formats.split_requests import detail_of, named_fields
from snapshot_explorer.storage import Storage

Mask = npt.NDArray[np.bool_]

_LINEAGE_IDS = frozenset(field.id for field in LINEAGE)
_LINEAGE_NAMES = frozenset(field.name for field in LINEAGE)


class RowReader:
    """Reads the rows of splits. Each delete file is read once, however many splits need it.

    Safe to use from several threads, and picklable.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._deletes = DeleteReader(storage)
        self._layouts = Layouts()
        self._last: tuple[Context, tuple[str, ...], _ReadColumns] | None = None

    def __reduce__(self) -> tuple[type["RowReader"], tuple[Storage]]:
        return RowReader, (self._storage,)

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

        Args:
            split: A split of the table, maybe planned on another machine.
            columns: Names of columns of the version and of metadata columns; without any, the batches contain rows
                without columns.
            predicate: Row groups in which no row matches it may be left out.
        """
        plan = plan_of(split)
        last = self._last
        if last is None or last[0] is not plan.context or last[1] != tuple(columns):
            # Of many small files this costs as much as a column of each.
            read_columns = _ReadColumns.of(fields_of(plan.context, columns))
            last = self._last = plan.context, tuple(columns), read_columns
        yield from self._rows(plan, last[2], None, predicate)

    def rows(
        self, plan: IcebergPlan, fields: Sequence[IcebergField], *, keep: Positions | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data file.

        Args:
            fields: Columns of the version and metadata columns.
            keep: Positions, ascending: these rows of the file are read, even if deleted. None reads all rows that are
                not deleted.
        """
        yield from self._rows(plan, _ReadColumns.of(fields), keep)

    def _rows(
        self,
        plan: IcebergPlan,
        read_columns: "_ReadColumns",
        keep: Positions | None,
        predicate: Predicate | None = None,
    ) -> Iterator[pa.RecordBatch]:
        live = None if keep is not None else self._live(plan)
        if live is not None and live.lookups:
            read_columns = _ReadColumns.of(read_columns.fields, live.lookups)
        for rows in self._stored_rows(plan, read_columns, keep, predicate):
            kept = (
                kept_rows(keep, rows.start, rows.count, are_kept=True)
                if keep is not None
                else live.mask(rows, read_columns)
                if live is not None
                else None
            )
            yield from _masked(_batch(rows, read_columns, plan), kept)

    def rows_deleted(
        self, before: IcebergPlan, after: IcebergPlan, fields: Sequence[IcebergField]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data file that one set of deletes keeps and another removes.

        Args:
            before: The file and the deletes that keep the rows.
            after: The same file and the deletes that remove them.
            fields: Columns of the version and metadata columns.
        """
        live, later = self._live(before), self._live(after)
        if not live.lookups and not later.lookups:
            gone = np.setdiff1d(later.deleted, live.deleted, assume_unique=True)
            if len(gone):
                yield from self.rows(before, fields, keep=gone)
            return
        read_columns = _ReadColumns.of(fields, (*live.lookups, *later.lookups))
        for rows in self._stored_rows(before, read_columns, None):
            kept, left = live.mask(rows, read_columns), later.mask(rows, read_columns)
            if left is not None:
                yield from _masked(_batch(rows, read_columns, before), ~left if kept is None else kept & ~left)

    def positions(self, plan: IcebergPlan) -> Positions:
        """Return the positions that position deletes and vectors delete in a data file, ascending."""
        return self._deletes.positions(plan.deletes, plan.path, plan.file.rows)

    def _stored_rows(
        self,
        plan: IcebergPlan,
        read_columns: "_ReadColumns",
        keep: Positions | None,
        predicate: Predicate | None = None,
    ) -> Iterator[Rows]:
        constants = {**plan.constants, **metadata_columns.constants(plan, read_columns.fields)}
        with open_data_file(self._storage, plan.file, plan.context.rules, layouts=self._layouts) as source:
            on_columns = None if predicate is None else predicate.on(read_columns.names)
            yield from read(source, read_columns.stored, constants, keep=keep, predicate=on_columns, size=None)

    def _live(self, plan: IcebergPlan) -> "_Live":
        if not plan.deletes.equality:  # no thread for a second read
            return _Live(deleted=self.positions(plan), lookups=(), sequence_number=plan.sequence_number)
        columns = [tuple(plan.context.equality[number] for number in item.ids) for item in plan.deletes.equality]
        reads = [
            partial(self._deletes.deleted_rows, item, of_set, plan.context.rules)
            for item, of_set in zip(plan.deletes.equality, columns, strict=True)
        ]
        deleted, positions = self._storage.together(
            lambda: self._storage.together(*reads), partial(self.positions, plan)
        )
        lookups = [_Lookup(columns=of_set, rows=rows) for of_set, rows in zip(columns, deleted, strict=True)]
        return _Live(deleted=positions, lookups=tuple(lookups), sequence_number=plan.sequence_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    columns: tuple[EqualityColumn, ...]
    rows: DeletedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    deleted: Positions
    """Positions of deleted rows, ascending."""
    lookups: tuple[_Lookup, ...]
    sequence_number: int

    def mask(self, rows: Rows, read_columns: "_ReadColumns") -> Mask | None:
        kept: Mask | None = None
        if len(self.deleted):
            own = kept_rows(self.deleted, rows.start, rows.count)
            kept = None if own.all() else own
        for lookup in self.lookups:
            is_deleted = lookup.rows.contains(read_columns.keys(lookup, rows), self.sequence_number)
            if is_deleted.any():
                kept = ~is_deleted if kept is None else kept & ~is_deleted
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadColumns:
    """The columns to read: the requested columns, and the columns that deletes compare."""

    fields: tuple[IcebergField, ...]
    stored: tuple[IcebergField, ...]
    schema: pa.Schema
    are_stored: bool
    """Whether every requested column is stored in the files, and none has to be computed."""
    names: frozenset[str]
    """The columns whose values are stored in the files, unless they are constant in a file."""

    @classmethod
    def of(cls, fields: Sequence[IcebergField], lookups: Sequence[_Lookup] = ()) -> "_ReadColumns":
        stored = tuple(field for field in fields if field.id != POSITION.id)
        if lookups:
            compared = [column.column for lookup in lookups for column in lookup.columns]
            stored = tuple(dict.fromkeys([*stored, *compared]))
        return cls(
            fields=tuple(fields),
            stored=stored,
            schema=pa.schema([arrow_field(field) for field in fields]),
            are_stored=stored == tuple(fields) and not any(field.id in _LINEAGE_IDS for field in fields),
            # A dropped column that an equality delete compares may have the name of a newer one.
            names=frozenset(
                name
                for name, count in Counter(field.name for field in stored).items()
                if count == 1 and name not in _LINEAGE_NAMES
            ),
        )

    def keys(self, lookup: _Lookup, rows: Rows) -> list[pa.Array]:
        indices = [self.stored.index(column.column) for column in lookup.columns]
        return [
            comparable_values(leaf(rows.columns[index], column.path))
            for index, column in zip(indices, lookup.columns, strict=True)
        ]


def plan_of(split: Split) -> IcebergPlan:
    """Return the plan of a split."""
    return detail_of(split, IcebergPlan, "Iceberg")


def fields_of(context: Context, columns: Sequence[str]) -> list[IcebergField]:
    """Return the requested columns."""
    own = {field.name for field in context.schema.fields}
    unknown = [name for name in columns if name not in own]
    hidden = metadata_columns.metadata_fields(unknown, has_row_ids=context.has_row_ids)
    return named_fields(columns, context.schema.fields, hidden)


def _masked(batch: pa.RecordBatch, kept: Mask | None) -> Iterator[pa.RecordBatch]:
    if kept is None:
        yield batch
    elif kept.any():
        yield filter_rows(batch, mask_of(kept))


def _batch(rows: Rows, read_columns: _ReadColumns, plan: IcebergPlan) -> pa.RecordBatch:
    if not read_columns.fields:
        return rows_without_columns(rows.count)
    if read_columns.are_stored and isinstance(rows.values, pa.RecordBatch):
        return under(read_columns.schema, rows.values)
    stored = iter(rows.columns)
    arrays = []
    for field in read_columns.fields:
        own = None if field.id == POSITION.id else next(stored)
        is_computed = own is None or field.id in _LINEAGE_IDS
        arrays.append(metadata_columns.values(field, own, plan, rows.start, rows.count) if is_computed else own)
    return pa.RecordBatch.from_arrays(arrays, schema=read_columns.schema)
