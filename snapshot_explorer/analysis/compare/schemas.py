"""Compare two schemas, or two sets of properties."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Column, TableSchema

_Row = tuple[str, int | None, str | None, str | None, str | None]
_WIDER = (
    ("byte", "tinyint", "short", "smallint", "int", "integer", "bigint", "long"),
    ("float", "double"),
    ("char", "varchar", "string"),
    ("binary", "varbinary", "bytes"),
    ("date", "timestamp", "timestamp_ntz"),
)
"""Type names. Each type contains all values of the types before it on its line."""
_TYPE = re.compile(r"([a-z_]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(.*)", re.DOTALL)


def compare_schemas(a: TableSchema, b: TableSchema) -> pa.Table:
    """Return the changes from schema `a` to `b`: COMPARED_SCHEMAS, a row per change, none for equal schemas.

    Columns match by field id; if a schema has none, as in a Delta table before column mapping, by name. A change is
    added, dropped, renamed, widened (every value fits), narrowed, retyped, nullable, not null, comment, reordered
    (the names of the columns that both have, in order), primary key or partition key.
    """
    if (a.columns, a.partition_keys, a.primary_keys) == (b.columns, b.partition_keys, b.primary_keys):
        return frames.COMPARED_SCHEMAS.empty_table()
    if any(column.id is None for schema in (a, b) for column in schema.columns):
        a, b = _without_ids(a), _without_ids(b)
    rows = [*_columns(a, b), *_order(a, b), *_keys(a, b)]
    return _table(rows, frames.COMPARED_SCHEMAS)


def compare_properties(a: Mapping[str, str], b: Mapping[str, str]) -> pa.Table:
    """Return the changes from properties `a` to `b`: COMPARED_PROPERTIES, sorted by name."""
    rows = [
        ("added" if name not in a else "removed" if name not in b else "changed", name, a.get(name), b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]
    return _table(rows, frames.COMPARED_PROPERTIES)


def partition_names(a: TableSchema, b: TableSchema) -> dict[str, str]:
    """Return the new names of partition columns that were renamed from `a` to `b`."""
    before, after = ({column.id: column.name for column in schema.columns} for schema in (a, b))
    both = [(name, after.get(number)) for number, name in before.items() if number is not None]
    return {name: new for name, new in both if name in a.partition_keys and new not in (None, name)}


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(values, dtype) for values, dtype in zip(columns, schema.types, strict=True)], schema=schema
    )


def _without_ids(schema: TableSchema) -> TableSchema:
    return replace(schema, columns=tuple(replace(column, id=None) for column in schema.columns))


def _key(column: Column) -> int | str:
    return column.name if column.id is None else column.id


def _columns(a: TableSchema, b: TableSchema) -> Iterator[_Row]:
    before = {_key(column): column for column in a.columns}
    after = {_key(column): column for column in b.columns}
    for key, column in before.items():
        if key not in after:
            yield "dropped", column.id, column.name, _type_text(column), None
    for key, column in after.items():
        if key not in before:
            yield "added", column.id, column.name, None, _type_text(column)
        else:
            yield from _changes(before[key], column)


def _type_text(column: Column) -> str:
    return column.type if column.nullable or _ends_with_not_null(column.type) else f"{column.type} NOT NULL"


def _ends_with_not_null(type_name: str) -> bool:
    return type_name.upper().endswith("NOT NULL")


def _changes(before: Column, after: Column) -> Iterator[_Row]:
    about = after.id, after.name
    if before.name != after.name:
        yield "renamed", *about, before.name, after.name
    types = _bare(before.type), _bare(after.type)
    if types[0] != types[1]:
        yield _retyping(*types), *about, before.type, after.type
    if before.nullable != after.nullable:
        words = {True: "nullable", False: "not null"}
        yield words[after.nullable], *about, words[before.nullable], words[after.nullable]
    if before.comment != after.comment:
        yield "comment", *about, before.comment, after.comment


def _bare(type_name: str) -> str:
    return re.sub(r"\s+not null$", "", type_name, flags=re.IGNORECASE)


def _retyping(before: str, after: str) -> str:
    """Return whether one type widens or narrows to another, or neither."""
    wider, narrower = _fits(before, after), _fits(after, before)
    if wider == narrower:
        return "retyped"
    return "widened" if wider else "narrowed"


def _fits(narrow: str, wide: str) -> bool:
    before, other = (_TYPE.fullmatch(type_name.strip().lower()) for type_name in (narrow, wide))
    if before is None or other is None or before[4] != other[4]:
        return False
    if before[1] == other[1]:
        return _size_fits(before[1], _sizes(before), _sizes(other))
    order = next((line for line in _WIDER if before[1] in line and other[1] in line), ())
    if not order or order.index(before[1]) > order.index(other[1]):
        return False
    lengths = _sizes(before), _sizes(other)
    # The length of a type with a length, such as CHAR and VARCHAR, must not shrink.
    return lengths[1] == () or lengths[0] == () or lengths[0] <= lengths[1]


def _sizes(match: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(size) for size in match.group(2, 3) if size is not None)


def _size_fits(name: str, narrow: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Return whether the parameters of a type, such as its length, are at least as large as another type's."""
    if name == "decimal":
        digits, scale = (*narrow, 0, 0)[:2]
        more, finer = (*wide, 0, 0)[:2]
        return finer >= scale and more - finer >= digits - scale
    return len(narrow) == len(wide) == 1 and narrow <= wide


def _order(a: TableSchema, b: TableSchema) -> Iterator[_Row]:
    both = {_key(column) for column in a.columns} & {_key(column) for column in b.columns}
    before, after = ([column for column in schema.columns if _key(column) in both] for schema in (a, b))
    if [_key(column) for column in before] != [_key(column) for column in after]:
        yield "reordered", None, None, _name_list(column.name for column in before), _name_list(c.name for c in after)


def _keys(a: TableSchema, b: TableSchema) -> Iterator[_Row]:
    for word, before, after in (
        ("primary key", a.primary_keys, b.primary_keys),
        ("partition key", a.partition_keys, b.partition_keys),
    ):
        names = {_key(column): column.name for column in b.columns}
        now = {column.name: names.get(_key(column), column.name) for column in a.columns}
        # A key column that was only renamed is the same key.
        if tuple(now.get(name, name) for name in before) != after:
            yield word, None, None, _name_list(before) or None, _name_list(after) or None


def _name_list(names: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(names)
