"""Sums and products in Java's arithmetic: integer overflow raises, decimal overflow is null."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.merge.aggregates import Fold

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


def _unscaled(array: pa.Array) -> list[int | None]:
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
            return _unscaled(array)
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
            return numbers.in_range(_rounded(Fraction(value * item, 10**scale)))
        with np.errstate(all="ignore"):
            return numbers.in_range(value * item)

    def retract(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value
        if numbers.limit and not item:
            raise CorruptBytesError("a product divided by zero")
        if numbers.is_decimal:
            return numbers.in_range(_rounded(_quotient(value, item, scale)))
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


def _rounded(number: Fraction) -> int:
    whole = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return whole if number >= 0 else -whole
