"""Columns that a data file lacks: null where they came later, and refused where the log or the file says otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.delta.files.columns import Origin, field_id, found
from snapshot_explorer.formats.delta.log.data_types import Field
from snapshot_explorer.formats.delta.log.schema import Schema

_NAMED = 5
_ADVICE = "It may have been overwritten, or written for another table; compare it with a copy of the table."


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is known of the columns of a data file before it is opened."""

    schema: Schema
    """The version's columns."""
    stats: str | None
    """The file's statistics in the log, JSON; None where there are none as text."""


def check_absent(
    expected: Expected, absent: Sequence[Field], there: pa.Schema, origin: Origin, *, rows: int, is_none_found: bool
) -> None:
    """Refuse a file whose absent columns cannot all have come later.

    A column is null where the file lacks it. That is refused where the file's statistics count values of the column.
    It is also refused where the file holds none of the table's columns but others, unless it may have been so written:

    - its statistics count only nulls in the table's columns, or
    - columns are mapped, and each of the file's columns may have been dropped since: it has no id, or one that a
      column of the table had and none has now.

    Args:
        expected: What is known of the file.
        absent: Columns that are asked for and that the file lacks.
        there: The file's columns.
        origin: The file, and how columns are found in it.
        rows: How many rows it has.
        is_none_found: Whether no column that is asked for was found.

    Raises:
        CorruptTableError: The file is refused; it is named.
    """
    known = {field.name for field in expected.schema.fields}
    absent = [field for field in absent if field.name in known and field.type.root != "void"]
    if not rows or not absent:
        return
    told = parsed(expected.stats)
    valued = [field.name for field in absent if has_values(told, field.stored)]
    if valued:
        raise CorruptTableError(
            f"The data file {origin.path} has no column {valued[0]!r}, of which its statistics in the log count "
            f"values. {_ADVICE}"
        )
    if is_none_found:
        _check_others(expected.schema, told, there, origin, rows)


def parsed(stats: str | None) -> Mapping[str, Any]:
    """Return statistics as a mapping; an empty one where there are none."""
    try:
        told = orjson.loads(stats or "{}")
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}


def has_values(told: Mapping[str, Any], stored: str) -> bool:
    """Return whether statistics say that a file holds a value of a column.

    Where rows were deleted since, a number of nulls means what it says only where it is zero.
    """
    rows, count = told.get("numRecords"), _of(told, "nullCount", stored)
    if _of(told, "minValues", stored) is not None or _of(told, "maxValues", stored) is not None:
        return True
    if type(rows) is not int or type(count) is not int or not rows:
        return False
    return count == 0 or (told.get("tightBounds") is not False and count < rows)


def present(stats: str | None, names: Sequence[str]) -> frozenset[str]:
    """Return which columns a file holds for certain, by its statistics; by their stored names."""
    told = parsed(stats)
    return frozenset(name for name in names if has_values(told, name))


def _check_others(schema: Schema, told: Mapping[str, Any], there: pa.Schema, origin: Origin, rows: int) -> None:
    partitions = {name.lower() for field in schema.partition_fields for name in (field.name, field.stored)}
    data = [field for field in schema.fields if field.name not in schema.partition_columns]
    others = [item for item in there if item.name.lower() not in partitions]
    if not others or any(place is not None for place in found(data, there, origin)):
        return
    if any(_of(told, "nullCount", field.stored) == rows for field in data):
        return
    ids = {field.id for field in schema.fields}
    foreign = [
        item
        for item in others
        if origin.mode == "none" or ((number := field_id(item)) is not None and _is_foreign(number, ids, schema))
    ]
    if foreign:
        raise CorruptTableError(
            f"The data file {origin.path} has {rows} rows and none of the table's columns "
            f"({_some([field.stored for field in data])}), but {_some([item.name for item in others])}. {_ADVICE}"
        )


def _is_foreign(number: int, ids: set[int | None], schema: Schema) -> bool:
    """Return whether an id is of no dropped column."""
    return number in ids or (schema.greatest_id is not None and number > schema.greatest_id)


def _of(told: Mapping[str, Any], name: str, stored: str) -> object:
    values = told.get(name)
    return values.get(stored) if isinstance(values, dict) else None


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names[:_NAMED]))
    return listed if len(names) <= _NAMED else f"{listed} and {len(names) - _NAMED} more"
