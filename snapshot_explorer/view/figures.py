"""The common parts of figures: colors and shapes, a layout, safe text, and `Picture`.

Figures are plotly's, with white paper: they do not have the theme of the page, and no gray is legible on white and on
dark paper. They hold numpy arrays, which plotly sends as packed bytes, and nothing random: equal rows have equal
figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.palette import GRAY, GREEN, SKY, VERMILLION
from snapshot_explorer.view.svg import SvgPicture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt
    import plotly.graph_objects as go

    from snapshot_explorer.view.drawing import Drawing
    from snapshot_explorer.view.plotly_figure import FigureWithTable

GRID = "rgba(128,128,128,0.25)"
_LONGEST = 120
_MAX_SVG_POINTS = 1_000
"""Up to this many versions all stepped lines are SVG; above only the first panel, which the range slider shows."""
_SPARSE = 1_000
"""The ratio of the range of version numbers to the number of versions above which an axis counts versions."""
_TICKS = 5
"""The maximum number of ticks of an axis that counts versions."""
_EXACT = 2**53
"""A browser's numbers are not exact from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Marker shapes that distinguish groups in addition to color."""

    color: str
    pattern: str
    """The pattern of its bars, as plotly names it."""
    symbol: str
    """The symbol of its points, as plotly names it."""
    sign: str
    """The effect on the table: `+`, `-`, `~` for both, or empty."""

    def quiet(self) -> Style:
        """Return the style of commits that change no row: gray."""
        return replace(self, color=GRAY, pattern="")

    def filling(self) -> Mapping[str, object]:
        """Return the marker of bars."""
        # Fine lines between many bars would gray them all.
        pattern = {"shape": self.pattern, "size": 6, "solidity": 0.35, "fillmode": "overlay"}
        return {"color": self.color, "line": {"width": 0}, "pattern": pattern}


ADDED = Style(color=GREEN, pattern="", symbol="triangle-up", sign="+")
REMOVED = Style(color=VERMILLION, pattern="\\", symbol="triangle-down", sign="-")
REWRITTEN = Style(color=SKY, pattern="/", symbol="diamond", sign="~")
SHARED = Style(color=GRAY, pattern="", symbol="circle", sign="")


class Picture:
    """A figure of plotly or SVG, which is made at first use, and the drawing of the table beside it."""

    def __init__(self, drawing: Drawing, make: Callable[[], go.Figure | str]) -> None:
        self.drawing = drawing
        self._make = make

    @cached_property
    def figure(self) -> FigureWithTable | SvgPicture:
        """Return the figure, which displays with the table."""
        made = self._make()
        if isinstance(made, str):
            return SvgPicture(svg=made, table=self.drawing)
        from snapshot_explorer.view.plotly_figure import FigureWithTable  # noqa: PLC0415 - it imports plotly

        return FigureWithTable.of(made, self.drawing)


def plotly_text(content: str, longest: int = _LONGEST) -> str:
    """Return escaped text for plotly, which interprets `<b>`, `&amp;` and, with MathJax, `$x$`."""
    return escape_plotly(clean_text(content, longest))


def clean_text(content: str, longest: int = _LONGEST) -> str:
    """Return text without control characters, truncated if it is long: safe in plain text."""
    return truncate(sanitize(content), longest)


def escape_plotly(content: str) -> str:
    """Return text as plotly shows it unchanged."""
    return escape(content, quote=False).replace("$", "&#36;")


def layout(title: str, /, **more: object) -> dict[str, object]:
    """Return the layout of a figure."""
    return {
        # The user's default template would color this figure.
        "template": "none",
        "title": {
            "text": title,
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yanchor": "top",
            # Plotly moves the first line up by half of each further one.
            "pad": {"t": 14 + 9 * title.count("<br>")},
            "font": {"size": 16},
        },
        "font": {"color": GRAY, "size": 12},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"bgcolor": "#333333", "bordercolor": GRAY, "font": {"color": "#ffffff"}, "align": "left"},
        "margin": {"l": 70, "r": 70, "t": 80, "b": 50},
        # The user's zoom is kept when the figure is drawn again.
        "uirevision": "snapshot_explorer",
        **more,
    }


def axis(title: str = "", /, **more: object) -> dict[str, object]:
    """Return an axis of a figure."""
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": GRID,
        "zerolinecolor": GRAY,
        "linecolor": GRID,
        "automargin": True,
        **more,
    }


def numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return a column of whole numbers, 0 for null."""
    filled: npt.NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return filled


def numbers_with_gaps(column: pa.ChunkedArray) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return a column of whole numbers, as decimals with NaN for null if there are nulls."""
    if not column.null_count:
        return numbers(column)
    return np.where(column.is_null().to_numpy(), np.nan, numbers(column).astype(np.float64))


def version_positions(versions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Return the positions of versions on an axis, and the versions if the positions only count them.

    Versions that are times lie too far apart for a scale of their numbers, and a browser cannot represent them all.
    """
    spread = int(versions.max()) - int(versions.min()) if len(versions) else 0
    if spread <= _SPARSE * len(versions) and not (versions >= _EXACT).any():
        return versions, None
    return np.arange(len(versions), dtype=np.int64), versions


def name_versions(figure: go.Figure, counted_versions: npt.NDArray[np.int64] | None) -> go.Figure:
    """Write the versions into tooltips that would show positions, and return the figure."""
    if counted_versions is None:
        return figure
    for trace in figure.data:
        if "%{x}" not in (trace.hovertemplate or ""):
            continue
        x = np.arange(len(trace.y)) + (trace.x0 or 0) if trace.x is None else np.asarray(trace.x, np.float64)
        indices = np.clip(np.nan_to_num(x), 0, len(counted_versions) - 1).astype(np.int64)
        trace.hovertext = [str(version) for version in counted_versions[indices].tolist()]
        trace.hovertemplate = trace.hovertemplate.replace("%{x}", "%{hovertext}")
    return figure


def stepped_line(
    x: npt.NDArray[np.int64],
    y: np.ndarray,
    *,
    panel: int,
    name: str,
    color: str,
    dash: str | None = None,
    number_format: str = "",
) -> go.Scatter | go.Scattergl:
    """Return a stepped line over versions, in one of several panels with a common axis of versions.

    Args:
        x: The positions of the versions.
        panel: The number of the panel from 0. With many versions only the first panel is SVG, for the range slider.
        name: The name of the values, for the tooltip.
        number_format: The format of the values in the tooltip, such as `:,`.
    """
    import plotly.graph_objects as go

    trace = go.Scattergl if panel and len(x) > _MAX_SVG_POINTS else go.Scatter
    return trace(
        x=x,
        y=y,
        yaxis=f"y{panel_suffix(panel)}",
        mode="lines" if len(x) > 1 else "markers",
        line={"color": color, "width": 2, "shape": "hv"} | ({"dash": dash} if dash else {}),
        connectgaps=False,
        name=name,
        hovertemplate=f"version %{{x}}<br>{name} %{{y{number_format}}}<extra></extra>",
    )


def shades(first: np.ndarray, last: np.ndarray, *, name: str, color: str, pattern: str, panel: str) -> go.Scatter:
    """Return areas from bottom to top behind versions, as one shape.

    Args:
        first: The position of the first version of each area.
        last: The position of the last version of each area.
        name: Their name in the legend.
        panel: The y axis, which goes from 0 to 1.
    """
    import plotly.graph_objects as go

    edges = np.stack([first - 0.5, first - 0.5, last + 0.5, last + 0.5], 1)
    return go.Scatter(
        x=edges.ravel(),
        y=np.tile(np.array([0, 1, 1, 0], np.int8), len(first)),
        yaxis=panel,
        mode="lines",
        line={"width": 0, "color": color},
        fill="tozeroy",
        fillcolor=_fade(color, 0.2 if pattern else 0.35),
        fillpattern={"shape": pattern, "fgcolor": color, "bgcolor": _fade(color, 0.2), "size": 8} if pattern else None,
        name=name,
        hoverinfo="skip",
    )


def _fade(color: str, opacity: float) -> str:
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def panel_suffix(panel: int) -> str:
    """Return the suffix of the y axis of a panel, by its number from 0."""
    return str(panel + 1) if panel else ""


def version_axis(counted_versions: npt.NDArray[np.int64] | None, *, has_slider: bool = True) -> dict[str, object]:
    """Return the axis of versions, with a range slider, which draws everything on the axis once more.

    Args:
        counted_versions: The versions, if positions count them, as from `version_positions`.
    """
    slider: dict[str, object] = {"visible": False}
    if has_slider:
        slider = {"visible": True, "thickness": 0.08, "bgcolor": "rgba(0,0,0,0)", "bordercolor": GRID, "borderwidth": 1}
    ticks: dict[str, object] = {}
    if counted_versions is not None:
        chosen = np.unique(np.linspace(0, len(counted_versions) - 1, _TICKS).astype(np.int64))
        ticks = {
            "tickmode": "array",
            "tickvals": chosen,
            "ticktext": [str(count) for count in counted_versions[chosen].tolist()],
        }
    return axis("version", rangeslider=slider, tickformat="d", showgrid=False, zeroline=False, **ticks)
