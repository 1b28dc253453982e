"""A plotly figure that displays with a table beside it. Imported when a figure is made: it imports plotly."""

from typing import Any

import orjson
import plotly.graph_objects as go  # noqa: TID253 - this module is only imported when a figure is made

from snapshot_explorer.view.drawing import Drawing
from snapshot_explorer.view.svg import ShownFigure

PLOTLY = "application/vnd.plotly.v1+json"
"""The MIME type of a figure in a notebook."""


class FigureWithTable(ShownFigure, go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure that displays as its table on pages that show no figures, and as text."""

    _ipython_display_ = None
    """Plotly's own display, which would come first, has no table."""
    table = Drawing(title="Figure", parts=())
    """What is drawn in place of the figure."""

    @classmethod
    def of(cls, figure: go.Figure | dict[str, Any], table: Drawing) -> "FigureWithTable":
        """Return a figure with the drawing of its table."""
        result = cls(figure)
        result.table = table
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        _, (properties,) = super().__reduce__()
        return FigureWithTable.of, (properties, self.table)

    @property
    def formats(self) -> dict[str, Any]:
        """The figure in plotly's format."""
        shown: dict[str, Any] = orjson.loads(self.to_json())
        # Not `responsive`: notebooks resize figures themselves, and with both the figure collapses to its margins.
        shown["config"] = {"displaylogo": False, "displayModeBar": "hover"}
        return {PLOTLY: shown}
