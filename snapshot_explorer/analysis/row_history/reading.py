"""The states of rows, from splits that are each read once: rows that files share over time are one state."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.row_matching import HashedRows, Hashes, equal_rows, row_hashes, take_rows
from snapshot_explorer.analysis.diff.spilled_rows import SplitRows
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_values import exact_keys
from snapshot_explorer.arrow.roaring import NOTHING
from snapshot_explorer.core.errors import UNREADABLE, CorruptTableError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import Step, step
from snapshot_explorer.engines import local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapshot_explorer.analysis.row_history.planning import SplitHistory, SplitState
    from snapshot_explorer.arrow.roaring import Positions
    from snapshot_explorer.engines.conditions import Condition

Ints = npt.NDArray[np.int64]
Groups = Ints | npt.NDArray[np.uint64]
"""A number per row, equal for equal rows, or their hashes."""
Mask = npt.NDArray[np.bool_]

_BATCH_BYTES = 8 * 2**20
"""Decoded bytes of rows to which a condition is applied at once: an evaluation costs milliseconds."""
_LARGE_BYTES = 2**20
"""Decoded bytes of a batch that is processed alone if there is no condition: joining it to others would copy it."""
_SORTED_ROWS = 2**18
"""Rows that are handed on or stored at once."""
_PERIOD = pa.schema([pa.field(name, pa.int64()) for name in ("first", "last", "order")])
_SPLIT_ORDER = 2**40
"""The distance in `RowStates.order` between the first rows of two splits: more than the rows of any file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStates:
    """Rows, each with the range of positions of versions that have it."""

    rows: pa.Table
    first: Ints
    last: Ints
    """The position after the range."""
    order: Ints
    """A number that ascends with the positions of the split and of the row in it."""


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
    with closing(SplitRows(states_schema(scan.schema), limit_bytes=0)) as nothing:
        reader = _Reader(replace(scan, are_joined=False), kept.append, nothing, matching)
        for split, item in enumerate(scan.splits):
            names = item.columns.names_in(scan.needed, of_a=True)
            for batch in item.version.read(item.split, names, item.predicate if item.is_simple else None):
                reader.add(split, batch)
                yield from kept
                kept.clear()
        reader.finish()
        yield from kept


def states_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of rows with their ranges and order."""
    return pa.schema([*schema, *_PERIOD])


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
    with closing(SplitRows(states_schema(scan.schema), limit_bytes=memory_limit)) as replaced:
        _Reader(scan, keep, replaced, matching).read()
        turning = np.flatnonzero(turning_positions(scan)).tolist()
        for rows, _ in replaced.pairs():
            if len(rows.hashes):
                keep(continued_states(rows, len(scan.schema), turning)[0])


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


class _Reader:
    """Reads splits, and separates the rows that another file may continue from those that it cannot."""

    def __init__(
        self,
        scan: HistoryScan,
        keep: Callable[[RowStates], object],
        replaced: SplitRows,
        matching: Ints | None = None,
    ) -> None:
        self._scan = scan
        self._keep = keep
        self._replaced = replaced
        self._matching = matching
        self._names = list(scan.schema.names)
        self._schema = states_schema(scan.schema)
        self._is_turning = turning_positions(scan) if scan.are_joined else np.zeros(scan.count + 1, np.bool_)
        self._is_simple = np.array([item.is_simple for item in scan.splits], np.bool_)
        self._first = np.array([item.states[0].first for item in scan.splits], np.int64)
        self._last = np.array([item.states[0].last for item in scan.splits], np.int64)
        self._rows_read = [0] * len(scan.splits)
        self._positions: dict[int, list[Positions]] = {}
        self._lock = Lock()
        self._keep_lock = Lock()
        self._waiting: list[_Batch] = []
        self._held = 0

    def read(self) -> None:
        splits, chains = self._scan.splits, _chains(self._scan.splits)
        in_chains = frozenset(index for chain in chains for index in chain)
        by_version: dict[int, list[int]] = {}
        for index, item in enumerate(splits):
            if index not in in_chains:
                by_version.setdefault(id(item.version), []).append(index)
        sources = [
            (
                splits[indices[0]].version,
                [splits[index].split for index in indices],
                splits[indices[0]].columns.names_in(self._scan.needed, of_a=True),
            )
            for indices in by_version.values()
        ]
        numbers = list(by_version.values())
        # The positions of deleted rows count all rows.
        predicates = [[splits[index].predicate if self._is_simple[index] else None for index in own] for own in numbers]
        local.for_each_batch_of(
            sources, lambda source, order, batch: self.add(numbers[source][order[0]], batch), predicates
        )
        self.finish()
        if chains:
            with step("Reading merged files", total=len(in_chains)) as reading:
                storage = splits[0].version.storage
                storage.together(*(partial(self._read_chain, chain, reading) for chain in chains))

    def _read_chain(self, chain: Sequence[int], reading: Step) -> None:
        """Read the states of a merge one after another, of which two are in memory; most rows are in both."""
        before: HashedRows | None = None
        for index in chain:
            item = self._scan.splits[index]
            parts = list(self._states_in(index))
            rows = pa.Table.from_batches([batch for batch, _ in parts], self._schema)
            hashes = np.concatenate([np.zeros(0, np.uint64), *(own for _, own in parts)])
            if before is not None:
                rows, hashes = pa.concat_tables([before.rows, rows]), np.concatenate([before.hashes, hashes])
            states, chosen = continued_states(
                HashedRows(rows=rows, hashes=hashes), len(self._scan.schema), [item.states[0].first]
            )
            is_there = states.last == item.states[0].last
            self._sort(_filtered(states, ~is_there))
            held = _filtered(states, is_there)
            before = HashedRows(rows=with_ranges(held, self._schema), hashes=hashes[chosen[is_there]])
            reading.advance()
        if before is not None:
            self._sort(_of_period(before.rows, len(self._scan.schema)))

    def _states_in(self, split: int) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
        """Yield the rows of a split with one state, with their range and order, and their hashes."""
        item = self._scan.splits[split]
        names = item.columns.names_in(self._scan.needed, of_a=True)
        (state,) = item.states
        order = split * _SPLIT_ORDER
        for batch in item.version.read(item.split, names, item.predicate):
            rows = item.columns.rows(batch, self._scan.needed, of_a=True)
            if self._scan.where is not None and rows.num_rows:
                rows = rows.filter(self._scan.where.mask(pa.Table.from_batches([rows])))
            ends = [np.full(rows.num_rows, position, np.int64) for position in (state.first, state.last)]
            period = [pa.array(values) for values in (*ends, order + np.arange(rows.num_rows))]
            order += rows.num_rows
            columns = rows.select(self._names).columns
            batch_of_states = pa.RecordBatch.from_arrays([*columns, *period], schema=self._schema)
            yield batch_of_states, row_hashes(columns, rows.num_rows)

    def finish(self) -> None:
        """Process the rows that wait for others."""
        self._process(self._waiting)
        self._waiting, self._held = [], 0

    def add(self, split: int, batch: pa.RecordBatch) -> None:
        """Process a batch of a split, alone or together with others."""
        if not batch.num_rows:
            return
        start = self._rows_read[split]  # the batches of a split come one after another
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
            self._sort(states)
            return
        for own_states in self._states_of(batches[0].split, states.rows, indices):
            self._sort(own_states)

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

    def _sort(self, states: RowStates) -> None:
        """Hand on the states that no other file can continue, and store the others to be compared."""
        if len(states.first) > _SORTED_ROWS:
            for start in range(0, len(states.first), _SORTED_ROWS):
                self._sort(_sliced(states, start))
            return
        if not len(states.first):
            return
        is_replaced = np.zeros(len(states.first), np.bool_)
        for positions in (states.first, states.last) if self._scan.are_joined else ():
            is_replaced |= self._is_turning[positions]
        if is_replaced.any():
            chosen = _filtered(states, is_replaced)
            columns = [single_chunk(column) for column in chosen.rows.columns]
            (batch,) = with_ranges(chosen, self._schema).combine_chunks().to_batches()
            self._replaced.add(0, (int(chosen.first[0]), 0), batch, row_hashes(columns, len(chosen.first)))
            states = _filtered(states, ~is_replaced)
        if len(states.first):
            with self._keep_lock:
                self._keep(states)


def turning_positions(scan: HistoryScan) -> Mask:
    """Return the positions at which rows of a split may end and rows of a split may begin."""
    ends, begins = np.zeros((2, scan.count + 1), np.bool_)
    for item in scan.splits:
        for state in item.states:
            begins[state.first] = True
            ends[state.last] = True
    ends[scan.count] = False
    return np.asarray(ends & begins, np.bool_)


def _sliced(states: RowStates, start: int) -> RowStates:
    end = start + _SORTED_ROWS
    rows = states.rows.slice(start, _SORTED_ROWS)
    ranges = states.first[start:end], states.last[start:end], states.order[start:end]
    return _states(rows, *ranges)


def _filtered(states: RowStates, mask: Mask) -> RowStates:
    if mask.all():
        return states
    return _states(states.rows.filter(pa.array(mask)), states.first[mask], states.last[mask], states.order[mask])


def _states(rows: pa.Table, first: Ints, last: Ints, order: Ints) -> RowStates:
    return RowStates(rows=rows, first=first, last=last, order=order)


def _ended(rows: pa.Table, since: Ints, order: Ints, mask: Mask, last: int) -> Iterator[RowStates]:
    if mask.any():
        yield _states(rows.filter(pa.array(mask)), since[mask], np.full(int(mask.sum()), last), order[mask])


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


def _chains(splits: Sequence[SplitHistory]) -> list[list[int]]:
    """Return splits that follow each other and read some file again: states of one merge, or of one file's deletes."""
    chains: list[list[int]] = []
    ending: dict[tuple[int, str], list[int]] = {}
    for index, item in enumerate(splits):
        if item.split.raw or not item.is_simple:
            continue
        (state,) = item.states
        chain = next((ending[state.first, path] for path in item.split.files if (state.first, path) in ending), None)
        if chain is None:
            chain = []
            chains.append(chain)
        for path in splits[chain[-1]].split.files if chain else ():
            ending.pop((state.first, path), None)
        chain.append(index)
        ending |= {(state.last, path): chain for path in item.split.files}
    return [chain for chain in chains if len(chain) > 1]


def with_ranges(states: RowStates, schema: pa.Schema) -> pa.Table:
    """Return states as one table, in `states_schema`."""
    period = [pa.array(values) for values in (states.first, states.last, states.order)]
    return pa.Table.from_arrays([*states.rows.columns, *period], schema=schema)


def _of_period(rows: pa.Table, columns: int) -> RowStates:
    period = (np.asarray(rows.column(columns + index)) for index in range(len(_PERIOD)))
    return _states(rows.select(list(range(columns))), *period)


def continued_states(rows: HashedRows, columns: int, turning: Sequence[int]) -> tuple[RowStates, Ints]:
    """Return the states of rows where equal rows that end and begin at the same position are one, and their indices.

    Args:
        columns: The number of columns of the rows, behind which their range is.
        turning: The positions at which rows are continued, ascending.
    """
    states = _of_period(rows.rows, columns)
    values, first, last, order = states.rows, states.first, states.last, states.order
    remaining = -last
    ending, beginning = _by_position(last, turning), _by_position(first, turning)

    def continued(groups: Groups) -> tuple[Ints, Ints, Ints]:
        """Return the indices of the rows that go on, of the rows that continue them, and of the rows that are new."""
        since = first.copy()
        pairs = []
        for ends, begins in zip(ending, beginning, strict=True):
            olds, news = _ordered(groups, ends, order, since), _ordered(groups, begins, order, remaining)
            left, right = _paired(groups[olds], groups[news])
            since[news[right]] = since[olds[left]]
            pairs.append((olds[left], news[right]))
        left, right = (np.concatenate([np.zeros(0, np.int64), *side]) for side in zip(*pairs, strict=True))
        return left, right, since

    left, right, since = continued(rows.hashes)
    ascending = np.argsort(left)  # rows of a file that is rewritten mostly keep their order
    if not equal_rows(values, values, left[ascending], right[ascending], values.column_names).all():
        left, right, since = continued(equal_groups(values, rows.hashes))
    chosen = np.ones(len(first), np.bool_)
    chosen[left] = False
    return _filtered(_states(values, since, last, order), chosen), np.flatnonzero(chosen)


def _ordered(groups: Groups, indices: Ints, order: Ints, rank: Ints) -> Ints:
    """Return indices sorted by group, then by rank, then by order."""
    own = groups[indices]
    by_group = np.argsort(own)
    ascending = own[by_group]
    if (ascending[1:] == ascending[:-1]).any():
        by_group = np.lexsort((order[indices], rank[indices], own))
    return indices[by_group]


def _by_position(positions: Ints, chosen: Sequence[int]) -> list[Ints]:
    """Return the indices of the rows with each of some positions."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    return [order[np.searchsorted(ordered, at, "left") : np.searchsorted(ordered, at, "right")] for at in chosen]


def _paired(left: Groups, right: Groups) -> tuple[Ints, Ints]:
    """Return the indices of equal numbers of two sorted arrays, the n-th of each number with the n-th."""
    rank = np.arange(len(left)) - np.searchsorted(left, left, "left")
    partner = np.searchsorted(right, left, "left") + rank
    has_partner = partner < np.searchsorted(right, left, "right")
    return np.flatnonzero(has_partner), partner[has_partner]


def equal_groups(rows: pa.Table, hashes: npt.NDArray[np.uint64]) -> Ints:
    """Return a number per row, equal for equal rows."""
    order = np.argsort(hashes)
    is_next = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    left, right = order[is_next], order[is_next + 1]
    equal = equal_rows(rows, rows, left, right, rows.column_names)
    begins = np.ones(len(order), np.bool_)
    begins[is_next + 1] = False
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(begins)
    if not equal.all():
        # Different rows have the same hash: the rows with these hashes are compared by their values.
        unclear = np.flatnonzero(np.isin(groups, groups[left[~equal]]))
        keys = exact_keys([take_rows(column, unclear) for column in rows.columns])
        groups[unclear] = len(order) + np.unique(np.array(keys, object), return_inverse=True)[1] + 1
    return groups
