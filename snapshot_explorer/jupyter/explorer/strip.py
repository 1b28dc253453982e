"""The timeline of an explorer: a figure of commits, the markers A and B, and what a click on a commit does."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import orjson

from snapshot_explorer.jupyter.explorer.work import running_loop
from snapshot_explorer.render import text
from snapshot_explorer.render.figures import BLUE, PLOTLY, VERMILLION, numbers, places
from snapshot_explorer.render.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import plotly.graph_objects as go
    import pyarrow as pa
    from traitlets import Bunch

    from snapshot_explorer.render.figures import Picture

_HEIGHT = 340
_CONFIG = {"displaylogo": False, "responsive": True, "displayModeBar": False}
_BETWEEN = 0.32
"""Where the letters stand: between the bars and the line, where they hide neither."""
_DRAWN = "_js2py_traceDeltas"
"""What plotly's widget sets when the page has drawn it."""
_MEASURED_AFTER = (0.0, 1.5)
"""Seconds after which a page is asked to measure the figure: it has a place by then, or a little later."""
_MARKERS = {"A": VERMILLION, "B": BLUE}


class Strip:
    """Draws commits with markers: a plain figure at first, one that hears clicks once `live` is called.

    The figure that hears clicks, plotly's FigureWidget, holds five megabytes of script: there is one at most, and only
    where somebody can click. Nothing needs a click.
    """

    def __init__(self, clicked: Callable[[int, bool], None]) -> None:
        """Draw nothing yet.

        Args:
            clicked: Takes the version whose commit was clicked, and whether shift was held.
        """
        self._clicked = clicked
        self._output = widgets.Output()
        self._figure: Any = None
        self._shift = 0
        self._made: go.Figure | None = None
        self._marks: dict[str, object] = {}
        self.box = widgets.VBox([self._output])
        self.picture: Picture | None = None

    @property
    def is_live(self) -> bool:
        """Return whether the figure hears clicks."""
        return self._figure is not None

    def live(self) -> None:
        """Have the figure hear clicks, where anywidget is installed."""
        if self.is_live or self._made is None or not prepare(live=True):
            return
        import plotly.graph_objects as go  # noqa: PLC0415 - it takes long

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._figure = go.FigureWidget(self._made)
            self._figure._config = dict(_CONFIG)  # noqa: SLF001 - plotly names the settings of its widget so
        self._figure.update_layout(self._marks)
        self._listen()
        self._figure.observe(self._drawn, _DRAWN)
        self.box.children = (self._figure,)
        self._output.outputs = ()

    def draw(
        self,
        commits: pa.Table,
        *,
        measure: str,
        title: str,
        total: int,
        branches: Mapping[int, Sequence[str]],
        a: int,
        b: int,
    ) -> None:
        """Draw the commits, newest first, in place of what was drawn; `branches` begin with a version each."""
        self.picture = timeline(commits, y=measure, title=title, total=total, branches=branches)
        made = self.picture.figure
        made.update_layout(
            title=None,
            height=_HEIGHT,
            autosize=True,
            margin={"l": 60, "r": 60, "t": 34, "b": 36},
            xaxis={"rangeslider": {"visible": False}, "anchor": "y2"},
            clickmode="event",
        )
        self._made = made
        self._shift = places(numbers(commits["version"]))[1] if len(commits) else 0
        if self.is_live:
            with self._figure.batch_update():
                self._figure.data = ()
            self._figure.add_traces(list(made.data))
            self._figure.layout = made.layout
            self._listen()
        self.mark(commits, a, b)

    def mark(self, commits: pa.Table, a: int, b: int) -> None:
        """Move the markers."""
        there = set(commits["version"].to_pylist())
        self._marks = _marks({name: at - self._shift for name, at in (("A", a), ("B", b)) if at in there})
        if not len(commits):
            return self._show()
        if self.is_live:
            self._figure.update_layout(self._marks)
        else:
            self._show()
        return None

    def close(self) -> None:
        """Free the figures."""
        self._output.outputs = ()
        self.box.children = (self._output, *([self._figure] if self.is_live else []))
        self._made = self.picture = None

    def _show(self) -> None:
        """Show the plain figure."""
        if self.is_live or self._made is None or self.picture is None:
            return
        shown = orjson.loads(self._made.to_json())
        if self._marks["shapes"]:
            shown["layout"] |= self._marks
        shown["config"] = _CONFIG
        said = text(self.picture.drawing(), limit=5)
        output = {"output_type": "display_data", "data": {PLOTLY: shown, "text/plain": said}, "metadata": {}}
        self._output.outputs = (output,)

    def _drawn(self, change: Bunch) -> None:
        """Have the page measure a figure that it drew before it had a place, and so as wide as none is."""
        loop = running_loop()
        if change.new and loop is not None:
            self._figure.unobserve(self._drawn, _DRAWN)
            for seconds in _MEASURED_AFTER:
                loop.call_later(seconds, self._measure)

    def _measure(self) -> None:
        if self._made is not None:
            self._figure.update_layout(autosize=False)
            self._figure.update_layout(autosize=True)

    def _listen(self) -> None:
        for trace in self._figure.data:
            trace.on_click(self._click)

    def _click(self, _trace: object, points: Any, keys: Any) -> None:
        if len(points.xs):
            self._clicked(round(points.xs[0]) + self._shift, bool(getattr(keys, "shift", False)))


def prepare(*, live: bool) -> bool:
    """Import what draws, which takes long and so is done off the main thread; return whether it is there.

    Args:
        live: Whether for the figure that hears clicks, which needs anywidget too.
    """
    if live and find_spec("anywidget") is None:
        return False
    import plotly.graph_objects as go  # noqa: PLC0415 - as said

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return all((go.Figure, go.Bar, go.Scatter, go.Scattergl, *((go.FigureWidget,) if live else ())))


def _marks(places: dict[str, int]) -> dict[str, object]:
    """Return lines and letters at places of the axis."""
    lines, letters = [], []
    for name, x in places.items():
        colour, dash = _MARKERS[name], "dash" if name == "A" else "solid"
        lines.append(
            {
                "type": "line",
                "x0": x,
                "x1": x,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": colour, "width": 2, "dash": dash},
            }
        )
        letters.append(
            {
                "x": x,
                "y": _BETWEEN,
                "yref": "paper",
                "text": f"<b>{name}</b>",
                "showarrow": False,
                "xanchor": "right" if name == "A" else "left",
                "yanchor": "middle",
                "font": {"color": "#ffffff", "size": 11},
                "bgcolor": colour,
                "borderpad": 2,
            }
        )
    return {"shapes": lines, "annotations": letters}
