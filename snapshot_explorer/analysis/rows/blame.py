"""The changes of rows: every version that inserted, updated or deleted rows of a condition, before and after."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns, check_names
from snapshot_explorer.analysis.diff.changed_rows import changes_schema, compare_rows
from snapshot_explorer.analysis.diff.changed_splits import differing_splits
from snapshot_explorer.analysis.diff.diff import check_not_null, not_unique_error
from snapshot_explorer.analysis.diff.diff_plan import predicate_of
from snapshot_explorer.analysis.diff.row_matching import HashedRows, find_repeated, row_hashes
from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions, affected_versions
from snapshot_explorer.analysis.row_history.history_columns import HistoryColumns
from snapshot_explorer.analysis.rows.blame_result import Blame, BlameReading, BlameRequest, ChangesAt, blame_of
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Gap, Split
from snapshot_explorer.engines import local
from snapshot_explorer.engines.conditions import Condition, parse_condition
from snapshot_explorer.engines.scan import missing_files
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.history import History

_AT_ONCE = 8
"""Versions of a remote table that are planned and compared at the same time."""


def blame(source: History, request: BlameRequest, between: Sequence[int] | None = None) -> Blame:
    """Return the changes of rows; see `Table.blame`.

    Args:
        between: Consecutive versions; None for all.
    """
    versions = source.versions_among(between)
    reference = source.format.version(versions[-1])
    schema = reference.arrow_schema
    predicate = None if request.where is None else parse_condition(request.where, schema)
    names = check_names(request.columns, schema.names, "columns") or tuple(schema.names)
    keyed = check_names(request.key, schema.names, "key")
    chosen_key = tuple(reference.schema.primary_keys) if keyed is None else keyed
    names = tuple(name for name in schema.names if name in {*names, *chosen_key})
    affected = affected_versions(source.format, predicate, versions[-1], last=versions[-1])
    reader = _Reader(source, reference, names, predicate, chosen_key)
    changes = reader.changes(affected, versions)
    return blame_of(
        source, affected, changes, versions=versions, reading=reader.reading, request=request, key=chosen_key
    )


@dataclass(frozen=True, slots=True)
class _State:
    version: TableVersion
    aligned: AlignedColumns
    """The mapping of its columns to the reference version's columns."""
    splits: Sequence[Split]


class _Reader:
    """Compares versions in the rows of a condition, each with the last earlier version that can have other rows."""

    def __init__(
        self,
        source: History,
        reference: TableVersion,
        columns: Sequence[str],
        where: Condition | None,
        key: Sequence[str],
    ) -> None:
        self._source = source
        self._reference = reference
        self._columns = tuple(columns)
        self._needed = (*columns, *sorted(where.columns - set(columns))) if where else self._columns
        self._where = where
        self._key = tuple(key)
        self.reading = BlameReading()

    def changes(self, affected: AffectedVersions, versions: Sequence[int]) -> list[ChangesAt]:
        """Return the changed rows of each version that changed some; see `changed_rows.changes_schema`.

        All rows of the first version that can be read are returned as inserted. If nothing changed, the last version is
        returned without rows.
        """
        known = affected.lifetimes.versions
        begin = int(np.searchsorted(np.asarray(known, np.int64), versions[0]))
        if begin == len(known):
            raise self._source.vanished()
        indices = sorted({begin, *(index for index in affected.indices if index > begin)})
        starts = [start for start, _ in affected.schemas]
        ends = known[begin], known[indices[-1]]
        self._history_columns = HistoryColumns(self._source, self._reference, self._needed, starts, ends)
        if self._where is not None:
            self._where = parse_condition(self._where.text, self._history_columns.schema)
        result: list[ChangesAt] = []
        is_first = True
        gaps_before: list[Gap] = []
        unreadable: list[int] = []
        with step("Comparing versions", total=len(indices)) as comparing:
            comparisons = self._comparisons([known[index] for index in indices])
            for index, changes in zip(indices, comparisons, strict=True):
                number = known[index]
                comparing.advance()
                gaps = self._source.gaps(known[max(begin, index - 1) : index + 1])
                if isinstance(changes, Exception):
                    self.reading.unreadable[number] = self._reason(number, changes)
                    gaps_before, unreadable = [*gaps_before, *gaps], [*unreadable, number]
                    continue
                self.reading.compared += 1
                if len(changes):
                    gaps_before += gaps
                    skipped = tuple(gaps_before), tuple(unreadable)
                    result.append(ChangesAt(number, changes, *skipped, is_first=is_first))
                is_first, gaps_before, unreadable = False, [], []
        nothing = changes_schema(self._compared_schema()).empty_table()
        return result or [ChangesAt(versions[-1], nothing, (), (), is_first=False)]

    def _compared_schema(self) -> pa.Schema:
        return pa.schema([self._history_columns.schema.field(name) for name in self._columns])

    def _reason(self, number: int, error: Exception) -> str:
        """Return the end of a sentence that a version cannot be read: the same for all versions without data files."""
        with suppress(*UNREADABLE):
            version = self._source.format.version(number)
            if missing_files(version.storage, version.plan(None).splits):
                return " because data files are gone"
        return Message(": ", without_period(Message(error)))

    def _comparisons(self, numbers: Sequence[int]) -> Iterator[pa.Table | Exception]:
        """Yield the changed rows of each version since the last readable one, or why the version cannot be read.

        On remote storage several versions are compared at a time, each with the version before it. Versions after an
        unreadable one are compared again.
        """
        storage = self._source.format.storage
        at_once = 1 if storage.is_local else _AT_ONCE
        before: _State | None = None
        for begin in range(0, len(numbers), at_once):
            batch = numbers[begin : begin + at_once]
            states = storage.together(*(partial(self._state_or_error, number) for number in batch))
            pairs = list(zip([before, *states[:-1]], states, strict=True))
            results = storage.together(*(partial(self._compared_or_error, *pair) for pair in pairs))
            for (assumed, after), changes in zip(pairs, results, strict=True):
                result = changes if assumed is before else self._compared_or_error(before, after)
                yield result
                if not isinstance(result, Exception) and not isinstance(after, Exception):
                    before = after

    def _state_or_error(self, number: int) -> _State | Exception:
        try:
            return self._state(number)
        except UNREADABLE as error:
            return error

    def _compared_or_error(self, before: _State | Exception | None, after: _State | Exception) -> pa.Table | Exception:
        if isinstance(after, Exception):
            return after
        if isinstance(before, Exception):
            return before
        try:
            return self._compared(before, after)
        except UNREADABLE as error:
            return error

    def _state(self, number: int) -> _State:
        version = self._source.format.version(number)
        columns = self._history_columns.of(version)
        predicate = predicate_of(self._where, columns, version, of_a=True)
        return _State(version, columns, version.plan(predicate).splits)

    def _compared(self, before: _State | None, after: _State) -> pa.Table:
        """Return the rows that differ from one version to a later one; all rows of the later one without the other."""
        old: Sequence[Split] = ()
        new = after.splits
        if before is not None:
            changed = differing_splits(before.splits, after.splits, before.version, after.version)
            old, new = changed.before, changed.after
        left, right = after.version.storage.together(
            lambda: self._rows(before or after, old), lambda: self._rows(after, new)
        )
        if self._key:
            self._check_key(left, before or after)
            self._check_key(right, after)
        return compare_rows(left, right, self._key)

    def _rows(self, state: _State, splits: Sequence[Split]) -> HashedRows:
        """Return the rows of splits that pass the condition, in the columns that are compared, and their hashes."""
        schema = self._compared_schema()
        parts: list[tuple[tuple[int, int], pa.RecordBatch]] = []

        def consume(order: tuple[int, int], batch: pa.RecordBatch) -> None:
            rows = state.aligned.rows(batch, self._needed, of_a=True)
            if self._where is not None:
                rows = rows.filter(self._where.mask(pa.Table.from_batches([rows])))
            parts.append((order, rows.select(list(self._columns))))

        self.reading.files |= {path for split in splits for path in split.files}
        names = state.aligned.names_in(self._needed, of_a=True)
        local.for_each_batch(state.version, splits, names, consume)
        batches = [batch for _, batch in sorted(parts, key=lambda part: part[0])]
        table = pa.Table.from_batches(batches, schema).combine_chunks()
        hashed = [single_chunk(table[name]) for name in self._key or self._columns]
        return HashedRows(rows=table, hashes=row_hashes(hashed, len(table)))

    def _check_key(self, rows: HashedRows, state: _State) -> None:
        """Raise if the key does not identify the rows of a version that were read; Iceberg enforces none."""
        check_not_null(rows.rows, self._key, f"version {state.version.number}")
        index = find_repeated(rows, self._key)
        if index is not None:
            raise not_unique_error(rows.rows, index, self._key, f"version {state.version.number}")
