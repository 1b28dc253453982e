"""DuckDB's parse trees of SQL expressions, as JSON: read them, and convert them back to SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snapshot_explorer.core.old_libraries import DUCKDB_DOUBLE_CONSTANTS

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


def children(tree: dict[str, Any]) -> list[Any]:
    """Return the arguments of a function. DuckDB 2 renamed the list."""
    nodes = list(tree.get("arguments") or tree.get("children") or [])
    return [child.get("expression", child) if isinstance(child, dict) else child for child in nodes]


def find_column(name: str, schema: pa.Schema) -> str | None:
    """Return the column with this name: the exact match, or the only match that differs in case."""
    if name in schema.names:
        return name
    alike = [str(column) for column in schema.names if column.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def quote_identifier(name: str) -> str:
    """Return a name as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def hide_statistics(value: str) -> str:
    """Return SQL with the value of a column for which DuckDB uses no statistics and applies no filter in the scan."""
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {value} END"


def fetch_scalar(cursor: duckdb.DuckDBPyConnection, query: str, parameter: str) -> str:
    """Return the single value of a query. Fetches all rows, since DuckDB needs results read to the end."""
    return str(cursor.execute(query, [parameter]).fetchall()[0][0])


def to_sql(cursor: duckdb.DuckDBPyConnection, trees: Sequence[dict[str, Any]]) -> list[str] | None:
    """Return expressions as SQL; None if DuckDB does not print one as a complete expression with the same value.

    DuckDB cuts strings at the character U+0000 when it reads a tree, so expressions with it are not printed.
    """
    if DUCKDB_DOUBLE_CONSTANTS.applies() and _has_double(trees):
        return None
    statement = json.loads(fetch_scalar(cursor, "SELECT json_serialize_sql(?::VARCHAR)", "SELECT 1"))
    wholes = []
    for tree in trees:
        statement["statements"][0]["node"]["select_list"] = [tree]
        wholes.append(json.dumps(statement))
    if any("\\u0000" in whole for whole in wholes):
        return None
    query = "SELECT json_deserialize_sql(tree) FROM (SELECT unnest(?::VARCHAR[]) AS tree)"
    texts = [str(row[0]) for row in cursor.execute(query, [wholes]).fetchall()]
    if not all(text.startswith("SELECT ") for text in texts):
        return None
    return [text.removeprefix("SELECT ") for text in texts]


def _has_double(tree: object) -> bool:
    if isinstance(tree, dict):
        dtype = (tree.get("value") or {}).get("type") if tree.get("class") == "CONSTANT" else None
        return (dtype is not None and dtype.get("id") == "DOUBLE") or any(map(_has_double, tree.values()))
    return not isinstance(tree, str) and isinstance(tree, Sequence) and any(map(_has_double, tree))
