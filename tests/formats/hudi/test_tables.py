"""Tables that Hudi wrote: the rows, files and refusals at every version are those of Hudi on Spark."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import retention_of
from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.history import history_of
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[2] / "data"
CHANGES = sorted((DATA / "expected" / "hudi_changes").glob("*/*.json"))
EXPECTED = sorted((DATA / "expected" / "hudi").glob("*/*.json"))
INCREMENTAL = sorted((DATA / "expected" / "hudi_incremental").glob("*/*.json"))


@pytest.mark.parametrize("path", EXPECTED, ids=[f"{path.parent.name}-{path.stem}" for path in EXPECTED])
def test_a_version_has_the_rows_and_files_that_hudi_reads(path):
    expected = json.loads(path.read_text())
    folder = DATA / "hudi" / path.parent.name

    if expected["outcome"] == "error":
        with pytest.raises(SnapshotExplorerError):
            open_table(folder).at(expected["version"]).to_arrow()
        return
    snapshot = open_table(folder).at(expected["version"])
    if "files" in expected:
        assert snapshot.files().num_rows == expected["files"]
    try:
        rows = snapshot.to_arrow()
    except SnapshotExplorerError:
        assert expected.get("may_refuse")
        return
    assert rows.column_names == expected["columns"]
    assert canonical_rows(rows) == expected["rows"]


@pytest.mark.parametrize("path", CHANGES, ids=[f"{path.parent.name}-{path.stem}" for path in CHANGES])
def test_the_rows_that_changed_between_two_versions_are_those_by_which_hudis_rows_differ(path):
    expected = json.loads(path.read_text())
    first, last = (int(number) for number in path.stem.split("-"))

    changes = open_table(DATA / "hudi" / path.parent.name).row_changes(first or "earliest^", last, mode="diff")

    assert changes.column_names == expected["columns"]
    assert canonical_rows(changes) == expected["rows"]


@pytest.mark.parametrize("path", INCREMENTAL, ids=[f"{path.parent.name}-{path.stem}" for path in INCREMENTAL])
def test_hudis_incremental_query_has_the_last_rows_of_commits_that_completed_in_its_range(path):
    expected = json.loads(path.read_text())
    table = open_table(DATA / "hudi" / path.parent.name)
    names = {row["version"]: row["identifier"] for row in table.history().to_arrow().to_pylist()}
    completed = {version: int(name.partition("_")[2].partition(".")[0]) for version, name in names.items()}
    commits = [version for version, time in completed.items() if int(expected["begin"]) < time <= int(expected["end"])]
    rows = table.at(max(commits)).to_arrow(expected["columns"])
    changes = table.row_changes(expected["first"] or "earliest^", max(commits), expected["columns"])

    written = [int(time) in commits for time in rows["_hoodie_commit_time"].to_pylist()]
    assert canonical_rows(rows.filter(pa.array(written))) == expected["rows"]
    inserted = [kind in ("+I", "+U") for kind in changes["rowkind"].to_pylist()]
    seen = canonical_rows(changes.filter(pa.array(inserted)).select(expected["columns"]))
    assert all(row in seen for row in expected["rows"])


def test_changes_are_by_commit_without_those_that_rearrange_rows():
    table = open_table(DATA / "hudi" / "v9_cow_clustered")
    history = table.history().to_arrow().to_pylist()[::-1]
    (clustering,) = [row["version"] for row in history if row["kind"] == "compact"]
    place = [row["version"] for row in history].index(clustering)

    assert table.row_changes(history[place - 1]["version"], clustering).num_rows == 0
    assert table.row_changes("earliest^", "latest").num_rows > table.current.count()
    with pytest.raises(InvalidArgumentError, match="The table records no change data: hoodie.table.cdc.enabled"):
        table.row_changes("earliest", "latest", mode="changelog")


def test_cleaned_files_are_found_by_readability():
    table = open_table(DATA / "hudi" / "v9_cow_archived")
    readable = {row["version"]: row["readable"] for row in table.verify().versions.to_arrow().to_pylist()}

    for path in EXPECTED:
        if path.parent.name == "v9_cow_archived":
            is_there = json.loads(path.read_text())["outcome"] == "rows"
            assert (readable[int(path.stem)] == "yes") is is_there


def test_the_cleaner_would_delete_slices_that_ended_before_the_earliest_version_to_keep():
    table = open_table(DATA / "hudi" / "v9_cow_basic")
    versions = table.versions()
    retention = table.retention(keep_last=1)

    lost = retention.unloadable.to_arrow()["version"].to_pylist()
    freed = set(retention.freed.to_arrow()["path"].to_pylist())
    assert lost == [version for version in reversed(versions) if freed & set(paths(table, version))]
    assert versions[-1] not in lost
    assert not freed & set(paths(table, versions[-1]))
    # Hudi keeps the newest slice before the earliest version to keep.
    assert versions[-2] not in lost
    assert retention.commands[0][1].endswith("clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1)")
    assert not len(table.retention(keep_last=50).freed)


def test_the_table_s_own_policy_is_that_of_its_last_clean():
    retention = open_table(DATA / "hudi" / "v8_cow_cleaned_versions").retention()

    assert retention.commands[0][1].endswith(
        "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 3)"
    )


def test_of_each_file_group_the_newest_slices_are_kept_where_the_policy_says_so(tmp_path):
    folder = Path(shutil.copytree(DATA / "hudi" / "v9_cow_basic", tmp_path / "table"))
    with (folder / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.cleaner.policy=keep_latest_file_versions\nhoodie.cleaner.fileversions.retained=1\n")
    table = open_table(folder)
    every = {path for version in table.versions() for path in paths(table, version)}

    assert set(table.retention().freed.to_arrow()["path"].to_pylist()) == every - set(
        paths(table, table.versions()[-1])
    )
    assert not len(table.retention(keep_last=50).freed)


def test_the_cleaner_goes_by_hours_of_requested_times():
    table = open_table(DATA / "hudi" / "v9_cow_basic")
    newest = datetime.strptime(f"{table.current.version}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)

    def freed(keep, now):
        retention = retention_of(
            history_of(table).table_format, table.lifetimes(), keep=keep, keep_last=None, name="t", now=now
        )
        assert "clean_policy => 'KEEP_LATEST_BY_HOURS', hours_retained => 5)" in retention.commands[0][1]
        return retention.freed.to_arrow()["path"].to_pylist()

    by_commits = table.retention(keep_last=1).freed.to_arrow()["path"].to_pylist()
    assert freed("5h", newest + timedelta(hours=5)) == by_commits
    # Without a commit in that time nothing is cleaned.
    assert not freed("5h", newest + timedelta(hours=6))
    assert not freed("5h", newest)


def test_savepoints_keep_their_files():
    table = open_table(DATA / "hudi" / "v9_cow_savepoint_restored")
    (tag,) = table.tags().to_arrow()["version"].to_pylist()
    retention = table.retention(keep_last=1)

    assert tag not in retention.unloadable.to_arrow()["version"].to_pylist()
    assert str(tag) in retention.holders.to_arrow()["name"].to_pylist()


# What `archive_commits` of Hudi 1.2 moved of these tables, and `run_clean` deleted.
ARCHIVED = {
    "v9_cow_basic": 2,
    "v9_cow_clustered": 3,
    "v9_cow_savepoint_restored": 1,
    "v9_mor_basic": 1,
    "v9_mor_failed_write": 0,
}


def archiving(tmp_path, name, properties="", **rule):
    """Return the retention of a copy of a table that archives all but two commits."""
    folder = Path(shutil.copytree(DATA / name, tmp_path / "table"))
    limits = "hoodie.keep.min.commits=2\nhoodie.keep.max.commits=3\nhoodie.clean.commits.retained=1\n"
    with (folder / ".hoodie" / "hoodie.properties").open("a") as file:
        file.write(f"hoodie.table.metadata.partitions=\n{limits}{properties}")
    return open_table(folder).retention(**rule)


@pytest.mark.parametrize("name", ARCHIVED)
def test_retention_names_the_commits_that_archival_would_move(tmp_path, name):
    retention = archiving(tmp_path, f"hudi/{name}", keep_last=50)

    moved = [row for row in retention.versions.to_arrow().to_pylist() if "archival would move it" in row["because"]]
    assert len(moved) == ARCHIVED[name]
    assert all(row["outcome"] == "kept" for row in moved)
    expected = f"Archival would move {ARCHIVED[name]} commit" if moved else "Archival would move no commits: the active"
    assert expected in repr(retention)


def test_commits_that_the_metadata_table_has_not_compacted_are_not_archived(tmp_path):
    retention = archiving(tmp_path, "hudi/v9_cow_basic", "hoodie.table.metadata.partitions=files\n")
    assert "Archival would move no commits: the metadata table was not compacted yet." in repr(retention)

    timeline = tmp_path / "table" / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    table = open_table(tmp_path / "table")
    second = table.versions()[1]
    (timeline / f"{second}_{second + 1}.commit").touch()
    assert "Archival would move 1 commit" in repr(table.retention())


def test_retention_says_for_which_writer_it_predicts_archival(tmp_path):
    retention = archiving(tmp_path, "hudi/v9_cow_basic", "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS\n")

    assert "The procedure archive_commits assumes KEEP_LATEST_COMMITS" in " ".join(repr(retention).split())


def test_the_cleaner_would_delete_change_data_with_the_slice_of_its_commit():
    freed = open_table(DATA / "hudi_change_data" / "logged_cow_9_before").retention(keep_last=1).freed.to_arrow()

    change_data = {row["path"] for row in freed.to_pylist() if row["what"] == "change data"}
    assert (freed.num_rows, len(change_data)) == (26, 12)
    assert all(path.endswith(".cdc") for path in change_data)


def test_floats_that_became_doubles_are_the_same_in_sql():
    for path in EXPECTED:
        if path.parent.name == "v9_cow_evolved":
            expected = json.loads(path.read_text())
            table = open_table(DATA / "hudi" / path.parent.name)
            rows = table.sql(f"select * from this version as of {path.stem}")
            assert canonical_rows(pa.Table.from_pandas(rows, preserve_index=False).select(["w"])) == sorted(
                [[row[expected["columns"].index("w")]] for row in expected["rows"]]
            )


def paths(table, version):
    return table.at(version).files().to_arrow()["path"].to_pylist()


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "hudi").glob("v*")))
def test_metadata_tables_are_frames_of_every_table(name):
    table = open_table(DATA / "hudi" / name)

    for inspection in history_of(table).table_format.inspections:
        table.inspect(inspection.name, "latest" if inspection.at_version else None).to_arrow().validate(full=True)


def test_the_timeline_has_actions_of_all_states():
    table = open_table(DATA / "hudi" / "v6_mor_compaction_pending")
    timeline = table.inspect("timeline").to_arrow().to_pylist()

    assert ("compaction", "requested") in {(row["action"], row["state"]) for row in timeline}
    assert table.inspect("compactions").to_arrow().num_rows > 0


def test_the_timeline_names_actions_that_ran_at_the_same_time_and_those_that_were_rolled_back():
    concurrent = open_table(DATA / "hudi" / "v9_mor_concurrent").inspect("timeline").to_dict()
    restored = open_table(DATA / "hudi" / "v9_cow_savepoint_restored").inspect("timeline").to_dict()

    beside = {row["requested"]: row["overlaps"] for row in concurrent if row["overlaps"]}
    assert beside == {"20261123042900929": ["20261123042901489"], "20261123042901489": ["20261123042900929"]}
    undone = {row["requested"]: row["removed_by"] for row in restored if row["state"] == "rolled back"}
    assert undone == dict.fromkeys(("20261123034454740", "20261123034500043"), "20261123034505623")


@pytest.mark.parametrize("name", ["v9_mor_log_compaction", "v9_cow_clustered", "v9_cow_archived"])
def test_the_timeline_names_table_services(name):
    timeline = open_table(DATA / "hudi" / name).inspect("timeline").to_dict()

    services = {row["service"] for row in timeline} - {None}
    assert services == {"v9_mor_log_compaction": {"logcompaction"}, "v9_cow_clustered": {"clustering"}}.get(name, set())


@pytest.mark.parametrize("name", ["v9_mor_basic", "v6_mor_compaction_pending", "v9_cow_clustered", "v9_mor_concurrent"])
def test_file_groups_are_the_slices_of_every_version(name):
    table = open_table(DATA / "hudi" / name)
    groups = table.inspect("file_groups").to_dict()

    for version in table.history().to_arrow()["version"].to_pylist():
        live = [row for row in groups if row["first_version"] <= version < (row["removed_version"] or version + 1)]
        bases = {row["base_file"] for row in live if row["base_file"]}
        logs = {path for row in live for path in row["log_files"]}
        files = set(paths(table, version))
        assert bases <= files <= bases | logs


def test_pictures_of_the_timeline_and_of_file_groups_say_what_is_open_in_text_too():
    table = open_table(DATA / "hudi" / "v6_mor_compaction_pending")
    timeline, groups = table.inspect("timeline").picture(), table.inspect("file_groups").picture()

    assert "1 requested and not begun: compaction 20261123040421226." in repr(timeline)
    assert "when 5 of 6 actions completed" in repr(timeline)
    assert all(f">{word}</text>" in timeline.svg for word in ("completed", "requested"))
    assert "Live file groups: 3 of 3. Log files of one: at most 3." in repr(groups)
    assert "BLLL-" in repr(groups)
    assert all(f">{word}</text>" in groups.svg for word in ("live", "base file", "log file"))


def test_every_table_has_expectations():
    assert {path.name for path in (DATA / "hudi").iterdir()} == {path.parent.name for path in EXPECTED}


@pytest.mark.parametrize("name", ["v9_cow_basic", "v9_mor_basic", "v6_mor_compaction_run", "v9_cow_clustered"])
def test_lifetimes_have_the_files_of_each_version(name):
    table = open_table(DATA / "hudi" / name)
    lifetimes = table.lifetimes()

    for version in table.history().to_arrow()["version"].to_pylist():
        known = sorted(lifetimes.files_at(version)["path"].to_pylist())
        assert known == sorted(table.at(version).files().to_arrow()["path"].to_pylist())


def test_versions_are_instants_and_exceed_what_a_float_distinguishes():
    history = open_table(DATA / "hudi" / "v9_cow_basic").history().to_arrow()
    versions = history["version"].to_pylist()

    assert versions == sorted(versions, reverse=True)
    assert all(version > 2**53 for version in versions)
    assert history["kind"].to_pylist() == ["update", "delete", "update", "append"]
    assert history["total_rows"].null_count == 0


def test_archived_commits_are_versions():
    for name in ("v6_cow_archived", "v9_cow_archived", "v9_cow_lsm_merged"):
        folder = DATA / "hudi" / name
        active = len([*folder.glob(".hoodie/*.commit"), *folder.glob(".hoodie/timeline/*.commit")])

        assert len(open_table(folder).history()) > active


def test_savepoints_are_tags():
    table = open_table(DATA / "hudi" / "v9_cow_savepoint_restored")
    (name,) = table.tags().to_arrow()["tag"].to_pylist()

    assert table.at(f"tag:{name}").version == int(name)


def test_meta_columns_are_read_on_request():
    snapshot = open_table(DATA / "hudi" / "v9_mor_basic").current
    rows = snapshot.to_arrow(columns=["id", "_hoodie_record_key", "_hoodie_commit_time"])

    assert [str(value) for value in rows["id"].to_pylist()] == rows["_hoodie_record_key"].to_pylist()
    assert set(map(int, rows["_hoodie_commit_time"].to_pylist())) <= set(
        open_table(DATA / "hudi" / "v9_mor_basic").history().to_arrow()["version"].to_pylist()
    )


def test_what_needs_the_files_of_all_versions_begins_where_they_are_known():
    table = open_table(DATA / "hudi" / "archive_deleted")
    *known, unknown = table.history().to_arrow()["version"].to_pylist()

    readable = {row["version"]: row["readable"] for row in table.verify().versions.to_dict()}
    retention = table.retention(keep_last=1)

    assert table.lifetimes().versions == tuple(reversed(known))
    assert readable == {unknown: "no"} | dict.fromkeys(known, "yes")
    assert "kept versions                  3 of 3" in repr(retention)  # nothing to clean since the last clean


def test_a_commit_that_completed_late_counts_from_then_on():
    """A clustering, which was requested before another commit, completed after it."""
    table = open_table(DATA / "hudi" / "v9_cow_clustered")
    *_, clustering, beside, last = table.versions()

    assert table.at("@2026-11-23T03:45:53").version == beside
    assert table.at("@2026-11-23T03:45:56").version == beside
    assert table.history(since="2026-11-23T03:45:53").to_arrow()["version"].to_pylist() == [last, clustering]
    until = table.history(until="2026-11-23T03:45:53").to_arrow()["version"].to_pylist()
    assert (until[0], clustering in until) == (beside, False)
    with pytest.raises(SnapshotExplorerError, match="no available version was committed at or before this time"):
        table.at("@2026-11-23T03:45:44")


def test_counts_of_removed_files_are_null_where_some_are_not_known():
    """The cleaner deleted the slices that the two oldest known commits replaced, and no archive names them."""
    table = open_table(DATA / "hudi" / "archive_deleted")

    assert table.history().to_arrow()["added_files"].to_pylist() == [1, 1, 1, 1]
    assert table.history().to_arrow()["removed_files"].to_pylist() == [1, 1, None, None]
    assert table.current.manifests().to_arrow()["removed_files"].to_pylist()[:2] == [None, None]
