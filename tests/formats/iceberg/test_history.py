"""Versions, branches, tags and snapshot ids of Iceberg tables."""

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotNotFoundError, TableNotFoundError
from snapshot_explorer.history import history_of
from tests.support.iceberg.table_builder import IcebergTable


@pytest.fixture
def table(memory_root):
    return IcebergTable(*memory_root)


def opened(table, **options):
    return open_table(f"memory://{table.root}", **options)


def ids(snapshot):
    return sorted(snapshot.to_arrow()["id"].to_pylist())


def test_a_version_is_a_sequence_number_and_a_snapshot_id_is_accepted_too(table):
    first = table.commit([(1, "a")])
    table.commit([(2, "b")])

    found = opened(table)

    assert found.versions() == (1, 2)
    assert ids(found.at(1)) == ids(found.at(first)) == ids(found.at(str(first))) == [1]
    assert found.at(first).commit.identifier == str(first)


def test_snapshot_ids_are_accepted_in_ranges_and_with_steps_in_whatever_order_they_are(table):
    table.ids = iter((900, 50, 700))
    for number in (1, 2, 3):
        table.commit([(number, "a")])

    found = opened(table)

    assert found.row_changes(900, "50")["id"].to_pylist() == [2]
    assert found.row_changes("900", "latest")["id"].to_pylist() == [2, 3]
    assert found.history(between="900..50").to_arrow()["version"].to_pylist() == [2, 1]
    assert found.at("50~1").version == 1


def test_commits_of_another_branch_take_numbers(table):
    table.commit([(1, "a")])
    table.metadata["refs"]["dev"] = dict(table.metadata["refs"]["main"])
    table.commit([(2, "b")], branch="dev")
    table.commit([(3, "c")])

    main, dev = opened(table), opened(table, branch="dev")

    assert main.versions() == (1, 3)
    assert dev.versions() == (1, 2)
    assert ids(dev.current) == [1, 2]
    assert ids(main.at("latest~1")) == [1]
    assert main.branches().to_dict() == [{"branch": "dev", "forked_version": 1, "newest_version": 2}]
    with pytest.raises(
        SnapshotNotFoundError, match=r"Version 2 \(snapshot \d+\) is in the table but not in the history"
    ):
        main.at(2)
    with pytest.raises(
        SnapshotNotFoundError, match=r"belongs to the branch dev. Open it with open_table\(\.\.\., branch='dev'\)"
    ):
        main.at(2)


def test_a_rolled_back_version_says_when_main_left_it_and_opens_by_its_id(table):
    first = table.commit([(1, "a")])
    second = table.commit([(2, "b")])
    table.rollback(first, 1_767_226_000_000)
    table.commit([(3, "c")])

    found = opened(table)

    assert found.versions() == (1, 3)
    assert ids(found.current) == [1, 3]
    with pytest.raises(SnapshotNotFoundError, match="main left it at 2026-01-01 00:06:40 UTC, by a rollback"):
        found.at(2)
    assert ids(opened(table, branch=str(second)).at(2)) == [1, 2]


def test_statistics_under_the_schema_of_an_expired_version_are_refused(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.expire(2)

    with pytest.raises(SnapshotNotFoundError, match="Version 1"):
        history_of(opened(table)).table_format.maintenance.statistics_files([1, 2], 1, ["id"])


def test_a_time_is_the_version_that_was_current_then_also_if_it_was_rolled_back(table):
    first = table.commit([(1, "a")])
    second = table.commit([(2, "b")])
    table.rollback(first, 1_767_226_000_000)
    found = opened(table)
    times = (
        history_of(found).committed_at(found.versions()),
        history_of(opened(table, branch=str(second))).committed_at([2]),
    )

    assert (
        found.at(times[0][0]).version
        == found.at("@2026-01-01T00:06:40Z").version
        == found.at("@2100-01-01").version
        == 1
    )
    then = found.at(times[1][0])
    assert (then.version, then.branch, ids(then)) == (2, str(second), [1, 2])
    assert found.history(since=times[1][0]).num_rows == 0


def _logged(table, millis, *more):
    """Commit a version for each of these times, in this order. Then main is at one of them again, from a time on."""
    start = 1_767_225_600_000
    commits = [table.commit([(number, "a")], millis=start + 1_000 * time) for number, time in enumerate(millis, 1)]
    for time, version in more:
        table.rollback(commits[version - 1], start + 1_000 * time)
    return commits


@pytest.mark.parametrize(
    ("millis", "rollbacks", "expected"),
    [
        ((20, 10, 30), (), {10: 2, 15: 2, 20: 1, 25: 1, 35: 3}),
        ((30, 20, 10), (), {15: 3, 25: 2, 35: 1}),
        ((10, 30, 20), (), {15: 1, 25: 3, 35: 2}),
        ((10, 20, 20, 20), (), {15: 1, 20: 2, 25: 2}),
        ((20, 20, 10), (), {15: 3, 20: 1}),
        ((10, 20, 30), ((40, 1),), {15: 1, 25: 2, 35: 3, 45: 1}),
        ((10, 20, 30), ((25, 1),), {22: 2, 27: 1, 35: 3}),
        ((10, 20, 30), ((40, 1), (50, 3)), {35: 3, 45: 1, 55: 3}),
        ((10, 40, 20), ((30, 1),), {25: 3, 35: 1, 45: 2}),
    ],
)
def test_the_greatest_time_in_the_snapshot_log_up_to_a_time_decides(table, millis, rollbacks, expected):
    _logged(table, millis, *rollbacks)
    found = opened(table)

    versions = {time: found.at(f"@2026-01-01T00:00:{time:02}Z").version for time in expected}

    assert versions == expected
    for time, version in expected.items():
        assert len(ids(found.at(f"@2026-01-01T00:00:{time:02}Z"))) == version


def test_a_state_before_a_rollback_can_be_compared_stepped_back_from_and_queried(table):
    commits = _logged(table, (10, 20, 30), (40, 1))
    found = opened(table)

    then = found.at("@2026-01-01T00:00:35Z")

    assert (then.version, then.branch) == (3, str(commits[2]))
    assert found.at("@2026-01-01T00:00:35Z~1").version == 2
    assert sorted(found.diff_rows("@2026-01-01T00:00:35Z", "latest").before["id"].to_pylist()) == [2, 3]
    assert found.compare("latest", "@2026-01-01T00:00:25Z").files.to_arrow().num_rows == 1
    assert found.sql("select count(*) n from this for timestamp as of '2026-01-01 00:00:35'")["n"].item() == 3
    assert history_of(found).time_note("@2026-01-01T00:00:35Z") is None
    with pytest.raises(SnapshotNotFoundError, match="is version 3 of branch .*, which branch main does not have"):
        history_of(found).version_of("@2026-01-01T00:00:35Z")


def test_a_time_whose_version_is_not_known_any_more_is_refused(table):
    commits = _logged(table, (10, 20, 30, 40))
    table.tag("old", commits[0])
    table.metadata["snapshots"] = [table.metadata["snapshots"][0], *table.metadata["snapshots"][2:]]
    table.metadata["snapshot-log"] = table.metadata["snapshot-log"][2:]
    table.write_metadata()
    found = opened(table)

    assert found.versions() == (1, 3, 4)
    assert found.at("@2026-01-01T00:00:35Z").version == 3
    with pytest.raises(
        SnapshotNotFoundError, match="is unknown: the snapshot log of the table begins at 2026-01-01 00:00:30 UTC"
    ):
        found.at("@2026-01-01T00:00:25Z")
    with pytest.raises(SnapshotNotFoundError, match="no available version was committed at or before this time"):
        found.at("@2025-01-01")


def test_a_time_whose_version_has_expired_is_refused_although_the_log_names_it(table):
    _logged(table, (10, 20, 30))
    del table.metadata["snapshots"][1]
    table.write_metadata()

    with pytest.raises(SnapshotNotFoundError, match="Main was at the snapshot 1000002 since .* it has expired"):
        opened(table).at("@2026-01-01T00:00:25Z")


def test_times_of_a_branch_and_of_a_table_without_a_log_are_those_of_commits(table):
    _logged(table, (20, 10, 30))
    table.metadata["refs"]["dev"] = dict(table.metadata["refs"]["main"])
    table.metadata["snapshot-log"] = []
    table.write_metadata()

    for found in (opened(table), opened(table, branch="dev")):
        assert [found.at(f"@2026-01-01T00:00:{time}Z").version for time in (15, 25, 35)] == [2, 1, 3]
    assert opened(table).history(since="2026-01-01T00:00:15Z").to_arrow()["version"].to_pylist() == [3, 1]
    assert opened(table).history(until="2026-01-01T00:00:15Z").to_arrow()["version"].to_pylist() == [2]


def test_versions_that_one_rollback_took_away_left_main_at_the_same_time(table):
    first = table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.commit([(3, "c")])
    table.rollback(first, 1_767_226_000_000)

    for version in (2, 3):
        with pytest.raises(SnapshotNotFoundError, match="main left it at 2026-01-01 00:06:40 UTC, by a rollback"):
            opened(table).at(version)


def test_a_commit_counts_from_the_time_when_a_branch_became_main(table):
    table.commit([(1, "a")])
    table.metadata["refs"]["dev"] = dict(table.metadata["refs"]["main"])
    published = table.commit([(2, "b")], branch="dev")
    table.rollback(published, 1_767_226_000_000)
    found = opened(table)

    assert found.versions() == (1, 2)
    assert found.at("@2026-01-01T00:06:39Z").version == 1
    assert found.at("@2026-01-01T00:06:40Z").version == 2


def test_latest_is_a_lower_number_after_a_rollback(table):
    first = table.commit([(1, "a")])
    table.commit([(2, "b")])
    found = opened(table)
    assert found.current.version == 2

    table.rollback(first, 1_767_226_000_000)

    assert found.update().version == 1
    assert found.versions() == (1,)
    assert found.lifetimes().versions == (1,)


def test_a_staged_commit_is_in_no_history(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")], branch=None, **{"wap.id": "audit"})

    with pytest.raises(SnapshotNotFoundError, match="it was staged as 'audit' and not published"):
        opened(table).at(2)


def test_a_replaced_table_goes_on_in_one_history(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.commit([(9, "z")], parent=False, operation="overwrite")
    table.commit([(10, "y")])

    found = opened(table)

    assert found.versions() == (1, 2, 3, 4)
    assert history_of(found).listing.without_commit == (3,)
    assert [ids(found.at(one)) for one in found.versions()] == [[1], [1, 2], [9], [9, 10]]
    lifetimes = found.lifetimes()
    assert [lifetimes.files_at(one).num_rows for one in found.versions()] == [1, 2, 1, 2]
    assert found.at(3).commit.kind == "overwrite"


def test_a_snapshot_that_a_tag_kept_from_expiring_is_in_the_history(table):
    old = table.commit([(1, "a")])
    for number in (2, 3, 4):
        table.commit([(number, "b")])
    table.tag("kept", old)
    kept = {old, *(one["snapshot-id"] for one in table.metadata["snapshots"][-2:])}
    table.metadata["snapshots"] = [one for one in table.metadata["snapshots"] if one["snapshot-id"] in kept]
    table.metadata["snapshot-log"] = table.metadata["snapshot-log"][-2:]
    table.write_metadata()

    found = opened(table)

    assert found.versions() == (1, 3, 4)
    assert history_of(found).listing.without_commit == (3,)
    assert found.at("tag:kept").version == 1
    assert [found.lifetimes().files_at(one).num_rows for one in found.versions()] == [1, 3, 4]
    with pytest.raises(SnapshotNotFoundError, match="Version 2 does not exist, nor a snapshot of that id"):
        found.at(2)


def test_a_tag_of_another_branch_says_how_to_open_its_version(table):
    table.commit([(1, "a")])
    table.metadata["refs"]["dev"] = dict(table.metadata["refs"]["main"])
    tagged = table.commit([(2, "b")], branch="dev")
    table.tag("candidate", tagged)

    found = opened(table)

    assert found.tags().to_arrow().select(["tag", "version"]).to_pylist() == [{"tag": "candidate", "version": 2}]
    with pytest.raises(
        SnapshotNotFoundError, match=r"it belongs to the branch dev. Open it with open_table\(\.\.\., branch='dev'\)"
    ):
        found.at("tag:candidate")
    assert ids(opened(table, branch="dev").at("tag:candidate")) == [1, 2]


def test_a_dropped_table_keeps_what_was_read_and_says_so(table):
    table.commit([(1, "a")])
    found = opened(table)
    table.filesystem.rm(f"{table.root}/metadata", recursive=True)

    with pytest.raises(TableNotFoundError, match="shows no version any more: its folder metadata is missing or empty"):
        found.update()
    assert found.current.version == 1


def test_a_table_that_was_made_anew_is_read_anew(table, memory_root):
    for number in (1, 2, 3):
        table.commit([(number, "a")])
    found = opened(table)
    table.filesystem.rm(table.root, recursive=True)
    again = IcebergTable(*memory_root)
    again.metadata["table-uuid"] = "another"
    again.commit([(9, "z")])

    assert found.update().version == 1
    assert ids(found.current) == [9]


def test_versions_of_format_1_are_counted_and_keep_their_number_while_a_table_is_open(memory_root):
    table = IcebergTable(*memory_root, version=1)
    for number in (1, 2, 3):
        table.commit([(number, "a")])
    found = opened(table)
    assert found.versions() == (1, 2, 3)

    table.metadata["snapshots"] = table.metadata["snapshots"][1:]
    table.metadata["snapshot-log"] = table.metadata["snapshot-log"][1:]
    table.commit([(4, "a")])

    assert found.update().version == 4
    assert found.versions() == (2, 3, 4)
    assert opened(table).versions() == (1, 2, 3)
    assert any("has format version 1" in note for note in history_of(found).listing.notes)


def test_the_last_snapshot_before_an_upgrade_is_version_0(memory_root):
    table = IcebergTable(*memory_root, version=1)
    first = table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.version, table.metadata["format-version"], table.sequence = 2, 2, 0
    for one in table.metadata["snapshots"]:
        for record in table.manifests[one["snapshot-id"]]:
            record["sequence_number"] = record["min_sequence_number"] = 0
    table.commit([(3, "c")])

    found = opened(table)

    assert found.versions() == (0, 1)
    assert ids(found.at(0)) == [1, 2]
    assert ids(found.current) == [1, 2, 3]
    assert ids(opened(table, branch=str(first)).at(1)) == [1]
    with pytest.raises(
        SnapshotNotFoundError, match=rf"version 1; an upgraded .* Open it with open_table\(\.\.\., branch='{first}'\)"
    ):
        found.at(first)


def test_a_branch_that_is_not_there_is_refused_with_those_that_are(table):
    one = table.commit([(1, "a")])
    table.tag("v1", one)

    with pytest.raises(
        TableNotFoundError, match=r"has no branch 'mian' and no snapshot of that id. Branches: main. Did"
    ):
        opened(table, branch="mian")
    with pytest.raises(TableNotFoundError, match="has no branch 'v1': it is a tag. Open the table without a branch"):
        opened(table, branch="v1")


@pytest.mark.parametrize(
    ("version", "change", "versions", "note"),
    [
        (1, lambda snapshots: snapshots[0].update({"parent-snapshot-id": 1_000_003}), (1, 2, 3), "form a cycle"),
        (2, lambda snapshots: snapshots[1].update({"parent-snapshot-id": 1_000_002}), (2, 3), "form a cycle"),
        (2, lambda snapshots: snapshots[0].update({"parent-snapshot-id": 1_000_003}), (1, 2, 3), "form a cycle"),
        (2, lambda snapshots: snapshots[0].update({"sequence-number": 2}), (2, 3), "before it, 1000001, 2"),
        (2, lambda snapshots: snapshots[1].update({"sequence-number": 7}), (3,), "before it, 1000002, 7"),
        (2, lambda snapshots: snapshots[2].pop("sequence-number"), (1,), "has no sequence number, but its parent has"),
    ],
)
def test_a_history_begins_where_its_parents_contradict_each_other(memory_root, caplog, version, change, versions, note):
    table = IcebergTable(*memory_root, version=version)
    for number in (1, 2, 3):
        table.commit([(number, "a")])
    change(table.metadata["snapshots"])
    table.write_metadata()

    found = opened(table)

    assert found.versions() == versions
    assert ids(found.current) == [1, 2, 3]
    assert note in caplog.text
    assert found.history().num_rows == len(versions)


def test_times_are_found_in_the_history(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])

    assert opened(table).at("@2026-01-01T00:01:30Z").version == 1


def test_a_table_without_snapshots_has_no_version_and_no_rows(table):
    table.write_metadata()

    found = opened(table)

    assert found.current.version is None
    assert found.current.to_arrow().schema.names == ["id", "name"]
    assert found.versions() == ()
    assert len(found.lifetimes()) == 0
