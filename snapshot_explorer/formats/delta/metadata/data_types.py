"""Delta's types: their notation in schemas, and their Arrow types."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.records import FieldIds
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.metadata.json_columns import integer
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.spatial import EDGES, SPATIAL, SpatialType, spatial_type

Mode = Literal["none", "name", "id"]
"""How to find the columns of a data file: by name, by physical name, or by id."""

PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaDataType:
    """A Delta type. Only the fields that its root needs are set."""

    root: str
    """byte, short, integer, long, float, double, decimal, boolean, string, binary, date, timestamp, timestamp_ntz,
    variant, void, geometry, geography, array, map or struct; any other root is an unsupported type, as in the
    schema."""
    precision: int = 0
    """Digits of a decimal."""
    scale: int = 0
    key: "DeltaDataType | None" = None
    element: "DeltaDataType | None" = None
    """Type of an array's items, and of a map's values."""
    element_nullable: bool = True
    """Whether items or values may be null."""
    fields: "tuple[DeltaField, ...]" = ()
    spatial: SpatialType | None = None
    """The parameters of a geometry or geography."""
    char_length: int | None = None
    """Length of a char(n), whose values are padded with spaces; None for any other type."""
    user_defined: bool = False
    """Whether a user-defined type is stored as this type: column mapping leaves out its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """A widening of a column: delta PROTOCOL.md, "Type Change Metadata"."""

    before: str
    """The former type, as in schemas."""
    after: str
    path: tuple[str, ...]
    """The path in the column: `element`, `key`, `value`; empty for the column itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaField:
    """A column, or a field of a struct."""

    name: str
    type: DeltaDataType
    nullable: bool = True
    stored: str
    """The name in data files, partition values and statistics."""
    id: int | None = None
    """The id of column mapping, which renames keep."""
    comment: str | None = None
    declared: str | None = None
    """The declared type, where the schema has another: varchar(10) for a string."""
    collation: str | None = None
    """The collation of its texts, None if they are compared by bytes. The first collation if it contains several."""
    changes: tuple[TypeChange, ...] = ()
    """Its widenings, oldest first."""


_ARROW = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": pa.struct(
        # The mark lets other readers, such as Spark, distinguish a variant from a struct of this form.
        [pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]
    ),
    "void": pa.null(),
    **dict.fromkeys(SPATIAL, pa.binary()),
}
_DECIMAL = re.compile(r"decimal(?:\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\))?")
_TEXT = re.compile(r"string( collate \S+)?|(?:var)?char\(\d+\)", re.IGNORECASE)
_CHAR = re.compile(r"char\((\d{1,9})\)", re.IGNORECASE)
_EDGES_ALONE = re.compile(rf"^geography\(\s*({'|'.join(EDGES)})\s*\)$", re.IGNORECASE)
_MAX_PRECISION = 38


def parse_fields(raw: Iterable[Mapping[str, Any]], mode: Mode) -> tuple[DeltaField, ...]:
    """Return the fields of a struct.

    Raises:
        KeyError, TypeError, ValueError: The schema contradicts the format.

    Source: delta PROTOCOL.md, "Schema Serialization Format".
    """
    fields = tuple(_field(item, mode) for item in raw)
    if len({field.name for field in fields}) < len(fields):
        raise ValueError("two columns have one name")
    return fields


def _field(raw: Mapping[str, Any], mode: Mode) -> DeltaField:
    name = _text(raw["name"])
    metadata = raw.get("metadata") or {}
    number = metadata.get(COLUMN_ID)
    physical = metadata.get(PHYSICAL_NAME)
    comment = metadata.get("comment")
    declared = metadata.get("__CHAR_VARCHAR_TYPE_STRING")
    data_type = parse_type(raw["type"], mode)
    return DeltaField(
        name=name,
        type=data_type if declared is None else _with_char_lengths(data_type, str(declared)),
        nullable=bool(raw.get("nullable", True)),
        stored=name if mode == "none" or physical is None else _text(physical),
        id=None if number is None else integer(number),
        comment=None if comment is None else str(comment),
        declared=None if declared is None else str(declared),
        collation=_collation(raw["type"], metadata.get("__COLLATIONS") or {}),
        changes=tuple(
            TypeChange(
                before=_text(change["fromType"]),
                after=_text(change["toType"]),
                path=tuple(_text(change.get("fieldPath") or "").split(".")) if change.get("fieldPath") else (),
            )
            for change in metadata.get("delta.typeChanges") or ()
        ),
    )


def _collation(type_name: object, listed: Mapping[str, str]) -> str | None:
    """Return the collation of a field's texts, or of the texts in its arrays and maps; None without one."""
    match = _TEXT.fullmatch(type_name) if isinstance(type_name, str) else None
    names = [*map(str, listed.values()), *([match[1].split()[-1]] if match and match[1] else [])]
    return next((name for name in names if name.rpartition(".")[2].upper() != "UTF8_BINARY"), None)


def _with_char_lengths(data_type: DeltaDataType, declared: str) -> DeltaDataType:
    """Return a type with the lengths of each char(n) in its declared type, such as `struct<a:char(4),b:int>`.

    Source: spark CharVarcharUtils.getRawType, addPaddingForScan.
    """
    if data_type.root == "string":
        match = _CHAR.fullmatch(declared)
        return replace(data_type, char_length=int(match[1])) if match else data_type
    inside = _type_arguments(declared) if "char(" in declared.lower() else []
    if data_type.root == "struct":
        names = {field.name for field in data_type.fields}
        types = dict(part.partition(":")[::2] for part in inside)
        # The declared type keeps the old name of a field that was renamed.
        renamed = {index: text for index, (name, text) in enumerate(types.items()) if name not in names}
        texts = [types.get(item.name, renamed.get(index, "")) for index, item in enumerate(data_type.fields)]
        fields = [
            replace(item, type=_with_char_lengths(item.type, text))
            for item, text in zip(data_type.fields, texts, strict=True)
        ]
        return replace(data_type, fields=tuple(fields))
    if data_type.root == "array" and data_type.element and len(inside) == 1:
        return replace(data_type, element=_with_char_lengths(data_type.element, inside[0]))
    if data_type.root == "map" and data_type.key and data_type.element and len(inside) == 2:  # noqa: PLR2004 - key and value
        key, element = _with_char_lengths(data_type.key, inside[0]), _with_char_lengths(data_type.element, inside[1])
        return replace(data_type, key=key, element=element)
    return data_type


def _type_arguments(declared: str) -> list[str]:
    """Return the parts in the angle brackets of a type: `int` and `array<char(2)>` for `map<int,array<char(2)>>`."""
    parts, depth = [""], 0
    for letter in declared.partition("<")[2].removesuffix(">"):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where a text is expected")
    return value


def parse_type(raw: object, mode: Mode = "none") -> DeltaDataType:
    """Return the type from its notation in a schema, text or an object; errors as `parse_fields`.

    A user-defined type, such as a vector of Spark's ML library, is the type that it is stored as.
    """
    if isinstance(raw, str):
        return _primitive(raw)
    if not isinstance(raw, Mapping):
        raise TypeError(f"{raw!r} is not a type")
    root = _text(raw["type"])
    if root == "udt" and "sqlType" in raw:
        return replace(parse_type(raw["sqlType"]), user_defined=True)
    if root == "struct":
        return DeltaDataType(root=root, fields=parse_fields(raw["fields"], mode))
    if root == "array":
        nullable = bool(raw.get("containsNull", True))
        return DeltaDataType(root=root, element=parse_type(raw["elementType"], mode), element_nullable=nullable)
    if root == "map":
        return DeltaDataType(
            root=root,
            key=parse_type(raw["keyType"], mode),
            element=parse_type(raw["valueType"], mode),
            element_nullable=bool(raw.get("valueContainsNull", True)),
        )
    return DeltaDataType(root=root)


@lru_cache(256)
def _primitive(text: str) -> DeltaDataType:
    # The only parameter of a geography may be its interpolation.
    if spatial := spatial_type(_EDGES_ALONE.sub(r"geography(OGC:CRS84, \1)", text)):
        return DeltaDataType(root=spatial.root, spatial=spatial)
    if text in _ARROW:
        return DeltaDataType(root=text)
    if text == "null":  # Spark 3.0 and older
        return DeltaDataType(root="void")
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            raise ValueError(f"{text!r} is not a type")
        return DeltaDataType(root="decimal", precision=precision, scale=scale)
    if _TEXT.fullmatch(text):
        return DeltaDataType(root="string")
    return DeltaDataType(root=text)


def is_known(data_type: DeltaDataType) -> bool:
    """Return whether a type, and the types in it, are supported."""
    if data_type.root in _ARROW:
        return True
    return data_type.root in ("decimal", "array", "map", "struct") and all(is_known(part) for part in parts(data_type))


def parts(data_type: DeltaDataType) -> list[DeltaDataType]:
    """Return the types in a type."""
    if data_type.element is None and not data_type.fields:
        return []  # the usual case
    return [part for part in (data_type.key, data_type.element) if part] + [field.type for field in data_type.fields]


def collation_of(field: DeltaField) -> str | None:
    """Return the first collation in a field; None if it has none."""
    if field.collation or (field.type.element is None and not field.type.fields):
        return field.collation  # the usual case
    inside = (collation_of(item) for data_type in _tree(field.type) for item in data_type.fields)
    return next((collation for collation in inside if collation), None)


def _tree(data_type: DeltaDataType) -> Iterator[DeltaDataType]:
    yield data_type
    for part in (data_type.key, data_type.element):
        if part is not None:
            yield from _tree(part)


def has(data_type: DeltaDataType, root: str) -> bool:
    """Return whether a type, or a type in it, has a root."""
    return data_type.root == root or any(has(part, root) for part in parts(data_type))


def arrow_type(data_type: DeltaDataType) -> pa.DataType:
    """Return the Arrow type of a type.

    A timestamp has microseconds in UTC, a timestamp_ntz microseconds without a zone. Texts are plain strings. A variant
    is a struct of value and metadata, both binary. A geometry or geography is WKB.
    """
    if data_type.root in _ARROW:
        return _ARROW[data_type.root]
    if data_type.root == "decimal":
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.root == "struct":
        return pa.struct([arrow_field(field) for field in data_type.fields])
    if data_type.root == "array" and data_type.element:
        return pa.list_(_part("element", data_type.element, nullable=data_type.element_nullable))
    if data_type.root == "map" and data_type.element and data_type.key:
        value = _part("value", data_type.element, nullable=data_type.element_nullable)
        return pa.map_(arrow_type(data_type.key), value)
    raise refusal(features.UNREAD_TYPES, type=data_type.root)


def _part(name: str, data_type: DeltaDataType, *, nullable: bool) -> pa.Field:
    return pa.field(name, arrow_type(data_type), nullable=nullable, metadata=_metadata(data_type))


def arrow_field(field: DeltaField) -> pa.Field:
    """Return the Arrow field of a column.

    Its metadata has the collation of its texts, if they have one, or the parameters of a geometry or geography.
    """
    collation = collation_of(field)
    more = _metadata(field.type) if collation is None else {"collation": collation}
    return pa.field(field.name, arrow_type(field.type), nullable=field.nullable, metadata=more)


def _metadata(data_type: DeltaDataType) -> dict[str, str] | None:
    return None if data_type.spatial is None else dict(data_type.spatial.metadata)


def field_ids(data_type: DeltaDataType, stored: str | None = None) -> FieldIds:
    """Return a field's name in data files with the names of the fields nested in its type.

    Unlike ids, these names are the same before and after column mapping was enabled.
    """
    if data_type.root == "struct":
        return FieldIds(id=stored, parts=tuple(field_ids(field.type, field.stored) for field in data_type.fields))
    return FieldIds(id=stored, parts=tuple(field_ids(part) for part in (data_type.key, data_type.element) if part))


def type_text(data_type: DeltaDataType) -> str:
    """Return a type in one line: long, decimal(10,2), array<string>, map<string,long>, struct<a:long,b:date>."""
    if data_type.spatial is not None:
        return str(data_type.spatial)
    if data_type.root == "decimal":
        return f"decimal({data_type.precision},{data_type.scale})"
    if data_type.root == "struct":
        return f"struct<{','.join(f'{field.name}:{type_text(field.type)}' for field in data_type.fields)}>"
    if data_type.root in ("array", "map"):
        return f"{data_type.root}<{','.join(type_text(part) for part in (data_type.key, data_type.element) if part)}>"
    return data_type.root


def pad_texts(values: pa.Array, data_type: DeltaDataType) -> pa.Array:
    """Return values of a type. Values of char(n) are padded with spaces.

    Writers may omit the spaces, and Delta's own reader adds them.
    """
    return values if data_type.char_length is None else pc.utf8_rpad(values, data_type.char_length)


_INTEGERS = {"byte": 1, "short": 2, "integer": 4, "long": 8}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point that a decimal needs to represent every value."""


def is_widening(before: DeltaDataType, after: DeltaDataType) -> bool:
    """Return whether a change of an atomic type preserves every value."""
    if replace(before, char_length=None) == replace(after, char_length=None) or before.root == "void":
        return True
    if before.root in _INTEGERS and after.root in _INTEGERS:
        return _INTEGERS[before.root] < _INTEGERS[after.root]
    if after.root == "double":
        return before.root in ("float", "byte", "short", "integer")
    if after.root == "decimal" and before.root in _DIGITS:
        return after.precision - after.scale >= _DIGITS[before.root]
    if before.root == after.root == "decimal":
        more = after.scale - before.scale
        return 0 <= more <= after.precision - before.precision
    return before.root == "date" and after.root == "timestamp_ntz"


def is_allowed(before: str, after: str) -> bool:
    """Return whether a change in a schema is supported."""
    try:
        return is_widening(parse_type(before), parse_type(after))
    except ValueError:
        return False
