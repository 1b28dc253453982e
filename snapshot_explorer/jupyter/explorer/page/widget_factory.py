"""Makes the widgets of one explorer, which share layouts and styles: each of those takes a kilobyte when saved.

A page gets a widget once it is shown, with all that it then is: of those that are never shown it gets nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HIDDEN = "none"


class Unsent:
    """A widget that is sent to the page when another one that is sent refers to it, by its `model_id`.

    Until then its state changes without messages. Must come before the widget's class among the bases.
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


@cache
def _unsent(kind: type) -> type:
    """Return a subclass whose widgets are sent when they are shown."""
    return type(kind.__name__, (Unsent, kind), {"__module__": kind.__module__})


class Slot(Unsent, widgets.VBox):
    """A box whose content is sent when it is first shown."""

    def __init__(self, content: widgets.Widget, layout: widgets.Layout) -> None:
        """Show nothing yet."""
        super().__init__(layout=layout)
        self.content = content

    def fill(self) -> None:
        """Show the content."""
        self.children = (self.content,)


class WidgetFactory:
    """Makes widgets that share layouts and styles."""

    def __init__(self) -> None:
        """Make nothing yet."""
        self._layouts: dict[tuple[tuple[str, str], ...], widgets.Layout] = {}
        self._styles: dict[object, Any] = {}

    def layout(self, **traits: str) -> widgets.Layout:
        """Return the layout with these traits; the same object for equal traits."""
        key = tuple(sorted(traits.items()))
        if key not in self._layouts:
            self._layouts[key] = _unsent(widgets.Layout)(**traits)
        return self._layouts[key]

    def make(self, kind: Any, *, width: str = "", style: dict[str, str] | None = None, **traits: Any) -> Any:
        """Return a widget.

        Args:
            kind: Its class.
            width: Its width; empty for its natural width.
            style: The traits of its style that differ from the class's.
            traits: Its other traits.
        """
        layout = self.layout(**({"width": width} if width else {}))
        key = (kind, tuple(sorted((style or {}).items())))
        if key not in self._styles:
            self._styles[key] = _unsent(kind.class_traits()["style"].klass)(**(style or {}))
        return _unsent(kind)(layout=layout, style=self._styles[key], **traits)

    def html(self) -> widgets.HTML:
        """Return a place for HTML."""
        return self.make(widgets.HTML)

    def label(self, text: str = "") -> widgets.Label:
        """Return a place for a line of text."""
        return self.make(widgets.Label, value=text)

    def button(self, label: str, tooltip: str, act: Callable[[], None]) -> widgets.Button:
        """Return a button with a label and a tooltip."""
        made = self.make(widgets.Button, width="auto", description=label, tooltip=tooltip)
        made.on_click(lambda _: act())
        return made

    def row(self, *children: widgets.Widget, apart: bool = False, together: bool = False) -> widgets.HBox:
        """Return widgets side by side, on several lines if there is no room.

        Args:
            children: The widgets.
            apart: Whether the row has a margin on its left and stays on one line.
            together: Whether it only stays on one line.
        """
        more = {"margin": "0 0 0 12px"} if apart else {} if together else {"flex_flow": "row wrap"}
        layout = self.layout(align_items="center", overflow="visible", **more)
        return _unsent(widgets.HBox)(list(children), layout=layout)

    def column(self, *children: widgets.Widget) -> widgets.VBox:
        """Return widgets below each other."""
        return _unsent(widgets.VBox)(list(children), layout=self.layout())

    def tab(self, *children: widgets.Widget, titles: Sequence[str]) -> widgets.Tab:
        """Return tabs, one per widget."""
        return _unsent(widgets.Tab)(list(children), titles=list(titles), selected_index=0, layout=self.layout())

    def slot(self, content: widgets.Widget) -> Slot:
        """Return a box whose content is sent when it is first shown."""
        return Slot(content, self.layout())

    def show(self, widget: widgets.Widget, *, shown: bool, width: str = "") -> None:
        """Show a widget, or hide it."""
        traits = {"width": width} if width else {}
        widget.layout = self.layout(**traits) if shown else self.layout(display=_HIDDEN)


def family(widget: widgets.Widget) -> list[widgets.Widget]:
    """Return a widget and all its parts, including layouts and styles."""
    found = [widget]
    for child in {*getattr(widget, "children", ()), *([widget.content] if isinstance(widget, Slot) else [])}:
        found += family(child)
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if isinstance(part, widgets.Widget):
            found.append(part)
    return found
