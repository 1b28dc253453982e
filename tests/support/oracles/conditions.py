"""Random conditions on rows that are there, and which rows match when all of them are looked at."""

import math

import duckdb
import pyarrow as pa

from tests.support.canonical import canonical_rows


def conditions(rows, dice, count=3):
    """Random conditions in SQL on the simple columns of a table, about values that it holds."""
    simple = [name for name, kind in zip(rows.column_names, rows.schema.types, strict=True) if is_simple(kind)]
    return [condition(rows, dice, dice.choice(simple)) for _ in range(count)] if simple and rows.num_rows else []


def condition(rows, dice, name):
    """A condition on a column, sometimes together with one on another."""
    first, second = (literal(dice.choice(rows.column(name))) for _ in range(2))
    column = f'"{name}"'
    ways = [
        f"{column} {dice.choice(('=', '<', '<=', '>', '>=', '<>'))} {first}",
        f"{column} IN ({first}, {second})",
        f"{column} BETWEEN {first} AND {second}",
        f"{column} IS NULL",
        f"NOT ({column} > {first})",
        f"({column} < {first} OR {column} = {second})",
    ]
    chosen = dice.choice(ways)
    if dice.random() < 0.3:
        chosen += f" AND {dice.choice([f'{column} IS NOT NULL', f'{column} <> {second}'])}"
    return chosen


def is_simple(kind):
    """Whether a condition can be written on a type."""
    types = pa.types
    if types.is_timestamp(kind) and kind.tz and kind.unit == "ns":
        return False  # DuckDB has no such literal
    return not (types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def literal(scalar):
    """A value as SQL text."""
    value = canonical_rows(pa.table({"v": pa.array([scalar.as_py()], scalar.type)}))[0][0]
    if value is None:
        return "NULL"
    if pa.types.is_floating(scalar.type) and (isinstance(value, str) or not math.isfinite(value)):
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, str) and not pa.types.is_decimal(scalar.type):
        quoted = "'" + value.replace("'", "''") + "'"
        if pa.types.is_timestamp(scalar.type):
            return f"{'TIMESTAMPTZ' if scalar.type.tz else 'TIMESTAMP'} {quoted}"
        words = {pa.date32(): "DATE ", pa.time32("ms"): "TIME "}
        return words.get(scalar.type, "") + quoted
    return str(value).upper() if isinstance(value, bool) else str(value)


def matching(rows, condition):
    """The positions of the rows that match."""
    simple = [name for name, kind in zip(rows.column_names, rows.schema.types, strict=True) if is_simple(kind)]
    looked_at = rows.select(simple).append_column("position of a row", pa.array(range(rows.num_rows), pa.int64()))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("looked_at", looked_at)
        return connection.sql(f'SELECT "position of a row" FROM looked_at WHERE {condition}').to_arrow_table().column(0)
