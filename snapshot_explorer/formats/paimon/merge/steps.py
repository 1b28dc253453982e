"""The actions of each row on each column, for the merge engines that combine several rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes
from snapshot_explorer.formats.paimon.merge.rules import Aggregation, Function, PartialUpdate, SequenceGroup

RETRACTS = (1, 3)
DELETE = 3

SKIP, SET, CLEAR, ADD, ADD_EARLIER, RETRACT = range(6)
"""The actions of a row on a column's value: skip, set (also to null), clear, add to the aggregate, add as an earlier
row, retract."""

Actions = npt.NDArray[np.int8]


def are_adds(kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of kind +I or +U."""
    added: npt.NDArray[np.bool_] = (kinds != RETRACTS[0]) & (kinds != RETRACTS[1])
    return added


@dataclass(frozen=True, kw_only=True)
class KeyGroups:
    """The rows whose keys are not unique, by key, oldest first within a key."""

    row_numbers: Codes
    groups: Codes
    """The key code of each row, ascending from 0 without gaps."""
    kinds: npt.NDArray[np.int8]

    @cached_property
    def adds(self) -> npt.NDArray[np.bool_]:
        """A mask of the rows of kind +I or +U."""
        return are_adds(self.kinds)

    @cached_property
    def starts(self) -> Codes:
        """The position of the first row of each key."""
        return group_starts(self.groups)

    @cached_property
    def ends(self) -> Codes:
        """The position of the last row of each key."""
        return np.append(self.starts[1:], len(self.groups))[: len(self.starts)] - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSteps:
    """The actions of the rows on one column."""

    actions: Actions
    function: Function | None = None
    """The aggregate function of ADD, ADD_EARLIER and RETRACT."""
    begins: npt.NDArray[np.bool_] | None = None
    """For each key, whether the initial value is the first row's, before its action; None for never."""
    nullable: bool = True
    """Whether nulls are allowed. Otherwise, the rows in `checked` are checked."""
    checked: npt.NDArray[np.bool_] | None = None
    """For each row, whether a null in a NOT NULL column raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The actions of the rows on all columns, and the keys that remain."""

    columns: Mapping[str, ColumnSteps]
    left: npt.NDArray[np.bool_]
    """For each key, whether it has a row after merging."""


def group_starts(codes: Codes) -> Codes:
    """Return the start of each run of equal codes."""
    if not len(codes):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))


def aggregation_steps(engine: Aggregation, rows: pa.Table, key_groups: KeyGroups, names: Sequence[str]) -> Steps:
    """Return the actions of the rows on these columns.

    Source: paimon AggregateMergeFunction.
    """
    actions = np.where(key_groups.adds, np.int8(ADD), np.int8(RETRACT))
    removed = (key_groups.kinds == DELETE) & engine.remove_on_delete
    actions = np.where(removed, np.int8(SET), actions)
    columns = {
        name: ColumnSteps(
            actions=actions,
            function=engine.functions[name],
            nullable=rows.schema.field(name).nullable,
            checked=removed if engine.remove_on_delete else None,
        )
        for name in names
    }
    return Steps(columns=columns, left=~removed[key_groups.ends])


_Flags = npt.NDArray[np.bool_]
_EMPTY, _OLDER, _NEWER = range(3)


def partial_update_steps(
    engine: PartialUpdate, rows: pa.Table, key_groups: KeyGroups, names: Sequence[str], *, ignore_delete: bool
) -> Steps:
    """Return the actions of the rows on these columns.

    A key whose first row is a retract starts with all values of that row, even if the retract is ignored.

    Raises:
        CorruptBytesError: There are retracts, but no option for them.

    Source: paimon PartialUpdateMergeFunction.
    """
    retracts = ~key_groups.adds
    if retracts.any() and not (ignore_delete or engine.groups or engine.remove_on_delete):
        raise CorruptBytesError(
            "a table with merge-engine=partial-update contains rows of kind -U or -D, but neither ignore-delete, "
            "partial-update.remove-record-on-delete nor a sequence group is set"
        )
    obeyed = retracts & (not ignore_delete)
    ages, removed = _ages(engine, rows, key_groups, obeyed)
    if engine.remove_on_delete:
        removed = key_groups.kinds == DELETE
    begins = retracts[key_groups.starts]
    adds_seen = (
        np.logical_or.reduceat(key_groups.adds, key_groups.starts) if len(key_groups.starts) else np.zeros(0, bool)
    )
    columns = {}
    for name in names:
        field = rows.schema.field(name)
        ungrouped = not engine.groups
        checked = removed.copy()
        checked[key_groups.starts[begins]] = True
        columns[name] = ColumnSteps(
            actions=_actions(engine, name, rows, key_groups, ages, obeyed, removed),
            function=engine.functions.get(name),
            begins=begins,
            nullable=field.nullable,
            checked=checked | (key_groups.adds & ungrouped),
        )
    return Steps(columns=columns, left=adds_seen & ~removed[key_groups.ends])


def _actions(
    engine: PartialUpdate,
    name: str,
    rows: pa.Table,
    key_groups: KeyGroups,
    ages: Sequence[Actions],
    obeyed: _Flags,
    removed: _Flags,
) -> Actions:
    actions = np.zeros(len(key_groups.row_numbers), np.int8)
    for group, age in zip(engine.groups, ages, strict=True):
        if name in group.order:
            actions[(key_groups.adds | obeyed) & (age == _NEWER)] = SET
            break
        if name in group.fields:
            folded = name in engine.functions
            actions[key_groups.adds & (age == _NEWER)] = ADD if folded else SET
            actions[key_groups.adds & (age == _OLDER)] = ADD_EARLIER if folded else SKIP
            actions[obeyed & (age == _NEWER)] = RETRACT if folded else CLEAR
            actions[obeyed & (age == _OLDER)] = RETRACT if folded else SKIP
            break
    else:
        valid = np.asarray(rows.column(name).is_valid()).astype(bool)[key_groups.row_numbers]
        actions[key_groups.adds & valid] = SET
    actions[removed] = SET
    return actions


def _ages(engine: PartialUpdate, rows: pa.Table, key_groups: KeyGroups, obeyed: _Flags) -> tuple[list[Actions], _Flags]:
    """Return per group the comparison of each row with the current state, and the rows that remove their record."""
    removed = np.zeros(len(key_groups.row_numbers), bool)
    ages: list[Actions] = []
    ranks: list[Codes] = []
    for group in engine.groups:
        if not set(group.order) <= set(rows.column_names):  # none of its columns is requested
            ages.append(np.zeros(len(key_groups.row_numbers), np.int8))
            ranks.append(np.full(len(key_groups.row_numbers), -1, np.int64))
            continue
        rank = _ranks(group, rows, key_groups)
        ranks.append(rank)
        is_counted = key_groups.adds | obeyed
        is_counted[key_groups.starts] = True  # a retract as the first row sets the state, even if it is ignored
        ages.append(_running(rank, key_groups, is_counted))
    if any(group.removes for group in engine.groups):
        _remove(engine.groups, ranks, ages, removed, key_groups)
    return ages, removed


def _ranks(group: SequenceGroup, rows: pa.Table, key_groups: KeyGroups) -> Codes:
    """Return a code per row, in the order of its sequence fields; -1 where all are null."""
    columns = [rows.column(name).take(pa.array(key_groups.row_numbers)) for name in group.order]
    codes = [order_codes(column) for column in columns]
    order = np.lexsort(codes[::-1])
    steps = np.any([code[order][1:] != code[order][:-1] for code in codes], axis=0)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.concatenate([np.zeros(min(len(order), 1), np.int64), np.cumsum(steps)])
    empty = np.all([np.asarray(column.is_null()).astype(bool) for column in columns], axis=0)
    return np.where(empty, np.int64(-1), ranks)


def _running(ranks: Codes, key_groups: KeyGroups, counted: _Flags) -> Actions:
    """Return the comparison of each row with the maximum previous row of its key."""
    seen = np.where(counted, ranks, np.int64(-1)) + 1
    width = int(seen.max(initial=0)) + 1
    maximum = np.maximum.accumulate(seen + key_groups.groups * width) - key_groups.groups * width
    age = np.where(seen >= maximum, np.int8(_NEWER), np.int8(_OLDER))
    return np.where(ranks < 0, np.int8(_EMPTY), age)


def _remove(
    groups: Sequence[SequenceGroup],
    ranks: Sequence[Codes],
    ages: Sequence[Actions],
    removed: _Flags,
    key_groups: KeyGroups,
) -> None:
    """Process keys with deletes row by row: a delete that removes the record sets the state of every group."""
    deletes = key_groups.kinds == DELETE
    for key in np.unique(key_groups.groups[deletes]).tolist():
        first, last = int(key_groups.starts[key]), int(key_groups.ends[key])
        state = [-1] * len(groups)
        if not key_groups.adds[first]:
            state = [int(rank[first]) for rank in ranks]
        for row in range(first, last + 1):
            row_ranks = [int(rank[row]) for rank in ranks]
            newer = [own_rank >= now for own_rank, now in zip(row_ranks, state, strict=True)]
            if deletes[row] and any(
                group.removes and own_rank >= 0 and new
                for group, own_rank, new in zip(groups, row_ranks, newer, strict=True)
            ):
                removed[row] = True
                state = row_ranks
                continue
            for age, own_rank, new in zip(ages, row_ranks, newer, strict=True):
                age[row] = _EMPTY if own_rank < 0 else _NEWER if new else _OLDER
            state = [
                own_rank if new and own_rank >= 0 else now
                for own_rank, now, new in zip(row_ranks, state, newer, strict=True)
            ]
