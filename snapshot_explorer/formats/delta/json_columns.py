"""Values of JSON objects straight into Arrow columns, many at once.

The fast way takes what is well-formed. Where Arrow refuses a column, each value is looked at, so that what foreign
writers do (numbers as text) is read and what is wrong is told with its place.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.damage import DamageError
from snapshot_explorer.formats.delta.records import DELETION_VECTOR, STRINGS

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, UnicodeError)


_VECTOR = frozenset({"storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"})


class RowError(DamageError):
    """A value is of no use; `row` tells which body holds it."""

    def __init__(self, row: int, message: str) -> None:
        """Keep the row for whoever knows its file."""
        super().__init__(message)
        self.row = row


class Bodies:
    """JSON objects taken apart: a list of values for each name that is wanted.

    The objects themselves are let go of at once. To hold many of them costs more than to parse them: they crowd the
    processor's cache, and the garbage collector walks over them (measured).
    """

    def __init__(self, wanted: frozenset[str]) -> None:
        """Begin with none; other names than the wanted are passed over."""
        self._wanted = wanted
        self._columns: dict[str, list[Any]] = {}
        self._names: tuple[str, ...] = ()
        self._stores: list[list[Any] | None] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def take(self, objects: Sequence[Any]) -> None:
        """Take objects.

        Raises:
            RowError: One is no object.
        """
        if not objects:
            return
        if _names(objects).count(self._names) == len(objects):
            # Of one writer all objects have the same names in the same order: one pass takes them apart.
            try:
                columns = list(zip(*map(dict.values, objects), strict=True))
            except TypeError:
                columns = []  # a list that holds the names, in place of an object
            for store, column in zip(self._stores, columns, strict=False):
                if store is not None:
                    store.extend(column)
            if columns:
                self._rows += len(objects)
                return
        for one in objects:
            self._take_one(one)
        self._names = tuple(objects[-1])
        self._stores = [self._columns.get(name) for name in self._names]
        if not self._columns.keys() <= set(self._names):
            self._names = ()  # what a later object lacks has to be filled up, one by one

    def _take_one(self, one: Any) -> None:
        if not isinstance(one, dict):
            raise RowError(self._rows, f"{str(one)[:60]!r} in place of an object")
        for name in one:
            if name in self._wanted and name not in self._columns:
                self._columns[name] = [None] * self._rows
        for name, column in self._columns.items():
            column.append(one.get(name))
        self._rows += 1

    def values(self, name: str) -> list[Any] | None:
        """Return the values of that name, None for those without one; None altogether where no object has one."""
        return self._columns.get(name)


def _names(objects: Sequence[Any]) -> list[tuple[Any, ...]]:
    try:
        return list(map(tuple, objects))
    except TypeError:
        return []  # a number in place of an object


def texts(
    bodies: Bodies,
    name: str,
    *,
    required: bool = False,
    convert: Callable[[Sequence[str | None]], Sequence[str | None]] | None = None,
) -> pa.Array:
    """Return a column of text, converted where that is asked for."""
    values: Sequence[Any] | None = bodies.values(name)
    if values is None:
        if required and len(bodies):
            raise RowError(0, f"no {name}")
        return pa.nulls(len(bodies), pa.string())
    found = _column(values, pa.string(), _text, name, required=required)
    if convert is None:
        return found
    changed = convert(values)
    return found if changed is values else pa.array(changed, pa.string())


def integers(bodies: Bodies, name: str, bits: int = 64) -> pa.Array:
    """Return a column of integers of 64 or 32 bits; text that is a number counts as one."""
    kind = pa.int64() if bits == 64 else pa.int32()  # noqa: PLR2004 - the two there are
    values = bodies.values(name)
    if values is None:
        return pa.nulls(len(bodies), kind)
    try:
        found = pa.array(values)
        # Told which type to make, Arrow would cut off fractions without a word.
        if found.type in (pa.int64(), pa.null()):
            return found.cast(kind)
    except _REFUSED:
        pass
    converted = [_converted(value, row, lambda one: integer(one, bits), name) for row, value in enumerate(values)]
    return pa.array(converted, kind)


def booleans(bodies: Bodies, name: str, *, default: bool | None = None) -> pa.Array:
    """Return a column of truth values."""
    values = bodies.values(name)
    if values is None:
        return pa.repeat(pa.scalar(default, pa.bool_()), len(bodies))
    found = _column(values, pa.bool_(), _boolean, name)
    return found if default is None else found.fill_null(default)


def maps(bodies: Bodies, name: str, *, missing: Mapping[str, str] | None = None) -> pa.Array:
    """Return a column of maps from text to text; `missing` stands where there is none."""
    values = bodies.values(name)
    if values is None and missing is None:
        return pa.nulls(len(bodies), STRINGS)
    values = values or [None] * len(bodies)
    if missing is not None and None in values:
        values = [missing if value is None else value for value in values]
    try:
        return _maps(values)
    except (AttributeError, *_REFUSED):
        return _maps([None if value is None else _map(value, row, name) for row, value in enumerate(values)])


def _maps(values: Sequence[Mapping[str, str | None] | None]) -> pa.Array:
    absent = [value is None for value in values] if None in values else None
    present: Sequence[Any] = [value or {} for value in values] if absent else values
    ends = np.cumsum([0, *map(len, present)], dtype=np.int32)
    keys = pa.array(list(chain.from_iterable(present)), pa.string())
    items = pa.array(list(chain.from_iterable(map(dict.values, present))), pa.string())
    return pa.MapArray.from_arrays(
        pa.array(ends, mask=np.array([*absent, False]) if absent else None), keys, items, type=STRINGS
    )


def vectors(bodies: Bodies) -> pa.Array:
    """Return a column of descriptors of deletion vectors."""
    values = bodies.values("deletionVector")
    if values is None:
        return pa.nulls(len(bodies), DELETION_VECTOR)
    for row, value in enumerate(values):
        if value is not None and not (isinstance(value, dict) and value.get("storageType") and _is_text(value)):
            raise RowError(row, "a deletionVector that is not described")
    present = Bodies(_VECTOR)
    present.take([value or {} for value in values])
    children = [
        texts(present, "storageType"),
        texts(present, "pathOrInlineDv"),
        integers(present, "offset", 32),
        integers(present, "sizeInBytes", 32),
        integers(present, "cardinality"),
    ]
    absent = pa.array([value is None for value in values])
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR), mask=absent)


def _is_text(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("pathOrInlineDv"), str)


def _column(
    values: Sequence[Any], kind: pa.DataType, convert: Callable[[Any], Any], name: str, *, required: bool = False
) -> pa.Array:
    try:
        found = pa.array(values, kind)
    except _REFUSED:
        found = pa.array([_converted(value, row, convert, name) for row, value in enumerate(values)], kind)
    if required and found.null_count:
        raise RowError(values.index(None), f"no {name}")
    return found


def _converted(value: Any, row: int, convert: Callable[[Any], Any], name: str) -> Any:
    try:
        return None if value is None else convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError(row, f"{name} {str(value)[:60]!r}, which is of no use there") from error


def integer(value: Any, bits: int = 64) -> int:
    """Return an integer that JSON holds as a number or as text.

    Raises:
        ValueError: It is neither, or does not fit so many bits.
    """
    if isinstance(value, str):
        value = int(value) if len(value) < 20 else None  # noqa: PLR2004 - digits and sign of 64 bits
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"no integer of {bits} bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("no truth value")
    return value


def _map(value: Any, row: int, name: str) -> Mapping[str, str | None]:
    if not isinstance(value, dict) or not all(item is None or isinstance(item, str) for item in value.values()):
        raise RowError(row, f"{name} that are no map of texts")
    return value
