"""Actions on a table over time: a figure with a lane for each action, and a table with a bar for how long it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.render.cells import counted
from snapshot_explorer.render.drawing import Drawing, Grid, Line
from snapshot_explorer.render.figures import GRID, Picture, Style, axis, layout, plain
from snapshot_explorer.render.palette import GREEN, GREY, ORANGE, SKY, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

STATES = {
    "completed": Style(colour=GREEN, pattern="", symbol="circle", sign=""),
    "inflight": Style(colour=ORANGE, pattern="/", symbol="triangle-right", sign="…"),
    "requested": Style(colour=SKY, pattern="", symbol="circle-open", sign="…"),
    "rolled back": Style(colour=VERMILLION, pattern="\\", symbol="x", sign="x"),
}
"""How the state of an action looks: by colour and by shape."""
_OTHER = Style(colour=GREY, pattern="", symbol="square", sign="")
_MOST = 5_000
_BAR = 24
"""Signs of the longest bar in the table."""
_LANE_PIXELS = 44
_LEVEL, _MOST_LEVELS = 0.25, 2
"""How far below each other actions of a lane that ran at the same time are drawn, and how many."""


def action_timeline(rows: pa.Table, *, y: str = "", title: str, total: int | None = None) -> Picture:
    """Return actions as a picture: what was requested, is running or completed, and what ran at the same time.

    Args:
        rows: With the columns `requested`, `action`, `service`, `state`, `requested_at`, `completed_at`, `seconds`,
            `overlaps` and `removed_by`, ascending.
        y: Unused; lengths are times.
        total: Unused.
    """
    del y, total
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
    return Picture(drawing, lambda: _figure(actions[-_MOST:], [title, *lines[:3]]))


def _answers(actions: Sequence[Mapping[str, object]]) -> list[str]:
    """Return what a reader asks first: what is open, what was undone, and who ran at the same time."""
    lines = []
    for state, verb in (("inflight", "began and did not complete"), ("requested", "requested and not begun")):
        rows = [row for row in actions if row["state"] == state]
        if rows:
            named = ", ".join(f"{row['action']} {row['requested']}" for row in rows[:3])
            lines.append(f"{len(rows):,} {verb}: {named}{' and others' if len(rows) > 3 else ''}.")  # noqa: PLR2004
    undone = [row for row in actions if row["state"] == "rolled back"]
    if undone:
        named = ", ".join(f"{row['action']} {row['requested']}" for row in undone[:3])
        lines.append(f"{len(undone):,} rolled back: {named}{' and others' if len(undone) > 3 else ''}.")  # noqa: PLR2004
    beside = sum(bool(row["overlaps"]) for row in actions)
    if beside:
        lines.append(f"{beside:,} of {counted(len(actions), 'action')} ran while another did.")
    unknown = sum(_is_unknown(row) for row in actions)
    if unknown:
        them = f"{unknown:,} of {counted(len(actions), 'action')}"
        lines.append(f"The timeline does not record when {them} completed: only the time of the request is drawn.")
    return lines


def _is_unknown(row: Mapping[str, object]) -> bool:
    return row["state"] == "completed" and row["completed_at"] is None


def _bar(row: Mapping[str, object], longest: float) -> str | None:
    seconds = row["seconds"]
    if isinstance(seconds, float):
        return "=" * max(1, round(_BAR * seconds / longest)) if longest else "="
    return "?" if _is_unknown(row) else STATES.get(str(row["state"]), _OTHER).sign or None


def _figure(actions: Sequence[Mapping[str, object]], lines: Sequence[str]) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    lanes = {name: number for number, name in enumerate(dict.fromkeys(_lane(row) for row in actions))}
    places = _places(actions, lanes)
    for state in (*STATES, *dict.fromkeys(str(row["state"]) for row in actions if row["state"] not in STATES)):
        rows = [row for row in actions if row["state"] == state]
        if not rows:
            continue
        style = STATES.get(state, _OTHER)
        begins = [_naive(row["requested_at"]) for row in rows]
        ends = [None if row["seconds"] is None else _naive(row["completed_at"]) for row in rows]
        heights = [places[index] for index, row in enumerate(actions) if row["state"] == state]
        if any(end is not None for end in ends):
            spans = [(b, e, h) for b, e, h in zip(begins, ends, heights, strict=True) if e is not None]
            figure.add_trace(
                go.Scatter(
                    x=[x for begin, end, _ in spans for x in (begin, end, None)],
                    y=[h for _, _, height in spans for h in (height, height, None)],
                    mode="lines",
                    line={"color": style.colour, "width": 9},
                    opacity=0.5,
                    showlegend=False,
                    legendgroup=state,
                    hoverinfo="skip",
                )
            )
        figure.add_trace(
            go.Scatter(
                x=begins,
                y=heights,
                mode="markers",
                marker={"symbol": style.symbol, "size": 11, "color": style.colour, "line": {"color": style.colour}},
                name=state,
                legendgroup=state,
                hovertext=[_hover(row) for row in rows],
                hoverinfo="text",
            )
        )
    top = 30 + 22 * len(lines)
    figure.update_layout(
        layout(
            "<br>".join(map(plain, lines)),
            height=top + 130 + _LANE_PIXELS * max(2, len(lanes)),
            hovermode="closest",
            margin={"l": 20, "r": 30, "t": top, "b": 80},
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            xaxis=axis(
                "as the writer's clock showed it",
                type="date",
                zeroline=False,
            ),
            yaxis=axis(
                tickvals=list(lanes.values()),
                ticktext=[plain(name) for name in lanes],
                range=[max(1, len(lanes)) - 0.4, -0.6],
                gridcolor=GRID,
                zeroline=False,
            ),
        )
    )
    if not actions:
        figure.add_annotation(text="no actions", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure


def _places(actions: Sequence[Mapping[str, object]], lanes: Mapping[str, int]) -> list[float]:
    """Return where each action is drawn: in its lane, and below another of the lane that was still running."""
    ends: dict[str, list[object]] = {}
    places = []
    for row in actions:
        lane = _lane(row)
        begin, end = row["requested_at"], row["completed_at"] or row["requested_at"]
        levels = ends.setdefault(lane, [])
        level = next((index for index, last in enumerate(levels) if not last > begin), len(levels))  # type: ignore[operator]
        levels[level : level + 1] = [end]
        places.append(lanes[lane] + min(level, _MOST_LEVELS) * _LEVEL)
    return places


def _lane(row: Mapping[str, object]) -> str:
    return str(row["service"] or row["action"])


def _naive(time: object) -> object:
    """Return a time without its zone: plotly shows all times in that of the browser."""
    return None if time is None else time.replace(tzinfo=None)  # type: ignore[attr-defined]


def _hover(row: Mapping[str, object]) -> str:
    lines = [f"{row['action']} {row['requested']}", f"{row['service'] or ''} {row['state']}".strip()]
    if row["seconds"] is not None:
        lines.append(f"ran {row['seconds']:,.1f} s")
    if row["overlaps"]:
        lines.append(f"while {', '.join(map(str, list(row['overlaps'])[:5]))} ran")  # type: ignore[call-overload]
    if row["removed_by"]:
        lines.append(f"removed by {row['removed_by']}")
    return "<br>".join(map(plain, lines))
