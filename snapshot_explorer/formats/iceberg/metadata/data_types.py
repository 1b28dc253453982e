"""Iceberg's types: their notation in schemas, and their Arrow types."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.spatial import SPATIAL, SpatialType, spatial_type


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergDataType:
    """An Iceberg type. Only the attributes that its root needs are set."""

    root: str
    """boolean, int, long, float, double, decimal, date, time, timestamp, timestamptz, timestamp_ns, timestamptz_ns,
    string, uuid, fixed, binary, unknown, variant, geometry, geography, struct, list or map; any other root is a type
    that is not read, as in the schema."""
    precision: int = 0
    """Digits of a decimal."""
    scale: int = 0
    length: int = 0
    """Bytes of a fixed."""
    spatial: SpatialType | None = None
    """The parameters of a geometry or geography."""
    fields: "tuple[IcebergField, ...]" = ()
    """Fields of a struct; the element of a list; key and value of a map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergField:
    """A column, a field of a struct, the element of a list, or the key or value of a map."""

    id: int
    """The id, which renames keep and no other field of the table ever has."""
    name: str
    type: IcebergDataType
    required: bool = False
    doc: str | None = None
    initial_default: str | None = None
    """The value in rows of files without the column, as JSON; None without one."""


_VARIANT = pa.struct(
    # The mark lets other readers, such as Spark, distinguish a variant from a struct of this form.
    [pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]
)
_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "unknown": pa.null(),
    "variant": _VARIANT,
    **dict.fromkeys(SPATIAL, pa.binary()),
}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_MAX_PRECISION = 38
_MAX_DEPTH = 100
_NESTED = ("struct", "list", "map")


def parse_fields(raw: object, depth: int = 0) -> tuple[IcebergField, ...]:
    """Return the fields of a struct from its schema.

    Raises:
        KeyError, TypeError, ValueError: The schema contradicts the format.

    Source: iceberg specification, "Schemas" (Appendix C).
    """
    if not isinstance(raw, list):
        raise TypeError(f"{raw!r} is not a list of fields")
    fields = tuple(_field(item, depth) for item in raw)
    if len({field.name for field in fields}) < len(fields):
        raise ValueError("two columns have one name")
    return fields


def _field(raw: Mapping[str, Any], depth: int) -> IcebergField:
    doc = raw.get("doc")
    return IcebergField(
        id=_id(raw["id"]),
        name=_text(raw["name"]),
        type=parse_type(raw["type"], depth + 1),
        required=bool(raw["required"]),
        doc=None if doc is None else str(doc),
        initial_default=_json(raw.get("initial-default")),
    )


def _json(value: object) -> str | None:
    return None if value is None else json_text.dumps(value)


def _id(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a field id")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where a text is expected")
    return value


def parse_type(raw: object, depth: int = 0) -> IcebergDataType:
    """Return the type from its notation in a schema, text or an object; errors as `parse_fields`."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"its types are nested more than {_MAX_DEPTH} deep")
    if isinstance(raw, str):
        return _primitive(raw)
    if not isinstance(raw, Mapping):
        raise TypeError(f"{raw!r} is not a type")
    root = _text(raw["type"])
    if root == "struct":
        return IcebergDataType(root=root, fields=parse_fields(raw["fields"], depth))
    if root == "list":
        return IcebergDataType(root=root, fields=(_part(raw, "element", depth),))
    if root == "map":
        return IcebergDataType(root=root, fields=(_part(raw, "key", depth), _part(raw, "value", depth)))
    return _primitive(root)


def _part(raw: Mapping[str, Any], name: str, depth: int) -> IcebergField:
    return IcebergField(
        id=_id(raw[f"{name}-id"]),
        name=name,
        type=parse_type(raw[name], depth + 1),
        required=name == "key" or bool(raw[f"{name}-required"]),
    )


def _primitive(text: str) -> IcebergDataType:
    if spatial := spatial_type(text):
        return IcebergDataType(root=spatial.root, spatial=spatial)
    if text in _ARROW:
        return IcebergDataType(root=text)
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            raise ValueError(f"{text!r} is not a type")
        return IcebergDataType(root="decimal", precision=precision, scale=scale)
    if match := _FIXED.fullmatch(text):
        if not int(match[1]):
            raise ValueError(f"{text!r} is not a type")
        return IcebergDataType(root="fixed", length=int(match[1]))
    return IcebergDataType(root=text)


def arrow_type(data_type: IcebergDataType) -> pa.DataType:
    """Return the Arrow type of a type.

    A uuid is text, as in Spark: 32 hexadecimal digits in lower case, with dashes. A variant is a struct of value and
    metadata, both binary. A geometry or geography is WKB. Timestamps with a zone are in UTC.
    """
    if data_type.root in _ARROW:
        return _ARROW[data_type.root]
    match data_type.root:
        case "decimal":
            return pa.decimal128(data_type.precision, data_type.scale)
        case "fixed":
            return pa.binary(data_type.length)
        case "struct":
            return pa.struct([arrow_field(field) for field in data_type.fields])
        case "list":
            return pa.list_(arrow_field(data_type.fields[0]))
        case "map":
            key, value = data_type.fields
            return pa.map_(arrow_type(key.type), arrow_field(value))
    raise refusal(features.UNREAD_TYPES, type=data_type.root)


def arrow_field(field: IcebergField) -> pa.Field:
    """Return the Arrow field of a column. The field of a geometry or geography has its parameters as metadata."""
    spatial = field.type.spatial
    metadata = None if spatial is None else dict(spatial.metadata)
    return pa.field(field.name, arrow_type(field.type), nullable=not field.required, metadata=metadata)


def is_read(data_type: IcebergDataType) -> bool:
    """Return whether a type, and the types in it, are read."""
    if data_type.root not in _ARROW and data_type.root not in ("decimal", "fixed", *_NESTED):
        return False
    return all(is_read(field.type) for field in data_type.fields)


def is_nested(data_type: IcebergDataType) -> bool:
    """Return whether a type consists of other types; a variant does not."""
    return data_type.root in _NESTED


def type_text(data_type: IcebergDataType) -> str:
    """Return a type in one line: long, decimal(10,2), fixed[16], list<string>, map<string,long>, struct<a:long>."""
    if data_type.spatial is not None:
        return str(data_type.spatial)
    match data_type.root:
        case "decimal":
            return f"decimal({data_type.precision},{data_type.scale})"
        case "fixed":
            return f"fixed[{data_type.length}]"
        case "struct":
            return f"struct<{','.join(f'{field.name}:{type_text(field.type)}' for field in data_type.fields)}>"
        case "list" | "map":
            return f"{data_type.root}<{','.join(type_text(field.type) for field in data_type.fields)}>"
    return data_type.root


def walk(fields: tuple[IcebergField, ...]) -> Iterator[IcebergField]:
    """Yield fields and their nested fields; a field precedes its nested fields."""
    for field in fields:
        yield field
        yield from walk(field.type.fields)
