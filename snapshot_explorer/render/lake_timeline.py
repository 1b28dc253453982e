"""The commits of many tables over time, as a figure with a lane per table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.render.commits import OTHER, STYLES, commit_hover_text
from snapshot_explorer.render.drawing import Drawing, Grid, Line
from snapshot_explorer.render.figures import GRID, Picture, axis, layout, plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import plotly.graph_objects as go

_MAX_LANES = 60
_MAX_POINTS = 5_000
_LANE_PIXELS, _LONGEST_NAME = 24, 40


def lake_timeline(
    commits: pa.Table,
    *,
    y: str = "",
    title: str,
    total: int | None = None,
    since: datetime,
    until: datetime,
    notes: Sequence[str] = (),
) -> Picture:
    """Return LAKE_COMMITS as a picture. Lanes are ordered by their first commit, so that jobs read top to bottom.

    Args:
        y: Unused; every point is a commit.
        total: Unused.
    """
    del y, total
    counts = commits.group_by("table").aggregate([("committed_at", "min"), ("committed_at", "count")])
    busiest = counts.sort_by([("committed_at_count", "descending"), ("table", "ascending")]).slice(0, _MAX_LANES)
    lanes = busiest.sort_by([("committed_at_min", "ascending"), ("table", "ascending")])["table"].to_pylist()
    drawn = commits.filter(pc.is_in(commits["table"], pa.array(lanes, pa.string()))).slice(0, _MAX_POINTS)
    more = [] if len(lanes) == len(counts) else [f"{len(lanes):,} of {len(counts):,} tables, those with most commits"]
    more += [] if len(drawn) == len(commits) else [f"{len(drawn):,} of {len(commits):,} commits"]
    lines = [*notes, *more]
    grid = Grid(
        commits.select(["committed_at", "table", "version", "kind", "operation", "user", "added_rows", "removed_rows"]),
        noun="commits",
    )
    drawing = Drawing(title=title, parts=(*map(Line, lines), grid))
    return Picture(drawing, lambda: _figure(drawn, lanes, [title, *lines[:3]], (since, until)))


def _figure(
    commits: pa.Table, lanes: Sequence[str], lines: Sequence[str], span: tuple[datetime, datetime]
) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    lane = {name: number for number, name in enumerate(lanes)}
    rows = commits.append_column("tags", pa.nulls(len(commits), pa.list_(pa.string()))).to_pylist()
    sizes = 8 + 2 * np.log10(1 + pc.fill_null(commits["added_rows"], 0).to_numpy())
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for kind in kinds:
        look = STYLES.get(kind, OTHER)
        chosen = [number for number, row in enumerate(rows) if row["kind"] == kind]
        figure.add_trace(
            go.Scatter(
                x=[rows[number]["committed_at"].replace(tzinfo=None) for number in chosen],
                y=[lane[rows[number]["table"]] for number in chosen],
                mode="markers",
                marker={"symbol": look.symbol, "size": sizes[chosen], "color": look.colour},
                name=plain(f"{look.sign} {kind}".strip()),
                hovertext=[_hover(rows[number]) for number in chosen],
                hoverinfo="text",
            )
        )
    top = 30 + 22 * len(lines)
    figure.update_layout(
        layout(
            "<br>".join(map(plain, lines)),
            height=top + 110 + _LANE_PIXELS * max(4, len(lanes)),
            hovermode="closest",
            margin={"l": 20, "r": 30, "t": top, "b": 80},
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            xaxis=axis("UTC", type="date", range=[time.replace(tzinfo=None) for time in span], zeroline=False),
            yaxis=axis(
                tickvals=list(range(len(lanes))),
                ticktext=[plain(name, _LONGEST_NAME) for name in lanes],
                range=[len(lanes) - 0.4, -0.6],
                gridcolor=GRID,
                zeroline=False,
            ),
        )
    )
    if not rows:
        figure.add_annotation(text="no commits", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure


def _hover(row: dict[str, object]) -> str:
    return f"{plain(str(row['table']))}<br>{commit_hover_text(row | {'branches': None}, schema_changed=False)}"
