"""Changed rows: the changes of one commit, or the difference of two versions.

Source: iceberg docs, "Procedures" (create_changelog_view); iceberg BaseIncrementalChangelogScan,
RemoveCarryoverIterator.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.nesting import plain
from snapshot_explorer.arrow.positions import rows_without_columns
from snapshot_explorer.formats.iceberg.deletes.equality import comparable_values
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, arrow_field
from snapshot_explorer.formats.iceberg.scan.metadata_columns import ROW_ID
from snapshot_explorer.formats.iceberg.scan.plans import Context, IcebergPlan
from snapshot_explorer.formats.iceberg.scan.read import RowReader, fields_of

ROW_KIND = "rowkind"
HIDDEN = pa.schema(
    [
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_change_ordinal", pa.int32(), nullable=False),
        pa.field("_commit_snapshot_id", pa.int64(), nullable=False),
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""The change columns of Iceberg's changelog, and the version and time of the commit."""
_FIELDS = {field.name: field for field in [pa.field(ROW_KIND, pa.string(), nullable=False), *HIDDEN]}
_DELETED, _BEFORE, _AFTER, _INSERTED = range(4)
_KINDS = ("-D", "-U", "+U", "+I")
_WORDS = ("DELETE", "UPDATE_BEFORE", "UPDATE_AFTER", "INSERT")
"""The words of Iceberg's changelog, in the order of `_KINDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of a data file. Picklable."""

    live: IcebergPlan
    """The file and the deletes that keep the rows."""
    deleted: IcebergPlan | None = None
    """The same file and the deletes that remove the rows; None for all rows that `live` keeps."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal where the same rows are read."""
        return self.live.identity, None if self.deleted is None else self.deleted.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergEvents:
    """Rows that a commit removed and added. `Split.detail`; picklable.

    A row that is on both sides was only rewritten: it is not a change.
    """

    removed: tuple[Part, ...]
    added: tuple[Part, ...]
    ordinal: int
    """The index of the commit among the commits of the range that changed rows, from 0."""
    snapshot_id: int
    version: int
    committed_at: datetime

    @property
    def context(self) -> Context:
        """The context that all files share."""
        return (*self.removed, *self.added)[0].live.context

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal where the same rows are read."""
        sides = (tuple(part.identity for part in parts) for parts in (self.removed, self.added))
        return *sides, self.version


def read_events(reader: RowReader, events: IcebergEvents, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows with these columns, in this order: columns of the schema, `rowkind` and columns of HIDDEN.

    Holds both sides of a commit that removed and added rows in memory. Rows of tables with row ids that are on both
    sides with other values are updates: -U, followed by +U.
    """
    known = {field.name for field in events.context.schema.fields}
    added = [name for name in columns if name not in known and name in _FIELDS]
    fields = fields_of(events.context, [name for name in columns if name not in added])
    for batch, kinds in _changes(reader, events, fields):
        if not columns:
            yield batch
            continue
        arrays = dict(zip((field.name for field in fields), batch.columns, strict=False))
        arrays |= {name: _column(name, events, kinds) for name in added}
        schema = [_FIELDS[name] if name in added else batch.schema.field(name) for name in columns]
        yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=pa.schema(schema))


def _changes(
    reader: RowReader, events: IcebergEvents, fields: Sequence[IcebergField]
) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int8]]]:
    if events.removed and events.added:
        yield from _net_changes(reader, events, fields)
        return
    change_code = _DELETED if events.removed else _INSERTED
    for batch in _rows(reader, events.removed or events.added, fields):
        yield batch, np.full(batch.num_rows, change_code, np.int8)


def read_part(reader: RowReader, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part with these columns, in this order; errors as `RowReader.read`."""
    return _rows(reader, [part], fields_of(part.live.context, columns))


def _rows(reader: RowReader, parts: Sequence[Part], fields: Sequence[IcebergField]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        if part.deleted is None:
            yield from reader.rows(part.live, fields)
        else:
            yield from reader.rows_deleted(part.live, part.deleted, fields)


def _net_changes(
    reader: RowReader, events: IcebergEvents, fields: Sequence[IcebergField]
) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int8]]]:
    """Yield the rows whose count is greater on one side, each as many times as the counts differ."""
    columns = events.context.schema.fields
    every = [*columns, ROW_ID] if events.context.has_row_ids else [*columns]
    # Two columns of the table may have the names of metadata columns: columns are found by position.
    schema = pa.schema([arrow_field(field).with_name(str(index)) for index, field in enumerate(every)])
    sides = [
        pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in _rows(reader, parts, every)], schema
        )
        for parts in (events.removed, events.added)
    ]
    both = pa.concat_tables(sides)
    is_added = np.arange(len(both)) >= len(sides[0])
    codes = row_codes(both.columns[: len(columns)], len(both))
    left = np.flatnonzero(_surplus(codes, is_added))
    kinds = np.where(is_added[left], _INSERTED, _DELETED).astype(np.int8)
    order = np.argsort(kinds, kind="stable")
    if events.context.has_row_ids and len(left):
        ids = both.column(len(columns)).take(pa.array(left))
        order = _updates(np.asarray(ids.fill_null(-1).to_numpy(), np.int64), kinds)
    indices = {field.id: index for index, field in enumerate(every)}
    rows = both.take(pa.array(left[order]))
    target = pa.schema([arrow_field(field) for field in fields])
    arrays = [rows.column(indices[field.id]).combine_chunks() for field in fields]
    kinds = kinds[order]
    if len(kinds):
        yield pa.RecordBatch.from_arrays(arrays, schema=target) if fields else rows_without_columns(len(kinds)), kinds


def _surplus(codes: npt.NDArray[np.int64], is_added: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the rows that remain if each row cancels an equal row of the other side."""
    count = int(codes.max(initial=-1)) + 1
    both = np.minimum(np.bincount(codes[is_added], minlength=count), np.bincount(codes[~is_added], minlength=count))
    order = np.lexsort([is_added, codes])
    groups = codes[order] * 2 + is_added[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(groups)), np.bool_), groups[1:] != groups[:-1]]))
    ranks = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    result = np.zeros(len(codes), np.bool_)
    result[order] = ranks >= both[codes[order]]
    return result


def _updates(ids: npt.NDArray[np.int64], kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Mark rows whose id is on both sides as updates; return the order: deletes, pairs of updates, inserts.

    Args:
        ids: The id of each row; -1 without one.
        kinds: Their kinds, which are changed.
    """
    sides = [ids[(kinds == change_code) & (ids >= 0)] for change_code in (_DELETED, _INSERTED)]
    shared = np.intersect1d(*sides)
    is_update = np.isin(ids, shared) & (ids >= 0)
    kinds[is_update] = np.where(kinds[is_update] == _DELETED, _BEFORE, _AFTER)
    group = np.where(is_update, _BEFORE, kinds)
    return np.lexsort([kinds, np.where(is_update, ids, 0), group])


def _column(name: str, events: IcebergEvents, kinds: npt.NDArray[np.int8]) -> pa.Array:
    if name in (ROW_KIND, "_change_type"):
        return pa.array(_KINDS if name == ROW_KIND else _WORDS).take(pa.array(kinds))
    values = {
        "_change_ordinal": events.ordinal,
        "_commit_snapshot_id": events.snapshot_id,
        "_commit_version": events.version,
        "_commit_timestamp": events.committed_at,
    }
    return pa.repeat(pa.scalar(values[name], _FIELDS[name].type), len(kinds))


Codes = npt.NDArray[np.int64]


def row_codes(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> Codes:
    """Return a number per row, equal for rows that are equal in all columns.

    Nulls are equal, and so are all NaN; 0.0 and -0.0 differ. Entries of maps have no order.
    """
    codes = np.zeros(rows, np.int64)
    for column in columns:
        codes = _pair(codes, _codes(plain(single_chunk(column))))
    return codes


def _pair(left: Codes, right: Codes) -> Codes:
    """Return a number per pair, from 0 on."""
    pairs = left * (int(right.max(initial=0)) + 1) + right
    codes: Codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes


def _codes(values: pa.Array) -> Codes:
    """Return a number per value, from 0 up to the number of values, so that pairs of numbers fit 64 bits."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64)
    if isinstance(values, pa.StructArray):
        # flatten() makes the fields of a null struct null, whatever is stored there.
        return row_codes([values.is_valid(), *values.flatten()], len(values))
    if isinstance(values, pa.MapArray):  # which is a list, too
        return _of_maps(values)
    if isinstance(values, pa.ListArray):
        return _of_lists(values, _codes(plain(values.flatten())))
    encoded = comparable_values(values).dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _lengths(values: pa.ListArray | pa.MapArray) -> Codes:
    lengths = np.diff(np.asarray(values.offsets.to_numpy(), np.int64))
    return np.where(np.asarray(values.is_valid()), lengths, 0)


def _of_lists(values: pa.Array, items: Codes) -> Codes:
    """Return a number per list: lists are compared as the bytes of their items' numbers."""
    ends = 8 * np.cumsum(np.concatenate([np.zeros(1, np.int64), _lengths(values)]))
    valid = (
        None if not values.null_count else pa.py_buffer(np.packbits(np.asarray(values.is_valid()), bitorder="little"))
    )
    whole = pa.Array.from_buffers(
        pa.large_binary(), len(values), [valid, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(items))]
    )
    encoded = whole.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _of_maps(values: pa.MapArray) -> Codes:
    lengths = _lengths(values)
    offsets = np.asarray(values.offsets.to_numpy(), np.int64)[:-1]
    owners = np.repeat(np.arange(len(values)), lengths)
    firsts = np.cumsum(lengths) - lengths
    indices = pa.array(np.repeat(offsets - firsts, lengths) + np.arange(int(lengths.sum())))
    keys, items = _codes(plain(values.keys.take(indices))), _codes(plain(values.items.take(indices)))
    order = np.lexsort([keys, owners])
    return _of_lists(values, _pair(keys, items)[order])
