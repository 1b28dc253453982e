"""Sums and products in the arithmetic of Java: integers exact or refused, decimals null when they leave their range."""

# ruff: noqa: D102 - Aggregate says what its methods do

import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.damage import DamageError
from snapshot_explorer.formats.paimon.aggregates import Aggregate
from snapshot_explorer.formats.paimon.key_codes import Codes

_COMPACT = 18
"""Digits up to which Paimon holds a decimal in a long."""
_LONG = 2**63


def limit(kind: pa.DataType) -> int:
    """Return the least whole number (of a decimal: unscaled) that is too great for the type."""
    if pa.types.is_decimal(kind):
        return int(10**kind.precision)
    return int(2 ** (kind.bit_width - 1)) if kind.bit_width < 64 else _LONG - 1  # noqa: PLR2004 - so that it fits


def small(array: pa.Array) -> Codes:
    """Return numbers that fit 64 bits, decimals unscaled; 0 for null."""
    if pa.types.is_decimal(array.type):
        words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
        found: Codes = np.where(np.asarray(array.is_valid()), words[::2], np.int64(0))
        return found
    return np.asarray(array.cast(pa.int64()).fill_null(0)).astype(np.int64)


def from_small(values: Codes, valid: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Return 64-bit numbers as a column, decimals from unscaled ones; null where not valid."""
    if pa.types.is_decimal(kind):
        return _decimals(
            [value if ok else None for value, ok in zip(values.tolist(), valid.tolist(), strict=True)], kind
        )
    return pa.array(values, pa.int64(), mask=~valid).cast(kind)


def _unscaled(array: pa.Array) -> list[int | None]:
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
    low, high = words[::2].view(np.uint64).tolist(), words[1::2].tolist()
    valid = np.asarray(array.is_valid()).tolist()
    return [(top << 64) + bottom if ok else None for top, bottom, ok in zip(high, low, valid, strict=True)]


def _decimals(values: list[int | None], kind: pa.DataType) -> pa.Array:
    data = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
    valid = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)])


class _Numbers(Aggregate):
    """Numbers of one type: Python integers (of a decimal: unscaled), or numpy's floats."""

    def __init__(self, array: pa.Array) -> None:
        kind = array.type
        self._kind = kind
        self._limit = 0
        self._scale = 0
        self._is_decimal = pa.types.is_decimal(kind)
        if self._is_decimal:
            self.items = _unscaled(array)
            self._limit, self._scale = 10**kind.precision, kind.scale
        elif pa.types.is_integer(kind):
            self.items = array.to_pylist()
            self._limit = int(2 ** (kind.bit_width - 1))
        else:
            make = np.float32 if kind.bit_width == 32 else np.float64  # noqa: PLR2004 - bits
            self.items = [None if item is None else make(item) for item in array.to_pylist()]

    def _held(self, value: Any) -> Any:
        """Return a result as its type holds it."""
        if self._is_decimal:
            return value if abs(value) < self._limit else None
        if self._limit and not -self._limit <= value < self._limit:
            raise DamageError(
                f"{value}, a sum or product, does not fit its type {self._kind}; releases before 2.0 wrap it around"
            )
        return value

    def _computed(self, left: Any, right: Any, operation: Callable[[Any, Any], Any]) -> Any:
        if self._limit:
            return self._held(operation(left, right))
        with np.errstate(all="ignore"):  # Java's floats overflow without a word
            return operation(left, right)

    def result(self, values: Iterable[Any]) -> pa.Array:
        if not self._is_decimal:
            return pa.array(
                [None if value is None else value.item() if not self._limit else value for value in values], self._kind
            )
        listed = list(values)
        if any(value is not None and abs(value) >= self._limit for value in listed):
            raise UnsupportedFeatureError(
                f"The sum of a key has more digits than its type {self._kind}, which Paimon's engines show "
                "in different ways. Leave the column out, or read it with Paimon's own engines."
            )
        return _decimals(listed, self._kind)


class Sum(_Numbers):
    """`sum`.

    Source: paimon FieldSumAgg, DecimalUtils.
    """

    def _held(self, value: Any) -> Any:
        if self._is_decimal and self._kind.precision <= _COMPACT and -_LONG <= value < _LONG:
            return value  # Paimon checks a long, not the digits
        return super()._held(value)

    def add(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        return self._computed(value, item, operator.add)

    def retract(self, value: Any, item: Any) -> Any:
        if item is None:
            return value
        if value is None:
            return -item if not self._limit else super()._held(-item)
        return self._computed(value, item, operator.sub)


class Product(_Numbers):
    """`product`.

    Source: paimon FieldProductAgg.
    """

    def add(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        if self._is_decimal:
            return self._held(self._rounded(Fraction(value * item, 10**self._scale)))
        return self._computed(value, item, operator.mul)

    def retract(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value
        if self._limit and not item:
            raise DamageError("a product divided by zero")
        if self._is_decimal:
            return self._held(self._rounded(self._quotient(value, item)))
        if self._limit:
            whole = abs(value) // abs(item)
            return self._held(whole if (value < 0) == (item < 0) else -whole)
        return self._computed(value, item, operator.truediv)

    def _quotient(self, value: int, item: int) -> Fraction:
        quotient = Fraction(value * 10**self._scale, item)
        rest = quotient.denominator
        for prime in (2, 5):
            while rest % prime == 0:
                rest //= prime
        if rest > 1:
            raise DamageError("a product divided by a decimal without an exact result")
        return quotient

    @staticmethod
    def _rounded(number: Fraction) -> int:
        """Return the nearest whole number, halves away from zero."""
        whole = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
        return whole if number >= 0 else -whole
