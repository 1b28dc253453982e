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

_INSERTED, _UPDATE_BEFORE, _DELETED = "I", "-U", "D"
_JAVA_TYPES = {"int": "int", "long": "long", "float": "float", "double": "double", "boolean": "boolean"}

Sources = list[int]
"""For each column the log record that its value is taken from; -1 where the record does not have the column."""


@dataclass(slots=True)
class _Entry:
    """What the log files say about a key."""

    row: int
    """The log record; -1 for a delete."""
    ordering: object
    """The value that orders it."""
    java_type: str
    is_delete: bool
    """Whether the record is deleted."""
    sources: Sources | None
    """Where the values of the columns are, if they are merged column by column."""

    @property
    def is_default(self) -> bool:
        return self.ordering is None or (self.java_type == "int" and self.ordering == 0)

    @property
    def is_commit_time_delete(self) -> bool:
        """Whether it is a delete without an ordering value."""
        return self.is_delete and self.is_default


@dataclass(slots=True)
class SliceMerge:
    """Merges the log records of a slice."""

    rules: HudiMergeRules
    """How records are merged."""
    keys: RecordKeys
    fields: Sequence[HudiField]
    """The columns of the log records and of the base file."""
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _rows: pa.Table | None = None
    _by_column: bool = False
    _fillable: list[pa.Array | None] = field(default_factory=list)

    def add(self, items: Sequence[LogItem]) -> None:
        """Merge the contents of the log files' blocks, in order."""
        records = [item for item in items if isinstance(item, LogRecords)]
        self._by_column = self.rules.fill is not None or any(item.is_partial for item in records)
        schema = pa.schema([pa.field(part.name, arrow_type(part.type)) for part in self.fields])
        tables = [pa.Table.from_batches([item.batch]).cast(schema) for item in records]
        self._rows = pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()
        self._fillable = [self._fillable_values(part, self._rows.column(part.name)) for part in self.fields]
        start = 0
        for item in items:
            if isinstance(item, LogRecords):
                self._add_records(item, start)
                start += item.batch.num_rows
            else:
                self._add_deletes(item)

    def _add_records(self, records: LogRecords, start: int) -> None:
        batch = records.batch
        orderings, java_type = self._orderings(batch)
        operations = _values(batch, OPERATION)
        deletes = self._deletes(batch)
        own = [part.name in records.present or not records.is_partial for part in self.fields]
        is_by_time = self.rules.ordering == "commit time"
        for index, key in enumerate(keys_of(batch, self.keys).to_pylist()):
            if operations is not None and operations[index] == _UPDATE_BEFORE:
                continue
            row = start + index
            entry = _Entry(
                row=row,
                ordering=None if orderings is None else orderings[index],
                java_type=java_type,
                is_delete=deletes is not None and deletes[index],
                sources=[row if has else -1 for has in own] if self._by_column else None,
            )
            known = self._entries.get(key)
            if known is None:
                self._entries[key] = entry
            elif (
                is_by_time
                or known.is_commit_time_delete
                or entry.is_commit_time_delete
                or _not_less(entry.ordering, known.ordering)
            ):
                self._entries[key] = self._filled(entry, known)
            else:
                self._entries[key] = self._filled(known, entry)

    def _add_deletes(self, deleted: Sequence[DeletedRecord]) -> None:
        check_deletes(self.keys)
        for item in deleted:
            key = deleted_key(item.key, self.keys)
            entry = _Entry(-1, item.ordering, item.java_type, is_delete=True, sources=None)
            known = self._entries.get(key)
            if known is not None and self.rules.ordering == "event time":
                if known.is_commit_time_delete:
                    continue
                is_comparable = not entry.is_default and known.java_type == entry.java_type
                if is_comparable and not _not_less(entry.ordering, known.ordering):
                    continue
            self._entries[key] = entry

    def _filled(self, winner: _Entry, loser: _Entry) -> _Entry:
        """Return a record with the columns of another that it does not have, or that have their default."""
        if winner.sources is None or loser.sources is None or winner.is_delete or loser.is_delete:
            return winner
        winner.sources = [
            other if mine < 0 or (other >= 0 and self._is_fillable(column, mine)) else mine
            for column, (mine, other) in enumerate(zip(winner.sources, loser.sources, strict=True))
        ]
        return winner

    def _is_fillable(self, column: int, row: int) -> bool:
        values = self._fillable[column]
        return values is not None and bool(values[row].as_py())

    def _fillable_values(self, part: HudiField, values: pa.ChunkedArray) -> pa.Array | None:
        """Return which values of a column a losing record replaces; None if it replaces none."""
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

    def _deletes(self, batch: pa.RecordBatch) -> list[bool] | None:
        masks = []
        if IS_DELETED in batch.schema.names and pa.types.is_boolean(batch.schema.field(IS_DELETED).type):
            masks.append(batch.column(IS_DELETED))
        if OPERATION in batch.schema.names:
            masks.append(pc.equal(batch.column(OPERATION), _DELETED))
        if self.rules.delete_field in batch.schema.names and self.rules.delete_marker:
            texts = pa.array(
                [
                    None if value is None else _java_text(value)
                    for value in _values(batch, self.rules.delete_field) or ()
                ],
                pa.string(),
            )
            masks.append(pc.equal(texts, self.rules.delete_marker))
        if not masks:
            return None
        any_of = pc.fill_null(masks[0], False)  # noqa: FBT003 - pyarrow's
        for mask in masks[1:]:
            any_of = pc.or_(any_of, pc.fill_null(mask, False))  # noqa: FBT003 - pyarrow's
        return list(any_of.to_pylist())

    def merged(self, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the slice: those of the base file, updated, then the inserted ones. In no order."""
        keys = list(self._entries)
        entries = list(self._entries.values())
        value_set = pa.array(keys, pa.string())
        is_matched = np.zeros(len(entries), np.bool_)
        for batch in base:
            indices = pc.index_in(keys_of(batch, self.keys), value_set=value_set, skip_nulls=True)
            hits = np.flatnonzero(indices.is_valid().to_numpy(zero_copy_only=False))
            if not len(hits):
                yield batch
                continue
            matched = indices.take(pa.array(hits)).to_numpy(zero_copy_only=False).astype(np.int64)
            is_matched[matched] = True
            yield from self._updated(batch, hits, [entries[index] for index in matched.tolist()])
        inserted = [entry for index, entry in enumerate(entries) if not is_matched[index] and not entry.is_delete]
        if inserted:
            yield self._taken([self._columns_of(entry) for entry in inserted], None)

    def _updated(
        self, batch: pa.RecordBatch, hits: npt.NDArray[np.int64], entries: Sequence[_Entry]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch of the base file, some of which meet an entry."""
        stays = np.ones(batch.num_rows, np.bool_)
        base_first = 0 if self._rows is None else self._rows.num_rows
        some = batch.take(pa.array(hits))
        orderings, _ = self._orderings(some)
        fillable = (
            [self._fillable_values(part, pa.chunked_array([some.column(part.name)])) for part in self.fields]
            if self._by_column
            else []
        )
        rows: list[Sources] = []
        for index, entry in enumerate(entries):
            ordering = None if orderings is None else orderings[index]
            wins = (
                self.rules.ordering == "commit time"
                or entry.is_commit_time_delete
                or _not_less(entry.ordering, ordering)
            )
            if not wins and (entry.is_delete or not self._by_column):
                continue
            if wins and entry.is_delete:
                stays[hits[index]] = False
                continue
            sources = self._columns_of(entry)
            if self._by_column:
                own = base_first + index
                sources = [
                    self._chosen(column, source, own, fillable[column], index, wins=wins)
                    for column, source in enumerate(sources)
                ]
            stays[hits[index]] = False
            rows.append(sources)
        if not stays.all():
            batch = batch.filter(pa.array(stays))
        if batch.num_rows:
            yield batch
        if rows:
            yield self._taken(rows, some)

    def _chosen(self, column: int, source: int, own: int, fillable: pa.Array | None, index: int, *, wins: bool) -> int:
        """Return where the value of a column is: in the log record, or in the row of the base file."""
        if wins:
            return own if source < 0 or self._is_fillable(column, source) else source
        return source if source >= 0 and fillable is not None and fillable[index].as_py() else own

    def _columns_of(self, entry: _Entry) -> Sources:
        return entry.sources if entry.sources is not None else [entry.row] * len(self.fields)

    def _taken(self, rows: Sequence[Sources], base: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return rows whose values are those of log records and of rows of the base file, which count on from them."""
        if self._rows is None:
            return pa.RecordBatch.from_arrays([], names=[])
        indices = np.array(rows, np.int64).reshape(len(rows), len(self.fields))
        arrays = []
        for column, part in enumerate(self.fields):
            values = _flat(self._rows.column(part.name))
            if base is not None and self._by_column:
                values = pa.concat_arrays([values, base.column(part.name).cast(values.type)])
            chosen = indices[:, column]
            arrays.append(values.take(pa.array(chosen, mask=chosen < 0)))
        return pa.RecordBatch.from_arrays(arrays, names=[part.name for part in self.fields])


def _flat(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.nulls(0, values.type)])


def _values(batch: pa.RecordBatch, name: str) -> list[object] | None:
    return list(batch.column(name).to_pylist()) if name in batch.schema.names else None


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
