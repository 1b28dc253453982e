"""The row of a table in the overview of a lake, and how the overview is drawn. Reads only metadata."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.analysis.health import Rhythm, rhythm
from snapshot_explorer.analysis.profile import jumps
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.milliseconds import from_millis
from snapshot_explorer.core.records import MAINTENANCE_KINDS, gaps_note, runs_of, runs_text
from snapshot_explorer.core.refs import AsOf
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.unread_versions import readable_commits
from snapshot_explorer.history import NothingBeforeError, history_of, unread_commit_notes
from snapshot_explorer.results import Frame
from snapshot_explorer.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from snapshot_explorer.formats.unread_versions import Reasons

RECENT = 12
"""Commits of a table that are read first."""
MOST_COMMITS = 192
"""Commits of a table that are read if the recent ones do not reach back far enough."""
_FEWEST_READ = 4
"""Fewer commits than that are not left for another round."""
_EVIDENCE = 4
"""A table is only late if the commits that were read span this multiple of its age, or no more were to be read."""
_FEWEST_APPENDS = 4
_MOST_DRAWN = 500
"""The maximum number of tables that are drawn, the most urgent first; the frame has all."""
STATES = ("act", "watch", "unknown", "ok")
_SUMS = ("added_rows", "removed_rows", "added_bytes", "removed_bytes")
_COUNTS = ("rows_inserted", "rows_updated", "rows_deleted")
_READ = ["version", "kind", "added_files", *_SUMS, *_COUNTS, "total_rows", "readable", "schema_id"]
"""The columns of COMMITS from which the row of a table is computed, in addition to the time."""
_Commit = dict[str, Any]
"""A commit with these columns and its time, aware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewRequest:
    """The request for an overview. Picklable."""

    now: datetime
    """The time at which tables are viewed."""
    is_past: bool
    """Whether versions after that time are to be ignored."""
    since: datetime
    """The time from which commits are counted."""
    health: bool
    """Whether to read the health of the newest version."""


def overview_row(table: Table, request: OverviewRequest) -> dict[str, object]:
    """Return the row of LAKE_OVERVIEW of a table, without its name."""
    listing = history_of(table).listing
    versions = listing.versions
    notes = list(listing.notes)
    if request.is_past and versions:
        last, branch = _version_at(table, request.now)
        if branch is not None:
            table = Table(history_of(table).on_branch(branch).open_branch)
            listing = history_of(table).listing
            versions = listing.versions
            notes.append(left_note(branch))
        versions = tuple(version for version in versions if last is not None and version <= last)
    newest_note = listing.newest_note if versions and versions[-1] == listing.versions[-1] else None
    notes += [newest_note] if newest_note else []
    row: dict[str, object] = {"format": table.format, "path": table.path, "note": " ".join(notes) or None}
    if not versions:
        nothing = "No version had been committed then." if listing.versions else "No version has been committed."
        return row | {"state": "unknown", "rhythm": "unknown", "note": nothing}
    commits, is_complete, unread = _read_commits(table, versions, request)
    start = _start_of(commits, versions, request.since)
    unread = {version: error for version, error in unread.items() if version in versions[start:]}
    counted_commits = [commit for commit in commits if commit["version"] in versions[start:]]
    lacking = (
        *gaps_note(listing.gaps(versions[max(0, start - 1) :]), "what changed there is not known"),
        *unread_commit_notes(unread),
        *_unrecorded_note(counted_commits, unread),
    )
    notes += lacking
    pace = _rhythm(commits, request.now)
    row |= {
        "version": versions[-1],
        "committed_at": commits[-1]["committed_at"],
        "age_seconds": _seconds(pace.age),
        "rhythm": pace.pace or "unknown",
        "usual_seconds": _seconds(pace.usual_gap),
        "late_after_seconds": _seconds(pace.latest_gap),
        "total_rows": commits[-1]["total_rows"],
        "recent_rows": [_new_rows(commit) for commit in _changing_commits(commits)][-RECENT:],
    }
    is_whole = not lacking and newest_note is None
    row |= _changes_since(table, commits, request.since, versions[0] if is_complete else None, is_whole=is_whole)
    if not is_complete:
        notes.append(f"More than {len(commits):,} commits since then: their numbers are not added up.")
    elif len(commits) == len(versions) and listing.has_expired and _since_first(commits, request.since):
        notes.append("Older commits since then have expired, or are unknown: they are not added up.")
    row["note"] = " ".join(notes) or None
    if request.health:
        row["health"] = _worst(table.health(versions[-1], metadata_only=True).findings["state"].to_pylist())
    return row | {"state": _state(row)}


def failed_row(error: SnapshotExplorerError) -> dict[str, object]:
    """Return the row of a table that cannot be read, without its name."""
    return {"state": "act", "rhythm": "unknown", "problem": error.message}


def left_note(branch: str) -> str:
    """Return the sentence on a version that main no longer has."""
    return f"Rolled back since; read as branch {branch}."


def _version_at(table: Table, time: datetime) -> tuple[int | None, str | None]:
    """Return the version that was current at a time, and its branch if main no longer has it."""
    try:
        snapshot = table.at(AsOf(time=time))
    except NothingBeforeError:
        return None, None
    return snapshot.version, snapshot.branch


def _read_commits(
    table: Table, versions: Sequence[int], request: OverviewRequest
) -> tuple[list[_Commit], bool, Reasons]:
    """Return the newest commits, oldest first, and whether they contain all commits of the counted period.

    Also returns which of them cannot be read, and why.
    """
    commits: list[_Commit] = []
    unread: dict[int, SnapshotExplorerError] = {}
    while True:
        count = len(commits)
        more = min(max(RECENT, count), len(versions) - count)
        end = len(versions) - count
        if end - more < _FEWEST_READ:
            more = end
        page, errors = readable_commits(history_of(table).table_format, versions[end - more : end])
        commits = _as_objects(page) + commits
        unread.update(errors)
        first = min((commit["committed_at"] for commit in commits if commit["committed_at"] is not None), default=None)
        is_complete = len(commits) == len(versions) or first is None or first < request.since
        if (
            len(commits) == len(versions)
            or len(commits) >= MOST_COMMITS
            or (is_complete and _is_evident(commits, request.now))
        ):
            return commits, is_complete, unread


def _start_of(commits: Sequence[_Commit], versions: Sequence[int], since: datetime) -> int:
    """Return the position of the first version that may have been committed since a time."""
    older = [commit["version"] for commit in commits if commit["committed_at"] and commit["committed_at"] < since]
    return versions.index(older[-1]) + 1 if older else 0


def _unrecorded_note(commits: Sequence[_Commit], unread: Reasons) -> tuple[str, ...]:
    """Return a sentence on versions without a commit."""
    numbers = [
        commit["version"] for commit in commits if not commit["committed_at"] and commit["version"] not in unread
    ]
    return (f"The commit of {runs_text(runs_of(numbers))} is missing: what changed is not known.",) if numbers else ()


def _since_first(commits: Sequence[_Commit], since: datetime) -> bool:
    """Return whether the first commit was made since a time, so that earlier ones may have been too."""
    return commits[0]["committed_at"] is None or commits[0]["committed_at"] >= since


def _as_objects(commits: pa.Table) -> list[_Commit]:
    """Return a few COMMITS as Python objects: there, single values cost less than columns."""
    columns = commits.select(_READ).to_pydict()
    millis = commits["committed_at"].cast(pa.int64()).to_pylist()
    columns["committed_at"] = [None if time is None else from_millis(time) for time in millis]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _is_evident(commits: Sequence[_Commit], now: datetime) -> bool:
    """Return whether reading more commits would leave the rhythm as it is."""
    if _rhythm(commits, now).pace != "late":
        return True
    times = _times(commits)
    return max(times) - min(times) >= _EVIDENCE * (now - max(times))


def _changing_commits(commits: Sequence[_Commit]) -> list[_Commit]:
    """Return the commits that change data."""
    return [commit for commit in commits if commit["kind"] not in MAINTENANCE_KINDS]


def _rhythm(commits: Sequence[_Commit], now: datetime) -> Rhythm:
    return rhythm(_times(commits), now)


def _times(commits: Sequence[_Commit]) -> list[datetime]:
    return [commit["committed_at"] for commit in _changing_commits(commits) if commit["committed_at"] is not None]


def _changes_since(
    table: Table, commits: Sequence[_Commit], since: datetime, first: int | None, *, is_whole: bool
) -> dict[str, object]:
    """Return the changes of recent commits; null if unknown.

    Args:
        first: The first version of the table; None if not all recent commits were read.
        is_whole: Whether none of the recent commits is missing.
    """
    recent = [commit for commit in commits if commit["committed_at"] is not None and commit["committed_at"] >= since]
    unreadable = sum(commit["readable"] == "no" for commit in commits)
    versions = [commit["version"] for commit in recent]
    row: dict[str, object] = {"unreadable": unreadable or None, "anomalies": list(_anomalies(table, commits, versions))}
    if first is None or not is_whole:
        return row
    row["commits"] = len(recent)
    changing = _changing_commits(recent)
    for names, counted in ((_SUMS, changing), (_COUNTS, recent)):
        numbers = {name: [commit[name] for commit in counted] for name in names}
        row |= {name: None if None in values else sum(values) for name, values in numbers.items()}
    row["schema_changes"] = _schema_changes(table, commits, versions, first)
    return row


def _new_rows(commit: _Commit) -> int | None:
    """Return the rows that a commit inserted, or, if they are not counted, the rows in the files that it added."""
    rows: int | None = commit["added_rows"] if commit["rows_inserted"] is None else commit["rows_inserted"]
    return rows


def _schema_changes(table: Table, commits: Sequence[_Commit], versions: Sequence[int], first: int) -> int | None:
    """Return how many commits of these versions changed the schema; `first` is the first version of the table."""
    if versions and commits[0]["version"] == versions[0] == first:
        versions = versions[1:]  # the first version creates the schema
    if not versions:
        return 0
    if any(commit["schema_id"] is not None for commit in commits):
        ids = [None, *(commit["schema_id"] for commit in commits)]
        return sum(
            commit["version"] in versions
            and bool(commit["kind"] == "schema" or (None not in pair and len({*pair}) > 1))
            for commit, pair in zip(commits, pairwise(ids), strict=True)
        )
    before = [commit["version"] for commit in commits if commit["version"] < versions[0]]
    try:
        earlier, later = history_of(table).table_format.schemas([before[-1] if before else versions[0], versions[-1]])
    except SnapshotExplorerError:
        return None
    return int(earlier.columns != later.columns)


def _anomalies(table: Table, commits: Sequence[_Commit], versions: Sequence[int]) -> Iterator[str]:
    """Yield sentences on jumps at these versions, compared with earlier ones, and on appends that repeat another."""
    if not versions:
        return
    totals = pa.table(
        {
            "version": [commit["version"] for commit in commits],
            "committed_at": pa.array([commit["committed_at"] for commit in commits], frames.UTC_MILLIS),
            "value": pa.array([commit["total_rows"] for commit in commits], pa.int64()),
        }
    )
    kinds = {commit["version"]: commit["kind"] for commit in commits}
    for mark in jumps({"rows": totals}, {}).to_pylist():
        if mark["version"] in versions and kinds[mark["version"]] not in MAINTENANCE_KINDS:
            yield f"version {mark['version']}: {mark['rule']}"
    for first, second, rows in _equal_appends(commits, versions):
        if _has_equal_bounds(table, first, second):
            yield (
                f"version {second}: adds {pluralize(rows, 'row')} with the sizes and the column bounds of the files of "
                f"version {first}, as if the same rows were loaded twice"
            )


def _equal_appends(commits: Sequence[_Commit], versions: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the two appends with equal numbers of files, rows and bytes, if all other appends differ."""
    appends = [commit for commit in commits if commit["kind"] == "append" and (commit["added_rows"] or 0) > 0]
    sizes = [tuple(commit[name] for name in ("added_files", "added_rows", "added_bytes")) for commit in appends]
    counts = Counter(sizes)
    repeated = [item for item, count in counts.items() if count > 1 and None not in item]
    if len(sizes) < _FEWEST_APPENDS or len(repeated) != 1 or counts[repeated[0]] != 2:  # noqa: PLR2004 - a pair
        return
    first, second = (commit["version"] for commit, item in zip(appends, sizes, strict=True) if item == repeated[0])
    if second in versions:
        yield first, second, repeated[0][1]


def _has_equal_bounds(table: Table, first: int, second: int) -> bool:
    """Return whether the files of two appends have the same bounds of every column, and bounds at all."""
    try:
        changes = history_of(table).table_format.changes([first, second], changelog=False)
        files = table.at(second).files(statistics=True).to_arrow()
    except SnapshotExplorerError:
        return False

    def bounds(version: int) -> list[str]:
        paths = changes.filter(pc.and_(pc.equal(changes["version"], version), pc.equal(changes["change"], "add")))[
            "path"
        ]
        rows = files.filter(pc.is_in(files["path"], paths.combine_chunks())).select(["lower", "upper", "null_count"])
        has_bounds = any(value is not None for row in rows["lower"].to_pylist() if row for value in row.values())
        return sorted(map(str, rows.to_pylist())) if has_bounds else []

    return bounds(first) == bounds(second) != []


def _worst(states: Sequence[str]) -> str:
    return next((state for state in ("act", "watch", "unknown") if state in states), "ok")


def _state(row: Mapping[str, Any]) -> str:
    if row["rhythm"] == "late" or row.get("unreadable") or row.get("health") == "act":
        return "act"
    if row["rhythm"] == "busy" or row["anomalies"] or row.get("schema_changes") or row.get("health") == "watch":
        return "watch"
    return "unknown" if row["rhythm"] == "unknown" else "ok"


class LakeOverview(Frame):
    """LAKE_OVERVIEW, the most urgent tables first. Draws ages, sizes and recent commits in few columns."""

    __slots__ = ("name", "request", "search")

    def __init__(
        self,
        rows: Sequence[Mapping[str, object]],
        *,
        name: str,
        request: OverviewRequest,
        search: str,
        is_sorted: bool = False,
    ) -> None:
        """Create an overview of rows, sorted by urgency unless they are sorted otherwise."""
        urgency = sorted(rows, key=lambda row: (STATES.index(str(row["state"])), str(row["name"])))
        order = rows if is_sorted else urgency
        table = pa.Table.from_pylist([dict(row) for row in order], schema=frames.LAKE_OVERVIEW)
        super().__init__(table, title=f"Lake {name}", noun="tables", limit=min(len(order), _MOST_DRAWN))
        self.name = name
        self.request = request
        self.search = search


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())
