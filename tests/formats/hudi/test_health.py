"""The health of Hudi tables: log files per slice, pending services, unfinished writes, cleaning."""

import json
from pathlib import Path

import fsspec
import pytest

from snapshot_explorer import open_table
from tests.support.hudi.table_builder import HudiTable, block, completion, records, text

DATA = Path(__file__).parents[2] / "data" / "hudi"


def finding(health, name):
    (row,) = [row for row in health.findings.to_dict() if row["finding"] == name]
    return row["state"], row["value"]


def advice(health, name):
    (row,) = [row for row in health.findings.to_dict() if row["finding"] == name]
    return row["advice"]


@pytest.fixture
def orders(tmp_path):
    return lambda **properties: HudiTable(
        fsspec.filesystem("file"),
        str(tmp_path),
        properties={name.replace("_", "."): value for name, value in properties.items()},
    )


def opened(table):
    return open_table(table.root)


def test_a_slice_with_more_log_files_than_trigger_a_compaction_is_watched(orders):
    table = orders(hoodie_table_type="MERGE_ON_READ")
    table.insert([(1, "a")])
    for _ in range(5):
        table.log("data-1", [block(table.number + 1, b"")])
    assert finding(opened(table).health(), "log files") == ("ok", 5)

    table.log("data-1", [block(table.number + 1, b"")])

    health = opened(table).health(metadata_only=True)
    assert finding(health, "log files") == ("watch", 6)
    assert health.verdict.startswith("Nothing is urgent by its metadata. To watch: log files.")
    assert advice(health, "log files") == "CALL run_compaction(op => 'schedule', table => 'rows') and then op => 'run'"


def test_the_properties_of_the_table_are_the_thresholds(orders):
    table = orders(hoodie_table_type="MERGE_ON_READ", hoodie_compact_inline_max_delta_commits="1")
    table.insert([(1, "a")])
    table.log("data-1", [block(2, b"")])
    table.log("data-1", [block(3, b"")])

    assert finding(opened(table).health(), "log files") == ("watch", 2)
    assert finding(opened(table).health(2), "log files") == ("ok", 1)


def test_a_table_that_is_never_cleaned_is_watched(orders):
    table = orders()
    for number in range(21):
        table.insert([(number, "a")], replaced=[f"data-{number}"] if number else ())

    health = opened(table).health()

    assert finding(health, "commits since the last clean") == ("watch", 21)
    assert advice(health, "commits since the last clean") == "CALL run_clean(table => 'rows', retain_commits => 10)"
    assert {row["finding"] for row in opened(table).health(3).findings.to_dict()}.isdisjoint(
        {"log files", "pending services", "unfinished writes", "commits since the last clean"}
    )


def test_a_compaction_that_is_pending_is_named():
    health = open_table(DATA / "v6_mor_compaction_pending").health()

    state, commits = finding(health, "pending services")
    assert (state, commits) == ("ok", 2)
    assert "2 commits since the oldest of 1 requested or running: compaction" in repr(health)


def test_health_at_one_version_and_over_versions_answer_for_a_table_with_log_files():
    table = open_table(DATA / "v6_mor_compaction_pending")

    assert all(symptom.is_problem is not None for symptom in table.health().symptoms)
    assert table.health(between="..").num_rows == len(table.versions())


def test_the_size_of_freed_files_is_unknown_where_one_is_not_recorded(orders):
    table = orders()
    recorded = table.stat
    table.stat = lambda *args: {key: value for key, value in recorded(*args).items() if key != "fileSizeInBytes"}
    table.insert([(1, "a")])
    table.stat = recorded
    table.insert([(2, "b")], replaced=["data-1"])
    table.insert([(3, "c")], replaced=["data-2"])

    result = opened(table).retention(keep_last=1)

    assert (result.freed_files, result.freed_bytes) == (1, None)
    assert "1 file, at least 0 B: the size of 1 file is unknown" in repr(result)
    assert "hoodie.clean.commits.retained  1 commit, as requested" in repr(result)


def test_the_cleaner_does_nothing_until_a_commit_follows_the_last_clean(orders):
    table = orders()
    for number in range(3):
        table.insert([(number, "a")], replaced=[f"data-{number}"] if number else [])
    clean = {"lastCompletedCommitTimestamp": text(3), "earliestCommitToRetain": text(1)}
    table.write(f".hoodie/timeline/{text(4)}_{completion(4)}.clean", json.dumps(clean))
    idle = "no commit was completed since the last clean"

    result = opened(table).retention(keep_last=1)
    assert (result.freed_files, result.unloadable.num_rows) == (0, 0)
    assert idle in repr(result)

    table.number += 1
    table.insert([(3, "a")])
    result = opened(table).retention(keep_last=1)
    assert result.freed_files == 2
    assert idle not in repr(result)


def test_the_folder_of_a_dropped_partition_is_deleted_with_all_it_contains(orders):
    table = orders(hoodie_clean_policy="KEEP_LATEST_FILE_VERSIONS")
    table.number = 1
    name, content = table.base([(1, "a")], 1, "data-1")
    table.write(f"x/{name}", content)
    table.commit([table.stat("data-1", f"x/{name}", content, [None])], partition="x")
    table.write(f".hoodie/timeline/{text(1)}_{completion(1)}.savepoint", "{}")
    table.number = 2
    table.commit([], ["data-1"], "DELETE_PARTITION", "replacecommit", partition="x")
    saved, left = f"x/{name}", f"x/.data-1_{text(9)}.log.1_0-0-0.cdc"
    table.write(left, b"1")

    def freed():
        result = opened(table).retention(keep_last=1)
        return {row["path"]: row["what"] for row in result.freed.to_dict()}, result

    # Hudi deletes folders only where it deletes another file, too.
    assert freed()[0] == {}

    table.insert([(2, "b")])
    table.insert([(3, "c")], replaced=["data-3"])
    replaced = f"data-3_0-0-0_{text(3)}.parquet"
    files, result = freed()
    assert files == {replaced: "data", saved: "data", left: "untracked"}
    assert 1 in result.unloadable.to_arrow()["version"].to_pylist()
    assert "here 'x', with the files that savepoints need" in " ".join(repr(result).split())

    table.write(f"x/data-9_0-0-0_{text(9)}.parquet", b"left by a writer that failed")
    files, result = freed()
    assert files == {replaced: "data"}
    assert 1 not in result.unloadable.to_arrow()["version"].to_pylist()


def test_a_write_that_did_not_complete_is_named():
    health = open_table(DATA / "v9_mor_failed_write").health()

    assert finding(health, "unfinished writes") == ("ok", 0)
    assert "0 commits since the oldest of 1 requested or running: deltacommit 20261123034834027" in repr(health)


def test_log_files_whose_rows_hudi_can_return_though_no_commit_names_them_are_said(orders):
    table = orders(hoodie_table_type="MERGE_ON_READ")
    table.insert([(1, "b")])
    table.log("data-1", [records(2, [(1, "a")])])
    table.write(f".data-1_{text(1)}.log.2_0-0-0", records(2, [(1, "undone")]))
    table.write(f".data-1_{text(7)}.log.1_0-0-0", records(7, [(1, "never")]))

    orphans = opened(table).orphans("0s")

    assert "can return rows of 1 log file that no commit names, although" in " ".join(repr(orphans).split())
    assert opened(table).current.to_arrow()["name"].to_pylist() == ["a"]
