"""Changed rows as one table: `rowkind`, the names of the changed columns, and the columns of the rows."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.diff.comparison_rules import EXACT, ComparisonRules
from snapshot_explorer.analysis.diff.row_matching import (
    HashedRows,
    Indices,
    changed_cells,
    match_rows,
    take_rows,
    unmatched_indices,
)
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND

_KINDS = (INSERTED, BEFORE, AFTER, DELETED)
_INSERTED, _BEFORE, _AFTER, _DELETED = range(4)
"""Indices in `_KINDS`."""


def first_columns(schema: pa.Schema) -> tuple[str, str]:
    """Return the names of the first two columns, with underscores if the rows have columns with these names."""
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


def compare_rows(before: HashedRows, after: HashedRows, key: Sequence[str], rules: ComparisonRules = EXACT) -> pa.Table:
    """Return the rows that differ, in one table; see `compare_parts`."""
    parts = compare_parts(before, after, key, rules)
    return pa.concat_tables([changes_schema(before.rows.schema).empty_table(), *parts])


def compare_parts(
    before: HashedRows, after: HashedRows, key: Sequence[str], rules: ComparisonRules = EXACT
) -> Iterator[pa.Table]:
    """Yield the rows that differ: deleted ones, inserted ones, then updated ones, each before and after its update.

    Each part is a copy of a few rows, so that two sets without a common row are not in memory twice.

    Args:
        key: The columns that identify a row, unique on each side; empty to compare whole rows.
    """
    columns = before.rows.column_names
    old, new = rules.normalized_rows(before), rules.normalized_rows(after)
    left, right = match_rows(old, new, key or columns)
    rest = [name for name in columns if name not in key] if key else []
    cells = changed_cells(old.rows, new.rows, left, right, rest)
    rules.keep_beyond(cells, before.rows, after.rows, (left, right), rest)
    updated = np.flatnonzero(cells.any(axis=1))
    at_once = _rows_at_once(before.rows, after.rows)
    for side, kind, partners in ((before, _DELETED, left), (after, _INSERTED, right)):
        for indices in _runs(unmatched_indices(len(side.hashes), partners), at_once):
            kinds = np.full(len(indices), kind, np.int8)
            yield _part(_at(side.rows, indices), kinds, _names(cells[:0], rest, len(indices)))
    for indices in _runs(updated, at_once // 2 + 1):
        sides = pa.concat_tables([_at(before.rows, left[indices]), _at(after.rows, right[indices])])
        order = np.arange(2 * len(indices)).reshape(2, -1).T.ravel()  # each before its update, then after it
        kinds = np.tile(np.array([_BEFORE, _AFTER], np.int8), len(indices))
        yield _part(sides.take(pa.array(order)), kinds, _names(cells[indices], rest, 0))


_PART_BYTES = 64 * 2**20
"""The size of the parts in which changed rows are copied."""


def _rows_at_once(*tables: pa.Table) -> int:
    rows = sum(len(table) for table in tables)
    return max(1_000, rows * _PART_BYTES // max(1, sum(int(table.nbytes) for table in tables)))


def _runs(indices: Indices, size: int) -> Iterator[Indices]:
    for start in range(0, len(indices), size):
        yield indices[start : start + size]


def _at(rows: pa.Table, indices: Indices) -> pa.Table:
    return pa.Table.from_arrays([take_rows(column, indices) for column in rows.columns], schema=rows.schema)


def _part(rows: pa.Table, kinds: npt.NDArray[np.int8], names: pa.Array) -> pa.Table:
    arrays = [pa.array(_KINDS).take(pa.array(kinds)), names, *rows.columns]
    return pa.Table.from_arrays(arrays, schema=changes_schema(rows.schema))


def _names(cells: npt.NDArray[np.bool_], columns: Sequence[str], nulls: int) -> pa.Array:
    """Return the names of the changed columns: null for rows that are not updated, twice for updated rows."""
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


_EXAMPLES = 3
"""Examples of a column."""
_WIDEST_VALUE = 60
"""Characters of a value in an example."""
BY_COLUMN = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("updated_rows", pa.int64(), nullable=False),
        pa.field("examples", pa.list_(pa.string()), nullable=False),
    ]
)
"""A row per column outside of the key: the number of updated rows in which it differs, and the first of them."""
_COUNTS = {"inserted": INSERTED, "deleted": DELETED, "updated": AFTER}


def by_column(parts: Iterable[pa.Table], schema: pa.Schema, key: Sequence[str]) -> pa.Table:
    """Return BY_COLUMN for changed rows, columns that differ in most rows first."""
    if not key:
        raise InvalidArgumentError(
            Message(
                "Rows were compared without a key, so that none is updated and columns are not compared one by one. "
                "Name the columns that identify a row: ",
                Hint("", {"key": [...]}),
                ".",
            )
        )
    counts: Counter[str] = Counter()
    examples: defaultdict[str, list[str]] = defaultdict(list)
    for part in parts:
        before, after = (part.filter(pc.equal(part.column(0), kind)) for kind in (BEFORE, AFTER))
        names = after.column(1)
        for counted_names in pc.value_counts(pc.list_flatten(names)).to_pylist():
            counts[counted_names["values"]] += counted_names["counts"]
            _add_examples(examples[counted_names["values"]], counted_names["values"], (before, after), key)
    chosen = sorted((name for name in schema.names if name not in key), key=lambda name: -counts[name])
    columns = [
        chosen,
        [str(schema.field(name).type) for name in chosen],
        [counts[name] for name in chosen],
        [examples[name] for name in chosen],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, BY_COLUMN, strict=True)]
    return pa.Table.from_arrays(arrays, schema=BY_COLUMN)


def _add_examples(examples: list[str], name: str, sides: tuple[pa.Table, pa.Table], key: Sequence[str]) -> None:
    if len(examples) == _EXAMPLES:
        return
    before, after = sides
    changed = after.column(1).combine_chunks()
    flat = np.asarray(pc.equal(pc.list_flatten(changed), name))
    owners = np.asarray(pc.list_parent_indices(changed))[flat]
    for index in owners[: _EXAMPLES - len(examples)].tolist():
        owner = ", ".join(f"{item}={_shown(after, item, index)}" for item in key)
        examples.append(f"{owner}: {_shown(before, name, index)} → {_shown(after, name, index)}")


def _shown(rows: pa.Table, name: str, index: int) -> str:
    # By index: the first two columns are not columns of the rows, and may have had the name of one.
    return truncate(format_cell(rows.column(rows.schema.names.index(name, 2))[index]).text, _WIDEST_VALUE)


def by_values(parts: Iterable[pa.Table], schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return the number of inserted, deleted and updated rows for each combination of values, most changes first.

    An updated row counts under the values that it has in B.
    """
    chosen = check_names(names, schema.names, "by_partition") or ()
    fields = [schema.field(name) for name in chosen]
    nested = next((field for field in fields if pa.types.is_nested(field.type)), None)
    if not chosen or nested is not None:
        problem = "No column is named" if nested is None else f"The column {nested.name!r} is {nested.type}"
        raise InvalidArgumentError(f"{problem}. Name columns of plain types whose values divide the rows.")
    keys = [f"k{index}" for index in range(len(chosen))]
    known = pa.schema(
        [field.with_name(name) for field, name in zip(fields, keys, strict=True)]
        + [pa.field(name, pa.int64()) for name in _COUNTS]
    )
    total = known.empty_table()
    for part in parts:
        indices = [part.schema.names.index(name, 2) for name in chosen]
        columns = [part.column(index) for index in indices]
        counts = [pc.equal(part.column(0), kind).cast(pa.int64()) for kind in _COUNTS.values()]
        total = _summed(pa.concat_tables([total, pa.Table.from_arrays([*columns, *counts], schema=known)]), keys)
    changes = pc.add(pc.add(total["inserted"], total["deleted"]), total["updated"])
    order = pc.sort_indices(pa.table({"changes": changes}), sort_keys=[("changes", "descending")])
    total = total.take(order).filter(pc.greater(changes.take(order), 0))
    return total.rename_columns([*chosen, *_unique(list(_COUNTS), chosen)])


def _summed(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    result = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in _COUNTS])
    return result.select([*keys, *(f"{name}_sum" for name in _COUNTS)]).rename_columns([*keys, *_COUNTS])


def _unique(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Return names with underscores where columns have them."""
    return [name + "_" * sum(item.rstrip("_") == name for item in taken) for name in names]
