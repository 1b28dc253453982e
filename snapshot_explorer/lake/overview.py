"""The row of a table in the overview of a lake, and how the overview is drawn. Reads only metadata."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.frames import Frame
from snapshot_explorer.health import RHYTHM_RULE, Rhythm, rhythm, span
from snapshot_explorer.model import MAINTENANCE_KINDS
from snapshot_explorer.refs import AsOf
from snapshot_explorer.render import Code, Drawing, Grid, Line, Pairs, Part
from snapshot_explorer.render.cells import DRAWN, counted, moment, size
from snapshot_explorer.render.timeline import changed_schema
from snapshot_explorer.rows.profiling.anomalies import jumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from snapshot_explorer.table import Table

RECENT = 12
"""Commits of a table that are read first."""
MOST_COMMITS = 192
"""Commits of a table that are read where its recent ones do not reach back far enough."""
_EVIDENCE = 4
"""A table is only late if the commits that were read span so many times its age, or are all that were to be read."""
_FEWEST_APPENDS = 4
_EXPLAINED = 50
"""The most tables whose problems are written out below the overview; the frame has all."""
_STATES = ("act", "watch", "unknown", "ok")
_BARS = "▁▂▃▄▅▆▇█"
_SUMS = ("added_rows", "removed_rows", "added_bytes", "removed_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewRequest:
    """What an overview covers. Picklable."""

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
    versions = table.listing().versions
    if request.is_past and versions:
        last = _version_at(table, request.now)
        versions = tuple(version for version in versions if last is not None and version <= last)
    row: dict[str, object] = {"format": table.format, "path": table.path}
    if not versions:
        return row | {"state": "unknown", "rhythm": "unknown", "note": "No version has been committed."}
    commits, is_complete = _read_commits(table, versions, request)
    pace = _rhythm(commits, request.now)
    changing = _changing(commits)
    row |= {
        "version": versions[-1],
        "committed_at": commits["committed_at"][-1].as_py(),
        "age_seconds": _seconds(pace.age),
        "rhythm": pace.pace or "unknown",
        "usual_seconds": _seconds(pace.usual_gap),
        "late_after_seconds": _seconds(pace.latest_gap),
        "total_rows": commits["total_rows"][-1].as_py(),
        "recent_rows": changing["added_rows"].slice(max(0, len(changing) - RECENT)).to_pylist(),
    }
    recent = commits.filter(pc.greater_equal(commits["committed_at"], pa.scalar(request.since, frames.UTC_MILLIS)))
    row |= _changes_since(table, commits, recent, versions[0] if is_complete else None)
    if request.health:
        row["health"] = _worst(table.health(versions[-1]).findings["state"].to_pylist())
    return row | {"state": _state(row)}


def failed_row(error: SnapshotExplorerError) -> dict[str, object]:
    """Return the row of a table that cannot be read, without its name."""
    return {"state": "act", "rhythm": "unknown", "problem": str(error)}


def _version_at(table: Table, time: datetime) -> int | None:
    try:
        return table.version_of(AsOf(time=time))
    except LookupError:
        return None


def _read_commits(table: Table, versions: Sequence[int], request: OverviewRequest) -> tuple[pa.Table, bool]:
    """Return the newest COMMITS, oldest first, and whether they contain all since the time that is counted from."""
    parts: list[pa.Table] = []
    count = 0
    while True:
        size_ = min(max(RECENT, count), len(versions) - count)
        end = len(versions) - count
        parts.insert(0, table.bound.commits(versions[end - size_ : end]))
        count += size_
        commits = pa.concat_tables(parts)
        first = pc.min(commits["committed_at"]).as_py()
        is_complete = count == len(versions) or first is None or first < request.since
        if count in (len(versions), MOST_COMMITS) or (is_complete and _is_evident(commits, request.now)):
            return commits, is_complete


def _is_evident(commits: pa.Table, now: datetime) -> bool:
    """Return whether more commits would not change what is said about the rhythm."""
    if _rhythm(commits, now).pace != "late":
        return True
    times = _times(commits)
    return max(times) - min(times) >= _EVIDENCE * (now - max(times))


def _changing(commits: pa.Table) -> pa.Table:
    """Return the commits that change data."""
    return commits.filter(pc.invert(pc.is_in(commits["kind"], pa.array(MAINTENANCE_KINDS))))


def _rhythm(commits: pa.Table, now: datetime) -> Rhythm:
    return rhythm(_times(commits), now)


def _times(commits: pa.Table) -> list[datetime]:
    """Return the times of commits that change data."""
    times: list[datetime] = _changing(commits)["committed_at"].drop_null().to_pylist()
    return times


def _changes_since(table: Table, commits: pa.Table, recent: pa.Table, first: int | None) -> dict[str, object]:
    """Return what recent commits changed; null where it is not known.

    Args:
        first: The first version of the table; None if not all recent commits were read.
    """
    unreadable = pc.sum(pc.equal(commits["readable"], "no")).as_py()
    versions = recent["version"].to_pylist()
    row: dict[str, object] = {"unreadable": unreadable or None, "anomalies": list(_anomalies(table, commits, versions))}
    if first is None:
        return row | {"note": f"More than {len(commits):,} commits since then: their numbers are not added up."}
    row["commits"] = len(recent)
    changing = _changing(recent)
    for name in _SUMS:
        row[name] = pc.sum(changing[name], skip_nulls=False, min_count=0).as_py() if len(changing) else 0
    row["schema_changes"] = _schema_changes(table, commits, versions, first)
    return row


def _schema_changes(table: Table, commits: pa.Table, versions: Sequence[int], first: int) -> int | None:
    """Return how many commits of these versions changed the schema; `first` is the first version of the table."""
    if versions and commits["version"][0].as_py() == versions[0] == first:
        versions = versions[1:]  # the first version creates the schema
    if not versions:
        return 0
    known = commits["version"].to_pylist()
    if commits["schema_id"].null_count < len(commits):
        changed = changed_schema(commits)
        return sum(bool(is_changed) and version in versions for version, is_changed in zip(known, changed, strict=True))
    before = [version for version in known if version < versions[0]]
    try:
        earlier, later = table.bound.schemas([before[-1] if before else versions[0], versions[-1]])
    except SnapshotExplorerError:
        return None
    return int(earlier.columns != later.columns)


def _anomalies(table: Table, commits: pa.Table, versions: Sequence[int]) -> Iterator[str]:
    """Yield what jumps at these versions, compared with those before, and appends that repeat another one."""
    totals = commits.select(["version", "committed_at"]).append_column("value", commits["total_rows"])
    kinds = dict(zip(commits["version"].to_pylist(), commits["kind"].to_pylist(), strict=True))
    for mark in jumps({"rows": totals}, {}).to_pylist():
        if mark["version"] in versions and kinds[mark["version"]] not in MAINTENANCE_KINDS:
            yield f"version {mark['version']}: {mark['rule']}"
    for first, second, rows in _equal_appends(commits, versions):
        if _has_equal_bounds(table, first, second):
            yield (
                f"version {second}: adds {counted(rows, 'row')} with the sizes and the column bounds of the files of "
                f"version {first}, as if the same rows were loaded twice"
            )


def _equal_appends(commits: pa.Table, versions: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of appends of equally many files, rows and bytes, the only ones, where those of others differ."""
    appends = commits.filter(pc.and_(pc.equal(commits["kind"], "append"), pc.greater(commits["added_rows"], 0)))
    sizes = [tuple(row.values()) for row in appends.select(["added_files", "added_rows", "added_bytes"]).to_pylist()]
    counts = Counter(sizes)
    repeated = [item for item, count in counts.items() if count > 1 and None not in item]
    if len(sizes) < _FEWEST_APPENDS or len(repeated) != 1 or counts[repeated[0]] != 2:  # noqa: PLR2004 - a pair
        return
    first, second = (
        version for version, item in zip(appends["version"].to_pylist(), sizes, strict=True) if item == repeated[0]
    )
    if second in versions:
        yield first, second, repeated[0][1]


def _has_equal_bounds(table: Table, first: int, second: int) -> bool:
    """Return whether the files of two appends have the same bounds of every column, and bounds at all."""
    try:
        changes = table.bound.changes([first, second], changelog=False)
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
        urgency = sorted(rows, key=lambda row: (_STATES.index(str(row["state"])), str(row["name"])))
        order = rows if is_sorted else urgency
        table = pa.Table.from_pylist([dict(row) for row in order], schema=frames.LAKE_OVERVIEW)
        super().__init__(table, title=f"Lake {name}", noun="tables", limit=len(order))
        self.name = name
        self.request = request
        self.search = search

    def drawing(self) -> Drawing:
        """Return the overview as a drawing."""
        rows = self.to_arrow().to_pylist()
        counts = Counter(row["state"] for row in rows)
        states = ", ".join(f"{counts[state]:,} {state}" for state in _STATES if counts[state])
        at = moment(self.request.now).removesuffix(".000Z").removesuffix("Z")
        since = moment(self.request.since).partition(".")[0]
        next_table = next((row["name"] for row in rows if row["problem"] is None), None)
        notes = [
            Line(f"{counted(len(rows), 'table')}: {states or 'none'}. At {at} UTC; changes since {since} UTC."),
            *([Line(self.search, is_faint=True)] if self.search else []),
        ]
        marked = [(str(row["name"]), sentence) for row in rows if (sentence := what_text(row)) is not None]
        ending: list[Part] = [Pairs(tuple(marked[:_EXPLAINED]))] if marked else []
        if len(marked) > _EXPLAINED:
            ending.append(Line(f"{len(marked) - _EXPLAINED:,} more tables have a problem, a note or a change."))
        ending.append(Line(f"Rhythm: {RHYTHM_RULE}.", is_faint=True))
        if next_table is not None:
            ending.append(Code(f"snapshot_explorer.explore(lake[{next_table!r}])"))
        return Drawing(title=self.title, parts=(*notes, Grid(_drawn(rows), noun="tables", limit=self.limit), *ending))


def _drawn(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the columns that are drawn."""
    columns: dict[str, list[str | None]] = {
        "state": [row["state"] for row in rows],
        "table": [row["name"] for row in rows],
        "newest": [None if row["age_seconds"] is None else f"{_span(row['age_seconds'])} ago" for row in rows],
        "every": [None if row["usual_seconds"] is None else _span(row["usual_seconds"]) for row in rows],
        "rhythm": [row["rhythm"] for row in rows],
        "commits": [None if row["commits"] is None else f"{row['commits']:,}" for row in rows],
        "rows": [_change_text(row["added_rows"], row["removed_rows"], lambda count: f"{count:,}") for row in rows],
        "bytes": [_change_text(row["added_bytes"], row["removed_bytes"], size) for row in rows],
        "recent": [sparkline(row["recent_rows"] or []) for row in rows],
        "format": [row["format"] for row in rows],
        "unreadable": ["not checked" if row["unreadable"] is None else f"{row['unreadable']:,}" for row in rows],
        "health": [row["health"] or "not checked" for row in rows],
    }
    meanings = {
        "newest": "the age of the newest commit that changes data",
        "every": "the median time between recent commits that change data",
        "recent": "rows added by each recent commit that changes data, oldest first",
    }
    fields = [
        pa.field(
            name,
            pa.string(),
            metadata={**DRAWN, "meaning": meanings.get(name, ""), **({"whole": "yes"} if name == "table" else {})},
        )
        for name in columns
    ]
    return pa.table([pa.array(values, pa.string()) for values in columns.values()], schema=pa.schema(fields))


def _span(seconds: int) -> str:
    return span(timedelta(seconds=seconds))


def _change_text(added: int | None, removed: int | None, shown: Callable[[int], str]) -> str | None:
    if added is None or removed is None:
        return None
    return " ".join(f"{sign}{shown(count)}" for sign, count in (("+", added), ("-", removed)) if count) or "0"


def what_text(row: Mapping[str, Any]) -> str | None:
    """Return what is wrong or changed about a table, in words; None for nothing."""
    parts = [row["problem"]] if row["problem"] else []
    if row["rhythm"] == "late":
        parts.append(f"late since {_span(row['age_seconds'] - row['late_after_seconds'])}")
    if row["schema_changes"]:
        parts.append("the schema changed")
    parts += [*(row["anomalies"] or []), *([row["note"]] if row["note"] else [])]
    return "; ".join(parts) or None


def sparkline(values: Sequence[int | None]) -> str:
    """Return a bar per value, from 0 to the maximum; a dot for an unknown value."""
    most = max((value for value in values if value is not None), default=0)
    return "".join(
        "·" if value is None else _BARS[0] if not most else _BARS[min(7, value * 8 // (most + 1))] for value in values
    )


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())
