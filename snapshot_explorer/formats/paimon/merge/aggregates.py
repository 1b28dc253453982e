"""Aggregate functions as folds over values: functions that select a value, concatenate texts, add or unite sets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.core.errors import MissingDependencyError, UnsupportedFeatureError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.merge import bitmaps, bitmaps_64
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes
from snapshot_explorer.formats.paimon.merge.rules import Function

BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)
"""White space in Java; Python's set is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A fold over the values of one column, in an internal form. None is null."""

    items: Sequence[Any]
    add: Callable[[Any, Any], Any]
    """Returns the aggregate after adding the value of a row."""
    result: Callable[[Iterable[Any]], pa.Array]
    """Returns values, one per key, as a column. The iterable may be lazy."""
    add_earlier: Callable[[Any, Any], Any] | None = None
    """Returns the aggregate after adding the value of an earlier row; None to swap the arguments of `add`."""
    retract: Callable[[Any, Any], Any] | None = None
    """Returns the aggregate after retracting the value of a row; None if retracts are not defined."""
    reset: Callable[[], None] | None = None
    """Resets the state before the next key; None without state."""


def choice(array: pa.Array, function: Function) -> Fold:
    """Return a function that selects the value of one row. An item is the value's rank and its row.

    Source: paimon FieldMaxAgg, FieldMinAgg, FieldLastNonNullValueAgg and similar.
    """
    name = function.name
    if name in ("first_value", "first_non_null_value"):
        return _first(array, skips_nulls=name == "first_non_null_value")
    ordered = name in ("max", "min", "bool_and", "bool_or")
    ranks = order_codes(pa.chunked_array([array])) if ordered else np.zeros(len(array), np.int64)
    if name in ("min", "bool_and"):
        ranks = -ranks

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value if item is None else item
        replaces = not ordered or (value[0] < item[0] if name in ("max", "bool_or") else value[0] <= item[0])
        return item if replaces else value

    def retract(value: Any, item: Any) -> Any:
        return value if item is None else None  # last_non_null_value, the only caller with retracts

    return Fold(items=_rank(array, ranks.tolist()), add=add, retract=retract, result=_taking(array))


def _first(array: pa.Array, *, skips_nulls: bool) -> Fold:
    """Return the function that keeps the first value.

    Source: paimon FieldFirstValueAgg, FieldFirstNonNullValueAgg.
    """
    initialized = False

    def reset() -> None:
        nonlocal initialized
        initialized = False

    def add(value: Any, item: Any) -> Any:
        nonlocal initialized
        if initialized or (item is None and skips_nulls):
            return value
        initialized = True
        return item

    return Fold(items=_rank(array, [0] * len(array)), add=add, reset=reset, result=_taking(array))


def _rank(array: pa.Array, ranks: list[int]) -> list[tuple[int, int] | None]:
    valid = np.asarray(array.is_valid()).tolist()
    return [(rank, row) if ok else None for row, (rank, ok) in enumerate(zip(ranks, valid, strict=True))]


def _taking(array: pa.Array) -> Callable[[Iterable[Any]], pa.Array]:
    return lambda values: array.take(pa.array([None if value is None else value[1] for value in values], pa.int64()))


def texts(array: pa.Array, function: Function) -> Fold:
    """Return `listagg`. Values are pairs: Paimon 2.0 and newer skips blank texts, older releases only empty texts.

    Source: paimon FieldListaggAgg.
    """

    def add(value: Any, item: Any) -> Any:
        before, after = value or (None, None)
        old, new = item or (None, None)
        return _before_2(before, old, function), _since_2(after, new, function)

    def result(values: Iterable[Any]) -> pa.Array:
        pairs = [value or (None, None) for value in values]
        if any(before != after for before, after in pairs):
            raise refusal(features.BLANK_STRINGS)
        return pa.array([after for _, after in pairs], array.type)

    return Fold(items=[(text, text) for text in array.to_pylist()], add=add, result=result)


def _before_2(value: str | None, item: str | None, function: Function) -> str | None:
    if value is None or item is None:
        return item if value is None else value
    if not value or not item:
        return value or item
    return _join(value, item, function, blanks="")


def _since_2(value: str | None, item: str | None, function: Function) -> str | None:
    if item is None or not item.strip(BLANKS):
        return value
    if value is None or not value.strip(BLANKS):
        return item
    return _join(value, item, function, blanks=BLANKS)


def _join(value: str, item: str, function: Function, *, blanks: str) -> str:
    delimiter = function.delimiter
    if not function.distinct:
        return value + delimiter + item
    splitter = delimiter or " "
    seen = set(value.split(splitter))
    parts = [value]
    for token in item.split(splitter):
        if (token.strip(blanks) if blanks else token) and token not in seen:
            seen.add(token)
            parts.append(token)
    return delimiter.join(parts)


_COMPACT = 18
"""The maximum number of digits of a decimal that Paimon stores in a long."""
_LONG = 2**63


def limit(dtype: pa.DataType) -> int:
    """Return the smallest integer (for decimals: unscaled) that overflows the type or 64 bits."""
    whole = 10**dtype.precision if pa.types.is_decimal(dtype) else 2 ** (dtype.bit_width - 1)
    return int(min(whole, _LONG - 1))


def as_int64(array: pa.Array) -> Codes | None:
    """Return numbers as 64-bit integers, decimals unscaled; 0 for null. None if one does not fit."""
    if not pa.types.is_decimal(array.type):
        return np.asarray(array.cast(pa.int64()).fill_null(0)).astype(np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)].reshape(-1, 2)
    valid = np.asarray(array.is_valid()).astype(bool)
    if np.any((words[:, 1] != words[:, 0] >> 63) & valid):
        return None
    return np.where(valid, words[:, 0], np.int64(0))


def from_int64(values: Codes, valid: npt.NDArray[np.bool_], dtype: pa.DataType) -> pa.Array:
    """Return 64-bit integers as a column, decimals from unscaled values; null where not valid."""
    if pa.types.is_decimal(dtype):
        words = np.stack([values, values >> 63], axis=1)
        return pa.Array.from_buffers(dtype, len(values), [pa.array(valid).buffers()[1], pa.py_buffer(words.tobytes())])
    return pa.array(values, pa.int64(), mask=~valid).cast(dtype)


def _unscale(array: pa.Array) -> list[int | None]:
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
    low, high = words[::2].view(np.uint64).tolist(), words[1::2].tolist()
    valid = np.asarray(array.is_valid()).tolist()
    return [(top << 64) + bottom if ok else None for top, bottom, ok in zip(high, low, valid, strict=True)]


def _decimals(values: list[int | None], dtype: pa.DataType) -> pa.Array:
    data = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
    valid = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(dtype, len(values), [valid, pa.py_buffer(data)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """The representation of numbers of a type: Python integers (for decimals: unscaled), or NumPy floats."""

    dtype: pa.DataType
    limit: int
    """The smallest integer that overflows the type; 0 for floats."""

    @property
    def is_decimal(self) -> bool:
        return bool(pa.types.is_decimal(self.dtype))

    def items(self, array: pa.Array) -> list[Any]:
        if self.is_decimal:
            return _unscale(array)
        if self.limit:
            result: list[Any] = array.to_pylist()
            return result
        make = np.float32 if self.dtype.bit_width == 32 else np.float64  # noqa: PLR2004 - bits
        return [None if item is None else make(item) for item in array.to_pylist()]

    def in_range(self, value: Any) -> Any:
        """Return a result in the range of its type. Raise for an integer overflow."""
        if self.is_decimal:
            return value if abs(value) < self.limit else None
        if self.limit and not -self.limit <= value < self.limit:
            raise CorruptBytesError(
                f"{value}, a sum or product, does not fit its type {self.dtype}; releases before 2.0 wrap it around"
            )
        return value

    def sum_in_range(self, value: Any) -> Any:
        """Return a sum in the range of its type. For decimals up to 18 digits Paimon checks a long, not the digits."""
        if self.is_decimal and self.dtype.precision <= _COMPACT and -_LONG <= value < _LONG:
            return value
        return self.in_range(value)

    def result(self, values: Iterable[Any]) -> pa.Array:
        if not self.is_decimal:
            plain = [None if value is None else value if self.limit else value.item() for value in values]
            return pa.array(plain, self.dtype)
        listed = list(values)
        if any(value is not None and abs(value) >= self.limit for value in listed):
            raise refusal(features.OVERFLOWING_SUMS, type=self.dtype)
        return _decimals(listed, self.dtype)


def _numbers(dtype: pa.DataType) -> _Numbers:
    if pa.types.is_floating(dtype):
        return _Numbers(dtype=dtype, limit=0)
    return _Numbers(
        dtype=dtype, limit=int(10**dtype.precision if pa.types.is_decimal(dtype) else 2 ** (dtype.bit_width - 1))
    )


def total(array: pa.Array) -> Fold:
    """Return `sum`.

    Source: paimon FieldSumAgg, DecimalUtils.
    """
    numbers = _numbers(array.type)

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        if numbers.limit:
            return numbers.sum_in_range(value + item)
        with np.errstate(all="ignore"):  # Java's floats overflow silently
            return value + item

    def retract(value: Any, item: Any) -> Any:
        if item is None:
            return value
        if value is None:
            return -item if not numbers.limit else numbers.in_range(-item)
        if numbers.limit:
            return numbers.sum_in_range(value - item)
        with np.errstate(all="ignore"):
            return value - item

    return Fold(items=numbers.items(array), add=add, retract=retract, result=numbers.result)


def product(array: pa.Array) -> Fold:
    """Return `product`.

    Source: paimon FieldProductAgg.
    """
    numbers = _numbers(array.type)
    scale = array.type.scale if numbers.is_decimal else 0

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        if numbers.is_decimal:
            return numbers.in_range(_round(Fraction(value * item, 10**scale)))
        with np.errstate(all="ignore"):
            return numbers.in_range(value * item)

    def retract(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value
        if numbers.limit and not item:
            raise CorruptBytesError("a product divided by zero")
        if numbers.is_decimal:
            return numbers.in_range(_round(_quotient(value, item, scale)))
        if numbers.limit:
            whole = abs(value) // abs(item)
            return numbers.in_range(whole if (value < 0) == (item < 0) else -whole)
        with np.errstate(all="ignore"):
            return value / item

    return Fold(items=numbers.items(array), add=add, retract=retract, result=numbers.result)


def _quotient(value: int, item: int, scale: int) -> Fraction:
    quotient = Fraction(value * 10**scale, item)
    rest = quotient.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        raise CorruptBytesError("a product divided by a decimal without an exact result")
    return quotient


def _round(number: Fraction) -> int:
    whole = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return whole if number >= 0 else -whole


_Parsed = TypeVar("_Parsed")

_PREAMBLE_BITS = 0x3F
_EMPTY, _SINGLE = 0x04, 0x20
"""Flags of a compact theta sketch."""
_SERIAL_VERSION, _COMPACT_FAMILY = 3, 3
_EMPTY_THETA = bytes.fromhex("01030300001e0000")
_WHOLE = bytes.fromhex("0000803f")
"""The sampling probability 1 as a float: Java writes it where the C++ library leaves zeros."""
_FAILURES = (RuntimeError, ValueError, IndexError, OverflowError)


def bitmap(array: pa.Array) -> Fold:
    """Return `rbm32`: a union of roaring bitmaps of 32 bits.

    Source: paimon FieldRoaringBitmap32Agg.
    """
    return _bitmap(array, bitmaps.parse, bitmaps.union, bitmaps.serialize)


def bitmap_64(array: pa.Array) -> Fold:
    """Return `rbm64`: a union of roaring bitmaps of 64 bits.

    Source: paimon FieldRoaringBitmap64Agg.
    """
    return _bitmap(array, bitmaps_64.parse, bitmaps_64.union, bitmaps_64.serialize)


def _bitmap(
    array: pa.Array,
    parse: Callable[[bytes], _Parsed],
    union: Callable[[_Parsed, _Parsed], _Parsed],
    serialized: Callable[[_Parsed], bytes],
) -> Fold:
    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        left, right = (parse(side) if isinstance(side, bytes) else side for side in (value, item))
        return union(left, right)

    def result(values: Iterable[Any]) -> pa.Array:
        made = (value if value is None or isinstance(value, bytes) else serialized(value) for value in values)
        return pa.array(list(made), array.type)

    return Fold(items=array.to_pylist(), add=add, result=result)


def hll_sketch(array: pa.Array) -> Fold:
    """Return `hll_sketch`: a union of HyperLogLog sketches.

    Source: paimon FieldHllSketchAgg, HllSketchUtil.
    """
    try:
        import datasketches  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise _missing("hll_sketch") from error

    def union(value: bytes, item: bytes) -> bytes:
        newer = datasketches.hll_sketch.deserialize(item)
        made = datasketches.hll_union(newer.lg_config_k)
        made.update(newer)
        made.update(datasketches.hll_sketch.deserialize(value))
        return bytes(made.get_result(datasketches.tgt_hll_type.HLL_4).serialize_compact())

    return _sketch(array, union)


def theta_sketch(array: pa.Array) -> Fold:
    """Return `theta_sketch`: a union of theta sketches.

    Source: paimon FieldThetaSketchAgg, ThetaSketch.
    """
    try:
        import datasketches  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise _missing("theta_sketch") from error

    def union(value: bytes, item: bytes) -> bytes:
        made = datasketches.theta_union()
        for side in (value, item):
            if tuple(side[1:3]) != (_SERIAL_VERSION, _COMPACT_FAMILY):
                raise refusal(features.OTHER_THETA_SKETCHES, bytes=side[:8].hex())
            made.update(datasketches.compact_theta_sketch.deserialize(side))
        return _as_java_writes(bytes(made.get_result().serialize()))

    return _sketch(array, union)


def _as_java_writes(content: bytes) -> bytes:
    """Return a compact theta sketch of the C++ library with the three fields that Java sets differently."""
    if content[0] & _PREAMBLE_BITS > 1:
        return content[:12] + _WHOLE + content[16:]
    if content[5] & _EMPTY:
        return _EMPTY_THETA
    return content[:5] + bytes([content[5] | _SINGLE]) + content[6:]


def _sketch(array: pa.Array, union: Callable[[bytes, bytes], bytes]) -> Fold:
    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        try:
            return union(value, item)
        except UnsupportedFeatureError:
            raise
        except _FAILURES as error:
            raise CorruptBytesError(f"a sketch that cannot be read: {error}") from error

    return Fold(items=array.to_pylist(), add=add, result=lambda values: pa.array(list(values), array.type))


def _missing(function: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"The aggregate function {function} needs the package datasketches, which is not installed: "
        "pip install snapshot-explorer[sketches]. Or leave the column out."
    )
