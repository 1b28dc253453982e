"""Which rows commits of Iceberg tables changed, and which files."""

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import UnsupportedFeatureError
from tests.support.iceberg.table_builder import ADDED, IcebergTable, entry


@pytest.fixture
def table(memory_root):
    return IcebergTable(*memory_root)


def opened(table):
    return open_table(f"memory://{table.root}")


def changed(table, a, b, **options):
    rows = opened(table).row_changes(a, b, **options)
    return sorted(zip(rows["rowkind"].to_pylist(), rows["id"].to_pylist(), strict=True))


def test_rows_of_removed_files_are_deleted_and_those_of_added_files_inserted(table):
    table.commit([(1, "a")])
    table.commit([(2, "b"), (3, "c")])
    table.commit([(3, "C")], removed=["data-2.parquet"], operation="overwrite")

    assert changed(table, 1, 2) == [("+I", 2), ("+I", 3)]
    assert changed(table, 2, 3) == [("+I", 3), ("-D", 2), ("-D", 3)]
    assert changed(table, 1, 3, mode="delta") == [("+I", 2), ("+I", 3), ("+I", 3), ("-D", 2), ("-D", 3)]


def test_a_compaction_changes_no_row_and_is_not_a_change_of_data(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.commit([(1, "a"), (2, "b")], removed=["data-1.parquet", "data-2.parquet"], operation="replace")

    assert changed(table, 2, 3) == []
    assert set(opened(table).at(3).file_changes()["data_change"].to_pylist()) == {False}
    assert opened(table).at(3).commit.kind == "compact"


def test_changes_carry_the_columns_of_icebergs_changelog(table):
    first = table.commit([(1, "a")])
    second = table.commit([(2, "b")], removed=["data-1.parquet"], operation="overwrite")

    rows = opened(table).row_changes("earliest^", 2, ["id", "_change_type", "_change_ordinal", "_commit_snapshot_id"])

    assert sorted(map(tuple, (row.values() for row in rows.to_pylist())), key=lambda row: row[3:]) == [
        ("+I", 1, "INSERT", 0, first),
        ("-D", 1, "DELETE", 1, second),
        ("+I", 2, "INSERT", 1, second),
    ]


def test_delete_files_are_not_changes_of_data_files_but_deletions_of_them(table):
    table.commit([(1, "a")])
    table.sequence += 1
    snapshot_id = next(table.ids)
    deletes = {
        "content": 1,
        "file_path": table.path("data/deletes.parquet"),
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 1,
        "file_size_in_bytes": 1,
    }
    head = table.metadata["current-snapshot-id"]
    record = table.manifest(snapshot_id, [entry(ADDED, deletes)], content=1)
    table.manifests[snapshot_id] = [record, *table.manifests[head]]
    table.add_snapshot(snapshot_id, head, {"operation": "delete", "added-delete-files": "1"}, millis=1_767_226_000_000)

    assert opened(table).at(2).file_changes().num_rows == 0
    assert opened(table).at(2).manifests()["list"].to_pylist() == ["base", "index"]
    assert opened(table).current.files()["deletion_vector"].to_pylist() == ["data/deletes.parquet"]


def test_a_replacement_of_the_table_removes_its_rows(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")], parent=False, operation="overwrite")

    assert changed(table, 1, 2) == [("+I", 2), ("-D", 1)]


def test_changes_of_a_commit_whose_parent_has_expired_are_refused(table):
    old = table.commit([(1, "a")])
    for number in (2, 3):
        table.commit([(number, "b")])
    table.tag("kept", old)
    del table.metadata["snapshots"][1]
    table.metadata["snapshot-log"] = table.metadata["snapshot-log"][-1:]
    table.write_metadata()

    with pytest.raises(UnsupportedFeatureError, match="[vV]ersion 3"):
        opened(table).row_changes(1, 3)


def test_a_column_called_like_the_kind_of_a_change_is_refused(table):
    table.commit([(1, "a")])
    schema = table.metadata["schemas"][0]
    fields = [{**field, "name": {"name": "rowkind"}.get(field["name"], field["name"])} for field in schema["fields"]]
    table.write_metadata(schemas=[{**schema, "fields": fields}])

    with pytest.raises(UnsupportedFeatureError, match="rowkind"):
        opened(table).row_changes("earliest^", 1)


def test_files_that_a_manifest_carries_over_are_existing(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    head = table.metadata["current-snapshot-id"]
    merged = [one for record in table.manifests[head] for one in table.entries[record["manifest_path"]]]
    record = table.manifest(head, [merged[0], *(entry(0, one["data_file"], 7, 1, 1) for one in merged[1:])])
    table.manifests[head] = [record]
    table.metadata["snapshots"].pop()
    table.metadata["snapshot-log"].pop()
    table.add_snapshot(head, None, {"operation": "append"}, millis=1_767_226_000_000)

    snapshot = opened(table).current
    (manifest,) = snapshot.manifests().to_arrow().to_pylist()

    assert (manifest["list"], manifest["added_files"], manifest["removed_files"]) == ("delta", 1, 0)
    assert sorted(snapshot.entries(manifest["path"])["change"].to_pylist()) == ["add", "existing"]
    assert [one["path"] for one in snapshot.file_changes().to_arrow().to_pylist()] == ["data/data-2.parquet"]


def test_a_manifest_that_is_listed_twice_counts_once(table, caplog):
    table.commit([(1, "a")])
    head = table.metadata["current-snapshot-id"]
    table.manifests[head] *= 2
    table.metadata["snapshots"].pop()
    table.add_snapshot(head, None, {"operation": "append"}, millis=1_767_226_000_000)

    snapshot = opened(table).current

    assert snapshot.to_arrow()["id"].to_pylist() == [1]
    assert (snapshot.count(), len(snapshot.files()), len(snapshot.manifests())) == (1, 1, 1)
    assert "twice; it counts once" in caplog.text


def test_sequence_numbers_that_iceberg_1_0_does_not_write_are_not_needed(table):
    first = table.commit([(1, "a")])
    second = table.commit([(2, "b")])
    kept, gone = (one["data_file"] for (one,) in table.entries.values())
    table.sequence, head = 3, next(table.ids)
    record = table.manifest(head, [entry(0, kept, first, 1), entry(2, gone, head)])
    table.manifests[head] = [record]
    table.add_snapshot(head, second, {"operation": "delete"}, millis=1_767_226_000_000)

    snapshot = opened(table).current

    assert snapshot.to_arrow()["id"].to_pylist() == [1]
    assert snapshot.files()["added_version"].to_pylist() == [1]
    assert changed(table, 2, 3) == [("-D", 2)]
    assert opened(table).inspect("entries")["file_sequence_number"].to_pylist() == [None, None]
    assert snapshot.entries(snapshot.manifests()["path"][0].as_py())["change"].to_pylist() == ["existing", "remove"]


def test_an_entry_that_is_not_new_needs_its_sequence_number(table):
    table.commit([(1, "a")])
    manifest = next(iter(table.entries))
    table.entries[manifest][0]["status"] = 0
    head = table.metadata["current-snapshot-id"]
    table.manifests[head] = [table.manifest(head, table.entries[manifest])]
    table.metadata["snapshots"].pop()
    table.add_snapshot(head, None, {"operation": "append"}, millis=1_767_226_000_000)

    with pytest.raises(ValueError, match="an entry that is not new has no sequence_number"):
        opened(table).current.files()
