"""DuckDB's parse trees of SQL expressions, as JSON: read them, and convert them back to SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    import pyarrow as pa


def children(tree: dict[str, Any]) -> list[Any]:
    """Return the arguments of a function. DuckDB 2 renamed the list."""
    found = list(tree.get("arguments") or tree.get("children") or [])
    return [child.get("expression", child) if isinstance(child, dict) else child for child in found]


def find(name: str, schema: pa.Schema) -> str | None:
    """Return the column with this name: the exact match, or the only match that differs in case."""
    if name in schema.names:
        return name
    alike = [str(column) for column in schema.names if column.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def quoted(name: str) -> str:
    """Return a name as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def scalar(cursor: duckdb.DuckDBPyConnection, query: str, parameter: str) -> str:
    """Return the single value of a query. Fetches all rows, since DuckDB needs results read to the end."""
    return str(cursor.execute(query, [parameter]).fetchall()[0][0])


def to_sql(cursor: duckdb.DuckDBPyConnection, trees: Sequence[dict[str, Any]]) -> list[str] | None:
    """Return expressions as SQL; None if DuckDB does not print one as a complete expression.

    DuckDB cuts strings at the character U+0000 when it reads a tree, so expressions with it are not printed.
    """
    statement = json.loads(scalar(cursor, "SELECT json_serialize_sql(?)", "SELECT 1"))
    wholes = []
    for tree in trees:
        statement["statements"][0]["node"]["select_list"] = [tree]
        wholes.append(json.dumps(statement))
    if any("\\u0000" in whole for whole in wholes):
        return None
    query = "SELECT json_deserialize_sql(tree) FROM (SELECT unnest(?::VARCHAR[]) AS tree)"
    found = [str(row[0]) for row in cursor.execute(query, [wholes]).fetchall()]
    if not all(text.startswith("SELECT ") for text in found):
        return None
    return [text.removeprefix("SELECT ") for text in found]
