"""Read projections, filters and limits from DuckDB's plan of a query."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.engines import data_skipping
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.engines.duckdb_ast import quote_identifier

PREFIX = "plan__"
"""The prefix of column names in plans."""
_SCAN = "ARROW_SCAN"
_LIMITS = ("LIMIT", "STREAMING_LIMIT")
_OPTIONAL = "optional:"
"""How filters begin that a scan may ignore. DuckDB before 2.0 applies filters in scans of Arrow data."""
_NAME = re.compile(r"plan__(\d+)__(?:\d+|rows)")


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A scan of a relation in a plan."""

    columns: tuple[str, ...]
    """The columns that it reads, by their names in the plan."""
    condition: str | None
    """The filter directly above the scan, as DuckDB prints it."""
    limit: int | None = None
    """A number of rows that is enough, no matter which; None if all are needed."""


def column_name(number: int, at: int) -> str:
    """Return the name in plans of a relation's column at a position."""
    return f"plan__{number}__{at}"


def rows_name(number: int) -> str:
    """Return the name in plans that represents the rows of a relation if they are only counted."""
    return f"plan__{number}__rows"


def number_of(name: str) -> int | None:
    """Return the relation that a name in a plan belongs to."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def scans(plan: object) -> Sequence[PlannedScan]:
    """Return the scans of a plan in DuckDB's JSON format."""
    return tuple(_scans(plan, "", {}))


def _scans(node: object, parent: str, parent_info: Mapping[str, Any]) -> Iterator[PlannedScan]:
    """Yield the scans in a part of a plan, below a node with this name and these details."""
    if isinstance(node, list):
        for child in node:
            yield from _scans(child, parent, parent_info)
        return
    if not isinstance(node, dict):
        return
    name, info = str(node.get("name", "")).strip(), node.get("extra_info") or {}
    if name.endswith(_SCAN):
        columns, filters = _texts(info, "Projections"), _texts(info, "Filters")
        conditions = [text for text in filters if not text.startswith(_OPTIONAL)]
        if parent == "FILTER":
            conditions += _texts(parent_info, "Expression")
        yield PlannedScan(
            tuple(dict.fromkeys((*columns, *(name[0] for text in filters for name in _NAME.finditer(text))))),
            " AND ".join(conditions if len(conditions) < 2 else (f"({text})" for text in conditions)) or None,  # noqa: PLR2004
            _limit(parent_info) if parent in _LIMITS and not filters else None,
        )
    yield from _scans(node.get("children") or [], name, info)


def _texts(info: Mapping[str, Any], key: str) -> list[str]:
    """Return a detail of a node, which DuckDB writes as a text or as a list of texts, without empty ones."""
    value = info.get(key) or []
    return [text for text in ([value] if isinstance(value, str) else value) if isinstance(text, str) and text]


def _limit(info: Mapping[str, Any]) -> int | None:
    """Return the number of rows that LIMIT and OFFSET need; None if it is computed, or there is no LIMIT."""
    limit, offset = str(info.get("Limit", "")), str(info.get("Offset", "0"))
    return int(limit) + int(offset) if limit.isdecimal() and offset.isdecimal() else None


def limit_of(scans: Sequence[PlannedScan]) -> int | None:
    """Return a number of rows that is enough for all scans of a relation; None if a scan needs all."""
    limits = [scan.limit for scan in scans if scan.limit is not None]
    return max(limits) if limits and len(limits) == len(scans) else None


def condition_of(scans: Sequence[PlannedScan], names: Mapping[str, str], schema: pa.Schema) -> str | None:
    """Return a condition in SQL that matches all rows that the scans of a relation need, or None.

    Uses only comparisons of columns with constants of a compatible type, which mean the same outside of the query.
    Leaving out other filters is safe, since the query evaluates all of its filters again.
    """
    planned = pa.schema([schema.field(column).with_name(name) for name, column in names.items()])
    pushed = [_pushable_parts(scan.condition, planned, names) for scan in scans]
    sides = [side for side in dict.fromkeys(pushed) if side is not None]
    return " OR ".join(f"({side})" for side in sides) if sides and None not in pushed else None


def _pushable_parts(text: str | None, planned: pa.Schema, names: Mapping[str, str]) -> str | None:
    """Return the parts of a filter that mean the same outside the query."""
    if text is None or not _NAME.search(text):
        return None
    try:
        parts = parse_condition(text, planned).parts
    except (InvalidArgumentError, UnsupportedFeatureError):  # depends on more than the values of a row, or a collation
        return None
    exact = [part.expression for part in parts if all(_is_exact(planned.field(name).type) for name in part.columns)]
    return " AND ".join(f"({sql})" for expression in exact if (sql := _to_sql(expression, names))) or None


def _to_sql(expression: data_skipping.SkippingExpression, names: Mapping[str, str]) -> str | None:
    """Return an expression as SQL over the relation's columns; None if it is more than comparisons with constants."""
    match expression:
        case data_skipping.And(parts) | data_skipping.Or(parts):
            sides = [_to_sql(part, names) for part in parts]
            word = " AND " if isinstance(expression, data_skipping.And) else " OR "
            return None if None in sides else word.join(f"({side})" for side in sides)
        case data_skipping.Not(part):
            side = _to_sql(part, names)
            return None if side is None else f"NOT ({side})"
        case data_skipping.IsNull(column):
            return f"{quote_identifier(names[column])} IS NULL"
        case data_skipping.Inequality(column, operator, limit):
            return f"{quote_identifier(names[column])} {operator} {limit.text}"
        case data_skipping.Between(column, low, high):
            name = quote_identifier(names[column])
            return f"{name} = {low.text}" if low is high else f"{name} BETWEEN {low.text} AND {high.text}"
        case _:
            return None


def _is_exact(dtype: pa.DataType) -> bool:
    """Return whether DuckDB prints constants of the type without loss."""
    is_number = pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)
    is_time = pa.types.is_date32(dtype) or (pa.types.is_timestamp(dtype) and dtype.tz is None and dtype.unit == "us")
    return bool(is_number or is_time or pa.types.is_string(dtype))
