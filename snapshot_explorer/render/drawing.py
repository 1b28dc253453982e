"""Drawings: records of text and tables to show, independent of tables, formats and output."""

from dataclasses import dataclass

import pyarrow as pa

DRAWN_ROWS = 20
"""The default number of rows to draw."""
DRAWN_COLUMNS = 100
"""The most columns to draw."""


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
    """How many rows to draw; None for the caller's limit."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    text: str
    """The text; a long one is wrapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing of a lane, with a sign for what became of it."""

    sign: str
    """`=` carried over, `+` added, `-` gone, `~` made of others, or `?`."""
    name: str
    """The name."""
    description: str
    """A short description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What two sides have of one sort, what both have beside each other."""

    name: str
    """What the lane holds."""
    rows: tuple[tuple[Item | None, Item | None], ...]
    """What stands on the left and on the right of each line; None for nothing."""
    total: int
    """How many lines there are in all, where `rows` is only a part of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Two sides beside each other, lane by lane."""

    heads: tuple[str, str]
    """What the left and the right side are."""
    lanes: tuple[Lane, ...]
    """The lanes, in order."""
    noun: str
    """What a line holds, in the plural, for what is said of lanes that are cut."""


Part = Pairs | Grid | Line | Lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The representation of an object."""

    title: str
    """The heading."""
    parts: tuple[Part, ...]
    """The parts below it, in order."""
