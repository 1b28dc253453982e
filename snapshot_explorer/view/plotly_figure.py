"""A plotly figure that displays with a table beside it. Imported when a figure is made: it imports plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import plotly.graph_objects as go  # noqa: TID253 - this module is only imported when a figure is made

from snapshot_explorer.core.hints import Hint, python_call
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.view.drawing import DRAWN_ROWS, Drawing, spelled
from snapshot_explorer.view.html import render_html
from snapshot_explorer.view.text import render_text

if TYPE_CHECKING:
    from collections.abc import Callable

PLOTLY = "application/vnd.plotly.v1+json"
"""The MIME type of a figure in a notebook."""


class FigureWithTable(Shown, go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure that displays as its table on pages that show no figures, and as text."""

    _ipython_display_ = None
    """Plotly's own display, which would come first, has no table."""
    table = Drawing(title="Figure", parts=())
    """What is drawn in place of the figure."""

    @classmethod
    def of(cls, figure: go.Figure | dict[str, Any], table: Drawing) -> FigureWithTable:
        """Return a figure with the drawing of its table."""
        result = cls(figure)
        result.table = table
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        _, (properties,) = super().__reduce__()
        return FigureWithTable.of, (properties, self.table)

    def mimebundle(self, *, limit: int = DRAWN_ROWS, call: Callable[[Hint], str] = python_call) -> dict[str, Any]:
        """Return the figure and the table, as HTML and as text, for `_repr_mimebundle_`.

        Args:
            limit: Rows to draw of a grid that has no limit of its own.
            call: Spells the hints in the table.
        """
        table = spelled(self.table, call)
        shown: dict[str, Any] = orjson.loads(self.to_json())
        # Not `responsive`: notebooks resize figures themselves, and with both the figure collapses to its margins.
        shown["config"] = {"displaylogo": False, "displayModeBar": "hover"}
        return {
            PLOTLY: shown,
            "text/html": render_html(table, limit=limit, can_copy=True),
            "text/plain": render_text(table, limit=limit),
        }

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        return self.mimebundle()
