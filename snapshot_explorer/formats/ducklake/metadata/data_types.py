"""Columns of a table at a snapshot, and their types in Arrow and in DuckDB's SQL.

Source: DuckLake specification 1.0, "Data Types"; reference, "Columns and their evolution", "Types".
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.schemas import damaged
from snapshot_explorer.formats.features import refusal


@dataclass(frozen=True, slots=True)
class LakeType:
    """A type of the catalog that is not nested."""

    arrow: pa.DataType
    """The Arrow type of its values."""
    sql: str
    """The type in DuckDB's SQL that is read as it."""
    family: str
    """The key of the conversion that reads its values, in `files`."""
    has_bounds: bool = True
    """Whether its statistics are compared: otherwise the catalog has none, or not in the order of the values."""


_TYPES: Mapping[str, LakeType] = {
    "boolean": LakeType(pa.bool_(), "BOOLEAN", "boolean"),
    "int8": LakeType(pa.int8(), "TINYINT", "integer"),
    "int16": LakeType(pa.int16(), "SMALLINT", "integer"),
    "int32": LakeType(pa.int32(), "INTEGER", "integer"),
    "int64": LakeType(pa.int64(), "BIGINT", "integer"),
    "int128": LakeType(pa.string(), "VARCHAR", "wide integer", has_bounds=False),
    "uint8": LakeType(pa.uint8(), "UTINYINT", "integer"),
    "uint16": LakeType(pa.uint16(), "USMALLINT", "integer"),
    "uint32": LakeType(pa.uint32(), "UINTEGER", "integer"),
    "uint64": LakeType(pa.uint64(), "UBIGINT", "integer"),
    "uint128": LakeType(pa.string(), "VARCHAR", "wide integer", has_bounds=False),
    "float32": LakeType(pa.float32(), "FLOAT", "float"),
    "float64": LakeType(pa.float64(), "DOUBLE", "float"),
    "varchar": LakeType(pa.string(), "VARCHAR", "text"),
    "json": LakeType(pa.string(), "VARCHAR", "text"),
    "uuid": LakeType(pa.string(), "VARCHAR", "uuid", has_bounds=False),
    "blob": LakeType(pa.binary(), "BLOB", "bytes", has_bounds=False),
    "geometry": LakeType(pa.binary(), "GEOMETRY", "bytes", has_bounds=False),
    "date": LakeType(pa.date32(), "DATE", "date"),
    "time": LakeType(pa.time64("us"), "TIME", "time"),
    "timetz": LakeType(pa.time64("us"), "VARCHAR", "zoned time", has_bounds=False),
    "time_ns": LakeType(pa.time64("ns"), "TIME_NS", "time", has_bounds=False),
    "timestamp": LakeType(pa.timestamp("us"), "TIMESTAMP", "timestamp"),
    "timestamp_us": LakeType(pa.timestamp("us"), "TIMESTAMP", "timestamp"),
    "timestamp_s": LakeType(pa.timestamp("us"), "TIMESTAMP", "timestamp"),
    "timestamp_ms": LakeType(pa.timestamp("ms"), "TIMESTAMP_MS", "timestamp"),
    "timestamp_ns": LakeType(pa.timestamp("ns"), "TIMESTAMP_NS", "timestamp"),
    "timestamptz": LakeType(pa.timestamp("us", tz="UTC"), "TIMESTAMP WITH TIME ZONE", "timestamp"),
    "interval": LakeType(pa.month_day_nano_interval(), "INTERVAL", "interval", has_bounds=False),
    "unknown": LakeType(pa.null(), "VARCHAR", "unknown", has_bounds=False),
    "variant": LakeType(
        pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]),
        "VARIANT",
        "variant",
        has_bounds=False,
    ),
}
"""The types of the catalog that are not nested, but for decimals.

128-bit integers are text: decimals of Arrow and Spark have at most 38 digits, and they can have 39. Times with a zone
are the time of day in UTC, which is what data files contain."""
_NONE = LakeType(pa.null(), "", "", has_bounds=False)
"""A nested type, or one that is not read."""
NESTED = ("struct", "list", "map")
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_MAX_DIGITS = 38
"""Of a decimal of DuckDB."""
_GEOMETRY = re.compile(r"geometry(\(.*\))?", re.DOTALL)
_MAX_DEPTH = 64
"""The maximum number of levels of nested columns."""
_PARTS = {"list": 1, "map": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeField:
    """A column of a table, or a field in a nested one."""

    id: int
    """Its id, unique in the table, which is the field id in data files. Renames keep it."""
    name: str
    type: str
    """The type in the catalog: `int32`, `decimal(10,2)`, `struct`, `list`, `map`."""
    nullable: bool
    initial_default: str | None
    """The value in files that lack the field, as text; None for null."""
    children: tuple["LakeField", ...] = ()
    """The fields of a struct, the items of a list, the keys and values of a map."""


def fields_of(columns: pa.Table, table: str) -> tuple[LakeField, ...]:
    """Return the fields of a table's live columns, in order.

    Args:
        columns: The live rows of ducklake_column.
        table: The name of the table, for messages.

    Raises:
        CorruptTableError: Ids are not unique, a parent does not exist, or columns are within themselves.
    """
    rows = sorted(columns.to_pylist(), key=lambda row: (row["column_order"] is None, row["column_order"]))
    children: dict[int | None, list[Mapping[str, Any]]] = {}
    for row in rows:
        children.setdefault(row["parent_column"], []).append(row)
    counts = Counter(row["column_id"] for row in rows)
    twice = [number for number, count in counts.items() if count > 1]
    unknown = [number for number in children if number is not None and number not in counts]
    if twice or unknown:
        what = f"two columns with the id {twice[0]}" if twice else f"a column whose parent {unknown[0]} does not exist"
        raise damaged(f"The table {table} has {what}.")

    def fields(parent: int | None, depth: int) -> tuple[LakeField, ...]:
        if depth > _MAX_DEPTH:
            raise damaged(f"The table {table} has columns within each other to more than {_MAX_DEPTH} levels.")
        return tuple(_field(row, fields(row["column_id"], depth + 1), table) for row in children.get(parent, ()))

    result = fields(None, 0)
    if sum(1 for _ in walk(result)) < len(rows):
        raise damaged(f"The table {table} has columns that contain themselves.")
    return result


def _field(row: Mapping[str, Any], children: tuple[LakeField, ...], table: str) -> LakeField:
    name, dtype = row["column_name"], row["column_type"].lower()
    if len(children) != _PARTS.get(dtype, len(children)) or (children and dtype not in NESTED):
        raise damaged(f"The table {table} has {len(children)} columns in the column {name!r} of type {dtype}.")
    return LakeField(
        id=row["column_id"],
        name=name,
        type=dtype,
        # DuckDB records fields that were added to a struct as not null, and enforces it for columns alone.
        nullable=row["nulls_allowed"] is not False or row["parent_column"] is not None,
        initial_default=row["initial_default"],
        children=children,
    )


def walk(fields: Sequence[LakeField]) -> Iterator[LakeField]:
    """Yield fields and the fields in them."""
    for field in fields:
        yield field
        yield from walk(field.children)


def type_text(field: LakeField) -> str:
    """Return a type as DuckDB writes it, such as `struct(a int32, b varchar[])`."""
    match field.type:
        case "struct":
            return f"struct({', '.join(f'{child.name} {type_text(child)}' for child in field.children)})"
        case "list":
            return f"{type_text(field.children[0])}[]"
        case "map":
            return f"map({', '.join(type_text(child) for child in field.children)})"
    return field.type


@cache
def type_of(dtype: str) -> LakeType:
    """Return a type by its name; `_NONE` if it is nested, or not read."""
    if _GEOMETRY.fullmatch(dtype):
        return _TYPES["geometry"]
    decimal = _DECIMAL.fullmatch(dtype)
    if decimal is None:
        return _TYPES.get(dtype, _NONE)
    precision, scale = int(decimal[1]), int(decimal[2])
    if not 1 <= precision <= _MAX_DIGITS or scale > precision:
        return _NONE
    return LakeType(pa.decimal128(precision, scale), f"DECIMAL({precision},{scale})", "decimal")


@cache
def arrow_type(field: LakeField) -> pa.DataType:
    """Return the Arrow type of a field's values.

    Raises:
        UnsupportedFeatureError: The type is not read; the message names it and the column.
    """
    match field.type:
        case "struct":
            return pa.struct([arrow_field(child) for child in field.children])
        case "list":
            return pa.list_(pa.field("element", arrow_type(field.children[0])))
        case "map":
            key, value = field.children
            return pa.map_(arrow_type(key), arrow_type(value))
    known = type_of(field.type)
    if known is _NONE:
        raise refusal(features.UNKNOWN_TYPES, column=field.name, type=field.type)
    return known.arrow


def arrow_field(field: LakeField) -> pa.Field:
    """Return the Arrow field of a field."""
    return pa.field(field.name, arrow_type(field), nullable=field.nullable)


def sql_type(field: LakeField) -> str:
    """Return the type in DuckDB's SQL from which `arrow_type` is read; only words of this module and quoted names."""
    match field.type:
        case "struct":
            return f"STRUCT({', '.join(f'{quoted(child.name)} {sql_type(child)}' for child in field.children)})"
        case "list":
            return f"{sql_type(field.children[0])}[]"
        case "map":
            return f"MAP({', '.join(sql_type(child) for child in field.children)})"
    arrow_type(field)  # refuses types that are not read
    return type_of(field.type).sql


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
