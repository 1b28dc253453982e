"""The splits in which two versions differ contain all rows that differ, and no file that both versions have."""

from collections import Counter
from itertools import pairwise, permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.diff import changed_splits
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.table import parts_of
from tests.inner.analysis import differing_splits
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable, add, metadata
from tests.support.iceberg.table_builder import IcebergTable

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted([*(DATA / "paimon").iterdir(), *(DATA / "delta").iterdir()])


def rows(version, splits):
    """Return the rows of splits as a multiset."""
    names = version.arrow_schema.names
    batches = [batch for split in splits for batch in version.read(split, names)]
    if not batches:
        return Counter()
    schema = version.arrow_schema
    table = pa.concat_tables(pa.Table.from_arrays(batch.columns, schema=schema) for batch in batches)
    return Counter(map(repr, canonical_rows(table)))


def versions_with_rows(path):
    """Return three versions of a table with their rows, among them the newest, and one whose rows cannot be read."""
    try:
        table = open_table(str(path))
    except SnapshotExplorerError:
        return []
    numbers, found, unreadable = table.versions(), [], []
    for number in dict.fromkeys([*numbers[-1:], *numbers]):
        version = parts_of(table.at(number)).loaded.version
        try:
            found.append((version, rows(version, version.plan().splits)))
        except SnapshotExplorerError:
            unreadable.append((version, None))
        if len(found) == 3:
            break
    return found + unreadable[:1]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_changed_splits_are_those_of_two_plans_and_have_all_rows_that_differ(path):
    for (a, rows_a), (b, rows_b) in permutations(versions_with_rows(path), 2):
        try:
            planned = differing_splits(a.plan().splits, b.plan().splits, a, b)
        except SnapshotExplorerError as error:
            with pytest.raises(type(error)):
                changed_splits(a, b)
            continue
        found = changed_splits(a, b)

        assert found.shared_files == planned.shared_files
        for some, others in ((found.before, planned.before), (found.after, planned.after)):
            assert Counter(split.identity for split in some) == Counter(split.identity for split in others)
        if a.arrow_schema == b.arrow_schema and None not in (rows_a, rows_b):
            before, after = rows(a, found.before), rows(b, found.after)
            assert not before - rows_a
            assert rows_a - before == rows_b - after


@pytest.mark.parametrize("name", ["delta/dv_partitioned", "paimon/dv_append", "paimon/dv"])
def test_of_a_file_that_differs_in_its_deletion_vector_only_the_deleted_rows_are_read(name):
    table = open_table(str(DATA / name))
    counts = []
    for number in table.versions()[1:]:
        a, b = parts_of(table.at(number - 1)).loaded.version, parts_of(table.at(number)).loaded.version
        found = changed_splits(a, b)
        shared = {file for split in found.before for file in split.files}
        shared &= {file for split in b.plan().splits for file in split.files}
        read = sum(rows(a, [split for split in found.before if shared.issuperset(split.files)]).values())
        whole = sum(split.rows or 0 for split in a.plan().splits if shared.intersection(split.files))
        counts.append((read, whole))

    assert any(0 < read < whole for read, whole in counts)


@pytest.mark.parametrize("name", ["paimon/odd_names", "delta/dv_partitioned"])
def test_files_that_two_versions_share_are_not_planned(name):
    table = open_table(str(DATA / name))
    versions = [parts_of(table.at(number)).loaded.version for number in table.versions()]

    planned = [a.row_identity.plan_pair(b.row_identity, (None, None)) for a, b in pairwise(versions)]

    assert any(pair.shared_files for pair in planned)
    for pair, (a, _) in zip(planned, pairwise(versions), strict=True):
        files = sum(len(split.files) for split in a.plan().splits)
        assert sum(len(split.files) for split in pair.splits[0]) == files - pair.shared_files


def test_a_version_differs_from_itself_in_no_split():
    version = parts_of(open_table(str(DATA / "delta" / "dv_partitioned")).current).loaded.version

    found = changed_splits(version, version)

    assert not found.before
    assert not found.after
    assert found.shared_files == sum(len(split.files) for split in version.plan().splits)


@pytest.mark.parametrize(
    ("name", "a", "b"), [("paimon/evolution_append", 1, 2), ("delta/mapping_name", 1, 2), ("delta/mapping_id", 3, 5)]
)
def test_a_file_is_shared_where_only_the_schema_differs(name, a, b):
    table = open_table(str(DATA / name))
    first, last = parts_of(table.at(a)).loaded.version, parts_of(table.at(b)).loaded.version

    plan = table.diff_rows(a, b, preview=True)

    assert first.schema != last.schema
    assert changed_splits(first, last).shared_files == 0
    assert plan.shared_files > 0


def test_files_of_iceberg_are_shared_where_another_column_was_renamed_or_added(memory_root):
    table = IcebergTable(*memory_root)
    table.commit([(1, "a"), (2, "b")])
    fields = table.metadata["schemas"][0]["fields"]
    renamed = [{**fields[0], "name": "number"}, fields[1], {"id": 3, "name": "more", "required": False, "type": "long"}]
    table.metadata["schemas"] = [table.metadata["schemas"][0], {"type": "struct", "schema-id": 1, "fields": renamed}]
    table.metadata["current-schema-id"] = 1
    table.delete("data-1.parquet", [0])
    table.commit([(3, "c")])
    for snapshot in table.metadata["snapshots"][1:]:
        snapshot["schema-id"] = 1
    table.write_metadata()
    opened = open_table(f"memory://{memory_root[1]}")

    # A file may have the added column already, by what the metadata says: it is read where the column is compared.
    known, whole = opened.diff_rows(1, 3, columns=["number", "name"]), opened.diff_rows(1, 3)

    assert opened.diff_rows(2, 3, columns=["number", "name"], preview=True).shared_files == 1
    assert opened.diff_rows(1, 3, preview=True).shared_files == 0
    assert known.before.to_pylist() == [{"number": 1, "name": "a"}]
    assert known.after.to_pylist() == [{"number": 3, "name": "c"}]
    assert whole.before.drop_columns("more").equals(known.before)
    assert whole.after["number"].to_pylist() == [3]


def test_a_file_that_might_have_an_added_column_is_read(tmp_path):
    table = DeltaTable(None, tmp_path)
    stored = pa.table({"id": [1], "name": ["a"], "more": [7]})
    pq.write_table(stored, tmp_path / "a.parquet")
    table.commit(add("a.parquet", rows=1, size=(tmp_path / "a.parquet").stat().st_size))
    table.commit(metadata([("id", "long"), ("name", "string"), ("more", "long")]))

    diff = open_table(str(tmp_path)).diff_rows(1, 2, key="id")

    assert diff.updated["more_after"].to_pylist() == [7]
