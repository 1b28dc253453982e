"""Aggregate functions as folds over values, and those that select a value or concatenate texts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.merge.engines import Function
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes

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
    """Returns the value after adding that of a row."""
    result: Callable[[Iterable[Any]], pa.Array]
    """Returns values, one per key, as a column. The iterable may be lazy."""
    add_earlier: Callable[[Any, Any], Any] | None = None
    """Returns the value after adding that of an earlier row; None to swap the arguments of `add`."""
    retract: Callable[[Any, Any], Any] | None = None
    """Returns the value after retracting that of a row; None if retracts are not defined."""
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
        return value if item is None else None  # last_non_null_value: no other one that retracts comes here

    return Fold(items=_ranked(array, ranks.tolist()), add=add, retract=retract, result=_taking(array))


def _first(array: pa.Array, *, skips_nulls: bool) -> Fold:
    """Return the function that keeps the first value.

    Source: paimon FieldFirstValueAgg, FieldFirstNonNullValueAgg.
    """
    initialised = False

    def reset() -> None:
        nonlocal initialised
        initialised = False

    def add(value: Any, item: Any) -> Any:
        nonlocal initialised
        if initialised or (item is None and skips_nulls):
            return value
        initialised = True
        return item

    return Fold(items=_ranked(array, [0] * len(array)), add=add, reset=reset, result=_taking(array))


def _ranked(array: pa.Array, ranks: list[int]) -> list[tuple[int, int] | None]:
    valid = np.asarray(array.is_valid()).tolist()
    return [(rank, row) if ok else None for row, (rank, ok) in enumerate(zip(ranks, valid, strict=True))]


def _taking(array: pa.Array) -> Callable[[Iterable[Any]], pa.Array]:
    return lambda values: array.take(pa.array([None if value is None else value[1] for value in values], pa.int64()))


def texts(array: pa.Array, function: Function) -> Fold:
    """Return `listagg`. Values are pairs: Paimon 2.0 and newer skips blank texts, older releases only empty ones.

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
    return _joined(value, item, function, blanks="")


def _since_2(value: str | None, item: str | None, function: Function) -> str | None:
    if item is None or not item.strip(BLANKS):
        return value
    if value is None or not value.strip(BLANKS):
        return item
    return _joined(value, item, function, blanks=BLANKS)


def _joined(value: str, item: str, function: Function, *, blanks: str) -> str:
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
