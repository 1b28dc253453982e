"""What buttons inside an explorer's HTML do on the page and in the kernel: copy, insert as a cell, save, open."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

import anywidget
from traitlets import Unicode, default

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.frames.exports import flat
from snapshot_explorer.jupyter.explorer.page.scripts import script
from snapshot_explorer.jupyter.explorer.page.widget_factory import Unsent
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

FILE_FORMATS = ("csv", "parquet")
_MOST_BYTES = 200_000_000
"""The most bytes of rows in memory that are sent to a page as a file."""
_BUTTON = (
    "font:12px var(--jp-ui-font-family,system-ui,sans-serif);color:inherit;background:none;cursor:pointer;"
    "border:1px solid var(--sx-outline,#767676);border-radius:3px;padding:0 6px;margin:0 0 0 6px"
)


class PageActions(Unsent, anywidget.AnyWidget):
    """Listens to the buttons of an explorer's HTML; itself invisible."""

    _esm = Unicode().tag(sync=True)

    def __init__(self, acts: dict[str, Callable[[str], None]], **traits: Any) -> None:
        """Listen.

        Args:
            acts: Functions of a button's value, by the name of its action: `save`, `open`.
            traits: Traits of the widget.
        """
        super().__init__(**traits)
        self._acts = acts
        self.on_msg(self._receive)

    @default("_esm")
    def _module(self) -> str:
        return script("actions.js")

    def save(self, name: str, rows: pa.Table, file_format: str) -> None:
        """Send rows to the page as a file, which the browser saves.

        Raises:
            InvalidArgumentError: There are too many.
        """
        if rows.nbytes > _MOST_BYTES:
            raise InvalidArgumentError(
                f"{len(rows):,} rows take {rows.nbytes:,} bytes; up to {_MOST_BYTES:,} are sent to the browser. "
                "Filter them, or use the line of code."
            )
        safe = re.sub(r"[^\w.-]+", "_", name)
        self.send({"save": f"{safe}.{file_format}"}, [file_bytes(rows, file_format)])

    def _receive(self, _widget: object, content: Any, _buffers: object) -> None:
        """Run the action of a button; other messages are ignored."""
        for name, act in self._acts.items():
            value = content.get(name) if isinstance(content, dict) else None
            if isinstance(value, str):
                act(value)


def file_bytes(rows: pa.Table, file_format: str) -> bytes:
    """Return rows as a file: parquet, or CSV with nested values as JSON and binary as hexadecimal text."""
    sink = io.BytesIO()
    if file_format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - only where a file is made

        pq.write_table(rows, sink)
    else:
        import pyarrow.csv as pa_csv  # noqa: PLC0415 - likewise

        pa_csv.write_csv(flat(rows), sink)
    return sink.getvalue()


def action_button(label: str, action: str, value: str, tooltip: str) -> str:
    """Return a button as HTML that runs an action with a value."""
    shown = escape(visible(label))
    return (
        f'<button type="button" style="{_BUTTON}" data-sx="{action}" data-sx-value="{escape(value)}" '
        f'title="{escape(visible(tooltip))}" aria-label="{escape(visible(tooltip))}">{shown}</button>'
    )
