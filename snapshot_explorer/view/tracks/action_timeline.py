"""Actions on a table over time: a figure with a lane for each action, and a table with a bar for how long it ran."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.text import pluralize
from snapshot_explorer.view.drawing import Drawing, Grid, Line
from snapshot_explorer.view.tracks.svg import TracksPicture
from snapshot_explorer.view.tracks.tracks import Mark, Span, Track, Tracks, style_of

_MOST = 5_000
_BAR = 24
"""Signs of the longest bar in the table."""
_MOST_LEVELS = 3
"""The maximum number of tracks of a service, for actions that ran at the same time."""


def action_timeline(rows: pa.Table, *, title: str) -> TracksPicture:
    """Return actions as a picture: requested, running and completed ones, and actions that ran at the same time.

    Args:
        rows: With the columns `requested`, `action`, `service`, `state`, `requested_at`, `completed_at`, `seconds`,
            `overlaps` and `removed_by`, ascending.
    """
    actions = rows.to_pylist()
    lines = _answers(actions)
    longest = max((row["seconds"] or 0.0 for row in actions), default=0.0)
    bars = [_bar(row, longest) for row in actions]
    names = ["requested", "action", "service", "state", "seconds"]
    names += ["overlaps"] if any(row["overlaps"] for row in actions) else []
    names += ["removed_by"] if any(row["removed_by"] for row in actions) else []
    field = pa.field(
        "ran",
        pa.string(),
        metadata={"meaning": "how long it ran, to scale; … has not completed, x was rolled back, ? is not recorded"},
    )
    drawn = rows.select(names).add_column(5, field, pa.array(bars, pa.string()))
    grid = Grid(drawn.take(pa.array(range(len(drawn) - 1, -1, -1), pa.int64())), noun="actions")
    drawing = Drawing(title=title, parts=(*map(Line, lines), grid))
    lanes = _tracks(actions[-_MOST:])
    tracks = Tracks(
        title=title,
        tracks=lanes,
        total=len(lanes),
        noun="actions",
        notes=tuple(lines[:3]),
        clock="as the writer's clock showed it",
    )
    return TracksPicture(drawing, lambda: tracks)


def _answers(actions: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the main facts: open actions, undone actions, and actions that ran at the same time."""
    lines = []
    for state, verb in (
        ("inflight", "began and did not complete"),
        ("requested", "requested and not begun"),
        ("rolled back", "rolled back"),
    ):
        rows = [row for row in actions if row["state"] == state]
        if rows:
            named = ", ".join(f"{row['action']} {row['requested']}" for row in rows[:3])
            lines.append(f"{len(rows):,} {verb}: {named}{' and others' if len(rows) > 3 else ''}.")  # noqa: PLR2004
    beside = sum(bool(row["overlaps"]) for row in actions)
    if beside:
        lines.append(f"{beside:,} of {pluralize(len(actions), 'action')} ran while another did.")
    unknown = sum(_is_unknown(row) for row in actions)
    if unknown:
        them = f"{unknown:,} of {pluralize(len(actions), 'action')}"
        lines.append(f"The timeline does not record when {them} completed: only the time of the request is drawn.")
    return lines


def _is_unknown(row: Mapping[str, object]) -> bool:
    return row["state"] == "completed" and row["completed_at"] is None


def _bar(row: Mapping[str, object], longest: float) -> str | None:
    seconds = row["seconds"]
    if isinstance(seconds, float):
        return "=" * max(1, round(_BAR * seconds / longest)) if longest else "="
    return "?" if _is_unknown(row) else style_of(str(row["state"])).sign or None


def _tracks(actions: Sequence[Mapping[str, Any]]) -> tuple[Track, ...]:
    """Return a track for each service or action, and more below it for actions that ran at the same time."""
    lanes: dict[str, list[list[Mapping[str, Any]]]] = {}
    for row in actions:
        levels = lanes.setdefault(str(row["service"] or row["action"]), [])
        ends = [level[-1]["completed_at"] or level[-1]["requested_at"] for level in levels]
        free = (level for level, end in zip(levels, ends, strict=True) if end <= row["requested_at"])
        level = next(free, levels[-1] if len(levels) == _MOST_LEVELS else [])
        if not level:
            levels.append(level)
        level.append(row)
    return tuple(
        Track(
            label="" if index else lane,
            spans=tuple(
                Span(first=row["requested_at"], last=row["completed_at"], group=row["state"])
                for row in level
                if row["seconds"] is not None
            ),
            marks=tuple(Mark(place=row["requested_at"], group=row["state"], hover=_hover(row)) for row in level),
        )
        for lane, levels in lanes.items()
        for index, level in enumerate(levels)
    )


def _hover(row: Mapping[str, Any]) -> str:
    lines = [f"{row['action']} {row['requested']}", f"{row['service'] or ''} {row['state']}".strip()]
    if row["seconds"] is not None:
        lines.append(f"ran {row['seconds']:,.1f} s")
    if row["overlaps"]:
        lines.append(f"while {', '.join(map(str, list(row['overlaps'])[:5]))} ran")
    if row["removed_by"]:
        lines.append(f"removed by {row['removed_by']}")
    return "\n".join(lines)
