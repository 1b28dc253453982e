"""Columns with a collation: conditions and SQL compare texts by their bytes, so they are refused on such columns.

The Arrow field of such a column has the collation in its metadata.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from snapshot_explorer.engines.duckdb_ast import children, fetch_scalar
from snapshot_explorer.engines.duckdb_sessions import locked_cursor
from snapshot_explorer.formats.features import COLLATED_CONDITIONS, COLLATED_QUERIES, refusal

_STARS = ("STAR", "POSITIONAL_REFERENCE")
"""Expressions that stand for columns which they do not name."""
_HARMLESS = ("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER")
"""Modifiers of a query that compare only the columns in their own expressions."""
_CLAUSES = ("group_expressions", "group_sets", "having", "qualify")
"""Clauses of a query that compare columns, or whose results are not rows of its table."""


def collation_of(field: pa.Field) -> str | None:
    """Return the collation of a column's texts; None if they are compared by their bytes."""
    collation = (field.metadata or {}).get(b"collation")
    return None if collation is None else str(collation.decode())


def check_condition(columns: Iterable[str], schema: pa.Schema) -> None:
    """Raise UnsupportedFeatureError if a condition reads a column with a collation."""
    for name, collation in sorted(_collations(columns, schema).items()):
        raise refusal(COLLATED_CONDITIONS, column=name, collation=collation)


def check_query(query: str, columns: Iterable[str], schema: pa.Schema, subject: str) -> None:
    """Raise UnsupportedFeatureError if the result of a query may depend on the collation of a column.

    A query on one table may return such columns as they are. Any query may read their bytes with `encode`.

    Args:
        columns: The columns of a relation that it reads.
    """
    collations = _collations(columns, schema)
    if collations and _may_compare(query, collations):
        name, collation = min(collations.items())
        raise refusal(COLLATED_QUERIES, column=name, what=subject, collation=collation)


def _collations(columns: Iterable[str], schema: pa.Schema) -> dict[str, str]:
    collations = {name: collation_of(schema.field(name)) for name in columns if schema.names.count(name) == 1}
    return {name: collation for name, collation in collations.items() if collation is not None}


def _may_compare(query: str, columns: Collection[str]) -> bool:
    """Return whether a query may do more with columns than return them and read their bytes."""
    with locked_cursor() as cursor:
        answer: dict[str, Any] = json.loads(fetch_scalar(cursor, "SELECT json_serialize_sql(?::VARCHAR)", query))
    nodes = [statement["node"] for statement in answer.get("statements") or ()]
    if len(nodes) != 1:
        return True  # PIVOT has no tree
    tree, names = nodes[0], {name.lower() for name in columns}
    rows = {str(item[key]).lower() for item in _tables(tree) for key in ("alias", "table_name") if item.get(key)}
    if _is_plain(tree):
        returned = [item for item in tree["select_list"] if _is_returned(item)]
        for expression in returned:
            if _reads(expression, names, rows) and expression.get("class") == "COLUMN_REF":
                names |= {str(expression.get("alias") or expression["column_names"][-1]).lower()}
        tree = {**tree, "select_list": [item for item in tree["select_list"] if item not in returned]}
    return _reads(tree, names, rows)


def _tables(tree: object) -> Iterator[dict[str, Any]]:
    """Yield the tables in a parse tree. A table's name as an expression is the row with all columns."""
    if isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE":
            yield tree
        for value in tree.values():
            yield from _tables(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from _tables(item)


def _is_plain(node: dict[str, Any]) -> bool:
    """Return whether a query returns rows of one table, in which columns have their own names."""
    table = node.get("from_table") or {}
    modifiers = node.get("modifiers") or ()
    orders = [order["expression"].get("class") for modifier in modifiers for order in modifier.get("orders") or ()]
    return (
        node.get("type") == "SELECT_NODE"
        and table.get("type") == "BASE_TABLE"
        and not table.get("column_name_alias")
        and not any(node.get(clause) for clause in _CLAUSES)
        and node.get("aggregate_handling") == "STANDARD_HANDLING"
        and all(modifier.get("type") in _HARMLESS for modifier in modifiers)
        and "CONSTANT" not in orders  # the position of a returned column
    )


def _is_returned(item: dict[str, Any]) -> bool:
    """Return whether an item of a select list is a column, or a star of columns, without any computation."""
    if item.get("class") == "STAR":
        return not any(item.get(key) for key in ("columns", "expr", "replace_list", "rename_list"))
    return item.get("class") == "COLUMN_REF"


def _reads(tree: object, names: Collection[str], rows: Collection[str]) -> bool:
    """Return whether a parse tree reads columns, other than by `encode(column)`.

    Args:
        names: The names of the columns, in lower case.
        rows: The names of tables: alone, one is the row with all columns.
    """
    if isinstance(tree, list):
        return any(_reads(item, names, rows) for item in tree)
    if not isinstance(tree, dict):
        return False
    node_class = tree.get("class")
    if node_class in _STARS:
        return True
    if node_class == "COLUMN_REF":
        parts = [str(part).lower() for part in tree["column_names"]]
        return any(part in names for part in parts) or (len(parts) == 1 and parts[0] in rows)
    if node_class == "FUNCTION" and tree.get("function_name") == "encode" and _is_column(children(tree)):
        return False
    using = [str(name).lower() for name in tree.get("using_columns") or ()]
    if tree.get("ref_type") == "NATURAL" or any(name in names for name in using):
        return True
    return any(_reads(value, names, rows) for value in tree.values())


def _is_column(arguments: Sequence[dict[str, Any]]) -> bool:
    return [argument.get("class") for argument in arguments] == ["COLUMN_REF"]
