"""Columns of base files and log records as columns of the table: found by name at every depth, cast to its types.

A column that a file lacks is null. Values of another type are cast if Hudi's readers do so, and refused otherwise.

Source: hudi "Schema Evolution"; hudi AvroSchemaCompatibility, HoodieArrayWritableAvroUtils.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import int96, vectors
from snapshot_explorer.arrow.nesting import parts_of, plain, with_parts
from snapshot_explorer.formats.corrupt_files import column_named_in_errors
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.metadata.types import HudiField, HudiType, arrow_type, type_text

_DECIMAL_BYTES = 16


def column(values: pa.Array | None, field: HudiField, rows: int, path: str) -> pa.Array:
    """Return a file's column with the table's type; nulls if the file lacks it."""
    if values is None:
        return pa.nulls(rows, arrow_type(field.type))
    with column_named_in_errors(
        field.name,
        type_text(field.type),
        f"the file {path}",
        readers="Hudi's own engines",
        advice="Compare the file with a copy of the table.",
    ):
        return conform(values, field.type)


def is_exact(stored: pa.DataType, data_type: HudiType) -> bool:
    """Return whether `conform` returns values of an Arrow type as they are."""
    return data_type.element is None and not data_type.fields and stored == arrow_type(data_type)


def conform(values: pa.Array, data_type: HudiType) -> pa.Array:
    """Return values of a file cast to the Arrow type of a table's type.

    Raises:
        pyarrow.ArrowException: A value is not of the type.
    """
    target = arrow_type(data_type)
    values = plain(values)
    if data_type.root == "record" or data_type.element is not None:
        result = with_parts(values, target, partial(_part, data_type, [part.name for part in parts_of(values.type)]))
        if result is None:
            raise refusal(features.TYPE_CHANGES, stored=values.type, type=type_text(data_type))
        return result
    if values.type == target:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    return _convert(values, data_type, target)


def _part(data_type: HudiType, names: Sequence[str], index: int, stored: Sequence[pa.Array]) -> pa.Array | None:
    """Return a part of nested values, by its name in records; None for a field that they lack."""
    if data_type.element is not None:
        is_key = data_type.root == "map" and not index
        return stored[index].cast(pa.string()) if is_key else conform(stored[index], data_type.element)
    field = data_type.fields[index]
    return conform(stored[names.index(field.name)], field.type) if field.name in names else None


def _convert(values: pa.Array, data_type: HudiType, target: pa.DataType) -> pa.Array:
    """Return values converted from another type to the table's type."""
    stored = values.type
    if data_type.logical == "vector":
        converted = vectors.from_bytes(values, target) if _is_fixed(stored, data_type) else None
    elif data_type.logical == "decimal":
        converted = _decimal(values, data_type, target)
    elif pa.types.is_timestamp(target):
        converted = _timestamp(values, target)
    elif pa.types.is_date(target) or pa.types.is_time(target):
        converted = values.view(target) if pa.types.is_integer(stored) else None
    elif data_type.root == "double" and pa.types.is_float32(stored):
        converted = _widen(values)
    elif data_type.root in ("float", "double") and pa.types.is_integer(stored):
        converted = values.cast(target, safe=False)  # rounds values with more digits, as Java does
    elif _is_cast(stored, data_type):
        converted = values.cast(target)
    else:
        converted = None
    if converted is None:
        raise refusal(features.TYPE_CHANGES, stored=stored, type=type_text(data_type))
    return converted


def _decimal(values: pa.Array, data_type: HudiType, target: pa.DataType) -> pa.Array | None:
    stored = values.type
    if pa.types.is_decimal(stored):
        return values.cast(target) if stored.scale <= data_type.scale else None
    if pa.types.is_binary(stored) or pa.types.is_fixed_size_binary(stored):
        return decimals(values, data_type)
    return None


def _timestamp(values: pa.Array, target: pa.TimestampType) -> pa.Array | None:
    stored = values.type
    if pa.types.is_fixed_size_binary(stored) and stored.byte_width == int96.WIDTH:
        return int96.timestamps(values, "us").cast(pa.timestamp(target.unit)).view(target)
    if pa.types.is_timestamp(stored):
        return values.view(pa.timestamp(stored.unit)).cast(pa.timestamp(target.unit)).view(target)
    return values.view(target) if pa.types.is_int64(stored) else None


def _is_cast(stored: pa.DataType, data_type: HudiType) -> bool:
    if data_type.root in ("int", "long"):
        return bool(pa.types.is_integer(stored))
    if data_type.root == "string":
        return _is_text(stored) or bool(pa.types.is_integer(stored))
    if data_type.root in ("enum", "bytes"):
        return _is_text(stored)
    return data_type.root == "fixed" and bool(pa.types.is_binary(stored))


def _is_fixed(stored: pa.DataType, data_type: HudiType) -> bool:
    """Return whether values have the bytes of a fixed type, or any number of them, as in Avro and ORC."""
    return bool(pa.types.is_binary(stored) or stored == pa.binary(data_type.size))


def _is_text(stored: pa.DataType) -> bool:
    is_text = pa.types.is_string(stored) or pa.types.is_large_string(stored)
    return bool(is_text or pa.types.is_binary(stored) or pa.types.is_large_binary(stored))


def _widen(values: pa.Array) -> pa.Array:
    """Return floats as doubles of the same decimal text: 0.1, not 0.10000000149011612.

    Source: hudi HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType.
    """
    floats = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    return pa.array(floats.astype("U32").astype(np.float64), mask=values.is_null().to_numpy(zero_copy_only=False))


def decimals(values: pa.Array, data_type: HudiType) -> pa.Array:
    """Return big-endian two's complement bytes as decimals.

    Raises:
        ValueError: A value has more than 16 bytes.
    """
    numbers = bytearray()
    for value in values.to_pylist():
        content = value or b"\0"
        if len(content) > _DECIMAL_BYTES:
            content = _shorten(content)
        numbers += int.from_bytes(content, "big", signed=True).to_bytes(_DECIMAL_BYTES, "little", signed=True)
    mask = pa.array(~values.is_null().to_numpy(zero_copy_only=False)).buffers()[1] if values.null_count else None
    target = arrow_type(data_type)
    return pa.Array.from_buffers(target, len(values), [mask, pa.py_buffer(bytes(numbers))])


def _shorten(content: bytes) -> bytes:
    number = int.from_bytes(content, "big", signed=True)
    if not -(2**127) <= number < 2**127:
        raise ValueError("a decimal has more than 38 digits")
    return number.to_bytes(_DECIMAL_BYTES, "big", signed=True)
