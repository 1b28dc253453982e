"""Versions whose files VACUUM deleted: they have expired. A file that the newest version needs was lost."""

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError
from tests.inner.delta import removals
from tests.support.delta.table_builder import DeltaTable, add, cdc, metadata, protocol, remove

EXPIRED = (
    r"Version {} has expired: the data file {} does not exist. It is not among the files of version {} and newer ones, "
    r"so VACUUM may have deleted it; table\.verify\(\) lists"
)
OLD = "11111111-2222-4333-8444-555555555555"
"""The name of a file with a deletion vector."""


@pytest.fixture
def table(memory_root):
    table = DeltaTable(*memory_root)
    table.append([(1, "a")], name="a.parquet")
    table.append([(2, "b")], name="b.parquet")
    table.commit(remove("a.parquet"), table.data("c.parquet", [(1, "A")]))
    return table


def test_a_version_whose_file_was_vacuumed_has_expired(table):
    table.remove_file("a.parquet")
    opened = open_table(table.url)

    for read in (
        lambda: opened.at(1).to_arrow(),
        lambda: opened.at(1).to_arrow(where="id > 0"),
        lambda: opened.diff_rows(1, 3).to_arrow(),
        lambda: opened.sql("select * from this version as of 1"),
    ):
        with pytest.raises(SnapshotNotFoundError, match=EXPIRED.format(1, "a.parquet", 3)):
            read()
    assert sorted(opened.current.to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_file_that_was_removed_before_the_commits_that_are_read_is_not_in_the_newest_version(table, monkeypatch):
    monkeypatch.setattr(removals, "MAX_COMMITS", 1)
    table.append([(3, "c")], name="d.parquet")
    table.remove_file("a.parquet")

    with pytest.raises(SnapshotNotFoundError, match=EXPIRED.format(1, "a.parquet", 4)):
        open_table(table.url).at(1).to_arrow()


def test_a_file_that_a_commit_removed_after_the_table_was_opened_has_expired(table):
    opened = open_table(table.url)
    table.commit(remove("c.parquet"))
    table.remove_file("c.parquet")

    with pytest.raises(SnapshotNotFoundError, match=EXPIRED.format(3, "c.parquet", 4)):
        opened.current.to_arrow()


@pytest.mark.parametrize("max_commits", [0, 1000])
def test_a_file_that_the_newest_version_needs_was_lost(table, monkeypatch, max_commits):
    monkeypatch.setattr(removals, "MAX_COMMITS", max_commits)
    table.remove_file("b.parquet")
    opened = open_table(table.url)

    for version in (2, 3):
        with pytest.raises(
            CorruptTableError, match=r"The data file b.parquet does not exist.*lost.*table\.verify\(\) lists"
        ):
            opened.at(version).to_arrow()


def test_a_file_at_a_full_location_that_the_newest_version_needs_was_lost(table):
    table.commit(add(f"{table.url}/lost.parquet", rows=1))

    with pytest.raises(CorruptTableError, match=r"lost.parquet does not exist.*lost"):
        open_table(table.url).at(4).to_arrow()


@pytest.mark.parametrize(("replaced", "error"), [(True, SnapshotNotFoundError), (False, CorruptTableError)])
def test_a_version_whose_deletion_vector_was_vacuumed_has_expired(memory_root, replaced, error):
    table = DeltaTable(*memory_root, first=(protocol(3, 7, features=["deletionVectors"]), metadata()))
    data = table.data("a.parquet", [(1, "a"), (2, "b"), (3, "c")])
    table.commit(data)
    old = table.vector([0], name=OLD)
    table.commit(remove("a.parquet"), _with(data, old))
    if replaced:
        table.commit(remove("a.parquet", vector=old), _with(data, table.vector([0, 1])))
    table.remove_file(f"deletion_vector_{OLD}.bin")

    with pytest.raises(error, match=r"he file .*bin with the deletion vector of a.parquet does not exist"):
        open_table(table.url).at(2).to_arrow()


def test_changes_whose_files_were_vacuumed_have_expired(table):
    table.commit(remove("c.parquet"), cdc("_change_data/x.parquet"))
    table.remove_file("a.parquet")
    opened = open_table(table.url)

    with pytest.raises(SnapshotNotFoundError, match="Version 4 has expired: the data file _change_data/x.parquet"):
        opened.at(4).changelog()
    with pytest.raises(SnapshotNotFoundError, match=EXPIRED.format(1, "a.parquet", 3)):
        opened.at(1).changelog()


def _with(data, vector):
    return {"add": data["add"] | {"deletionVector": vector}}
