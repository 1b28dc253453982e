"""Columns that a data file lacks: null if they were added later, refused if the log or the file contradicts this."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.text import list_names
from snapshot_explorer.formats.delta.files.columns import Origin, field_id, stored_fields
from snapshot_explorer.formats.delta.metadata.data_types import DeltaField
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema

_MAX_NAMES = 5
_ADVICE = "It may have been overwritten, or written for another table; compare it with a copy of the table."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedColumns:
    """Expected columns of a data file, from the log."""

    schema: DeltaSchema
    stats: str | None
    """The file's statistics in the log, JSON; None if the log has none as text."""


def check_absent(
    expected: ExpectedColumns,
    absent: Sequence[DeltaField],
    file_schema: pa.Schema,
    origin: Origin,
    *,
    rows: int,
    lacks_all: bool,
) -> None:
    """Check that a file's absent columns can have been added later.

    A column that the file lacks is null. The file is refused if its statistics count values of the column. It is also
    refused if it contains other columns but none of the table's, unless it could have been written that way:

    - its statistics count only nulls in the table's columns, or
    - columns are mapped, and each of the file's columns could have been dropped since: it has no id, or an id that a
      former column of the table had.
    """
    known = {field.name for field in expected.schema.fields}
    absent = [field for field in absent if field.name in known and field.type.root != "void"]
    if not rows or not absent:
        return
    statistics = parse_statistics(expected.stats)
    with_values = [field.name for field in absent if has_values(statistics, field.stored)]
    if with_values:
        raise CorruptTableError(
            f"The data file {origin.path} has no column {with_values[0]!r}, but its statistics in the log count values "
            f"of it. {_ADVICE}"
        )
    if lacks_all:
        _check_others(expected.schema, statistics, file_schema, origin, rows)


def parse_statistics(stats: str | None) -> Mapping[str, Any]:
    """Return statistics as a mapping; empty without any."""
    try:
        statistics = orjson.loads(stats or "{}")
    except orjson.JSONDecodeError:
        return {}
    return statistics if isinstance(statistics, dict) else {}


def has_values(statistics: Mapping[str, Any], stored: str) -> bool:
    """Return whether statistics prove that a file contains a value of a column.

    If rows were deleted since, a null count is exact only if it is zero.
    """
    rows, count = statistics.get("numRecords"), _statistic(statistics, "nullCount", stored)
    if (
        _statistic(statistics, "minValues", stored) is not None
        or _statistic(statistics, "maxValues", stored) is not None
    ):
        return True
    if type(rows) is not int or type(count) is not int or not rows:
        return False
    return count == 0 or (statistics.get("tightBounds") is not False and count < rows)


def required_columns(stats: str | None, names: Sequence[str]) -> frozenset[str]:
    """Return the columns that a file must contain, by its statistics; as stored names."""
    statistics = parse_statistics(stats)
    return frozenset(name for name in names if has_values(statistics, name))


def _check_others(
    schema: DeltaSchema, statistics: Mapping[str, Any], file_schema: pa.Schema, origin: Origin, rows: int
) -> None:
    partitions = {name.lower() for field in schema.partition_fields for name in (field.name, field.stored)}
    data = [field for field in schema.fields if field.name not in schema.partition_columns]
    others = [item for item in file_schema if item.name.lower() not in partitions]
    if not others or any(stored is not None for stored in stored_fields(data, file_schema, origin)):
        return
    if any(_statistic(statistics, "nullCount", field.stored) == rows for field in data):
        return
    ids = {field.id for field in schema.fields}
    unexplained = [
        item
        for item in others
        if origin.mode == "none" or ((number := field_id(item)) is not None and _is_unexplained(number, ids, schema))
    ]
    if unexplained:
        own_names = list_names([repr(field.stored) for field in data], _MAX_NAMES)
        stored_names = list_names([repr(item.name) for item in others], _MAX_NAMES)
        raise CorruptTableError(
            f"The data file {origin.path} has {rows} rows and none of the table's columns ({own_names}), but "
            f"{stored_names}. {_ADVICE}"
        )


def _is_unexplained(number: int, ids: set[int | None], schema: DeltaSchema) -> bool:
    return number in ids or (schema.max_id is not None and number > schema.max_id)


def _statistic(statistics: Mapping[str, Any], name: str, stored: str) -> object:
    values = statistics.get(name)
    return values.get(stored) if isinstance(values, dict) else None
