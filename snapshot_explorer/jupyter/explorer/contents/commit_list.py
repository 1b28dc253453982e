"""The list of commits on the page, and the strip of the whole history above it. Plain data."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from snapshot_explorer.render.cells import cut
from snapshot_explorer.render.figures import numbers
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

PAGE = 60
"""Commits that are sent to the page at a time."""
_BINS = 200
_LONGEST = 160
_LONGEST_DETAILS = 100_000
_EXPRESSION_ID = re.compile(r"(?<=\w)#\d+L?\b")


def commit_rows(commits: pa.Table, start: int, measure: str) -> dict[str, Any]:
    """Return a page of the list: where it starts, and what is shown of each commit, newest first."""
    start = max(0, min(start, len(commits)))
    return {"start": start, "rows": [commit_row(row, measure) for row in commits.slice(start, PAGE).to_pylist()]}


def most_changed(commits: pa.Table, measure: str) -> int:
    """Return the most that a commit of the list added and removed."""
    changed = sum(numbers(commits[f"{side}_{measure}"]) for side in ("added", "removed"))
    return int(np.max(changed, initial=0))


def commit_row(row: dict[str, Any], measure: str) -> dict[str, Any]:
    """Return what the list shows of a commit; a count is null where it is unknown, a time is in milliseconds."""
    time = row["committed_at"]
    return {
        "version": str(row["version"]),
        "kind": row["kind"],
        "operation": visible(cut(row["operation"] or row["kind"], _LONGEST)),
        "message": visible(cut(commit_message(row["details"]), _LONGEST)),
        "user": visible(cut(row["user"] or "", _LONGEST)),
        "time": None if time is None else int(time.timestamp() * 1000),
        "added": row[f"added_{measure}"],
        "removed": row[f"removed_{measure}"],
        "tags": [visible(cut(name, _LONGEST)) for name in (row["tags"] or [])[:3]],
        "readable": row["readable"],
    }


def commit_message(details: str | None) -> str:
    """Return the message or the predicate that a writer stored with a commit; empty text if there is neither."""
    if not details or len(details) > _LONGEST_DETAILS:
        return ""
    try:
        stored = json.loads(details)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(stored, dict):
        return ""
    summary = stored.get("summary")
    for source, name in (
        (stored, "userMetadata"),
        (stored, "message"),
        (summary, "message"),
        (summary, "commit-message"),
    ):
        if isinstance(source, dict) and isinstance(text := source.get(name), str) and text:
            return text
    parameters = stored.get("operationParameters")
    predicate = parameters.get("predicate") if isinstance(parameters, dict) else None
    return f"where {text}" if isinstance(predicate, str) and (text := _predicate(predicate)) else ""


def _predicate(text: str) -> str:
    """Return a predicate of Delta's log, which may be a JSON list with the ids of Spark's columns."""
    try:
        stored = json.loads(text)
    except ValueError:
        stored = text
    parts = [part for part in stored if isinstance(part, str)] if isinstance(stored, list) else [str(stored)]
    plain = [_EXPRESSION_ID.sub("", part) for part in parts if part and part != "true"]
    return " and ".join(_unwrapped(part) for part in plain)


def _unwrapped(text: str) -> str:
    """Return a predicate without the parentheses around all of it."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if letter == ")" and place == len(text) - 1 and text[0] == "(" else text
    return text


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
