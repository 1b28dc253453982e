"""A grid that scrolls: sorted and filtered on the kernel's side, which sends pages of text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeGuard

import anywidget
import pyarrow as pa
from traitlets import Dict, Unicode, default

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.jupyter.explorer.contents.grid_rows import (
    MOST_ROWS,
    Arrangement,
    GridRows,
    Opens,
    arranged,
    page_of,
)
from snapshot_explorer.jupyter.explorer.page.scripts import script
from snapshot_explorer.jupyter.explorer.page.widget_factory import Unsent

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

_LONGEST_FILTER = 1_000
_HINTS = {"blame": "A click on a row fills in Blame.", "version": "A click on a row shows its version."}


class GridPane(Unsent, anywidget.AnyWidget):
    """Draws rows. One page is in a trait; others are sent when the user scrolls to them.

    Messages that a page sends: `need` (where a page starts), `arrange` (sort and filter), `open` (a row).
    """

    _esm = Unicode().tag(sync=True)
    grid = Dict(help="The columns, how rows are arranged, and the first page; empty without rows.").tag(sync=True)

    def __init__(self, opened: Callable[[Opens, str], None] | None = None, **traits: Any) -> None:
        """Show nothing yet.

        Args:
            opened: Receives what a row opens: a condition, or a version.
            traits: Traits of the widget.
        """
        super().__init__(**traits)
        self._opened = opened
        self._rows: GridRows | None = None
        self._how = Arrangement()
        self._order: npt.NDArray[np.int64] | None = None
        self.on_msg(self._receive)

    @default("_esm")
    def _module(self) -> str:
        return script("grid.js")

    def show(self, rows: GridRows | None) -> None:
        """Show rows in place of the previous ones; the arrangement is kept if the columns are the same."""
        same = rows is not None and self._rows is not None and rows.rows.schema.equals(self._rows.rows.schema)
        self._rows = rows
        if rows is None:
            self._order, self.grid = None, {}
            return
        self._arrange(self._how if same else Arrangement())

    def arrange(self, how: Arrangement) -> None:
        """Sort and filter the rows; for an invalid filter, show an error and all rows."""
        if self._rows is not None:
            self._arrange(how)

    def arranged_rows(self) -> pa.Table | None:
        """Return the rows as they are sorted and filtered; None without rows."""
        if self._rows is None:
            return None
        return self._rows.rows if self._order is None else self._rows.rows.take(pa.array(self._order))

    def close(self) -> None:
        """Free the widget and its rows."""
        self._rows = self._order = None
        super().close()

    def _arrange(self, how: Arrangement) -> None:
        rows, error = self._rows, ""
        if rows is None:
            return
        try:
            self._order = arranged(rows, how)
        except InvalidArgumentError as problem:
            self._order, error = None, str(problem)
        self._how = how
        total = len(rows.rows)
        self.grid = {
            "columns": list(rows.columns),
            "noun": rows.noun,
            "sample": _sample_note(total, rows),
            "total": total,
            "count": min(total if self._order is None else len(self._order), MOST_ROWS),
            "how": asdict(how),
            "error": error,
            "opens": _HINTS[rows.opens] if rows.opens and self._opened else "",
            "page": page_of(rows, self._order, 0),
        }

    def _receive(self, _widget: object, content: Any, _buffers: object) -> None:
        """Handle a message from a page; unknown ones are ignored."""
        if self._rows is None or not isinstance(content, dict):
            return
        start, how, row = (content.get(name) for name in ("need", "arrange", "open"))
        if _is_place(start):
            self.send({"page": page_of(self._rows, self._order, start)})
        elif isinstance(how, dict):
            self._arrange(self._asked(how))
        elif _is_place(row):
            self._open(row)

    def _asked(self, how: dict[str, Any]) -> Arrangement:
        """Return the arrangement that a page requests; invalid parts are ignored."""
        count = 0 if self._rows is None else len(self._rows.columns)
        sort, column = (one if _is_place(one) and one < count else None for one in (how.get("sort"), how.get("column")))
        text = how.get("text")
        return Arrangement(
            sort=sort,
            descending=how.get("descending") is True,
            column=column,
            text=text[:_LONGEST_FILTER] if isinstance(text, str) else "",
        )

    def _open(self, row: int) -> None:
        rows, order = self._rows, self._order
        if (
            rows is None
            or rows.opens is None
            or self._opened is None
            or row >= (len(rows.rows) if order is None else len(order))
        ):
            return
        place = row if order is None else int(order[row])
        if place < len(rows.choices) and rows.choices[place]:
            self._opened(rows.opens, rows.choices[place])


def _sample_note(count: int, rows: GridRows) -> str:
    """Return a sentence that states what the grid sorts, filters and counts; empty if it has all rows."""
    if not rows.sample:
        return ""
    return f"Sorts, filters and counts only these {count:,} of {rows.sample}."


def _is_place(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
