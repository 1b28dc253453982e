"""The history of rows: plans it, reads it, and says from when to when each state of a row was there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.row_history.history_columns import HistoryColumns
from snapshot_explorer.analysis.row_history.history_result import (
    HistoryStates,
    RowHistory,
    RowHistoryPlan,
    stored_schema,
)
from snapshot_explorer.analysis.row_history.planning import plan_splits, planned_versions
from snapshot_explorer.analysis.row_history.reading import (
    HistoryScan,
    read_states,
    splits_without_files,
    unreadable_splits,
)
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.records import gaps_note
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.results.stored_rows import StoredRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from snapshot_explorer.analysis.row_history.continuation import RowStates
    from snapshot_explorer.analysis.row_history.history_result import RowHistoryRequest
    from snapshot_explorer.analysis.row_history.planning import PlannedSplits, SplitHistory
    from snapshot_explorer.core.errors import SnapshotExplorerError
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.history import History

_Result = TypeVar("_Result")

HELD_BYTES = 256 * 2**20
"""The maximum number of bytes of states in memory; more are written to a temporary file."""
_ORDERED_ROWS = 100_000
"""The maximum number of states that are sorted by version."""


def plan_row_history(
    source: History, request: RowHistoryRequest, between: Sequence[int] | None = None
) -> RowHistoryPlan:
    """Return what a row history reads. Opens no data file.

    Args:
        between: Consecutive versions; None for all.
    """
    return HistoryReader(source, request, between).plan()


class HistoryReader:
    """Plans and reads the states of rows of consecutive versions, without the versions that cannot be read."""

    def __init__(
        self,
        source: History,
        request: RowHistoryRequest,
        between: Sequence[int] | None,
        *,
        without_columns: bool = False,
        are_required: bool = True,
    ) -> None:
        """Read the log once, with the statistics of the condition's columns.

        Args:
            between: Consecutive versions; None for all.
            without_columns: Whether the states have no columns, and are only counted; instead of the request's.
            are_required: As in `HistoryColumns`; versions with other types are then left out.
        """
        versions = source.versions_among(between)
        reference = source.format.version(versions[-1])
        schema = reference.arrow_schema
        where = None if request.where is None else parse_condition(request.where, schema)
        chosen_names = check_names(request.columns, schema.names, "columns") or tuple(schema.names)
        names = () if without_columns else chosen_names
        affected = affected_versions(source.format, where, versions[-1], last=versions[-1])
        known = affected.lifetimes.versions
        chosen = frozenset(versions)
        positions = [index for index, number in enumerate(known) if number in chosen]
        if not positions:
            raise source.vanished()
        more = sorted(where.columns - set(names)) if where else []
        ends = known[positions[0]], known[positions[-1]]
        starts = [start for start, _ in affected.schemas]
        columns = HistoryColumns(source, reference, [*names, *more], starts, ends, are_required=are_required)
        self.affected = affected
        """The versions that can have changed rows, and the lifetimes of all files."""
        self._source = source
        self._request = request
        self._requested = versions
        self._names = names
        self._columns = columns
        self._where: Condition | None = where and parse_condition(where.text, columns.schema)
        self._known = known
        self._positions = positions
        self._unreadable: dict[int, SnapshotExplorerError] = {}

    @property
    def plans(self) -> int:
        """The number of versions that are planned. Reads nothing."""
        return planned_versions(self._source, self.affected, self._positions)

    @cached_property
    def _planned(self) -> PlannedSplits:
        """The splits of all versions; leaves out those that cannot be planned, or lack a local file."""
        planned = plan_splits(self._source, self.affected, self._positions, self._columns.of, self._where)
        self._unreadable |= planned.unreadable
        if self._source.format.storage.is_local:
            self._leave_out(splits_without_files(planned.splits), range(len(self._known)))
        return planned

    @property
    def unreadable(self) -> Mapping[int, SnapshotExplorerError]:
        """The versions that are left out because they cannot be read, and why."""
        return {self._known[position]: error for position, error in self._unreadable.items()}

    @property
    def nothing_is_readable(self) -> bool:
        """Whether all versions were left out."""
        return self._unreadable.keys() >= set(self._positions)

    def read(self, read: Callable[[RowHistoryPlan], _Result]) -> _Result:
        """Return the result of a function of the plan; without the versions of the splits that it cannot read.

        Args:
            read: Reads the splits, and is called again with the plan of the versions that are left.
        """
        while True:
            plan = self.plan()
            try:
                return read(plan)
            except UNREADABLE:
                reasons = list(unreadable_splits(self.scan(plan)))
                if not reasons:
                    raise
                self._leave_out(reasons, self._kept)

    def _leave_out(
        self, reasons: Iterable[tuple[SplitHistory, SnapshotExplorerError]], positions: Sequence[int]
    ) -> None:
        for item, error in reasons:
            for state in item.states:
                self._unreadable |= dict.fromkeys(positions[state.first : state.last], error)

    @property
    def _kept(self) -> list[int]:
        """The positions of the versions that can be read."""
        if self.nothing_is_readable:
            raise self._unreadable[self._positions[-1]]
        return [position for position in self._positions if position not in self._unreadable]

    def plan(self) -> RowHistoryPlan:
        """Return what is read. Plans a few versions that have every file.

        Raises:
            SnapshotExplorerError: No version can be read: why the last one cannot.
        """
        source, planned, kept = self._source, self._planned, self._kept
        versions = tuple(self._known[position] for position in kept)
        return RowHistoryPlan(
            path=source.path,
            name=source.name,
            format=source.format.name,
            open_expression=source.open_expression,
            request=self._request,
            versions=versions,
            span=source.span_text(versions),
            columns=self.schema,
            splits=tuple(planned.at(kept)),
            all_files=self.affected.files,
            notes=self._notes(versions),
        )

    def _notes(self, versions: Sequence[int]) -> tuple[str, ...]:
        lifetimes, chosen = self.affected.lifetimes, frozenset(self._requested)
        before = lifetimes.before_note if self._requested[0] <= lifetimes.versions[0] else None
        reasons: Mapping[int, SnapshotExplorerError] = {
            **{version: error for version, error in lifetimes.unread.items() if version in chosen},
            **{
                self._known[position]: error
                for position, error in self._unreadable.items()
                if self._known[position] in chosen
            },
        }
        notes = [] if before is None else [before]
        notes += gaps_note(self._source.gaps(versions), _UNKNOWN)
        return (*notes, *unread_notes(reasons))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the states, with the names of the last version, each in a type that has the values of all."""
        return pa.schema([self._columns.schema.field(name) for name in self._names])

    def scan(self, plan: RowHistoryPlan, *, are_joined: bool = True) -> HistoryScan:
        """Return the states of a plan; `are_joined` as in `HistoryScan`."""
        return HistoryScan(
            splits=plan.splits,
            schema=plan.columns,
            where=self._where,
            count=len(plan.versions),
            are_joined=are_joined,
        )

    def history(self, plan: RowHistoryPlan, limit: int) -> RowHistory:
        """Return the states of a plan. Reads each split once."""
        periods = self.periods(plan)
        schema, count = stored_schema(plan.columns), 0
        stored = StoredRows(schema, limit_bytes=min(limit, HELD_BYTES))

        def keep(states: RowStates) -> None:
            nonlocal count
            count += len(states.first)
            stored.add(periods.applied_to(states, schema))

        with stored:
            read_states(self.scan(plan), keep, memory_limit=limit)
        result = RowHistory(plan=plan, states=HistoryStates(stored, count))
        if count > _ORDERED_ROWS or not stored.is_in_memory:
            return result
        rows = result.ordered()
        stored = StoredRows(rows.schema, limit_bytes=max(1, rows.nbytes) * 2)
        stored.add(rows)
        return replace(result, states=HistoryStates(stored, count))

    def periods(self, plan: RowHistoryPlan) -> Periods:
        """Return the versions and times of the positions in a plan."""
        lifetimes, versions = self.affected.lifetimes, plan.versions
        after_gaps = {gap.after for gap in self._source.gaps(versions)}
        times = [None if number in after_gaps else lifetimes.time_of(number) for number in versions]
        # Whether the rows of the first version came with its commit.
        is_whole = versions[0] == lifetimes.versions[0] and self.affected.begins_with_first
        return Periods(
            numbers=np.asarray(versions, np.int64),
            from_times=pa.array([times[0] if is_whole else None, *times[1:]], frames.UTC_MILLIS),
            to_times=pa.array(times, frames.UTC_MILLIS),
        )


_UNKNOWN = (
    "a row that was there before and after counts as one state, and what changed there counts as changed by the next "
    "version, without a time"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """The versions and times of positions."""

    numbers: npt.NDArray[np.int64]
    from_times: pa.Array
    """When the rows came that begin at each position; null if unknown."""
    to_times: pa.Array
    """When the rows left that end at each position; null if unknown."""

    def applied_to(self, states: RowStates, schema: pa.Schema) -> pa.Table:
        """Return the rows of states with their versions, times and order."""
        is_there = states.last == len(self.numbers)
        last = np.where(is_there, 0, states.last)
        period = [
            pa.array(self.numbers[states.first]),
            pa.array(self.numbers[last], mask=is_there),
            self.from_times.take(pa.array(states.first)),
            self.to_times.take(pa.array(last, mask=is_there)),
            pa.array(states.order),
        ]
        return pa.Table.from_arrays([*states.rows.columns, *period], schema=schema)
