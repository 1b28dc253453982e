"""Translate conditions to Spark columns, for its readers, if they mean the same in DuckDB and Spark.

Translates comparisons of a column with a literal of its own type, IN, BETWEEN, IS NULL, and AND, OR and NOT over them.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_, ge, gt, le, lt, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.engines.conditions import Condition, condition, parsed
from snapshot_explorer.engines.duckdb_ast import children, find
from snapshot_explorer.engines.spark.schemas import quoted
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column

    from snapshot_explorer.engines.conditions import Condition


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "COMPARE_EQUAL": lambda left, right: left == right,
    "COMPARE_NOTEQUAL": lambda left, right: left != right,
    "COMPARE_LESSTHAN": lt,
    "COMPARE_GREATERTHAN": gt,
    "COMPARE_LESSTHANOREQUALTO": le,
    "COMPARE_GREATERTHANOREQUALTO": ge,
}
_MIRRORED = {
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
}
_INTEGERS = frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_TRUTHS = {"true": True, "false": False}
_EXACT = 2**53
"""Up to here, doubles represent integers exactly."""
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)
_DATE = re.compile(r"(?!0000)\d{4}-\d{2}-\d{2}", re.ASCII)


class _NotTranslatableError(Exception):
    """A part of the condition may have another meaning in Spark."""


def translated(condition: Condition, schema: pa.Schema) -> Column | None:
    """Return the condition as a Spark column; it is null or false for rows that do not match.

    None if it might have another meaning in Spark.
    """
    try:
        return _passes(parsed(condition.text), schema)
    except (_NotTranslatableError, RecursionError):
        return None


def _passes(tree: dict[str, Any], schema: pa.Schema) -> Column:
    node_type = str(tree.get("type"))
    if node_type in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
        parts = [_passes(part, schema) for part in children(tree)]
        return reduce(and_ if node_type == "CONJUNCTION_AND" else or_, parts)
    if node_type == "OPERATOR_NOT":
        return ~_passes(_only(children(tree)), schema)
    if node_type in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        column, _ = _column(_only(children(tree)), schema)
        return column.isNull() if node_type == "OPERATOR_IS_NULL" else column.isNotNull()
    if node_type in _COMPARISONS:
        return _compared(node_type, tree, schema)
    if node_type == "COMPARE_BETWEEN":
        return _compared("COMPARE_GREATERTHANOREQUALTO", {"left": tree["input"], "right": tree["lower"]}, schema) & (
            _compared("COMPARE_LESSTHANOREQUALTO", {"left": tree["input"], "right": tree["upper"]}, schema)
        )
    if node_type in ("COMPARE_IN", "COMPARE_NOT_IN"):
        first, *others = children(tree)
        column, column_type = _column(first, schema)
        if column_type == pa.float64():
            raise _NotTranslatableError  # for many values Spark builds a hash table, in which -0.0 is not 0.0
        is_in = column.isin([_literal(other, column_type) for other in others])
        return is_in if node_type == "COMPARE_IN" else ~is_in
    if node_type == "COLUMN_REF":
        column, column_type = _column(tree, schema)
        if column_type == pa.bool_():
            return column
    raise _NotTranslatableError


def _only(trees: list[Any]) -> Any:
    if len(trees) != 1:
        raise _NotTranslatableError
    return trees[0]


def _compared(node_type: str, tree: dict[str, Any], schema: pa.Schema) -> Column:
    left, right = tree["left"], tree["right"]
    if left.get("type") != "COLUMN_REF":
        left, right, node_type = right, left, _MIRRORED.get(node_type, node_type)
    column, column_type = _column(left, schema)
    comparison: Column = _COMPARISONS[node_type](column, _literal(right, column_type))
    return comparison


def _column(tree: dict[str, Any], schema: pa.Schema) -> tuple[Column, pa.DataType]:
    from pyspark.sql import functions as f

    names = tree.get("column_names") or []
    name = find(names[0], schema) if tree.get("type") == "COLUMN_REF" and len(names) == 1 else None
    if name is None:
        raise _NotTranslatableError
    return f.col(quoted(name)), schema.field(name).type


def _literal(tree: dict[str, Any], dtype: pa.DataType) -> Column:
    from pyspark.sql import functions as f

    if tree.get("type") == "OPERATOR_CAST" and dtype == pa.date32():
        if _path(tree.get("type_expr")) != ["date"] or tree.get("try_cast"):
            raise _NotTranslatableError
        tree = tree["child"]
    literal = tree.get("literal") or {}
    literal_kind, text = literal.get("kind"), str(literal.get("text"))
    if tree.get("type") == "VALUE_CONSTANT":
        if literal_kind == "INTEGER" and _INTEGER.fullmatch(text):
            return _number(int(text), dtype)
        if literal_kind == "BOOLEAN" and text in _TRUTHS and dtype == pa.bool_():
            return f.lit(_TRUTHS[text])
        if literal_kind == "STRING" and dtype == pa.string():
            return f.lit(text)
        if literal_kind == "STRING" and dtype == pa.date32():
            return f.lit(_date(text))
    raise _NotTranslatableError


def _path(tree: Any) -> list[str]:
    return [str(part).lower() for part in ((tree or {}).get("qualified_name") or {}).get("path") or ()]


def _number(number: int, dtype: pa.DataType) -> Column:
    from pyspark.sql import functions as f

    if dtype in _INTEGERS and _LEAST <= number <= _GREATEST:
        return f.lit(number)
    if dtype == pa.float64() and abs(number) <= _EXACT:
        return f.lit(float(number))
    raise _NotTranslatableError


def _date(text: str) -> dt.date:
    if _DATE.fullmatch(text):
        try:
            return dt.date.fromisoformat(text)
        except ValueError as error:
            raise _NotTranslatableError from error
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
    for text in filter(None, (sql(each, schema) for each in filters)):
        try:
            pushed = condition(text if pushed is None else f"(\n{pushed.text}\n) AND {text}", schema)
        except (InvalidArgumentError, UnsupportedFeatureError):
            continue  # for example, columns whose names differ only in case, or that have a collation
    return pushed


def sql(pushed_filter: object, schema: pa.Schema) -> str | None:
    """Return a filter as a condition that is true and false for the same rows, or None."""
    filter_name = type(pushed_filter).__name__
    if filter_name == "Not":
        child = sql(getattr(pushed_filter, "child"), schema)  # noqa: B009 - known by its name: PySpark 4.0 has no filters
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
