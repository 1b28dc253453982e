"""The size of a table over its versions, as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer.render.figures import (
    GREEN,
    SKY,
    VERMILLION,
    axis,
    gaps,
    layout,
    numbers,
    places,
    plain,
    version_axis,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_LINES = (("files", "files", GREEN), ("rows", "rows", SKY), ("size_bytes", "bytes", VERMILLION))
_MAX_SVG_POINTS = 1_000
"""Versions up to which every line is drawn as a shape; of more only the first, which the range slider shows too."""


def totals_figure(totals: pa.Table, *, title: str) -> go.Figure:
    """Return files, rows and bytes over versions, a stepped line each, in panels one above the other.

    Args:
        totals: version, files, rows, size_bytes; ascending by version. Where one is null its line has a gap.
        title: The heading.
    """
    import plotly.graph_objects as go

    x, shift = places(numbers(totals["version"]))
    version_template = f"{shift} + %{{x}}" if shift else "%{x}"
    figure = go.Figure()
    panels = {}
    for number, (column, name, colour) in enumerate(_LINES):
        kind = go.Scattergl if number and len(x) > _MAX_SVG_POINTS else go.Scatter
        suffix = str(number + 1) if number else ""
        figure.add_trace(
            kind(
                x=x,
                y=gaps(totals[column]),
                yaxis=f"y{suffix}",
                mode="lines" if len(x) > 1 else "markers",
                line={"color": colour, "width": 2, "shape": "hv"},
                connectgaps=False,
                name=name,
                hovertemplate=f"version {version_template}<br>{name} %{{y:,}}<extra></extra>",
            )
        )
        top = 1 - number * 0.36
        panels[f"yaxis{suffix}"] = axis(name, domain=[max(0.0, top - 0.28), top], rangemode="tozero")
    figure.update_layout(
        layout(plain(title), height=480, hovermode="closest", showlegend=False, xaxis=version_axis(shift), **panels)
    )
    figure.update_layout(xaxis={"anchor": "y3"})
    return figure
