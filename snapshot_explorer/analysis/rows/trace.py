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

from snapshot_explorer.analysis.diff.aligned_columns import align_columns
from snapshot_explorer.analysis.diff.diff_plan import predicate_of
from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.row_history.group_states import WHOLE_TABLE, file_groups, group_states, may_store
from snapshot_explorer.analysis.rows.matching_rows import matching_rows
from snapshot_explorer.analysis.rows.traced_metadata import (
    TracedChangelog,
    TracedMetadata,
    traced_changelogs,
    traced_metadata,
)
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import ResourceError, SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.history.lifetimes import despite_expiry, time_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from datetime import datetime

    from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns
    from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions
    from snapshot_explorer.analysis.row_history.group_states import Ints
    from snapshot_explorer.core.records import Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.history import History
    from snapshot_explorer.history.lifetimes import FileLifetimes

READ, METADATA, MISSING, UNREADABLE_FILE = "read", "metadata", "missing", "unreadable"
_CERTAINTY = {METADATA: 0, READ: 1, MISSING: 2, UNREADABLE_FILE: 3}
_MERGED = "rows of several files are merged, and those that the merge drops were not counted"
_SKIPPED = "readers skip a file until a compaction, and its rows were not counted"


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


def trace_history(source: History, where: str) -> TracedHistory:
    """Return the rows of a condition in a history; see `Table.trace`."""
    return despite_expiry(source.format, lambda _: _traced(source.relisted(), where))


def _traced(source: History, where: str) -> TracedHistory:
    versions = source.versions_among(None)
    reference = source.format.version(versions[-1])
    predicate = parse_condition(where, reference.arrow_schema)
    affected = affected_versions(source.format, predicate, versions[-1])
    result = TracedHistory(begins_with_first=affected.begins_with_first)
    by_number = _traced_versions(source, affected, reference, predicate, result)
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
    source: History, affected: AffectedVersions, reference: TableVersion, where: Condition, result: TracedHistory
) -> dict[int, TracedVersion]:
    """Return the matching rows of the known versions, by number, and add the matching rows of files to the result."""
    lifetimes = affected.lifetimes
    paths = lifetimes.intervals.paths(lifetimes.intervals.rows).to_pylist()
    ruled_out = frozenset(paths).difference(paths[index] for index in np.flatnonzero(may_store(affected)).tolist())
    reader = _Reader(reference, where, result.files, ruled_out=ruled_out)
    groups = file_groups(affected, reference, source.format.row_modifiers())
    try:
        totals = _totals(source, affected, paths, groups, reader)
    except _SeveralGroupsError:
        totals = _totals(source, affected, paths, np.full_like(groups, WHOLE_TABLE), reader)
    for path in paths:
        # All others are live at a planned version, or only at versions that cannot have a matching row.
        result.files.setdefault(
            path,
            TracedFile(evidence=METADATA, stored_rows=0)
            if totals.unplanned is None
            else TracedFile(evidence=UNREADABLE_FILE, stored_rows=None, reason=totals.unplanned),
        )
    return {version.number: version for version in totals.versions(lifetimes)}


def _totals(
    source: History, affected: AffectedVersions, paths: Sequence[str], groups: Ints, reader: _Reader
) -> _Totals:
    """Return the matching rows of all versions. Plans a few versions that together have every state of each group.

    Raises:
        _SeveralGroupsError: A version reads files of several groups together.
    """
    numbers = affected.lifetimes.versions
    states = group_states(affected, groups)
    by_path = dict(zip(paths, groups.tolist(), strict=True))
    totals = _Totals(len(numbers))
    is_open = np.ones(len(states.group), np.bool_)
    with step("Reading versions", total=len(states.group)) as reading:
        for state in np.argsort(states.last, kind="stable").tolist():
            positions = range(int(states.last[state]) - 1, int(states.first[state]) - 1, -1)
            for position in positions if is_open[state] else ():
                if position in totals.failed:
                    continue
                rows = reader.traced(source.format, numbers[position], by_path)
                if isinstance(rows, Exception):
                    totals.failed[position] = str(rows)
                    continue
                covered = np.flatnonzero(is_open & (states.first <= position) & (position < states.last))
                for index in covered.tolist():
                    known = rows.get(int(states.group[index]), _GroupRows())
                    totals.add(int(states.first[index]), int(states.last[index]), known)
                is_open[covered] = False
                reading.advance(len(covered))
                break
            else:
                if is_open[state]:
                    totals.unplanned = totals.failed[positions[0]]
    return totals


@dataclass(slots=True)
class _GroupRows:
    """The matching rows in a group of files at a version, as far as known."""

    rows: int | None = 0
    stored: dict[str, int | None] = field(default_factory=dict)
    """Matching rows in each file, including deleted ones; None if unknown."""
    reasons: list[str] = field(default_factory=list)


class _Totals:
    """Sums over the groups of files, for all versions at once."""

    def __init__(self, count: int) -> None:
        self.failed: dict[int, str] = {}
        """Why versions could not be planned, by their position."""
        self.unplanned: str | None = None
        """Why some files are in no version that could be planned."""
        self._rows, self._stored = np.zeros((2, count + 1), np.int64), np.zeros((2, count + 1), np.int64)
        self._reasons: list[tuple[int, int, str]] = []

    def add(self, first: int, last: int, known: _GroupRows) -> None:
        """Add the rows of a group over a half-open range of positions."""
        stored = list(known.stored.values())
        self._add(self._rows, first, last, known.rows)
        self._add(self._stored, first, last, None if None in stored else sum(count or 0 for count in stored))
        if known.reasons:
            self._reasons.append((first, last, known.reasons[0]))

    @staticmethod
    def _add(sums: Ints, first: int, last: int, count: int | None) -> None:
        kind, value = (1, 1) if count is None else (0, count)
        sums[kind, first] += value
        sums[kind, last] -= value

    def versions(self, lifetimes: FileLifetimes) -> Iterator[TracedVersion]:
        """Yield the matching rows of each version."""
        rows, stored = (np.cumsum(sums, axis=1).tolist() for sums in (self._rows, self._stored))
        reasons = sorted(self._reasons, key=itemgetter(0))[::-1]
        active: list[tuple[int, int, str]] = []
        for position, number in enumerate(lifetimes.versions):
            while reasons and reasons[-1][0] <= position:
                heappush(active, reasons.pop())
            while active and active[0][1] <= position:
                heappop(active)
            error = self.failed.get(position)
            yield TracedVersion(
                number=number,
                committed_at=lifetimes.time_of(number),
                rows=None if error or rows[1][position] else rows[0][position],
                stored_rows=None if error or stored[1][position] else stored[0][position],
                reason=error or (active[0][2] if active else None),
            )


class _SeveralGroupsError(Exception):
    """Files of several groups are read together."""


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


@dataclass(frozen=True, slots=True)
class _Part:
    split: Split
    is_ruled_out: bool
    """Whether metadata proves that it returns no matching row."""
    stored: Split | None
    """The split of all rows in the file; None if unknown."""


class _Reader:
    """Counts matching rows, and opens each file once for each set of its rows."""

    def __init__(
        self, reference: TableVersion, where: Condition, files: dict[str, TracedFile], *, ruled_out: frozenset[str]
    ) -> None:
        self._ruled_out = ruled_out
        self._reference = reference
        self._where = where
        self._files = files
        self._counts: dict[Hashable, int | Exception] = {}

    def traced(
        self, table_format: TableFormat, number: int, groups: Mapping[str, int]
    ) -> dict[int, _GroupRows] | Exception:
        """Return the matching rows of a version, by groups of files, and add the matching rows of its files."""
        try:
            version = table_format.version(number)
            columns = align_columns(version, self._reference, sorted(self._where.columns))
            where = parse_condition(self._where.text, columns.schema)
            parts = self._parts(version, predicate_of(where, columns, version, of_a=True))
            live = version.files()["path"].to_pylist()
        except ResourceError:
            raise  # the error is not about the version
        except (SnapshotExplorerError, pa.ArrowException) as error:
            resources.check(error, f"Version {number} could not be read")
            return error
        key = str(columns.schema), tuple(sorted(columns.names_a.items()))
        of_parts = [{groups.get(path) for path in part.split.files} for part in parts]
        if any(len(names) != 1 or None in names for names in of_parts) or not groups.keys() >= set(live):
            if not set(groups.values()) <= {WHOLE_TABLE}:
                raise _SeveralGroupsError
            of_parts = [{WHOLE_TABLE} for _ in parts]
        self._count(version, columns, where, key, self._to_read(parts))
        result: defaultdict[int, _GroupRows] = defaultdict(_GroupRows)
        seen: set[str] = set()
        for part, names in zip(parts, of_parts, strict=True):
            known = result[next(group for group in names if group is not None)]
            count: int | Exception = 0 if part.is_ruled_out else self._counts[key, part.split.identity]
            if isinstance(count, Exception):
                known.rows = None
                known.reasons.append(Message(count))
            elif known.rows is not None:
                known.rows += count
            for path in part.split.files:
                file = self._file(version, part, path, key)
                self._keep(path, file)
                known.stored[path] = file.stored_rows
                known.reasons += [file.reason] if file.reason else []
                seen.add(path)
        for path in sorted(set(live) - seen - self._ruled_out):
            self._keep(path, TracedFile(evidence=UNREADABLE_FILE, stored_rows=None, reason=_SKIPPED))
            known = result[groups.get(path, WHOLE_TABLE)]
            known.stored[path] = None
            known.reasons.append(_SKIPPED)
        return result

    def _parts(self, version: TableVersion, predicate: Condition | None) -> list[_Part]:
        def parts_of(condition: Condition | None) -> list[Split]:
            return [part for split in version.plan(condition).splits for part in version.split_by_file(split)]

        everything = parts_of(None)
        kept = {part.identity for part in parts_of(predicate)} if predicate else {item.identity for item in everything}
        merged = {path for part in everything if len(part.files) > 1 for path in part.files}
        identity = version.row_identity
        return [
            _Part(
                split=part,
                # A split of several files may be planned in another way for a condition.
                is_ruled_out=part.identity not in kept and not merged.intersection(part.files),
                stored=part if part.raw else identity.stored_rows(part) if len(part.files) == 1 else None,
            )
            for part in everything
        ]

    @staticmethod
    def _to_read(parts: Sequence[_Part]) -> list[Split]:
        chosen: dict[Hashable, Split] = {}
        for part in parts:
            if not part.is_ruled_out:
                chosen[part.split.identity] = part.split
            if part.stored is not None and not (part.is_ruled_out and part.split.raw):
                chosen[part.stored.identity] = part.stored
        return list(chosen.values())

    def _count(
        self, version: TableVersion, columns: AlignedColumns, where: Condition, key: Hashable, splits: Sequence[Split]
    ) -> None:
        """Count the matching rows of splits that were not counted yet."""
        left = [split for split in splits if (key, split.identity) not in self._counts]
        counts = matching_rows(version, columns, where, left)
        self._counts |= {(key, split.identity): count for split, count in zip(left, counts, strict=True)}

    def _file(self, version: TableVersion, part: _Part, path: str, key: Hashable) -> TracedFile:
        if path in self._ruled_out or (part.is_ruled_out and part.split.raw):
            return TracedFile(evidence=METADATA, stored_rows=0)
        count = None if part.stored is None else self._counts[key, part.stored.identity]
        if isinstance(count, int):
            return TracedFile(evidence=READ, stored_rows=count)
        live = 0 if part.is_ruled_out else self._counts[key, part.split.identity]
        error = count or (live if isinstance(live, Exception) else None)
        if error is None:
            return TracedFile(evidence=READ, stored_rows=None, reason=_MERGED)
        try:
            is_missing = not version.storage.exists(path)
        except SnapshotExplorerError:
            is_missing = False
        if is_missing:
            return TracedFile(evidence=MISSING, stored_rows=0)
        return TracedFile(evidence=UNREADABLE_FILE, stored_rows=None, reason=Message(error))

    def _keep(self, path: str, file: TracedFile) -> None:
        """Keep the best result for a file: a number rather than none, and the most thorough evidence."""
        before = self._files.get(path)
        if before is None or self._is_better(before, file):
            self._files[path] = file

    @staticmethod
    def _is_better(before: TracedFile, file: TracedFile) -> bool:
        if (before.stored_rows or 0) != (file.stored_rows or 0):
            return (before.stored_rows or 0) < (file.stored_rows or 0)
        if before.stored_rows is None and file.evidence == READ and file.stored_rows is not None:
            return True
        return _CERTAINTY[before.evidence] < _CERTAINTY[file.evidence] and not before.stored_rows


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
