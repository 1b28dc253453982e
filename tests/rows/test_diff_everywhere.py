"""A diff of two versions, applied to the rows of the one, gives the rows of the other: all pairs of the test tables."""

from collections import Counter
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.table import parts_of
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(path for kind in ("paimon", "delta", "iceberg") for path in (DATA / kind).iterdir())
_MOST_PAIRS = 3


def multiset(rows):
    return Counter(map(repr, canonical_rows(rows)))


def under(rows, schema, names):
    """Return rows with the columns of a diff; `names` are those of the columns before, None for one that was added."""
    columns = [
        pa.nulls(len(rows), field.type) if names[field.name] is None else rows[names[field.name]].cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def names_before(a, b):
    """Return the name in A of each column of B, by field id."""
    before = {ids.id: name for name, ids in parts_of(a).loaded.version.field_ids.items()}
    return {name: before.get(ids.id) for name, ids in parts_of(b).loaded.version.field_ids.items()}


def nested_types(version):
    return [field.type for field in parts_of(version).loaded.version.arrow_schema if pa.types.is_nested(field.type)]


def readable(path):
    """Return a table and the rows of the versions that the pairs need."""
    try:
        table = open_table(str(path))
    except SnapshotExplorerError:
        return None, {}
    rows = {}
    for number in table.versions():
        try:
            rows[number] = table.at(number).to_arrow()
        except SnapshotExplorerError:
            continue
        if len(rows) > _MOST_PAIRS:
            break
    return table, rows


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_diff_applied_to_the_rows_of_a_gives_those_of_b(path):
    table, versions = readable(path)
    for a, b in list(permutations(versions, 2))[:_MOST_PAIRS]:
        try:
            diff = table.diff_rows(a, b)
        except UnsupportedFeatureError:
            continue
        if nested_types(table.at(a)) != nested_types(table.at(b)):
            continue  # a cast by names does not give the rows of A under the schema of B
        names = names_before(table.at(a), table.at(b))
        rows_a = multiset(under(versions[a], diff.before.schema, names))
        rows_b = multiset(under(versions[b], diff.before.schema, {name: name for name in names}))
        before, after = multiset(diff.before), multiset(diff.after)

        assert not before - rows_a
        assert rows_a - before + after == rows_b
        assert diff.counts["updated"] == len(diff.updated) == len(diff.before) - len(diff.deleted)
        if not diff.plan.key:
            assert not before & after
