"""A process of the cluster is killed in the middle of a load, and the load gives the same rows.

The table lies on a file system of the tests' own, held://, which is the local disk but for one file: who first opens
that waits, until it is killed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

import snapshot_explorer
from tests.inner.core import PYSPARK_DATA_SOURCES
from tests.support import spark_clusters
from tests.support.canonical import canonical_rows
from tests.support.paimon.table_builder import PaimonTable

HELD = "data-3.parquet"
PATIENCE = 300
"""Seconds for what takes ten on a machine that has nothing else to do."""
FILE_SYSTEM = f'''
import os
import time

from fsspec.implementations.local import LocalFileSystem


class HeldFileSystem(LocalFileSystem):
    """The local disk, on which the first reader of {HELD} waits for its end."""

    protocol = "held"

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(str(path).removeprefix("held://"))

    def _open(self, path, mode="rb", **more):
        _wait(path)
        return super()._open(path, mode, **more)

    def cat_file(self, path, **more):
        _wait(self._strip_protocol(path))
        return super().cat_file(path, **more)


def _wait(path):
    if not path.endswith({HELD!r}):
        return
    opened = path + ".opened"
    with open(opened, "a") as out:
        out.write(f"{{os.getpid()}}\\n")
    try:
        os.close(os.open(opened + "-first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    time.sleep(600)
    raise OSError("nobody came to kill the first reader")
'''
DRIVER = """
import json, sys
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
import snapshot_explorer

url, paths, outs, conf = sys.argv[1], *map(json.loads, sys.argv[2:])
builder = SparkSession.builder.master(url)
for name, value in conf.items():
    builder = builder.config(name, value)
spark = builder.config("spark.executor.memory", "512m").getOrCreate()
rows = snapshot_explorer.open_table(paths[0]).current.to_spark(spark)
pq.write_table(rows.toArrow(), outs[0])
spark.dataSource.register(snapshot_explorer.SnapshotDataSource)
rows = spark.read.format("snapshot").load(paths[1])
pq.write_table(rows.toArrow(), outs[1])
spark.stop()
"""


@pytest.fixture(scope="module")
def knows_held(tmp_path_factory):
    """An environment in which fsspec knows held://."""
    folder = tmp_path_factory.mktemp("held")
    about = folder / "held_files-1.0.dist-info"
    about.mkdir()
    (folder / "held_files.py").write_text(FILE_SYSTEM)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: held-files\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fsspec.specs]\nheld = held_files:HeldFileSystem\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(spark_clusters.ROOT)])}


@pytest.fixture(scope="module")
def cluster(knows_held, tmp_path_factory):
    if reason := spark_clusters.missing():
        pytest.skip(reason)
    with spark_clusters.standalone_cluster(tmp_path_factory.mktemp("cluster"), **knows_held) as found:
        yield found


def written(folder):
    """Write a table with six files, each of them a split; return its folder."""
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(folder))
    for number in range(6):
        table.commit([(row, f"name {row}") for row in range(100 * number, 100 * number + 100)])
    return folder


@pytest.mark.skipif(PYSPARK_DATA_SOURCES.applies(), reason=PYSPARK_DATA_SOURCES.problem)
def test_a_load_gives_the_same_rows_when_its_process_is_killed(cluster, knows_held, tmp_path):
    """An executor during to_spark, then a worker, with its executor, during a load of the source: one driver for both.

    The worker last: the cluster goes on without it.
    """
    tables = [written(tmp_path / name) for name in ("to_spark", "source")]
    opened = [table / "bucket-0" / f"{HELD}.opened" for table in tables]
    outs = [tmp_path / f"{table.name}.parquet" for table in tables]
    arguments = ([f"held://{table}" for table in tables], list(map(str, outs)), spark_clusters.CONF)

    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, cluster.url, *map(json.dumps, arguments)],
        env=spark_clusters.environment(**knows_held),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as driver:
        executor, _ = ancestors(first_reader(opened[0], driver))
        os.kill(executor, signal.SIGKILL)
        _, worker = ancestors(first_reader(opened[1], driver))
        assert worker in [one.process.pid for one in cluster.workers]
        os.killpg(worker, signal.SIGKILL)  # and with it its executor
        said, _ = driver.communicate(timeout=PATIENCE)

    assert driver.returncode == 0, said
    for table, out, readers in zip(tables, outs, opened, strict=True):
        expected = canonical_rows(snapshot_explorer.open_table(table).current.to_arrow())
        assert canonical_rows(pq.read_table(out)) == expected, table.name
        assert len(set(readers.read_text().split())) > 1, "another process has read the file again"


def first_reader(opened, driver):
    """Return the process that waits for its end."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and driver.poll() is None:
        if opened.exists() and (found := opened.read_text()).endswith("\n"):
            return int(found.split()[0])
        time.sleep(0.1)
    driver.kill()
    raise AssertionError(f"no task has opened {HELD}: {driver.communicate()[0]}")


def ancestors(pid):
    """Return the executor that a Python worker of Spark's works for, and the cluster's worker that runs it."""
    java = []
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        if stat[stat.index("(") + 1 :].startswith("java"):
            java.append(pid)
        pid = int(stat.rpartition(")")[2].split()[1])
    executor, worker = java[:2]
    return executor, worker
