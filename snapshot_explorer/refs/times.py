"""The times of refs: `2026-11-01`, `2026-11-01T12:00+02:00`, `2h` ago, `yesterday`."""

import re
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from snapshot_explorer.errors import InvalidRefError

EXAMPLES = "Refs look like 17, latest, earliest, latest~2, 17^, tag:v1, branch:dev, @2026-11-01 or @2h."
YESTERDAY = "yesterday"
_SECONDS = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800})
_SPAN = r"(\d+) ?(s|m|h|d|w|secs?|mins?|hours?|days?|weeks?|seconds?|minutes?)"
_AGO = re.compile(rf"(?:{_SPAN} ?)+(?:ago)?", re.ASCII)
"""Lower case only: a capital M could mean months."""
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?)? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE
)


def parse_time(text: str, now: datetime | None) -> datetime | None:
    """Return the time that a text names; None if it is not a time. `yesterday` is the end of that day, in UTC."""
    try:
        if text.lower() == YESTERDAY:
            return start_of_day(now) - timedelta(microseconds=1)
        if _TIME.fullmatch(text):
            compact = re.sub(r" (?=Z|[+-]\d\d:?\d\d$)", "", text.upper())
            return utc(datetime.fromisoformat(compact))
        if _AGO.fullmatch(text):
            spans = re.findall(_SPAN, text, re.ASCII)
            seconds = sum(int(count) * _SECONDS[unit[0]] for count, unit in spans)
            return utc(now or datetime.now(UTC)) - timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
    return None


def start_of_day(now: datetime | None) -> datetime:
    """Return the time at which the current day began, in UTC."""
    return utc(now or datetime.now(UTC)).replace(hour=0, minute=0, second=0, microsecond=0)


def utc(time: datetime) -> datetime:
    """Return a time as a plain datetime in UTC. A naive one is assumed to be in UTC."""
    try:
        aware = time.astimezone(UTC) if time.tzinfo else time
        # Field by field: pandas.Timestamp is a datetime too, and so is NaT, which has no fields.
        return datetime(
            aware.year, aware.month, aware.day, aware.hour, aware.minute, aware.second, aware.microsecond, tzinfo=UTC
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRefError(
            f"{brief_repr(time)} is not a time. Use one in the years 1 to 9999. {EXAMPLES}"
        ) from error


def format_time(time: datetime) -> str:
    """Return a time in UTC as text, in the form of refs and messages."""
    return time.isoformat().replace("+00:00", "Z")


def brief_repr(text: object) -> str:
    """Return an input as text for a message: one line of limited length."""
    if isinstance(text, int) and text.bit_length() > 100:  # noqa: PLR2004 - Python refuses to print very long numbers
        return f"A number of {text.bit_length():,} bits"
    text_repr = ascii(text) if not isinstance(text, str) or not text.isprintable() else repr(text)
    return text_repr if len(text_repr) <= 80 else f"{text_repr[:77]}..."  # noqa: PLR2004 - a line
