"""What each row of a key does to each column: the common ground of the engines that make rows out of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.formats.paimon.merge.engines import Aggregation, Function, PartialUpdate, SequenceGroup
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes

RETRACTS = (1, 3)
"""Row kinds -U and -D."""
DELETE = 3
"""Row kind -D."""

SKIP, SET, CLEAR, ADD, ADD_EARLIER, RETRACT = range(6)
"""What a row does to a column's value: nothing, replace it (also by null), make it null, be aggregated, be aggregated
as if it had come before, be taken back."""

Actions = npt.NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class KeyGroups:
    """The rows whose keys have others: by key, and oldest first within a key."""

    places: Codes
    """Their row numbers."""
    groups: Codes
    """The number of each one's key, ascending from 0 without gaps."""
    kinds: npt.NDArray[np.int8]
    """Their row kinds."""

    @cached_property
    def adds(self) -> npt.NDArray[np.bool_]:
        """Whether each row is one of kind +I or +U."""
        added: npt.NDArray[np.bool_] = ~np.isin(self.kinds, RETRACTS)
        return added

    @cached_property
    def starts(self) -> Codes:
        """Where each key's rows begin."""
        return group_starts(self.groups)

    @cached_property
    def ends(self) -> Codes:
        """Where each key's last row is."""
        return np.append(self.starts[1:], len(self.groups))[: len(self.starts)] - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSteps:
    """What the rows do to one column."""

    actions: Actions
    """SKIP, SET, ... for each row of the crowd."""
    function: Function | None = None
    """The aggregate function that ADD, ADD_EARLIER and RETRACT ask."""
    begins: npt.NDArray[np.bool_] | None = None
    """For each key, whether the value begins as that of the first row, before that row acts; None for never."""
    nullable: bool = True
    """Whether rows may hold nulls; they are checked where `checked` says so."""
    checked: npt.NDArray[np.bool_] | None = None
    """For each row, whether a null of it is refused in a column that allows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the rows do to all columns, and which keys are left."""

    columns: Mapping[str, ColumnSteps]
    """By the columns' names."""
    left: npt.NDArray[np.bool_]
    """For each key, whether it has a row in the end."""


def group_starts(codes: Codes) -> Codes:
    """Return where each run of equal codes begins."""
    if not len(codes):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))


def aggregation_steps(engine: Aggregation, rows: pa.Table, crowd: KeyGroups, names: Sequence[str]) -> Steps:
    """Return what the rows do to these columns.

    Source: paimon AggregateMergeFunction.
    """
    actions = np.where(crowd.adds, np.int8(ADD), np.int8(RETRACT))
    removed = (crowd.kinds == DELETE) & engine.remove_on_delete
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
    return Steps(columns=columns, left=~removed[crowd.ends])


_Flags = npt.NDArray[np.bool_]
_EMPTY, _OLDER, _NEWER = range(3)


def partial_update_steps(
    engine: PartialUpdate, rows: pa.Table, crowd: KeyGroups, names: Sequence[str], *, ignore_delete: bool
) -> Steps:
    """Return what the rows do to these columns.

    A key that begins with a retract begins with all its values, whatever becomes of the retract itself.

    Raises:
        CorruptBytesError: There are retracts, and no option says what becomes of them.

    Source: paimon PartialUpdateMergeFunction.
    """
    retracts = ~crowd.adds
    if retracts.any() and not (ignore_delete or engine.groups or engine.remove_on_delete):
        raise CorruptBytesError(
            "a table of partial updates holds rows of kind -U or -D, and neither ignore-delete, "
            "partial-update.remove-record-on-delete nor a sequence group says what becomes of them"
        )
    obeyed = retracts & (not ignore_delete)
    ages, removed = _ages(engine, rows, crowd, obeyed)
    if engine.remove_on_delete:
        removed = crowd.kinds == DELETE
    begins = retracts[crowd.starts]
    adds_seen = np.logical_or.reduceat(crowd.adds, crowd.starts) if len(crowd.starts) else np.zeros(0, bool)
    columns = {}
    for name in names:
        field = rows.schema.field(name)
        alone = not engine.groups
        checked = removed.copy()
        checked[crowd.starts[begins]] = True
        columns[name] = ColumnSteps(
            actions=_actions(engine, name, rows, crowd, ages, obeyed, removed),
            function=engine.functions.get(name),
            begins=begins,
            nullable=field.nullable,
            checked=checked | (crowd.adds & alone),
        )
    return Steps(columns=columns, left=adds_seen & ~removed[crowd.ends])


def _actions(
    engine: PartialUpdate,
    name: str,
    rows: pa.Table,
    crowd: KeyGroups,
    ages: Sequence[Actions],
    obeyed: _Flags,
    removed: _Flags,
) -> Actions:
    actions = np.zeros(len(crowd.places), np.int8)
    for group, age in zip(engine.groups, ages, strict=True):
        if name in group.order:
            actions[(crowd.adds | obeyed) & (age == _NEWER)] = SET
            break
        if name in group.fields:
            folded = name in engine.functions
            actions[crowd.adds & (age == _NEWER)] = ADD if folded else SET
            actions[crowd.adds & (age == _OLDER)] = ADD_EARLIER if folded else SKIP
            actions[obeyed & (age == _NEWER)] = RETRACT if folded else CLEAR
            actions[obeyed & (age == _OLDER)] = RETRACT if folded else SKIP
            break
    else:
        valid = np.asarray(rows.column(name).is_valid()).astype(bool)[crowd.places]
        actions[crowd.adds & valid] = SET
    actions[removed] = SET
    return actions


def _ages(engine: PartialUpdate, rows: pa.Table, crowd: KeyGroups, obeyed: _Flags) -> tuple[list[Actions], _Flags]:
    """Return for each group how each row stands to the present state, and which rows remove their record."""
    removed = np.zeros(len(crowd.places), bool)
    ages: list[Actions] = []
    ranks: list[Codes] = []
    for group in engine.groups:
        if not set(group.order) <= set(rows.column_names):  # none of its columns is asked for
            ages.append(np.zeros(len(crowd.places), np.int8))
            ranks.append(np.full(len(crowd.places), -1, np.int64))
            continue
        rank = _ranks(group, rows, crowd)
        ranks.append(rank)
        counted = crowd.adds | obeyed
        counted[crowd.starts] = True  # a retract in the beginning sets the state, obeyed or not
        ages.append(_running(rank, crowd, counted))
    if any(group.removes for group in engine.groups):
        _remove(engine.groups, ranks, ages, removed, crowd)
    return ages, removed


def _ranks(group: SequenceGroup, rows: pa.Table, crowd: KeyGroups) -> Codes:
    """Return a number for each row, in the order of its sequence fields; -1 where all of them are null."""
    columns = [rows.column(name).take(pa.array(crowd.places)) for name in group.order]
    codes = [order_codes(column) for column in columns]
    order = np.lexsort(codes[::-1])
    steps = np.any([code[order][1:] != code[order][:-1] for code in codes], axis=0)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.concatenate([np.zeros(min(len(order), 1), np.int64), np.cumsum(steps)])
    empty = np.all([np.asarray(column.is_null()).astype(bool) for column in columns], axis=0)
    return np.where(empty, np.int64(-1), ranks)


def _running(ranks: Codes, crowd: KeyGroups, counted: _Flags) -> Actions:
    """Return how each row stands to the greatest of its key's rows before it."""
    seen = np.where(counted, ranks, np.int64(-1)) + 1
    width = int(seen.max(initial=0)) + 1
    greatest = np.maximum.accumulate(seen + crowd.groups * width) - crowd.groups * width
    age = np.where(seen >= greatest, np.int8(_NEWER), np.int8(_OLDER))
    return np.where(ranks < 0, np.int8(_EMPTY), age)


def _remove(
    groups: Sequence[SequenceGroup], ranks: Sequence[Codes], ages: Sequence[Actions], removed: _Flags, crowd: KeyGroups
) -> None:
    """Go through the keys that have a delete row by row: one that removes the record sets every group's state."""
    deletes = crowd.kinds == DELETE
    for key in np.unique(crowd.groups[deletes]).tolist():
        first, last = int(crowd.starts[key]), int(crowd.ends[key])
        state = [-1] * len(groups)
        if not crowd.adds[first]:
            state = [int(rank[first]) for rank in ranks]
        for row in range(first, last + 1):
            here = [int(rank[row]) for rank in ranks]
            newer = [mine >= now for mine, now in zip(here, state, strict=True)]
            if deletes[row] and any(
                group.removes and mine >= 0 and new for group, mine, new in zip(groups, here, newer, strict=True)
            ):
                removed[row] = True
                state = here
                continue
            for age, mine, new in zip(ages, here, newer, strict=True):
                age[row] = _EMPTY if mine < 0 else _NEWER if new else _OLDER
            state = [mine if new and mine >= 0 else now for mine, now, new in zip(here, state, newer, strict=True)]
