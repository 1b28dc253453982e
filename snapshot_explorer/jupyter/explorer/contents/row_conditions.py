"""Conditions in SQL that select rows by their key."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from snapshot_explorer.engines.duckdb_ast import quote_identifier

_LONGEST = 200
"""Characters of a text in a condition."""


def row_conditions(rows: pa.Table, key: Sequence[str], *, keep_places: bool = False) -> list[str]:
    """Return a condition for each row that selects it by its key, in the order of the rows.

    Rows whose key is null or has a value without an exact literal are left out; all if there is no key.

    Args:
        rows: The rows.
        key: The columns that identify a row.
        keep_places: Whether a row that is left out becomes empty text.
    """
    if not key or any(name not in rows.column_names for name in key):
        return []
    columns = [
        [comparison(name, "=", scalar) if scalar.is_valid else None for scalar in rows.column(name)] for name in key
    ]
    terms = zip(*columns, strict=True)
    texts = [" and ".join(term for term in row if term is not None) if None not in row else "" for row in terms]
    return texts if keep_places else [text for text in texts if text]


def comparison(name: str, sign: str, scalar: pa.Scalar) -> str | None:
    """Return the condition that a column is `sign` a value, or null for null; None if no condition is exact."""
    if not scalar.is_valid:
        return f"{quote_identifier(name)} is null"
    literal = _literal(scalar)
    return None if literal is None else f"{quote_identifier(name)} {sign} {literal}"


def _literal(scalar: pa.Scalar) -> str | None:
    """Return a value as SQL for DuckDB; None for null, and if no literal is exact."""
    dtype = scalar.type
    if not scalar.is_valid or (pa.types.is_timestamp(dtype) and dtype.unit == "ns"):
        return None
    match value := scalar.as_py():
        case int():
            return str(value).lower()  # true and false too
        case float() if math.isfinite(value):
            return f"cast('{value!r}' as double)" if pa.types.is_float64(dtype) else None
        case Decimal():
            return f"{value:f}"
        case str() if len(value) <= _LONGEST and "\0" not in value:
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"{'timestamp' if value.tzinfo is None else 'timestamptz'} '{value.isoformat(' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return None
