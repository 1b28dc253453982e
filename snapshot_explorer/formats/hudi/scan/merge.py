"""Merges the log records of a file slice by key, and then into the rows of its base file.

Source: hudi KeyBasedFileGroupRecordBuffer, BufferedRecordMergerFactory, DeltaMerger and FinalMerger.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.hudi.files.delete_blocks import DeletedRecord
from snapshot_explorer.formats.hudi.files.log_files import LogItem, LogRecords
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_type
from snapshot_explorer.formats.hudi.scan.merge_rules import HudiMergeRules
from snapshot_explorer.formats.hudi.scan.meta_columns import IS_DELETED, OPERATION
from snapshot_explorer.formats.hudi.scan.record_keys import RecordKeys, check_deletes, deleted_key, keys_of

_UPDATE_BEFORE, _DELETED = "-U", "D"
_JAVA_TYPES = {"int": "int", "long": "long", "float": "float", "double": "double", "boolean": "boolean"}

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Sources = list[int]
"""For each column the log record that its value is taken from; -1 where the record does not have the column."""


@dataclass(slots=True)
class _Entry:
    """The merged log records and deletes of a key."""

    row: int
    """The log record; -1 for a key of a delete block."""
    ordering: object
    """The value that orders it."""
    java_type: str
    is_delete: bool
    """Whether the record is deleted."""
    sources: Sources
    """For each column the source of its value, if values are merged column by column; otherwise empty."""

    @property
    def is_commit_time_delete(self) -> bool:
        """Whether it is a delete without an ordering value."""
        return self.is_delete and _is_default(self.ordering, self.java_type)


@dataclass(slots=True)
class _Entries:
    """Entries as columns: first an entry for each record and delete of the log files, then one for each key."""

    keys: pa.Array
    rows: Indices
    orderings: list[object]
    java_types: list[str]
    is_delete: Mask
    sources: Indices
    """A row for each entry and a column for each of the table's columns, if merged one by one; otherwise empty."""

    def entry(self, index: int) -> _Entry:
        return _Entry(
            int(self.rows[index]),
            self.orderings[index],
            self.java_types[index],
            bool(self.is_delete[index]),
            self.sources[index].tolist(),
        )

    def put(self, index: int, entry: _Entry) -> None:
        self.rows[index], self.is_delete[index], self.sources[index] = entry.row, entry.is_delete, entry.sources
        self.orderings[index], self.java_types[index] = entry.ordering, entry.java_type

    def at(self, indices: Indices, keys: pa.Array) -> "_Entries":
        """Return some of the entries, which have these keys."""
        positions = indices.tolist()
        return _Entries(
            keys,
            self.rows[indices],
            [self.orderings[index] for index in positions],
            [self.java_types[index] for index in positions],
            self.is_delete[indices],
            self.sources[indices],
        )


def _join(parts: Sequence[_Entries], columns: int) -> _Entries:
    return _Entries(
        pa.concat_arrays([part.keys for part in parts] or [pa.array([], pa.string())]),
        np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)]),
        [ordering for part in parts for ordering in part.orderings],
        [java_type for part in parts for java_type in part.java_types],
        np.concatenate([np.empty(0, np.bool_), *(part.is_delete for part in parts)]),
        np.concatenate([np.empty((0, columns), np.int64), *(part.sources for part in parts)]),
    )


@dataclass(slots=True)
class SliceMerge:
    """Merges the log records of a slice."""

    rules: HudiMergeRules
    """The rules by which records are merged."""
    keys: RecordKeys
    fields: Sequence[HudiField]
    """The columns of the log records and of the base file."""
    names: Sequence[str]
    """The columns that are returned."""
    _rows: pa.Table = field(init=False)
    _entries: _Entries = field(init=False)
    _by_column: bool = False
    _fillable: Sequence[Mask | None] = ()

    @property
    def _is_by_time(self) -> bool:
        return self.rules.ordering == "commit time"

    def add(self, items: Sequence[LogItem]) -> None:
        """Merge the contents of the log files' blocks, in order."""
        records = [item for item in items if isinstance(item, LogRecords)]
        self._by_column = self.rules.fill is not None or any(item.is_partial for item in records)
        schema = pa.schema([pa.field(part.name, arrow_type(part.type)) for part in self.fields])
        tables = [pa.Table.from_arrays(item.batch.columns, schema=schema) for item in records]
        self._rows = pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()
        self._fillable = [self._fillable_values(part, self._rows.column(part.name)) for part in self.fields]
        starts = iter(np.cumsum([0, *(item.batch.num_rows for item in records)]).tolist())
        parts = [
            self._of_records(item, next(starts)) if isinstance(item, LogRecords) else self._of_deletes(item)
            for item in items
        ]
        self._entries = self._by_key(_join(parts, len(self.fields) if self._by_column else 0))

    def _of_records(self, records: LogRecords, start: int) -> _Entries:
        batch = records.batch
        if OPERATION in batch.schema.names:
            is_before = pc.fill_null(pc.equal(batch.column(OPERATION), _UPDATE_BEFORE), False)  # noqa: FBT003 - pyarrow's
            chosen = np.flatnonzero(~is_before.to_numpy(zero_copy_only=False))
        else:
            chosen = np.arange(batch.num_rows)
        if len(chosen) < batch.num_rows:
            batch = batch.take(pa.array(chosen))
        rows = chosen + start
        orderings, java_type = self._orderings(batch)
        has = [part.name in records.present or not records.is_partial for part in self.fields]
        return _Entries(
            keys_of(batch, self.keys),
            rows,
            orderings or [None] * len(rows),
            [java_type] * len(rows),
            self._deletes(batch),
            np.where(has, rows[:, None], -1) if self._by_column else np.empty((len(rows), 0), np.int64),
        )

    def _of_deletes(self, deleted: Sequence[DeletedRecord]) -> _Entries:
        check_deletes(self.keys)
        return _Entries(
            pa.array([deleted_key(item.key, self.keys) for item in deleted], pa.string()),
            np.full(len(deleted), -1),
            [item.ordering for item in deleted],
            [item.java_type for item in deleted],
            np.ones(len(deleted), np.bool_),
            np.full((len(deleted), len(self.fields) if self._by_column else 0), -1),
        )

    def _by_key(self, entries: _Entries) -> _Entries:
        """Return one entry for each key: entries of the same key are merged in order."""
        encoded = entries.keys.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        number = len(encoded.dictionary)
        last = np.zeros(number, np.int64)
        last[codes] = np.arange(len(codes))  # of equal codes the last one counts
        merged = entries.at(last, encoded.dictionary)
        if number == len(codes) or (self._is_by_time and not self._by_column):
            return merged
        known: dict[int, _Entry] = {}
        for index in np.flatnonzero(np.bincount(codes)[codes] > 1).tolist():
            code, entry = int(codes[index]), entries.entry(index)
            known[code] = self._merged(known[code], entry) if code in known else entry
        for code, entry in known.items():
            merged.put(code, entry)
        return merged

    def _merged(self, known: _Entry, entry: _Entry) -> _Entry:
        """Return the merged entry of two entries of a key."""
        if entry.row < 0:
            is_comparable = known.java_type == entry.java_type and not _is_default(entry.ordering, entry.java_type)
            is_older = is_comparable and not _not_less(entry.ordering, known.ordering)
            return known if not self._is_by_time and (known.is_commit_time_delete or is_older) else entry
        is_newer = (
            self._is_by_time
            or known.is_commit_time_delete
            or entry.is_commit_time_delete
            or _not_less(entry.ordering, known.ordering)
        )
        return self._filled(entry, known) if is_newer else self._filled(known, entry)

    def _filled(self, winner: _Entry, loser: _Entry) -> _Entry:
        """Return a record whose missing or default columns are filled from another record."""
        if not self._by_column or winner.is_delete or loser.is_delete:
            return winner
        winner.sources = [
            other if mine < 0 or (other >= 0 and self._is_fillable(column, mine)) else mine
            for column, (mine, other) in enumerate(zip(winner.sources, loser.sources, strict=True))
        ]
        return winner

    def _is_fillable(self, column: int, row: int) -> bool:
        values = self._fillable[column]
        return values is not None and bool(values[row])

    def _fillable_values(self, part: HudiField, values: pa.ChunkedArray | pa.Array) -> Mask | None:
        """Return which values of a column a losing record replaces; None if it replaces none."""
        mask = self._fillable_mask(part, values)
        return None if mask is None else np.asarray(mask, np.bool_)

    def _fillable_mask(self, part: HudiField, values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | None:
        if self.rules.fill == "defaults":
            default = None if part.default is None else orjson.loads(part.default)
            is_null = pc.is_null(values)
            if default is None or isinstance(default, list | dict):
                return is_null
            try:
                equal = pc.equal(values, pa.scalar(default, values.type))
            except (pa.ArrowException, TypeError):
                return is_null
            return pc.fill_null(equal, False)  # noqa: FBT003 - pyarrow's
        if self.rules.fill == "unavailable" and part.type.root in ("string", "bytes") and not part.type.logical:
            marker = pa.scalar(self.rules.unavailable.encode(), pa.binary()).cast(values.type)
            return pc.fill_null(pc.equal(values, marker), False)  # noqa: FBT003 - pyarrow's
        return None

    def _orderings(self, batch: pa.RecordBatch) -> tuple[list[object] | None, str]:
        """Return the ordering value of each row, and its type in Java; None if rows have none."""
        by_name = {part.name: part for part in self.fields}
        parts = [by_name[name] for name in self.rules.ordering_fields if name in by_name]
        if self.rules.ordering == "commit time" or not parts:
            return None, ""
        columns = [_comparable(batch.column(part.name)) for part in parts]
        if len(columns) == 1:
            return columns[0], _JAVA_TYPES.get(parts[0].type.root, parts[0].type.logical or parts[0].type.root)
        return list(zip(*columns, strict=True)), "tuple"

    def _deletes(self, batch: pa.RecordBatch) -> Mask:
        masks = []
        if IS_DELETED in batch.schema.names and pa.types.is_boolean(batch.schema.field(IS_DELETED).type):
            masks.append(batch.column(IS_DELETED))
        if OPERATION in batch.schema.names:
            masks.append(pc.equal(batch.column(OPERATION), _DELETED))
        if self.rules.delete_field in batch.schema.names and self.rules.delete_marker:
            values = batch.column(self.rules.delete_field).to_pylist()
            texts = [None if value is None else _java_text(value) for value in values]
            masks.append(pc.equal(pa.array(texts, pa.string()), self.rules.delete_marker))
        deletes = np.zeros(batch.num_rows, np.bool_)
        for mask in masks:
            deletes |= pc.fill_null(mask, False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's
        return deletes

    def merge_into(self, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the slice: updated rows of the base file, then inserted rows. In no order."""
        entries = self._entries
        is_matched = np.zeros(len(entries.rows), np.bool_)
        for batch in base:
            indices = pc.index_in(keys_of(batch, self.keys), value_set=entries.keys, skip_nulls=True)
            hits = np.flatnonzero(indices.is_valid().to_numpy(zero_copy_only=False))
            if not len(hits):
                yield batch.select(self.names)
                continue
            matched = indices.drop_null().to_numpy().astype(np.int64)
            is_matched[matched] = True
            yield from self._updated(batch, hits, matched)
        inserted = np.flatnonzero(~is_matched & ~entries.is_delete)
        if len(inserted):
            yield self._take_rows(inserted, entries.sources[inserted], None)

    def _updated(self, batch: pa.RecordBatch, hits: Indices, matched: Indices) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch of the base file, merged with the entries of their keys."""
        wins = self._wins(batch, hits, matched)
        is_delete = self._entries.is_delete[matched]
        is_replaced = ~is_delete & (wins | self._by_column)
        stays = np.ones(batch.num_rows, np.bool_)
        stays[hits[is_replaced | (wins & is_delete)]] = False
        rest = batch.select(self.names)
        if not stays.all():
            rest = rest.filter(pa.array(stays))
        if rest.num_rows:
            yield rest
        if not is_replaced.any():
            return
        chosen = matched[is_replaced]
        if self._by_column:
            replaced = batch.take(pa.array(hits[is_replaced]))
            yield self._take_rows(chosen, self._sources(chosen, replaced, wins[is_replaced]), replaced)
        else:
            yield self._take_rows(chosen, self._entries.sources[chosen], None)

    def _wins(self, batch: pa.RecordBatch, hits: Indices, matched: Indices) -> Mask:
        """Return whether entries win against the rows of the base file with their keys."""
        ordering_fields = [name for name in self.rules.ordering_fields if name in batch.schema.names]
        if self._is_by_time or not ordering_fields:
            return np.ones(len(hits), np.bool_)
        entries = self._entries
        theirs, _ = self._orderings(batch.select(ordering_fields).take(pa.array(hits)))
        wins = [
            _not_less(entries.orderings[index], other)
            or (bool(entries.is_delete[index]) and _is_default(entries.orderings[index], entries.java_types[index]))
            for index, other in zip(matched.tolist(), theirs or (), strict=True)
        ]
        return np.array(wins, np.bool_)

    def _sources(self, entries: Indices, base: pa.RecordBatch, wins: Mask) -> Indices:
        """Return the row index of each column's value. Rows of the base file are numbered after the log records."""
        own = self._rows.num_rows + np.arange(len(entries))
        sources = self._entries.sources[entries]
        for column, part in enumerate(self.fields):
            source = sources[:, column]
            fills = is_lacking = source < 0
            in_log, in_base = self._fillable[column], self._fillable_values(part, base.column(part.name))
            if in_log is not None and len(in_log):
                fills = fills | in_log[source]
            sources[:, column] = np.where(
                np.where(wins, fills, is_lacking | (in_base is None or ~in_base)), own, source
            )
        return sources

    def _take_rows(self, entries: Indices, sources: Indices, base: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return rows with values of log records and of base file rows, which are numbered after the log records."""
        if not self._by_column:
            rows = self._rows.select(self.names).take(pa.array(self._entries.rows[entries]))
            return pa.RecordBatch.from_arrays([_flat(column) for column in rows.columns], names=list(self.names))
        columns = {part.name: column for column, part in enumerate(self.fields)}
        arrays = []
        for name in self.names:
            values = _flat(self._rows.column(name))
            if base is not None:
                values = pa.concat_arrays([values, base.column(name)])
            chosen = sources[:, columns[name]]
            arrays.append(values.take(pa.array(chosen, mask=chosen < 0)))
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))


def _flat(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.nulls(0, values.type)])


def _is_default(ordering: object, java_type: str) -> bool:
    """Return whether an ordering value is null or Java's Integer 0, which Hudi treats alike."""
    return ordering is None or (java_type == "int" and ordering == 0)


def _java_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _comparable(values: pa.Array) -> list[object]:
    """Return ordering values as delete blocks contain them: times in microseconds, dates in days."""
    if pa.types.is_timestamp(values.type):
        return list(values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64()).to_pylist())
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        return list(values.view(pa.int32()).to_pylist())
    if pa.types.is_time64(values.type):
        return list(values.view(pa.int64()).to_pylist())
    return list(values.to_pylist())


def _not_less(value: Any, other: Any) -> bool:
    """Return whether an ordering value is equal to another or greater. Null is less than every other value."""
    if isinstance(value, tuple) and isinstance(other, tuple):
        for mine, its in zip(value, other, strict=False):
            if mine != its:
                return _not_less(mine, its)
        return True
    if value is None or other is None:
        return other is None
    try:
        return bool(value >= other)
    except TypeError:
        return True  # after a change of the type, the later record wins
