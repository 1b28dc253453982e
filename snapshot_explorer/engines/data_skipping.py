"""Data skipping: decide from the minimum, maximum and null count of columns whether a file may have matching rows.

A parse tree becomes a `SkippingExpression`: comparisons of a column with constants that bounds can decide, joined by
AND, OR and NOT; everything else is an `UnsupportedExpression`, which might match any file. A skipping expression
becomes SQL over bounds that is false only if no row of the file matches. A bound has the type of its column, so DuckDB
compares it with a constant exactly as the condition compares the column. A comparison for which DuckDB would cast the
column without keeping its order is an `UnsupportedExpression`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.data_types import has_distances, is_number
from snapshot_explorer.core import resources
from snapshot_explorer.engines.duckdb_ast import children, find_column, to_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from snapshot_explorer.core.records import Bounds


_INTEGERS = frozenset(
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
)
_EXACT = _INTEGERS | {"DECIMAL"}
_NUMBERS = _EXACT | {"FLOAT", "DOUBLE"}
_TIMES = frozenset(
    ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"),
)
_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STARTS = ("starts_with", "prefix", "^@")


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the condition."""

    text: str
    """The constant as SQL, in parentheses."""
    type_name: str
    """Its DuckDB type, without precision."""
    is_text: bool
    """Whether it is a string literal, which DuckDB casts to the type it is compared with."""


@dataclass(frozen=True, slots=True)
class Inequality:
    """A comparison of a column with a constant."""

    column: str
    operator: str
    limit: Constant


@dataclass(frozen=True, slots=True)
class Between:
    """A column at least `low` and at most `high`; the same constant for both is equality."""

    column: str
    low: Constant
    high: Constant


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A test of a column for a prefix."""

    column: str
    text: str
    is_all: bool
    """Whether the prefix is sufficient; otherwise it is only necessary."""


@dataclass(frozen=True, slots=True)
class IsNull:
    """A test of a column for null."""

    column: str


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A boolean column used as a condition."""

    column: str


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a part; null stays null."""

    part: SkippingExpression


@dataclass(frozen=True, slots=True)
class And:
    """Parts joined by AND."""

    parts: tuple[SkippingExpression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Parts joined by OR."""

    parts: tuple[SkippingExpression, ...]


@dataclass(frozen=True, slots=True)
class UnsupportedExpression:
    """An expression that bounds cannot decide."""


SkippingExpression: TypeAlias = (
    Inequality | Between | StartsWith | IsNull | IsTrue | Not | And | Or | UnsupportedExpression
)


def skipping_expression(
    cursor: duckdb.DuckDBPyConnection, tree: dict[str, Any], schema: pa.Schema
) -> SkippingExpression:
    """Return the skipping expression of an expression over the columns of a schema."""
    node_type = str(tree.get("type", ""))
    if node_type in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
        parts = tuple(skipping_expression(cursor, part, schema) for part in children(tree))
        return And(parts) if node_type == "CONJUNCTION_AND" else Or(parts)
    if node_type == "OPERATOR_NOT":
        return Not(skipping_expression(cursor, children(tree)[0], schema))
    if node_type in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        column = _column(children(tree)[0], schema)
        result: SkippingExpression = IsNull(column) if column else UnsupportedExpression()
        return result if node_type == "OPERATOR_IS_NULL" or not column else Not(result)
    if node_type == "COLUMN_REF":
        column = _column(tree, schema)
        return IsTrue(column) if column and pa.types.is_boolean(schema.field(column).type) else UnsupportedExpression()
    return _comparison(cursor, tree, schema)


def _column(tree: dict[str, Any], schema: pa.Schema) -> str | None:
    names = tree.get("column_names") or []
    return find_column(str(names[0]), schema) if tree.get("class") == "COLUMN_REF" and len(names) == 1 else None


def _comparison(cursor: duckdb.DuckDBPyConnection, tree: dict[str, Any], schema: pa.Schema) -> SkippingExpression:
    node_type = str(tree.get("type", ""))
    if node_type in _COMPARISONS:
        operator, left, right = _COMPARISONS[node_type], tree["left"], tree["right"]
        if _column(left, schema) is None:
            operator, left, right = _MIRRORED[operator], right, left
        compared = _column_and_constants(cursor, left, [right], schema)
        return _ordering(compared[0], operator, compared[1][0]) if compared else UnsupportedExpression()
    if node_type == "COMPARE_BETWEEN":
        compared = _column_and_constants(cursor, tree["input"], [tree["lower"], tree["upper"]], schema)
        return Between(compared[0], *compared[1]) if compared else UnsupportedExpression()
    if node_type in ("COMPARE_IN", "COMPARE_NOT_IN"):
        compared = _column_and_constants(cursor, children(tree)[0], children(tree)[1:], schema)
        if compared is None:
            return UnsupportedExpression()
        among = Or(tuple(Between(compared[0], value, value) for value in compared[1]))
        return among if node_type == "COMPARE_IN" else Not(among)
    return _prefix(cursor, tree, schema)


def _ordering(column: str, operator: str, value: Constant) -> SkippingExpression:
    if operator in ("=", "<>"):
        same = Between(column, value, value)
        return same if operator == "=" else Not(same)
    return Inequality(column, operator, value)


def _column_and_constants(
    cursor: duckdb.DuckDBPyConnection, tree: dict[str, Any], values: Sequence[dict[str, Any]], schema: pa.Schema
) -> tuple[str, list[Constant]] | None:
    """Return a column and the constants it is compared with; None if the comparison may not keep the column's order."""
    column = _column(tree, schema)
    if column is None or not values or not all(_is_constant(value) for value in values):
        return None
    constants = _constants(cursor, values)
    if constants is None or not _keeps_order(schema.field(column).type, constants):
        return None
    return column, constants


def _is_constant(tree: object) -> bool:
    if not isinstance(tree, dict):
        return False
    if tree.get("class") == "CAST":
        return _is_constant(tree.get("child"))
    if tree.get("class") == "FUNCTION":
        return tree.get("function_name") == "-" and len(children(tree)) == 1 and _is_constant(children(tree)[0])
    return tree.get("class") == "CONSTANT"


def _constants(cursor: duckdb.DuckDBPyConnection, trees: Sequence[dict[str, Any]]) -> list[Constant] | None:
    import duckdb

    texts = to_sql(cursor, trees)
    if texts is None:
        return None
    try:
        types = cursor.execute(f"SELECT {', '.join(f'typeof({text})' for text in texts)}").fetchall()[0]
    except duckdb.Error as error:
        resources.check(error, "The condition could not be evaluated")
        return None  # a constant that cannot be cast: evaluating the condition raises
    return [
        Constant(
            text=f"({text})",
            type_name=str(type_name).partition("(")[0],
            is_text=type_name == "VARCHAR" and _is_bare(tree),
        )
        for tree, text, type_name in zip(trees, texts, types, strict=True)
    ]


def _is_bare(tree: dict[str, Any]) -> bool:
    return tree.get("class") == "CONSTANT"


def _keeps_order(column: pa.DataType, values: Sequence[Constant]) -> bool:
    """Return whether comparing the column with the values, one by one or together, keeps the order of the column.

    DuckDB casts column and values to one common type. For values of several types, that may be another type than for
    each alone, unless all are integers and decimals, which compare by value.
    """
    names = {value.type_name for value in values if not value.is_text}
    if pa.types.is_string(column) or pa.types.is_large_string(column):
        return {value.type_name for value in values} == {"VARCHAR"}
    if is_number(column):
        known = _NUMBERS
    elif pa.types.is_date(column) or pa.types.is_timestamp(column):
        known = _TIMES
    elif pa.types.is_boolean(column):
        known = frozenset(("BOOLEAN",))
    else:
        return False
    is_uniform = len({(value.type_name, value.is_text) for value in values}) == 1
    is_exact = not pa.types.is_floating(column) and names <= _EXACT and not any(value.is_text for value in values)
    return names <= known and (is_uniform or is_exact)


def is_ordered(column: pa.DataType) -> bool:
    """Return whether bounds of a type can be compared."""
    is_plain = pa.types.is_boolean(column) or pa.types.is_string(column) or pa.types.is_large_string(column)
    return bool(is_plain) or has_distances(column)


def is_exact(column: pa.DataType, values: Sequence[Constant]) -> bool:
    """Return whether at most one value of the column is equal to a constant."""
    if pa.types.is_integer(column) or pa.types.is_decimal(column):
        return all(value.is_text or value.type_name in _EXACT for value in values)
    if pa.types.is_timestamp(column):
        return bool(column.unit != "ns")
    return is_ordered(column) and not pa.types.is_floating(column)


def _prefix(cursor: duckdb.DuckDBPyConnection, tree: dict[str, Any], schema: pa.Schema) -> SkippingExpression:
    name, parts = str(tree.get("function_name", "")), children(tree)
    if tree.get("class") != "FUNCTION" or name not in ("~~", "!~~", *_STARTS) or len(parts) != 2:  # noqa: PLR2004
        return UnsupportedExpression()
    compared = _column_and_constants(cursor, parts[0], parts[1:], schema)
    if compared is None or not compared[1][0].is_text or not pa.types.is_string(schema.field(compared[0]).type):
        return UnsupportedExpression()
    column, (value,) = compared
    text = str(cursor.execute(f"SELECT {value.text}").fetchall()[0][0])
    if name in _STARTS:
        return StartsWith(column, text, is_all=True)
    wild = [index for index, letter in enumerate(text) if letter in "%_"]
    if not wild:
        result: SkippingExpression = Between(column, value, value)
    else:
        result = StartsWith(column, text[: wild[0]], is_all=set(text[wild[0] :]) == {"%"})
    return result if name == "~~" else Not(result)


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """SQL expressions for the bounds of a column in each file."""

    lower: str | None
    """The minimum or a lower value; None if unknown."""
    upper: str | None
    """The maximum or a higher value."""
    has_value: str
    """Whether it may contain a value."""
    has_null: str
    """Whether it may contain a null."""
    is_float: bool
    """Whether it may contain NaN, which is greater than all other values and may be missing from bounds."""


def might_match(expression: SkippingExpression, known: Mapping[str, ColumnBounds], *, result: bool = True) -> str:
    """Return SQL that is true if the expression may have this result for some row, and never null."""
    match expression:
        case And(parts) | Or(parts):
            # An AND is false, and an OR is true, if one part is.
            word = "AND" if isinstance(expression, And) is result else "OR"
            return "(" + f" {word} ".join(might_match(part, known, result=result) for part in parts) + ")"
        case Not(part):
            return might_match(part, known, result=not result)
        case UnsupportedExpression():
            return "true"
        case IsNull(column) if column in known:
            return known[column].has_null if result else known[column].has_value
        case IsNull(_):
            return "true"
    return _comparison_sql(expression, known, result=result)


def _comparison_sql(
    expression: Inequality | Between | StartsWith | IsTrue, known: Mapping[str, ColumnBounds], *, result: bool
) -> str:
    """Return SQL for a comparison, which is neither true nor false for a null."""
    column = known.get(expression.column)
    if column is None:
        return "true"
    if column.lower is None or column.upper is None:
        return column.has_value
    compared = _match_sql(expression, column) if result else _no_match_sql(expression, column)
    return f"({column.has_value} AND coalesce({compared}, true))"


def _match_sql(expression: Inequality | Between | StartsWith | IsTrue, column: ColumnBounds) -> str:
    match expression:
        case Inequality(_, operator, limit):
            return _inequality_sql(operator, limit, column)
        case Between(_, low, high):
            above = f"{column.upper} >= {low.text}"
            if column.is_float:
                above = f"(isnan(CAST({high.text} AS DOUBLE)) OR coalesce({above}, true))"
            return f"{column.lower} <= {high.text} AND {above}"
        case StartsWith(_, text, _):
            start = quote_text(text)
            return f"{column.upper} >= {start} AND ({column.lower} <= {start} OR starts_with({column.lower}, {start}))"
        case IsTrue(_):
            return str(column.upper)


def _no_match_sql(expression: Inequality | Between | StartsWith | IsTrue, column: ColumnBounds) -> str:
    match expression:
        case Inequality(_, operator, limit):
            return _inequality_sql({"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[operator], limit, column)
        case Between(_, low, high):
            below, above = _inequality_sql("<", low, column), _inequality_sql(">", high, column)
            return f"coalesce({below}, true) OR coalesce({above}, true)"
        case StartsWith(_, text, is_all):
            start = quote_text(text)
            inside = f"starts_with({column.lower}, {start}) AND starts_with({column.upper}, {start})"
            return f"NOT ({inside})" if is_all else "true"
        case IsTrue(_):
            return f"NOT {column.lower}"


def _inequality_sql(operator: str, limit: Constant, column: ColumnBounds) -> str:
    if operator in ("<", "<="):
        return f"{column.lower} {operator} {limit.text}"
    return "true" if column.is_float else f"{column.upper} {operator} {limit.text}"


def quote_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def equal_values(expression: SkippingExpression, column: str) -> tuple[Constant, ...]:
    """Return the only values of the column for which the expression can be true; none if others are possible."""
    match expression:
        case Between(name, low, high) if name == column and low is high:
            return (low,)
        case Or(parts):
            each = [equal_values(part, column) for part in parts]
            return tuple(value for values in each for value in values) if all(each) else ()
        case And(parts):
            return next((values for part in parts if (values := equal_values(part, column))), ())
    return ()


_ROWS = "__snapshot_bounds__"


def ruled_out(
    cursor: duckdb.DuckDBPyConnection, parts: Sequence[tuple[SkippingExpression, frozenset[str]]], bounds: Bounds
) -> pa.StringArray:
    """Return for each file the columns of the first part that none of its rows can match, or null.

    Args:
        parts: The conditions joined by AND, each with the columns that it reads.
        bounds: The bounds of the files. A missing column has unknown bounds.
    """
    import duckdb

    known, rows = _known(bounds, frozenset().union(*(columns for _, columns in parts)))
    cases = [f"WHEN NOT {might_match(expression, known)} THEN {number}" for number, (expression, _) in enumerate(parts)]
    query = f"SELECT CASE {' '.join(cases)} ELSE -1 END AS part FROM {_ROWS}"  # noqa: S608 - constants as DuckDB spells them
    cursor.register(_ROWS, rows)
    try:
        part = cursor.execute(query).fetchnumpy()["part"]
    except duckdb.Error as error:
        resources.check(error, "The condition could not be evaluated")
        # For example, a bound overflows in a cast. Evaluating the condition raises if a value does.
        return pa.nulls(rows.num_rows, pa.string())
    names = pa.array([", ".join(sorted(columns)) for _, columns in parts])
    return names.take(pa.array(part, mask=part < 0))


def points(
    cursor: duckdb.DuckDBPyConnection, expressions: Sequence[SkippingExpression], schema: pa.Schema
) -> list[pa.Array] | None:
    """Return the only values of each column that matching rows can have; None if a column may have others."""
    result = []
    for column in schema:
        values = next(
            (constants for expression in expressions if (constants := equal_values(expression, column.name))), ()
        )
        cast = _cast(cursor, values, column) if values else None
        if cast is None:
            return None
        result.append(cast)
    return result


def _known(bounds: Bounds, columns: frozenset[str]) -> tuple[dict[str, ColumnBounds], pa.Table]:
    names = ["rows"]
    arrays = [bounds.rows]
    known = {}
    for index, name in enumerate(sorted(columns & set(bounds.null_count.column_names))):
        dtype = bounds.lower.schema.field(name).type
        has_order = is_ordered(dtype)
        names += [f"n{index}"] + ([f"l{index}", f"u{index}"] if has_order else [])
        arrays += [bounds.null_count[name]] + ([bounds.lower[name], bounds.upper[name]] if has_order else [])
        is_float = pa.types.is_floating(dtype)
        ends = (f"l{index}", f"u{index}")
        lower, upper = (f"CASE WHEN NOT isnan({end}) THEN {end} END" if is_float else end for end in ends)
        known[name] = ColumnBounds(
            lower=lower if has_order else None,
            upper=upper if has_order else None,
            has_value=f"coalesce(n{index} < rows, true)",
            has_null=f"coalesce(n{index} > 0, true)",
            is_float=is_float,
        )
    return known, pa.table(arrays, names=names)


def _cast(cursor: duckdb.DuckDBPyConnection, values: Sequence[Constant], column: pa.Field) -> pa.Array | None:
    """Return constants in the type of a column; None if one has no exact value in that type."""
    import duckdb

    if not is_exact(column.type, values):
        return None
    try:
        cursor.register(_ROWS, pa.schema([column.with_name("c")]).empty_table())
        type_name = cursor.table(_ROWS).types[0]
        listed = " UNION ALL ".join(
            f"SELECT TRY_CAST({value.text} AS {type_name}), "
            f"coalesce(TRY_CAST({value.text} AS {type_name}) = {value.text}, false)"
            for value in values
        )
        result = cursor.sql(listed).to_arrow_table()
        if not pc.all(result.column(1)).as_py():
            return None
        return result.column(0).combine_chunks().cast(column.type)
    except (duckdb.Error, pa.ArrowInvalid) as error:
        resources.check(error, "The condition could not be evaluated")
        return None
