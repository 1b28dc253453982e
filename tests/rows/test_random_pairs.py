"""The diff of two tables of any formats is what DuckDB finds by brute force on their loaded rows."""

import os
from collections import Counter

import duckdb
import fsspec
import pyarrow as pa
import pytest

import snapshot_explorer as sx
from snapshot_explorer import open_table
from tests.support.pair_tables import random_pair
from tests.support.sample_sizes import sample_size

_PAIRS = int(os.environ.get("SNAPSHOT_EXPLORER_PAIRS", sample_size(200, 40)))
_SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "33"))


def _text(column, kind):
    """Return the SQL for a value as text, equal for values that are equal, whichever type they are stored in."""
    if pa.types.is_floating(kind):
        return f"CAST({column} AS DOUBLE)::VARCHAR"
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return f"CAST({column} AS DECIMAL(38, 10))::VARCHAR"
    if pa.types.is_timestamp(kind):
        return f"epoch_us({column})::VARCHAR"
    if pa.types.is_string(kind):
        return f"hex(encode({column}))"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return f"hex({column})"
    if pa.types.is_struct(kind):
        parts = ", ".join(
            f"'{part.name}', {_text(f'{column}.{part.name}', part.type)}"
            for part in sorted(kind, key=lambda part: part.name)
        )
        return f"CASE WHEN {column} IS NOT NULL THEN [{parts}]::VARCHAR END"
    if pa.types.is_map(kind):
        return f"list_sort(map_entries({column}))::VARCHAR"
    return f"{column}::VARCHAR"


def _rows(rows, names):
    """Return rows as a multiset of texts, by DuckDB."""
    if not len(rows):
        return Counter()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows_", rows)
        columns = ", ".join(_text(f'"{name}"', rows.schema.field(name).type) for name in names)
        return Counter(connection.sql(f"SELECT {columns} FROM rows_").fetchall())


@pytest.mark.parametrize("start", range(0, _PAIRS, 20))
def test_the_diff_of_two_tables_is_what_brute_force_finds(start):
    filesystem = fsspec.filesystem("memory")
    for number in range(start, min(start + 20, _PAIRS)):
        roots, formats, renames, is_keyed = random_pair(_SEED * 100_000 + number, f"/pairs{number}", filesystem)
        try:
            _check(roots, renames, is_keyed)
        except BaseException as error:
            error.add_note(f"pair {number} of {formats}")
            raise
        finally:
            filesystem.rm(f"/pairs{number}", recursive=True)


def _check(roots, renames, is_keyed):
    a, b = (open_table(f"memory://{root}").at("latest") for root in roots)
    key = ["id"] if is_keyed else []
    diff = sx.diff(a, b, key, columns=renames, memory_limit=None)
    names_b = list(diff.plan.columns)
    back = {new: old for old, new in renames.items()}
    before = _rows(a.to_arrow(), [back.get(name, name) for name in names_b])
    after = _rows(b.to_arrow(), names_b)

    assert _rows(diff.before, names_b) == before - after
    assert _rows(diff.after, names_b) == after - before
    assert diff.is_empty == (before == after)
    if not is_keyed:
        return
    place = names_b.index("id")
    old, new = ({row[place]: row for row in rows} for rows in (before, after))
    changed = {one for one in old.keys() & new.keys() if old[one] != new[one]}

    assert diff.counts == {
        "inserted": len(new.keys() - old.keys()),
        "deleted": len(old.keys() - new.keys()),
        "updated": len(changed),
    }
    cells = sum(x != y for one in changed for x, y in zip(old[one], new[one], strict=True))
    assert sum(diff.by_column.to_arrow()["updated_rows"].to_pylist()) == cells
