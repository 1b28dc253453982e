"""`spark.readStream.format("snapshot")`: changes of a table that is written meanwhile, each commit once."""

import json
import os
import subprocess
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import fsspec
import pytest

import snapshot_explorer
from snapshot_explorer import open_table
from tests.inner.core import PYSPARK_DATA_SOURCES, PYSPARK_READ_LIMITS
from tests.support.delta.table_builder import DeltaTable, remove
from tests.support.paimon.table_builder import PaimonTable

pytestmark = pytest.mark.skipif(PYSPARK_DATA_SOURCES.applies(), reason=PYSPARK_DATA_SOURCES.problem)
COMMITS = int(os.environ.get("SNAPSHOT_EXPLORER_STREAM_COMMITS", "60"))
"""How often the library deltalake commits while a query reads; 200 in the long form."""
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


def replayed(rows, state):
    """Return rows after changes; none may be there less than once."""
    state = Counter(state)
    for row in rows:
        state[row["id"], row["name"]] += SIGNS[row["_change_type"]]
    assert min(state.values(), default=0) >= 0
    return +state


def loaded(table, version):
    return Counter((row["id"], row["name"]) for row in table.at(version).to_arrow().to_pylist())


@pytest.fixture
def builder(tmp_path):
    """A thread that appends rows, and with every third commit rewrites the file before in part; the version at its end.

    The log is written by the builder of the tests.
    """

    def write():
        table = DeltaTable(None, tmp_path / "orders")
        for number in range(1, 16):
            rows, gone = [(number * 10 + place, f"row {place}") for place in range(3)], []
            if number % 3 == 0:
                rows.append(((number - 1) * 10, "changed"))
                gone = [remove(f"data-{number - 1}.parquet")]
            table.commit(table.data(f"data-{number}.parquet", rows), *gone)
            time.sleep(0.2)

    return write, 15


@pytest.fixture
def deltalake(tmp_path):
    """The same by the library deltalake, in a process of the environment of .ci/oracles, with more commits."""
    folder = os.environ.get("SNAPSHOT_EXPLORER_ORACLES")
    if not folder:
        pytest.skip(".ci/oracles && export SNAPSHOT_EXPLORER_ORACLES=$PWD/.venv-oracles")
    script = Path(__file__).parents[1] / "oracles" / "stream_deltalake.py"
    command = [Path(folder) / "bin" / "python", script, tmp_path / "orders", str(COMMITS), "0.15"]
    return lambda: subprocess.run(command, check=True), COMMITS


@pytest.mark.parametrize("engine", ["builder", "deltalake"])
def test_each_commit_of_a_live_table_is_there_once_over_restarts_of_the_query(engine, stream, sunk, tmp_path, request):
    write, last = request.getfixturevalue(engine)
    writer = threading.Thread(target=write)
    writer.start()
    while not list((tmp_path / "orders").glob("_delta_log/*2.json")):
        time.sleep(0.1)
    while writer.is_alive():  # the query is stopped within a micro-batch
        query = stream(tmp_path / "orders", trigger={"processingTime": "200 milliseconds"})
        time.sleep(5)
        query.stop()
    writer.join()
    stream(tmp_path / "orders").awaitTermination()
    stream(tmp_path / "orders").awaitTermination()

    table, rows = open_table(str(tmp_path / "orders")), sunk()
    assert table.versions()[-1] == last
    by_version, state = defaultdict(list), Counter()
    for row in rows:
        by_version[row["_commit_version"]].append(row)
    for version in table.versions():
        state = replayed(by_version[version], state)
        assert state == loaded(table, version)
    expected = [row for batch in table.changes_since() for row in batch.to_pylist()]
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


needs_limits = pytest.mark.skipif(PYSPARK_READ_LIMITS.applies(), reason=PYSPARK_READ_LIMITS.problem)


@needs_limits
def test_a_micro_batch_has_at_most_so_many_commits(here, stream, tmp_path):
    table = DeltaTable(None, tmp_path / "orders")
    for number in range(7):
        table.append([(number, "a")])
    batches = []
    rows = here.readStream.format("snapshot").options(changes="true", maxVersionsPerTrigger="3").load(table.url)

    def start(trigger):
        checkpoint = str(tmp_path / "checkpoint")
        writer = rows.writeStream.option("checkpointLocation", checkpoint).trigger(**trigger)
        return writer.foreachBatch(
            lambda frame, _: batches.append(sorted({row["_commit_version"] for row in frame.collect()}))
        ).start()

    start({"availableNow": True}).awaitTermination()
    for number in (7, 8, 9, 10):
        table.append([(number, "a")])
    start({"availableNow": True}).awaitTermination()
    start({"once": True}).awaitTermination()  # all that is there, also with a limit
    table.append([(11, "a")])
    query = start({"processingTime": "100 milliseconds"})
    query.processAllAvailable()
    query.stop()

    # Version 0, which has no rows, is one of the first three.
    assert [versions for versions in batches if versions] == [[1, 2], [3, 4, 5], [6, 7], [8, 9, 10], [11], [12]]


@needs_limits
def test_a_limit_of_commits_is_a_whole_number(stream, tmp_path):
    table = DeltaTable(None, tmp_path / "orders")
    table.append([(1, "a")])

    with pytest.raises(Exception, match="maxVersionsPerTrigger must be a whole number, 1 or more, got '0'"):
        stream(table.url, maxVersionsPerTrigger="0")


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
