"""Paimon's casts of dates, times and timestamps. Where Paimon uses the zone of its JVM, the zone here is UTC."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.paimon.casts.arrays import NotCastableError, each, numbers, with_nulls
from snapshot_explorer.formats.paimon.casts.text import date_text, time_text, timestamp_text
from snapshot_explorer.formats.paimon.metadata.schema import DataType, arrow_type, spell

_PER_UNIT = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_DAY_MS = 86_400_000


def integer_to_timestamp(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return seconds since the epoch as timestamps; the count of milliseconds wraps as Java's long does."""
    del source
    with np.errstate(over="ignore"):
        millis = numbers(values).astype(np.int64) * np.int64(1000)
    return _from_millis(millis, np.zeros_like(millis), values, target)


def date_to_text(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return days as text such as 2024-01-02."""
    del source, target
    return each(values.view(pa.int32()), pa.string(), _checked(date_text))


def date_to_timestamp(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return the midnight with which each day begins."""
    del source
    millis = numbers(values).astype(np.int64) * _DAY_MS
    return _from_millis(millis, np.zeros_like(millis), values, target)


def time_to_text(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return times as text such as 03:04:05.12."""
    del target
    precision = source.precision or 0
    return each(values.view(pa.int32()), pa.string(), _checked(lambda value: time_text(value, precision)))


def time_to_timestamp(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return times on the first day of the epoch; the precision of the target is not applied."""
    del source
    millis = numbers(values).astype(np.int64)
    return _encode(millis, np.zeros_like(millis), values, target)


def timestamp_to_text(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return timestamps as text such as 2024-01-02 03:04:05.120, with as many digits as the precision says."""
    del target
    precision = source.precision if source.precision is not None else 6
    per_second = 1_000 * _PER_UNIT[values.type.unit]
    text = _checked(lambda value: timestamp_text(value, per_second, precision))
    return each(values.view(pa.int64()), pa.string(), text)


def _checked(function: Callable[[int], str | None]) -> Callable[[object], object]:
    """Return the function with null kept, and a value without a proven text refused."""

    def convert(value: object) -> object:
        if value is None:
            return None
        text = function(int(value))  # type: ignore[call-overload] # the dictionary holds integers
        if text is None:
            raise NotCastableError("a date before the year 1 or after 9999 is not cast to text")
        return text

    return convert


def timestamp_to_integer(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return whole seconds, cut towards zero; INT wraps."""
    del source
    millis, _ = _millis(values)
    return with_nulls(
        (_cut(millis, 1000) // 1000).astype(np.int32 if target.root == "INT" else np.int64), values, arrow_type(target)
    )


def timestamp_to_date(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return the day: cut towards 1970 for a TIMESTAMP, as Java's division does, downwards for an LTZ one."""
    del target
    millis, _ = _millis(values)
    whole = millis if source.root == "TIMESTAMP_LTZ" else _cut(millis, _DAY_MS)
    return with_nulls((whole // _DAY_MS).astype(np.int32), values, pa.date32())


def timestamp_to_time(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return the time of day. Before 1970 Paimon gives negative times for a TIMESTAMP; those are refused."""
    millis, _ = _millis(values)
    if source.root == "TIMESTAMP" and bool(np.any((millis < 0) & (millis % _DAY_MS != 0))):
        raise NotCastableError(f"a time before 1970 is not cast from {spell(source)} to {spell(target)}")
    return with_nulls((millis % _DAY_MS).astype(np.int32), values, arrow_type(target))


def timestamp_to_timestamp(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return timestamps in another precision or of the other kind: the zone is UTC."""
    del source
    millis, nanos = _millis(values)
    return _from_millis(millis, nanos, values, target)


def _millis(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return timestamps as Paimon holds them: whole milliseconds, and nanoseconds within (0 to 999999)."""
    unit = _PER_UNIT[values.type.unit]
    given = numbers(values)
    return given // unit, (given % unit) * (1_000_000 // unit)


def _cut(numbers: np.ndarray, step: int) -> np.ndarray:
    """Return the numbers cut towards zero to whole steps."""
    cut: np.ndarray = numbers - np.fmod(numbers, step)
    return cut


def _from_millis(millis: np.ndarray, nanos: np.ndarray, values: pa.Array, target: DataType) -> pa.Array:
    """Return timestamps cut to the precision: towards zero above the millisecond, downwards below it.

    Source: paimon DateTimeUtils.truncate.
    """
    precision = target.precision if target.precision is not None else 6
    if precision <= 3:  # noqa: PLR2004 - digits of a millisecond
        return _encode(_cut(millis, 10 ** (3 - precision)), np.zeros_like(nanos), values, target)
    return _encode(millis, nanos // 10 ** (9 - precision) * 10 ** (9 - precision), values, target)


def _encode(millis: np.ndarray, nanos: np.ndarray, values: pa.Array, target: DataType) -> pa.Array:
    """Return timestamps in the unit of the target's Arrow type; one that does not fit is refused."""
    kind = arrow_type(target)
    unit = _PER_UNIT[kind.unit]
    limit = np.iinfo(np.int64).max // unit - 1
    if unit > 1 and bool(np.any((millis > limit) | (millis < -limit))):
        raise NotCastableError(f"a timestamp does not fit {spell(target)} here, which is kept in {kind.unit}")
    return with_nulls(millis * unit + nanos // (1_000_000 // unit), values, kind)
