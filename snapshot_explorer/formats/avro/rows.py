"""Rows of Avro files one by one, read by fastavro without Avro's logical types: numbers and bytes as they are stored.

The file is decompressed by `container`, within its limits.
"""

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import fastavro
import orjson
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from snapshot_explorer.formats.avro.container import Container

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


def records(container: Container) -> Iterator[Mapping[str, Any]]:
    """Return the rows of an Avro file as Python values.

    Raises: one of FOREIGN_ERRORS if the file is damaged, also when a row is read.
    """
    return _rows(container.blocks, _schema(container.schema_text))


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
def _schema(text: bytes) -> Any:
    """Return a schema without logical types: fastavro converts times to datetime, slowly and not for every year."""
    return fastavro.parse_schema(bare(orjson.loads(text)))


def bare(node: Any) -> Any:
    """Return an Avro schema without logical types."""
    if isinstance(node, dict):
        return {name: bare(value) for name, value in node.items() if name != "logicalType"}
    return [bare(item) for item in node] if isinstance(node, list) else node


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


def resolved(node: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a schema as an object, without its union with null."""
    if isinstance(node, list):
        node = next((item for item in node if item != "null"), "null")
    if isinstance(node, str):
        node = named.get(node, {"type": node})
    inner = node.get("type")
    return resolved(inner, named) if isinstance(inner, dict | list) else node
