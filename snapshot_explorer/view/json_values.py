"""Values and records as JSON: whole for `--json` in a terminal, within bounds for agents."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.value_text import interval_text
from snapshot_explorer.core.hints import Hint, Message, spell
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.results import Frame
from snapshot_explorer.results.exports import json_text

_EXACT = 2**53
"""Whole numbers up to this are exact in every reader of JSON; others are text within bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBounds:
    """What is shown of a value. Texts within bounds have no invisible characters."""

    letters: int
    """The maximum number of letters of a text."""
    items: int = 100
    """The maximum number of items of a list, rows of a frame and names of an object."""
    depth: int = 6
    """How deep lists and objects are nested; what is deeper is text."""


def json_value(value: object, call: Callable[[Hint], str], bounds: JsonBounds | None = None) -> Any:
    """Return a value as JSON values: a frame as a list of its rows, another record as an object of its facts.

    Args:
        call: Spells a hint, also in messages.
        bounds: What is shown; None for all. Then values that are not of JSON, such as times, stay as they are.
    """
    most = None if bounds is None else bounds.items
    deeper = None if bounds is None else dataclasses.replace(bounds, depth=bounds.depth - 1)
    part = partial(json_value, call=call, bounds=deeper)
    is_deep = bounds is not None and not bounds.depth
    match value:
        case Hint():
            value = call(value)
        case Message():
            value = spell(value, call)
        case pa.MonthDayNano():  # a tuple
            value = interval_text(value)
        case Frame() if not is_deep:
            rows = orjson.loads(json_text(value.first_rows(most)))
            return rows if bounds is None else [part(row) for row in rows]
        case Mapping() if not is_deep:
            names = str if bounds is None else partial(bounded_text, letters=bounds.letters)
            return {names(str(name)): part(item) for name, item in islice(value.items(), most)}
        case list() | tuple() if not is_deep:
            return [part(item) for item in islice(value, most)]
        case _ if _is_ours(value) and not is_deep:
            return {name: part(item) for name, item in _facts(value).items()}
    return value if bounds is None else _bounded(value, bounds.letters)


def bounded_text(content: str, letters: int) -> str:
    """Return text without secrets of URLs, with invisible characters escaped, and cut with a note."""
    shown = sanitize(hide_url_secrets(content[: 2 * letters]))
    if len(shown) <= letters and len(content) <= 2 * letters:
        return shown
    return f"{shown[:letters]}... ({max(len(content) - letters, 1):,} more letters)"


def _bounded(value: object, letters: int) -> object:
    """Return a single value: large whole numbers as text, times as ISO 8601 in UTC, NaN and infinity as null."""
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) <= _EXACT else str(value)
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            return bounded_text(value.hex(), letters)
    return bounded_text(str(value), letters)


def _facts(result: object) -> dict[str, object]:
    """Return the fields and properties of a result, without other results, Arrow objects and figures in them."""
    names = [
        name for name in dir(result) if not name.startswith("_") and not callable(getattr(type(result), name, None))
    ]
    values = {name: getattr(result, name) for name in names}
    return {name: value for name, value in values.items() if _is_fact(value)}


def _is_fact(value: object) -> bool:
    if _is_ours(value):
        return isinstance(value, Frame) or dataclasses.is_dataclass(value)
    return not callable(value) and type(value).__module__.partition(".")[0] not in ("pyarrow", "plotly")


def _is_ours(value: object) -> bool:
    return not isinstance(value, str) and type(value).__module__.partition(".")[0] == "snapshot_explorer"
