"""When Delta versions were committed, and which one a time names."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from tests.inner.delta import Clock, DeltaLog, Times, adjust_times, clock_of, metadata_of
from tests.support.delta.table_builder import BASE_MILLIS, DeltaTable, add, lines, metadata, protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ICT = {"delta.enableInCommitTimestamps": "true"}
"""The properties of a table all of whose commits carry their times."""
FIRST = "delta.inCommitTimestampEnablementVersion"
BEGINS = "delta.inCommitTimestampEnablementTimestamp"


def at(millis):
    return EPOCH + timedelta(milliseconds=millis)


def since(version, millis):
    """The properties of a table whose commits carry their times from a version on."""
    return ICT | {FIRST: str(version), BEGINS: str(millis)}


def times_of(table):
    storage = Storage(table.url)
    return Times(storage, DeltaLog(storage))


@pytest.fixture
def table(tmp_path):
    """A table on the local disk, whose files have times."""
    return DeltaTable(None, tmp_path / "table")


@pytest.fixture
def carrying(memory_root):
    """A table whose commits carry their times; the first was made at 5000."""
    table = DeltaTable(*memory_root, first=None)
    table.commit(protocol(), metadata(configuration=ICT), info={"inCommitTimestamp": 5_000})
    return table


def with_times(table, *millis):
    """Give the commits of a table these file times, writing as many as there are."""
    while table.version + 1 < len(millis):
        table.commit()
    for version, one in enumerate(millis):
        path = Path(table.root) / f"_delta_log/{version:020d}.json"
        os.utime(path, ns=(one * 1_000_000, one * 1_000_000))
    return table


def with_carried(table, *millis, **more):
    """Commit a version for each time, which it carries."""
    for one in millis:
        table.commit(info={"inCommitTimestamp": one}, **more)
    return table


def test_a_time_that_does_not_rise_is_a_millisecond_after_the_one_before():
    assert adjust_times(np.array([100, 250, 250, 180, 400])).tolist() == [100, 250, 251, 252, 400]
    assert adjust_times(np.array([], np.int64)).tolist() == []


@given(st.lists(st.integers(-(2**50), 2**50), max_size=30))
def test_adjusting_is_what_a_loop_does(millis):
    expected = []
    for one in millis:
        expected.append(one if not expected or one > expected[-1] else expected[-1] + 1)

    assert adjust_times(np.array(millis, np.int64)).tolist() == expected


def test_versions_have_the_adjusted_times_of_their_files(table):
    with_times(table, 5_000, 9_000, 9_000, 7_000, 20_000)

    assert times_of(table).committed_at([4, 0, 3]) == [at(20_000), at(5_000), at(9_002)]
    assert open_table(table.url).history()["committed_at"].to_pylist()[::-1] == [
        at(one) for one in (5_000, 9_000, 9_001, 9_002, 20_000)
    ]


def test_the_writers_clock_does_not_count_where_files_have_times(table):
    table.commit(millis=BASE_MILLIS + 9_000, info={"timestamp": 1})

    assert times_of(table).committed_at([1]) == [at(BASE_MILLIS + 9_000)]


def test_the_writers_clock_counts_where_the_storage_tells_no_times(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(info={"timestamp": 77_000})

    assert times_of(table).committed_at([0, 1]) == [at(BASE_MILLIS), at(77_000)]


def test_a_commit_that_nothing_tells_the_time_of_can_still_be_loaded(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(table.data("a.parquet", [(1, "a")]), info=False)
    opened = open_table(table.url)

    with pytest.raises(CorruptTableError, match="when version 1 was committed is unknown: .* Use version numbers"):
        history_of(opened).committed_at([1])
    assert opened.at(1).to_arrow().num_rows == 1
    assert opened.history(limit=1)["committed_at"].to_pylist() == [None]


def test_a_time_is_found_by_bisection_where_commits_must_be_read(counted, memory_root):
    written = DeltaTable(*memory_root)
    for _ in range(63):
        written.commit()
    opened = open_table(f"counted://{written.root}")
    counted.requests.clear()

    snapshot = opened.at(written.committed_at(17))

    assert snapshot.version == 17
    assert len([one for one in counted.requests if one.kind == "get"]) <= 8
    assert len([one for one in counted.requests if one.kind == "list"]) <= 2


@pytest.mark.parametrize(
    ("minutes", "version"), [(0, 0), (10, 0), (19.999, 0), (20, 1), (30, 1), (40, 2), (41, 2), (10**6, 2)]
)
def test_a_time_names_the_last_version_committed_by_then(table, minutes, version):
    base = 1_540_415_658_000
    with_times(table, base, base + 20 * 60_000, base + 40 * 60_000)

    assert open_table(table.url).at(at(base) + timedelta(minutes=minutes)).version == version


def test_a_time_before_the_first_version_is_refused_with_what_there_is(table):
    with_times(table, 1_540_415_658_000, 1_540_415_659_000)

    with pytest.raises(
        SnapshotNotFoundError, match="The earliest is 0, committed at 2018-10-24T21:14:18Z. Try earliest or @2018"
    ):
        open_table(table.url).at(at(1_540_415_657_999))


def test_commits_with_their_own_times_have_these(carrying):
    with_carried(carrying, 8_000, 8_001)

    assert times_of(carrying).committed_at([2, 0, 1]) == [at(8_001), at(5_000), at(8_000)]
    assert open_table(carrying.url).at(at(8_000)).version == 1


def test_carried_times_are_not_adjusted(carrying):
    with_carried(carrying, 3_000)

    assert times_of(carrying).committed_at([0, 1]) == [at(5_000), at(3_000)]


def test_the_newest_metadata_decide_which_times_versions_have(table):
    table.commit()
    table.commit(metadata(configuration=since(2, 70_000)), info={"inCommitTimestamp": 70_000})
    with_carried(table, 80_000)
    with_times(table, 1_000, 2_000, 3_000, 4_000)

    assert times_of(table).committed_at([0, 1, 2, 3]) == [at(1_000), at(2_000), at(70_000), at(80_000)]


def test_times_before_carried_ones_began_are_looked_for_among_the_older_versions(table):
    """After a copy all files have times of the copy, which are later than what commits carry."""
    table.commit()
    table.commit(metadata(configuration=since(2, 70_000)), info={"inCommitTimestamp": 70_000})
    with_carried(table, 80_000, 90_000)
    with_times(table, 500_000, 500_001, 500_002, 500_003, 500_004)
    opened = open_table(table.url)

    assert [opened.at(at(millis)).version for millis in (70_000, 79_999, 80_000, 500_001, 10**12)] == [2, 2, 3, 4, 4]
    assert opened.at(f"@{at(80_000).isoformat()}~2").version == 1
    with pytest.raises(SnapshotNotFoundError, match="The earliest is 0, committed at 1970-01-01T00:08:20Z"):
        opened.at(at(69_999))
    assert opened.history(since=at(75_000))["version"].to_pylist() == [4, 3]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 400), st.integers(0, 7))
def test_the_versions_to_search_are_those_on_the_times_own_side(steps, asked, first):
    millis = np.cumsum(steps).tolist()
    versions = list(range(len(millis)))
    first = min(first, len(millis) - 1)

    run = Clock(first=first, begins=millis[first]).side_of(asked, versions)

    expected = versions[first:] if asked >= millis[first] or first == 0 else versions[:first]
    assert list(run) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (add("a"), "contains no commitInfo, and the table has delta.enableInCommitTimestamps=true"),
        ({"commitInfo": {"timestamp": 5}}, "contains a commitInfo without inCommitTimestamp"),
        ({"commitInfo": {"inCommitTimestamp": True}}, "contains a commitInfo without inCommitTimestamp"),
        ({"commitInfo": {"inCommitTimestamp": 10**17}}, "in none of the years 1 to 9999"),
    ],
)
def test_a_commit_that_does_not_carry_its_time_is_named(carrying, line, message):
    carrying.write("_delta_log/00000000000000000001.json", lines(line))

    with pytest.raises(CorruptTableError) as caught:
        times_of(carrying).committed_at([1])

    assert "_delta_log/00000000000000000001.json" in str(caught.value)
    assert message in str(caught.value)
    assert "Use version numbers instead" in str(caught.value)
    assert open_table(carrying.url).history()["committed_at"].to_pylist() == [None, at(5_000)]


def test_a_line_that_was_cut_short_is_named(carrying):
    times = times_of(carrying)
    times.committed_at([0])
    carrying.write("_delta_log/00000000000000000000.json", b'{"commitInfo":{"inCommitTimestamp":70')

    with pytest.raises(CorruptTableError, match="0000.json is damaged: line 1 is not an action"):
        times.committed_at([0])


@pytest.mark.parametrize("missing", [FIRST, BEGINS])
def test_one_property_of_carried_times_without_the_other_is_refused(memory_root, missing):
    configuration = {name: value for name, value in since(1, 5_000).items() if name != missing}
    table = DeltaTable(*memory_root, configuration=configuration)

    with pytest.raises(CorruptTableError, match="both must be whole numbers"):
        times_of(table).committed_at([0])


def test_a_version_that_is_not_there_is_refused_with_those_that_are(table):
    table.commit()

    with pytest.raises(
        SnapshotNotFoundError, match="Version 7 does not exist. Available versions: 0 to 1. Try 1, latest"
    ):
        times_of(table).committed_at([7])


def test_a_version_committed_since_the_listing_is_reported(table):
    times = times_of(table)
    times.committed_at([0])
    table.commit()

    assert times.committed_at([1]) == [table.committed_at(1)]


def test_without_the_property_no_commit_carries_its_time():
    clock = clock_of(metadata_of(metadata(configuration={"delta.enableInCommitTimestamps": "false"})["metaData"]))

    assert not clock.carries(0)
