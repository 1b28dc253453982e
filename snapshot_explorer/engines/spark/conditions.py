"""Translate conditions to Spark columns, for its readers, if they mean the same in DuckDB and Spark; and filters back.

Translates the skipping expressions whose constants have the type of their column: comparisons, IN, BETWEEN, IS NULL,
and AND, OR and NOT over them.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_, ge, gt, le, lt, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.engines import data_skipping
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.engines.duckdb_sessions import locked_cursor
from snapshot_explorer.engines.spark.schemas import quote_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import duckdb
    from pyspark.sql import Column

    from snapshot_explorer.engines.conditions import Condition


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_INTEGERS = frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_EXACT = 2**53
"""Up to here, doubles represent integers exactly."""
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_DATE = re.compile(r"(?!0000)\d{4}-\d{2}-\d{2}", re.ASCII)


class _NotTranslatableError(Exception):
    """A part of the condition may have another meaning in Spark."""


def translate_condition(condition: Condition, schema: pa.Schema) -> Column | None:
    """Return the condition as a Spark column; it is null or false for rows that do not match.

    None if it might have another meaning in Spark.
    """
    try:
        with locked_cursor() as cursor:
            return _passes(data_skipping.And(tuple(part.expression for part in condition.parts)), schema, cursor)
    except (_NotTranslatableError, RecursionError):
        return None


def _passes(
    expression: data_skipping.SkippingExpression, schema: pa.Schema, cursor: duckdb.DuckDBPyConnection
) -> Column:
    from pyspark.sql import functions as f

    match expression:
        case data_skipping.Or(parts) if (compared := _compared_values(parts, schema)) is not None:
            column, constants = compared
            return f.col(quote_column(column)).isin(
                [_literal(item, schema.field(column).type, cursor) for item in constants]
            )
        case data_skipping.And(parts) | data_skipping.Or(parts):
            joined = and_ if isinstance(expression, data_skipping.And) else or_
            return reduce(joined, [_passes(part, schema, cursor) for part in parts])
        case data_skipping.Not(part):
            return ~_passes(part, schema, cursor)
        case data_skipping.IsNull(column):
            return f.col(quote_column(column)).isNull()
        case data_skipping.IsTrue(column):
            return f.col(quote_column(column))
        case data_skipping.Inequality(column, operator, limit):
            comparison: Column = _COMPARISONS[operator](
                f.col(quote_column(column)), _literal(limit, schema.field(column).type, cursor)
            )
            return comparison
        case data_skipping.Between(column, low, high):
            values = f.col(quote_column(column))
            first, last = (_literal(limit, schema.field(column).type, cursor) for limit in (low, high))
            return values == first if low is high else (values >= first) & (values <= last)
    raise _NotTranslatableError


def _compared_values(
    parts: Sequence[data_skipping.SkippingExpression], schema: pa.Schema
) -> tuple[str, list[data_skipping.Constant]] | None:
    """Return the column and the values of an IN; None for other parts.

    Not of doubles: for many values Spark builds a hash table, in which -0.0 is not 0.0.
    """
    equal = [part for part in parts if isinstance(part, data_skipping.Between) and part.low is part.high]
    columns = {part.column for part in equal}
    if len(equal) < len(parts) or len(columns) > 1 or schema.field(equal[0].column).type == pa.float64():
        return None
    return equal[0].column, [part.low for part in equal]


def _literal(constant: data_skipping.Constant, dtype: pa.DataType, cursor: duckdb.DuckDBPyConnection) -> Column:
    """Return a constant that has the type of its column, or is text of a date, or an integer for doubles."""
    from pyspark.sql import functions as f

    ((value,),) = cursor.execute(f"SELECT {constant.text}").fetchall()
    match value:
        case bool() if dtype == pa.bool_():
            return f.lit(value)
        case int() if dtype in _INTEGERS and _MIN_LONG <= value <= _MAX_LONG:
            return f.lit(value)
        case int() if dtype == pa.float64() and abs(value) <= _EXACT:
            return f.lit(float(value))
        case str() if dtype == pa.string():
            return f.lit(value)
        case str() if dtype == pa.date32() and _DATE.fullmatch(value):
            with suppress(ValueError):
                return f.lit(date.fromisoformat(value))
        case date() if dtype == pa.date32() and date.min < value < date.max:  # DuckDB returns infinite ones as these
            return f.lit(value)
    raise _NotTranslatableError


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
    for text in filter(None, (filter_to_sql(each, schema) for each in filters)):
        try:
            pushed = parse_condition(text if pushed is None else f"(\n{pushed.text}\n) AND {text}", schema)
        except (InvalidArgumentError, UnsupportedFeatureError):
            continue  # for example, columns whose names differ only in case, or that have a collation
    return pushed


def filter_to_sql(pushed_filter: object, schema: pa.Schema) -> str | None:
    """Return a filter as a condition that is true and false for the same rows, or None."""
    filter_name = type(pushed_filter).__name__
    if filter_name == "Not":
        child = filter_to_sql(getattr(pushed_filter, "child"), schema)  # noqa: B009 - known by its name: PySpark 4.0 has no filters
        return child and f"(NOT {child})"
    path: tuple[str, ...] = getattr(pushed_filter, "attribute", ())
    column = _filtered_column(path, schema)
    return column and _on(filter_name, column, getattr(pushed_filter, "value", None))


def _filtered_column(path: tuple[str, ...], schema: pa.Schema) -> pa.Field | None:
    """Return the column of a filter; None for a field of a struct, or a column with another type in Spark."""
    return schema.field(path[0]) if len(path) == 1 and schema.names.count(path[0]) == 1 else None


def _on(filter_name: str, column: pa.Field, value: Any) -> str | None:
    name = '"' + column.name.replace('"', '""') + '"'
    if filter_name in ("IsNull", "IsNotNull") or (filter_name == "EqualNullSafe" and value is None):
        return f"({name} IS {'NOT ' if filter_name == 'IsNotNull' else ''}NULL)"
    if filter_name == "In":
        values = [_filter_literal(each, column.type) for each in value[: _MAX_VALUES + 1]]
        is_whole = 0 < len(values) <= _MAX_VALUES and None not in values
        return f"({name} IN ({', '.join(map(str, values))}))" if is_whole else None
    literal = _filter_literal(value, column.type)
    if literal is None:
        return None
    if filter_name in _COMPARED:
        return f"({name} {_COMPARED[filter_name]} {literal})"
    if filter_name in _SEARCHED and _is_text(column.type):
        return f"{_SEARCHED[filter_name]}({name}, {literal})"
    return f"({name} IS NOT DISTINCT FROM {literal})" if filter_name == "EqualNullSafe" else None


def _filter_literal(value: Any, dtype: pa.DataType) -> str | None:
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
