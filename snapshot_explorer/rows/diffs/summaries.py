"""Summaries of changed rows: by column, and by partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.model import AFTER, BEFORE, DELETED, INSERTED
from snapshot_explorer.render.cells import cell, cut
from snapshot_explorer.rows.diffs.aligned_columns import checked_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
"""A row per column that is not part of the key: the updated rows in which it differs, and the first of them."""
_COUNTS = {"inserted": INSERTED, "deleted": DELETED, "updated": AFTER}


def by_column(parts: Iterable[pa.Table], schema: pa.Schema, key: Sequence[str]) -> pa.Table:
    """Return BY_COLUMN for changed rows, those that differ in most rows first.

    Args:
        parts: Changed rows; see `row_changes.changes_schema`.
        schema: The columns that were compared.
    """
    if not key:
        raise InvalidArgumentError(
            "Rows were compared without a key, so that none is updated and columns are not compared one by one. Name "
            "the columns that identify a row: key=[...]."
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
    # By place: the first two columns are not those of the rows, and may have had a row's name.
    return cut(cell(rows.column(rows.schema.names.index(name, 2))[index]).text, _WIDEST_VALUE)


def by_values(parts: Iterable[pa.Table], schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return the number of inserted, deleted and updated rows for each combination of values, most changes first.

    An updated row counts under the values that it has in B.

    Args:
        parts: Changed rows; see `row_changes.changes_schema`.
        schema: The columns that were compared.
        names: The columns whose values divide the rows.

    Raises:
        InvalidArgumentError: A column was not compared, or has a nested type.
    """
    chosen = checked_names(names, schema.names, "by_partition") or ()
    fields = [schema.field(name) for name in chosen]
    nested = next((field for field in fields if pa.types.is_nested(field.type)), None)
    if not chosen or nested is not None:
        what = "No column is named" if nested is None else f"The column {nested.name!r} is {nested.type}"
        raise InvalidArgumentError(f"{what}. Name columns of plain types whose values divide the rows.")
    keys = [f"k{index}" for index in range(len(chosen))]
    known = pa.schema(
        [field.with_name(name) for field, name in zip(fields, keys, strict=True)]
        + [pa.field(name, pa.int64()) for name in _COUNTS]
    )
    total = known.empty_table()
    for part in parts:
        places = [part.schema.names.index(name, 2) for name in chosen]
        columns = [part.column(index) for index in places]
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
