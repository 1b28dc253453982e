"""What users hold: a table through time, and its snapshots."""

import re
from datetime import UTC, datetime, timedelta

import pytest

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import SnapshotNotFoundError
from tests.support.delta.table_builder import DeltaTable, add
from tests.support.paimon.table_builder import PaimonTable, five_commits

FIRST = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
"""When the builder's first commit was made; each later one a minute after."""


@pytest.fixture
def written(memory_root):
    return five_commits(*memory_root)


@pytest.fixture
def table(written):
    return open_table(f"memory://{written.root}")


def ids(rows):
    return sorted(rows["id"].to_pylist())


def test_manifests_stand_in_base_and_delta(table):
    manifests = table.at(3).manifests().to_arrow()

    assert manifests["list"].to_pylist() == ["base", "base", "delta"]
    assert manifests["path"].to_pylist() == ["manifest/manifest-1", "manifest/manifest-2", "manifest/manifest-3"]
    assert manifests["added_files"].to_pylist() == [1, 1, 1]


def test_a_tag_names_a_version_even_after_the_snapshot_expired(written):
    written.tag("v1", 2)
    written.expire(4)
    table = open_table(f"memory://{written.root}")

    assert table.tags().to_dict() == [{"tag": "v1", "version": 2, "committed_at": FIRST + timedelta(minutes=1)}]
    assert ids(table.at("tag:v1").to_arrow()) == [1, 2, 3]
    assert ids(table.at(2).to_arrow()) == [1, 2, 3]
    assert table.versions() == (2, 4, 5)
    assert table.history()["tags"].to_pylist() == [[], [], ["v1"]]


def test_history_rewritten_under_the_same_numbers_is_noticed(table, written):
    table.at(4).to_arrow()
    written.snapshots = 3
    written.live = {"data-1.parquet": 1, "data-2.parquet": 2, "data-3.parquet": 1}
    written.base = written.base[:3]
    written.commit([(7, "seven")])
    written.commit([(8, "eight")])

    assert table.update().version == 5
    assert ids(table.current.to_arrow()) == [1, 2, 3, 4, 7, 8]
    assert ids(table.at(4).to_arrow()) == [1, 2, 3, 4, 7]


def test_a_range_may_begin_at_an_expired_version_only_if_a_tag_holds_it(written):
    written.tag("kept", 2)
    written.expire(4)
    table = open_table(f"memory://{written.root}")

    assert table.history("2..")["version"].to_pylist() == table.history("tag:kept..")["version"].to_pylist()
    assert table.history("2..")["version"].to_pylist() == [5, 4, 2]
    with pytest.raises(SnapshotNotFoundError, match="Version 3 has expired. Available versions: 2 to 5, with gaps"):
        table.history("3..")


def test_before_the_only_version_is_none(memory_root):
    written = PaimonTable(*memory_root)
    written.commit()

    with pytest.raises(
        SnapshotNotFoundError,
        match=r"goes back past the earliest. Available versions: 1 \(1 in total\). Try earliest.$",
    ):
        open_table(f"memory://{written.root}").at("latest~1")


def test_of_very_many_columns_the_card_names_the_first(tmp_path):
    DeltaTable(None, tmp_path / "wide", fields=[(f"c{number}", "long") for number in range(500)])
    table = open_table(str(tmp_path / "wide"))

    assert len(table.current.schema.columns) == 500
    card = " ".join(table._repr_mimebundle_()["text/plain"].split())
    assert card.endswith("c48, c49 and 450 more")


def test_an_empty_table_opens_and_says_so(memory_root):
    written = PaimonTable(*memory_root)

    table = open_table(f"memory://{written.root}")

    assert table.current.version is None
    assert table.versions() == ()
    assert table.current.to_arrow().schema.names == ["id", "name"]
    assert table.current.count() == 0
    assert table.history().num_rows == 0
    assert table.current.files().num_rows == 0
    assert str(table.current.files()).startswith(f"Files of {table.name}, no version yet\n")
    assert table.current.manifests().num_rows == 0
    assert "has no version yet" in table.current._repr_mimebundle_()["text/plain"]
    with pytest.raises(SnapshotNotFoundError, match="has no version yet"):
        table.at("latest")
    with pytest.raises(SnapshotNotFoundError, match="has no version yet"):
        _ = table.current.commit
    with pytest.raises(SnapshotNotFoundError, match="No version is known: read the lifetimes again after the first"):
        table.lifetimes().files_at(1)


def test_the_first_commit_of_an_empty_table_is_found_by_update(memory_root):
    written = PaimonTable(*memory_root)
    table = open_table(f"memory://{written.root}")
    written.commit([(1, "a")])

    assert table.update().version == 1


@pytest.mark.parametrize("hint", [None, b"", b"garbage", b"1", b"99", b"-5", b"4 ", b"\xff\xfe"])
def test_the_newest_version_is_found_whatever_the_hint_says(written, hint):
    if hint is None:
        written.remove("snapshot/LATEST")
    else:
        written.write("snapshot/LATEST", hint)

    assert open_table(f"memory://{written.root}").current.version == 5


def test_files_that_are_not_snapshots_are_ignored(written):
    written.remove("snapshot/LATEST")
    written.write("snapshot/snapshot-7.tmp", b"{")
    written.write("snapshot/snapshot-x", b"{")
    written.write("snapshot/.snapshot-9.crc", b"\0")

    assert open_table(f"memory://{written.root}").versions() == (1, 2, 3, 4, 5)


def test_gaps_in_the_history_are_tolerated(written):
    written.remove("snapshot/snapshot-3")

    table = open_table(f"memory://{written.root}")

    assert table.versions() == (1, 2, 4, 5)
    assert table.at("latest~2").version == 2


def test_changes_without_a_start_begin_at_the_first_commit_that_is_there(tmp_path):
    written = DeltaTable(None, tmp_path)
    for name in "abcd":
        written.commit(add(name))
    written.checkpoint(2)
    for version in (0, 1, 2):
        written.remove_file(f"_delta_log/{version:020d}.json")
    table = open_table(tmp_path)

    assert table.at("latest").file_changes(since="earliest")["version"].to_pylist() == [3, 4]
    assert table.at("3").file_changes(since="earliest")["version"].to_pylist() == [3]
    assert table.versions() == (2, 3, 4)
    later = table.at("latest").file_changes(since="2")
    assert later["version"].to_pylist() == [3, 4]
    assert re.search("the commit of version 2 .* Read from version 3 on, the next one", later.notes[0])


def test_completion_offers_what_users_call_and_nothing_internal():
    table = open_table(samples.path("orders"))

    assert {"at", "history", "branches", "versions"} <= set(dir(table))
    assert not {"past", "read_overview"} & set(dir(table))
    assert not {"resolved", "cached_schema"} & set(dir(table.at(3)))
    assert not {"check_floors", "import_module", "annotations"} & set(dir(snapshot_explorer))


@pytest.mark.parametrize("name", samples.names())
def test_a_commit_at_the_time_that_is_requested_is_of_the_history(name):
    table = open_table(samples.path(name))
    versions = table.versions()

    for commit in table.history(limit=3).to_arrow().to_pylist():
        place = versions.index(commit["version"])
        assert table.history(since=commit["committed_at"])["version"].to_pylist()[::-1] == list(versions[place:])
        assert table.history(until=commit["committed_at"])["version"].to_pylist()[::-1] == list(versions[: place + 1])
