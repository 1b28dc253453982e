"""Timestamps as partition values and statistics spell them."""

import re
from datetime import UTC, datetime, timedelta

_TIME = re.compile(
    r"(\d{4,})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s?(Z|UTC|[+-]\d{2}:?\d{2})?"
)
_MICRO_DIGITS = 6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(text: str) -> tuple[int, bool]:
    """Return a timestamp as microseconds since 1970, and whether its text says the offset from UTC.

    Raises:
        ValueError: The text is not a timestamp, or finer than microseconds.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    digits = (fraction or "").ljust(_MICRO_DIGITS, "0")
    if digits[_MICRO_DIGITS:].strip("0"):
        raise ValueError(text)
    moment = datetime(int(year), int(month), int(day), tzinfo=UTC)
    hours, minutes, seconds = (int(part or 0) for part in (hour, minute, second))
    moment = moment.replace(hour=hours, minute=minutes, second=seconds, microsecond=int(digits[:_MICRO_DIGITS]))
    return (moment - _EPOCH) // timedelta(microseconds=1) - _offset(zone), zone is not None


def _offset(zone: str | None) -> int:
    """Return an offset from UTC in microseconds."""
    if zone is None or zone in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "")
    minutes = 60 * int(digits[:2]) + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000
