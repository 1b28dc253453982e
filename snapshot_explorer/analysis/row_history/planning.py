"""The splits from which the history of rows is read, each with the versions that have its rows. Opens no data file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from snapshot_explorer.analysis.diff.diff_plan import predicate_of
from snapshot_explorer.analysis.row_history.group_states import WHOLE_TABLE, file_groups, group_states
from snapshot_explorer.core.errors import UNREADABLE, SnapshotExplorerError
from snapshot_explorer.core.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns
    from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions
    from snapshot_explorer.analysis.row_history.group_states import GroupStates, Ints
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
    is_live: bool = True
    """Whether the versions have rows of the split; otherwise its file only stores them, for `with_deleted`."""


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
        return not others and state.is_live and state.deletes is None and not state.lacking


@dataclass(slots=True, kw_only=True)
class PlannedSplits:
    """The splits of a history of rows, at positions of the versions whose files are known."""

    splits: list[SplitHistory] = field(default_factory=list)
    unreadable: dict[int, SnapshotExplorerError] = field(default_factory=dict)
    """The positions of versions that cannot be planned, and why."""
    files: set[str] = field(default_factory=set)
    """The files of the versions that were planned, whether or not they can have matching rows."""
    skipped: list[tuple[str, int, int]] = field(default_factory=list)
    """Live files that readers leave out until a compaction, each with a range of positions. Only `with_deleted`."""

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
    columns_of: Callable[[TableVersion], AlignedColumns],
    where: Condition | None,
    *,
    with_deleted: bool = False,
) -> PlannedSplits:
    """Return the splits that contain every matching row of versions. Plans a few versions that have every file.

    Args:
        positions: The positions of the versions among those of the lifetimes, ascending.
        columns_of: Returns the columns of a version, mapped to the columns of the history.
        where: The condition, in the columns of the history.
        with_deleted: Whether to return splits of matching rows that no version has, too: all rows of a data file with
            deletes are then in a raw split.
    """
    groups, affected = _grouped(source, affected, positions)
    planner = _Planner(source, affected, columns_of, where, with_deleted=with_deleted)
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
    is_live: bool
    """Whether the version may have a matching row of it."""
    keys: tuple[Hashable, ...]
    """What is read of each column; None for columns that the version lacks, unless the condition reads them."""


@dataclass(slots=True)
class _PlannedVersion:
    """The splits of a version."""

    variants: defaultdict[int, list[tuple[Hashable, _Variant]]] = field(default_factory=lambda: defaultdict(list))
    """By group, each with what is equal for all versions that read the same rows."""
    files: set[str] = field(default_factory=set)
    skipped: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By group, the live files that are in no split."""


_AT_ONCE = 8
"""Versions of a remote table that are planned at the same time."""


class _Planner:
    def __init__(
        self,
        source: History,
        affected: AffectedVersions,
        columns_of: Callable[[TableVersion], AlignedColumns],
        where: Condition | None,
        *,
        with_deleted: bool,
    ) -> None:
        rows = affected.lifetimes.intervals.rows
        self._source = source
        self._versions = affected.lifetimes.versions
        self._paths = affected.lifetimes.intervals.paths(rows).to_pylist()
        self._first, self._last = (rows.column(name).to_numpy() for name in ("first", "last"))
        self._admits = affected.admits
        self._with_deleted = with_deleted
        self._columns_of = columns_of
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
                    version = planned[position]
                    if version is None:
                        continue
                    result.files |= version.files
                    covered = np.flatnonzero(is_open & (states.first <= position) & (position < states.last))
                    for index in covered.tolist():
                        group, first, last = (int(part[index]) for part in (states.group, states.first, states.last))
                        for key, variant in version.variants.get(group, ()):
                            ranges[key].append((variant, first, last))
                        result.skipped += [(path, first, last) for path in version.skipped.get(group, ())]
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
    ) -> dict[int, _PlannedVersion | None]:
        """Return the splits of versions by group, of several at the same time on remote storage."""
        storage = self._source.format.storage
        result: dict[int, _PlannedVersion | None] = {}
        for start in range(0, len(positions), _AT_ONCE):
            chosen = positions[start : start + _AT_ONCE]
            calls = [partial(self._variants, position, by_path, failed) for position in chosen]
            result |= zip(chosen, storage.together(*calls), strict=True)
        return result

    def _variants(
        self, position: int, by_path: Mapping[str, int], failed: dict[int, SnapshotExplorerError]
    ) -> _PlannedVersion | None:
        """Return the splits of a version; None, with the reason in `failed`, if it cannot be planned."""
        try:
            version = self._source.format.version(self._versions[position])
            columns = self._columns_of(version)
            predicate = predicate_of(self._where, columns, version, of_a=True)
            parts = list(self._parts(version, predicate, position))
        except UNREADABLE as error:
            failed[position] = error
            return None
        result = _PlannedVersion()
        is_whole = set(by_path.values()) <= {WHOLE_TABLE}
        for part, is_live in parts:
            result.files.update(part.files)
            names = {WHOLE_TABLE} if is_whole else {by_path.get(path) for path in part.files}
            (group,) = names if len(names) == 1 else (None,)
            if group is None:
                raise _SeveralGroupsError
            for read, deletes, has_rows in self._reads(version, part, is_live=is_live):
                variant = self._variant(version, columns, read, deletes, predicate, is_live=has_rows)
                result.variants[group].append(variant)
        if self._with_deleted:
            for row in np.flatnonzero((self._first <= position) & (position < self._last)).tolist():
                if self._paths[row] not in result.files:
                    result.skipped[by_path[self._paths[row]]].append(self._paths[row])
        return result

    def _parts(self, version: TableVersion, predicate: Condition | None, position: int) -> Iterator[tuple[Split, bool]]:
        """Yield the parts of a version, and whether they may have matching rows; with deleted rows, all parts."""
        # Deleted rows may match where no live row does: statistics of the lifetimes tell which files have live ones.
        plan = version.plan(None if self._with_deleted else predicate)
        parts = (part for split in plan.splits for part in version.split_by_file(split))
        if not self._with_deleted or predicate is None:
            yield from ((part, True) for part in parts)
            return
        is_admitted = self._admits & (self._first <= position) & (position < self._last)
        admitted = {self._paths[row] for row in np.flatnonzero(is_admitted).tolist()}
        yield from ((part, len(part.files) > 1 or not admitted.isdisjoint(part.files)) for part in parts)

    def _reads(
        self, version: TableVersion, part: Split, *, is_live: bool
    ) -> Iterator[tuple[Split, Split | None, bool]]:
        """Yield what to read for a part: splits, the split whose deletes are applied, and whether rows may be live."""
        identity = version.row_identity
        if part.raw:
            if is_live:
                yield part, None, True
            return
        stored = identity.stored_rows(part) if len(part.files) == 1 else None
        if is_live and (stored is None or not identity.has_deleted_positions(part)):
            yield part, None, True
        elif is_live and stored is not None:
            yield stored, None if stored.identity == part.identity else part, True
            return
        if self._with_deleted and stored is not None:
            yield stored, None, False

    def _variant(
        self,
        version: TableVersion,
        columns: AlignedColumns,
        read: Split,
        deletes: Split | None,
        predicate: Condition | None,
        *,
        is_live: bool,
    ) -> tuple[Hashable, _Variant]:
        identity = version.row_identity
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
        return key, _Variant(version, columns, read, deletes, lacking, predicate, is_live, keys)


def _split_histories(ranges: Sequence[tuple[_Variant, int, int]]) -> Iterator[SplitHistory]:
    """Yield the reads of one file: one, unless schemas read a column in different ways."""
    left = sorted(ranges, key=lambda item: (len(item[0].lacking), item[1]))
    while left:
        reader = left[0][0]
        own = [item for item in left if _reads_the_same(item[0], reader)]
        left = [item for item in left if not _reads_the_same(item[0], reader)]
        states = [
            SplitState(
                first=first,
                last=last,
                deletes=variant.deletes,
                lacking=variant.lacking.difference(reader.lacking),
                is_live=variant.is_live,
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
    return None if state.deletes is None else state.deletes.identity, state.lacking, state.is_live
