"""Parts of the page: lines as HTML, and the pane that shows a view's result. Nothing here reads."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.explorer.work import running_loop
from snapshot_explorer.render import html
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    import ipywidgets as widgets

    from snapshot_explorer.jupyter.explorer.view_requests import ViewResult
    from snapshot_explorer.jupyter.explorer.widget_factory import WidgetFactory
    from snapshot_explorer.render import Drawing

_INK = "var(--jp-content-font-color1,var(--vscode-editor-foreground,inherit))"
_CODE = (
    "font:12px/1.5 var(--jp-code-font-family,monospace);white-space:pre-wrap;overflow-wrap:anywhere;padding:0 8px;"
    f"color:{_INK}"
)
_TEXT = (
    "font:13px/1.5 var(--jp-content-font-family,system-ui,sans-serif);white-space:pre-wrap;overflow-wrap:anywhere;"
    f"padding:0 8px;color:{_INK}"
)

_PATIENCE = 0.2
"""Seconds before a pane shows that something is being read."""


def code_html(text: str) -> str:
    """Return lines of code, or of facts, as HTML."""
    lines = "\n".join(escape(visible(line)) for line in text.split("\n"))
    return f'<div style="{_CODE}">{lines}</div>' if text else ""


def text_html(text: str) -> str:
    """Return a sentence as HTML."""
    return f'<div role="status" style="{_TEXT}">{escape(visible(text))}</div>' if text else ""


def error_html(text: str) -> str:
    """Return an error message as HTML."""
    return f'<div role="alert" style="{_TEXT}"><b>!</b> {escape(visible(text))}</div>' if text else ""


class Busy:
    """Shows the current read, with a button that stops it; hidden if there is none."""

    def __init__(self, factory: WidgetFactory, cancel: Callable[[], None]) -> None:
        """Show nothing yet.

        Args:
            factory: Makes widgets.
            cancel: Stops the current work.
        """
        self._factory = factory
        self._what = factory.html()
        self.box = factory.row(self._what, factory.button("Cancel", "Stop reading; keep the current view", cancel))
        self.hide()

    def show(self, what: str) -> None:
        """Show the current work."""
        self._what.value = text_html(what)
        self._factory.show(self.box, shown=True)

    def expect(self, is_busy: Callable[[], bool]) -> None:
        """Show after a short delay that something is being read."""
        loop = running_loop()
        if loop is not None:
            loop.call_later(_PATIENCE, lambda: self.show("Reading ...") if is_busy() else None)

    def hide(self) -> None:
        """Show that nothing is going on."""
        self._what.value = ""
        self._factory.show(self.box, shown=False)


class Pane:
    """Shows the result of a view: the drawing, pages, the code, the source; or what is going on, or what went wrong."""

    def __init__(
        self,
        factory: WidgetFactory,
        *,
        turn: Callable[[int], None],
        cancel: Callable[[], None],
        above: tuple[widgets.Widget, ...],
    ) -> None:
        """Show nothing yet.

        Args:
            factory: Makes widgets.
            turn: Takes by how many pages to turn.
            cancel: Stops the current work.
            above: Controls that stand above.
        """
        self._factory = factory
        self.busy = Busy(factory, cancel)
        self.content = factory.html()
        self.footer = factory.html()
        self.page = factory.label()
        self._back = factory.button("Previous page", "Show the rows before these", lambda: turn(-1))
        self._on = factory.button("Next page", "Show the rows after these", lambda: turn(1))
        self._pages = factory.column(factory.row(self._back, self.page, self._on))
        factory.show(self._pages, shown=False)
        self.below = factory.column()
        self.box = factory.column(*above, self.busy.box, self.content, self._pages, self.footer, self.below)
        self.result: ViewResult | None = None
        self.error = ""

    def show(self, content: ViewResult, *, page: int = 0) -> None:
        """Show the result of a view."""
        self.busy.hide()
        self.result, self.error = content, ""
        self.content.value = html(content.drawing)
        self.footer.value = code_html(f"{content.code}\nSource: {content.source}")
        self._factory.show(self._pages, shown=content.pages > 1)
        at = min(page, content.pages - 1)
        self.page.value = f"page {at + 1:,} of {content.pages:,}"
        self._back.disabled, self._on.disabled = at == 0, at == content.pages - 1

    def fail(self, sentence: str) -> None:
        """Show an error message in place of the result."""
        self.clear()
        self.error = sentence
        self.content.value = error_html(sentence)

    def clear(self, sentence: str = "") -> None:
        """Show only a sentence."""
        self.busy.hide()
        self.result, self.error = None, ""
        self.content.value = text_html(sentence)
        self.footer.value = ""
        self._factory.show(self._pages, shown=False)

    @property
    def drawing(self) -> Drawing | None:
        """Return the current content, for the static picture."""
        return None if self.result is None else self.result.drawing
