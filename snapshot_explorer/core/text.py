"""Numbers and times as text, the same in messages, in the terminal and in the browser."""

import re
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice

_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")
_THOUSAND = 1000
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")


def format_size(count: int) -> str:
    """Return a number of bytes in decimal units: 1 kB is 1,000 bytes, 1 MB is 1,000 kB."""
    if abs(count) < _THOUSAND:
        return f"{count} B"
    scaled = float(count)
    for unit in _UNITS:
        scaled /= _THOUSAND
        if abs(round(scaled, 1)) < _THOUSAND or unit == _UNITS[-1]:
            return f"{scaled:,.1f} {unit}"
    raise AssertionError  # pragma: no cover - the loop ends at its last unit


def pluralize(count: int | None, noun: str) -> str:
    """Return a number with its noun, such as `1 file` or `1,000 rows`."""
    if count is None:
        return f"an unknown number of {noun}s"
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def list_names(names: Collection[str], most: int = 20) -> str:
    """Return names for a message: the first ones, and how many more there are."""
    shown = ", ".join(islice(names, most))
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def did_you_mean(name: object, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    """Return the question ` Did you mean x?` with the most similar known name, spelled; empty if none is similar."""
    near = get_close_matches(str(name), list(known), 1)
    return f" Did you mean {spell(near[0])}?" if near else ""


def format_utc(time: datetime) -> str:
    """Return a time to the millisecond, in UTC with a Z; a time without zone has none."""
    if time.tzinfo is not None:
        try:
            time = time.astimezone(UTC)
        except OverflowError:
            return str(time)
    return time.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def short_user(user: str) -> str:
    """Return a user; for a writer with only a random id, the first part of the id."""
    return user.partition("-")[0] if _UUID.fullmatch(user) else user
