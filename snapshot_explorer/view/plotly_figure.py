"""A plotly figure that displays with a table beside it. Imported when a figure is made: it imports plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import plotly.graph_objects as go  # noqa: TID253 - this module is only imported when a figure is made

from snapshot_explorer.view.drawing import DRAWN_ROWS
from snapshot_explorer.view.html import render_html
from snapshot_explorer.view.text import render_text

if TYPE_CHECKING:
    from snapshot_explorer.view.drawing import Drawing

PLOTLY = "application/vnd.plotly.v1+json"
"""The MIME type of a figure in a notebook."""


class FigureWithTable(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure that displays as its table on pages that show no figures, and as text."""

    _ipython_display_ = None
    """Plotly's own display, which would come first, has no table."""
    _table: Drawing | None = None
    """The table; None for a copy, which plotly makes of the figure alone."""

    @classmethod
    def of(cls, figure: go.Figure, table: Drawing) -> FigureWithTable:
        """Return a figure with the drawing of its table."""
        result = cls(figure)
        result._table = table
        return result

    def __repr__(self) -> str:
        return super().__repr__() if self._table is None else render_text(self._table)

    def mimebundle(self, *, limit: int = DRAWN_ROWS) -> dict[str, Any]:
        """Return the figure and the table, as HTML and as text, for `_repr_mimebundle_`."""
        shown: dict[str, Any] = orjson.loads(self.to_json())
        # Not `responsive`: notebooks resize figures themselves, and with both the figure collapses to its margins.
        shown["config"] = {"displaylogo": False, "displayModeBar": "hover"}
        bundle: dict[str, Any] = {PLOTLY: shown}
        if self._table is None:
            return bundle | {"text/plain": repr(self)}
        return bundle | {
            "text/html": render_html(self._table, limit=limit, can_copy=True),
            "text/plain": render_text(self._table, limit=limit),
        }

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        return self.mimebundle()
