"""The grid of a view: rows that are sorted and filtered here, of which a page receives some at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.jupyter.explorer.contents.grid_rows import (
    MOST_ROWS,
    Arrangement,
    GridRows,
    Opens,
    arranged,
    page_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

_LONGEST_FILTER = 1_000
_HINTS = {"blame": "A click on a row fills in Blame.", "version": "A click on a row shows its version."}


class GridView:
    """Rows as a page receives them: `content` has the columns, the arrangement and the first page."""

    def __init__(self, opened: Callable[[Opens, str], None] | None = None) -> None:
        """Show nothing yet.

        Args:
            opened: Receives what a row opens: a condition, or a version.
        """
        self.content: dict[str, Any] = {}
        self._opened = opened
        self._rows: GridRows | None = None
        self._how = Arrangement()
        self._order: npt.NDArray[np.int64] | None = None

    def show(self, rows: GridRows | None) -> None:
        """Show rows in place of the previous ones; the arrangement is kept if the columns are the same."""
        is_same = rows is not None and self._rows is not None and rows.rows.schema.equals(self._rows.rows.schema)
        self._rows = rows
        if rows is None:
            self._order, self.content = None, {}
            return
        self.arrange(self._how if is_same else Arrangement())

    def arrange(self, how: Arrangement) -> None:
        """Sort and filter the rows; for an invalid filter, show an error and all rows."""
        rows, error = self._rows, ""
        if rows is None:
            return
        try:
            self._order = arranged(rows, how)
        except InvalidArgumentError as problem:
            self._order, error = None, str(problem)
        self._how = how
        total = len(rows.rows)
        self.content = {
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

    def arranged_rows(self) -> pa.Table | None:
        """Return the rows as they are sorted and filtered; None without rows."""
        if self._rows is None:
            return None
        return self._rows.rows if self._order is None else self._rows.rows.take(pa.array(self._order))

    def receive(self, message: object) -> dict[str, Any] | None:
        """Handle what a page requests, and return a page of rows if it needs one; what is invalid changes nothing.

        Args:
            message: `need` (where a page of rows starts), `arrange` (sort and filter) or `open` (a row).
        """
        if self._rows is None or not isinstance(message, dict):
            return None
        start, how, row = (message.get(name) for name in ("need", "arrange", "open"))
        if _is_place(start):
            return page_of(self._rows, self._order, start)
        if isinstance(how, dict):
            self.arrange(self._requested(how))
        elif _is_place(row):
            self._open(row)
        return None

    def _requested(self, how: dict[str, Any]) -> Arrangement:
        """Return the arrangement that a page requests; invalid parts are ignored."""
        count = 0 if self._rows is None else len(self._rows.columns)
        sort, column = (at if _is_place(at) and at < count else None for at in (how.get("sort"), how.get("column")))
        text = how.get("text")
        return Arrangement(
            sort=sort,
            descending=how.get("descending") is True,
            column=column,
            text=text[:_LONGEST_FILTER] if isinstance(text, str) else "",
        )

    def _open(self, row: int) -> None:
        rows, order = self._rows, self._order
        if rows is None or rows.opens is None or self._opened is None:
            return
        if row >= (len(rows.rows) if order is None else len(order)):
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
