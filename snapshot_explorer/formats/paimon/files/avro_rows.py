"""Rows of Avro data files. Values are read without Avro's logical types, which Paimon uses differently."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from itertools import islice
from typing import Any, cast

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.avro.container import Container
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, named_types, record_of, records, resolved
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, arrow_type

_EXACT = Context(prec=76)

Convert = Callable[[Any], Any]


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
        nodes = {item["name"]: item["type"] for item in schema["fields"]}
        rows_left = records(container)
        named = dict(named_types(schema))
        _check_names(nodes, fields)
        readers = [_reader(nodes[field.name], field.type, named) for field in fields]
    except CorruptBytesError:
        raise
    except FOREIGN_ERRORS as error:
        raise CorruptBytesError(f"its schema is damaged ({type(error).__name__}: {error})") from error
    while True:
        try:
            rows = cast("list[Mapping[str, Any]]", list(islice(rows_left, size)))
            batch = _batch(rows, fields, readers)
        except FOREIGN_ERRORS as error:
            raise CorruptBytesError(f"a block is damaged ({type(error).__name__}: {error})") from error
        if not rows:
            return
        yield batch


def _check_names(nodes: Mapping[str, Any], fields: Sequence[PaimonField]) -> None:
    for field in fields:
        if field.name not in nodes:
            raise CorruptBytesError(f"it has no column {field.name!r}")


def _batch(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[PaimonField], readers: Sequence[Convert]
) -> pa.RecordBatch:
    if not fields:
        return pa.record_batch([pa.nulls(len(rows))], names=["rows"]).select([])
    columns = [
        pa.array([read(row[field.name]) for row in rows], _stored(field.type))
        for field, read in zip(fields, readers, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])


def _stored(data_type: PaimonDataType) -> pa.DataType:
    """Return the Arrow type in which values are collected: times as integers."""
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return pa.int64()
    if data_type.root in ("DATE", "TIME"):
        return pa.int32()
    if data_type.root == "ROW":
        return pa.struct([pa.field(field.name, _stored(field.type)) for field in data_type.fields])
    if data_type.root == "MULTISET" and data_type.element:
        return pa.map_(_stored(data_type.element), pa.int32())
    if data_type.root == "MAP" and data_type.key and data_type.element:
        return pa.map_(_stored(data_type.key), _stored(data_type.element))
    if data_type.root == "ARRAY" and data_type.element:
        return pa.list_(_stored(data_type.element))
    return arrow_type(data_type)


def _same(value: Any) -> Any:
    return value


def _reader(node: Any, data_type: PaimonDataType, named: Mapping[str, Any]) -> Convert:
    definition = resolved(node, named)
    if data_type.root == "DECIMAL":
        return lambda value: (
            None
            if value is None
            else Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-(data_type.scale or 0), _EXACT)
        )
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        _check_unit(str(definition.get("logicalType", "")), data_type)
        return _same
    if data_type.root == "ROW":
        return _row_reader(definition, data_type, named)
    if data_type.root in ("MAP", "MULTISET"):
        return _map_reader(definition, data_type, named)
    if data_type.root == "ARRAY" and data_type.element:
        item = _reader(definition.get("items"), data_type.element, named)
        return lambda value: None if value is None else [item(element) for element in value]
    return _same


def _check_unit(logical: str, data_type: PaimonDataType) -> None:
    unit = arrow_type(data_type).unit
    if not logical.endswith({"ms": "-millis", "us": "-micros"}.get(unit, "-nanos")):
        raise CorruptBytesError(
            f"a timestamp of precision {data_type.precision} is stored as {logical or 'a plain number'}"
        )


def _row_reader(node: Mapping[str, Any], data_type: PaimonDataType, named: Mapping[str, Any]) -> Convert:
    nodes = {item["name"]: item["type"] for item in node.get("fields", ())}
    missing = [field.name for field in data_type.fields if field.name not in nodes]
    if missing:
        raise CorruptBytesError(f"a row in it has no field {missing[0]!r}")
    parts = [(field.name, _reader(nodes[field.name], field.type, named)) for field in data_type.fields]
    return lambda value: None if value is None else {name: read(value[name]) for name, read in parts}


def _map_reader(node: Mapping[str, Any], data_type: PaimonDataType, named: Mapping[str, Any]) -> Convert:
    """Return the reader of a map. A map whose keys are not text is stored as an array of keys and values."""
    keys, items = (
        (data_type.element, PaimonDataType(root="INT"))
        if data_type.root == "MULTISET"
        else (data_type.key, data_type.element)
    )
    if keys is None or items is None:
        raise CorruptBytesError("a map in it has no types")
    if node.get("type") == "map":
        item = _reader(node.get("values"), items, named)
        return lambda value: None if value is None else [(key, item(element)) for key, element in value.items()]
    parts = {part["name"]: part["type"] for part in resolved(node.get("items"), named).get("fields", ())}
    if set(parts) != {"key", "value"}:
        raise CorruptBytesError("a map in it is stored in an unknown way")
    key, item = _reader(parts["key"], keys, named), _reader(parts["value"], items, named)
    return lambda value: None if value is None else [(key(element["key"]), item(element["value"])) for element in value]
