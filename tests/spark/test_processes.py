"""What a session of its own shows: workers that lack the package, and logs that are searched for secrets."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import snapshot_explorer
from snapshot_explorer import samples
from tests.inner.core import PYSPARK_DATA_SOURCES
from tests.support import spark_clusters

SESSION = """
import json, os, pathlib, sys
sys.path.insert(0, sys.argv[1])
import snapshot_explorer
from pyspark.sql import SparkSession

how, path, options = sys.argv[2:4] + [json.loads(sys.argv[4])]
builder = SparkSession.builder
for name, value in json.loads(sys.argv[5]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
source = snapshot_explorer.SnapshotDataSource
spark.dataSource.register(source.with_storage_options(options) if options else source)


def run():
    frames = {"rows": spark.read.format("snapshot").option("version", "17").load(path).filter("amount > 0")}
    if options:
        table = snapshot_explorer.open_table(path, storage_options=options)
        frames["to_spark"] = table.at(17).to_spark(spark, where="amount > 0")
        frames["lifetimes"] = table.lifetimes(engine="spark", spark=spark)
        frames["changes"] = table.at("latest").file_changes(since="earliest", engine="spark", spark=spark)
        frames["files"] = table.current.files(engine="spark", spark=spark)
    for name, frame in frames.items():
        frame.explain(True)
        print(f"{name}:", frame.count())


for worker in ("pyspark.sql.worker.create_data_source", "pyspark.worker") if how == "lacking" else ("none",):
    if how == "lacking":
        pathlib.Path(os.environ["LACKING"]).write_text(worker)
    print("lacking:", worker)
    try:
        run()
    except Exception as error:
        print(error)
spark.stop()
"""
LACKING = """
import os, sys


class Lacking:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "snapshot_explorer":
            with open(os.environ["LACKING"]) as worker:
                if worker.read() in sys.orig_argv:
                    raise ModuleNotFoundError(f"No module named {name!r}")


if "pyspark.daemon" in sys.orig_argv:
    sys.meta_path.insert(0, Lacking)
"""
"""A worker of the kind that a file names cannot import the package."""


pytestmark = pytest.mark.skipif(PYSPARK_DATA_SOURCES.applies(), reason=PYSPARK_DATA_SOURCES.problem)


@pytest.fixture(autouse=True)
def there():
    if reason := spark_clusters.missing():
        pytest.skip(reason)


def session(how, path, options=None, env=None, **conf):
    """Load and count version 17 of a table in a process of its own; return all that it said.

    With storage options `to_spark` does the same, and metadata is counted.
    """
    arguments = [str(spark_clusters.ROOT), how, str(path), json.dumps(options or {}), json.dumps(conf)]
    done = subprocess.run(
        [sys.executable, "-c", SESSION, *arguments],
        env=spark_clusters.environment() | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def test_a_worker_that_lacks_the_package_says_how_to_bring_it(tmp_path):
    """One session for both workers: in each try another one cannot import the package."""
    (tmp_path / "sitecustomize.py").write_text(LACKING)
    env = {"PYTHONPATH": str(tmp_path), "LACKING": str(tmp_path / "lacking")}

    said = session("lacking", samples.path("orders"), env=env, **spark_clusters.CONF, **{"spark.master": "local[2]"})

    _, driver, executor = said.split("lacking: ")
    assert "rows:" not in said
    assert (
        "opens the table in a Python worker of Spark's driver (of Spark Connect: of the server), and "
        "snapshot_explorer cannot be imported there: No module named 'snapshot_explorer'. Install it"
    ) in driver
    assert (
        "snapshot_explorer cannot be imported on a Spark executor: No module named 'snapshot_explorer'. "
        "The executors need the package"
    ) in executor


def test_storage_options_are_in_no_log(s3, tmp_path):
    """The log of events is what the UI is drawn from. Over Connect plans travel furthest: they are sent to a server."""
    client, bucket, options = s3
    folder, events = Path(samples.path("orders")), tmp_path / "events"
    for path in filter(Path.is_file, folder.rglob("*")):
        client.upload_file(str(path), bucket, f"orders/{path.relative_to(folder).as_posix()}")
    events.mkdir()
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}

    with spark_clusters.connect_server(tmp_path, **log) as (server, address):
        said = session("connect", f"s3://{bucket}/orders", options, **{"spark.remote": address})
        said += server.log.read_text()
    logged = "".join(path.read_text() for path in events.rglob("*") if path.is_file())

    table = snapshot_explorer.open_table(folder)
    counted = {"rows": table.at(17).count("amount > 0"), "to_spark": table.at(17).count("amount > 0")}
    counted |= {"lifetimes": len(table.lifetimes()), "changes": len(table.at("latest").file_changes(since="earliest"))}
    for name, count in (counted | {"files": len(table.current.files())}).items():
        assert f"\n{name}: {count}\n" in said
    assert "BatchScan snapshot" in logged
    assert "MapInArrow" in logged
    for value in options.values():
        assert value not in said + logged
