"""How a value or a frame looks, as aligned text and as HTML. Knows no table and no format."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Pairs:
    """A name and a value per line."""

    rows: tuple[tuple[str, object], ...]
    """Names with their values; numbers, times and text are drawn as they read best, None as nothing."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of rows."""

    rows: pa.Table
    """The rows to draw; more than fit are cut, and the cut is said. Field metadata `unit` says how to
    draw a number: `bytes`, `rows`, `files`."""
    total: int | None = None
    """How many rows there are in all, where `rows` is only the first of them."""
    noun: str = "rows"
    """What a row is, in the plural, for the line that says what was cut."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    text: str


Part = Pairs | Grid | Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What an object shows of itself."""

    title: str
    """The heading."""
    parts: tuple[Part, ...]
    """What stands below it, in order."""


def mimebundle(drawing: Drawing) -> dict[str, str]:
    """Return the drawing as `text/plain` and `text/html`, for `_repr_mimebundle_`."""
    raise NotImplementedError


def text(drawing: Drawing) -> str:
    """Return the drawing as aligned text without colours, at most 120 columns wide."""
    raise NotImplementedError
