"""Values as short plain text: the same words in messages, for the terminal and for the browser."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Literal, cast, get_args

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.variant_texts import is_variant, json_text
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import format_size, format_utc

Unit = Literal["bytes", "count", "drawn", "money"]
"""`drawn` is text that `format_cell` has formatted already: it is not quoted again."""
DRAWN = {"unit": "drawn"}
"""The metadata of a field with such text."""

NULL = "-"
"""The text of null. The text "-" is drawn in quotes, so that the two differ."""
NOT_CHECKED = "not checked"
"""The text of a null that means that nothing was checked."""
WORDS: Mapping[str, Mapping[object, str]] = {
    "checked": {None: NOT_CHECKED},
    "readable": {None: NOT_CHECKED, "metadata": "no: only metadata is left"},
}
"""The words that are drawn for values, by the `words` of a column's field metadata. Others are drawn as they are."""
ELLIPSIS = "…"
MINUS = "\N{MINUS SIGN}"
"""Differs from the hyphen for null."""
_MAX_LENGTH = 2_000
"""The maximum number of characters of a value that are formatted; a cell never shows more."""
_MAX_BYTES = 16
_MAX_ITEMS = 50
_COUNT_NOUNS = frozenset({"rows", "files", "versions", "commits", "manifests", "columns", "splits", "entries"})
_THOUSAND = 1000
_CENT = 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as it is drawn."""

    text: str
    """The text, on one line, with control characters escaped."""
    whole: bool = False
    """Whether it must not be truncated, like numbers and times."""
    exact: str | None = None
    """The full value if `text` is rounded or truncated."""


@dataclass(frozen=True, slots=True)
class _FormattedText:
    text: str


def format_total_size(sizes: pa.ChunkedArray) -> str:
    """Return the sum of bytes in decimal units: a lower bound if some are unknown."""
    total = pc.sum(sizes).as_py() or 0
    return f"at least {format_size(total)}" if sizes.null_count else format_size(total)


def unit_of(name: str, metadata: Mapping[bytes, bytes] | None = None) -> Unit | None:
    """Return the unit of a column of that name; None for identifiers such as a version.

    The metadata of a field decides (`unit`); without it, the last word of the name.
    """
    declared = (metadata or {}).get(b"unit", b"").decode()
    if declared in get_args(Unit):
        return cast("Unit", declared)
    word = declared or name.replace("_", " ").rpartition(" ")[2]
    if word == "bytes":
        return "bytes"
    return "count" if word in _COUNT_NOUNS else None


def format_cell(value: object, unit: Unit | None = None) -> Cell:
    """Return a Python value or an Arrow scalar as a cell.

    Null is `-`; ambiguous text ("", "-", blanks at an end) is quoted; a map
    is `dt=2026-01-01/hr=3`, a list `a, b`, a boolean yes or no, a time UTC to the millisecond.
    """
    if isinstance(value, pa.Scalar):
        value = _python(value)
    if unit == "drawn" and isinstance(value, str):
        return Cell(sanitize(value[:_MAX_LENGTH]))
    if isinstance(value, int) and not isinstance(value, bool):
        return _number(value, unit)
    if isinstance(value, float) and unit == "money":
        return Cell("<0.01" if 0 < value < _CENT else f"{value:,.2f}", whole=True, exact=str(value))
    if isinstance(value, float | Decimal):
        return Cell(f"{value:,}" if unit else str(value), whole=True)
    return Cell(_format(value), whole=isinstance(value, bool | datetime | _FormattedText))


def to_the_second(time: Cell) -> Cell:
    """Return a time in UTC without its fraction and its zone, which `exact` contains."""
    shown = time.text.removesuffix("Z").partition(".")[0]
    return time if shown == time.text else Cell(shown, whole=True, exact=time.text)


def readable_words(readable: str | None, reason: str | None = None) -> str:
    """Return whether a version can be loaded, in words, such as `no: 8 of 8 files are gone`."""
    words = {**WORDS["readable"], "metadata": "no"} if reason else WORDS["readable"]
    word = words.get(readable, readable)
    return f"{word}: {reason}" if reason else str(word)


def _number(value: int, unit: Unit | None) -> Cell:
    if unit == "bytes":
        exact = f"{value:,} bytes" if abs(value) >= _THOUSAND else None
        return Cell(format_size(value), whole=True, exact=exact)
    return Cell(f"{value:,}" if unit else str(value), whole=True)


def _python(scalar: pa.Scalar) -> object:
    """Return an Arrow scalar as a Python value to format; no value is out of range."""
    dtype = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_temporal(dtype) and not pa.types.is_interval(dtype):
        return _FormattedText(_temporal(scalar))
    if pa.types.is_map(dtype):
        entries = scalar.values.slice(0, _MAX_ITEMS + 1)
        keys, items = entries.flatten()
        return {_format(_python(key)): _python(item) for key, item in zip(keys, items, strict=True)}
    if is_variant(dtype):
        return _variant(scalar)
    if pa.types.is_struct(dtype):
        several = range(min(dtype.num_fields, _MAX_ITEMS + 1))
        return {dtype.field(position).name: _python(scalar[position]) for position in several}
    if isinstance(scalar, pa.ListScalar):
        return [_python(item) for item in scalar.values.slice(0, _MAX_ITEMS + 1)]
    if pa.types.is_dictionary(dtype):
        return _python(scalar.value)
    value: object = scalar.as_py()
    return value


def interval_text(value: pa.MonthDayNano) -> str:
    """Return an interval as ISO 8601 writes it, such as P1M2DT3.5S; each part has its own sign."""
    seconds = f"{Decimal(value.nanoseconds).scaleb(-9).normalize():f}"
    days = f"P{f'{value.months}M' if value.months else ''}{f'{value.days}D' if value.days else ''}"
    return days if days != "P" and not value.nanoseconds else f"{days}T{seconds}S"


def _variant(scalar: pa.StructScalar) -> object:
    """Return a variant as JSON text; a damaged one as its bytes."""
    parts: dict[str, bytes] = scalar.as_py()
    try:
        return _FormattedText(json_text(parts["metadata"], parts["value"])[:_MAX_LENGTH])
    except (TypeError, ValueError):
        return parts


def _temporal(scalar: pa.Scalar) -> str:
    """Return a date, time or duration as Arrow formats it, which also covers values outside of Python's types."""
    dtype = scalar.type
    try:
        if pa.types.is_timestamp(dtype) and dtype.tz is not None and dtype.tz != "UTC":
            # The same instant; the zone is only a name.
            scalar = pa.array([scalar.value], pa.int64()).cast(pa.timestamp(dtype.unit, tz="UTC"))[0]
        return str(scalar.cast(pa.string()).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return str(scalar.value)


def _format(value: object, *, guarded: str = "", nested: bool = False) -> str:
    """Return a value as text; text in a list or map with a character of `guarded` is quoted."""
    match value:
        case None:
            shown = NULL
        case _FormattedText():
            shown = sanitize(value.text)
        case bool():
            shown = "yes" if value else "no"
        case str():
            shown = _quote_if_needed(value[:_MAX_LENGTH], guarded)
        case datetime():
            shown = format_utc(value)
        case pa.MonthDayNano():
            shown = interval_text(value)
        case bytes() | bytearray() | memoryview():
            shown = _binary(bytes(value))
        case Mapping():
            shown = _wrap(_format_mapping(value), "{}", nested=nested)
        case Sequence() | set() | frozenset():
            shown = _wrap(_format_items(value), "[]", nested=nested)
        case _:
            shown = sanitize(str(value)[:_MAX_LENGTH])
    return shown


def _wrap(inner: str, brackets: str, *, nested: bool) -> str:
    return f"{brackets[0]}{inner}{brackets[1]}" if nested else inner


def _format_mapping(value: Mapping[object, object]) -> str:
    pairs = [
        f"{_format(name, guarded='/=', nested=True)}={_format(item, guarded='/=', nested=True)}"
        for name, item in islice(value.items(), _MAX_ITEMS)
    ]
    return "/".join([*pairs, ELLIPSIS] if len(value) > _MAX_ITEMS else pairs)[:_MAX_LENGTH]


def _format_items(value: Iterable[object]) -> str:
    items = list(value)
    shown = [_format(item, guarded=",", nested=True) for item in items[:_MAX_ITEMS]]
    return ", ".join([*shown, ELLIPSIS] if len(items) > _MAX_ITEMS else shown)[:_MAX_LENGTH]


def _quote_if_needed(value: str, guarded: str) -> str:
    shown = sanitize(value)
    if value in ("", NULL) or value[0] in ' "' or value[-1] == " " or any(sign in value for sign in guarded):
        return '"' + shown.replace('"', '\\"') + '"'
    return shown


def _binary(value: bytes) -> str:
    more = ELLIPSIS if len(value) > _MAX_BYTES else ""
    return f"0x{value[:_MAX_BYTES].hex()}{more}"


def text_width(text: str) -> int:
    """Return the width of text in terminal columns: two for wide letters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def truncate(text: str, room: int, *, middle: bool = False) -> str:
    """Return text of at most `room` columns, with an ellipsis for removed characters.

    With `middle`, both ends of the text remain, such as the folder and the extension of a path.
    """
    # Marks have no width: bound their number too.
    text = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + ELLIPSIS
    if text_width(text) <= room:
        return text
    if room <= 1:
        return ELLIPSIS[:room]
    tail = (room - 1) // 2 if middle else 0
    ending = leading(text[::-1], tail)[::-1]
    return leading(text, room - 1 - tail) + ELLIPSIS + ending


def leading(text: str, room: int) -> str:
    """Return the beginning of a text, of at most `room` columns."""
    if text[: room + 1].isascii():  # one more: a mark that follows has no width
        return text[:room]
    taken = 0
    for position, letter in enumerate(text):
        taken += _letter_width(letter)
        if taken > room:
            return text[:position]
    return text


def pad(text: str, room: int, *, right: bool) -> str:
    """Return text filled with blanks to `room` columns."""
    blanks = " " * (room - text_width(text))
    return blanks + text if right else text + blanks
