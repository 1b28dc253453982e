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

_TYPES: Mapping[str, tuple[pa.DataType, str]] = {
    "boolean": (pa.bool_(), "BOOLEAN"),
    "int8": (pa.int8(), "TINYINT"),
    "int16": (pa.int16(), "SMALLINT"),
    "int32": (pa.int32(), "INTEGER"),
    "int64": (pa.int64(), "BIGINT"),
    "int128": (pa.string(), "VARCHAR"),
    "uint8": (pa.uint8(), "UTINYINT"),
    "uint16": (pa.uint16(), "USMALLINT"),
    "uint32": (pa.uint32(), "UINTEGER"),
    "uint64": (pa.uint64(), "UBIGINT"),
    "uint128": (pa.string(), "VARCHAR"),
    "float32": (pa.float32(), "FLOAT"),
    "float64": (pa.float64(), "DOUBLE"),
    "varchar": (pa.string(), "VARCHAR"),
    "json": (pa.string(), "VARCHAR"),
    "uuid": (pa.string(), "VARCHAR"),
    "blob": (pa.binary(), "BLOB"),
    "geometry": (pa.binary(), "GEOMETRY"),
    "date": (pa.date32(), "DATE"),
    "time": (pa.time64("us"), "TIME"),
    "timetz": (pa.time64("us"), "VARCHAR"),
    "time_ns": (pa.time64("ns"), "TIME_NS"),
    "timestamp": (pa.timestamp("us"), "TIMESTAMP"),
    "timestamp_us": (pa.timestamp("us"), "TIMESTAMP"),
    "timestamp_s": (pa.timestamp("us"), "TIMESTAMP"),
    "timestamp_ms": (pa.timestamp("ms"), "TIMESTAMP_MS"),
    "timestamp_ns": (pa.timestamp("ns"), "TIMESTAMP_NS"),
    "timestamptz": (pa.timestamp("us", tz="UTC"), "TIMESTAMP WITH TIME ZONE"),
    "interval": (pa.month_day_nano_interval(), "INTERVAL"),
    "unknown": (pa.null(), "VARCHAR"),
    "variant": (
        pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]),
        "VARIANT",
    ),
}
"""The types of the catalog, each with the Arrow type of its values and the type in DuckDB's SQL that is read as it.

128-bit integers are text: decimals of Arrow and Spark have at most 38 digits, and they can have 39. Times with a zone
are the time of day in UTC, which is what data files contain."""
NESTED = ("struct", "list", "map")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
WIDE_INTEGERS = ("int128", "uint128")
TIMESTAMPS = ("timestamp", "timestamp_us", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz")
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
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


def decimal_of(dtype: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal; None for another type."""
    match = _DECIMAL.fullmatch(dtype)
    if match is None or not 1 <= int(match[1]) <= 38 or int(match[2]) > int(match[1]):  # noqa: PLR2004 - DuckDB's most
        return None
    return int(match[1]), int(match[2])


def root_of(dtype: str) -> str:
    """Return a type without its parameters."""
    if _GEOMETRY.fullmatch(dtype):
        return "geometry"
    return "decimal" if decimal_of(dtype) else dtype


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
    decimal = decimal_of(field.type)
    if decimal is not None:
        return pa.decimal128(*decimal)
    known = _TYPES.get(root_of(field.type))
    if known is None:
        raise refusal(features.UNKNOWN_TYPES, column=field.name, type=field.type)
    return known[0]


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
    decimal = decimal_of(field.type)
    if decimal is not None:
        return f"DECIMAL({decimal[0]},{decimal[1]})"
    return _TYPES[root_of(field.type)][1]


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
