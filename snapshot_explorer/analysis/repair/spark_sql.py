"""Names, values and conditions as Spark SQL that means the same in every session, whatever its settings.

Text is written in quotes only if it has no character that a quote, an escape, a variable `${...}` or the end of a
statement could be made of; any other text is its bytes in hexadecimal. Times have their zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.engines import data_skipping as skipping
from snapshot_explorer.engines.duckdb_sessions import locked_cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from snapshot_explorer.engines.conditions import Condition

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_UNSAFE = frozenset("'\"\\`;$%")
_LINE = 70
"""The length after which a list continues on the next line."""
_LONGEST_TEXT = 60
_SUFFIXES = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
"""The suffixes that give a number the column's own type: in a MERGE, Paimon does not compare different types."""
_TYPE_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    **dict.fromkeys((pa.string(), pa.large_string()), "STRING"),
    **dict.fromkeys((pa.binary(), pa.large_binary()), "BINARY"),
}
_EXACT_DIGITS = 18
"""Digits of a number that compare exactly with every integer and decimal column that is accepted."""
_MAX_PRECISION = 38
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since 1970."""
_EXACT_FLOAT = 2**24
"""Whole numbers up to this one are exact as 32-bit floats."""


def spark_identifier(name: str) -> str:
    """Return a name as an identifier.

    Raises:
        UnsupportedFeatureError: The name is empty, or contains `${`, which Spark replaces by a variable, even in
            quotes.
    """
    if not name or "${" in name:
        raise UnsupportedFeatureError(
            f"The name {name!r} cannot be written in Spark SQL: Spark replaces ${{...}} by a variable, also in quotes. "
            "Rename it first, or restore the table as a whole."
        )
    return "`" + name.replace("`", "``") + "`"


def qualified_name(name: str) -> tuple[str, ...]:
    """Return the parts of a table's name in an engine: `lake.shop.orders`, each part in backticks or not.

    Raises:
        InvalidArgumentError: It is not a valid name.
    """
    parts, at = [], 0
    while match := _PART.match(name, at):
        quoted, plain = match.groups()
        parts.append(quoted.replace("``", "`") if quoted is not None else plain)
        at = match.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            break
        at += 1
    raise InvalidArgumentError(
        Message(
            f"{name!r} is not the name of a table in an engine. Write ", Hint("", {"name": "catalog.schema.table"}), "."
        )
    )


def text_literal(value: str) -> str:
    """Return text as an expression that no setting of the session, such as escapedStringLiterals, changes."""
    if len(value) <= _LONGEST_TEXT and value.isprintable() and not _UNSAFE.intersection(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def literal(value: object, dtype: pa.DataType) -> str:  # noqa: PLR0911 - one line for each type
    """Return a value of a column as an expression of the column's type.

    Raises:
        UnsupportedFeatureError: Values of the type are not written.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() if pa.types.is_integer(dtype):
            return _integer(value, dtype)
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL({dtype.precision}, {dtype.scale}))"
        case float() if pa.types.is_float64(dtype) or pa.types.is_float32(dtype):
            return f"CAST('{value!r}' AS {'DOUBLE' if pa.types.is_float64(dtype) else 'FLOAT'})"
        case str():
            return text_literal(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            if value.tzinfo is None:
                return f"TIMESTAMP_NTZ '{value.isoformat(' ', 'microseconds')}'"
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return f"TIMESTAMP_LTZ '{utc.isoformat(' ', 'microseconds')} UTC'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return _unwritten(dtype)


def typed_literal(value: object, dtype: pa.DataType) -> str:
    """Return a value, or null, as an expression of the column's type.

    Raises:
        UnsupportedFeatureError: As for `literal`.
    """
    return literal(value, dtype) if value is not None else f"CAST(NULL AS {_type_name(dtype)})"


def _type_name(dtype: pa.DataType) -> str:
    if pa.types.is_decimal128(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if pa.types.is_timestamp(dtype):
        return "TIMESTAMP_NTZ" if dtype.tz is None else "TIMESTAMP_LTZ"
    return _TYPE_NAMES.get(dtype) or _unwritten(dtype)


def _integer(value: int, dtype: pa.DataType) -> str:
    if dtype in _SUFFIXES and abs(value) < 2 ** (dtype.bit_width - 1):
        return f"{value}{_SUFFIXES[dtype]}"
    # The sign is an operator to Spark, so that the minimum of a type needs a wider one.
    return str(value) if abs(value) < 2**63 else f"{value}BD"


def _unwritten(dtype: pa.DataType) -> str:
    raise UnsupportedFeatureError(f"Values of the type {dtype} are not written in statements.")


def is_key_type(dtype: pa.DataType) -> bool:
    """Return whether equal values of a column are one value for Spark and for us, and can be written as a literal."""
    is_time = pa.types.is_timestamp(dtype) and dtype.unit == "us"
    is_text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_binary(dtype)
    return bool(
        is_time
        or is_text
        or pa.types.is_integer(dtype)
        or pa.types.is_boolean(dtype)
        or pa.types.is_date32(dtype)
        or pa.types.is_decimal128(dtype)
    )


def join_items(items: Iterable[str]) -> str:
    """Return items with commas, in lines that drawings do not wrap: a break in a text would be another text."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) > _LINE:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{item}"
    return ",\n    ".join(lines)


def key_condition(rows: Sequence[Mapping[str, object]], key: Sequence[str], schema: pa.Schema, alias: str = "") -> str:
    """Return the condition that is true for rows with one of these keys.

    Args:
        rows: The values of the key columns, at least one row.
        alias: The alias of the table, with a dot.
    """
    columns = [f"{alias}{spark_identifier(name)}" for name in key]
    values = [[literal(row[name], schema.field(name).type) for name in key] for row in rows]
    if len(key) == 1:
        return f"{columns[0]} IN ({join_items(value for (value,) in values)})"
    wholes = [" AND ".join(f"{column} = {value}" for column, value in zip(columns, row, strict=True)) for row in values]
    return "(" + "\n    OR ".join(f"({whole})" for whole in wholes) + ")"


def spark_condition(condition: Condition, schema: pa.Schema, alias: str = "") -> str | None:
    """Return a condition in Spark SQL that is true for the same rows; None if that is not certain.

    Args:
        alias: The alias of the table, with a dot.
    """
    parts = [_expression(part.expression, schema, alias) for part in condition.parts]
    known = [part for part in parts if part is not None]
    return "\n  AND ".join(known) if known and len(known) == len(parts) else None


def _expression(expression: skipping.SkippingExpression, schema: pa.Schema, alias: str) -> str | None:  # noqa: PLR0911 - one line for each expression
    match expression:
        case skipping.And(parts):
            return _join(parts, "AND", schema, alias)
        case skipping.Or(parts):
            return _join(parts, "OR", schema, alias)
        case skipping.Not(part):
            inner = _expression(part, schema, alias)
            return None if inner is None else f"NOT ({inner})"
        case skipping.IsNull(column):
            return f"{alias}{spark_identifier(column)} IS NULL"
        case skipping.IsTrue(column):
            return f"{alias}{spark_identifier(column)}"
        case skipping.StartsWith(column, prefix, is_all):
            return f"startswith({alias}{spark_identifier(column)}, {text_literal(prefix)})" if is_all else None
        case skipping.Inequality(column, operator, limit):
            value = _constant(limit, schema.field(column).type)
            return None if value is None else f"{alias}{spark_identifier(column)} {operator} {value}"
        case skipping.Between(column, low, high):
            name, lower = f"{alias}{spark_identifier(column)}", _constant(low, schema.field(column).type)
            if low is high or low == high:
                return None if lower is None else f"{name} = {lower}"
            upper = _constant(high, schema.field(column).type)
            return None if lower is None or upper is None else f"{name} BETWEEN {lower} AND {upper}"
    return None


def _join(parts: Sequence[skipping.SkippingExpression], word: str, schema: pa.Schema, alias: str) -> str | None:
    texts = [_expression(part, schema, alias) for part in parts]
    known = [text for text in texts if text is not None]
    return "(" + f"\n    {word} ".join(known) + ")" if len(known) == len(texts) else None


def _constant(constant: skipping.Constant, dtype: pa.DataType) -> str | None:
    """Return a constant that compares with a column in Spark as it does in DuckDB; None if that is not certain."""
    if constant.is_text and not (pa.types.is_string(dtype) or pa.types.is_large_string(dtype)):
        return _convert(constant, dtype)
    if constant.type_name == "VARCHAR":
        return text_literal(str(_value(f"CAST({constant.text} AS VARCHAR)")))
    if constant.type_name == "BOOLEAN" and pa.types.is_boolean(dtype):
        return "true" if _value(constant.text) else "false"
    if constant.type_name == "DATE" and pa.types.is_date(dtype):
        return _convert(constant, dtype)
    return _number(constant, dtype)


def _number(constant: skipping.Constant, dtype: pa.DataType) -> str | None:
    if constant.type_name not in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "DOUBLE"):
        return None
    value = _value(constant.text)
    if pa.types.is_float64(dtype):
        return literal(float(str(value)), dtype)
    number = Decimal(str(value))
    if not number.is_finite() or constant.type_name == "DOUBLE" or len(number.as_tuple().digits) > _EXACT_DIGITS:
        return None
    if pa.types.is_floating(dtype):
        is_exact = number == number.to_integral_value() and abs(number) <= _EXACT_FLOAT
        return str(int(number)) if is_exact else None
    if (exact := _of_type(number, dtype)) is not None:
        return literal(exact, dtype)
    scale = max(0, -int(number.as_tuple().exponent))
    if pa.types.is_decimal(dtype) and dtype.precision - dtype.scale + max(scale, dtype.scale) > _MAX_PRECISION:
        return None
    is_exact_type = pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)
    return (str(int(number)) if not scale else f"{number:f}BD") if is_exact_type else None


def _of_type(number: Decimal, dtype: pa.DataType) -> int | Decimal | None:
    """Return a number as a value of a column's type; None if the type does not have it."""
    try:
        value = pa.scalar(number).cast(dtype).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return value if isinstance(value, int | Decimal) and value == number else None


def _convert(constant: skipping.Constant, dtype: pa.DataType) -> str | None:
    """Return text that DuckDB casts to the column's type, as a literal of that type."""
    if pa.types.is_date32(dtype):
        day = _value(f"CAST({constant.text} AS DATE)")
        return None if day in (date.min, date.max) else literal(day, dtype)  # these represent infinity too
    if pa.types.is_timestamp(dtype) and dtype.unit == "us":
        type_name = "TIMESTAMP" if dtype.tz is None else "TIMESTAMPTZ"
        micros = _value(f"epoch_us(CAST({constant.text} AS {type_name}))")
        if not isinstance(micros, int) or not _EARLIEST <= micros <= _LATEST:
            return None
        return literal(pa.scalar(micros, pa.int64()).cast(dtype).as_py(), dtype)
    return literal(_value(f"CAST({constant.text} AS BIGINT)"), dtype) if pa.types.is_integer(dtype) else None


def _value(expression: str) -> object:
    with locked_cursor() as cursor:
        return cursor.execute(f"SELECT {expression}").fetchall()[0][0]
