"""The columns of Avro data files, in Arrow types that keep the field ids of their schema as metadata.

Source: iceberg specification, "Avro" (Appendix A).
"""

from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.avro.container import Container
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, entry, named_types, record_of, resolve

_ID = b"iceberg.id"
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_ATOMS = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}


def arrow_schema(container: Container) -> pa.Schema:
    """Return the columns of a file, with ids as metadata.

    Raises:
        CorruptBytesError: The schema is damaged.
    """
    try:
        schema = record_of(orjson.loads(container.schema_text))
        named = dict(named_types(schema))
        return pa.schema([_field(item["name"], item["type"], item.get("field-id"), named) for item in schema["fields"]])
    except FOREIGN_ERRORS as error:
        raise CorruptBytesError(f"its schema is damaged ({type(error).__name__}: {error})") from error


def _field(name: str, node: Any, number: object, named: Mapping[str, Any]) -> pa.Field:
    metadata = None if number is None else {_ID: str(number)}
    return pa.field(name, _type(resolve(node, named), named), metadata=metadata)


def _type(node: Mapping[str, Any], named: Mapping[str, Any]) -> pa.DataType:
    """Return the Arrow type of a part of the schema: times as their numbers, decimals as their bytes."""
    avro_type, logical = node["type"], str(node.get("logicalType", ""))
    if avro_type == "record":
        return pa.struct([_field(item["name"], item["type"], item.get("field-id"), named) for item in node["fields"]])
    if avro_type == "array" and logical == "map":
        parts = entry(node, named)
        key, value = parts["key"], parts["value"]
        return pa.map_(
            _field("key", key["type"], key.get("field-id"), named).with_nullable(False),  # noqa: FBT003 - pyarrow's
            _field("value", value["type"], value.get("field-id"), named),
        )
    if avro_type == "array":
        return pa.list_(_field("element", node["items"], node.get("element-id"), named))
    if avro_type == "map":
        key_id = node.get("key-id")
        key_field = pa.field(
            "key", pa.string(), nullable=False, metadata=None if key_id is None else {_ID: str(key_id)}
        )
        return pa.map_(key_field, _field("value", node["values"], node.get("value-id"), named))
    if avro_type == "fixed":
        return pa.binary() if logical == "decimal" else pa.binary(int(node["size"]))
    return _time(avro_type, logical) or _ATOMS[avro_type]


def _time(avro_type: str, logical: str) -> pa.DataType | None:
    if avro_type == "int" and logical == "date":
        return pa.date32()
    if avro_type == "int" and logical == "time-millis":
        return pa.time32("ms")
    unit = _UNITS.get(logical.rpartition("-")[2])
    if avro_type != "long" or unit is None:
        return None
    return pa.time64(unit) if logical.startswith("time-") else pa.timestamp(unit)
