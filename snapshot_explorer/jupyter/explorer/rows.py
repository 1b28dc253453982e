"""The table's own rows at B: a preview of them, and loading them into a variable; no widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from snapshot_explorer.jupyter.explorer.asked import Content
from snapshot_explorer.render import Drawing, Grid, Line
from snapshot_explorer.render.cells import size
from snapshot_explorer.snapshot import Snapshot

if TYPE_CHECKING:
    from snapshot_explorer.jupyter.explorer.asked import Asked, Shelf

_MOST_COLUMNS = 50
_MOST_CELLS = 5_000
LARGE_ROWS = 1_000_000
LARGE_BYTES = 1_000_000_000
"""What is larger is loaded only when it is asked for twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What reading rows would read, from metadata alone."""

    rows: int
    """Rows, before any merge."""
    files: int
    """Data files."""
    size_bytes: int
    """Their size."""

    @property
    def is_large(self) -> bool:
        """Return whether it is to be asked for twice."""
        return self.rows > LARGE_ROWS or self.size_bytes > LARGE_BYTES

    def __str__(self) -> str:
        return f"{self.rows:,} rows (before any merge), {self.files:,} files, {size(self.size_bytes)}"


def engines() -> tuple[str, ...]:
    """Return the engines that there are."""
    return ("pandas", "arrow", *(("spark",) if hasattr(Snapshot, "to_spark") else ()))


def preview(shelf: Shelf, asked: Asked) -> Content:
    """Return some rows of B."""
    version, columns, where, limit = (asked[name] for name in ("b", "columns", "where", "limit"))
    snapshot = shelf.at(version)
    names = [column.name for column in snapshot.schema.columns]
    most = max(1, min(_MOST_COLUMNS, _MOST_CELLS // max(1, limit)))
    shown = list(columns) or names
    rows = snapshot.to_arrow(columns=shown[:most], where=where or None, limit=limit)
    said = [Line(f"What all of it takes to read: {cost(snapshot, where)}.")]
    if len(shown) > most:
        said.append(Line(f"{most} of {len(shown):,} columns are shown. Name others under Columns."))
    drawing = Drawing(
        title=f"Some rows of version {version}", parts=(*said, Grid(rows, noun="rows", limit=max(limit, 1)))
    )
    return Content(drawing=drawing, code=_call(asked, engine="arrow", limit=limit), source=shelf.cited(version))


def cost(snapshot: Snapshot, where: str) -> Cost:
    """Return what reading the rows would read."""
    plan = snapshot.plan(where or None).to_arrow()
    plan = plan.filter(pc.is_null(plan["skipped"]))
    rows, files, size_bytes = (pc.sum(plan[name]).as_py() or 0 for name in ("rows", "files", "size_bytes"))
    return Cost(rows=rows, files=files, size_bytes=size_bytes)


def load(shelf: Shelf, asked: Asked, *, agreed: bool) -> tuple[Cost, Any]:
    """Return what it takes to read the rows of B, and the rows; None for rows that are many and not agreed on."""
    snapshot = shelf.at(asked["b"])
    engine, limit = asked["engine"], asked["load_limit"] or None
    asks = cost(snapshot, asked["where"])
    if asks.is_large and not agreed and limit is None and engine != "spark":
        return asks, None
    read = getattr(snapshot, f"to_{engine}")
    return asks, read(columns=list(asked["columns"]) or None, where=asked["where"] or None, limit=limit)


def load_code(asked: Asked) -> str:
    """Return the line of code that loads B into the variable as the state says."""
    return f"{asked['variable']} = {_call(asked, engine=asked['engine'], limit=asked['load_limit'])}"


def _call(asked: Asked, *, engine: str, limit: int) -> str:
    given = [
        *([f"columns={list(asked['columns'])!r}"] if asked["columns"] else []),
        *([f"where={asked['where']!r}"] if asked["where"] else []),
        *([f"limit={limit}"] if limit else []),
    ]
    return f"{asked.name}.at({asked['b']}).to_{engine}({', '.join(given)})"
