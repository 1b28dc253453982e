"""Values of many JSON objects, decoded into Arrow columns.

The fast path decodes well-formed columns. If Arrow refuses a column, each value is decoded separately, so that unusual
values of other writers (numbers as text) are read, and errors contain their position.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.arrays import array, from_numpy, scalar
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.delta.metadata.records import DELETION_VECTOR, STRINGS

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, UnicodeError)


_VECTOR = frozenset({"storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"})


_TEXTS = frozenset({str, type(None)})


class RowError(CorruptBytesError):
    """A value is not valid; `row` is the index of its body."""

    def __init__(self, row: int, message: str) -> None:
        """Store the row for a caller that has its file."""
        super().__init__(message)
        self.row = row


class Maps:
    """A column of maps from text to text, flattened while they are parsed, so that few Python objects remain."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.lengths: list[int | None] = []
        """The number of items of each map; None for a null map."""
        self.keys: list[str] = []
        self.items: list[str | None] = []

    def extend(self, values: Sequence[Any]) -> None:
        """Add maps."""
        present: Sequence[Any] = values
        try:
            items = list(chain.from_iterable(map(dict.values, values)))
        except TypeError:
            present = [value for value in values if value is not None]
            self._check(values)
            items = list(chain.from_iterable(map(dict.values, present)))
        if not _TEXTS.issuperset(map(type, items)):
            self._check(values)
        self.lengths.extend(map(len, values) if present is values else map(_length, values))
        self.keys.extend(chain.from_iterable(present))
        self.items.extend(items)

    def _check(self, values: Sequence[Any]) -> None:
        for row, value in enumerate(values, len(self.lengths)):
            if value is not None and not (isinstance(value, dict) and _TEXTS.issuperset(map(type, value.values()))):
                raise RowError(row, f"{self._name} that are not a map of texts")


def _length(value: Mapping[str, str | None] | None) -> int | None:
    return None if value is None else len(value)


class ActionColumns:
    """JSON objects as columns: a list of values for each requested name.

    The objects themselves are released immediately. Keeping many of them costs more than parsing them, because of the
    processor's cache and the garbage collector (measured).
    """

    def __init__(self, names: frozenset[str], maps: frozenset[str] = frozenset()) -> None:
        """Start empty. Only the requested names are kept. `maps` are the names whose values are maps."""
        self._requested = names
        self._maps = maps
        self._columns: dict[str, list[Any] | Maps] = {}
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def take(self, objects: Sequence[Any]) -> None:
        """Add objects."""
        try:
            values = _alike(objects)
        except (AttributeError, LookupError, TypeError):
            values = self._unlike(objects)
        for name in self._requested & values.keys() - self._columns.keys():
            column = self._columns[name] = Maps(name) if name in self._maps else []
            column.extend([None] * self._rows)
        for name, column in self._columns.items():
            column.extend(values.get(name) or [None] * len(objects))
        self._rows += len(objects)

    def _unlike(self, objects: Sequence[Any]) -> dict[str, list[Any]]:
        for row, element in enumerate(objects, self._rows):
            if not isinstance(element, dict):
                raise RowError(row, f"{show_value(element)} in place of an object")
        names = self._requested.intersection(chain.from_iterable(objects))
        return {name: [item.get(name) for item in objects] for name in names}

    def values(self, name: str) -> list[Any] | None:
        """Return the values of a name, None for objects without it. Return None if no object has the name."""
        result = self._columns.get(name)
        return result if isinstance(result, list) else None

    def maps(self, name: str) -> Maps | None:
        """Return the maps of a name; None if no object has the name."""
        result = self._columns.get(name)
        return result if isinstance(result, Maps) else None


def _alike(objects: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the values of objects that all have the same names, like most objects of one writer."""
    names = objects[0].keys()
    if set(map(len, objects)) != {len(names)}:
        raise LookupError
    return {name: list(map(itemgetter(name), objects)) for name in names}


def texts(
    bodies: ActionColumns,
    name: str,
    *,
    required: bool = False,
    convert: Callable[[Sequence[str | None]], Sequence[str | None]] | None = None,
) -> pa.Array:
    """Return a column of text, converted if requested."""
    values: Sequence[Any] | None = bodies.values(name)
    if values is None:
        if required and len(bodies):
            raise RowError(0, f"no {name}")
        return pa.nulls(len(bodies), pa.string())
    result = _column(values, pa.string(), _text, name, required=required)
    if convert is None:
        return result
    changed = convert(values)
    return result if changed is values else array(changed, pa.string())


def integers(bodies: ActionColumns, name: str, bits: int = 64) -> pa.Array:
    """Return a column of integers of 64 or 32 bits; text of a number is converted."""
    dtype = pa.int64() if bits == 64 else pa.int32()  # noqa: PLR2004 - the two widths
    values = bodies.values(name)
    if values is None:
        return pa.nulls(len(bodies), dtype)
    try:
        # Given other values, such as fractions, Arrow would silently truncate them.
        if {int, type(None)}.issuperset(map(type, values)):
            return array(values, pa.int64()).cast(dtype)
    except _REFUSED:
        pass
    converted = [_convert(value, row, lambda item: integer(item, bits), name) for row, value in enumerate(values)]
    return array(converted, dtype)


def booleans(bodies: ActionColumns, name: str, *, default: bool | None = None) -> pa.Array:
    """Return a column of booleans."""
    values = bodies.values(name)
    if values is None:
        return array([default] * len(bodies), pa.bool_())
    result = _column(values, pa.bool_(), _boolean, name)
    return result if default is None else result.fill_null(scalar(default, pa.bool_()))


def maps(bodies: ActionColumns, name: str, *, or_empty: bool = False) -> pa.Array:
    """Return a column of maps from text to text; null, or an empty one, where there is none."""
    collected = bodies.maps(name)
    if collected is None:
        if not or_empty:
            return pa.nulls(len(bodies), STRINGS)
        collected = Maps(name)
        collected.extend([{}] * len(bodies))
    absent = None in collected.lengths
    ends = np.cumsum(
        [0, *((length or 0 for length in collected.lengths) if absent else collected.lengths)], dtype=np.int32
    )
    nulls = np.array([*(length is None for length in collected.lengths), False]) if absent and not or_empty else None
    return pa.MapArray.from_arrays(
        from_numpy(ends, nulls),
        array(collected.keys, pa.string()),
        array(collected.items, pa.string()),
        type=STRINGS,
    )


def vectors(bodies: ActionColumns) -> pa.Array:
    """Return a column of descriptors of deletion vectors."""
    values = bodies.values("deletionVector")
    if values is None:
        return pa.nulls(len(bodies), DELETION_VECTOR)
    for row, value in enumerate(values):
        if value is not None and not (
            isinstance(value, dict) and value.get("storageType") and isinstance(value.get("pathOrInlineDv"), str)
        ):
            raise RowError(row, "a deletionVector that is not described")
    present = ActionColumns(_VECTOR)
    present.take([value or {} for value in values])
    children = [
        texts(present, "storageType"),
        texts(present, "pathOrInlineDv"),
        integers(present, "offset", 32),
        integers(present, "sizeInBytes", 32),
        integers(present, "cardinality"),
    ]
    absent = array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR), mask=absent)


def _column(
    values: Sequence[Any], dtype: pa.DataType, convert: Callable[[Any], Any], name: str, *, required: bool = False
) -> pa.Array:
    try:
        result = array(values, dtype)
    except _REFUSED:
        result = array([_convert(value, row, convert, name) for row, value in enumerate(values)], dtype)
    if required and result.null_count:
        raise RowError(values.index(None), f"no {name}")
    return result


def _convert(value: Any, row: int, convert: Callable[[Any], Any], name: str) -> Any:
    try:
        return None if value is None else convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError(row, f"{name} {show_value(value)}, which is not valid") from error


def show_value(value: object) -> str:
    """Return a JSON value for a message: shortened; for an object or a list only its type."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(str(value)[:60])


def integer(value: Any, bits: int = 64) -> int:
    """Return an integer from a JSON number or text.

    Raises:
        ValueError: It is neither, or exceeds that many bits.
    """
    if isinstance(value, str):
        value = int(value) if len(value) < 20 else None  # noqa: PLR2004 - digits and sign of 64 bits
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"not an integer of {bits} bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("no truth value")
    return value
