"""The splits from which the history of rows is read, each with the versions that have its rows. Opens no data file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from snapshot_explorer.analysis.diff.diff_plan import predicate_of
from snapshot_explorer.analysis.row_history.group_states import WHOLE_TABLE, file_groups, group_states
from snapshot_explorer.core.errors import UNREADABLE, SnapshotExplorerError
from snapshot_explorer.core.progress import step

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns
    from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions
    from snapshot_explorer.analysis.row_history.group_states import GroupStates, Ints
    from snapshot_explorer.analysis.row_history.history_columns import HistoryColumns
    from snapshot_explorer.core.records import Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitState:
    """A range of positions of versions over which the live rows of a split stay the same."""

    first: int
    last: int
    """The position after the range."""
    deletes: Split | None = None
    """The split whose deletion vector removes rows; None if all rows that are read are live."""
    lacking: frozenset[str] = frozenset()
    """The columns that the versions lack, so that they are null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitHistory:
    """A split that is read once, and the versions that have its rows."""

    version: TableVersion
    """Reads the split."""
    columns: AlignedColumns
    """The mapping of its columns to the columns of the history."""
    split: Split
    """All rows that are live at a version, and maybe deleted ones."""
    states: tuple[SplitState, ...]
    """Ascending, without overlap."""
    predicate: Condition | None
    """The condition in the columns of the version; None without one, or if it does not apply to them."""

    @property
    def is_simple(self) -> bool:
        """Whether all its rows are live over one range."""
        (state, *others) = self.states
        return not others and state.deletes is None and not state.lacking


@dataclass(slots=True, kw_only=True)
class PlannedSplits:
    """The splits of a history of rows, at positions of the versions whose files are known."""

    splits: list[SplitHistory] = field(default_factory=list)
    unreadable: dict[int, SnapshotExplorerError] = field(default_factory=dict)
    """The positions of versions that cannot be planned, and why."""

    def at(self, positions: Sequence[int]) -> list[SplitHistory]:
        """Return the splits of some positions, which are counted from 0 in the result. They ascend."""
        known = np.asarray(positions, np.int64)
        result = []
        for item in self.splits:
            ends = np.searchsorted(known, [(state.first, state.last) for state in item.states]).tolist()
            states = [
                replace(state, first=first, last=last)
                for state, (first, last) in zip(item.states, ends, strict=True)
                if first < last
            ]
            if states:
                result.append(replace(item, states=_joined(states)))
        return sorted(result, key=lambda item: item.states[0].first)


def plan_splits(
    source: History,
    affected: AffectedVersions,
    positions: Sequence[int],
    columns: HistoryColumns,
    where: Condition | None,
) -> PlannedSplits:
    """Return the splits that contain every matching row of versions. Plans a few versions that have every file.

    Args:
        positions: The positions of the versions among those of the lifetimes, ascending.
        where: The condition, in the columns of the history.
    """
    groups, affected = _grouped(source, affected, positions)
    planner = _Planner(source, affected, columns, where)
    try:
        return planner.planned(group_states(affected, groups), groups, positions)
    except _SeveralGroupsError:
        whole = np.full_like(groups, WHOLE_TABLE)
        return planner.planned(group_states(affected, whole), whole, positions)


def planned_versions(source: History, affected: AffectedVersions, positions: Sequence[int]) -> int:
    """Return how many versions `plan_splits` plans if each can be read. Reads nothing."""
    groups, affected = _grouped(source, affected, positions)
    return len(_covering(*_ranges(group_states(affected, groups), positions)))


def _ranges(states: GroupStates, positions: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the ranges of states among some positions; empty for those that are at none of them."""
    known = np.asarray(positions, np.int64)
    return np.searchsorted(known, states.first), np.searchsorted(known, states.last)


def _covering(begin: Ints, end: Ints) -> list[int]:
    """Return the fewest numbers that all ranges contain some of; ranges may be empty."""
    result = [-1]
    for index in np.argsort(end, kind="stable").tolist():
        if begin[index] < end[index] and begin[index] > result[-1]:
            result.append(int(end[index]) - 1)
    return result[1:]


def _grouped(source: History, affected: AffectedVersions, positions: Sequence[int]) -> tuple[Ints, AffectedVersions]:
    """Return the groups of files, and the affected versions with those at which schemas come into force."""
    versions = affected.lifetimes.versions
    reference = source.format.version(versions[positions[-1]])
    groups = file_groups(affected, reference, source.format.row_modifiers())
    # A file is read with the columns of each version's schema.
    starts = np.searchsorted(np.asarray(versions), [start for start, _ in affected.schemas])
    common = tuple(np.union1d(affected.common, starts[starts < len(versions)]).tolist())
    return groups, replace(affected, common=common)


class _SeveralGroupsError(Exception):
    """Files of several groups are read together."""


@dataclass(frozen=True, slots=True)
class _Variant:
    """A split as a version reads it."""

    version: TableVersion
    columns: AlignedColumns
    split: Split
    deletes: Split | None
    lacking: frozenset[str]
    predicate: Condition | None
    keys: tuple[Hashable, ...]
    """What is read of each column; None for columns that the version lacks, unless the condition reads them."""


_Variants: TypeAlias = "Mapping[int, list[tuple[Hashable, _Variant]]]"
"""The splits of a version by group, each with what is equal for all versions that read the same rows."""

_AT_ONCE = 8
"""Versions of a remote table that are planned at the same time."""


class _Planner:
    def __init__(
        self, source: History, affected: AffectedVersions, columns: HistoryColumns, where: Condition | None
    ) -> None:
        self._source = source
        self._versions = affected.lifetimes.versions
        self._paths = affected.lifetimes.intervals.paths(affected.lifetimes.intervals.rows).to_pylist()
        self._columns = columns
        self._where = where
        self._has_one_schema = len({schema for _, schema in affected.schemas}) == 1

    def planned(self, states: GroupStates, groups: Ints, positions: Sequence[int]) -> PlannedSplits:
        """Return the splits of all states of groups.

        Raises:
            _SeveralGroupsError: A version reads files of several groups together.
        """
        by_path = dict(zip(self._paths, groups.tolist(), strict=True))
        known = np.asarray(positions, np.int64)
        begin, end = _ranges(states, positions)
        is_open = begin < end
        result = PlannedSplits()
        ranges: defaultdict[Hashable, list[tuple[_Variant, int, int]]] = defaultdict(list)
        failed: dict[int, SnapshotExplorerError] = {}
        planned = self._planned([positions[index] for index in _covering(begin, end)], by_path, failed)
        with step("Planning versions", total=int(is_open.sum())) as planning:
            for state in np.argsort(end, kind="stable").tolist():
                candidates = known[begin[state] : end[state]][::-1].tolist() if is_open[state] else []
                for position in candidates:
                    if position not in planned:
                        planned[position] = self._variants(position, by_path, failed)
                    variants = planned[position]
                    if variants is None:
                        continue
                    covered = np.flatnonzero(is_open & (states.first <= position) & (position < states.last))
                    for index in covered.tolist():
                        for key, variant in variants.get(int(states.group[index]), ()):
                            ranges[key].append((variant, int(states.first[index]), int(states.last[index])))
                    is_open[covered] = False
                    planning.advance(len(covered))
                    break
                else:
                    result.unreadable |= {position: failed[position] for position in candidates}
        for variants_of_file in ranges.values():
            result.splits += _split_histories(variants_of_file)
        return result

    def _planned(
        self, positions: Sequence[int], by_path: Mapping[str, int], failed: dict[int, SnapshotExplorerError]
    ) -> dict[int, _Variants | None]:
        """Return the splits of versions by group, of several at the same time on remote storage."""
        storage = self._source.format.storage
        result: dict[int, _Variants | None] = {}
        for start in range(0, len(positions), _AT_ONCE):
            chosen = positions[start : start + _AT_ONCE]
            calls = [partial(self._variants, position, by_path, failed) for position in chosen]
            result |= zip(chosen, storage.together(*calls), strict=True)
        return result

    def _variants(
        self, position: int, by_path: Mapping[str, int], failed: dict[int, SnapshotExplorerError]
    ) -> _Variants | None:
        """Return the splits of a version by group; None, with the reason in `failed`, if it cannot be planned."""
        try:
            version = self._source.format.version(self._versions[position])
            columns = self._columns.of(version)
            predicate = predicate_of(self._where, columns, version, of_a=True)
            splits = version.plan(predicate).splits
        except UNREADABLE as error:
            failed[position] = error
            return None
        result: defaultdict[int, list[tuple[Hashable, _Variant]]] = defaultdict(list)
        is_whole = set(by_path.values()) <= {WHOLE_TABLE}
        for part in (part for split in splits for part in version.split_by_file(split)):
            names = {WHOLE_TABLE} if is_whole else {by_path.get(path) for path in part.files}
            (group,) = names if len(names) == 1 else (None,)
            if group is None:
                raise _SeveralGroupsError
            result[group].append(self._variant(version, columns, part, predicate))
        return result

    def _variant(
        self, version: TableVersion, columns: AlignedColumns, split: Split, predicate: Condition | None
    ) -> tuple[Hashable, _Variant]:
        identity = version.row_identity
        stored = identity.stored_rows(split) if not split.raw and identity.has_deleted_positions(split) else None
        read = split if stored is None or stored.identity == split.identity else stored
        deletes = None if read is split else split
        key: Hashable = read.identity
        keys: tuple[Hashable, ...] = ()
        lacking: frozenset[str] = frozenset()
        if not self._has_one_schema:
            names = columns.schema.names
            base = identity.in_columns(read, [], frozenset())
            if base is None:
                key = read.identity, tuple(columns.names_a.items())
            else:
                key = base
                lacking = frozenset(names).difference(columns.names_a)
                # Rows are filtered once: a column of the condition must be the same in all versions.
                fixed = frozenset() if self._where is None else self._where.columns
                keys = tuple(
                    identity.in_columns(read, [columns.names_a[name]], frozenset())
                    if name in columns.names_a
                    else (name if name in fixed else None)
                    for name in names
                )
        return key, _Variant(version, columns, read, deletes, lacking, predicate, keys)


def _split_histories(ranges: Sequence[tuple[_Variant, int, int]]) -> Iterator[SplitHistory]:
    """Yield the reads of one file: one, unless schemas read a column in different ways."""
    left = sorted(ranges, key=lambda item: (len(item[0].lacking), item[1]))
    while left:
        reader = left[0][0]
        own = [item for item in left if _reads_the_same(item[0], reader)]
        left = [item for item in left if not _reads_the_same(item[0], reader)]
        states = [
            SplitState(
                first=first, last=last, deletes=variant.deletes, lacking=variant.lacking.difference(reader.lacking)
            )
            for variant, first, last in own
        ]
        yield SplitHistory(
            version=reader.version,
            columns=reader.columns,
            split=reader.split,
            states=_joined(sorted(states, key=lambda state: state.first)),
            predicate=reader.predicate,
        )


def _reads_the_same(variant: _Variant, reader: _Variant) -> bool:
    """Return whether a variant is what another one reads, apart from columns that it lacks."""
    return all(key is None or key == other for key, other in zip(variant.keys, reader.keys, strict=True))


def _joined(states: Sequence[SplitState]) -> tuple[SplitState, ...]:
    """Return states with adjacent ranges of the same rows joined."""
    result: list[SplitState] = []
    for state in states:
        before = result[-1] if result else None
        if before is not None and before.last == state.first and _rows_of(before) == _rows_of(state):
            result[-1] = replace(before, last=state.last)
        else:
            result.append(state)
    return tuple(result)


def _rows_of(state: SplitState) -> Hashable:
    return None if state.deletes is None else state.deletes.identity, state.lacking
