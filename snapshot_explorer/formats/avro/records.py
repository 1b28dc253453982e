"""Rows of Avro blocks one by one, as Python values: supports every shape, but slowly.

Used for rows that contain lists of records, or whose starts `columns` could not verify.

Own code instead of fastavro: its `schemaless_reader` takes less than half the time, but trusts the counts that a block
announces, so that six damaged bytes exhaust memory. Few manifests need this module.
"""

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from snapshot_explorer.formats.avro.arrow_values import as_map, pair_type
from snapshot_explorer.formats.avro.container import (
    Choice,
    Fixed,
    Items,
    Primitive,
    Record,
    Shape,
    TruncatedError,
    Union,
    read_bytes,
    varint,
)

_MAX_ITEMS = 4_000_000


def decode(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray:
    """Return the rows of blocks of one shape as a struct array; fields that the shape lacks are null.

    Raises:
        pa.ArrowInvalid: A value does not fit the type.
    """
    rows: list[Any] = []
    for count, block in blocks:
        at = 0
        for _ in range(count):
            row, at = _value(shape, block, at)
            rows.append(row)
        if at != len(block):
            raise TruncatedError(f"{count} rows end at byte {at} of a block of {len(block)}")
    return _with_maps(pa.array(rows, _without_maps(target)), target)


def _without_maps(dtype: pa.DataType) -> pa.DataType:
    """Return a type whose maps are lists of records, as they are in Avro where keys are not text."""
    if pa.types.is_map(dtype):
        return pa.list_(pair_type(dtype))
    if pa.types.is_list(dtype):
        return pa.list_(_without_maps(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([part.with_type(_without_maps(part.type)) for part in dtype])
    return dtype


def _with_maps(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type.equals(target):
        return array
    mask = array.is_null()
    if pa.types.is_struct(target):
        parts = [_with_maps(child, part.type) for child, part in zip(array.flatten(), target, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=mask)
    if pa.types.is_map(target):
        return as_map(array.offsets, array.values, target, mask)
    raise TruncatedError(f"{target} is not read from lists of lists")


def _value(shape: Shape, block: bytes, at: int) -> tuple[Any, int]:
    match shape:
        case Primitive(name):
            return _atom(name, block, at)
        case Record(fields):
            record: dict[str, Any] = {}
            for name, part in fields:
                record[name], at = _value(part, block, at)
            return record, at
        case Union(branches):
            branch, at = varint(block, at)
            if not 0 <= branch < len(branches):
                raise TruncatedError(f"unknown branch {branch} at byte {at}")
            return _value(branches[branch], block, at)
        case Items():
            return _items(shape, block, at)
        case Choice(symbols):
            index, at = varint(block, at)
            if not 0 <= index < len(symbols):
                raise TruncatedError(f"unknown symbol {index} at byte {at}")
            return symbols[index], at
        case Fixed(size):
            return _exactly(block, at, size), at + size


def _atom(name: str, block: bytes, at: int) -> tuple[Any, int]:
    match name:
        case "null":
            return None, at
        case "int" | "long":
            return varint(block, at)
        case "bytes":
            return read_bytes(block, at)
        case "string":
            text, at = read_bytes(block, at)
            try:
                return text.decode(), at
            except UnicodeDecodeError as error:
                raise TruncatedError(f"text before byte {at} is not UTF-8") from error
        case "boolean":
            return _exactly(block, at, 1) != b"\0", at + 1
        case "float":
            return struct.unpack("<f", _exactly(block, at, 4))[0], at + 4
        case _:
            return struct.unpack("<d", _exactly(block, at, 8))[0], at + 8


def _exactly(block: bytes, at: int, size: int) -> bytes:
    if at + size > len(block):
        raise TruncatedError(f"{size} bytes expected at byte {at}, found {len(block) - at}")
    return block[at : at + size]


def _items(shape: Items, block: bytes, at: int) -> tuple[Any, int]:
    """Return a list, or a list of pairs for a map."""
    items: list[Any] = []
    while True:
        count, at = varint(block, at)
        if count == 0:
            return items, at
        if count < 0:
            _, at = varint(block, at)
            count = -count
        if count > len(block) - at or len(items) + count > _MAX_ITEMS:
            raise TruncatedError(f"{count} items expected at byte {at}, found {len(block) - at} bytes")
        for _ in range(count):
            key = None
            if shape.keyed:
                key, at = read_bytes(block, at)
            item, at = _value(shape.item, block, at)
            items.append((key, item) if shape.keyed else item)
