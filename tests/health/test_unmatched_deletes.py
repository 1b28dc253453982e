"""Deletes that apply to no data file are a finding of health: they delete nothing, and every plan reads them."""

import fsspec
import pytest

from snapshot_explorer import open_table
from tests.support.iceberg.table_builder import ADDED, IcebergTable, entry
from tests.support.paimon.table_builder import PaimonTable

FINDING = "deletes without a file"


@pytest.fixture
def table(memory_root):
    table = IcebergTable(*memory_root)
    table.commit([(1, "a"), (2, "b")])
    return table


def finding(root, version="latest"):
    rows = open_table(f"memory://{root}").health(version).findings.to_arrow().to_pylist()
    return next((row for row in rows if row["finding"] == FINDING), None)


def vector(table, name, number=1):
    """Commit a deletion vector of a data file; its bytes are not read."""
    table.sequence += 1
    snapshot_id, head = next(table.ids), table.metadata["refs"]["main"]["snapshot-id"]
    record = {
        "content": 1,
        "file_path": table.path(f"data/vector-{number}.puffin"),
        "file_format": "PUFFIN",
        "partition": {},
        "record_count": 1,
        "file_size_in_bytes": 100,
        "referenced_data_file": table.path(f"data/{name}"),
        "content_offset": 4,
        "content_size_in_bytes": 44,
    }
    table.manifests[snapshot_id] = [
        table.manifest(snapshot_id, [entry(ADDED, record)], content=1),
        *table.manifests[head],
    ]
    table.add_snapshot(snapshot_id, head, {"operation": "delete"}, millis=table._millis(None))


def remove_first(table):
    table.commit([(3, "c")], removed=["data-1.parquet"], operation="overwrite")


KINDS = {
    "equality": lambda table: table.delete_ids([1]),
    "positions of one file": lambda table: table.delete("data-1.parquet", [0]),
    "vector": lambda table: vector(table, "data-1.parquet"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_deletes_of_iceberg_match_files_until_these_are_removed(table, kind):
    KINDS[kind](table)
    table.write_metadata()
    before = finding(table.root)
    remove_first(table)
    table.write_metadata()
    after = finding(table.root)

    assert (before["state"], before["value"]) == ("ok", 0)
    assert before["found"] == "each delete file and deletion vector (1) applies to a data file"
    assert (after["state"], after["value"]) == ("watch", 1)
    assert after["found"] == "1 of 1 delete files and deletion vectors applies to no data file"
    assert "remove-dangling-deletes" in after["advice"]


def test_a_table_without_deletes_has_no_such_finding(table):
    table.write_metadata()

    assert finding(table.root) is None


def test_an_equality_delete_does_not_apply_to_files_of_its_own_commit_or_later_ones(table):
    remove_first(table)
    table.delete_ids([3])
    table.commit([(4, "d")], removed=["data-2.parquet"], operation="overwrite")
    table.write_metadata()

    assert finding(table.root)["value"] == 1


def test_each_of_several_deletes_is_judged(table):
    table.commit([(5, "e")])
    vector(table, "data-1.parquet")
    table.delete("data-2.parquet", [0])
    table.delete_ids([5])
    remove_first(table)
    table.write_metadata()

    assert finding(table.root)["found"] == "1 of 3 delete files and deletion vectors applies to no data file"


def test_a_delete_file_that_may_apply_to_another_file_of_its_partition_counts_as_applying(table):
    table.commit([(5, "e")])
    table.delete("data-1.parquet", [0])  # its statistics do not name the file
    remove_first(table)
    table.write_metadata()

    assert finding(table.root)["value"] == 0


def test_the_verdict_mentions_them(table):
    table.delete("data-1.parquet", [0])
    remove_first(table)
    table.write_metadata()

    assert FINDING in open_table(f"memory://{table.root}").health().verdict


def test_a_vector_of_an_earlier_version_matches_there(table):
    vector(table, "data-1.parquet")
    remove_first(table)
    table.write_metadata()

    assert finding(table.root, 2)["value"] == 0
    assert finding(table.root, 3)["value"] == 1


def test_local_tables_are_judged_in_the_same_way(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "metadata").mkdir()
    table = IcebergTable(fsspec.filesystem("file"), str(tmp_path), location=f"file://{tmp_path}")
    table.commit([(1, "a")])
    table.delete("data-1.parquet", [0])
    remove_first(table)
    table.write_metadata()

    rows = open_table(str(tmp_path)).health().findings.to_arrow().to_pylist()
    assert [row["value"] for row in rows if row["finding"] == FINDING] == [1]


def test_vectors_of_paimon_match_the_files_that_are_live(memory_root):
    table = PaimonTable(*memory_root, options={"deletion-vectors.enabled": "true"})
    table.commit([(1, "a"), (2, "a")])
    table.commit([(3, "a")])
    named = table.index("index-manifest-1", {"data-1.parquet": 1, "data-2.parquet": 1})
    table.commit(None, kind="OVERWRITE", **named)
    before = finding(table.root)
    table.commit([(4, "a")], removed=["data-1.parquet"], kind="OVERWRITE", **named)
    after = finding(table.root)

    assert (before["state"], before["value"]) == ("ok", 0)
    assert (after["state"], after["value"]) == ("watch", 1)
    assert after["found"] == "1 of 2 delete files and deletion vectors applies to no data file"
