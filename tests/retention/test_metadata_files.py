"""`Retention.metadata_files`: which metadata files a clean-up would delete, and what is lost with them."""

from datetime import UTC, datetime, timedelta

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import retention_of
from snapshot_explorer.history import history_of
from tests.support.delta.expired_logs import LOGS, ExpiredLog, deleted
from tests.support.delta.table_builder import DeltaTable
from tests.support.filesystems import counting
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOW = NOON - timedelta(minutes=30)


def retention(root, **rule):
    table = open_table(str(root))
    rule = {"keep": None, "keep_last": None} | rule
    return retention_of(history_of(table).table_format, table.lifetimes(), name="t", now=NOW, **rule)


def paths(result):
    return set(result.metadata_files["path"].to_pylist())


@pytest.mark.parametrize("name", LOGS)
def test_the_files_of_a_log_are_those_that_delta_deletes(tmp_path, name):
    LOGS[name].write(tmp_path, NOON)
    result = retention(tmp_path)

    assert paths(result) == deleted(LOGS[name], tmp_path)
    before = open_table(str(tmp_path))
    loadable = history_of(before).table_format.listing(0).reachable
    for path in paths(result):
        (tmp_path / path).unlink()
    if paths(result) and LOGS[name].first_kept < before.current.version:  # a checkpoint of the newest is written
        after = set(history_of(open_table(str(tmp_path))).table_format.listing(0).reachable)
        lost = sorted(set(loadable) - after - set(history_of(before).table_format.listing(0).unloadable))
        assert not lost or f"versions {lost[0]} to {lost[-1]} could not be loaded" in " ".join(result.notes)


def test_the_notes_say_what_starts_the_clean_up_and_what_would_be_lost(tmp_path):
    LOGS["several old checkpoints"].write(tmp_path, NOON)
    result = retention(tmp_path)

    assert (
        "The clean-up of the log, which starts when a checkpoint is written, would now delete 17 log files, which "
        "metadata_files lists; versions 0 to 14 could not be loaded afterwards." in result.notes
    )
    assert "metadata       17 files" in repr(result)
    whats = result.metadata_files["what"].to_pylist()
    assert {what: whats.count(what) for what in whats} == {"commit": 15, "checkpoint": 2}
    assert all(size > 0 for size in result.metadata_files["size_bytes"].to_pylist())
    assert result.freed_files == 0


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("switched off", "would now delete nothing: the table has delta.enableExpiredLogCleanup=false."),
        ("no checkpoint", "would now delete nothing: no checkpoint follows log files that are older than 2026-11-10."),
        ("checkpoints with sidecars", "Sidecar files that only deleted checkpoints name go too, and are not listed."),
        ("more protected versions", "The table has delta.requireCheckpointProtectionBeforeVersion=25: a writer that "),
    ],
)
def test_why_nothing_is_deleted_or_more_may_be_is_noted(tmp_path, name, note):
    LOGS[name].write(tmp_path, NOON)

    assert note in " ".join(retention(tmp_path).notes)


def test_a_log_whose_files_have_no_times_is_not_judged(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root)
    for _ in range(3):
        table.commit()
    table.checkpoint()

    class WithoutTimes(counting()):
        def ls(self, path, **options):
            listed = super().ls(path, **options)
            return [{"name": one["name"], "size": one["size"], "type": one["type"]} for one in listed]

    register(WithoutTimes)
    result = open_table(f"counted://{root}").retention()
    assert not len(result.metadata_files)
    assert "the storage does not report when its files were written, so this is unknown" in " ".join(result.notes)


def test_metadata_files_of_expired_iceberg_snapshots_are_listed(memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root)
    table.commit([(1, "a")])
    table.commit([(2, "b")], removed=["data-1.parquet"], operation="overwrite")
    table.commit([(3, "c")])
    first, second, _ = table.metadata["snapshots"]
    table.metadata["statistics"] = [
        {
            "snapshot-id": one["snapshot-id"],
            "statistics-path": table.path(f"metadata/{name}.stats"),
            "file-size-in-bytes": 7,
        }
        for one, name in ((first, "old"), (table.metadata["snapshots"][-1], "new"))
    ]
    table.write_metadata()
    result = open_table(f"memory://{root}").retention(keep="0d", keep_last=1)

    rows = {row["path"].rpartition("/")[2]: row["what"] for row in result.metadata_files.to_arrow().to_pylist()}
    lists = [one["manifest-list"].rpartition("/")[2] for one in (first, second)]
    assert {name: rows[name] for name in lists} == dict.fromkeys(lists, "manifest list")
    assert rows["old.stats"] == "statistics"
    assert "new.stats" not in rows
    assert sorted(rows.values()) == ["manifest", "manifest list", "manifest list", "statistics"]
    assert "Old metadata files stay: write.metadata.delete-after-commit.enabled is not true." in result.notes


def test_old_metadata_files_of_iceberg_are_listed_where_commits_delete_them(memory_root):
    filesystem, root = memory_root
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    table = IcebergTable(filesystem, root, properties=properties)
    for number in range(4):
        table.commit([(number, "a")])
    table.write_metadata()
    log = [item["metadata-file"] for item in table.metadata["metadata-log"]]
    result = open_table(f"memory://{root}").retention(keep="1000d")

    rows = result.metadata_files.to_arrow().to_pylist()
    found = [row["path"].rpartition("/")[2] for row in rows if row["what"] == "metadata"]
    assert found == [path.rpartition("/")[2] for path in log[: max(0, len(log) - 1)]]


def test_snapshots_and_manifest_lists_of_paimon_are_listed_but_those_that_a_tag_needs(memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)
    for _ in range(4):
        table.commit()
    table.tag("kept", 2)
    result = open_table(f"memory://{root}").retention(keep="0d", keep_last=1)

    found = paths(result)
    assert {f"snapshot/snapshot-{number}" for number in (1, 2, 3)} <= found
    assert "snapshot/snapshot-4" not in found
    assert {path for path in found if "manifest-list-2" in path} == set()
    assert {path for path in found if "manifest-list-3" in path}


def test_a_young_log_loses_nothing(tmp_path):
    ExpiredLog(first_kept=0, commits=2).write(tmp_path, NOON)

    assert not len(retention(tmp_path).metadata_files)
