"""The size of a table over its versions, as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer.view.figures import (
    axis,
    layout,
    name_versions,
    numbers,
    numbers_with_gaps,
    panel_suffix,
    plotly_text,
    stepped_line,
    version_axis,
    version_positions,
)
from snapshot_explorer.view.palette import GREEN, SKY, VERMILLION

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_LINES = (("files", "files", GREEN), ("rows", "rows", SKY), ("size_bytes", "bytes", VERMILLION))


def totals_figure(totals: pa.Table, *, title: str) -> go.Figure:
    """Return files, rows and bytes over versions, a stepped line each, in panels one above the other.

    Args:
        totals: version, files, rows, size_bytes; ascending by version. A null is a gap in its line.
    """
    import plotly.graph_objects as go

    x, counted_versions = version_positions(numbers(totals["version"]))
    figure = go.Figure()
    panels = {}
    for number, (column, name, color) in enumerate(_LINES):
        suffix = panel_suffix(number)
        figure.add_trace(
            stepped_line(x, numbers_with_gaps(totals[column]), panel=number, name=name, color=color, number_format=":,")
        )
        top = 1 - number * 0.36
        panels[f"yaxis{suffix}"] = axis(name, domain=[max(0.0, top - 0.28), top], rangemode="tozero")
    figure.update_layout(
        layout(
            plotly_text(title),
            height=480,
            hovermode="closest",
            showlegend=False,
            xaxis=version_axis(counted_versions),
            **panels,
        )
    )
    figure.update_layout(xaxis={"anchor": "y3"})
    return name_versions(figure, counted_versions)
