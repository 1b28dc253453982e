"""The table's own rows at B: a preview of them, and loading them into a variable; no widget."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.text import pluralize
from snapshot_explorer.jupyter.explorer.contents.grid_rows import GridRows, grid_rows, with_json
from snapshot_explorer.jupyter.explorer.contents.row_conditions import row_conditions
from snapshot_explorer.jupyter.explorer.contents.version_rows import PART, VersionRows
from snapshot_explorer.jupyter.explorer.contents.view_requests import DRAWN, SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.table.cost import Cost, ReadLimits, cost_of
from snapshot_explorer.view import Drawing, Grid, Line

_MOST_COLUMNS = 50
_MOST_NAMES = 2_000
"""Columns that a page offers to choose from."""
_DRAWN = 20
"""Rows that are drawn without a grid."""
_LIVE = ReadLimits(rows=1_000_000, size_bytes=100_000_000)
"""The limits up to which rows are filtered while a condition is typed."""


def preview(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the rows of B that match the condition, in their order; a page reads the rows that it scrolls to."""
    version, columns, where, sort, descending = (
        request[name] for name in ("b", "columns", "where", "sort", "sort_descending")
    )
    snapshot = cache.at(version)
    types = {column.name: column.type for column in snapshot.schema.columns}
    shown = (list(columns) or list(types))[:_MOST_COLUMNS]
    rows = VersionRows(snapshot, shown, where or None, sort=sort or None, descending=descending)
    key = tuple(request["key"]) or snapshot.schema.primary_keys
    all_cost = cost_of(snapshot, None) if where else rows.cost
    first, of_columns = rows.part(0), len(columns) or len(types)
    notes = [Line(_facts(rows, all_cost, request), is_faint=True)]
    if where and rows.total == 0:
        notes.append(Line("Change Where; or name such rows below, and Trace shows the versions that had them."))
    if len(shown) < of_columns:
        notes.append(Line(f"{len(shown)} of {of_columns:,} columns are shown. Choose others under Columns."))
    drawing = Drawing(title=f"Rows of version {version}", parts=(*notes, Grid(first, noun="rows", limit=_DRAWN)))
    conditions = row_conditions(first.slice(0, DRAWN), key)
    all_rows = "more rows" if rows.total is None else pluralize(rows.total, "row")
    sorting = [(sort, "descending" if descending else "ascending")]

    def grid(part: pa.Table) -> GridRows:
        grid_part = grid_rows(
            part,
            noun="rows",
            sample=all_rows if len(first) != rows.total else "",
            types=types,
            draw=lambda places: (with_json(part.take(pa.array(places, pa.int64()))), frozenset()),
            opens="blame" if conditions else None,
        )
        return replace(grid_part, choose=lambda row: "".join(row_conditions(part.slice(row, 1), key)))

    result = replace(
        grid(first),
        total=len(first) if rows.total is None else rows.total,
        read=lambda start: grid(rows.part(start)),
        part=len(first) if rows.is_held else PART,
        order=(shown.index(sort) if sort in shown else None, descending),
    )
    return ViewResult(
        drawing=drawing,
        answer=_answer(rows, None if all_cost.exceeds(_LIVE) else cache.row_count(version), where, version),
        code=_call(request, engine="arrow", limit=0) + (f".sort_by({sorting!r})" if sort else ""),
        source=cache.cited(version),
        choices=tuple((text, text) for text in conditions),
        grid=result,
        columns=tuple((name, types[name], name in shown) for name in [*types][:_MOST_NAMES]),
        is_live=not all_cost.exceeds(_LIVE),
    )


def _answer(rows: VersionRows, count: int | None, where: str, version: int) -> str:
    """Return how many rows match, of how many."""
    if rows.total is None:
        return f"The first {PART:,} rows{' that match' if where else ''} at version {version}"
    if where:
        counts = pluralize(rows.total, "row") if count is None else f"{rows.total:,} of {pluralize(count, 'row')}"
        return f"{counts} match at version {version}"
    return f"All {pluralize(rows.total, 'row')} of version {version}"


def _facts(rows: VersionRows, all_cost: Cost, request: ViewRequest) -> str:
    """Return the order of the rows, and the part of the version that was read."""
    sort, way = request["sort"], "descending" if request["sort_descending"] else "ascending"
    order = f"Sorted by {sort}, {way}, over all of them. " if sort else ""
    uncounted = "" if rows.total is not None else "How many match was not counted: that reads much. "
    if not request["where"]:
        return f"{order}{uncounted}The cost of reading all rows: {rows.cost}."
    return f"{order}{uncounted}Files that can match: {rows.cost.files:,} of {pluralize(all_cost.files, 'file')}."


def load(cache: SnapshotCache, request: ViewRequest, limits: ReadLimits | None) -> tuple[Cost, Any]:
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
    arguments = [
        *([f"columns={list(request['columns'])!r}"] if request["columns"] else []),
        *([f"where={request['where']!r}"] if request["where"] else []),
        *([f"limit={limit}"] if limit else []),
        *([f"types={types!r}"] if types != "arrow" else []),
    ]
    return f"{request.name}.at({request['b']}).to_{engine}({', '.join(arguments)})"
