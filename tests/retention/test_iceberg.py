"""What `expire_snapshots` would remove from Iceberg tables, over all branches and tags."""

from datetime import UTC, datetime

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.support.iceberg.table_builder import ADDED, IcebergTable, entry


@pytest.fixture
def table(memory_root):
    return IcebergTable(*memory_root)


def opened(table, **options):
    return open_table(f"memory://{table.root}", **options)


def outcomes(retention):
    return {row["version"]: row["outcome"] for row in retention.versions.to_arrow().to_pylist()}


def freed(retention):
    return sorted(path.rpartition("/")[2] for path in retention.freed["path"].to_pylist())


def grown(table):
    """Three commits, of which the last replaces the file of the first."""
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.commit([(1, "A")], removed=["data-1.parquet"], operation="overwrite")


def test_files_go_that_only_removed_snapshots_reach(table):
    grown(table)

    retention = opened(table).retention(keep="0d", keep_last=1)

    assert outcomes(retention) == {1: "lost", 2: "lost", 3: "kept"}
    assert freed(retention) == ["data-1.parquet"]
    assert retention.freed["removed_version"].to_pylist() == [3]
    ((_, command),) = retention.commands
    assert command.startswith("CALL system.expire_snapshots(table => '")
    assert command.endswith("retain_last => 1)")


def test_the_settings_are_those_of_the_table_or_icebergs_defaults(table):
    now = int(datetime.now(UTC).timestamp() * 1000)
    for number in (1, 2, 3):
        table.commit([(number, "a")], millis=now - (10 - 2 * number) * 86_400_000)

    assert outcomes(opened(table).retention()) == {1: "lost", 2: "lost", 3: "kept"}
    assert outcomes(opened(table).retention(keep_last=2)) == {1: "lost", 2: "kept", 3: "kept"}
    table.metadata["properties"] = {"history.expire.max-snapshot-age-ms": str(7 * 86_400_000)}
    table.write_metadata()
    assert outcomes(opened(table).retention()) == {1: "lost", 2: "kept", 3: "kept"}
    assert "keep           7 days (the table's history.expire.max-snapshot-age-ms)" in repr(opened(table).retention())


def test_tags_and_branches_keep_their_snapshots_and_files(table):
    grown(table)
    first = table.metadata["snapshots"][0]["snapshot-id"]
    table.tag("v1", first)

    retention = opened(table).retention(keep="0d", keep_last=1)

    assert outcomes(retention) == {1: "kept", 2: "lost", 3: "kept"}
    assert freed(retention) == []
    (holder,) = [row for row in retention.holders.to_arrow().to_pylist() if row["holder"] == "tag"]
    assert (holder["name"], holder["version"], holder["files"], holder["exclusive_files"]) == ("v1", 1, 1, 1)
    holders = opened(table).retention(keep_last=3).holders.to_arrow().to_pylist()
    assert [(row["holder"], row["version"]) for row in holders] == [("kept versions", None), ("tag", 1)]


def test_a_tag_older_than_its_age_is_removed(table):
    grown(table)
    first = table.metadata["snapshots"][0]["snapshot-id"]
    table.metadata["refs"]["v1"] = {"snapshot-id": first, "type": "tag", "max-ref-age-ms": 1}
    table.write_metadata()

    retention = opened(table).retention(keep="0d", keep_last=1)

    assert freed(retention) == ["data-1.parquet"]
    assert "Branches and tags that would be removed for their age: v1." in repr(retention)


def test_a_branch_keeps_as_many_snapshots_as_it_says(table):
    grown(table)
    main = table.metadata["refs"]["main"]
    main["min-snapshots-to-keep"] = 2
    table.write_metadata()

    assert outcomes(opened(table).retention(keep="0d", keep_last=1)) == {1: "lost", 2: "kept", 3: "kept"}


def test_snapshots_of_no_branch_go_too(table):
    first = table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.rollback(first, 1_767_226_000_000)

    retention = opened(table).retention(keep="0d", keep_last=1)

    assert outcomes(retention) == {1: "kept"}
    assert freed(retention) == ["data-2.parquet"]
    assert "1 snapshots of other branches, or of none, would be removed too" in repr(retention)


def test_a_table_that_forbids_expiry_is_refused(table):
    table.metadata["properties"] = {"gc.enabled": "false"}
    table.commit([(1, "a")])

    with pytest.raises(UnsupportedFeatureError, match="The table has gc.enabled=false: Iceberg refuses to expire"):
        opened(table).retention()


def test_a_setting_that_is_not_a_number_is_refused_by_name(table):
    table.metadata["properties"] = {"history.expire.min-snapshots-to-keep": "few"}
    table.commit([(1, "a")])

    with pytest.raises(CorruptTableError, match="The table's property history.expire.min-snapshots-to-keep must be 1"):
        opened(table).retention()


def test_missing_files_make_versions_unreadable(table):
    grown(table)
    table.filesystem.rm(f"{table.root}/data/data-1.parquet")

    readability = {row["version"]: row for row in opened(table).verify().versions.to_arrow().to_pylist()}

    assert {version: row["readable"] for version, row in readability.items()} == {
        1: "metadata",
        2: "metadata",
        3: "yes",
    }
    assert readability[1]["missing_files"] == 1


def test_a_missing_delete_file_makes_the_versions_that_need_it_unreadable(table):
    first = table.commit([(1, "a")])
    table.sequence, second = 2, 77
    deletes = table.data_file("deletes.parquet", [(1, "a")]) | {"content": 2, "equality_ids": [1]}
    table.manifests[second] = [
        *table.manifests[first],
        table.manifest(second, [entry(ADDED, deletes)], content=1),
    ]
    table.add_snapshot(second, first, {"operation": "delete"}, millis=1_767_226_000_000)
    table.commit([(2, "b")])
    found = opened(table)
    assert {row["readable"] for row in found.verify().versions.to_arrow().to_pylist()} == {"yes"}

    table.filesystem.rm(f"{table.root}/data/deletes.parquet")

    readability = {row["version"]: row for row in found.verify().versions.to_arrow().to_pylist()}
    assert {version: row["readable"] for version, row in readability.items()} == {
        1: "yes",
        2: "metadata",
        3: "metadata",
    }
    assert readability[3]["reason"] == "1 of its delete files are missing or have another size than recorded"
    with pytest.raises(CorruptTableError, match="deletes.parquet does not exist"):
        found.at(3).to_arrow()
