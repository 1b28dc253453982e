"""`Delta` through the public interface: opening, frames, refusals, what requests cost, a live writer."""

import logging
import threading

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.history import history_of
from tests.support.blocking import blocking
from tests.support.delta.table_builder import (
    BASE_MILLIS,
    DeltaTable,
    add,
    cdc,
    commit_name,
    inline_vector,
    metadata,
    protocol,
    remove,
)


@pytest.fixture
def table(tmp_path):
    """Appends, a rewrite, a deletion vector: versions 0 to 4, a checkpoint at 2."""
    written = DeltaTable(None, tmp_path, partition_by=["name"], features=["deletionVectors"])
    written.append([(1,), (2,)], name="name=a/0.parquet", partition={"name": "a"})
    written.append([(3,)], name="name=b%20c/1.parquet", partition={"name": "b c"})
    written.checkpoint()
    written.commit(
        remove("name=a/0.parquet", size=5, partition={"name": "a"}, data_change=False),
        written.data("name=a/2.parquet", [(1,), (2,)], partition={"name": "a"}, data_change=False),
        cdc("_change_data/x.parquet", partition={"name": "a"}),
    )
    size = (tmp_path / "name=a/2.parquet").stat().st_size
    written.commit(
        remove("name=a/2.parquet", size=size, partition={"name": "a"}),
        add("name=a/2.parquet", partition={"name": "a"}, size=size, rows=2, vector=inline_vector([0])),
    )
    return written


def rows_of(frame, *names):
    return [tuple(row[name] for name in names) for row in frame.to_dict()]


def test_a_table_opens_at_its_newest_version_and_reads_its_rows(table):
    opened = open_table(table.root)

    assert opened.format == "delta"
    assert opened.current.version == 4
    assert sorted(opened.current.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 2, "name": "a"},
        {"id": 3, "name": "b c"},
    ]
    assert opened.versions() == (0, 1, 2, 3, 4)
    assert opened.tags().num_rows == opened.branches().num_rows == 0
    assert open_table(table.root, format="delta").current.version == 4


def test_files_say_since_when_they_are_live_and_what_was_deleted(table):
    files = open_table(table.root).current.files()

    names = ("path", "partition", "rows", "deleted_rows", "added_version", "bucket")
    assert rows_of(files, *names) == [
        ("name=b%20c/1.parquet", {"name": "b c"}, 1, None, None, None),
        ("name=a/2.parquet", {"name": "a"}, 2, 1, 4, None),
    ]
    assert files.to_dict()[1]["deletion_vector"].startswith("i:")
    assert rows_of(open_table(table.root).at(1).files(), "added_version", "data_change") == [(1, True)]


def test_changes_of_any_versions_come_in_the_order_requested(table):
    opened = open_table(table.root)
    frame = history_of(opened).table_format.changes([4, 1, 3]).to_pylist(maps_as_pydicts="strict")

    assert [(row["version"], row["change"], row["list"], row["path"], row["data_change"]) for row in frame] == [
        (4, "remove", "delta", "name=a/2.parquet", True),
        (4, "add", "delta", "name=a/2.parquet", True),
        (1, "add", "delta", "name=a/0.parquet", True),
        (3, "remove", "delta", "name=a/0.parquet", False),
        (3, "add", "delta", "name=a/2.parquet", False),
        (3, "add", "changelog", "_change_data/x.parquet", False),
    ]
    assert [row["partition"] for row in frame] == [{"name": "a"}] * 6
    assert frame[1]["deleted_rows"] == 1
    assert history_of(opened).table_format.changes([]).num_rows == 0
    assert opened.at(0).file_changes().num_rows == 0


def test_the_base_of_a_version_is_its_checkpoint_and_the_delta_the_commits_after_it(table):
    opened = open_table(table.root)
    names = ("list", "list_path", "position", "path", "added_files", "removed_files")

    assert rows_of(opened.current.manifests(), *names) == [
        ("base", None, 0, f"_delta_log/{2:020d}.checkpoint.parquet", 2, 0),
        ("delta", None, 0, commit_name(3), 1, 1),
        ("delta", None, 1, commit_name(4), 1, 1),
    ]
    assert [row[0] for row in rows_of(opened.at(1).manifests(), "list")] == ["delta", "delta"]
    assert all(row["size_bytes"] > 0 for row in opened.current.manifests().to_dict())


def test_sidecars_are_part_of_the_base(table):
    written = table.checkpoint(form="json", sidecars=2)
    frame = open_table(table.root).current.manifests()

    assert rows_of(frame, "list", "path", "list_path", "added_files") == [
        ("base", written[2], None, 0),
        ("base", written[0], written[2], 1),
        ("base", written[1], written[2], 1),
    ]


def test_schema_and_properties_are_those_of_the_version(tmp_path):
    written = DeltaTable(None, tmp_path, configuration={"a": "1"})
    written.commit(metadata((("id", "long"), ("name", "string"), ("more", "double")), configuration={"a": "2"}))
    opened = open_table(tmp_path)

    assert [len(opened.at(version).schema.columns) for version in (0, 1)] == [2, 3]
    assert [opened.at(version).properties["a"] for version in (0, 1)] == ["1", "2"]


def test_partition_columns_of_changes_are_those_in_force_then(tmp_path):
    written = DeltaTable(None, tmp_path, partition_by=["name"])
    written.commit(add("a", partition={"name": "x"}))
    written.commit(metadata(partition_by=["id"]), remove("a", size=1, partition={"name": "x"}))
    written.commit(add("b", partition={"id": "7"}))

    found = history_of(open_table(tmp_path)).table_format.changes([1, 3]).to_pylist(maps_as_pydicts="strict")

    assert [row["partition"] for row in found] == [{"name": "x"}, {"id": "7"}]


def test_changes_requested_one_after_the_other_are_those_requested_at_once(tmp_path):
    written = DeltaTable(None, tmp_path, partition_by=["name"])
    for number in range(4):
        written.commit(add(f"{number}", partition={"name": "x", "id": "7"}))
    written.commit(metadata(partition_by=["id"]))
    for number in range(5, 9):
        written.commit(add(f"{number}", partition={"name": "x", "id": "7"}))
    whole = history_of(open_table(tmp_path)).table_format.changes(range(10))

    for orders in ([range(3), range(3, 10)], [range(6), [6, 7], [8, 9]], [[9], [2], [3], [4, 5], [6]]):
        opened = history_of(open_table(tmp_path)).table_format
        for versions in orders:
            found = opened.changes(versions)
            wanted = [row for row in whole.to_pylist() if row["version"] in versions]
            assert found.to_pylist() == wanted


def test_a_table_that_is_made_anew_takes_nothing_over_from_the_one_before(tmp_path):
    written = DeltaTable(None, tmp_path, partition_by=["name"])
    written.commit(add("a", partition={"name": "x", "id": "7"}))
    opened = history_of(open_table(tmp_path)).table_format
    opened.changes([0])

    written.commit(metadata(partition_by=["id"], id="other"), protocol(), version=0, millis=BASE_MILLIS + 1)
    written.commit(add("a", partition={"name": "x", "id": "7"}), version=1)
    opened.listing(0)

    assert opened.changes([1])["partition"].to_pylist() == [[("id", "7")]]


def test_a_branch_is_refused(table):
    with pytest.raises(TableNotFoundError, match="has no branch 'dev': Delta Lake tables have no branches"):
        open_table(table.root, branch="dev")


def test_other_formats_are_distinguished(table, tmp_path_factory):
    with pytest.raises(TableNotFoundError, match="is not a paimon table but a delta table"):
        open_table(table.root, format="paimon")
    with pytest.raises(TableNotFoundError, match=r"No delta table at .*: the folder is missing or empty"):
        open_table(tmp_path_factory.mktemp("empty"), format="delta")


@pytest.mark.parametrize(
    ("name", "message"),
    [("_delta_log/.keep", "contains no commit"), (f"_delta_log/{0:020d}.crc", "contains no commit")],
)
def test_a_log_without_a_commit_is_not_a_table(tmp_path, name, message):
    DeltaTable(None, tmp_path, first=None).write(name, b"")

    with pytest.raises(TableNotFoundError, match=f"is not a Delta table: its folder _delta_log {message}"):
        open_table(tmp_path)


def test_an_empty_log_is_not_a_table(tmp_path):
    (tmp_path / "_delta_log").mkdir()

    with pytest.raises(TableNotFoundError, match="its folder _delta_log is empty"):
        open_table(tmp_path)


def test_the_hint_is_followed_and_one_that_points_nowhere_is_passed_over_with_a_warning(table, caplog):
    with caplog.at_level(logging.INFO):
        open_table(table.root)
    assert caplog.messages[0] == "Loading version 4 starting from checkpoint version 2."

    caplog.clear()
    table.hint(3)
    assert open_table(table.root).current.version == 4
    assert "The checkpoint of version 3 to start from does not exist" in caplog.text

    caplog.clear()
    table.write("_delta_log/_last_checkpoint", b"{")
    assert open_table(table.root).current.version == 4
    assert "_delta_log/_last_checkpoint is corrupted. Will search the checkpoint files directly" in caplog.text


def test_a_checksum_that_contradicts_the_log_is_a_warning(table, caplog):
    table.checksum(metadata={"id": "other"})

    assert open_table(table.root).current.version == 4
    assert f"{4:020d}.crc contradicts the log: its table id is other, that of the log table-0" in caplog.text


def test_a_gap_or_a_missing_beginning_is_refused_at_opening(tmp_path):
    written = DeltaTable(None, tmp_path)
    for number in range(4):
        written.commit(add(f"f{number}"))
    written.remove_file(commit_name(2))
    with pytest.raises(CorruptTableError, match=r"Versions \(0, 1, 3, 4\) are not contiguous.*0{19}2\.json"):
        open_table(tmp_path)

    for version in (0, 1):
        written.remove_file(commit_name(version))
    with pytest.raises(CorruptTableError, match="Unable to reconstruct state at version 4"):
        open_table(tmp_path)


def test_versions_that_were_cleaned_are_distinguished_from_those_that_are_left(table):
    table.remove_file(commit_name(0))
    opened = open_table(table.root)

    assert opened.versions() == (2, 3, 4)
    assert history_of(opened).table_format.listing(0).versions == (1, 2, 3, 4)
    with pytest.raises(SnapshotNotFoundError, match="1"):
        opened.at(1).files()


def test_a_table_without_protocol_is_refused_at_opening(tmp_path):
    DeltaTable(None, tmp_path, first=(metadata(),))

    with pytest.raises(CorruptTableError, match="The protocol of your Delta table couldn't be recovered"):
        open_table(tmp_path)


def test_an_unknown_reader_feature_refuses_rows_but_not_metadata(tmp_path):
    written = DeltaTable(None, tmp_path, features=["someNewFeature"])
    written.append([(1, "a")])
    current = open_table(tmp_path).current

    assert current.files().num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match="someNewFeature"):
        current.to_arrow()


@pytest.mark.parametrize(
    ("feature", "folder"), [("catalogManaged", "_staged_commits"), ("coordinatedCommits-preview", "_commits")]
)
def test_staged_commits_of_a_catalog_are_refused_unless_they_are_published(tmp_path, feature, folder):
    written = DeltaTable(None, tmp_path, features=[feature])
    written.commit(add("a"))
    written.write(f"_delta_log/{folder}/{1:020d}.3a0d.json", b"{}")
    assert open_table(tmp_path).current.version == 1

    written.write(f"_delta_log/{folder}/{2:020d}.3a0d.json", b"{}")
    with pytest.raises(UnsupportedFeatureError, match=rf"feature {feature}: .* version 2 on .* not published"):
        open_table(tmp_path)


def test_staged_commits_of_a_table_without_a_catalog_count_for_nothing(tmp_path):
    DeltaTable(None, tmp_path).write(f"_delta_log/_staged_commits/{5:020d}.3a0d.json", b"{}")

    assert open_table(tmp_path).current.version == 0


def test_a_vacuumed_data_file_is_named_with_the_version_that_removed_it(table, tmp_path):
    opened = open_table(table.root)
    (tmp_path / "name=a/0.parquet").unlink()

    assert opened.at(1).files().num_rows == 1
    with pytest.raises(SnapshotNotFoundError, match=r"name=a/0\.parquet does not exist\. .* of version 3 and newer"):
        opened.at(1).to_arrow()


@pytest.mark.parametrize("path", ["../outside.parquet", "/etc/../passwd", "s3://other/x.parquet", "a/%2e%2e/%2e%2e/b"])
def test_a_path_that_leaves_the_storage_is_shown_but_not_read(tmp_path, path):
    written = DeltaTable(None, tmp_path)
    written.commit(add(path, rows=1))
    current = open_table(tmp_path).current

    assert current.files().num_rows == 1
    with pytest.raises(SnapshotExplorerError):
        current.to_arrow()


def test_an_update_lists_from_the_current_checkpoint_and_does_not_ask_the_hint_again(counted, memory_root):
    filesystem, root = memory_root
    written = DeltaTable(filesystem, root)
    for number in range(12):
        written.commit(add(f"f{number}"))
    written.checkpoint(10)
    opened = open_table(f"counted://{root}")
    counted.requests.clear()

    assert opened.update() is opened.current
    assert [(one.kind, one.path) for one in counted.requests] == [("list", f"{root.strip('/')}/_delta_log")]

    counted.requests.clear()
    written.commit(add("new"))
    assert opened.update().version == 13
    asked = [one.path.rsplit("/", 1)[-1] for one in counted.requests]
    assert len(asked) <= 4
    assert "_last_checkpoint" not in asked


def test_opening_costs_the_same_however_long_the_history_is(counted, memory_root):
    costs = []
    for commits in (12, 212):
        filesystem, root = memory_root
        written = DeltaTable(filesystem, f"{root}/{commits}")
        for number in range(commits):
            written.commit(add(f"f{number}"))
        written.checkpoint(commits - 2)
        counted.requests.clear()
        opened = open_table(f"counted://{root}/{commits}")
        opened.current.files()
        costs.append(len(counted.requests))

    # Two listings of the root, the hint, the log, the checksum file, the checkpoint, two commits.
    assert costs[0] == costs[1] <= 10


def test_an_update_to_another_table_of_that_place_is_reported(tmp_path, caplog):
    written = DeltaTable(None, tmp_path)
    opened = open_table(tmp_path)
    before = opened.current
    written.commit(protocol(), metadata(id="other"), version=0, millis=BASE_MILLIS + 1)

    after = opened.update()

    assert after is not before
    reported = "Change in the table id detected while updating snapshot. \nPrevious snapshot = "
    assert any(reported in message for message in caplog.messages)  # text would be as PySpark has every logger write it


def test_a_listing_in_which_a_commit_is_not_to_be_seen_yet_is_made_again(memory_root, register):
    written = DeltaTable(*memory_root)
    late = register(blocking())
    opened = open_table(f"blocking://{written.root}")
    written.append([(1, "a")])
    written.append([(2, "b")])
    late.hide_once(f"{written.root}/{commit_name(1)}")

    assert opened.update().version == 2


def test_a_table_that_vanished_is_an_error_and_its_snapshot_stays(tmp_path, caplog):
    written = DeltaTable(None, tmp_path)
    opened = open_table(tmp_path)
    written.remove_file(commit_name(0))

    with caplog.at_level(logging.INFO), pytest.raises(TableNotFoundError, match="version 0 was the newest"):
        opened.update()
    assert opened.current.version == 0
    assert f"No delta log found for the Delta table at {tmp_path}" in caplog.messages


def test_a_new_checkpoint_alone_is_not_a_new_snapshot(table):
    opened = open_table(table.root)
    before = opened.current
    table.checkpoint()

    assert opened.update() is before


def test_commits_that_land_while_threads_look_are_seen_whole_and_none_is_lost(tmp_path):
    written = DeltaTable(None, tmp_path)
    opened = open_table(tmp_path)
    landed, wrong = threading.Event(), []

    def look(mine):
        last = -1
        while not landed.is_set():
            known = written.version
            updated = opened.update()
            current = opened.current
            # Version v has v files: no more, no less, and no version that was there before goes missing.
            seen = [updated, current, opened.at(max(updated.version - mine, 0))]
            counts = [(one.version, one.files().num_rows) for one in seen]
            if any(version != files for version, files in counts) or updated.version < max(last, known - 1):
                wrong.append((counts, last, known))
            last = updated.version

    threads = [threading.Thread(target=look, args=(mine,)) for mine in range(8)]
    for thread in threads:
        thread.start()
    for number in range(40):
        written.commit(add(f"f{number}", rows=1))
        if number % 10 == 9:
            written.checkpoint()
    landed.set()
    for thread in threads:
        thread.join(60)

    assert not wrong
    assert opened.update().version == 40


def test_row_ids_are_there_at_versions_that_tracked_them(tmp_path):
    tracked = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-col",
    }
    table = DeltaTable(None, tmp_path, configuration=tracked)
    table.append([(1, "a")], baseRowId=7, defaultRowCommitVersion=1)
    table.commit(metadata(configuration={}))
    opened = open_table(table.root)

    assert opened.at(1).to_arrow(columns=["_row_id"]).to_pylist() == [{"_row_id": 7}]
    with pytest.raises(InvalidArgumentError, match="'_row_id' was requested, but the table does not track its rows"):
        opened.at(2).to_arrow(columns=["_row_id"])
