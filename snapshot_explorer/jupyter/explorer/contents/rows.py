"""The table's own rows at B: a preview of them, and loading them into a variable; no widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapshot_explorer.jupyter.cost import Cost, Limits, cost_of
from snapshot_explorer.jupyter.explorer.contents.grid_rows import grid_rows
from snapshot_explorer.jupyter.explorer.contents.row_conditions import row_conditions
from snapshot_explorer.jupyter.explorer.contents.view_requests import PAGE, ViewResult
from snapshot_explorer.render import Drawing, Grid, Line
from snapshot_explorer.render.cells import counted

if TYPE_CHECKING:
    from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache, ViewRequest

_MOST_COLUMNS = 50
_DRAWN = 20
"""Rows that are drawn without a grid."""


def preview(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return some rows of B."""
    version, columns, where, limit = (request[name] for name in ("b", "columns", "where", "limit"))
    snapshot = cache.at(version)
    names = [column.name for column in snapshot.schema.columns]
    shown = list(columns) or names
    # One row more shows whether there are more.
    rows = snapshot.to_arrow(columns=shown[:_MOST_COLUMNS], where=where or None, limit=limit + 1)
    has_more, rows = len(rows) > limit, rows.slice(0, limit)
    cost = cost_of(snapshot, where or None)
    notes = [Line(f"The cost of reading all rows: {cost}.", is_faint=True)]
    if len(shown) > _MOST_COLUMNS:
        notes.append(Line(f"{_MOST_COLUMNS} of {len(shown):,} columns are shown. Name others under Columns."))
    drawing = Drawing(title=f"Some rows of version {version}", parts=(*notes, Grid(rows, noun="rows", limit=_DRAWN)))
    key = request["key"] or snapshot.schema.primary_keys
    conditions = row_conditions(rows.slice(0, PAGE), key)
    choices = row_conditions(rows, key, keep_places=True)
    return ViewResult(
        drawing=drawing,
        answer=_answer(len(rows), cost, where, version, has_more=has_more),
        code=_call(request, engine="arrow", limit=limit),
        source=cache.cited(version),
        choices=tuple((one, one) for one in conditions),
        grid=grid_rows(
            rows,
            noun="rows",
            sample=_all_rows(cost, where) if has_more else "",
            types={column.name: column.type for column in snapshot.schema.columns},
            opens="blame" if choices else None,
            choices=choices,
        ),
    )


def _answer(count: int, cost: Cost, where: str, version: int, *, has_more: bool) -> str:
    """Return how many rows are shown, of how many."""
    if where:
        match = f"The first {count:,} rows that match" if has_more else f"{counted(count, 'row')} match"
        return f"{match} at version {version}"
    if has_more and cost.rows is not None:
        return f"{count:,} of {counted(cost.rows, 'row')} of version {version}"
    return f"{'The first' if has_more else 'All'} {counted(count, 'row')} of version {version}"


def _all_rows(cost: Cost, where: str) -> str:
    """Return a phrase for all rows that a preview is a part of. How many match is unknown until all are read."""
    if where:
        return "more rows that match"
    return f"{counted(cost.rows, 'row')} in {counted(cost.files, 'file')}"


def load(cache: SnapshotCache, request: ViewRequest, limits: Limits | None) -> tuple[Cost, Any]:
    """Return the cost of reading the rows of B, and the rows; None if they exceed the limits."""
    snapshot = cache.at(request["b"])
    engine, limit = request["engine"], request["load_limit"] or None
    where = request["where"] or None
    cost = cost_of(snapshot, where)
    if limits is not None and cost.exceeds(limits) and limit is None and engine != "spark":
        return cost, None
    read = getattr(snapshot, f"to_{engine}")
    types = {"types": request["types"]} if engine == "pandas" else {}
    return cost, read(columns=list(request["columns"]) or None, where=where, limit=limit, **types)


def load_code(request: ViewRequest) -> str:
    """Return the line of code that loads B into the variable, according to the state."""
    engine, types = request["engine"], request["types"]
    shown_types = types if engine == "pandas" else "arrow"
    return f"{request['variable']} = {_call(request, engine=engine, limit=request['load_limit'], types=shown_types)}"


def _call(request: ViewRequest, *, engine: str, limit: int, types: str = "arrow") -> str:
    given = [
        *([f"columns={list(request['columns'])!r}"] if request["columns"] else []),
        *([f"where={request['where']!r}"] if request["where"] else []),
        *([f"limit={limit}"] if limit else []),
        *([f"types={types!r}"] if types != "arrow" else []),
    ]
    return f"{request.name}.at({request['b']}).to_{engine}({', '.join(given)})"
