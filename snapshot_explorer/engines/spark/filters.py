"""Translate Spark's pushed filters to SQL conditions, to skip partitions, buckets and files.

Spark applies every filter again, so leaving one out here costs only time. A translated filter must be true wherever it
is true in Spark.
"""

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from snapshot_explorer.engines.conditions import Condition, condition
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError

_COMPARED = {"EqualTo": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<="}
_SEARCHED = {"StringStartsWith": "starts_with", "StringEndsWith": "ends_with", "StringContains": "contains"}
_MAX_VALUES = 1000
"""The maximum number of values of an IN: more are slow to parse and rarely skip a file."""
_DIGITS = 38
"""The maximum number of digits of DuckDB's decimals."""


def pushed_condition(filters: Iterable[object], schema: pa.Schema, where: Condition | None = None) -> Condition | None:
    """Return a condition that all rows match that match all filters and `where`; None if nothing can be skipped.

    Args:
        filters: Filters of `pyspark.sql.datasource`, joined by AND.
    """
    pushed = where
    for text in filter(None, (sql(each, schema) for each in filters)):
        try:
            pushed = condition(text if pushed is None else f"(\n{pushed.text}\n) AND {text}", schema)
        except (InvalidArgumentError, UnsupportedFeatureError):
            continue  # for example, columns whose names differ only in case, or that have a collation
    return pushed


def sql(pushed_filter: object, schema: pa.Schema) -> str | None:
    """Return a filter as a condition that is true and false for the same rows; None if there is none."""
    filter_name = type(pushed_filter).__name__
    if filter_name == "Not":
        child = sql(getattr(pushed_filter, "child"), schema)  # noqa: B009 - known by its name: PySpark 4.0 has no filters
        return child and f"(NOT {child})"
    path: tuple[str, ...] = getattr(pushed_filter, "attribute", ())
    column = _column(path, schema)
    return column and _on(filter_name, column, getattr(pushed_filter, "value", None))


def _column(path: tuple[str, ...], schema: pa.Schema) -> pa.Field | None:
    """Return the column of a filter; None for a field of a struct, or a column with another type in Spark."""
    return schema.field(path[0]) if len(path) == 1 and schema.names.count(path[0]) == 1 else None


def _on(filter_name: str, column: pa.Field, value: Any) -> str | None:
    name = '"' + column.name.replace('"', '""') + '"'
    if filter_name in ("IsNull", "IsNotNull") or (filter_name == "EqualNullSafe" and value is None):
        return f"({name} IS {'NOT ' if filter_name == 'IsNotNull' else ''}NULL)"
    if filter_name == "In":
        values = [_literal(each, column.type) for each in value[: _MAX_VALUES + 1]]
        is_whole = 0 < len(values) <= _MAX_VALUES and None not in values
        return f"({name} IN ({', '.join(map(str, values))}))" if is_whole else None
    literal = _literal(value, column.type)
    if literal is None:
        return None
    if filter_name in _COMPARED:
        return f"({name} {_COMPARED[filter_name]} {literal})"
    if filter_name in _SEARCHED and _is_text(column.type):
        return f"{_SEARCHED[filter_name]}({name}, {literal})"
    return f"({name} IS NOT DISTINCT FROM {literal})" if filter_name == "EqualNullSafe" else None


def _literal(value: Any, dtype: pa.DataType) -> str | None:
    """Return a value as SQL for DuckDB if it has the column's type, so that both compare alike; else None."""
    match value:
        case bool():
            return str(value) if pa.types.is_boolean(dtype) else None
        case int() if pa.types.is_integer(dtype):
            return f"({value})"
        case float() if pa.types.is_floating(dtype) and math.isfinite(value):
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal() if pa.types.is_decimal(dtype) and value.is_finite():
            return _decimal(value)
        case str() if _is_text(dtype) and "\0" not in value:
            return "'" + value.replace("'", "''") + "'"
        case datetime() if pa.types.is_timestamp(dtype) and dtype.unit != "ns":
            return _timestamp(value, dtype)
        case date() if pa.types.is_date32(dtype) and not isinstance(value, datetime):
            return f"CAST('{value.isoformat()}' AS DATE)"
        case _:
            return None


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _decimal(value: Decimal) -> str | None:
    text = f"{value:f}"
    scale = len(text.partition(".")[2])
    digits = len(text.lstrip("-").replace(".", ""))
    return f"CAST('{text}' AS DECIMAL({digits}, {scale}))" if digits <= _DIGITS else None


def _timestamp(value: datetime, dtype: Any) -> str | None:
    if (dtype.tz is None) != (value.tzinfo is None):
        return None
    return f"CAST('{value.isoformat(' ')}' AS {'TIMESTAMP' if dtype.tz is None else 'TIMESTAMPTZ'})"
