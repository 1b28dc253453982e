"""Drawings as plain data for the page, which sets every text as text."""

from typing import Any

from snapshot_explorer.arrow.value_text import NULL, format_cell, truncate, unit_of
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view import Code, Drawing, Grid, Item, LaneDiagram, Line, Pairs, Part
from snapshot_explorer.view.drawing import codes_of
from snapshot_explorer.view.grid import columns_note, rows_note, shown_columns
from snapshot_explorer.view.palette import KIND_COLORS

_WIDEST_CELL = 80
_WIDEST_VALUE = 1_000
_ROWS = 50


def parts_of(drawing: Drawing, *, has_grid: bool = False) -> list[dict[str, Any]]:
    """Return the parts of a drawing, a record each; without its tables if the page has them as a grid that scrolls."""
    return [_part(part) for part in drawing.parts if not (has_grid and isinstance(part, Grid))]


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Line():
            return {"line": sanitize(truncate(part.text, _WIDEST_VALUE)), "faint": part.is_faint}
        case Code():
            return {"code": "\n".join(map(sanitize, part.text.split("\n")))}
        case Pairs():
            return {"pairs": [_pair(name, value) for name, value in part.rows]}
        case Grid():
            return {"table": _table(part)}
        case LaneDiagram():
            lanes = [
                {
                    "name": sanitize(lane.name),
                    "note": f"{len(lane.rows):,} of {lane.total:,} {part.noun}" if len(lane.rows) < lane.total else "",
                    "rows": [[_item(left), _item(right)] for left, right in lane.rows],
                }
                for lane in part.lanes
            ]
            return {"lanes": lanes, "heads": [sanitize(head) for head in part.heads]}


def _pair(name: str, value: object) -> dict[str, Any]:
    if codes := codes_of(value):
        return {"name": sanitize(name), "codes": [sanitize(code.text) for code in codes]}
    shown = format_cell(value, unit_of(name))
    return {
        "name": sanitize(name),
        "text": truncate(shown.text, _WIDEST_VALUE),
        "exact": shown.exact or "",
        "isNull": shown.text == NULL,
    }


def _table(grid: Grid) -> dict[str, Any]:
    columns = shown_columns(grid, _ROWS)
    notes = [note for note in (rows_note(grid, _ROWS), columns_note(grid, len(columns))) if note]
    return {
        "columns": [
            {
                "heading": sanitize(truncate(column.heading, _WIDEST_CELL)),
                "meaning": sanitize(column.meaning or ""),
                "number": column.is_number,
                "prose": column.is_prose,
                "cells": [
                    truncate(shown.text, _WIDEST_VALUE if column.is_prose else _WIDEST_CELL, middle=column.is_path)
                    for shown in column.cells
                ],
                "exact": [
                    truncate(shown.exact or shown.text, _WIDEST_VALUE)
                    if shown.exact or len(shown.text) > _WIDEST_CELL
                    else ""
                    for shown in column.cells
                ],
                "colors": KIND_COLORS if column.name == "kind" else None,
            }
            for column in columns
        ],
        "marked": sorted([list(cell) for cell in grid.marked]),
        "note": sanitize("; ".join(notes)),
    }


def _item(item: Item | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {
        "sign": item.sign,
        "name": truncate(sanitize(item.name), _WIDEST_CELL, middle=True),
        "exact": sanitize(item.name),
        "about": sanitize(truncate(item.description, _WIDEST_CELL)),
        "opens": item.opens,
    }
