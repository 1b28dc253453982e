"""The shown rows of a grid, as cells, and the note on rows that are not shown."""

from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.arrow.value_text import DRAWN, MINUS, WORDS, Cell, format_cell, to_the_second, unit_of
from snapshot_explorer.view.drawing import DRAWN_COLUMNS, Grid

_SIGNS = {"added": "+", "removed": MINUS}
_CHANGED = ("files", "rows", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownColumn:
    """The drawn part of a grid's column."""

    name: str
    heading: str
    """The text above the column: its name; for metadata, its words, with the zone of its times."""
    meaning: str | None
    """The meaning of the column, from its field metadata."""
    is_number: bool
    """Whether the column contains numbers, which are aligned to the right."""
    cells: tuple[Cell, ...]
    """The first rows."""
    values: tuple[int | None, ...] = ()
    """Their values, where the column contains whole numbers."""

    is_whole: bool = False
    """Whether text is never truncated, so that it can be copied: `whole` in the field metadata."""

    is_prose: bool = False
    """Whether it contains sentences, which are wrapped and never cut: `prose` in the field metadata."""
    wraps: bool = False
    """Whether its text is wrapped in a narrow column, as sentences are in a wide one: `wraps` in the field metadata."""

    @property
    def is_path(self) -> bool:
        """Whether the column contains paths, which pages cut in the middle."""
        return self.name.endswith("path")


def shown_columns(grid: Grid, limit: int, *, most: int = DRAWN_COLUMNS) -> tuple[ShownColumn, ...]:
    """Return the first columns of the rows to draw; none without rows, whose noun is more useful than headings.

    Only the rows to draw are converted.

    Args:
        limit: Rows to draw of a grid that has no limit of its own.
        most: The maximum number of columns.
    """
    if not grid.rows.num_rows:
        return ()
    wide = grid.rows if grid.rows.num_columns <= most else grid.rows.select(range(most))
    rows = wide.slice(0, shown_rows(grid, limit))
    columns = []
    for position, field in enumerate(rows.schema):
        metadata = field.metadata or {}
        unit = unit_of(field.name, metadata) if metadata else None
        meaning = metadata.get(b"meaning")
        words, column = WORDS.get(metadata.get(b"words", b"").decode()), rows.column(position)
        if _is_metadata(field) and pa.types.is_float64(field.type):
            column = [pa.scalar(None if value is None else float(f"{value:.6g}")) for value in column.to_pylist()]
        is_time = _is_time_of_metadata(field)
        cells = tuple(format_cell(words.get(value.as_py(), value) if words else value, unit) for value in column)
        columns.append(
            ShownColumn(
                name=field.name,
                heading=heading_of(field),
                meaning=meaning.decode(errors="replace") if meaning else None,
                is_number=is_number(field.type) or metadata.get(b"align") == b"right",
                cells=tuple(map(to_the_second, cells)) if is_time else cells,
                values=tuple(rows.column(position).to_pylist()) if pa.types.is_integer(field.type) else (),
                is_whole=b"whole" in metadata,
                is_prose=b"prose" in metadata,
                wraps=bool({b"prose", b"wraps"} & metadata.keys()),
            )
        )
    return tuple(columns)


def drawn_field(name: str, dtype: pa.DataType) -> pa.Field:
    """Return the field of values of a type that `format_cell` has formatted, which are aligned like the values."""
    return pa.field(name, pa.string(), metadata=DRAWN | ({"align": "right"} if is_number(dtype) else {}))


def heading_of(field: pa.Field) -> str:
    """Return the heading of a column: its name; for metadata words such as `+ rows` or `list A`."""
    name = str(field.name)
    if not _is_metadata(field):
        return name
    if own := field.metadata.get(b"heading"):
        return str(own.decode())
    first, _, rest = name.partition("_")
    if first in _SIGNS and rest in _CHANGED:
        return f"{_SIGNS[first]} {rest}"
    words = name.removesuffix("_bytes") if name == "size_bytes" else name
    if words.endswith(("_a", "_b")):
        words = words[:-1] + words[-1].upper()
    return words.replace("_", " ") + " (UTC)" * _is_time_of_metadata(field)


def _is_metadata(field: pa.Field) -> bool:
    return b"meaning" in (field.metadata or {})


def _is_time_of_metadata(field: pa.Field) -> bool:
    return _is_metadata(field) and pa.types.is_timestamp(field.type) and field.type.tz is not None


def shown_rows(grid: Grid, limit: int) -> int:
    """Return the number of rows to draw."""
    return min(int(grid.rows.num_rows), max(limit if grid.limit is None else grid.limit, 0))


def columns_note(grid: Grid, shown: int) -> str | None:
    """Return a note on the part of the columns that is drawn, such as `100 of 100,000 columns`; None if all are."""
    total = int(grid.rows.num_columns)
    return f"{shown:,} of {total:,} columns" if shown < total and grid.rows.num_rows else None


def rows_note(grid: Grid, limit: int) -> str | None:
    """Return a note on the part of the rows that is drawn, such as `20 of 10,000 versions`."""
    shown = shown_rows(grid, limit)
    total = max(int(grid.rows.num_rows), grid.total or 0)
    if total == 0:
        return f"no {grid.noun}"
    return f"{shown:,} of {total:,} {grid.noun}" if shown < total else None
