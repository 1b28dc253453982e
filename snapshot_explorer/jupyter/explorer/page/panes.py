"""Parts of the page: lines as HTML, and the pane that shows a view's result. Reads nothing."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.explorer.page.grid_pane import GridPane
from snapshot_explorer.jupyter.explorer.page.page_actions import FILE_FORMATS, action_button
from snapshot_explorer.jupyter.explorer.work import running_loop
from snapshot_explorer.render import Grid, html
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import ipywidgets as widgets

    from snapshot_explorer.jupyter.explorer.contents.grid_rows import GridRows, Opens
    from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewResult
    from snapshot_explorer.jupyter.explorer.page.widget_factory import WidgetFactory
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


def source_html(content: ViewResult, place: str) -> str:
    """Return the code, the origin of the view, and buttons: copy the code, insert it as a cell, save the rows."""
    code, source = (escape(visible(one)) for one in (content.code, f"Source: {content.source}"))
    buttons = action_button("Copy", "copy", content.code, "Copy the line of code")
    buttons += action_button("Insert cell", "insert", content.code, "Insert the line of code as a cell")
    path = action_button("Copy path", "copy", content.path, "Copy the path") if content.path else ""
    if content.grid is not None:
        path += "".join(
            action_button(
                f"Save {name}", "save", f"{place} {name}", f"Save the rows of the grid, as they are filtered, as {name}"
            )
            for name in FILE_FORMATS
        )
    return f'<div style="{_CODE}">{code}{buttons}\n{source}{path}</div>'


def head_html(name: str, lines: Sequence[str], newest: str | None, button: str) -> str:
    """Return the heading: the table's name, facts about it, its newest commit, and a button."""
    parts = [lines[0].removeprefix(f"{name} "), *lines[1:], *([newest] if newest else [])]
    shown = " \N{MIDDLE DOT} ".join(escape(visible(one)) for one in parts)
    return f'<div role="status" style="{_TEXT}"><b>{escape(visible(name))}</b> {shown}{button}</div>'


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
        self._factory, self._cancel = factory, cancel
        self._what: widgets.HTML | None = None
        self.box = factory.row()
        self.hide()

    def show(self, what: str) -> None:
        """Show the current work."""
        self._text().value = text_html(what)
        self._factory.show(self.box, shown=True)

    def expect(self, is_busy: Callable[[], bool]) -> None:
        """Show after a short delay that something is being read."""
        self._text()
        loop = running_loop()
        if loop is not None:
            loop.call_later(_PATIENCE, lambda: self.show("Reading ...") if is_busy() else None)

    def _text(self) -> widgets.HTML:
        """Return the widget for the text, which is created with the button at the first read."""
        if self._what is None:
            self._what = self._factory.html()
            button = self._factory.button("Cancel", "Stop reading; keep the current view", self._cancel)
            self.box.children = (self._what, button)
        return self._what

    def hide(self) -> None:
        """Hide it: nothing is being read."""
        if self._what is not None:
            self._what.value = ""
        self._factory.show(self.box, shown=False)


class _Pages:
    """Turns pages; hidden if there is only one."""

    def __init__(self, factory: WidgetFactory, turn: Callable[[int], None]) -> None:
        self._factory = factory
        self.page = factory.label()
        self.back = factory.button("Previous page", "Show the rows before these", lambda: turn(-1))
        self.on = factory.button("Next page", "Show the rows after these", lambda: turn(1))
        self.box = factory.row(self.back, self.page, self.on)

    def show(self, page: int, pages: int) -> None:
        at = min(page, pages - 1)
        self._factory.show(self.box, shown=pages > 1)
        self.page.value = f"page {at + 1:,} of {pages:,}" if pages > 1 else ""
        self.back.disabled, self.on.disabled = at == 0, at == pages - 1


class Pane:
    """Shows the result of a view: the drawing, pages, the code, the source; or the current read, or an error."""

    def __init__(
        self,
        factory: WidgetFactory,
        *,
        turn: Callable[[int], None] | None,
        cancel: Callable[[], None],
        above: tuple[widgets.Widget, ...] = (),
        read: tuple[str, Callable[[], None]] | None = None,
        opened: Callable[[Opens, str], None] | None = None,
        place: str = "",
    ) -> None:
        """Show nothing yet.

        Args:
            factory: Makes widgets.
            turn: Receives by how many pages to turn; None where there is only one page.
            cancel: Stops the current work.
            above: Controls above the result.
            read: The label of the button that reads what a result only announces, and its function.
            opened: Receives what a row of a grid opens; without it there is no grid.
            place: The pane's name in the names of saved files.
        """
        self._factory = factory
        self.busy = Busy(factory, cancel)
        self.content = factory.html()
        self.grid: GridPane | None = None
        self._opened, self._place = opened, place
        self.footer = factory.html()
        self.pages = None if turn is None else _Pages(factory, turn)
        self.read = None if read is None else factory.button(read[0], "Read what is announced", read[1])
        parts = (self.content, self.read, None if self.pages is None else self.pages.box, self.footer)
        self.box = factory.column(*above, self.busy.box, *(part for part in parts if part is not None))
        self.result: ViewResult | None = None
        self.error = ""
        self._show_below(pages=1)

    def append(self, *children: widgets.Widget) -> None:
        """Put widgets below."""
        self.box.children += children

    def show(self, content: ViewResult, *, page: int = 0) -> None:
        """Show the result of a view."""
        self.busy.hide()
        self.result, self.error = content, ""
        self.content.value = html(self._beside_grid(content), has_actions=True)
        self._show_grid(content.grid)
        self.footer.value = source_html(content, self._place)
        self._show_below(pages=content.pages, page=page, is_announcement=content.is_announcement)

    def fail(self, sentence: str) -> None:
        """Show an error message in place of the result."""
        self.clear()
        self.error = sentence
        self.content.value = error_html(sentence)

    def clear(self, sentence: str = "") -> None:
        """Show only a sentence."""
        self.busy.hide()
        self.result, self.error = None, ""
        self._show_grid(None)
        self.content.value = text_html(sentence)
        self.footer.value = ""
        self._show_below(pages=1)

    def _show_grid(self, rows: GridRows | None) -> None:
        """Show rows in the grid, which is made for the first ones."""
        if self.grid is None and rows is not None and self._opened is not None:
            self.grid = GridPane(self._opened, layout=self._factory.layout())
            place = self.box.children.index(self.content) + 1
            self.box.children = (*self.box.children[:place], self.grid, *self.box.children[place:])
        if self.grid is not None:
            self.grid.show(rows)

    def _beside_grid(self, content: ViewResult) -> Drawing:
        """Return the drawing without the rows that the grid shows."""
        if self._opened is None or content.grid is None:
            return content.drawing
        return replace(content.drawing, parts=tuple(one for one in content.drawing.parts if not isinstance(one, Grid)))

    def _show_below(self, *, pages: int, page: int = 0, is_announcement: bool = False) -> None:
        if self.pages is not None:
            self.pages.show(page, pages)
        if self.read is not None:
            self._factory.show(self.read, shown=is_announcement, width="auto")

    @property
    def drawing(self) -> Drawing | None:
        """Return the current content, for the static picture."""
        return None if self.result is None else self.result.drawing
