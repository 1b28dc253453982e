"""The types of Hudi's schemas, which are Avro schemas, and their Arrow types.

Source: Avro specification, "Schema Declaration", "Logical Types"; hudi HoodieSparkSchemaConverters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow.vectors import MOST_ITEMS
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features

_MOST_PARTS = 100_000
_MOST_DIGITS = 38
_ATOMS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
    "null": pa.null(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_UNREAD = frozenset(("variant", "blob"))
"""Logical types that are not read."""
_VECTORS: Mapping[str, pa.DataType] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
"""The types of a vector's items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiType:
    """A type. Hashable, and picklable."""

    root: str
    """The Avro type, such as `long` or `record`."""
    logical: str = ""
    """The logical type, such as `timestamp-micros`; empty without one."""
    precision: int = 0
    """The digits of a decimal."""
    scale: int = 0
    """The digits of a decimal behind the point."""
    size: int = 0
    """The bytes of a fixed type."""
    items: str = ""
    """The type of a vector's items: FLOAT, DOUBLE or INT8. They are stored in little-endian order in a fixed type."""
    fields: "tuple[HudiField, ...]" = ()
    element: "HudiType | None" = None
    """The type of the items of an array, or of the values of a map."""
    element_nullable: bool = True
    """Whether these may be null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiField:
    """A column, or a field of a record."""

    name: str
    type: HudiType
    nullable: bool
    """Whether it may be null."""
    comment: str | None = None
    default: str | None = field(default=None, compare=False)
    """Its default value as JSON; None if it has none. `null` means null."""


def parse_fields(text: str, path: str) -> tuple[HudiField, ...]:
    """Return the fields of an Avro schema in JSON."""
    try:
        raw = json_text.loads(text, f"The Avro schema in {path}")
        json_text.check_types(raw, f"The Avro schema in {path}")
        parsed = _Parser().data_type(raw)[0]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"The Avro schema in {path} cannot be read: {error}. It is damaged; compare it with a copy of the table."
        ) from error
    if parsed.root != "record":
        raise CorruptTableError(f"The Avro schema in {path} is a {parsed.root}, not a record. Compare it with a copy.")
    return parsed.fields


class _Parser:
    """Parses one schema, whose parts may refer to earlier ones by name."""

    def __init__(self) -> None:
        self._named: dict[str, HudiType] = {}
        self._parts = 0

    def data_type(self, node: Any) -> tuple[HudiType, bool]:
        """Return a type, and whether it may be null."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ValueError(f"it has more than {_MOST_PARTS:,} parts")
        if isinstance(node, list):
            branches = [branch for branch in node if branch != "null"]
            if len(branches) > 1:
                raise refusal(features.UNIONS, types=", ".join(map(_name, branches)))
            if not branches:
                return HudiType(root="null"), True
            return self.data_type(branches[0])[0], len(branches) < len(node)
        if isinstance(node, str):
            return self._word(node), False
        inner = node["type"]
        if not isinstance(inner, str):
            return self.data_type(inner)
        return self._declared(inner, node), False

    def _word(self, word: str) -> HudiType:
        if word in _ATOMS:
            return HudiType(root=word)
        known = self._named.get(word) or self._named.get(word.rpartition(".")[2])
        if known is None:
            raise ValueError(f"{word!r} is not an Avro type")
        return known

    def _declared(self, root: str, node: Mapping[str, Any]) -> HudiType:
        logical = str(node.get("logicalType") or "")
        if logical in _UNREAD:
            raise refusal(features.UNREAD_TYPES, type=logical)
        if root == "record":
            parsed = HudiType(root=root, fields=tuple(self._field(part) for part in node["fields"]))
        elif root in ("array", "map"):
            element, nullable = self.data_type(node["items" if root == "array" else "values"])
            return HudiType(root=root, element=element, element_nullable=nullable)
        elif logical == "decimal":
            precision, scale = int(node["precision"]), int(node.get("scale") or 0)
            if not 0 < precision <= _MOST_DIGITS or not 0 <= scale <= precision:
                raise ValueError(f"a decimal of {precision} digits with {scale} behind the point")
            size = int(node.get("size") or 0)
            parsed = HudiType(root=root, logical=logical, precision=precision, scale=scale, size=size)
        elif logical == "vector":
            parsed = _vector(root, node)
        elif root == "fixed":
            parsed = HudiType(root=root, size=int(node["size"]))
        elif root == "enum":
            parsed = HudiType(root=root)
        else:
            known = logical if (root, logical) in _LOGICAL or (root, logical) == ("string", "uuid") else ""
            return self._word(root) if not known else HudiType(root=root, logical=known)
        if "name" in node:
            self._named[str(node["name"])] = parsed
            self._named[str(node["name"]).rpartition(".")[2]] = parsed
        return parsed

    def _field(self, part: Mapping[str, Any]) -> HudiField:
        data_type, nullable = self.data_type(part["type"])
        default = json_text.dumps(part["default"]) if "default" in part else None
        comment = part.get("doc")
        return HudiField(
            name=str(part["name"]), type=data_type, nullable=nullable, comment=comment or None, default=default
        )


def _vector(root: str, node: Mapping[str, Any]) -> HudiType:
    """Return the type of a vector.

    Source: hudi HoodieSchema.Vector, VectorConversionUtils.
    """
    length, items = int(node.get("dimension") or 0), str(node.get("elementType") or "FLOAT")
    backing, size = str(node.get("storageBacking") or "FIXED_BYTES"), int(node.get("size") or 0)
    width = _VECTORS[items].bit_width // 8 if items in _VECTORS else 0
    if root != "fixed" or backing != "FIXED_BYTES" or not width or not 0 < length <= MOST_ITEMS:
        raise refusal(features.UNREAD_TYPES, type=f"vector({length}, {items}) in {root} ({backing})")
    if size != length * width:
        raise ValueError(f"a vector of {length} items of type {items} in {size} bytes")
    return HudiType(root=root, logical="vector", size=size, items=items)


def _name(node: Any) -> str:
    return str(node.get("name") or node.get("type")) if isinstance(node, Mapping) else str(node)


def arrow_type(data_type: HudiType) -> pa.DataType:
    """Return the Arrow type of values."""
    if data_type.root == "record":
        return pa.struct([arrow_field(part) for part in data_type.fields])
    if data_type.element is not None:
        item = pa.field("item", arrow_type(data_type.element), nullable=data_type.element_nullable)
        if data_type.root == "array":
            return pa.list_(item)
        return pa.map_(pa.string(), item.with_name("value"))
    if data_type.logical == "decimal":
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.logical == "vector":
        item = _VECTORS[data_type.items]
        return pa.list_(pa.field("item", item, nullable=False), data_type.size * 8 // item.bit_width)
    if data_type.root == "fixed":
        return pa.binary(data_type.size)
    return _LOGICAL.get((data_type.root, data_type.logical)) or _ATOMS[data_type.root]


def arrow_field(part: HudiField) -> pa.Field:
    """Return the Arrow field of a column."""
    return pa.field(part.name, arrow_type(part.type), nullable=part.nullable)


def avro_type(data_type: HudiType) -> pa.DataType:
    """Return the Arrow type of values as Avro stores them: numbers of times, bytes of decimals."""
    if data_type.root == "record":
        return pa.struct([pa.field(part.name, avro_type(part.type)) for part in data_type.fields])
    if data_type.element is not None:
        element = avro_type(data_type.element)
        return pa.list_(element) if data_type.root == "array" else pa.map_(pa.string(), element)
    return pa.binary() if data_type.root == "fixed" else _ATOMS[data_type.root]


def type_text(data_type: HudiType) -> str:
    """Return a type as text: the logical type or the Avro type."""
    if data_type.root == "record":
        return f"record<{', '.join(f'{part.name}: {type_text(part.type)}' for part in data_type.fields)}>"
    if data_type.element is not None:
        return f"{data_type.root}<{type_text(data_type.element)}>"
    if data_type.logical == "decimal":
        return f"decimal({data_type.precision},{data_type.scale})"
    if data_type.logical == "vector":
        return f"vector({arrow_type(data_type).list_size}, {data_type.items.lower()})"
    if data_type.root == "fixed":
        return f"fixed({data_type.size})"
    return data_type.logical or data_type.root
