"""The list of commits on the page, and the strip of the whole history above it. Plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.commits import commit_message
from snapshot_explorer.view.figures import numbers

if TYPE_CHECKING:
    import pyarrow as pa

PAGE = 60
"""Commits that are sent to the page at a time."""
_BINS = 200
_LONGEST = 160


def commit_rows(commits: pa.Table, start: int, measure: str) -> dict[str, Any]:
    """Return a page of the list: its start, and the record of each commit, newest first."""
    start = max(0, min(start, len(commits)))
    return {"start": start, "rows": [commit_row(row, measure) for row in commits.slice(start, PAGE).to_pylist()]}


def most_changed(commits: pa.Table, measure: str) -> int:
    """Return the maximum of the numbers that commits of the list added and removed."""
    changed = sum(numbers(commits[f"{side}_{measure}"]) for side in ("added", "removed"))
    return int(np.max(changed, initial=0))


def commit_row(row: dict[str, Any], measure: str) -> dict[str, Any]:
    """Return the record of a commit in the list. Unknown counts are null, times are in milliseconds."""
    time = row["committed_at"]
    return {
        "version": str(row["version"]),
        "kind": row["kind"],
        "operation": sanitize(truncate(row["operation"] or row["kind"], _LONGEST)),
        "message": sanitize(truncate(commit_message(row["details"]), _LONGEST)),
        "user": sanitize(truncate(row["user"] or "", _LONGEST)),
        "time": None if time is None else int(time.timestamp() * 1000),
        "added": row[f"added_{measure}"],
        "removed": row[f"removed_{measure}"],
        "tags": [sanitize(truncate(name, _LONGEST)) for name in (row["tags"] or [])[:3]],
        "readable": row["readable"],
    }


def overview(commits: pa.Table, versions: tuple[int, ...], measure: str) -> dict[str, Any]:
    """Return the strip of all versions: bars of equally many versions, and the times of the first and the last."""
    if not versions:
        return {}
    total = len(versions)
    places = np.searchsorted(np.asarray(versions), numbers(commits["version"]))
    changed = sum(numbers(commits[f"{side}_{measure}"]).astype(np.float64) for side in ("added", "removed"))
    bins = np.zeros(min(_BINS, total))
    np.maximum.at(bins, np.minimum(places * len(bins) // total, len(bins) - 1), changed)
    # One compaction must not flatten all others.
    heights = np.sqrt(bins / max(1.0, float(bins.max(initial=0.0))))
    times = (
        [value.as_py() for value in (commits["committed_at"][-1], commits["committed_at"][0])] if len(commits) else []
    )
    return {
        "bins": np.round(heights, 3).tolist(),
        "times": [None if time is None else int(time.timestamp() * 1000) for time in times],
        "count": total,
    }
