"""Conditions on rows, written in SQL and evaluated by DuckDB over Arrow data.

DuckDB sees only the columns of the condition and returns only a mask, so no value of the table passes through
DuckDB's types. Its connection has no access to files, the network or Python variables.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import InvalidArgumentError, UnknownColumnError
from snapshot_explorer.core.text import list_names
from snapshot_explorer.engines import data_skipping
from snapshot_explorer.engines.collations import check_condition
from snapshot_explorer.engines.duckdb_ast import children, fetch_scalar, find_column, quote_identifier, to_sql
from snapshot_explorer.engines.duckdb_sessions import check_nanoseconds, locked_cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import duckdb

    from snapshot_explorer.core.records import Bounds

_COMPARED_NAMES = 2_000
"""The number of names that are compared with an unknown one."""
_ROWS = "__snapshot_rows__"
_PREFIX = "SELECT (\n"
_BARE_PREFIX = "SELECT\n"
_USAGE = "Write a WHERE clause without WHERE, such as: amount > 10 AND name IS NULL."
_SYNTAX_ERROR = "syntax error"
_OPEN_END = re.compile(r"([<>=!+\-*/%]+|\b(?:and|or|not|in|like|between))\s*\Z", re.IGNORECASE)
"""The end of a condition that lacks a value."""
_EMPTY = "The condition {!r} is empty. Write a WHERE clause without WHERE, or leave it out."
_KEYWORD_VALUES = frozenset(
    (
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
    )
)
_VALUE = re.compile(r"(?P<number>-?\d+(?:\.\d+)?)|'[^']*'")
_REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "a star",
    "PARAMETER": "a parameter",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPart:
    """One of several conditions joined by AND."""

    text: str
    """The condition as SQL."""
    columns: frozenset[str]
    expression: data_skipping.SkippingExpression
    """The condition for data skipping by bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on rows, in SQL. Implements `model.Predicate`. Picklable. `parse_condition` creates it."""

    text: str
    """The condition as SQL."""
    columns: frozenset[str]
    """The columns that it reads, as spelled in the table's schema."""
    parts: tuple[ConditionPart, ...]
    """The operands of the top-level AND."""

    def on(self, columns: frozenset[str]) -> Condition | None:
        """Return the part of the condition that reads only these columns, or None.

        Parts that read no column at all are left out.
        """
        kept = tuple(part for part in self.parts if part.columns and part.columns <= columns)
        if not kept:
            return None
        return Condition(
            text=" AND ".join(f"({part.text})" for part in kept),
            columns=frozenset().union(*(part.columns for part in kept)),
            parts=kept,
        )

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """Return a mask of the rows that match. A condition that is null does not match."""
        import duckdb

        needed = [name for name in rows.column_names if name in self.columns]
        with locked_cursor() as cursor:
            try:
                passes = _evaluate(cursor, self.text, rows.select(needed))
            except duckdb.Error as error:
                resources.check(error, "The condition could not be evaluated")
                raise InvalidArgumentError(
                    f"The condition {self.text!r} cannot be evaluated: {_sentence(error)}. "
                    "TRY_CAST returns null where CAST fails."
                ) from error
        if not needed:
            passes = pa.repeat(passes[0], rows.num_rows)
        return passes

    def ruled_out(self, bounds: Bounds) -> pa.StringArray:
        """Return for each file the columns whose values rule it out, as text; null if some row may match.

        Runs one DuckDB query over all bounds, with no loop in Python. A bound that cannot be compared, for example
        because a cast overflows, rules nothing out.
        """
        supported = [
            (part.expression, part.columns)
            for part in self.parts
            if not isinstance(part.expression, data_skipping.UnsupportedExpression)
        ]
        if not supported or not len(bounds.rows):
            return pa.nulls(len(bounds.rows), pa.string())
        with locked_cursor() as cursor:
            return data_skipping.ruled_out(cursor, supported, bounds)

    def points(self, schema: pa.Schema) -> Sequence[pa.Array] | None:
        """Return the only values of each column that matching rows can have; None if a column may have others.

        The result contains exactly the values that are equal for DuckDB, in the column's Arrow type.
        """
        with locked_cursor() as cursor:
            return data_skipping.points(cursor, [part.expression for part in self.parts], schema)


def _evaluate(cursor: duckdb.DuckDBPyConnection, text: str, rows: pa.Table) -> pa.BooleanArray:
    """Return a mask of the rows that match; one value if the condition reads no column."""
    query = f"SELECT coalesce(CAST((\n{text}\n) AS BOOLEAN), false)"
    if rows.num_columns:
        cursor.register(_ROWS, rows)
        query += f" FROM {_ROWS}"
    result = cursor.sql(query).to_arrow_table().column(0)
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def parse_condition(text: str, schema: pa.Schema) -> Condition:
    """Return the condition for SQL text and the schema of the rows. Reads nothing. Caches the conditions used last.

    Args:
        text: A WHERE clause without WHERE: `amount > 10 AND "group".name IS NULL`. Column names ignore case; an
            exact match wins.
    """
    _check_is_text(text)
    result = _condition(text, schema)
    check_condition(result.columns, schema)
    check_nanoseconds(result.columns, schema)
    return result


def _check_is_text(text: str) -> None:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"A condition is SQL text, got {text!r}. {_USAGE}")


@lru_cache(maxsize=256)
def _condition(text: str, schema: pa.Schema) -> Condition:
    with locked_cursor() as cursor:
        tree = _parse(cursor, text)
        columns = columns_of(tree, schema, text)
        _check_is_condition(tree, text, schema)
        parts = tuple(
            ConditionPart(
                text=part_text,
                columns=columns_of(part, schema, text),
                expression=data_skipping.skipping_expression(cursor, part, schema),
            )
            for part, part_text in _conjuncts(cursor, tree, text)
        )
        _bind(cursor, text, schema, columns)
    return Condition(text=text, columns=columns, parts=parts)


def _check_is_condition(tree: dict[str, Any], text: str, schema: pa.Schema) -> None:
    """Check that text is not only a column or a value, which SQL accepts as a condition that most rows match."""
    stripped = text.strip()
    value = _VALUE.fullmatch(stripped)
    names = tree["column_names"] if tree.get("class") == "COLUMN_REF" else []
    column = find_column(names[0], schema) if len(names) == 1 else None
    if column is not None and not pa.types.is_boolean(schema.field(column).type):
        example = "42" if is_number(schema.field(column).type) else "'...'"
        meant: str | None = f"{stripped} = {example}"
    elif value is not None:
        fits = is_number if value["number"] else pa.types.is_string
        named = next((field.name for field in schema if fits(field.type)), None)
        meant = None if named is None else f"{_spelled(named)} = {stripped}"
    else:
        return
    description = "a value" if value is not None else "a column"
    hint = f" Did you mean {meant}?" if meant else ""
    raise InvalidArgumentError(f"{stripped} is {description}, not a condition on rows.{hint}")


def _spelled(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quote_identifier(name)


def parse_expression(text: str) -> dict[str, Any]:
    """Return DuckDB's parse tree of a condition. Raises as `parse_condition`."""
    with locked_cursor() as cursor:
        return _parse(cursor, text)


def condition_names(text: str) -> frozenset[str]:
    """Return the columns that a condition names, as it spells them, of whatever table. Raises as `parse_condition`.

    Words that SQL also has as values, such as current_date, are not among them; `user` is.
    """
    _check_is_text(text)
    tree = parse_expression(text)
    names = frozenset(_renamed(tree, {}, frozenset()))
    columns_of(tree, pa.schema([(name, pa.null()) for name in names]), text)
    return names


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return a condition with other names of its columns, as SQL.

    Args:
        names: New names by those in the condition. Other columns keep theirs.

    Raises:
        InvalidArgumentError: DuckDB cannot write the condition with these names.
    """
    if all(name == own for name, own in names.items()):
        return text
    with locked_cursor() as cursor:
        tree = _parse(cursor, text)
        deque(_renamed(tree, names, frozenset()), maxlen=0)
        texts = to_sql(cursor, [tree])
    if texts is None:
        raise InvalidArgumentError(f"The condition {text!r} cannot be written with other names. Use the names in it.")
    return texts[0]


def _renamed(tree: object, names: Mapping[str, str], bound: frozenset[str]) -> Iterator[str]:
    """Rename columns in a parse tree, and yield their names before; `bound` are the parameters of enclosing lambdas."""
    if isinstance(tree, list):
        for item in tree:
            yield from _renamed(item, names, bound)
    elif isinstance(tree, dict):
        if tree.get("class") == "COLUMN_REF":
            name = tree["column_names"][0]
            if name not in bound and (name.lower() not in _KEYWORD_VALUES or name.lower() == "user"):
                tree["column_names"][0] = names.get(name, name)
                yield name
        elif tree.get("class") == "LAMBDA":
            bound |= {parts[0] for parts in names_of(tree.get("lhs"))}
        for value in tree.values():
            yield from _renamed(value, names, bound)


def names_of(tree: object) -> Iterator[tuple[str, ...]]:
    """Yield the names in a parse tree, each as its parts: `a.b` is two."""
    if isinstance(tree, dict):
        if tree.get("class") == "COLUMN_REF":
            yield tuple(str(part) for part in tree["column_names"])
        for value in tree.values():
            yield from names_of(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from names_of(item)


def _parse(cursor: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    """Return DuckDB's parse tree of the expression.

    It is parsed twice: in parentheses, to refuse more than one expression, and alone, to refuse unbalanced ones.
    """
    if not text.strip():
        raise InvalidArgumentError(_EMPTY.format(text))
    try:
        answer, bare_answer = _answer(cursor, f"{_PREFIX}{text}\n)"), _answer(cursor, f"{_BARE_PREFIX}{text}\n")
    except RecursionError as error:
        raise InvalidArgumentError("The condition is nested too deeply. Write it with fewer parentheses.") from error
    # An error of the expression itself is reported before one caused by the added parentheses.
    has_own_error = "position" in bare_answer
    if answer.get("error"):
        raise InvalidArgumentError(
            _syntax_error(text, *((bare_answer, _BARE_PREFIX) if has_own_error else (answer, _PREFIX)))
        )
    statements = answer["statements"]
    node = statements[0]["node"] if len(statements) == 1 else {}
    chosen = node.get("select_list") or []
    if node.get("from_table", {}).get("type") != "EMPTY" or len(chosen) != 1 or _has_clauses(node):
        raise InvalidArgumentError(f"{text!r} is more than a condition. {_USAGE}")
    if has_own_error:
        raise InvalidArgumentError(_syntax_error(text, bare_answer, _BARE_PREFIX))
    tree: dict[str, Any] = chosen[0]
    if tree.get("function_name") == "row":
        if not children(tree):
            raise InvalidArgumentError(_EMPTY.format(text))
        raise InvalidArgumentError(f"{text!r} is a list of values, not a condition. {_USAGE}")
    return tree


def _answer(cursor: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(fetch_scalar(cursor, "SELECT json_serialize_sql(?::VARCHAR)", query))
    return answer


def _has_clauses(node: dict[str, Any]) -> bool:
    clauses = ("modifiers", "where_clause", "group_expressions", "having", "qualify", "sample")
    return any(node.get(clause) for clause in clauses)


def _syntax_error(text: str, answer: dict[str, Any], prefix: str) -> str:
    message = str(answer.get("error_message", "it cannot be parsed")).strip().splitlines()[0]
    message += '"' if message.count('"') % 2 else ""  # of a token that continues on the next line
    index = int(answer.get("position") or -1) - len(prefix)
    is_known = 0 <= index <= len(text.encode())
    if (end := _OPEN_END.search(text)) and message.startswith(_SYNTAX_ERROR):
        message, is_known = f"a value is missing after {end[1]}", False
    where = f" (character {len(text.encode()[:index].decode(errors='ignore')) + 1})" if is_known else ""
    return f"The condition {text!r} is not SQL: {message}{where}. {_USAGE}"


def columns_of(tree: object, schema: pa.Schema, text: str) -> frozenset[str]:
    """Return the columns that a parse tree reads, as spelled in the schema. Errors for `text` as `parse_condition`."""
    try:
        names = {name for name in _references(tree, schema, frozenset(), text) if name is not None}
    except RecursionError as error:
        raise InvalidArgumentError("The condition is nested too deeply. Write it with fewer parentheses.") from error
    folded = {name.lower() for name in names}
    if len(folded) < len(names):
        raise InvalidArgumentError(
            f"The condition {text!r} reads columns whose names differ only in case: {', '.join(sorted(names))}. "
            "Read them without a condition and filter the result."
        )
    return frozenset(names)


def _references(tree: object, schema: pa.Schema, bound: frozenset[str], text: str) -> Iterator[str | None]:
    """Yield the columns in an expression; `bound` are the parameters of enclosing lambdas."""
    if isinstance(tree, list):
        for item in tree:
            yield from _references(item, schema, bound, text)
        return
    if not isinstance(tree, dict):
        return
    node_class = str(tree.get("class", ""))
    if node_class in _REFUSED:
        raise InvalidArgumentError(
            f"The condition {text!r} contains {_REFUSED[node_class]}. A condition reads the values of one row only."
        )
    if node_class == "COLUMN_REF":
        yield _column(tree["column_names"], schema, bound, text)
        return
    if node_class == "LAMBDA":
        # `a -> 'x'` parses like a lambda, but may also extract a value from JSON: allow for both.
        parameters = frozenset(parts[0] for parts in names_of(tree.get("lhs")))
        yield from (reference for reference in (find_column(name, schema) for name in parameters) if reference)
        bound |= parameters
    for key, value in tree.items():
        if not (node_class == "LAMBDA" and key == "lhs"):
            yield from _references(value, schema, bound, text)


def _column(names: list[str], schema: pa.Schema, bound: frozenset[str], text: str) -> str | None:
    """Return the column that a dotted name starts with; None for a lambda's parameter or a word like `user`."""
    if names[0] in bound:
        return None
    result = find_column(names[0], schema)
    if result is None and len(names) == 1 and names[0].lower() in _KEYWORD_VALUES:
        return None
    if result is None:
        raise unknown_column(".".join(names), schema.names, in_condition=text, may_be_text=len(names) == 1)
    return result


def unknown_column(
    name: str, names: Iterable[str], *, where: str = "", in_condition: str | None = None, may_be_text: bool = False
) -> UnknownColumnError:
    """Return the error for an unknown column, with similar names and existing ones.

    Args:
        where: The place that names the column, after a blank.
        in_condition: The condition that names it: a similar name is then in double quotes where SQL needs them.
        may_be_text: Whether it may be text without the quotes of SQL, or in double ones.
    """
    known = list(names)
    alike = [item for item in known if item.casefold() == name.casefold()]
    near = alike or difflib.get_close_matches(name, known[:_COMPARED_NAMES], n=3, cutoff=0.6)
    if in_condition is not None:
        where, near = f" in the condition {in_condition!r}", [_spelled(item) for item in near]
    hint = f"Did you mean {' or '.join(near)}?" if near else ""
    hint = f"Text has single quotes: '{name}'." if may_be_text and not near else hint
    return UnknownColumnError(name, where=where, hint=hint, columns=list_names(known))


def _conjuncts(cursor: duckdb.DuckDBPyConnection, tree: dict[str, Any], text: str) -> list[tuple[dict[str, Any], str]]:
    if tree.get("type") != "CONJUNCTION_AND":
        return [(tree, text)]
    texts = to_sql(cursor, tree["children"])
    return list(zip(tree["children"], texts, strict=True)) if texts else [(tree, text)]


def _bind(cursor: duckdb.DuckDBPyConnection, text: str, schema: pa.Schema, columns: frozenset[str]) -> None:
    """Check types and functions with DuckDB on an empty table, in a WHERE clause, where aggregates are errors."""
    import duckdb

    empty = pa.schema([item for item in schema if item.name in columns]).empty_table()
    try:
        source = ""
        if columns:
            cursor.register(_ROWS, empty)
            source = f" FROM {_ROWS}"
        cursor.execute(f"SELECT 1{source} WHERE CAST((\n{text}\n) AS BOOLEAN)").fetchall()
        _evaluate(cursor, text, empty)
    except duckdb.Error as error:
        resources.check(error, "The condition could not be checked")
        raise InvalidArgumentError(f"The condition {text!r} does not fit the table: {_sentence(error)}.") from error


def _sentence(error: Exception) -> str:
    """Return the first line of DuckDB's message, without the kind of error."""
    line = str(error).strip().splitlines()[0]
    return line.split("Error: ", 1)[-1].rstrip(".!")


def filter_rows(rows: pa.Table, predicate: Condition) -> pa.Table:
    """Return the rows that match."""
    return rows.filter(predicate.mask(rows))
