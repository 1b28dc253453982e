"""The list of commits on the page, and the strip of the whole history above it. Plain data."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.commits import commit_message
from snapshot_explorer.view.figures import numbers
from snapshot_explorer.view.row_changes import commit_bars_of, row_change_text

PAGE = 60
"""Commits that are sent to the page at a time."""
_BINS = 200
_LONGEST = 160


def commit_rows(commits: pa.Table, start: int, measure: str) -> dict[str, Any]:
    """Return a page of the list: its start, and the record of each commit, newest first."""
    start = max(0, min(start, len(commits)))
    page = commits.slice(start, PAGE)
    quiet = commit_bars_of(page, measure).quiet.tolist()
    rows = zip(page.to_pylist(), quiet, strict=True)
    return {"start": start, "rows": [_commit_row(row, measure, is_quiet=is_quiet) for row, is_quiet in rows]}


def most_changed(commits: pa.Table, measure: str) -> int:
    """Return the maximum of the numbers that commits of the list added and removed, without those that only rewrite."""
    return int(np.max(_changed(commits, measure), initial=0))


def _changed(commits: pa.Table, measure: str) -> npt.NDArray[np.float64]:
    """Return how much each commit changed; 0 for one that only rewrites rows."""
    bars = commit_bars_of(commits, measure)
    return np.where(bars.quiet, 0, bars.up.astype(np.float64) + bars.down)


def _commit_row(row: dict[str, Any], measure: str, *, is_quiet: bool) -> dict[str, Any]:
    """Return the record of a commit in the list. Unknown counts are null, times are in milliseconds."""
    time = row["committed_at"]
    added, removed, updated = row[f"added_{measure}"], row[f"removed_{measure}"], 0
    if measure == "rows" and row["rows_source"] == "net":
        added, removed = max(added - removed, 0), max(removed - added, 0)
    elif measure == "rows":
        added, removed, updated = (row[f"rows_{name}"] for name in ("inserted", "deleted", "updated"))
    return {
        "version": str(row["version"]),
        "kind": row["kind"],
        "operation": sanitize(truncate(row["operation"] or row["kind"], _LONGEST)),
        "message": sanitize(truncate(commit_message(row["details"]), _LONGEST)),
        "user": sanitize(truncate(row["user"] or "", _LONGEST)),
        "time": None if time is None else int(time.timestamp() * 1000),
        "added": added,
        "removed": removed,
        "updated": updated,
        "isQuiet": is_quiet,
        "isNet": measure == "rows" and row["rows_source"] == "net",
        "remark": _remark(row, is_quiet=is_quiet) if measure == "rows" else "",
        "change": row_change_text(row),
        "tags": [sanitize(truncate(name, _LONGEST)) for name in (row["tags"] or [])[:3]],
        "readable": row["readable"],
    }


def _remark(row: dict[str, Any], *, is_quiet: bool) -> str:
    """Return what stands in place of the rows that a commit changed if it changed none, or if they are not counted."""
    if is_quiet:
        return "rewrites" if row["rows_inserted"] is None or row["rows_rewritten"] else "no change"
    if row["rows_inserted"] is not None or row["rows_source"] == "net":
        return ""
    return f"{row['added_rows']:,} written" if row["added_rows"] else "not counted"


def overview(commits: pa.Table, versions: tuple[int, ...], measure: str) -> dict[str, Any]:
    """Return the strip of all versions: bars of equally many versions, and the times of the first and the last."""
    if not versions:
        return {}
    total = len(versions)
    places = np.searchsorted(np.asarray(versions), numbers(commits["version"]))
    changed = _changed(commits, measure)
    bins = np.zeros(min(_BINS, total))
    np.maximum.at(bins, np.minimum(places * len(bins) // total, len(bins) - 1), changed)
    # One large commit must not flatten all others.
    heights = np.sqrt(bins / max(1.0, float(bins.max(initial=0.0))))
    times = (
        [value.as_py() for value in (commits["committed_at"][-1], commits["committed_at"][0])] if len(commits) else []
    )
    return {
        "bins": np.round(heights, 3).tolist(),
        "times": [None if time is None else int(time.timestamp() * 1000) for time in times],
        "count": total,
    }
