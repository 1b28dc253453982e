"""A map of numbers: a row for each label, a column for each version or run of versions; as data and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.view.figures import axis, layout, plotly_text

if TYPE_CHECKING:
    import numpy.typing as npt
    import plotly.graph_objects as go

_LONGEST_LABEL = 28
_TICKS = 8
_FAINTEST = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Numbers of labels over versions."""

    title: str
    labels: tuple[str, ...]
    """A label for each row."""
    versions: tuple[int, ...]
    """The first and the last version of each column, one after the other."""
    numbers: npt.NDArray[np.int64]
    """A number for each row and column; nothing is drawn for 0."""
    unit: str
    """The measure of the files that were added or removed: rows, files or bytes."""
    note: str = ""
    """A note on labels that are not drawn; empty if all are."""

    def column(self, index: int) -> str:
        """Return the versions of a column as text."""
        first, last = self.versions[2 * index : 2 * index + 2]
        return f"version {first}" if first == last else f"versions {first} to {last}"

    @property
    def what(self) -> str:
        """Return the measure in words."""
        return "files added or removed" if self.unit == "files" else f"{self.unit} in files added or removed"

    def number(self, value: int) -> str:
        """Return a number with its unit."""
        amount = format_size(value) if self.unit == "bytes" else pluralize(value, self.unit.removesuffix("s"))
        return f"{amount} added or removed" if self.unit == "files" else f"{amount} in files added or removed"

    def shades(self) -> npt.NDArray[np.float64]:
        """Return how strongly each number is drawn, up to 1: by its root, so that one rewrite does not fade others."""
        roots = np.sqrt(self.numbers)
        return np.where(self.numbers > 0, _FAINTEST + (1 - _FAINTEST) * roots / max(1.0, roots.max(initial=0)), 0)


def heat_map_content(heat: HeatMap) -> dict[str, Any]:
    """Return a map as plain data for the page: a record for each number but 0."""
    columns = heat.numbers.shape[1]
    ticks = np.unique(np.linspace(0, columns - 1, min(_TICKS, columns)).astype(int)).tolist() if columns else []
    shades = heat.shades()
    return {
        "count": columns,
        "labels": list(heat.labels),
        "ticks": [[index, str(heat.versions[2 * index])] for index in ticks],
        "cells": [
            [
                row,
                column,
                round(float(shades[row, column]), 2),
                f"{heat.labels[row]}, {heat.column(column)}: {heat.number(int(heat.numbers[row, column]))}",
            ]
            for row, column in np.argwhere(heat.numbers > 0).tolist()
        ],
        "what": heat.what,
        "note": heat.note,
    }


def heat_map_figure(heat: HeatMap) -> go.Figure:
    """Return a map as a figure."""
    import plotly.graph_objects as go

    rows, columns = heat.numbers.shape
    texts = np.array([[heat.number(int(value)) for value in row] for row in heat.numbers], np.object_)
    figure = go.Figure(
        go.Heatmap(
            x=[str(version) for version in heat.versions[::2]],
            y=[plotly_text(label, _LONGEST_LABEL) for label in heat.labels],
            z=np.where(heat.numbers > 0, heat.shades(), np.nan),
            zmin=0,
            zmax=1,
            customdata=np.dstack([texts, np.tile([heat.column(index) for index in range(columns)], (rows, 1))]),
            colorscale=[[0, "rgba(0,114,178,0)"], [1, "rgba(0,114,178,1)"]],
            colorbar={
                "title": {"text": heat.unit},
                "tickvals": [_FAINTEST, 1],
                "ticktext": ["few", "many"],
            },
            xgap=1,
            ygap=1,
            hovertemplate="%{y}<br>%{customdata[1]}<br>%{customdata[0]}<extra></extra>",
        )
    )
    lines = [plotly_text(line) for line in (heat.title, heat.what, heat.note) if line]
    top = 40 + 22 * len(lines)
    figure.update_layout(
        layout(
            "<br>".join(lines),
            height=top + 90 + max(110, 22 * rows),
            margin={"l": 20, "r": 30, "t": top, "b": 50},
            xaxis=axis("version", type="category", showgrid=False, nticks=15),
            yaxis=axis(type="category", autorange="reversed", showgrid=False),
        )
    )
    if not rows:
        figure.add_annotation(text="no files", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure
