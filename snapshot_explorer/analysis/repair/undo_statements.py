"""The statements that undo one commit, in Spark SQL: rows that later commits changed are left unchanged."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.repair.spark_sql import (
    join_items,
    literal,
    spark_identifier,
    typed_literal,
)
from snapshot_explorer.analysis.repair.statements import CURRENT, EARLIER
from snapshot_explorer.core.records import AFTER, DELETED, INSERTED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from snapshot_explorer.analysis.repair.selection import RowCounts
    from snapshot_explorer.analysis.repair.statements import Target

LATER = "later"
"""The alias of the version that the commit made."""
_CHANGED = "changed"
"""The alias of the rows that the commit changed."""


def insert_removed(target: Target, later: str, key: Sequence[str], condition: str | None) -> str:
    """Return the INSERT of all rows that a commit removed and no later commit inserted again, by their key.

    Args:
        later: The table at the commit.
        condition: The condition on the version before, by the alias `EARLIER`; None for all rows.
    """
    lines = [
        f"INSERT INTO {target.table} ({_names(target.columns)})",
        f"SELECT {join_items(f'{EARLIER}.{spark_identifier(name)}' for name in target.columns)}",
        f"FROM {target.earlier} AS {EARLIER}",
        f"LEFT ANTI JOIN {later} AS {LATER} ON {_same_key(key, EARLIER, LATER)}",
        f"LEFT ANTI JOIN {target.table} AS {CURRENT} ON {_same_key(key, EARLIER, CURRENT)}",
    ]
    return "\n".join([*lines, *([] if condition is None else [f"WHERE {condition}"])])


def merge_changed(
    target: Target,
    later: str,
    key: Sequence[str],
    condition: str | None,
    counts: RowCounts,
    *,
    floats: Collection[str],
) -> str:
    """Return the MERGE that undoes a commit for all rows that are as the commit left them: one commit.

    Args:
        later: The table at the commit.
        condition: The condition on both versions, by the aliases `EARLIER` and `LATER`; None for all rows.
        floats: The columns of floats, which are compared as text too: their zeros are equal otherwise.
    """
    rest = [name for name in target.columns if name not in key]
    was_there, is_there, *later_names = _free_names(target.columns, 2 + len(rest))
    names = dict(zip(rest, later_names, strict=True))
    known = f"{spark_identifier(key[0])} IS NOT NULL"
    selected = [
        *(f"coalesce({EARLIER}.{name}, {LATER}.{name}) AS {name}" for name in map(spark_identifier, key)),
        *(f"{EARLIER}.{spark_identifier(name)} AS {spark_identifier(name)}" for name in rest),
        *(f"{LATER}.{spark_identifier(name)} AS {own_name}" for name, own_name in names.items()),
        f"{EARLIER}.{known} AS {was_there}",
        f"{LATER}.{known} AS {is_there}",
    ]
    equal = _all_same(
        [(f"{EARLIER}.{spark_identifier(name)}", f"{LATER}.{spark_identifier(name)}", name in floats) for name in rest]
    )
    one_sided = f"{EARLIER}.{spark_identifier(key[0])} IS NULL OR {LATER}.{spark_identifier(key[0])} IS NULL"
    is_left = _all_same(
        [
            (f"{CURRENT}.{spark_identifier(name)}", f"{_CHANGED}.{own_name}", name in floats)
            for name, own_name in names.items()
        ]
    )
    lines = [
        f"MERGE INTO {target.table} AS {CURRENT}",
        f"USING (\n  SELECT {join_items(selected)}\n  FROM {target.earlier} AS {EARLIER}",
        f"  FULL OUTER JOIN {later} AS {LATER} ON {_same_key(key, EARLIER, LATER)}",
        f"  WHERE ({one_sided}\n    OR NOT ({equal}))" + ("" if condition is None else f"\n    AND ({condition})"),
        f") AS {_CHANGED}",
        f"ON {_same_key(key, CURRENT, _CHANGED)}",
    ]
    if counts.updated:
        sets = join_items(f"{spark_identifier(name)} = {_CHANGED}.{spark_identifier(name)}" for name in rest)
        both = f"{_CHANGED}.{was_there} AND {_CHANGED}.{is_there}"
        lines.append(f"WHEN MATCHED AND {both}\n    AND {is_left} THEN UPDATE SET\n    {sets}")
    if counts.deleted:
        lines.append(f"WHEN MATCHED AND NOT {_CHANGED}.{was_there}\n    AND {is_left} THEN DELETE")
    if counts.inserted:
        lines.append(_insert_changed(f"NOT {_CHANGED}.{is_there}", target.columns))
    return "\n".join(lines)


def merge_listed(target: Target, key: Sequence[str], rows: pa.Table) -> str:
    """Return the MERGE that inserts, updates and deletes the listed rows by their key: one commit.

    Args:
        rows: Whether each row is inserted, updated or deleted, as in `Table.row_changes`, then the columns.
    """
    columns, kinds = rows.column_names[1:], rows.column(0).to_pylist()
    (kind,) = _free_names(columns, 1)
    types = rows.schema.types[1:]
    values = join_items(f"({', '.join(map(typed_literal, row, types))}, '{own}')" for own, *row in _rows(rows))
    rest = [name for name in columns if name not in key]
    lines = [
        f"MERGE INTO {target.table} AS {CURRENT}",
        f"USING (\n  SELECT * FROM VALUES\n    {values}\n  AS {LATER} ({_names(columns)}, {kind})\n) AS {_CHANGED}",
        f"ON {_same_key(key, CURRENT, _CHANGED)}",
    ]
    if AFTER in kinds:
        sets = join_items(f"{spark_identifier(name)} = {_CHANGED}.{spark_identifier(name)}" for name in rest)
        lines.append(f"WHEN MATCHED AND {_CHANGED}.{kind} = '{AFTER}' THEN UPDATE SET\n    {sets}")
    if DELETED in kinds:
        lines.append(f"WHEN MATCHED AND {_CHANGED}.{kind} = '{DELETED}' THEN DELETE")
    if INSERTED in kinds:
        lines.append(_insert_changed(f"{_CHANGED}.{kind} = '{INSERTED}'", columns))
    return "\n".join(lines)


def _insert_changed(condition: str, columns: Sequence[str]) -> str:
    values = join_items(f"{_CHANGED}.{spark_identifier(name)}" for name in columns)
    return f"WHEN NOT MATCHED AND {condition} THEN INSERT\n    ({_names(columns)})\n  VALUES\n    ({values})"


def insert_difference(target: Target, later: str, condition: str | None) -> str:
    """Return the INSERT of the rows that a commit removed, each as often as it was removed: whole rows are compared."""
    where = "" if condition is None else f"\nWHERE {condition}"
    names = _names(target.columns)
    return (
        f"INSERT INTO {target.table} ({names})\nSELECT {names}\nFROM {target.earlier}{where}\n"
        f"EXCEPT ALL\nSELECT {names}\nFROM {later}{where}"
    )


def insert_rows(target: Target, rows: pa.Table) -> str:
    """Return the INSERT of the rows that a commit deleted, which are listed."""
    removed = _of_kind(rows, DELETED)
    values = join_items(
        f"({', '.join(_literal(value, removed.schema.field(index).type) for index, value in enumerate(row))})"
        for row in _rows(removed)
    )
    return f"INSERT INTO {target.table} ({_names(removed.column_names)})\nVALUES\n    {values}"


def delete_rows(target: Target, rows: pa.Table) -> str:
    """Return the DELETE of the rows that a commit inserted, which are listed. It deletes all equal rows."""
    inserted = _of_kind(rows, INSERTED)
    conditions = dict.fromkeys(
        " AND ".join(
            _is_value(spark_identifier(name), value, inserted.schema.field(index).type)
            for index, (name, value) in enumerate(zip(inserted.column_names, row, strict=True))
        )
        for row in _rows(inserted)
    )
    return f"DELETE FROM {target.table}\nWHERE " + target.deleted("\n    OR ".join(f"({item})" for item in conditions))


def _names(columns: Sequence[str]) -> str:
    return join_items(map(spark_identifier, columns))


def _free_names(columns: Sequence[str], number: int) -> list[str]:
    """Return names that no column has, in any case, in backticks."""
    taken = {name.lower() for name in columns}
    names = (f"{LATER}_{index}" for index in count())
    return [
        spark_identifier(name)
        for name, _ in zip((name for name in names if name not in taken), range(number), strict=False)
    ]


def _same_key(key: Sequence[str], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in map(spark_identifier, key))


def _all_same(pairs: Sequence[tuple[str, str, bool]]) -> str:
    """Return the condition that pairs of expressions have equal values, nulls included; of floats, each zero too."""
    parts = []
    for left, right, is_float in pairs:
        parts.append(f"{left} <=> {right}")
        parts += [f"CAST({left} AS STRING) <=> CAST({right} AS STRING)"] if is_float else []
    return "\n    AND ".join(parts) or "true"


def _of_kind(rows: pa.Table, kind: str) -> pa.Table:
    kinds = rows.column(0).to_pylist()
    return rows.select(list(range(2, rows.num_columns))).filter(pa.array([item == kind for item in kinds], pa.bool_()))


def _rows(rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _literal(value: object, dtype: pa.DataType) -> str:
    return "NULL" if value is None else literal(value, dtype)


def _is_value(name: str, value: object, dtype: pa.DataType) -> str:
    """Return the condition that a column has a value: never null."""
    if value is None:
        return f"{name} IS NULL"
    equal = f"{name} <=> {literal(value, dtype)}"
    if isinstance(value, float) and value == 0:
        return f"{equal} AND CAST({name} AS STRING) = '{math.copysign(0.0, value)}'"
    return equal
