"""Find files that a condition rules out by the bounds of their columns, with one DuckDB query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.engines import data_skipping

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from snapshot_explorer.model import Bounds

_ROWS = "__snapshot_bounds__"


def ruled_out(
    cursor: duckdb.DuckDBPyConnection, parts: Sequence[tuple[data_skipping.Form, frozenset[str]]], bounds: Bounds
) -> pa.StringArray:
    """Return for each file the columns of the first part that none of its rows can match; null if there is none.

    Args:
        parts: The conditions joined by AND, each with the columns that it reads.
        bounds: The bounds of the files. A missing column has unknown bounds.
    """
    import duckdb

    known, rows = _known(bounds, frozenset().union(*(columns for _, columns in parts)))
    cases = [
        f"WHEN NOT {data_skipping.might_match(form, known)} THEN {number}" for number, (form, _) in enumerate(parts)
    ]
    query = f"SELECT CASE {' '.join(cases)} ELSE -1 END AS part FROM {_ROWS}"  # noqa: S608 - constants as DuckDB spells them
    cursor.register(_ROWS, rows)
    try:
        part = cursor.execute(query).fetchnumpy()["part"]
    except duckdb.Error:
        # For example, a bound overflows in a cast. Evaluating the condition raises if a value does.
        return pa.nulls(rows.num_rows, pa.string())
    names = pa.array([", ".join(sorted(columns)) for _, columns in parts])
    return names.take(pa.array(part, mask=part < 0))


def points(
    cursor: duckdb.DuckDBPyConnection, forms: Sequence[data_skipping.Form], schema: pa.Schema
) -> list[pa.Array] | None:
    """Return the only values of each column that matching rows can have; None if a column may have others."""
    result = []
    for column in schema:
        values = next((some for form in forms if (some := data_skipping.equal_values(form, column.name))), ())
        cast = _cast(cursor, values, column) if values else None
        if cast is None:
            return None
        result.append(cast)
    return result


def _known(bounds: Bounds, columns: frozenset[str]) -> tuple[dict[str, data_skipping.ColumnBounds], pa.Table]:
    names = ["rows"]
    arrays = [bounds.rows]
    known = {}
    for index, name in enumerate(sorted(columns & set(bounds.null_count.column_names))):
        dtype = bounds.lower.schema.field(name).type
        is_ordered = data_skipping.is_ordered(dtype)
        names += [f"n{index}"] + ([f"l{index}", f"u{index}"] if is_ordered else [])
        arrays += [bounds.null_count[name]] + ([bounds.lower[name], bounds.upper[name]] if is_ordered else [])
        is_float = pa.types.is_floating(dtype)
        ends = (f"l{index}", f"u{index}")
        lower, upper = (f"CASE WHEN NOT isnan({end}) THEN {end} END" if is_float else end for end in ends)
        known[name] = data_skipping.ColumnBounds(
            lower=lower if is_ordered else None,
            upper=upper if is_ordered else None,
            has_value=f"coalesce(n{index} < rows, true)",
            has_null=f"coalesce(n{index} > 0, true)",
            is_float=is_float,
        )
    return known, pa.table(arrays, names=names)


def _cast(
    cursor: duckdb.DuckDBPyConnection, values: Sequence[data_skipping.Constant], column: pa.Field
) -> pa.Array | None:
    """Return constants in the type of a column; None if one has no exact value in that type."""
    import duckdb

    if not data_skipping.is_exact(column.type, values):
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
    except (duckdb.Error, pa.ArrowInvalid):
        return None
