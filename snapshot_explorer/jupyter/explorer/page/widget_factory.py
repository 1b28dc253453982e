"""Makes the widgets of one explorer, which share layouts and styles: each of those takes a kilobyte when saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

if TYPE_CHECKING:
    from collections.abc import Callable

_HIDDEN = "none"


class WidgetFactory:
    """Makes widgets that look alike where they are alike."""

    def __init__(self) -> None:
        """Make nothing yet."""
        self._layouts: dict[tuple[tuple[str, str], ...], widgets.Layout] = {}
        self._styles: dict[object, Any] = {}

    def layout(self, **traits: str) -> widgets.Layout:
        """Return the layout of these traits; the same for the same."""
        key = tuple(sorted(traits.items()))
        if key not in self._layouts:
            self._layouts[key] = widgets.Layout(**traits)
        return self._layouts[key]

    def make(self, kind: Any, *, width: str = "", style: dict[str, str] | None = None, **traits: Any) -> Any:
        """Return a widget.

        Args:
            kind: Its class.
            width: How wide it is; as wide as it wants without it.
            style: The traits of its style that differ from the class's.
            traits: Its other traits.
        """
        layout = self.layout(**({"width": width} if width else {}))
        key = (kind, tuple(sorted((style or {}).items())))
        made = kind(layout=layout, style=self._styles.get(key, style or {}), **traits)
        self._styles.setdefault(key, made.style)
        return made

    def html(self) -> widgets.HTML:
        """Return a place for HTML."""
        return self.make(widgets.HTML)

    def label(self, text: str = "") -> widgets.Label:
        """Return a place for a line of text."""
        return self.make(widgets.Label, value=text)

    def button(self, label: str, tooltip: str, act: Callable[[], None]) -> widgets.Button:
        """Return a button that says in words what it does."""
        made = self.make(widgets.Button, width="auto", description=label, tooltip=tooltip)
        made.on_click(lambda _: act())
        return made

    def row(self, *children: widgets.Widget, apart: bool = False, together: bool = False) -> widgets.HBox:
        """Return widgets side by side, on further lines where there is no room.

        Args:
            children: The widgets.
            apart: Whether the row stands apart from what is on its left, and stays on one line.
            together: Whether it only stays on one line.
        """
        more = {"margin": "0 0 0 12px"} if apart else {} if together else {"flex_flow": "row wrap"}
        return widgets.HBox(list(children), layout=self.layout(align_items="center", overflow="visible", **more))

    def column(self, *children: widgets.Widget) -> widgets.VBox:
        """Return widgets below each other."""
        return widgets.VBox(list(children), layout=self.layout())

    def show(self, widget: widgets.Widget, *, shown: bool, width: str = "") -> None:
        """Show a widget, or hide it."""
        traits = {"width": width} if width else {}
        widget.layout = self.layout(**traits) if shown else self.layout(display=_HIDDEN)


def family(widget: widgets.Widget) -> list[widgets.Widget]:
    """Return a widget and all that it is made of, layouts and styles too."""
    found = [widget]
    for child in getattr(widget, "children", ()):
        found += family(child)
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if isinstance(part, widgets.Widget):
            found.append(part)
    return found
