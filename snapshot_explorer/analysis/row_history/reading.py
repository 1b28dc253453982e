"""The states of rows, from splits that are each read once: rows that files share over time are one state."""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.spilled_rows import SplitRows
from snapshot_explorer.analysis.row_history.continuation import (
    Continuations,
    Ints,
    Mask,
    RowStates,
    joined_states,
    states_of,
    states_schema,
    together,
)
from snapshot_explorer.arrow.roaring import NOTHING
from snapshot_explorer.core.errors import UNREADABLE, CorruptTableError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.engines import local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapshot_explorer.analysis.row_history.planning import SplitHistory, SplitState
    from snapshot_explorer.arrow.roaring import Positions
    from snapshot_explorer.engines.conditions import Condition

_BATCH_BYTES = 8 * 2**20
"""Decoded bytes of rows to which a condition is applied at once: an evaluation costs milliseconds."""
_LARGE_BYTES = 2**20
"""Decoded bytes of a batch that is processed alone if there is no condition: joining it to others would copy it."""
_SORTED_ROWS = 2**18
"""Rows that are handed on or stored at once."""
_HANDED_ROWS = 2**12
"""Rows of several states that are handed on together."""
_SPLIT_ORDER = 2**40
"""The distance in `RowStates.order` between the first rows of two splits: more than the rows of any file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryScan:
    """Which states of rows to read."""

    are_joined: bool = True
    """Whether equal rows that files share over time are one state; otherwise each file has states of its own."""

    splits: Sequence[SplitHistory]
    """By their first position."""
    schema: pa.Schema
    """The columns of the states."""
    where: Condition | None
    """The condition on the rows; it may have other columns."""
    count: int
    """The number of versions."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns to read: those of the states, then those of the condition."""
        more = sorted(self.where.columns - set(self.schema.names)) if self.where else []
        return (*self.schema.names, *more)


def each_state(scan: HistoryScan, matching: Ints | None = None) -> Iterator[RowStates]:
    """Yield the states of rows split by split, in this thread, of each split its own: nothing is joined.

    Args:
        matching: As for `read_states`.
    """
    kept: list[RowStates] = []
    with closing(SplitRows([states_schema(scan.schema)], limit_bytes=0)) as nothing:
        reader = _Reader(replace(scan, are_joined=False), kept.append, nothing, matching)
        for split, item in enumerate(scan.splits):
            names = item.columns.names_in(scan.needed, of_a=True)
            for batch in item.version.read(item.split, names, item.predicate if item.is_simple else None):
                reader.add(split, batch)
                yield from kept
                kept.clear()
        reader.finish()
        yield from kept


def read_states(
    scan: HistoryScan, keep: Callable[[RowStates], object], *, memory_limit: int, matching: Ints | None = None
) -> None:
    """Call a function with all states of rows, part by part, in no order. Reads each split once, in threads.

    A row that leaves in the version in which an equal row arrives, in another file, is one state with it. Of several
    equal rows that leave and arrive, those that have been there longest go on as those that stay longest.

    Args:
        keep: Called from one thread at a time.
        memory_limit: The maximum number of bytes in memory of rows that are compared; more go to temporary files.
        matching: The number of rows of each raw split that match the condition is added to it, deleted rows included.
    """
    limit = memory_limit // 2
    with closing(SplitRows([states_schema(scan.schema)], limit_bytes=limit)) as replaced:
        _Reader(scan, keep, replaced, matching, limit_bytes=limit).read()
        turning = np.flatnonzero(turning_positions(scan)).tolist()
        for (part,) in replaced.parts():
            if len(part.hashes):
                joined_states(states_of(part.rows, part.hashes), turning, keep)


def splits_without_files(splits: Sequence[SplitHistory]) -> list[tuple[SplitHistory, SnapshotExplorerError]]:
    """Return the splits of which a data file does not exist, with the error."""
    paths = sorted({path for item in splits for path in item.split.files})
    storage = splits[0].version.storage if splits else None
    missing = set(storage.missing(paths)) if storage is not None else set()
    error = CorruptTableError(
        Message("data files are missing; ", Hint("table.verify"), " lists the versions that can be loaded")
    )
    return [(item, error) for item in splits if not missing.isdisjoint(item.split.files)]


def unreadable_splits(scan: HistoryScan) -> Iterator[tuple[SplitHistory, SnapshotExplorerError]]:
    """Yield the splits that cannot be read, with the error. Reads all if no file is missing."""
    lost = splits_without_files(scan.splits)
    yield from lost
    for item in scan.splits if not lost else ():
        names = item.columns.names_in(scan.needed, of_a=True)
        try:
            deque(item.version.read(item.split, names), maxlen=0)
            for state in item.states:
                if state.deletes is not None:
                    deque(item.version.read(state.deletes, []), maxlen=0)
        except UNREADABLE as error:
            yield item, error


@dataclass(frozen=True, slots=True)
class _Batch:
    split: int
    """The position of its split."""
    start: int
    """The position of its first row in the split."""
    rows: pa.RecordBatch


class _Component:
    """Splits whose rows may continue each other, directly or by way of others."""

    def __init__(self, is_turning: Mask, keep: Callable[[RowStates], object]) -> None:
        self.lock = Lock()
        self.unread: defaultdict[int, int] = defaultdict(int)
        """By position, how many splits with rows that end or begin there are not read yet."""
        self.left: list[int] = []
        """The positions at which no states were joined yet, descending."""
        self.states: Continuations | None = Continuations(is_turning, keep)
        """None if the rows are more than fit in memory, and are stored instead."""

    def finish(self, positions: Sequence[int]) -> None:
        """Join the states at the positions whose splits were all read, after a split with these positions was."""
        with self.lock:
            for position in positions:
                self.unread[position] -= 1
            while self.left and not self.unread[self.left[-1]]:
                position = self.left.pop()
                if self.states is not None:
                    self.states.join(position)


class _Reader:
    """Reads splits, and separates the rows that another file may continue from those that it cannot."""

    def __init__(
        self,
        scan: HistoryScan,
        keep: Callable[[RowStates], object],
        replaced: SplitRows,
        matching: Ints | None = None,
        *,
        limit_bytes: int = 0,
    ) -> None:
        self._scan = scan
        self._keep_states = keep
        self._replaced = replaced
        self._matching = matching
        self._limit_bytes = limit_bytes
        self._names = list(scan.schema.names)
        self._schema = states_schema(scan.schema)
        self._is_turning = turning_positions(scan) if scan.are_joined else np.zeros(scan.count + 1, np.bool_)
        self._is_simple = np.array([item.is_simple for item in scan.splits], np.bool_)
        self._first = np.array([item.states[0].first for item in scan.splits], np.int64)
        self._last = np.array([item.states[0].last for item in scan.splits], np.int64)
        self._rows_read = [0] * len(scan.splits)
        self._unsorted = [1] * len(scan.splits)
        """By split, how many batches are not sorted yet; one more if others may follow."""
        turning = frozenset(np.flatnonzero(self._is_turning).tolist())
        self._turns = [
            sorted(turning.intersection(end for state in item.states for end in (state.first, state.last)))
            for item in scan.splits
        ]
        """By split, the positions at which its rows continue others, or others continue them; ascending."""
        self._positions: dict[int, list[Positions]] = {}
        self._lock = Lock()
        self._keep_lock = Lock()
        self._kept: list[RowStates] = []
        self._kept_rows = 0
        self._waiting: list[_Batch] = []
        self._held = 0
        self._roots = _roots(self._turns, scan.count)
        roots = {int(self._roots[turns[0]]) for turns in self._turns if turns}
        self._components = {root: _Component(self._is_turning, self._keep) for root in roots}
        self._joined = 0
        """Bytes of the rows in components."""

    def read(self) -> None:
        """Read the splits. The splits of a component follow each other in the order in which their rows are joined."""
        splits = self._scan.splits
        for turns in self._turns:
            for position in turns:
                self._components[int(self._roots[position])].unread[position] += 1
        for component in self._components.values():
            component.left = sorted(component.unread, reverse=True)

        def rank(split: int) -> tuple[int, int]:
            turns = self._turns[split]
            return (int(self._roots[turns[0]]), turns[0]) if turns else (int(self._first[split]), 0)

        readings = [
            local.Reading(
                number=split,
                reader=splits[split].version,
                split=splits[split].split,
                columns=splits[split].columns.names_in(self._scan.needed, of_a=True),
                # The positions of deleted rows count all rows.
                predicate=splits[split].predicate if self._is_simple[split] else None,
            )
            for split in sorted(range(len(splits)), key=rank)
        ]
        local.for_each_batch_in_turn(list(self._groups(readings)), self.add, self._finish_batches)
        self.finish()

    def _groups(self, readings: Sequence[local.Reading]) -> Iterator[list[local.Reading]]:
        """Yield groups of readings. A group is read in sequence, so that only two states of a merge are in memory."""
        group: list[local.Reading] = []
        for reading in readings:
            components = {id(self._component(item.number)) for item in (*group[-1:], reading)}
            is_merged = reading.reader.storage.is_local and not reading.split.raw and self._turns[reading.number]
            if not (group and is_merged and not group[-1].split.raw and len(components) == 1):
                yield from [group] if group else []
                group = []
            group.append(reading)
        yield from [group] if group else []

    def _component(self, split: int) -> _Component | None:
        """Return the component of a split; None if no other split may have rows of it."""
        turns = self._turns[split]
        return self._components[int(self._roots[turns[0]])] if turns else None

    def finish(self) -> None:
        """Process the rows that wait for others."""
        self._process(self._waiting)
        self._waiting, self._held = [], 0
        with self._keep_lock:
            self._hand_on_kept()

    def add(self, split: int, batch: pa.RecordBatch) -> None:
        """Process a batch of a split, alone or together with others."""
        if not batch.num_rows:
            return
        start = self._rows_read[split]  # the batches of a split come one after another
        with self._lock:
            self._unsorted[split] += 1
        self._rows_read[split] = start + batch.num_rows
        rows = self._scan.splits[split].columns.rows(batch, self._scan.needed, of_a=True)
        full: list[_Batch] = []
        is_large = self._scan.where is None and rows.nbytes > _LARGE_BYTES
        if is_large or not self._is_simple[split]:
            self._process([_Batch(split, start, rows)])
            if self._rows_read[split] == self._scan.splits[split].split.rows:
                self._positions.pop(split, None)
            return
        with self._lock:
            self._waiting.append(_Batch(split, start, rows))
            self._held += rows.nbytes
            if self._held > _BATCH_BYTES:
                full, self._waiting, self._held = self._waiting, [], 0
        self._process(full)

    def _process(self, batches: list[_Batch]) -> None:
        if not batches:
            return
        batches = sorted(batches, key=lambda batch: (batch.split, batch.start))
        rows = pa.Table.from_batches([batch.rows for batch in batches])
        counts = [batch.rows.num_rows for batch in batches]
        splits = np.repeat(np.array([batch.split for batch in batches], np.int64), counts)
        starts = np.repeat(
            np.array([batch.start for batch in batches], np.int64) - np.cumsum([0, *counts[:-1]]), counts
        )
        indices = starts + np.arange(len(splits))
        if self._scan.where is not None:
            mask = self._scan.where.mask(rows)
            rows, chosen = rows.filter(mask), mask.to_numpy(zero_copy_only=False)
            splits, indices = splits[chosen], indices[chosen]
        if self._matching is not None:
            with self._lock:
                np.add.at(self._matching, splits, 1)
        order = splits * _SPLIT_ORDER + indices
        states = RowStates(
            rows=rows.select(self._names), first=self._first[splits], last=self._last[splits], order=order
        )
        if len(batches) > 1 or self._is_simple[batches[0].split]:
            self._sort(states, are_small=len(batches) > 1)
        else:
            for own_states in self._states_of(batches[0].split, states.rows, indices):
                self._sort(own_states)
        for batch in batches:
            self._finish_batches(batch.split)

    def _finish_batches(self, split: int) -> None:
        """Join the states of a split if this was the last of its batches, or if none follows."""
        with self._lock:
            self._unsorted[split] -= 1
            is_done = not self._unsorted[split]
        component = self._component(split)
        if is_done and component is not None:
            component.finish(self._turns[split])

    def _states_of(self, split: int, rows: pa.Table, indices: Ints) -> Iterator[RowStates]:
        """Yield the states of rows of a split that has several states itself."""
        item, order = self._scan.splits[split], split * _SPLIT_ORDER + indices
        since = np.full(len(indices), -1, np.int64)
        before = None
        for state, deleted in zip(item.states, self._deleted(split), strict=True):
            if before is not None and not (before.last == state.first and _are_same(rows, before, state)):
                yield from _ended(_without(rows, before.lacking), since, order, since >= 0, before.last)
                since[:] = -1
            is_live = ~np.isin(indices, deleted) if state.is_live else np.zeros(len(indices), np.bool_)
            if before is not None:
                gone = (since >= 0) & ~is_live
                yield from _ended(_without(rows, before.lacking), since, order, gone, before.last)
            since[~is_live] = -1
            since[is_live & (since < 0)] = state.first
            before = state
        last = item.states[-1]
        yield from _ended(_without(rows, last.lacking), since, order, since >= 0, last.last)

    def _deleted(self, split: int) -> list[Positions]:
        """Return the positions of the rows that are deleted in each state. Reads each deletion vector once."""
        known = self._positions.get(split)
        if known is None:
            item = self._scan.splits[split]
            read = item.version.native_files.deleted_positions
            # One at a time: a call is about different files.
            known = [
                NOTHING if state.deletes is None else read([state.deletes], [state.deletes.rows or 0])[0]
                for state in item.states
            ]
            self._positions[split] = known
        return known

    def _sort(self, states: RowStates, *, are_small: bool = False) -> None:
        """Hand on the states that no other file can continue, and add the others to their components.

        Args:
            are_small: Whether they are of many splits: hashing each would take longer than hashing all together.
        """
        if len(states) > _SORTED_ROWS:
            for start in range(0, len(states), _SORTED_ROWS):
                self._sort(states.sliced(start, min(start + _SORTED_ROWS, len(states))), are_small=are_small)
            return
        if not len(states):
            return
        turns = np.where(self._is_turning[states.first], states.first, states.last)
        is_continued = self._is_turning[turns]
        if is_continued.any():
            chosen = states.filtered(is_continued)
            chosen = replace(chosen, hashes=chosen.known_hashes) if are_small else chosen
            for root, part in chosen.by(self._roots[turns[is_continued]]):
                self._add_to(self._components[root], part)
        self._hand_on(states.filtered(~is_continued))

    def _hand_on(self, states: RowStates) -> None:
        with self._keep_lock:
            self._kept.append(states)
            self._kept_rows += len(states)
            if self._kept_rows >= _HANDED_ROWS:
                self._hand_on_kept()

    def _hand_on_kept(self) -> None:
        if self._kept_rows:
            self._keep_states(together([states for states in self._kept if len(states)]))
        self._kept, self._kept_rows = [], 0

    def _add_to(self, component: _Component, states: RowStates) -> None:
        """Add states to a component; if these are too many for the memory, all go to temporary files."""
        with component.lock:
            if component.states is None:
                self._store(states)
                return
            component.states.add(states)
            with self._lock:
                self._joined += states.rows.nbytes
                are_too_many = self._joined > self._limit_bytes
            if are_too_many:
                for part in component.states.taken():
                    self._release(part)
                    self._store(part)
                component.states = None

    def _release(self, states: RowStates) -> None:
        with self._lock:
            self._joined -= states.rows.nbytes

    def _keep(self, states: RowStates) -> None:
        """Hand on the states that a component joined."""
        self._release(states)
        self._hand_on(states)

    def _store(self, states: RowStates) -> None:
        (batch,) = states.table(self._schema).combine_chunks().to_batches()
        self._replaced.add(0, (int(states.first[0]), 0), batch, states.known_hashes)


def _roots(turns: Sequence[Sequence[int]], count: int) -> Ints:
    """Return a position for each, the same for all that splits connect."""
    roots = list(range(count + 1))

    def root(position: int) -> int:
        while roots[position] != position:
            roots[position] = position = roots[roots[position]]
        return position

    for positions in turns:
        for position in positions[1:]:
            low, high = sorted((root(positions[0]), root(position)))
            roots[high] = low
    return np.array([root(position) for position in range(count + 1)], np.int64)


def turning_positions(scan: HistoryScan) -> Mask:
    """Return the positions at which rows of a split may end and rows of a split may begin."""
    ends, begins = np.zeros((2, scan.count + 1), np.bool_)
    for item in scan.splits:
        for state in item.states:
            begins[state.first] = True
            ends[state.last] = True
    ends[scan.count] = False
    return np.asarray(ends & begins, np.bool_)


def _ended(rows: pa.Table, since: Ints, order: Ints, mask: Mask, last: int) -> Iterator[RowStates]:
    if mask.any():
        ends = np.full(int(mask.sum()), last)
        yield RowStates(rows=rows.filter(pa.array(mask)), first=since[mask], last=ends, order=order[mask])


def _without(rows: pa.Table, lacking: frozenset[str]) -> pa.Table:
    """Return rows with null in some columns."""
    for name in lacking.intersection(rows.column_names):
        index = rows.column_names.index(name)
        rows = rows.set_column(index, rows.schema.field(index), pa.nulls(len(rows), rows.schema.field(index).type))
    return rows


def _are_same(rows: pa.Table, before: SplitState, after: SplitState) -> bool:
    """Return whether the columns that only one of two states lacks are null in all rows."""
    names = (before.lacking ^ after.lacking).intersection(rows.column_names)
    return all(rows[name].null_count == len(rows) for name in names)
