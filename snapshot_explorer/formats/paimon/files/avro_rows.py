"""Rows of Avro data files. Values are read without Avro's logical types, which Paimon uses differently."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.avro import rows
from snapshot_explorer.formats.avro.container import Container
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, entry, named_types, record_of, resolve
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, arrow_type


def names(container: Container) -> list[str]:
    """Return the names of the fields in an Avro file.

    Raises:
        CorruptBytesError: Its schema is damaged.
    """
    try:
        return [str(field["name"]) for field in record_of(orjson.loads(container.schema_text))["fields"]]
    except FOREIGN_ERRORS as error:
        raise CorruptBytesError(f"its schema is damaged ({type(error).__name__}: {error})") from error


def batches(container: Container, fields: Sequence[PaimonField], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an Avro file, with a column per field.

    Times are integers in the unit of the field's Arrow type, all other values have the field's type.

    Raises:
        CorruptBytesError: The content is damaged, or lacks a field.
    """
    try:
        schema = record_of(orjson.loads(container.schema_text))
        _check(schema, PaimonDataType(root="ROW", fields=tuple(fields)), dict(named_types(schema)))
    except CorruptBytesError:
        raise
    except FOREIGN_ERRORS as error:
        raise CorruptBytesError(f"its schema is damaged ({type(error).__name__}: {error})") from error
    return rows.batches(container, pa.schema([(field.name, _stored_type(field.type)) for field in fields]), size)


def _stored_type(data_type: PaimonDataType) -> pa.DataType:
    """Return the Arrow type in which values are collected: times as integers."""
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return pa.int64()
    if data_type.root in ("DATE", "TIME"):
        return pa.int32()
    if data_type.root == "ROW":
        return pa.struct([pa.field(field.name, _stored_type(field.type)) for field in data_type.fields])
    if data_type.root == "MULTISET" and data_type.element:
        return pa.map_(_stored_type(data_type.element), pa.int32())
    if data_type.root == "MAP" and data_type.key and data_type.element:
        return pa.map_(_stored_type(data_type.key), _stored_type(data_type.element))
    if data_type.root in ("ARRAY", "VECTOR") and data_type.element:
        return pa.list_(_stored_type(data_type.element))
    return arrow_type(data_type)


def _check(node: Any, data_type: PaimonDataType, named: Mapping[str, Any]) -> None:
    """Raise for a part of the schema that does not contain values of a type."""
    definition = resolve(node, named)
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        _check_unit(str(definition.get("logicalType", "")), data_type)
    elif data_type.root == "ROW":
        nodes = {item["name"]: item["type"] for item in definition.get("fields", ())}
        missing = [field.name for field in data_type.fields if field.name not in nodes]
        if missing:
            raise CorruptBytesError(f"it has no column {missing[0]!r}")
        for field in data_type.fields:
            _check(nodes[field.name], field.type, named)
    elif data_type.element is not None:
        values = definition.get("values" if definition.get("type") == "map" else "items")
        if data_type.root in ("MAP", "MULTISET") and definition.get("type") != "map":
            parts = entry(definition, named)
            keys = data_type.key if data_type.root == "MAP" else data_type.element
            if keys is not None:
                _check(parts["key"]["type"], keys, named)
            values = parts["value"]["type"]
        if data_type.root != "MULTISET":
            _check(values, data_type.element, named)


def _check_unit(logical: str, data_type: PaimonDataType) -> None:
    unit = arrow_type(data_type).unit
    if not logical.endswith({"ms": "-millis", "us": "-micros"}.get(unit, "-nanos")):
        raise CorruptBytesError(
            f"a timestamp of precision {data_type.precision} is stored as {logical or 'a plain number'}"
        )
