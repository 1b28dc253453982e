"""Rows of a split: reads a data file, drops deleted rows, adds metadata columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.positions import bare, masked
from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats.iceberg.deletes.equality import DeletedRows, EqualityColumn, comparable, leaf
from snapshot_explorer.formats.iceberg.deletes.reading import DeleteReader
from snapshot_explorer.formats.iceberg.files.data_files import BATCH_ROWS, Rows, opened, read
from snapshot_explorer.formats.iceberg.metadata.types import Field, arrow_field
from snapshot_explorer.formats.iceberg.scan import metadata_columns
from snapshot_explorer.formats.iceberg.scan.metadata_columns import LINEAGE, METADATA_COLUMNS, POSITION
from snapshot_explorer.formats.iceberg.scan.plans import Context, Plan
from snapshot_explorer.model import Split
from snapshot_explorer.storage import Storage

_EQUALITY_BATCH_ROWS = 1 << 18
"""Rows that are looked up at once: some lookups number all deleted values each time."""


class RowReader:
    """Reads the rows of splits. Each delete file is read once, however many splits need it.

    Safe to use from several threads, and picklable.
    """

    def __init__(self, storage: Storage) -> None:
        """Bind to a table. Reads nothing."""
        self._storage = storage
        self._deletes = DeleteReader(storage)

    def __reduce__(self) -> tuple[type["RowReader"], tuple[Storage]]:
        return RowReader, (self._storage,)

    def read(self, split: Split, columns: Sequence[str], *, keep: Positions | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

        Args:
            split: A split of the table, maybe planned on another machine.
            columns: Names of columns of the version and of metadata columns; with none of them the batches hold rows
                without columns.
            keep: Positions, ascending: these rows of the file are read, whatever its deletes. None reads all but the
                deleted ones.

        Raises:
            InvalidArgumentError: A column is not in the version's schema.
            CorruptTableError: A file is missing or damaged; the message names it.
            UnsupportedFeatureError: A column is stored in a form that is not read; the message names it and the file.
        """
        plan = plan_of(split)
        fields = _fields(plan.context, columns)
        schema = pa.schema([arrow_field(field) for field in fields])
        lookups = [] if keep is not None else self._lookups(plan)
        deleted = NOTHING if keep is not None else self.positions(plan)
        wanted = _Wanted.of(fields, lookups)
        constants = {**plan.constants, **metadata_columns.constants(plan)}
        size = _EQUALITY_BATCH_ROWS if lookups else BATCH_ROWS
        with opened(self._storage, plan.file, plan.context.rules) as source:
            for rows in read(source, wanted.stored, constants, keep=keep, size=size):
                kept = _kept(rows, deleted, keep)
                for lookup in lookups:
                    found = lookup.rows.contains(wanted.keys(lookup, rows), plan.sequence_number)
                    if found.any():
                        kept = ~found if kept is None else kept & ~found
                batch = _batch(rows, wanted, plan, schema)
                if kept is None:
                    yield batch
                elif kept.any():
                    yield masked(batch, pa.array(kept))

    def positions(self, plan: Plan) -> Positions:
        """Return the deleted positions of a data file, ascending, without those of equality deletes."""
        return self._deletes.positions(plan.deletes, plan.path, plan.file.rows)

    def _lookups(self, plan: Plan) -> list["_Lookup"]:
        found = []
        for one in plan.deletes.equality:
            columns = [plan.context.equality[number] for number in one.ids]
            rows = self._deletes.deleted_rows(one, columns, plan.context.rules)
            found.append(_Lookup(columns=tuple(columns), rows=rows))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    """Deleted rows, and the columns by which they are looked up."""

    columns: tuple[EqualityColumn, ...]
    rows: DeletedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The columns that are read: requested ones, and those that deletes compare."""

    fields: tuple[Field, ...]
    """The requested columns in order."""
    stored: tuple[Field, ...]
    """The columns to read, each once."""

    @classmethod
    def of(cls, fields: Sequence[Field], lookups: Sequence[_Lookup]) -> "_Wanted":
        compared = [column.column for lookup in lookups for column in lookup.columns]
        stored = dict.fromkeys([*(field for field in fields if field != POSITION), *compared])
        return cls(fields=tuple(fields), stored=tuple(stored))

    def keys(self, lookup: _Lookup, rows: Rows) -> list[pa.Array]:
        """Return the comparable values of the columns of a lookup."""
        places = [self.stored.index(column.column) for column in lookup.columns]
        return [
            comparable(leaf(rows.columns[place], column.path))
            for place, column in zip(places, lookup.columns, strict=True)
        ]


def plan_of(split: Split) -> Plan:
    """Return the plan of a split.

    Raises:
        InvalidArgumentError: The split belongs to a table of another format.
    """
    if not isinstance(split.detail, Plan):
        raise InvalidArgumentError("The split does not belong to an Iceberg table. Use a split that plan() returned.")
    return split.detail


def _fields(context: Context, columns: Sequence[str]) -> list[Field]:
    """Return the requested columns."""
    known = {field.name: field for field in context.schema.fields}
    unknown = [name for name in columns if name not in known]
    hidden = {field.name: field for field in metadata_columns.metadata_fields(unknown, has_row_ids=context.has_row_ids)}
    for name in unknown:
        if name not in hidden:
            raise InvalidArgumentError(f"Unknown column {name!r}. Columns: {', '.join(known)}.")
    return [known.get(name) or hidden[name] for name in columns]


def _kept(rows: Rows, deleted: Positions, keep: Positions | None) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the rows to read by their position; None for all."""
    listed = deleted if keep is None else keep
    first, last = np.searchsorted(listed, (rows.start, rows.start + rows.count))
    if keep is None and first == last:
        return None
    kept = np.full(rows.count, keep is None)
    kept[listed[first:last] - rows.start] = keep is not None
    return kept


def _batch(rows: Rows, wanted: _Wanted, plan: Plan, schema: pa.Schema) -> pa.RecordBatch:
    """Return the requested columns of rows."""
    if not wanted.fields:
        return bare(rows.count)
    stored = dict(zip(wanted.stored, rows.columns, strict=True))
    arrays = [
        metadata_columns.values(field, stored.get(field), plan, rows.start, rows.count)
        if field in (POSITION, *LINEAGE) and field in METADATA_COLUMNS
        else stored[field]
        for field in wanted.fields
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
