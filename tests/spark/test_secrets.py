"""Storage options reach the executors, and neither plans, event logs, outputs nor errors show them."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

import snapshot_explorer
from tests.inner.core import PYSPARK_DATA_SOURCES
from tests.support.delta.table_builder import DeltaTable
from tests.support.outputs import shown_by
from tests.support.paimon.table_builder import PaimonTable

KEY, SECRET, TOKEN = CANARIES = ("canary-key-77aa", "canary/secret+88bb", "canary-token-99cc")


def delta(root):
    table = DeltaTable(*root)
    for number in range(2):
        table.append([(number, "a")], name=f"data-{number + 1}.parquet")
    return table


def paimon(root):
    table = PaimonTable(*root)
    for number in range(2):
        table.commit([(number, "a")])
    return table


def events_of(session):
    """Return Spark's log of its own events, of all that has happened so far."""
    folder = Path(urlsplit(session.sparkContext.getConf().get("spark.eventLog.dir")).path)
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)  # a thread of its own writes them
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


@pytest.mark.parametrize("make", [delta, paimon])
def test_no_plan_event_output_or_error_of_spark_shows_a_secret(classic, s3, memory_root, make, capfd):
    from pyspark.errors import PySparkException

    client, bucket, options = s3
    written = make(memory_root)
    keys = {}
    for path in written.filesystem.find(written.root):
        keys[path] = "t/" + path.strip("/").removeprefix(written.root.strip("/") + "/")
        client.put_object(Bucket=bucket, Key=keys[path], Body=written.filesystem.cat_file(path))
    given = {**options, "key": KEY, "secret": SECRET, "token": TOKEN}
    table = snapshot_explorer.open_table(f"s3://{bucket}/t", storage_options=given)

    frames = [table.current.to_spark(classic), table.lifetimes(engine="spark", spark=classic)]
    if not PYSPARK_DATA_SOURCES.applies():
        classic.dataSource.register(snapshot_explorer.SnapshotDataSource.with_storage_options(given))
        frames.insert(0, classic.read.format("snapshot").load(f"s3://{bucket}/t"))
    assert {frame.count() for frame in frames} == {2}
    for frame in frames:
        frame.explain(extended=True)
        frame.explain(mode="formatted")
    client.delete_object(Bucket=bucket, Key=next(key for key in keys.values() if key.endswith("data-2.parquet")))
    with pytest.raises(PySparkException) as caught:
        frames[0].collect()
    shown = [*shown_by(caught.value), *capfd.readouterr(), events_of(classic)]

    assert "SparkListenerSQLExecutionStart" in shown[-1]
    assert "data-2.parquet" in "".join(shown)
    for canary in CANARIES:
        assert not [text for text in shown if canary in text]


def test_no_row_or_plan_of_spark_shows_a_secret_of_the_table_s_own_log(classic, tmp_path, capfd):
    table = DeltaTable(None, tmp_path / "t")
    table.append([(0, "a")])
    for number, name in enumerate((f"?X-Amz-Signature={TOKEN}", f";SIG={TOKEN}", f"#{TOKEN}")):
        action = table.data(f"{number}.parquet", [(number, "a")])
        action["add"]["path"] = f"https://me:{KEY}@host/{number}.parquet{name}"
        table.commit(action)
    opened = snapshot_explorer.open_table(table.root)

    frames = [
        opened.lifetimes(engine="spark", spark=classic),
        opened.at("latest").file_changes(since="earliest", engine="spark", spark=classic),
        opened.current.files(engine="spark", spark=classic),
    ]
    for frame in frames:
        frame.explain(extended=True)
    shown = [*(str(row) for frame in frames for row in frame.collect()), *capfd.readouterr(), events_of(classic)]

    assert "https://host/1.parquet;..." in "".join(shown)
    assert not [text for text in shown if KEY in text or TOKEN in text]
