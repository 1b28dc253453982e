"""`spark.readStream.format("snapshot")`: changes of a table that is written meanwhile, each commit once."""

import json
import threading
import time
from collections import Counter

import fsspec
import pytest

import snapshot_explorer
from snapshot_explorer import open_table
from snapshot_explorer.core.old_libraries import PYSPARK_DATA_SOURCES
from tests.support.delta.table_builder import DeltaTable, remove
from tests.support.paimon.table_builder import PaimonTable

pytestmark = pytest.mark.skipif(PYSPARK_DATA_SOURCES.applies(), reason=PYSPARK_DATA_SOURCES.problem)
COMMITS = 30
SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@pytest.fixture
def stream(here, tmp_path):
    """Return a function that runs a query over changes until it is done, and appends them to a folder of Parquet."""
    here.dataSource.register(snapshot_explorer.SnapshotDataSource)

    def run(path, sink="sink", trigger=None, **options):
        rows = here.readStream.format("snapshot").options(changes="true", **options).load(str(path))
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / f"{sink}.checkpoint"))
        return writer.trigger(**(trigger or {"availableNow": True})).start(str(tmp_path / sink))

    return run


@pytest.fixture
def sunk(here, tmp_path):
    return lambda sink="sink": [row.asDict() for row in here.read.parquet(str(tmp_path / sink)).collect()]


def replayed(rows, version):
    """Return the rows of a version by the changes up to it; none may be there less than once."""
    state = Counter()
    for row in rows:
        if row["_commit_version"] <= version:
            state[row["id"], row["name"]] += SIGNS[row["_change_type"]]
    assert min(state.values(), default=0) >= 0
    return +state


def loaded(table, version):
    return Counter((row["id"], row["name"]) for row in table.at(version).to_arrow().to_pylist())


def write(table, commits, pause):
    """Append rows, and with every third commit rewrite the file before in part."""
    for number in range(table.version + 1, commits + 1):
        name = f"data-{number}.parquet"
        rows = [(number * 10 + place, f"row {place}") for place in range(3)]
        gone = []
        if number % 3 == 0:
            rows.append(((number - 1) * 10, "changed"))
            gone = [remove(f"data-{number - 1}.parquet")]
        table.commit(table.data(name, rows), *gone)
        time.sleep(pause)


def test_each_commit_of_a_live_table_is_there_once_over_restarts_of_the_query(stream, sunk, tmp_path):
    table = DeltaTable(None, tmp_path / "orders")
    write(table, 3, 0)
    writer = threading.Thread(target=write, args=(table, COMMITS, 0.1))
    writer.start()
    try:
        query = stream(table.url, trigger={"processingTime": "200 milliseconds"})
        deadline = time.monotonic() + 60
        while len(query.recentProgress) < 4 and query.isActive and time.monotonic() < deadline:
            time.sleep(0.1)
        query.stop()
        stream(table.url).awaitTermination()
    finally:
        writer.join()
    stream(table.url).awaitTermination()
    stream(table.url).awaitTermination()

    opened, rows = open_table(table.url), sunk()
    assert table.version == COMMITS
    for version in opened.versions():
        assert replayed(rows, version) == loaded(opened, version)
    expected = [row for batch in opened.changes_since() for row in batch.to_pylist()]
    assert Counter(map(change, rows)) == Counter(map(change, expected))


def change(row):
    return row["id"], row["name"], row["_change_type"], row["_commit_version"]


def test_a_query_begins_with_a_version_or_a_time_and_has_updates_by_key(stream, sunk, tmp_path):
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "orders"))
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    table.commit([(2, "B")], removed=["data-2.parquet"], kind="OVERWRITE")
    third = open_table(str(tmp_path / "orders")).at(3).commit.committed_at

    stream(tmp_path / "orders", "by version", startingVersion="3", key="id").awaitTermination()
    stream(tmp_path / "orders", "by time", startingTimestamp=third.isoformat(), columns="name").awaitTermination()
    stream(tmp_path / "orders", "later", startingVersion="latest").awaitTermination()

    updates = [(2, "b", "update_preimage", 3), (2, "B", "update_postimage", 3)]
    assert sorted(map(change, sunk("by version"))) == sorted(updates)
    assert sorted((row["name"], row["_change_type"]) for row in sunk("by time")) == [("B", "insert"), ("b", "delete")]
    assert sunk("by time")[0]["_commit_timestamp"] is not None
    assert sunk("later") == []
    table.commit([(9, "z")])
    stream(tmp_path / "orders", "later", startingVersion="latest").awaitTermination()
    assert list(map(change, sunk("later"))) == [(9, "z", "insert", 4)]


def test_a_history_that_does_not_go_on_ends_the_query_with_the_ways_to_go_on(stream, tmp_path):
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "orders"))
    for number in range(1, 6):
        table.commit([(number, "a")])
    stream(tmp_path / "orders").awaitTermination()
    offsets = sorted((tmp_path / "sink.checkpoint" / "offsets").glob("[0-9]*"))
    assert json.loads(json.loads(offsets[-1].read_text().splitlines()[-1])["position"])["version"] == 5
    table.rollback(3)
    for number in (4, 5, 6):
        table.commit([(number, "b")], commitUser="another")

    query = stream(tmp_path / "orders")
    with pytest.raises(Exception, match="Version 5 is not the one up to which changes were read"):
        query.awaitTermination()


def test_what_is_not_a_stream_of_changes_is_refused(here, stream, tmp_path):
    table = DeltaTable(None, tmp_path / "orders")
    table.append([(1, "a")])

    with pytest.raises(Exception, match=r"Changes are read as a stream, by spark\.readStream"):
        here.read.format("snapshot").option("changes", "true").load(table.url).collect()
    query = here.readStream.format("snapshot").load(table.url)
    with pytest.raises(Exception, match="Rows of versions are not a stream"):
        query.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    with pytest.raises(Exception, match="The option version is for one version"):
        stream(table.url, version="1")
