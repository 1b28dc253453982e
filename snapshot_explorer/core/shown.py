"""The mixin by which a record shows itself; `view` decides how."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Shown:
    """A record that shows itself as text in a terminal, and as HTML in a notebook.

    `view` has the drawing of each type of record. It is imported when something is shown: it lies above all records.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self)

    def __str__(self) -> str:
        return text_of(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = import_module("snapshot_explorer.view").mimebundle_of(self)
        return bundle


def text_of(record: object) -> str:
    """Return a record as the text that `view` draws."""
    text: str = import_module("snapshot_explorer.view").text_of(record)
    return text


def figure_of(record: object, **choices: object) -> go.Figure | Shown:
    """Return the figure that `view` draws of a record, of plotly or SVG; for the `picture` of a record that has one."""
    return import_module("snapshot_explorer.view").picture_of(record, **choices).figure
