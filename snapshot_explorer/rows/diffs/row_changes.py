"""Changed rows as one table: `rowkind`, the names of the changed columns, and the columns of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.model import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND
from snapshot_explorer.rows.diffs.comparison_rules import EXACT
from snapshot_explorer.rows.diffs.row_matching import HashedRows, changed_cells, matched, taken, unmatched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snapshot_explorer.rows.diffs.comparison_rules import ComparisonRules
    from snapshot_explorer.rows.diffs.row_matching import Places

_KINDS = (INSERTED, BEFORE, AFTER, DELETED)
_INSERTED, _BEFORE, _AFTER, _DELETED = range(4)
"""Places in `_KINDS`."""


def first_columns(schema: pa.Schema) -> tuple[str, str]:
    """Return the names of the two columns before those of the rows, with underscores if the rows have such columns."""
    names = []
    for name in (ROW_KIND, "changed_columns"):
        while name in schema.names:
            name += "_"  # noqa: PLW2901 - until the name is unique
        names.append(name)
    return names[0], names[1]


def changes_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of changed rows: `rowkind`, `changed_columns`, and the columns of the rows."""
    kind, changed = first_columns(schema)
    return pa.schema([pa.field(kind, pa.string(), nullable=False), pa.field(changed, pa.list_(pa.string())), *schema])


def compared(before: HashedRows, after: HashedRows, key: Sequence[str], rules: ComparisonRules = EXACT) -> pa.Table:
    """Return the rows that differ, in one table; see `compared_parts`."""
    parts = compared_parts(before, after, key, rules)
    return pa.concat_tables([changes_schema(before.rows.schema).empty_table(), *parts])


def compared_parts(
    before: HashedRows, after: HashedRows, key: Sequence[str], rules: ComparisonRules = EXACT
) -> Iterator[pa.Table]:
    """Yield the rows that differ: deleted ones, inserted ones, then updated ones, each before and after its update.

    Each part is a copy of a few rows, so that two sets without a common row are not in memory twice.

    Args:
        after: Rows of B with the same columns.
        key: The columns that identify a row, unique on each side; empty to compare whole rows.
    """
    columns = before.rows.column_names
    old, new = rules.normalized_rows(before), rules.normalized_rows(after)
    left, right = matched(old, new, key or columns)
    rest = [name for name in columns if name not in key] if key else []
    cells = changed_cells(old.rows, new.rows, left, right, rest)
    rules.keep_beyond(cells, before.rows, after.rows, (left, right), rest)
    updated = np.flatnonzero(cells.any(axis=1))
    at_once = _rows_at_once(before.rows, after.rows)
    for side, kind, partners in ((before, _DELETED, left), (after, _INSERTED, right)):
        for some in _runs(unmatched(len(side.hashes), partners), at_once):
            kinds = np.full(len(some), kind, np.int8)
            yield _part(_at(side.rows, some), kinds, _names(cells[:0], rest, len(some)))
    for some in _runs(updated, at_once // 2 + 1):
        sides = pa.concat_tables([_at(before.rows, left[some]), _at(after.rows, right[some])])
        order = np.arange(2 * len(some)).reshape(2, -1).T.ravel()  # each before its update, then after it
        kinds = np.tile(np.array([_BEFORE, _AFTER], np.int8), len(some))
        yield _part(sides.take(pa.array(order)), kinds, _names(cells[some], rest, 0))


_PART_BYTES = 64 * 2**20
"""The size of the parts in which changed rows are copied."""


def _rows_at_once(*tables: pa.Table) -> int:
    rows = sum(len(table) for table in tables)
    return max(1_000, rows * _PART_BYTES // max(1, sum(int(table.nbytes) for table in tables)))


def _runs(places: Places, size: int) -> Iterator[Places]:
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _at(rows: pa.Table, places: Places) -> pa.Table:
    return pa.Table.from_arrays([taken(column, places) for column in rows.columns], schema=rows.schema)


def _part(rows: pa.Table, kinds: npt.NDArray[np.int8], names: pa.Array) -> pa.Table:
    arrays = [pa.array(_KINDS).take(pa.array(kinds)), names, *rows.columns]
    return pa.Table.from_arrays(arrays, schema=changes_schema(rows.schema))


def _names(cells: npt.NDArray[np.bool_], columns: Sequence[str], nulls: int) -> pa.Array:
    """Return the names of the changed columns, null for rows that are not updated, twice for those that are."""
    doubled = np.repeat(cells, 2, axis=0)
    counts = np.concatenate([np.zeros(nulls, np.int64), doubled.sum(axis=1)])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    names = pa.array(list(columns), pa.string()).take(pa.array(np.nonzero(doubled)[1]))
    mask = np.concatenate([np.ones(nulls, bool), np.zeros(len(doubled), bool)])
    return pa.ListArray.from_arrays(pa.array(offsets), names, mask=pa.array(mask))


def kinds_of(changes: pa.Table) -> dict[str, int]:
    """Return how many rows there are of each kind."""
    counts = pc.value_counts(changes.column(0))
    return {row["values"]: row["counts"] for row in counts.to_pylist()}


def of_kinds(changes: pa.Table, kinds: Sequence[str]) -> pa.Table:
    """Return the rows of some kinds, without `rowkind` and `changed_columns`."""
    rows = changes.filter(pc.is_in(changes.column(0), pa.array(list(kinds))))
    return rows.select(list(range(2, changes.num_columns)))


def side_by_side(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the updated rows: the changed columns, the key, and each other column before and after.

    They are named `amount_before` and `amount_after`; with more underscores if other columns have these names.
    """
    kinds = changes.column(0)
    before, after = (changes.filter(pc.equal(kinds, kind)) for kind in (BEFORE, AFTER))
    names = changes.column_names[2:]
    rest = [name for name in names if name not in key]
    endings = _endings(rest, [changes.column_names[1], *key])
    arrays = [before.column(1), *(before.column(name) for name in key)]
    fields = [changes.schema.field(1), *(changes.schema.field(name) for name in key)]
    for name in rest:
        for side, ending in zip((before, after), endings, strict=True):
            arrays.append(side.column(name))
            fields.append(changes.schema.field(name).with_name(name + ending))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _endings(names: Sequence[str], taken_names: Sequence[str]) -> tuple[str, str]:
    endings = ("_before", "_after")
    while True:
        made = [name + ending for name in names for ending in endings]
        if len(set(made)) == len(made) and not set(made).intersection(taken_names):
            return endings
        endings = ("_" + endings[0], "_" + endings[1])
