"""The grid of a view: rows that are sorted and filtered here. A page receives some at a time."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.jupyter.explorer.contents.grid_rows import (
    MOST_ROWS,
    Arrangement,
    GridRows,
    Opens,
    arrange_rows,
    brushed_condition,
    full_text,
    page_of,
)

_LONGEST_FILTER = 1_000
_PARTS = 8
"""Parts of rows that are kept in addition to the first."""
_HINTS = {
    "blame": "A click on a row fills in its condition for blame and repair.",
    "version": "A click on a row shows its version.",
}


class GridView:
    """Rows as a page receives them: `content` has the columns, the arrangement and the first page."""

    _order: npt.NDArray[np.int64] | None = None

    def __init__(self, on_open: Callable[[Opens, str], None] | None = None) -> None:
        """Show nothing yet; `on_open` receives the condition or the version that a row opens."""
        self.content: dict[str, Any] = {}
        self._on_open = on_open
        self._rows: GridRows | None = None
        self._how = Arrangement()
        self._parts: dict[int, GridRows] = {}

    def show(self, rows: GridRows | None) -> None:
        """Show rows in place of the previous ones; the arrangement is kept if the columns are the same."""
        is_same = rows is not None and self._rows is not None and rows.rows.schema.equals(self._rows.rows.schema)
        self._rows = rows
        self._parts = {} if rows is None else {0: rows}
        if rows is None:
            self._order, self.content = None, {}
        elif rows.read is not None:
            self.arrange(Arrangement(sort=rows.order[0], descending=rows.order[1]))
        else:
            self.arrange(self._how if is_same else Arrangement())

    def arrange(self, how: Arrangement) -> None:
        """Sort and filter the rows; for an invalid filter, show an error and all rows."""
        rows, error = self._rows, ""
        if rows is None:
            return
        try:
            self._order = None if rows.read is not None else arrange_rows(rows, how)
        except InvalidArgumentError as problem:
            self._order, error = None, str(problem)
        self._how = how
        total = len(rows.rows) if rows.total is None else rows.total
        self.content = {
            "columns": list(rows.columns),
            "noun": rows.noun,
            "sample": _sample_note(len(rows.rows), rows),
            "isOrdered": rows.read is not None,
            "total": total,
            "described": len(rows.rows),
            "count": min(total if self._order is None else len(self._order), MOST_ROWS),
            "how": asdict(how),
            "error": error,
            "opens": _HINTS[rows.opens] if rows.opens and self._on_open else "",
            "isBrushed": rows.read is not None and self._on_open is not None,
            "page": page_of(rows, self._order, 0),
        }

    def arranged_rows(self) -> pa.Table | None:
        """Return the rows as they are sorted and filtered; None without rows."""
        if self._rows is None:
            return None
        return self._rows.rows if self._order is None else self._rows.rows.take(pa.array(self._order))

    def reader(self, message: dict[str, Any]) -> Callable[[], object] | None:
        """Return the function that reads the rows that a page needs; None if they are in memory."""
        index, rows = message.get("need"), self._rows
        if rows is None or rows.read is None or not _is_place(index) or index >= (rows.total or 0):
            return None
        start, parts = index - index % rows.part, self._parts
        return None if start in parts else partial(_keep, parts, start, rows.read)

    def receive(self, message: object) -> dict[str, Any] | None:
        """Handle a request of a page, and return the answer if there is one; an invalid request changes nothing.

        Args:
            message: `need` (where a page of rows starts), `arrange` (sort and filter), `open` (a row), `inspect` (a row
                and a column) or `brush` (a column, and the first and the last of its bars; or one of its top values).
        """
        if self._rows is None or not isinstance(message, dict):
            return None
        start, how, row, cell, bars = (message.get(name) for name in ("need", "arrange", "open", "inspect", "brush"))
        if _is_place(start):
            part, index = self._part_of(start)
            return {"page": page_of(part, self._order, index) | {"start": start}} if part is not None else None
        if isinstance(how, dict):
            self.arrange(self._requested(how))
        elif _is_place(row):
            self._open(row)
        elif isinstance(cell, list):
            return self._inspected(cell)
        elif isinstance(bars, list) and len(bars) == 3 and all(map(_is_place, bars)):  # noqa: PLR2004 - a column and two bars
            self._brush(*bars)
        return None

    def _brush(self, column: int, first: int, last: int) -> None:
        """Filter by the bars of a column's histogram, or by one of its top values."""
        rows = self._rows
        if rows is None or rows.read is None or self._on_open is None or column >= len(rows.columns):
            return
        if condition := brushed_condition(rows.rows, column, first, last):
            self._on_open("where", condition)

    def _part_of(self, row: int) -> tuple[GridRows | None, int]:
        """Return the part that contains a row, None if it has not been read, and the row's place in it."""
        rows = self._rows
        if rows is None or rows.read is None:
            return rows, row
        start = row - row % rows.part
        return self._parts.get(start), row - start

    def _inspected(self, cell: list[Any]) -> dict[str, Any] | None:
        match cell:
            case [row, column] if _is_place(row) and _is_place(column):
                part, index = self._part_of(row)
                index = index if self._order is None or index >= len(self._order) else int(self._order[index])
                if part is not None and index < len(part.rows) and column < len(part.columns):
                    return {"value": {"row": row, "column": column, "text": full_text(part.rows, index, column)}}
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
        (rows, index), order = self._part_of(row), self._order
        if rows is None or rows.opens is None or self._on_open is None:
            return
        if index >= (len(rows.rows) if order is None else len(order)):
            return
        if choice := rows.choose(index if order is None else int(order[index])):
            self._on_open(rows.opens, choice)


def _keep(parts: dict[int, GridRows], start: int, read: Callable[[int], GridRows]) -> None:
    """Read a part of rows, and keep it with a few others."""
    parts[start] = read(start)
    for old in [index for index in parts if index not in (0, start)][:-_PARTS]:
        del parts[old]


def _sample_note(count: int, rows: GridRows) -> str:
    """Return a sentence on the rows that the grid sorts, filters and counts; empty if it has all rows."""
    if not rows.sample:
        return ""
    if rows.read is not None:
        return f"The ranges, the bars and saved files cover the first {count:,} of {rows.sample}."
    return f"Sorts, filters and counts only these {count:,} of {rows.sample}."


def _is_place(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
