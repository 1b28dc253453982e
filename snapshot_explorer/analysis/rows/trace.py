"""Find rows of a condition that still exist: versions that return them, data files that store them, deleted or not."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.row_history import HistoryScan
from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.row_history.group_states import Ints, may_store
from snapshot_explorer.analysis.row_history.history_columns import HistoryColumns
from snapshot_explorer.analysis.row_history.planning import PlannedSplits, SplitHistory, plan_splits
from snapshot_explorer.analysis.rows.matching_rows import Counts, count_matches
from snapshot_explorer.analysis.rows.traced_metadata import (
    TracedChangelog,
    TracedMetadata,
    traced_changelogs,
    traced_metadata,
)
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.history.lifetimes import despite_expiry, time_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.history import History
    from snapshot_explorer.history.lifetimes import FileLifetimes

READ, METADATA, MISSING, UNREADABLE_FILE = "read", "metadata", "missing", "unreadable"
_CERTAINTY = {METADATA: 0, READ: 1, MISSING: 2, UNREADABLE_FILE: 3}
_MERGED = "rows of several files are merged, and those that the merge drops were not counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFile:
    """The matching rows in a data file, as far as known."""

    evidence: str
    """READ, METADATA (no row can match; not opened), MISSING or UNREADABLE_FILE."""
    stored_rows: int | None
    """Matching rows in the file, including deleted ones; None if unknown."""
    reason: str | None = None
    """Why the number is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedVersion:
    """The matching rows of a version, as far as known."""

    number: int
    committed_at: datetime | None
    rows: int | None
    """Matching rows that reading it returns; None if unknown."""
    stored_rows: int | None
    """Matching rows in its data files, including deleted ones; None if unknown."""
    reason: str | None = None
    """Why numbers are unknown."""


@dataclass(slots=True, kw_only=True)
class TracedHistory:
    """The matching rows of one history, as far as known: of a table, or a branch of it."""

    versions: list[TracedVersion] = field(default_factory=list)
    """Ascending."""
    files: dict[str, TracedFile] = field(default_factory=dict)
    """By path."""
    bounds_name_value: dict[str, bool | None] = field(default_factory=dict)
    """By path, whether the statistics of a file name a value of the condition; None or no path if unknown."""
    begins_with_first: bool = True
    """Whether the first version's commit added all of its files that can have matching rows."""
    namesakes: dict[str, list[int]] = field(default_factory=dict)
    """For names in the condition, the versions at which another column has the name. Its values were not examined."""
    changelogs: list[TracedChangelog] = field(default_factory=list)
    """By version."""
    metadata: list[TracedMetadata] = field(default_factory=list)
    """Every metadata file with statistics."""
    unread: list[str] = field(default_factory=list)
    """Unreadable metadata that names changelogs or metadata files, a sentence each."""


def trace_history(source: History, where: str, spark: SparkSession | None = None) -> TracedHistory:
    """Return the rows of a condition in a history; see `Table.trace`.

    Args:
        spark: The session whose executors read the data files; None for this machine.
    """
    return despite_expiry(source.format, lambda _: _traced(source.relisted(), where, spark))


def _traced(source: History, where: str, spark: SparkSession | None) -> TracedHistory:
    versions = source.versions_among(None)
    reference = source.format.version(versions[-1])
    predicate = parse_condition(where, reference.arrow_schema)
    affected = affected_versions(source.format, predicate, versions[-1])
    result = TracedHistory(begins_with_first=affected.begins_with_first)
    by_number = {
        version.number: version for version in _traced_versions(source, affected, reference, predicate, result, spark)
    }
    readable = frozenset(versions)
    unread = affected.lifetimes.unread
    for number in (number for number in source.listing.versions if number not in by_number):
        has_expired = number in readable and number not in unread
        by_number[number] = TracedVersion(
            number=number,
            committed_at=None if has_expired else time_of(source.format, number),
            rows=None,
            stored_rows=None,
            reason=str(unread[number])
            if number in unread
            else "it expired while the table was examined"
            if has_expired
            else "its files are unknown: only its commit or its changelog is left",
        )
    result.versions = [by_number[number] for number in sorted(by_number)]
    result.bounds_name_value = _bounds_naming(affected, predicate, reference)
    result.namesakes = _namesakes(affected, predicate, reference)
    changelogs = traced_changelogs(source.format, source.listing.versions, reference, predicate)
    metadata = traced_metadata(source.format, source.listing.versions, reference, predicate)
    result.changelogs, result.metadata = changelogs.files, metadata.files
    result.unread = [*changelogs.unread, *metadata.unread]
    return result


def _traced_versions(
    source: History,
    affected: AffectedVersions,
    reference: TableVersion,
    where: Condition,
    result: TracedHistory,
    spark: SparkSession | None,
) -> Iterator[TracedVersion]:
    """Yield the matching rows of the known versions, from the row history, and add those of files to the result."""
    known = affected.lifetimes.versions
    if not known:
        return
    starts = [start for start, _ in affected.schemas]
    columns = HistoryColumns(
        source, reference, sorted(where.columns), starts, (known[0], known[-1]), are_required=False
    )
    own = parse_condition(where.text, columns.schema)
    planned = plan_splits(source, affected, range(len(known)), columns.of, own, with_deleted=True)
    scan = HistoryScan(splits=planned.splits, schema=pa.schema([]), where=own, count=len(known), are_joined=False)
    counts = count_matches(scan, spark)
    totals = _totals(affected, planned, counts, result.files)
    yield from totals.versions(affected.lifetimes, planned.unreadable)


def _totals(
    affected: AffectedVersions, planned: PlannedSplits, counts: Counts, files: dict[str, TracedFile]
) -> _Totals:
    """Return the matching rows of all versions, and add those of all files to `files`."""
    rows = affected.lifetimes.intervals.rows
    paths = affected.lifetimes.intervals.paths(rows).to_pylist()
    ruled_out = frozenset(paths).difference(paths[index] for index in np.flatnonzero(may_store(affected)).tolist())
    totals = _Totals(counts.live)
    for number, item in enumerate(planned.splits):
        reason = counts.reasons.get(number)
        for state in item.states:
            if reason is not None and state.is_live:
                totals.add_reason(state.first, state.last, reason)
        if reason is None and _is_stored_apart(item):
            continue
        for path in item.split.files:
            file = _RULED_OUT if path in ruled_out else _traced_file(item, path, counts.stored.get(number), reason)
            _keep(files, path, file)
            for state in item.states:
                totals.add_stored(state.first, state.last, file)
    for path, first, last in planned.skipped:
        if path not in ruled_out:
            _keep(files, path, _SKIPPED_FILE)
            totals.add_stored(first, last, _SKIPPED_FILE)
    unplanned = next(reversed(planned.unreadable.values()), None)
    for path in paths:
        # All others are live at a planned version, or only at versions that cannot have a matching row.
        is_unknown = unplanned is not None and path not in planned.files
        reason = str(unplanned)
        unread = TracedFile(evidence=UNREADABLE_FILE, stored_rows=None, reason=reason) if is_unknown else _RULED_OUT
        files.setdefault(path, unread)
    return totals


_RULED_OUT = TracedFile(evidence=METADATA, stored_rows=0)
_SKIPPED_FILE = TracedFile(
    evidence=UNREADABLE_FILE,
    stored_rows=None,
    reason="readers skip a file until a compaction, and its rows were not counted",
)


def _is_stored_apart(item: SplitHistory) -> bool:
    """Return whether another split has all rows that the file of this one stores."""
    return (
        not item.split.raw
        and len(item.split.files) == 1
        and item.version.row_identity.stored_rows(item.split) is not None
    )


def _traced_file(item: SplitHistory, path: str, count: int | None, reason: str | None) -> TracedFile:
    """Return the matching rows in a file of a split, of which a number was read, or for a reason none."""
    if reason is None:
        is_whole = item.split.raw
        return TracedFile(evidence=READ, stored_rows=count if is_whole else None, reason=None if is_whole else _MERGED)
    try:
        is_missing = not item.version.storage.exists(path)
    except SnapshotExplorerError:
        is_missing = False
    if is_missing:
        return TracedFile(evidence=MISSING, stored_rows=0)
    return TracedFile(evidence=UNREADABLE_FILE, stored_rows=None, reason=reason)


def _keep(files: dict[str, TracedFile], path: str, file: TracedFile) -> None:
    """Keep the best result for a file: a number rather than none, and the most thorough evidence."""
    before = files.get(path)
    if before is None or _is_better(before, file):
        files[path] = file


def _is_better(before: TracedFile, file: TracedFile) -> bool:
    if (before.stored_rows or 0) != (file.stored_rows or 0):
        return (before.stored_rows or 0) < (file.stored_rows or 0)
    if before.stored_rows is None and file.evidence == READ and file.stored_rows is not None:
        return True
    return _CERTAINTY[before.evidence] < _CERTAINTY[file.evidence] and not before.stored_rows


class _Totals:
    """The matching rows of all versions."""

    def __init__(self, live: Ints) -> None:
        """Begin with the live rows, as in `Counts`."""
        self._rows, self._stored = (np.zeros((2, len(live)), np.int64) for _ in range(2))
        self._rows[0] = live
        self._reasons: list[tuple[int, int, str]] = []

    def add_reason(self, first: int, last: int, reason: str) -> None:
        """Add why the live rows in a range of positions are unknown."""
        self._add(self._rows[1], first, last, 1)
        self._reasons.append((first, last, reason))

    def add_stored(self, first: int, last: int, file: TracedFile) -> None:
        """Add the rows of a file that versions in a range of positions have."""
        is_unknown = file.stored_rows is None
        self._add(self._stored[int(is_unknown)], first, last, file.stored_rows or int(is_unknown))
        if file.reason:
            self._reasons.append((first, last, file.reason))

    @staticmethod
    def _add(sums: Ints, first: int, last: int, count: int) -> None:
        sums[first] += count
        sums[last] -= count

    def versions(
        self, lifetimes: FileLifetimes, unreadable: Mapping[int, SnapshotExplorerError]
    ) -> Iterator[TracedVersion]:
        """Yield the matching rows of each version.

        Args:
            unreadable: By position, why versions cannot be planned.
        """
        rows, stored = (np.cumsum(sums, axis=1).tolist() for sums in (self._rows, self._stored))
        reasons = sorted(self._reasons, key=itemgetter(0))[::-1]
        active: list[tuple[int, int, str]] = []
        for position, number in enumerate(lifetimes.versions):
            while reasons and reasons[-1][0] <= position:
                heappush(active, reasons.pop())
            while active and active[0][1] <= position:
                heappop(active)
            error = unreadable.get(position)
            yield TracedVersion(
                number=number,
                committed_at=lifetimes.time_of(number),
                rows=None if error or rows[1][position] else rows[0][position],
                stored_rows=None if error or stored[1][position] else stored[0][position],
                reason=str(error) if error else (active[0][2] if active else None),
            )


def _namesakes(affected: AffectedVersions, where: Condition, reference: TableVersion) -> dict[str, list[int]]:
    """Return the versions at which another column, by field id, has a name of the condition."""
    ids = {column.name: column.id for column in reference.schema.columns if column.name in where.columns}
    result: defaultdict[str, list[int]] = defaultdict(list)
    starts = [start for start, _ in affected.schemas]
    for number in affected.lifetimes.versions:
        _, schema = affected.schemas[bisect_right(starts, number) - 1]
        for column in schema.columns:
            if column.name in ids and column.id != ids[column.name] and None not in (column.id, ids[column.name]):
                result[column.name].append(number)
    return result


def _bounds_naming(affected: AffectedVersions, where: Condition, reference: TableVersion) -> dict[str, bool | None]:
    """Return for each file whether a bound of a column is a value that the condition names; None if unknown.

    Empty if the condition does not name all values that matching rows can have.
    """
    names = [name for name in reference.arrow_schema.names if name in where.columns]
    points = where.points(pa.schema([reference.arrow_schema.field(name) for name in names])) if names else None
    if points is None:
        return {}
    intervals = affected.lifetimes.intervals
    naming, unknown = np.zeros(len(intervals.rows), bool), np.zeros(len(intervals.rows), bool)
    for name, values in zip(names, points, strict=True):
        sides = affected.bounds.lower[name], affected.bounds.upper[name]
        unknown |= np.asarray(pc.and_(sides[0].is_null(), sides[1].is_null()), bool)
        for bounds in sides:
            naming |= np.asarray(pc.is_in(bounds, values), bool)
    result: dict[str, bool | None] = {}
    paths = intervals.paths(intervals.rows).to_pylist()
    for path, is_named, is_unknown in zip(paths, naming.tolist(), unknown.tolist(), strict=True):
        answer = True if is_named else None if is_unknown else False
        result[path] = answer if result.get(path, False) is False else result[path]
    return result
