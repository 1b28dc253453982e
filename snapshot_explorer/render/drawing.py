"""What an object shows of itself: records that know no table, no format, and no way of being drawn."""

from dataclasses import dataclass

import pyarrow as pa

DRAWN_ROWS = 20
"""Rows of a grid that are drawn unless something else is asked for."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A name and a value per line."""

    rows: tuple[tuple[str, object], ...]
    """Names with their values; numbers, times and text are drawn as they read best, None as `-`. The last word
    of a name tells what a number counts: `bytes`, or `rows`, `files`, `versions` and the like."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of rows."""

    rows: pa.Table
    """The rows to draw; more than fit are cut, and the cut is said. Field metadata `unit` says how to
    draw a number: `bytes`, `rows`, `files`; `meaning` becomes the column's tooltip."""
    total: int | None = None
    """How many rows there are in all, where `rows` is only the first of them."""
    noun: str = "rows"
    """What a row is, in the plural, for the line that says what was cut."""
    limit: int | None = None
    """How many rows to draw; None leaves it to who draws."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    text: str
    """The text; a long one is wrapped."""


Part = Pairs | Grid | Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What an object shows of itself."""

    title: str
    """The heading."""
    parts: tuple[Part, ...]
    """What stands below it, in order."""
