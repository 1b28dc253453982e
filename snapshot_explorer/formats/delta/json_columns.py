"""Values of JSON objects straight into Arrow columns, many at once.

The fast way takes what is well-formed. Where Arrow refuses a column, each value is looked at, so that what foreign
writers do (numbers as text) is read and what is wrong is told with its place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from snapshot_explorer.formats.damage import DamageError
from snapshot_explorer.formats.delta.records import DELETION_VECTOR

Bodies = Sequence[Mapping[str, Any]]
_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, UnicodeError)


class RowError(DamageError):
    """A value is of no use; `row` tells which body holds it."""

    def __init__(self, row: int, message: str) -> None:
        """Keep the row for whoever knows its file."""
        super().__init__(message)
        self.row = row


def texts(bodies: Bodies, name: str, *, required: bool = False) -> pa.Array:
    """Return a column of text."""
    return _column([body.get(name) for body in bodies], pa.string(), _text, name, required=required)


def integers(bodies: Bodies, name: str, bits: int = 64) -> pa.Array:
    """Return a column of integers of 64 or 32 bits; text that is a number counts as one."""
    kind = pa.int64() if bits == 64 else pa.int32()  # noqa: PLR2004 - the two there are
    values = [body.get(name) for body in bodies]
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
    values = [body.get(name, default) for body in bodies]
    found = _column(values, pa.bool_(), _boolean, name)
    return found if default is None else found.fill_null(default)


def maps(bodies: Bodies, name: str, *, missing: Mapping[str, str] | None = None) -> pa.Array:
    """Return a column of maps from text to text; `missing` stands where there is none."""
    values = [body.get(name) for body in bodies]
    if missing is not None and None in values:
        values = [missing if value is None else value for value in values]
    try:
        return _maps(values)
    except (AttributeError, *_REFUSED):
        return _maps([None if value is None else _map(value, row, name) for row, value in enumerate(values)])


def _maps(values: Sequence[Mapping[str, str | None] | None]) -> pa.Array:
    offsets: list[int | None] = []
    keys: list[str] = []
    items: list[str | None] = []
    for value in values:
        if value is None:
            offsets.append(None)
            continue
        offsets.append(len(keys))
        if value:
            keys += value
            items += value.values()
    offsets.append(len(keys))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), pa.array(items, pa.string())
    )


def vectors(bodies: Bodies) -> pa.Array:
    """Return a column of descriptors of deletion vectors."""
    values = [body.get("deletionVector") for body in bodies]
    if values.count(None) == len(values):
        return pa.nulls(len(values), DELETION_VECTOR)
    for row, value in enumerate(values):
        if value is not None and not (isinstance(value, dict) and value.get("storageType") and _is_text(value)):
            raise RowError(row, "a deletionVector that is not described")
    present: Bodies = [value or {} for value in values]
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
