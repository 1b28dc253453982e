"""Rows that leave in the version in which equal rows arrive are one state, whichever files have them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.row_matching import Hashes, equal_rows, row_hashes, take_rows
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_values import exact_keys

Ints = npt.NDArray[np.int64]
Groups = Ints | Hashes
"""A number per row, equal for equal rows, or their hashes."""
Mask = npt.NDArray[np.bool_]

_PERIOD = pa.schema([pa.field(name, pa.int64()) for name in ("first", "last", "order")])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStates:
    """Rows, each with the range of positions of versions that have it."""

    rows: pa.Table
    first: Ints
    last: Ints
    """The position after the range."""
    order: Ints
    """A number that ascends with the positions of the split and of the row in it."""
    hashes: Hashes | None = None
    """A hash of each row; None if they are not computed yet."""

    def __len__(self) -> int:
        return len(self.first)

    def filtered(self, mask: Mask) -> "RowStates":
        """Return the states of a mask, these if it has all."""
        if mask.all():
            return self
        return self._chosen(self.rows.filter(pa.array(mask)), mask)

    def taken(self, indices: Ints) -> "RowStates":
        """Return the states at some indices."""
        return self._chosen(self.rows.take(pa.array(indices)), indices)

    def sliced(self, start: int, end: int) -> "RowStates":
        """Return the states from one index up to another."""
        return self._chosen(self.rows.slice(start, end - start), slice(start, end))

    def _chosen(self, rows: pa.Table, which: "Mask | Ints | slice") -> "RowStates":
        hashes = None if self.hashes is None else self.hashes[which]
        first, last, order = self.first[which], self.last[which], self.order[which]
        return RowStates(rows=rows, first=first, last=last, order=order, hashes=hashes)

    def by(self, positions: Ints) -> "Iterator[tuple[int, RowStates]]":
        """Yield the states with each of the positions, which are one per state."""
        if (positions == positions[:1]).all():
            yield from [(int(positions[0]), self)] if len(self) else []
            return
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()
        states = self.taken(order)
        for start, end in zip(begins, [*begins[1:], len(order)], strict=True):
            yield int(ordered[start]), states.sliced(start, end)

    @property
    def known_hashes(self) -> Hashes:
        """A hash of each row, computed if it is not there."""
        if self.hashes is not None:
            return self.hashes
        return row_hashes([single_chunk(column) for column in self.rows.columns], len(self))

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the states as one table, in `states_schema`."""
        period = [pa.array(values) for values in (self.first, self.last, self.order)]
        return pa.Table.from_arrays([*self.rows.columns, *period], schema=schema)


def states_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of rows with their ranges and order."""
    return pa.schema([*schema, *_PERIOD])


def states_of(table: pa.Table, hashes: Hashes) -> RowStates:
    """Return the states in a table in `states_schema`."""
    columns = table.num_columns - len(_PERIOD)
    first, last, order = (np.asarray(table.column(columns + index)) for index in range(len(_PERIOD)))
    return RowStates(rows=table.select(list(range(columns))), first=first, last=last, order=order, hashes=hashes)


def together(parts: Sequence[RowStates]) -> RowStates:
    """Return several states as one."""
    if len(parts) == 1:
        return parts[0]
    first, last, order = (np.concatenate([getattr(part, name) for part in parts]) for name in _PERIOD.names)
    hashes = [part.hashes for part in parts if part.hashes is not None]
    return RowStates(
        rows=pa.concat_tables([part.rows for part in parts]),
        first=first,
        last=last,
        order=order,
        hashes=np.concatenate(hashes) if len(hashes) == len(parts) else None,
    )


class Continuations:
    """States that begin or end at positions where others end or begin. Joins them, position by position."""

    def __init__(self, is_turning: Mask, keep: Callable[[RowStates], object]) -> None:
        """Contain no states.

        Args:
            is_turning: For each position, whether rows may be continued there.
            keep: Called with the states that no later position continues.
        """
        self._is_turning = is_turning
        self._keep = keep
        self._begin: defaultdict[int, list[RowStates]] = defaultdict(list)
        self._end: defaultdict[int, list[RowStates]] = defaultdict(list)

    def add(self, states: RowStates) -> None:
        """Add states that begin at positions that were not joined yet."""
        begins = self._is_turning[states.first]
        for position, part in states.filtered(begins).by(states.first[begins]):
            self._begin[position].append(part)
        self._wait(states.filtered(~begins))

    def _wait(self, states: RowStates) -> None:
        """Add states that no earlier one continues into."""
        for position, part in states.by(states.last):
            if self._is_turning[position]:
                self._end[position].append(part)
            else:
                self._keep(part)

    def join(self, position: int) -> None:
        """Join the states that end and those that begin at a position. Positions ascend."""
        ending, beginning = self._end.pop(position, None), self._begin.pop(position, None)
        if ending is None or beginning is None:
            for part in ending or ():
                self._keep(part)
            for part in beginning or ():
                self._wait(part)
            return
        ends, begins = together(ending), together(beginning)
        left, right = _continued(ends, begins)
        since, is_over = begins.first.copy(), np.ones(len(ends), np.bool_)
        since[right] = ends.first[left]
        is_over[left] = False
        if is_over.any():
            self._keep(ends.filtered(is_over))
        self._wait(replace(begins, first=since))

    def taken(self) -> Iterator[RowStates]:
        """Yield all states, and drop them."""
        for waiting in (self._begin, self._end):
            while waiting:
                yield from waiting.popitem()[1]


def joined_states(states: RowStates, turning: Sequence[int], keep: Callable[[RowStates], object]) -> None:
    """Call a function with states where equal rows that end and begin at the same position are one.

    Args:
        turning: The positions at which rows are continued, ascending.
    """
    is_turning = np.zeros(max(int(states.last.max(initial=0)), *turning, 0) + 1, np.bool_)
    is_turning[list(turning)] = True
    continuations = Continuations(is_turning, keep)
    continuations.add(states)
    for position in turning:
        continuations.join(position)


def _continued(ends: RowStates, begins: RowStates) -> tuple[Ints, Ints]:
    """Return the indices of states that end where equal ones begin, and of the ones that continue them.

    Of several equal rows, those that have been there longest go on as those that stay longest.
    """
    left, right = (np.arange(len(states)) for states in (ends, begins))
    pairs = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if ends.hashes is None or begins.hashes is None:
        left, right = _within_ranges(ends.rows, begins.rows)
        if len(left) and len(right) and (ends.first == ends.first[0]).all() and (begins.last == begins.last[0]).all():
            # It makes no difference which of several equal rows go on.
            pairs, left, right = _equal_in_place(ends.rows, begins.rows, left, right)
        if not len(left) or not len(right):
            return pairs
    olds, news = (
        states if len(indices) == len(states) else states.taken(indices)
        for states, indices in ((ends, left), (begins, right))
    )
    more_left, more_right = _matched(olds, news, olds.known_hashes, news.known_hashes)
    if not equal_rows(olds.rows, news.rows, more_left, more_right, olds.rows.column_names).all():
        hashes = np.concatenate([olds.known_hashes, news.known_hashes])
        groups = equal_groups(pa.concat_tables([olds.rows, news.rows]), hashes)
        more_left, more_right = _matched(olds, news, groups[: len(olds)], groups[len(olds) :])
    return np.concatenate([pairs[0], left[more_left]]), np.concatenate([pairs[1], right[more_right]])


def _matched(ends: RowStates, begins: RowStates, left: Groups, right: Groups) -> tuple[Ints, Ints]:
    olds, news = _ordered(left, ends.first, ends.order), _ordered(right, -begins.last, begins.order)
    left, right = left[olds], right[news]
    rank = np.arange(len(left)) - np.searchsorted(left, left, "left")
    partner = np.searchsorted(right, left, "left") + rank
    has_partner = partner < np.searchsorted(right, left, "right")
    chosen, partners = olds[has_partner], news[partner[has_partner]]
    ascending = np.argsort(chosen)  # rows of a file that is rewritten mostly keep their order
    return chosen[ascending], partners[ascending]


def _ordered(groups: Groups, rank: Ints, order: Ints) -> Ints:
    """Return the indices of rows sorted by group, then by rank, then by order."""
    by_group = np.argsort(groups)
    ascending = groups[by_group]
    if (ascending[1:] == ascending[:-1]).any():
        by_group = np.lexsort((order, rank, groups))
    return by_group


def _within_ranges(ends: pa.Table, begins: pa.Table) -> tuple[Ints, Ints]:
    """Return the indices of the rows of both that are within the ranges of integers and times of the other one.

    Rows that a commit adds beside those that it rewrites mostly have other keys.
    """
    left, right = np.arange(len(ends)), np.arange(len(begins))
    for index, field in enumerate(ends.schema):
        if not len(left) or not len(right):
            break
        if not (pa.types.is_integer(field.type) or pa.types.is_temporal(field.type)):
            continue
        columns = ends.column(index), begins.column(index)
        if columns[0].null_count or columns[1].null_count or pa.types.is_interval(field.type):
            continue
        width = pa.int32() if field.type.bit_width == 32 else pa.int64()  # noqa: PLR2004 - bits
        dtype = field.type if pa.types.is_integer(field.type) else width
        olds, news = (np.asarray(single_chunk(column).view(dtype)) for column in columns)
        lower, upper = max(olds[left].min(), news[right].min()), min(olds[left].max(), news[right].max())
        left = left[(olds[left] >= lower) & (olds[left] <= upper)]
        right = right[(news[right] >= lower) & (news[right] <= upper)]
    return left, right


def _equal_in_place(ends: pa.Table, begins: pa.Table, left: Ints, right: Ints) -> tuple[tuple[Ints, Ints], Ints, Ints]:
    """Return the pairs of equal rows at the same place, and the indices of the other rows.

    No pairs if fewer than half of the rows are equal there in the first column.
    """
    shared = min(len(left), len(right))
    equal = np.ones(shared, np.bool_)
    for name in ends.column_names:
        equal &= equal_rows(ends, begins, left[:shared], right[:shared], [name])
        if 2 * int(equal.sum()) < shared:
            return (left[:0], right[:0]), left, right
    places = np.flatnonzero(equal)
    return (left[places], right[places]), np.delete(left, places), np.delete(right, places)


def equal_groups(rows: pa.Table, hashes: Hashes) -> Ints:
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
