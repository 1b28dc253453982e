"""Rows of Avro files one by one, read by fastavro without Avro's logical types: numbers and bytes as they are stored.

Reads every shape. `columns` reads many rows of metadata, and of log files, ten to twenty times as fast. The file is
decompressed by `container`, within its limits.
"""

import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from itertools import count, islice
from typing import Any, cast

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.avro.container import Choice, Container, Fixed, Items, Primitive, Record, Shape, Union

_EXACT = Context(prec=76)

Convert = Callable[[Any], Any] | None
"""Converts a value for Arrow; None to keep the value."""

FOREIGN_ERRORS = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    StopIteration,
    AssertionError,
    struct.error,
    pa.ArrowException,
    SchemaParseException,
    UnknownType,
)
"""Exceptions of fastavro for damaged bytes and schemas, and of pyarrow for values of another type."""


def batches(container: Container, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an Avro file with these columns, `size` rows at a time.

    Args:
        schema: Columns of the file. Decimals are stored as bytes, and a map may be an array of keys and values.

    Raises:
        CorruptBytesError: A block is damaged, or has values of another type.
    """
    columns = [(field, _convert(field.type)) for field in schema]
    rows_left = records(container)
    while True:
        try:
            rows = list(islice(rows_left, size))
            arrays = [
                pa.array([_apply(convert, row[field.name]) for row in rows], field.type) for field, convert in columns
            ]
        except FOREIGN_ERRORS as error:
            raise damaged_block(error) from error
        if not rows:
            return
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def decode(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray:
    """Return the rows of blocks of one shape as a struct array; fields that the shape lacks are null.

    Raises:
        CorruptBytesError: A block is damaged, or has values of another type.
    """
    convert = _convert(target)
    try:
        return pa.array([_apply(convert, row) for row in _rows(blocks, _schema(shape))], target)
    except FOREIGN_ERRORS as error:
        raise damaged_block(error) from error


def damaged_block(error: Exception) -> CorruptBytesError:
    """Return the error for a block, from one of FOREIGN_ERRORS."""
    return CorruptBytesError(f"a block is damaged ({type(error).__name__}: {error})")


def _convert(dtype: pa.DataType) -> Convert:
    if pa.types.is_decimal(dtype):
        return _present(lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-dtype.scale, _EXACT))
    if pa.types.is_map(dtype):
        key, item = _convert(dtype.key_type), _convert(dtype.item_type)
        return _present(lambda value: [(_apply(key, name), _apply(item, part)) for name, part in _pairs(value)])
    if pa.types.is_list(dtype):
        convert = _convert(dtype.value_type)
        return None if convert is None else _present(lambda value: [convert(item) for item in value])
    parts = [(part.name, _convert(part.type)) for part in dtype] if pa.types.is_struct(dtype) else []
    if all(convert is None for _, convert in parts):
        return None
    return _present(lambda value: {name: _apply(convert, value.get(name)) for name, convert in parts})


def _present(convert: Callable[[Any], Any]) -> Convert:
    return lambda value: None if value is None else convert(value)


def _apply(convert: Convert, value: Any) -> Any:
    return value if convert is None else convert(value)


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return keys and values of a map. One whose keys are not text is stored as an array of records."""
    return iter(value.items()) if isinstance(value, dict) else ((item["key"], item["value"]) for item in value)


def records(container: Container) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of an Avro file as Python values. Raises one of FOREIGN_ERRORS if the file is damaged."""
    yield from _rows(container.blocks, _schema(container.shape))


def _rows(blocks: Sequence[tuple[int, bytes]], schema: Any) -> Iterator[Mapping[str, Any]]:
    for rows, block in blocks:
        content = io.BytesIO(block)
        for _ in range(rows):
            try:
                row = fastavro.schemaless_reader(content, schema)
            except StopIteration as error:  # of old versions of fastavro
                raise EOFError("a row is cut short") from error
            yield cast("Mapping[str, Any]", row)
        if content.tell() != len(block):
            raise ValueError(f"{len(block) - content.tell():,} bytes follow the last row of a block")


@lru_cache(maxsize=32)
def _schema(shape: Shape) -> Any:
    """Return the schema of a shape for fastavro, which would convert logical types slowly, and not every value."""
    numbers = count()

    def schema_of(part: Shape) -> Any:
        match part:
            case Primitive(name):
                return name
            case Union(branches):
                return [schema_of(branch) for branch in branches]
            case Items(item, keyed=True):
                return {"type": "map", "values": schema_of(item)}
            case Items(item):
                return {"type": "array", "items": schema_of(item)}
            case Record(fields):
                parts = [{"name": name, "type": schema_of(field)} for name, field in fields]
                return {"type": "record", "name": f"r{next(numbers)}", "fields": parts}
            case Fixed(size):
                return {"type": "fixed", "name": f"r{next(numbers)}", "size": size}
            case Choice(symbols):
                return {"type": "enum", "name": f"r{next(numbers)}", "symbols": list(symbols)}

    return fastavro.parse_schema(schema_of(shape))


def without_logical_types(node: Any) -> Any:
    """Return an Avro schema without logical types."""
    if isinstance(node, dict):
        return {name: without_logical_types(value) for name, value in node.items() if name != "logicalType"}
    return [without_logical_types(item) for item in node] if isinstance(node, list) else node


def record_of(schema: Any) -> dict[str, Any]:
    """Return the record of a schema, which some writers wrap in a union with null.

    Raises:
        ValueError: It is not a record.
    """
    result = next(item for item in schema if item != "null") if isinstance(schema, list) else schema
    if not isinstance(result, dict) or "fields" not in result:
        raise ValueError("not a record")
    return result


def named_types(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the named types in an Avro schema, by name and by name with namespace."""
    if isinstance(node, dict):
        if isinstance(node.get("name"), str) and node.get("type") in ("record", "fixed", "enum"):
            yield node["name"], node
            yield f"{node.get('namespace', '')}.{node['name']}", node
        for value in node.values():
            yield from named_types(value)
    elif isinstance(node, list):
        for item in node:
            yield from named_types(item)


def entry(node: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `key` and `value` of a map that is stored as an array of records."""
    parts = {part["name"]: part for part in resolve(node.get("items"), named).get("fields", ())}
    if set(parts) != {"key", "value"}:
        raise CorruptBytesError("a map in it is stored in an unknown way")
    return parts


def resolve(node: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a schema as an object, without its union with null."""
    if isinstance(node, list):
        node = next((item for item in node if item != "null"), "null")
    if isinstance(node, str):
        node = named.get(node, {"type": node})
    inner = node.get("type")
    return resolve(inner, named) if isinstance(inner, dict | list) else node
