"""Aggregate functions, one value after another: those that choose a value, and those that join texts."""

# ruff: noqa: D102 - Aggregate says what its methods do

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.damage import DamageError
from snapshot_explorer.formats.paimon.key_codes import order_codes
from snapshot_explorer.formats.paimon.merge_engines import Function

_BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)
"""What Java calls white space; Python has more of it."""


class Aggregate:
    """A function over the values of one column, held in a form that suits it; None is null."""

    items: Sequence[Any]
    """The value of each row."""

    def reset(self) -> None:
        """Forget the last key."""

    def add(self, value: Any, item: Any) -> Any:
        """Return the value with that of a row added."""
        raise NotImplementedError

    def add_earlier(self, value: Any, item: Any) -> Any:
        """Return the value with that of a row added which came before all others."""
        return self.add(item, value)

    def retract(self, value: Any, item: Any) -> Any:  # noqa: ARG002 - those that can need both
        """Return the value with that of a row taken back."""
        raise DamageError("a retract of a function that has none")

    def result(self, values: Iterable[Any]) -> pa.Array:
        """Return values, one for each key, as a column."""
        raise NotImplementedError


class Choice(Aggregate):
    """Functions whose value is that of one row. An item is the value's rank and its row.

    Source: paimon FieldMaxAgg, FieldMinAgg, FieldLastNonNullValueAgg, FieldFirstValueAgg and their like.
    """

    def __init__(self, array: pa.Array, function: Function) -> None:
        self._array = array
        self._name = function.name
        ordered = function.name in ("max", "min", "bool_and", "bool_or")
        ranks = order_codes(pa.chunked_array([array])) if ordered else np.zeros(len(array), np.int64)
        valid = np.asarray(array.is_valid()).tolist()
        self.items = [
            (rank, row) if ok else None for row, (rank, ok) in enumerate(zip(ranks.tolist(), valid, strict=True))
        ]
        self._initialised = False

    def reset(self) -> None:
        self._initialised = False

    def add(self, value: Any, item: Any) -> Any:
        if self._name in ("first_value", "first_non_null_value"):
            if self._initialised or (item is None and self._name == "first_non_null_value"):
                return value
            self._initialised = True
            return item
        if value is None or item is None:
            return value if item is None else item
        if self._name in ("max", "bool_or"):
            return item if value[0] < item[0] else value
        if self._name in ("min", "bool_and"):
            return value if value[0] < item[0] else item
        return item

    def retract(self, value: Any, item: Any) -> Any:
        return value if item is None else None  # last_non_null_value: no other one that retracts comes here

    def result(self, values: Iterable[Any]) -> pa.Array:
        return self._array.take(pa.array([None if value is None else value[1] for value in values], pa.int64()))


class Texts(Aggregate):
    """`listagg`. A value is two: blank texts are passed over by releases from 2.0 on, and only empty ones before.

    Source: paimon FieldListaggAgg.
    """

    def __init__(self, array: pa.Array, function: Function) -> None:
        self.items = [(text, text) for text in array.to_pylist()]
        self._kind = array.type
        self._delimiter = function.delimiter
        self._distinct = function.distinct

    def add(self, value: Any, item: Any) -> Any:
        before, after = value or (None, None)
        old, new = item or (None, None)
        return self._before_2(before, old), self._since_2(after, new)

    def _before_2(self, value: str | None, item: str | None) -> str | None:
        if value is None or item is None:
            return item if value is None else value
        if not value or not item:
            return value or item
        return self._joined(value, item, blanks="")

    def _since_2(self, value: str | None, item: str | None) -> str | None:
        if item is None or not item.strip(_BLANKS):
            return value
        if value is None or not value.strip(_BLANKS):
            return item
        return self._joined(value, item, blanks=_BLANKS)

    def _joined(self, value: str, item: str, *, blanks: str) -> str:
        if not self._distinct:
            return value + self._delimiter + item
        splitter = self._delimiter or " "
        seen = set(value.split(splitter))
        parts = [value]
        for token in item.split(splitter):
            if (token.strip(blanks) if blanks else token) and token not in seen:
                seen.add(token)
                parts.append(token)
        return self._delimiter.join(parts)

    def result(self, values: Iterable[Any]) -> pa.Array:
        pairs = [value or (None, None) for value in values]
        if any(before != after for before, after in pairs):
            raise UnsupportedFeatureError(
                "A column of the aggregate function listagg holds blank texts, which Paimon's releases from 2.0 on "
                "pass over and those before do not. Leave the column out, or read it with Paimon's own engines."
            )
        return pa.array([after for _, after in pairs], self._kind)
