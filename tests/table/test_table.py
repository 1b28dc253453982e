"""What users hold: a table through time, and its snapshots."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from builders import PaimonTable
from snapshot_explorer import open_table
from snapshot_explorer.errors import BadReferenceError, SnapshotNotFoundError

FIRST = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
"""When the builder's first commit was made; each later one a minute after."""


@pytest.fixture
def written(memory_root):
    """A table of five commits: three appends, an overwrite of the first file, a compaction of the rest."""
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    table.commit([(2, "b"), (3, "c")])
    table.commit([(4, "d")])
    table.commit([(1, "A")], removed=["data-1.parquet"], kind="OVERWRITE")
    table.commit([(2, "b"), (3, "c"), (4, "d")], removed=["data-2.parquet", "data-3.parquet"], kind="COMPACT")
    return table


@pytest.fixture
def table(written):
    return open_table(f"memory://{written.root}")


def ids(rows):
    return sorted(rows["id"].to_pylist())


def test_a_table_opens_at_its_newest_version(table):
    assert table.format == "paimon"
    assert table.current.version == 5
    assert ids(table.current.to_arrow()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("ref", "version"),
    [
        (2, 2),
        ("2", 2),
        ("latest", 5),
        ("latest~2", 3),
        ("latest^", 4),
        ("earliest", 1),
        ("4~1", 3),
        ("@2026-01-01T00:02:30Z", 2),
        (FIRST + timedelta(minutes=2), 3),
    ],
)
def test_a_ref_names_a_version(table, ref, version):
    assert table.at(ref).version == version


def test_each_version_has_the_rows_of_its_time(table):
    assert {version: ids(table.at(version).to_arrow()) for version in table.versions()} == {
        1: [1],
        2: [1, 2, 3],
        3: [1, 2, 3, 4],
        4: [1, 2, 3, 4],
        5: [1, 2, 3, 4],
    }
    assert sorted(table.at(3).to_arrow()["name"].to_pylist()) == ["a", "b", "c", "d"]
    assert sorted(table.at(4).to_arrow()["name"].to_pylist()) == ["A", "b", "c", "d"]


def test_columns_conditions_and_limits_choose_rows(table):
    rows = table.current.to_arrow(columns=["name"], where="id >= 3")

    assert sorted(rows["name"].to_pylist()) == ["c", "d"]
    assert rows.schema == pa.schema([("name", pa.string())])
    assert table.current.to_arrow(limit=2).num_rows == 2
    assert table.current.count() == 4
    assert table.current.count(where="id > 1") == 3


def test_pandas_keeps_integers(table):
    assert str(table.current.to_pandas()["id"].dtype) == "int64[pyarrow]"


def test_history_is_newest_first_with_what_each_commit_did(table):
    history = table.history().to_arrow()

    assert history["version"].to_pylist() == [5, 4, 3, 2, 1]
    assert history["kind"].to_pylist() == ["compact", "overwrite", "append", "append", "append"]
    assert history["added_rows"].to_pylist() == [3, 1, 1, 2, 1]
    assert history["removed_files"].to_pylist() == [2, 1, 0, 0, 0]
    assert history["total_rows"].to_pylist() == [4, 4, 4, 3, 1]
    assert history["committed_at"].to_pylist()[-1] == FIRST


def test_history_can_be_limited_and_says_how_much_there_is(table):
    history = table.history(limit=2)

    assert history["version"].to_pylist() == [5, 4]
    assert history.total == 5
    assert "2 of 5 versions" in repr(history)


@pytest.mark.parametrize(
    ("filters", "versions"),
    [
        ({"between": "2..4"}, [4, 3, 2]),
        ({"between": "4..2"}, [4, 3, 2]),
        ({"between": "..2"}, [2, 1]),
        ({"between": "latest~1.."}, [5, 4]),
        ({"kind": "append"}, [3, 2, 1]),
        ({"kind": "append", "limit": 1}, [3]),
        ({"since": "@2026-01-01T00:04:00Z"}, [5, 4]),
        ({"since": FIRST + timedelta(days=1)}, []),
        ({"since": "@2020-01-01"}, [5, 4, 3, 2, 1]),
        ({"text": "compact"}, [5]),
        ({"limit": 0}, []),
    ],
)
def test_history_can_be_filtered(table, filters, versions):
    assert table.history(**filters)["version"].to_pylist() == versions


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"kind": "vacuum"}, "No kind of commit is called 'vacuum'. Kinds: append, overwrite, compact"),
        ({"limit": -1}, "A limit of -1 commits makes no sense"),
        ({"since": "latest"}, "since='latest' is no time"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(table, filters, message):
    with pytest.raises(BadReferenceError, match=message):
        table.history(**filters)


def test_changes_are_what_the_commit_added_and_removed(table):
    changes = table.at(5).changes().to_arrow()

    named = sorted(zip(changes["change"].to_pylist(), changes["path"].to_pylist(), strict=True))
    assert named == [
        ("add", "bucket-0/data-5.parquet"),
        ("remove", "bucket-0/data-2.parquet"),
        ("remove", "bucket-0/data-3.parquet"),
    ]
    assert set(changes["data_change"].to_pylist()) == {False}


def test_manifests_stand_in_base_and_delta(table):
    manifests = table.at(3).manifests().to_arrow()

    assert manifests["list"].to_pylist() == ["base", "base", "delta"]
    assert manifests["path"].to_pylist() == ["manifest/manifest-1", "manifest/manifest-2", "manifest/manifest-3"]
    assert manifests["added_files"].to_pylist() == [1, 1, 1]


def test_files_are_the_live_ones(table):
    assert sorted(table.at(4).files()["path"].to_pylist()) == [f"bucket-0/data-{n}.parquet" for n in (2, 3, 4)]


def test_a_partition_filter_on_a_table_without_partitions_is_refused(table):
    with pytest.raises(BadReferenceError, match="No partition key is called 'dt'. The table is not partitioned"):
        table.current.files(partition={"dt": "2026-01-01"})


def test_a_plan_says_what_would_be_read(table):
    plan = table.at(3).plan()

    assert sum(plan["files"].to_pylist()) == 3
    assert sum(plan["rows"].to_pylist()) == 4


def test_a_tag_names_a_version_even_after_the_snapshot_expired(written):
    written.tag("v1", 2)
    written.expire(4)
    table = open_table(f"memory://{written.root}")

    assert table.tags().to_dict() == [{"tag": "v1", "version": 2, "committed_at": FIRST + timedelta(minutes=1)}]
    assert ids(table.at("tag:v1").to_arrow()) == [1, 2, 3]
    assert ids(table.at(2).to_arrow()) == [1, 2, 3]
    assert table.versions() == (2, 4, 5)
    assert table.history()["tags"].to_pylist() == [[], [], ["v1"]]


def test_a_new_commit_is_seen_by_update_and_by_latest(table, written):
    before = table.current
    written.commit([(9, "z")])

    assert table.current is before
    assert table.at("latest").version == 6
    assert table.current.version == 6
    assert before.version == 5
    assert ids(before.to_arrow()) == [1, 2, 3, 4]


def test_an_update_without_news_returns_the_same_snapshot(table):
    assert table.update() is table.current
    assert table.at(5) is table.current


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


def test_an_empty_table_opens_and_says_so(memory_root):
    written = PaimonTable(*memory_root)

    table = open_table(f"memory://{written.root}")

    assert table.current.version == -1
    assert table.versions() == ()
    assert table.current.to_arrow().schema.names == ["id", "name"]
    assert table.current.count() == 0
    assert table.history().num_rows == 0
    assert table.current.files().num_rows == 0
    assert table.current.manifests().num_rows == 0
    assert "has no version yet" in table.current._repr_mimebundle_()["text/plain"]
    with pytest.raises(SnapshotNotFoundError, match="has no version yet"):
        table.at("latest")
    with pytest.raises(SnapshotNotFoundError, match="has no version yet"):
        _ = table.current.commit


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


def test_files_that_are_no_snapshots_are_ignored(written):
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


def test_reprs_read_well_and_show_no_option(written):
    table = open_table(f"memory://{written.root}", storage_options={"skip_instance_cache": True})

    assert repr(table) == f"Table(path='memory://{written.root}', format='paimon', version=5)"
    assert repr(table.at(4)) == f"Snapshot(path='memory://{written.root}', version=4)"
    plain = table.at(4)._repr_mimebundle_()["text/plain"]
    assert "overwrite" in plain
    assert "BIGINT" in plain
