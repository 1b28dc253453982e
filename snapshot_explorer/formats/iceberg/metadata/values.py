"""Single values of metadata as Arrow: bounds and partition values in their binary form, defaults as JSON.

Source: iceberg specification, "Single-value serialization" (Appendix D).
"""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from typing import Any, cast
from uuid import UUID

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import decimals, uuids
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType, IcebergField, arrow_type, type_text

Bytes = npt.NDArray[np.uint8]

_DIGITS = 76
_NANO_DIGITS = 9
_WIDTHS = {
    "boolean": 1,
    "int": 4,
    "date": 4,
    "float": 4,
    **dict.fromkeys(("long", "double", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), 8),
}
_INT, _DATE, _FLOAT = IcebergDataType(root="int"), IcebergDataType(root="date"), IcebergDataType(root="float")
_PROMOTED = {"long": _INT, "double": _FLOAT, "timestamp": _DATE, "timestamp_ns": _DATE}
"""The narrower type that a value of half the width was written with, before the column was promoted."""


def single_values(values: pa.Array, data_type: IcebergDataType) -> pa.Array:
    """Return values in their binary form as an array of the type's Arrow type.

    A value of a narrower type that the column had before is converted. Invalid values are null.
    """
    values = values.cast(pa.binary())
    target = arrow_type(data_type)
    match data_type.root:
        case "string":
            return _text(values)
        case "binary":
            return values
        case "decimal":
            return _decimals(values, data_type)
        case "uuid":
            return _scatter(values, uuids.WIDTH, uuids.texts_of_cells, target)
        case "fixed":
            width = data_type.length
            return _scatter(values, width, lambda cells: _fixed(cells, width), target)
    if data_type.root not in _WIDTHS:
        return pa.nulls(len(values), target)
    result = _scatter(values, _WIDTHS[data_type.root], lambda cells: _numbers(cells, data_type), target)
    before = _PROMOTED.get(data_type.root)
    if before is None:
        return result
    narrow = _scatter(values, _WIDTHS[before.root], lambda cells: _numbers(cells, before), arrow_type(before))
    return result if narrow.null_count == len(narrow) else pc.coalesce(result, widen_values(narrow, target))


def widen_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values of a column in its current, wider type; days become timestamps at their start.

    Raises:
        pyarrow.ArrowInvalid: A day is outside of the range of timestamps.
    """
    return values.cast(target)


def _text(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decode(value) for value in values.to_pylist()], pa.string())


def _decode(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _scatter(values: pa.Array, width: int, decode: Callable[[Bytes], pa.Array], target: pa.DataType) -> pa.Array:
    """Return decoded values of one width; others are null."""
    sizes = pc.fill_null(pc.binary_length(values), -1).to_numpy(zero_copy_only=False)
    is_valid = sizes == width
    count = int(is_valid.sum())
    if not count:
        return pa.nulls(len(values), target)
    if count < len(values):
        indices = np.cumsum(is_valid) - 1
        result = _scatter(values.filter(pa.array(is_valid)), width, decode, target)
        return result.take(pa.array(indices, mask=~is_valid))
    buffers = values.buffers()
    start = int(np.frombuffer(buffers[1], np.int32, 1, 4 * values.offset)[0])
    cells = np.frombuffer(buffers[2], np.uint8, count * width, start).reshape(count, width)
    return decode(cells)


def _numbers(cells: Bytes, data_type: IcebergDataType) -> pa.Array:
    if data_type.root == "boolean":
        return pa.array(cells[:, 0] != 0)
    dtypes = {"int": "<i4", "date": "<i4", "float": "<f4", "double": "<f8"}
    numbers = np.ascontiguousarray(cells).view(dtypes.get(data_type.root, "<i8")).ravel()
    return pa.array(numbers).view(arrow_type(data_type))


def _fixed(cells: Bytes, width: int) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(width), len(cells), [None, pa.py_buffer(np.ascontiguousarray(cells))])


def _decimals(values: pa.Array, data_type: IcebergDataType) -> pa.Array:
    """Return decimals from unscaled numbers: two's complement, big-endian, up to 16 bytes.

    Source: iceberg specification, "Binary single-value serialization"; longer and empty values are damaged.
    """
    sizes = np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False), np.int64)
    valid = (sizes > 0) & (sizes <= decimals.BYTES)
    if not valid.any():
        return pa.nulls(len(values), arrow_type(data_type))
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values)]
    content = np.frombuffer(values.buffers()[2], np.uint8)
    cells = decimals.little_endian(content, offsets.astype(np.int64), np.where(valid, sizes, 0))
    return decimals_of(cells, data_type, valid)


def decimals_of(cells: Bytes, data_type: IcebergDataType, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """Return decimals from rows of 16 bytes, little-endian; null if a value has more digits than the type."""
    mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
    wide = pa.Array.from_buffers(
        pa.decimal128(38, data_type.scale), len(cells), [mask, pa.py_buffer(np.ascontiguousarray(cells))]
    )
    limit = pa.scalar(Decimal(10 ** (data_type.precision - data_type.scale)), pa.decimal256(76, 0))
    fits = pc.less(
        pc.abs(wide.cast(pa.decimal256(76, data_type.scale))), limit.cast(pa.decimal256(76, data_type.scale))
    )
    return pc.if_else(fits, wide, pa.scalar(None, wide.type)).cast(arrow_type(data_type))


def stored_values(values: pa.Array, data_type: IcebergDataType) -> pa.Array:
    """Return partition values as manifests store them in the Arrow type of a type.

    Args:
        values: Values as in `IcebergLiveFiles.partitions`: bool, int64, float64, string or binary.
    """
    target = arrow_type(data_type)
    try:
        if values.null_count == len(values):
            return pa.nulls(len(values), target)
        if pa.types.is_binary(values.type) and data_type.root not in ("string", "binary"):
            result = single_values(values, data_type)
            if result.null_count > values.null_count:
                raise pa.ArrowInvalid(f"a value of another length than {type_text(data_type)} has")
            return result
        if pa.types.is_integer(values.type) and pa.types.is_temporal(target):
            width = pa.int32() if pa.types.is_date32(target) else pa.int64()
            return values.cast(width).view(target)
        return values.cast(target)
    except (pa.ArrowException, ValueError) as error:
        resources.check(error, "The partition values of a manifest could not be read")
        raise CorruptTableError(
            f"A manifest has partition values of {values.type} where the schema has {type_text(data_type)}: {error}. "
            "It may be damaged; compare it with a copy of the table."
        ) from error


def default_value(field: IcebergField, text: str) -> pa.Scalar:
    """Return a default of a field as an Arrow scalar.

    Source: iceberg specification, "JSON single-value serialization".
    """
    try:
        return pa.scalar(_from_json(orjson.loads(text), field.type), arrow_type(field.type))
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, pa.ArrowException) as error:
        raise CorruptTableError(
            f"The default of the column {field.name!r}, {text[:100]}, is not a {type_text(field.type)} ({error}). The "
            "table's metadata file may be damaged; compare it with a copy of the table."
        ) from error


def _from_json(value: Any, data_type: IcebergDataType) -> object:
    if value is None:
        return None
    match data_type.root:
        case "struct":
            return {field.name: _from_json(_field_value(value, field), field.type) for field in data_type.fields}
        case "list":
            return [_from_json(item, data_type.fields[0].type) for item in value]
        case "map":
            key, item = data_type.fields
            pairs = zip(value["keys"], value["values"], strict=True)
            return [(_from_json(element, key.type), _from_json(other, item.type)) for element, other in pairs]
    return _ATOMS[data_type.root](value, data_type)


def _field_value(value: Mapping[str, Any], field: IcebergField) -> Any:
    """Return the value of a field of a struct; an absent one has the default of the field."""
    text = field.initial_default
    return value.get(str(field.id), None if text is None else orjson.loads(text))


def _typed(*types: type) -> Callable[[Any, IcebergDataType], object]:
    def checked(value: Any, data_type: IcebergDataType) -> object:
        if type(value) not in types:
            raise ValueError(f"{value!r} is not a {data_type.root}")
        return cast("object", value)

    return checked


def _decimal(value: Any, data_type: IcebergDataType) -> Decimal:
    with localcontext(prec=_DIGITS):
        number = Decimal(str(value))
        rounded = number.quantize(Decimal(1).scaleb(-data_type.scale))
    if rounded != number:
        raise ValueError(f"{value!r} has more than {data_type.scale} digits after the point")
    return rounded


def _parse_timestamp(value: str, data_type: IcebergDataType) -> int:
    """Return a timestamp as a number in the type's unit since 1970."""
    text, fraction = value, ""
    zone = ""
    if text.endswith("Z"):
        text, zone = text[:-1], "+00:00"
    elif text[-6:-5] in ("+", "-"):
        text, zone = text[:-6], text[-6:]
    if "." in text:
        text, fraction = text.split(".")
    if bool(zone) != data_type.root.startswith("timestamptz"):
        raise ValueError(f"{value!r} is not a {data_type.root}")
    since_epoch = datetime.fromisoformat(text + (zone or "+00:00")) - datetime(1970, 1, 1, tzinfo=UTC)
    digits = _NANO_DIGITS if data_type.root.endswith("_ns") else 6
    if len(fraction) > digits and fraction[digits:].strip("0"):
        raise ValueError(f"{value!r} is finer than {data_type.root}")
    per_second = 1_000_000_000 if digits == _NANO_DIGITS else 1_000_000
    return (since_epoch // timedelta(seconds=1)) * per_second + int(fraction.ljust(digits, "0")[:digits])


_ATOMS: Mapping[str, Callable[[Any, IcebergDataType], object]] = {
    "boolean": _typed(bool),
    "int": _typed(int),
    "long": _typed(int),
    "float": _typed(int, float),
    "double": _typed(int, float),
    "decimal": _decimal,
    "date": lambda value, _: date.fromisoformat(value),
    "time": lambda value, _: time.fromisoformat(value),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), _parse_timestamp),
    "string": _typed(str),
    "uuid": lambda value, _: str(UUID(value)),
    "fixed": lambda value, _: bytes.fromhex(value),
    "binary": lambda value, _: bytes.fromhex(value),
}
