"""Paimon's casts of values: converts a column of an old file to a newer type.

Every rule was compared with the results of Paimon's own cast executors (see the tests). Other values and pairs of
types raise. The zone is UTC where Paimon uses the zone of its JVM.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.paimon.casts.text import (
    UnverifiedCastError,
    boolean_of,
    date_of,
    date_text,
    decimal_of,
    float_of,
    integer_of,
    nearest_float32,
    time_of,
    time_text,
    timestamp_of,
    timestamp_text,
)
from snapshot_explorer.formats.paimon.metadata.data_types import MAX_LENGTH, PaimonDataType, arrow_type, type_text
from snapshot_explorer.formats.paimon.metadata.value_texts import java_text


class NotCastableError(ValueError):
    """A value whose cast to the new type is not supported. The message names the value, not the file."""


def each(values: pa.Array, dtype: pa.DataType, function: Callable[[Any], object]) -> pa.Array:
    """Return the result of a function for each value, called once per distinct value. Null remains null."""
    encoded = values.dictionary_encode()
    mapped = pa.array([function(value) for value in encoded.dictionary.to_pylist()], dtype)
    return mapped.take(encoded.indices)


def numbers(values: pa.Array) -> np.ndarray:
    """Return the values as a NumPy array, with 0 for null; times as their integers."""
    if not pa.types.is_floating(values.type) and not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False))


def with_nulls(numbers: np.ndarray, values: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return numbers as Arrow values of a type of the same width, null where `values` is."""
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    plain = pa.array(numbers, mask=mask)
    return plain if plain.type == dtype else plain.view(dtype)


_PER_UNIT = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_DAY_MS = 86_400_000


def integer_to_timestamp(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return seconds since the epoch as timestamps. Milliseconds overflow as a Java long."""
    with np.errstate(over="ignore"):
        millis = numbers(values).astype(np.int64) * np.int64(1000)
    return _from_millis(millis, np.zeros_like(millis), values, target)


def date_to_timestamp(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return the midnight at the start of each day."""
    millis = numbers(values).astype(np.int64) * _DAY_MS
    return _from_millis(millis, np.zeros_like(millis), values, target)


def time_to_text(values: pa.Array, source: PaimonDataType, _target: PaimonDataType) -> pa.Array:
    """Return times as text such as 03:04:05.12."""
    precision = source.precision or 0
    return each(values.view(pa.int32()), pa.string(), _raising(lambda value: time_text(value, precision)))


def time_to_timestamp(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return times on the first day of the epoch. The precision of the target is not applied."""
    millis = numbers(values).astype(np.int64)
    return _encode(millis, np.zeros_like(millis), values, target)


def timestamp_to_text(values: pa.Array, source: PaimonDataType, _target: PaimonDataType) -> pa.Array:
    """Return timestamps as text such as 2024-01-02 03:04:05.120, with as many fraction digits as their precision."""
    precision = source.precision if source.precision is not None else 6
    per_second = 1_000 * _PER_UNIT[values.type.unit]
    text = _raising(lambda value: timestamp_text(value, per_second, precision))
    return each(values.view(pa.int64()), pa.string(), text)


def _raising(function: Callable[[int], str | None]) -> Callable[[int], str]:
    """Return the function, extended to raise an error instead of returning None."""

    def convert(value: int) -> str:
        text = function(value)
        if text is None:
            raise NotCastableError("a date before the year 1 or after 9999 is not cast to text")
        return text

    return convert


def timestamp_to_integer(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return whole seconds, truncated towards zero. INT overflows."""
    millis, _ = _millis(values)
    return with_nulls(
        (_truncate(millis, 1000) // 1000).astype(np.int32 if target.root == "INT" else np.int64),
        values,
        arrow_type(target),
    )


def timestamp_to_date(values: pa.Array, source: PaimonDataType, _target: PaimonDataType) -> pa.Array:
    """Return the day, truncated towards 1970 for a TIMESTAMP, like Java's division, and rounded down otherwise."""
    millis, _ = _millis(values)
    whole = millis if source.root == "TIMESTAMP_LTZ" else _truncate(millis, _DAY_MS)
    return with_nulls((whole // _DAY_MS).astype(np.int32), values, pa.date32())


def timestamp_to_time(values: pa.Array, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return the time of day. Raise for a TIMESTAMP before 1970, for which Paimon returns negative times."""
    millis, _ = _millis(values)
    if source.root == "TIMESTAMP" and bool(np.any((millis < 0) & (millis % _DAY_MS != 0))):
        raise NotCastableError(f"a time before 1970 is not cast from {type_text(source)} to {type_text(target)}")
    return with_nulls((millis % _DAY_MS).astype(np.int32), values, arrow_type(target))


def _millis(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return timestamps in Paimon's form: whole milliseconds, and nanoseconds within a millisecond (0 to 999999)."""
    unit = _PER_UNIT[values.type.unit]
    ticks = numbers(values)
    return ticks // unit, (ticks % unit) * (1_000_000 // unit)


def _truncate(numbers: np.ndarray, step: int) -> np.ndarray:
    cut: np.ndarray = numbers - np.fmod(numbers, step)
    return cut


def _from_millis(millis: np.ndarray, nanos: np.ndarray, values: pa.Array, target: PaimonDataType) -> pa.Array:
    """Return timestamps truncated to the precision: towards zero above the millisecond, downwards below it.

    Source: paimon DateTimeUtils.truncate.
    """
    precision = target.precision if target.precision is not None else 6
    if precision <= 3:  # noqa: PLR2004 - digits of a millisecond
        return _encode(_truncate(millis, 10 ** (3 - precision)), np.zeros_like(nanos), values, target)
    return _encode(millis, nanos // 10 ** (9 - precision) * 10 ** (9 - precision), values, target)


def _encode(millis: np.ndarray, nanos: np.ndarray, values: pa.Array, target: PaimonDataType) -> pa.Array:
    """Return timestamps in the unit of the target's Arrow type. Raise for values that do not fit."""
    dtype = arrow_type(target)
    unit = _PER_UNIT[dtype.unit]
    limit = np.iinfo(np.int64).max // unit - 1
    if unit > 1 and bool(np.any((millis > limit) | (millis < -limit))):
        raise NotCastableError(f"a timestamp does not fit {type_text(target)}, which has 64 bits of {dtype.unit}")
    return with_nulls(millis * unit + nanos // (1_000_000 // unit), values, dtype)


_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_FAMILIES = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(_INTEGERS, "integer"),
    "FLOAT": "float",
    "DOUBLE": "float",
    "DECIMAL": "decimal",
    "CHAR": "text",
    "VARCHAR": "text",
    "BINARY": "bytes",
    "VARBINARY": "bytes",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
}
_WIDE = 76
"""The precision of decimals in which rounding cannot overflow."""

Rule = Callable[[pa.Array, PaimonDataType, PaimonDataType], pa.Array]


def castable(source: PaimonDataType, target: PaimonDataType) -> bool:
    """Return whether the cast from one atomic type to another is supported."""
    if source == target:
        return True
    families = (_FAMILIES.get(source.root, ""), _FAMILIES.get(target.root, ""))
    if families not in _RULES:
        return False
    if families in (("date", "text"), ("time", "text"), ("timestamp", "text")):
        return target.root == "VARCHAR" and target.length == MAX_LENGTH
    if families == ("integer", "timestamp"):
        return source.root in ("INT", "BIGINT")
    if families == ("timestamp", "integer"):
        return target.root in ("INT", "BIGINT")
    return True


def cast(values: pa.Array, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return the values, which have the Arrow type of `source`, in the Arrow type of `target`.

    Source: paimon CastExecutors, run for every pair of types over edge values.
    """
    rule = _RULES[_FAMILIES[source.root], _FAMILIES[target.root]]
    try:
        return rule(values, source, target)
    except pa.ArrowInvalid as error:
        raise NotCastableError(
            f"a value does not fit when cast from {type_text(source)} to {type_text(target)}: {error}"
        ) from error


def _integer(numbers: np.ndarray, target: PaimonDataType) -> np.ndarray:
    return numbers.astype(f"int{_INTEGERS[target.root]}")


def _integer_to_float(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    dtype = np.float32 if target.root == "FLOAT" else np.float64
    return with_nulls(numbers(values).astype(dtype), values, arrow_type(target))


def _number_to_text(values: pa.Array, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    if source.root in ("FLOAT", "DOUBLE"):
        single = source.root == "FLOAT"
        return _shape_text(each(values, pa.string(), lambda number: java_text(number, single=single)), target)
    if source.root == "DECIMAL":
        return _shape_text(each(values, pa.string(), lambda value: format(value, "f")), target)
    return _shape_text(values.cast(pa.string()), target)


def _float_to_integer(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return floats truncated towards zero and clipped to INT or BIGINT. Narrower types then overflow."""
    floats = np.nan_to_num(numbers(values).astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    dtype = np.int64 if target.root == "BIGINT" else np.int32
    minimum, maximum = np.iinfo(dtype).min, np.iinfo(dtype).max
    inside = np.where((floats > float(minimum)) & (floats < float(maximum)), floats, 0.0).astype(dtype)
    clipped = np.where(floats >= float(maximum), maximum, np.where(floats <= float(minimum), minimum, inside))
    return with_nulls(_integer(clipped.astype(dtype), target), values, arrow_type(target))


def _float_to_float(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    with np.errstate(over="ignore"):
        floats = numbers(values).astype(np.float32 if target.root == "FLOAT" else np.float64)
    return with_nulls(floats, values, arrow_type(target))


def _float_to_decimal(values: pa.Array, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    texts = each(values, pa.string(), lambda number: java_text(number, single=False))
    return _RULES["text", "decimal"](texts, source, target)


def _wide(*data_types: PaimonDataType) -> pa.DataType:
    """Return a decimal type for values of all these types."""
    return pa.decimal256(_WIDE, max(data_type.scale or 0 for data_type in data_types))


def _fit(wide: pa.Array, target: PaimonDataType) -> pa.Array:
    """Return wide decimals rounded half up to the type's scale; null if they have too many digits."""
    rounded = pc.round(wide, ndigits=target.scale or 0, round_mode="half_towards_infinity")
    digits = (target.precision or 10) - (target.scale or 0)
    limit = pa.scalar(Decimal(1).scaleb(digits), rounded.type)
    fits = pc.less(pc.abs(rounded), limit)
    return pc.if_else(fits, rounded, pa.scalar(None, rounded.type)).cast(arrow_type(target))


def _decimal_to_integer(values: pa.Array, _source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    """Return the lowest bits of the integer part, like Java's BigDecimal.longValue and intValue."""
    whole = pc.trunc(values).cast(pa.decimal128(38, 0))
    words = np.frombuffer(whole.buffers()[1], np.int64, 2 * (len(whole) + whole.offset))
    low = np.where(values.is_valid().to_numpy(zero_copy_only=False), words[2 * whole.offset :: 2], 0)
    return with_nulls(_integer(low, target), values, arrow_type(target))


def _shape_text(values: pa.Array, target: PaimonDataType) -> pa.Array:
    """Return text truncated to the type's length in characters. CHAR is padded with blanks."""
    length = target.length or 1
    if target.root == "VARCHAR" and length == MAX_LENGTH:
        return values
    cut = pc.utf8_slice_codeunits(values, 0, length)
    return pc.utf8_rpad(cut, length, " ") if target.root == "CHAR" else cut


def _shape_bytes(values: pa.Array, target: PaimonDataType) -> pa.Array:
    """Return bytes truncated to the type's length. BINARY is padded with zero bytes."""
    length = target.length or 1
    if target.root == "VARBINARY" and length == MAX_LENGTH:
        return values
    cut = pc.binary_slice(values, 0, length)
    if target.root == "VARBINARY":
        return cut
    return each(cut, pa.binary(), lambda value: value.ljust(length, b"\0"))


def _text_to(function: Callable[[str, PaimonDataType], object]) -> Rule:
    def rule(values: pa.Array, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
        def convert(text: str) -> object:
            try:
                return function(text, target)
            except UnverifiedCastError as error:
                raise NotCastableError(
                    f"{text[:60]!r} is not cast from {type_text(source)} to {type_text(target)}"
                ) from error

        return each(values, _parse_type(target), convert).view(arrow_type(target))

    return rule


def _parse_type(target: PaimonDataType) -> pa.DataType:
    dtype = arrow_type(target)
    if pa.types.is_temporal(dtype):
        return pa.int32() if dtype.bit_width == 32 else pa.int64()  # noqa: PLR2004 - bits
    return dtype


_RULES: dict[tuple[str, str], Rule] = {
    ("boolean", "integer"): lambda values, _, target: values.cast(pa.int8()).cast(arrow_type(target)),
    ("boolean", "float"): lambda values, _, target: values.cast(pa.int8()).cast(arrow_type(target)),
    ("boolean", "decimal"): lambda values, _, target: _fit(values.cast(pa.int8()).cast(_wide(target)), target),
    ("boolean", "text"): lambda values, _, target: _shape_text(pc.if_else(values, "true", "false"), target),
    ("integer", "boolean"): lambda values, _, _target: pc.not_equal(values, 0),
    ("integer", "integer"): lambda values, _, target: with_nulls(
        _integer(numbers(values), target), values, arrow_type(target)
    ),
    ("integer", "float"): _integer_to_float,
    ("integer", "decimal"): lambda values, _, target: _fit(values.cast(_wide(target)), target),
    ("integer", "text"): _number_to_text,
    ("integer", "timestamp"): integer_to_timestamp,
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _float_to_float,
    ("float", "decimal"): _float_to_decimal,
    ("float", "text"): _number_to_text,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "float"): lambda values, _, target: each(
        values, arrow_type(target), nearest_float32 if target.root == "FLOAT" else float
    ),
    ("decimal", "decimal"): lambda values, source, target: _fit(values.cast(_wide(source, target)), target),
    ("decimal", "text"): _number_to_text,
    ("text", "boolean"): _text_to(lambda text, _: boolean_of(text)),
    ("text", "integer"): _text_to(lambda text, dtype: integer_of(text, _INTEGERS[dtype.root])),
    ("text", "float"): _text_to(lambda text, dtype: float_of(text, single=dtype.root == "FLOAT")),
    ("text", "decimal"): _text_to(lambda text, dtype: decimal_of(text, dtype.precision or 10, dtype.scale or 0)),
    ("text", "text"): lambda values, _, target: _shape_text(values, target),
    ("text", "bytes"): lambda values, _, target: _shape_bytes(values.cast(pa.binary()), target),
    ("text", "date"): _text_to(lambda text, _: date_of(text)),
    ("text", "time"): _text_to(lambda text, _: time_of(text)),
    ("text", "timestamp"): _text_to(
        lambda text, dtype: timestamp_of(text, dtype.precision if dtype.precision is not None else 6)
    ),
    # Without truncation or padding, as in Paimon.
    ("bytes", "text"): lambda values, _, _target: values.cast(pa.string()),
    ("bytes", "bytes"): lambda values, _, target: _shape_bytes(values, target),
    ("date", "text"): lambda values, _, _target: each(values.view(pa.int32()), pa.string(), _raising(date_text)),
    ("date", "timestamp"): date_to_timestamp,
    ("time", "text"): time_to_text,
    ("time", "timestamp"): time_to_timestamp,
    ("timestamp", "integer"): timestamp_to_integer,
    ("timestamp", "text"): timestamp_to_text,
    ("timestamp", "date"): timestamp_to_date,
    ("timestamp", "time"): timestamp_to_time,
    ("timestamp", "timestamp"): lambda values, _, target: _from_millis(*_millis(values), values, target),
}
