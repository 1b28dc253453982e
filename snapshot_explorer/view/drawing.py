"""Drawings: records of text and tables to show, independent of tables, formats and output."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from snapshot_explorer.arrow.value_text import format_cell, unit_of
from snapshot_explorer.core.hints import Hint, spell

DRAWN_ROWS = 20
"""The default number of rows to draw."""
DRAWN_COLUMNS = 100
"""The maximum number of columns to draw."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A name and a value per line."""

    rows: tuple[tuple[str, object], ...]
    """Names with their values; numbers, times and text are formatted, None is `-`; a value may be `Code`, or a tuple of
    several. The last word of a name is the unit of a number: `bytes`, or `rows`, `files`, `versions` and similar
    nouns."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of rows."""

    rows: pa.Table
    """The rows to draw. Rows that do not fit are cut, with a note. Field metadata `unit` determines the format
    of a number: `bytes`, `rows`, `files`; `meaning` is the column's tooltip; `words` is a key of `value_text.WORDS`."""
    total: int | None = None
    """The total number of rows, if `rows` is only the first of them."""
    noun: str = "rows"
    """The plural noun for rows, for the note on rows that are not shown."""
    limit: int | None = None
    """The number of rows to draw; None for the caller's limit."""
    marked: frozenset[tuple[int, int]] = frozenset()
    """Cells, as row and column, that are drawn as changed. Their text must show the change too."""
    pictures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By column, a picture as HTML for each row, which pages draw in place of its text."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    text: str
    """The text; a long one is wrapped."""
    is_faint: bool = False
    """Whether pages draw the line in gray."""


@dataclass(frozen=True, slots=True)
class Code:
    """A path, a command or code, which pages offer to copy."""

    text: str
    """The text, in lines of any length."""
    is_whole: bool = False
    """Whether pages show all of it, however long: a part of a statement must not be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a lane, with a sign for its change."""

    sign: str
    """`=` carried over, `+` added, `-` gone, `~` merged from others, or `?`."""
    name: str
    description: str
    opens: str = ""
    """The target of a click, on a page that supports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The items of one kind of two sides, equal ones on the same line."""

    name: str
    rows: tuple[tuple[Item | None, Item | None], ...]
    """The left and right side of each line; None for nothing."""
    total: int
    """The total number of lines, if `rows` is only a part of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneDiagram:
    """Two sides in two columns, lane by lane."""

    heads: tuple[str, str]
    """The headings of the left and the right side."""
    lanes: tuple[Lane, ...]
    """The lanes, in order."""
    noun: str
    """The plural noun for lines, for the note on lines that are not shown."""


Part = Pairs | Grid | Line | Code | LaneDiagram


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The representation of an object."""

    title: str
    parts: tuple[Part, ...]
    """The parts below it, in order."""


def spelled(drawing: Drawing, call: Callable[[Hint], str]) -> Drawing:
    """Return a drawing whose lines, code and values spell their hints in a surface's way; as drawn, they are Python.

    Args:
        call: Spells a hint.
    """
    return replace(drawing, parts=tuple(_spelled_part(part, call) for part in drawing.parts))


def _spelled_part(part: Part, call: Callable[[Hint], str]) -> Part:
    match part:
        case Line() | Code():
            return replace(part, text=spell(part.text, call))
        case Pairs():
            return Pairs(tuple((name, _spelled_value(value, call)) for name, value in part.rows))
    return part


def _spelled_value(value: object, call: Callable[[Hint], str]) -> object:
    match value:
        case str():
            return spell(value, call)
        case Code():
            return replace(value, text=spell(value.text, call))
        case tuple() if codes_of(value):
            return tuple(_spelled_value(item, call) for item in value)
    return value


def shortened(drawing: Drawing, rows: int) -> Drawing:
    """Return a drawing whose grids draw at most so many rows."""
    parts = (
        replace(part, limit=rows if part.limit is None else min(part.limit, rows)) if isinstance(part, Grid) else part
        for part in drawing.parts
    )
    return replace(drawing, parts=tuple(parts))


def fact_line(facts: Iterable[tuple[str, object]]) -> Line:
    """Return names with their values as one gray line, to follow an answer."""
    return Line(" · ".join(f"{name} {format_cell(value, unit_of(name)).text}" for name, value in facts), is_faint=True)


def codes_of(value: object) -> tuple[Code, ...]:
    """Return the `Code` or the tuple of `Code` that a value is; empty for other values."""
    result = value if isinstance(value, tuple) else (value,)
    return result if result and all(isinstance(item, Code) for item in result) else ()
