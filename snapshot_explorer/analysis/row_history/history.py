"""The history of rows: plans it, reads it, and says from when to when each state of a row was there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.diff.diff import memory_bytes
from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.row_history.history_columns import HistoryColumns
from snapshot_explorer.analysis.row_history.history_result import RowHistory, RowHistoryPlan, history_schema
from snapshot_explorer.analysis.row_history.planning import plan_splits
from snapshot_explorer.analysis.row_history.reading import HistoryScan, RowStates, UnreadableSplitsError, read_states
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import gaps_note
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.results.stored_rows import StoredRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapshot_explorer.analysis.row_history.history_result import RowHistoryRequest
    from snapshot_explorer.analysis.row_history.planning import SplitHistory
    from snapshot_explorer.core.errors import SnapshotExplorerError
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.history import History

_HELD_BYTES = 256 * 2**20
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
    return _Reader(source, request, between).plan()


def row_history(
    source: History,
    request: RowHistoryRequest,
    between: Sequence[int] | None = None,
    *,
    memory_limit: int | None = None,
) -> RowHistory:
    """Return the states of rows; see `Table.row_history`. Arguments as for `plan_row_history`."""
    limit = memory_bytes(memory_limit)
    reader = _Reader(source, request, between)
    while True:
        plan = reader.plan()
        try:
            return reader.read(plan, limit)
        except UnreadableSplitsError as error:
            reader.leave_out(error.reasons)


class _Reader:
    def __init__(self, source: History, request: RowHistoryRequest, between: Sequence[int] | None) -> None:
        versions = source.versions_among(between)
        reference = source.format.version(versions[-1])
        schema = reference.arrow_schema
        where = None if request.where is None else parse_condition(request.where, schema)
        names = check_names(request.columns, schema.names, "columns") or tuple(schema.names)
        affected = affected_versions(source.format, where, versions[-1], last=versions[-1])
        known = affected.lifetimes.versions
        chosen = frozenset(versions)
        positions = [index for index, number in enumerate(known) if number in chosen]
        if not positions:
            raise source.vanished()
        more = sorted(where.columns - set(names)) if where else []
        ends = known[positions[0]], known[positions[-1]]
        columns = HistoryColumns(source, reference, [*names, *more], [start for start, _ in affected.schemas], ends)
        self._source = source
        self._request = request
        self._affected = affected
        self._requested = versions
        self._names = names
        self._columns = columns
        self._where: Condition | None = where and parse_condition(where.text, columns.schema)
        self._known = known
        self._planned = plan_splits(source, affected, positions, columns, self._where)
        self._unreadable: dict[int, SnapshotExplorerError] = dict(self._planned.unreadable)
        self._positions = positions
        self._leave_out_missing()

    def _leave_out_missing(self) -> None:
        """Leave out the versions with a missing data file, where a check is fast."""
        storage, splits = self._source.format.storage, self._planned.splits
        missing = set(storage.missing([path for item in splits for path in item.split.files]))
        lost = [item for item in splits if not missing.isdisjoint(item.split.files)] if missing else []
        error = CorruptTableError("data files are missing")
        self._leave_out([(item, error) for item in lost], range(len(self._known)))

    def leave_out(self, reasons: Sequence[tuple[SplitHistory, SnapshotExplorerError]]) -> None:
        """Leave out the versions that have a split of the last plan, which cannot be read."""
        self._leave_out(reasons, self._kept)

    def _leave_out(
        self, reasons: Sequence[tuple[SplitHistory, SnapshotExplorerError]], positions: Sequence[int]
    ) -> None:
        for item, error in reasons:
            for state in item.states:
                self._unreadable |= dict.fromkeys(positions[state.first : state.last], error)

    @property
    def _kept(self) -> list[int]:
        """The positions of the versions that can be read."""
        result = [position for position in self._positions if position not in self._unreadable]
        if not result:
            raise self._unreadable[self._positions[-1]]
        return result

    def plan(self) -> RowHistoryPlan:
        source, kept = self._source, self._kept
        versions = tuple(self._known[position] for position in kept)
        return RowHistoryPlan(
            path=source.path,
            name=source.name,
            format=source.format.name,
            open_expression=source.open_expression,
            request=self._request,
            versions=versions,
            span=source.span_text(versions),
            columns=pa.schema([self._columns.schema.field(name) for name in self._names]),
            splits=tuple(self._planned.at(kept)),
            all_files=self._affected.files,
            notes=self._notes(versions),
        )

    def _notes(self, versions: Sequence[int]) -> tuple[str, ...]:
        lifetimes, chosen = self._affected.lifetimes, frozenset(self._requested)
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

    def read(self, plan: RowHistoryPlan, limit: int) -> RowHistory:
        """Return the states. Reads each split once."""
        scan = HistoryScan(splits=plan.splits, schema=plan.columns, where=self._where, count=len(plan.versions))
        periods = self._periods(plan)
        schema, count = history_schema(plan.columns), 0
        stored = StoredRows(schema, limit_bytes=min(limit, _HELD_BYTES))

        def keep(states: RowStates) -> None:
            nonlocal count
            count += len(states.first)
            stored.add(periods.applied_to(states, schema))

        with stored:
            read_states(scan, keep, memory_limit=limit)
        is_small = count <= _ORDERED_ROWS and stored.is_in_memory
        return RowHistory(plan=plan, stored=_ordered(stored) if is_small else stored, count=count)

    def _periods(self, plan: RowHistoryPlan) -> _Periods:
        lifetimes, versions = self._affected.lifetimes, plan.versions
        after_gaps = {gap.after for gap in self._source.gaps(versions)}
        times = [None if number in after_gaps else lifetimes.time_of(number) for number in versions]
        # Whether the rows of the first version came with its commit.
        is_whole = versions[0] == lifetimes.versions[0] and self._affected.begins_with_first
        return _Periods(
            numbers=np.asarray(versions, np.int64),
            from_times=pa.array([times[0] if is_whole else None, *times[1:]], frames.UTC_MILLIS),
            to_times=pa.array(times, frames.UTC_MILLIS),
        )


_UNKNOWN = (
    "a row that was there before and after counts as one state, and what changed there counts as changed by the next "
    "version, without a time"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Periods:
    """The versions and times of positions."""

    numbers: npt.NDArray[np.int64]
    from_times: pa.Array
    """When the rows came that begin at each position; null if unknown."""
    to_times: pa.Array
    """When the rows left that end at each position; null if unknown."""

    def applied_to(self, states: RowStates, schema: pa.Schema) -> pa.Table:
        """Return the rows of states with their versions and times."""
        is_there = states.last == len(self.numbers)
        last = np.where(is_there, 0, states.last)
        period = [
            pa.array(self.numbers[states.first]),
            pa.array(self.numbers[last], mask=is_there),
            self.from_times.take(pa.array(states.first)),
            self.to_times.take(pa.array(last, mask=is_there)),
        ]
        return pa.Table.from_arrays([*states.rows.columns, *period], schema=schema)


def _ordered(stored: StoredRows) -> StoredRows:
    """Return states by their first version, then by the version that ended them."""
    rows = pa.concat_tables([stored.schema.empty_table(), *stored.parts()]).combine_chunks()
    first, last = (rows.column(rows.num_columns - index) for index in (4, 3))
    order = np.lexsort((np.asarray(last.fill_null(np.iinfo(np.int64).max)), np.asarray(first)))
    result = StoredRows(stored.schema, limit_bytes=max(1, rows.nbytes) * 2)
    result.add(rows.take(pa.array(order)))
    return result
