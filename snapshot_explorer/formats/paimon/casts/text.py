"""Parses and formats values as text, with the rules of Java and Paimon.

A parser raises `UnverifiedCastError` for text that Paimon rejects, or whose result in Paimon is not verified.
"""

import datetime as dt
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np

_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
_INTEGER = re.compile(r"([+-]?[0-9]+)(?:\.[0-9]*)?|[+-]?\.[0-9]+|\.")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?)[fFdD]?")
_FLOAT_WORDS = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?: [0-9:.]*)?")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,3}))?")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{0,9}))?)?"
)
_EPOCH = dt.date(1970, 1, 1)
_EXACT = Context(prec=400, Emax=999_999, Emin=-999_999)
_MIN_DAY, _MAX_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


class UnverifiedCastError(ValueError):
    """Text that Paimon rejects, or whose result in Paimon is not verified. The caller names the text."""


def boolean_of(text: str) -> bool:
    """Return text as a BOOLEAN, case-insensitive."""
    word = text.lower()
    if word not in _TRUE and word not in _FALSE:
        raise UnverifiedCastError
    return word in _TRUE


def integer_of(text: str, bits: int) -> int:
    """Return text as an integer of `bits` bits: an optional sign, digits, and a fraction, which is truncated."""
    match = _INTEGER.fullmatch(text)
    if not match:
        raise UnverifiedCastError
    number = int(match[1]) if match[1] else 0
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise UnverifiedCastError
    return number


def decimal_of(text: str, precision: int, scale: int) -> Decimal | None:
    """Return text as a decimal rounded half up; None if it has too many digits."""
    if not _DECIMAL.fullmatch(text):
        raise UnverifiedCastError
    try:
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:  # far more digits than a DECIMAL can have
        return None
    return rounded if abs(rounded) < Decimal(1).scaleb(precision - scale) else None


def float_of(text: str, *, single: bool) -> float:
    """Return text parsed like Java's parseFloat or parseDouble, except for hexadecimal floats."""
    word = text.strip("".join(map(chr, range(33))))
    if word in _FLOAT_WORDS:
        return _FLOAT_WORDS[word]
    match = _FLOAT.fullmatch(word)
    if not match:
        raise UnverifiedCastError
    return nearest_float32(Decimal(match[1])) if single else float(match[1])


def nearest_float32(value: Decimal) -> float:
    """Return the single-precision float nearest to a decimal, rounded once.

    A conversion through a double would round twice, and a number close to the middle of two floats could become the
    wrong one.
    """
    double = float(value)
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(double)
        if float(single) == double or not np.isfinite(single):
            return float(single)
        other = np.nextafter(single, np.float32(math.copysign(math.inf, double - float(single))))
    if (float(single) + float(other)) / 2 != double or Decimal(double) == value:
        return float(single)
    return max(float(single), float(other)) if value > Decimal(double) else min(float(single), float(other))


def date_of(text: str) -> int:
    """Return text such as 2024-01-02 as days since the epoch. A time of day after it is ignored."""
    match = _DATE.fullmatch(text)
    if not match:
        raise UnverifiedCastError
    return _days(match)


def _days(match: re.Match[str]) -> int:
    try:
        return (dt.date(int(match[1]), int(match[2]), int(match[3])) - _EPOCH).days
    except ValueError as error:  # an invalid day: Paimon rolls some over and rejects others
        raise UnverifiedCastError from error


def time_of(text: str) -> int:
    """Return text such as 03:04:05.123 as milliseconds of the day."""
    match = _TIME.fullmatch(text)
    if not match:
        raise UnverifiedCastError
    return _seconds(match[1], match[2], match[3]) * 1_000 + int((match[4] or "").ljust(3, "0"))


def _seconds(hours: str, minutes: str, seconds: str) -> int:
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:  # noqa: PLR2004 - a day's clock
        raise UnverifiedCastError
    return int(hours) * 3_600 + int(minutes) * 60 + int(seconds)


def timestamp_of(text: str, precision: int) -> int:
    """Return text such as 2024-01-02 03:04:05.123 in the Arrow unit of the precision, truncated."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise UnverifiedCastError
    seconds = _days(match) * 86_400 + (_seconds(match[4], match[5], match[6]) if match[4] else 0)
    nanos = int((match[7] or "").ljust(9, "0")) // 10 ** (9 - precision) * 10 ** (9 - precision)
    digits = 3 if precision <= 3 else 6 if precision <= 6 else 9  # noqa: PLR2004 - the digits of Arrow's units
    moment: int = seconds * 10**digits + nanos // 10 ** (9 - digits)
    if abs(moment) >= 1 << 63:
        raise UnverifiedCastError
    return moment


def date_text(days: int) -> str | None:
    """Return days since the epoch as 2024-01-02; None outside of the years 1 to 9999."""
    if not _MIN_DAY <= days <= _MAX_DAY:
        return None
    return (_EPOCH + dt.timedelta(days=days)).isoformat()


def time_text(millis: int, precision: int) -> str:
    """Return milliseconds of the day as 03:04:05, with a fraction truncated to the precision, at least one digit.

    Source: paimon DateTimeUtils, text of a time.
    """
    seconds, rest = divmod(millis, 1_000)
    text = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if not precision:
        return text
    return f"{text}.{f'{rest:03d}'.rstrip('0')[:precision] or '0'}"


def timestamp_text(value: int, per_second: int, precision: int) -> str | None:
    """Return a timestamp as 2024-01-02 03:04:05.123, with as many fraction digits as its precision."""
    seconds, fraction = divmod(value, per_second)
    day = date_text(seconds // 86_400)
    if day is None:
        return None
    clock = time_text(seconds % 86_400 * 1_000, 0)
    nanos = fraction * (1_000_000_000 // per_second)
    return f"{day} {clock}" + (f".{f'{nanos:09d}'[:precision]}" if precision else "")
