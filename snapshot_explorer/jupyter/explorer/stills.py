"""The pictures of an explorer in a notebook: each cell that shows it keeps one, for pages without widgets."""

from collections.abc import Callable

import ipywidgets as widgets
from IPython.core.display_functions import DisplayHandle
from IPython.display import display

from snapshot_explorer.jupyter.explorer.environment import cell_count, has_kernel, is_page_acting, widget_bundle
from snapshot_explorer.jupyter.explorer.following import Timer
from snapshot_explorer.jupyter.explorer.page.static_view import shown_later_html, skeleton_html
from snapshot_explorer.jupyter.explorer.work import Work

_SOON = 0.2
"""Seconds that a cell waits for reads before the explorer is shown."""
_LATER = ("older", "totals")
"""Reads that the first picture does not need."""
_DELAY = 1.0
"""Seconds after a message from a page before the picture is updated."""


class Stills:
    """Shows a widget with a picture of it, and updates the picture that was displayed last."""

    _picture: DisplayHandle | None = None
    _live: DisplayHandle | None = None

    def __init__(self, widget: widgets.Widget, work: Work, draw: Callable[[], dict[str, str]]) -> None:
        """Show nothing yet; `draw` returns the picture by MIME type, once nothing is being read."""
        self._widget, self._work, self._draw = widget, work, draw
        self._drawn: dict[str, str] = {}
        self._about: dict[str, str] = {}
        self._cell = 0
        self._timer = Timer(self._update)
        self._is_closed = False

    def display(self) -> None:
        """Show the widget, then the table and the picture, which replace it on pages without widgets.

        Two outputs: of a single one with both, JupyterLab only shows that the widget is missing once the notebook is
        opened again. The widget comes first: its bars do not wait for the reads of the picture.

        An earlier display becomes a picture of its content, so that each cell shows the state of its time.
        """
        if self._is_closed or not has_kernel():
            display(self._draw(), raw=True)  # type: ignore[no-untyped-call]  # IPython's own
            return
        if self._live is not None and self._picture is not None and self._drawn:
            picture = self._drawn | {"text/html": shown_later_html() + self._drawn["text/html"]}
            self._picture.update(picture, raw=True)  # type: ignore[no-untyped-call]  # IPython's own
            self._live.update(self._about, raw=True)  # type: ignore[no-untyped-call]  # likewise
        self._work.wait(_SOON, but_for=_LATER)  # results that have been read by then are sent once, with the widgets
        about = {"text/plain": repr(self._widget)}
        frame = {**about, "text/html": skeleton_html()}
        self._picture = display(frame, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # IPython's own
        self._live = display(widget_bundle(self._widget) | about, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._show()
        self._about = {"text/plain": repr(self._widget)}

    def update_later(self) -> None:
        """Update the picture soon if a page changed the state, and not a cell."""
        if self._picture is not None and is_page_acting():
            self._cell = cell_count()
            self._timer.start(_DELAY)

    def close(self) -> None:
        """Update nothing any more."""
        self._is_closed = True
        self._timer.stop()

    def _update(self) -> None:
        """Draw the current state in the picture that was displayed last, once nothing is being read.

        Does nothing once another cell has run: the state is then later than the picture.
        """
        if not self._is_closed and self._cell == cell_count():
            if self._work.wait(0):
                self._show()
            else:
                self._timer.start(_DELAY)

    def _show(self) -> None:
        if self._picture is not None:
            self._drawn = self._draw()
            self._picture.update(self._drawn, raw=True)  # type: ignore[no-untyped-call]  # IPython's own
