"""The widgets that an explorer is made of: sent when they are displayed, and drawn by the script of `page`."""

import anywidget
import ipywidgets as widgets
from traitlets import Unicode, default

from snapshot_explorer.jupyter.explorer.page.scripts import packed_script, text_of


class LazyWidget:
    """A widget that is sent to the page when it is first displayed; until then its state changes without messages.

    Must come before the widget's class among the bases.
    """

    _has_ended = False

    def open(self) -> None:
        """Send nothing yet; ipywidgets would send the state in its constructor."""

    @property
    def model_id(self) -> str | None:
        """Return the id of the model, which is sent now unless it was before; None once it is closed."""
        if self.comm is None and not self._has_ended:  # type: ignore[attr-defined]  # a widget's
            super().open()  # type: ignore[misc]  # the widget's
        return None if self.comm is None else self.comm.comm_id  # type: ignore[attr-defined]  # a widget's

    def close(self) -> None:
        """Free the widget; it is no longer sent."""
        self._has_ended = True
        super().close()  # type: ignore[misc]  # the widget's


class LazyLayout(LazyWidget, widgets.Layout):
    """The layout that each widget has."""


class PageWidget(anywidget.AnyWidget):
    """A widget that the page draws from its traits; `receive` handles what a user does there."""

    _esm = Unicode().tag(sync=True)
    _css = Unicode().tag(sync=True)

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.on_msg(lambda _widget, message, _buffers: self.receive(message))

    @default("_esm")
    def _script(self) -> str:
        return packed_script()

    @default("_css")
    def _style(self) -> str:
        return text_of("page.css")

    def receive(self, message: object) -> None:
        """Handle a message of a page."""
        raise NotImplementedError
