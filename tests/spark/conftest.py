"""One session for all tests on Spark. SNAPSHOT_EXPLORER_SPARK says of which kind: classic, connect or cluster.

A process holds sessions of one kind: test_modes.py runs the tests of the other kinds in processes of their own.
"""

import os
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support import spark_clusters

MODE = os.environ.get("SNAPSHOT_EXPLORER_SPARK", "classic")
THERE = {"classic": {"classic", "here"}, "connect": {"over_connect"}, "cluster": {"classic"}}
"""The fixtures that there are in sessions of some kinds only. Tests that ask for others are left out."""
HERE = Path(__file__).parent
WORKERS = {"spark.python.daemon.module": "tests.support.spark_daemon"}
"""The setting with which Python workers start with their imports."""
WARNED = ("PySpark does not yet fully support pandas >= 3", "The copy keyword is deprecated")
"""What PySpark 4.3 makes pandas 3 say at conversions from and to pandas."""


def pytest_collection_modifyitems(config, items):
    """Leave out what this kind of session does not have, and ignore the warnings of tests of this folder."""
    absent = {"classic", "here", "over_connect"} - THERE[MODE]
    apart = [item for item in items if absent.intersection(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=apart)
    items[:] = [item for item in items if item not in apart]
    for item in items:
        if HERE in item.path.parents:
            for message in WARNED:
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}"))


@pytest.fixture(scope="package")
def spark_mode():
    """The kind of the session `spark`: classic, connect or cluster."""
    if reason := spark_clusters.missing():
        pytest.skip(reason)
    return MODE


@pytest.fixture(scope="package")
def spark(spark_mode, tmp_path_factory):
    """A Spark session: on this machine, behind a Connect server, or on a cluster of a master and two workers."""
    folder = tmp_path_factory.mktemp("spark")
    with _environment(), {"classic": _classic, "connect": _connect, "cluster": _cluster}[spark_mode](folder) as session:
        yield session


@pytest.fixture
def classic(spark):
    """The session where it has a SparkContext: on this machine or on the cluster."""
    return spark


@pytest.fixture
def here(spark):
    """The session on this machine, for long tests of what is the same in sessions of every kind."""
    return spark


@pytest.fixture
def over_connect(spark):
    """The session over Connect, for long tests of many plans: it looks through each plan once."""
    return spark


@contextmanager
def _environment():
    """Have Spark's processes that this one starts run as `spark_clusters.environment` says."""
    before = dict(os.environ)
    os.environ.update(spark_clusters.environment())
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():  # at no time without those that other threads read
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _classic(folder, master="local[2]"):
    from pyspark.sql import SparkSession

    events = folder / "events"
    events.mkdir()
    settings = (
        spark_clusters.CONF
        | WORKERS
        | {
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{events}",
            "spark.eventLog.compress": "false",
        }
    )
    session = SparkSession.builder.master(master).appName("tests").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        _end_gateway()


def _end_gateway():
    """End the JVM that a classic session leaves behind, so that the next one starts afresh."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=300)
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def _connect(folder):
    from pyspark.sql import SparkSession

    with ExitStack() as stack:
        _, address = stack.enter_context(spark_clusters.connect_server(folder, **WORKERS))
        session = SparkSession.builder.remote(address).appName("tests").getOrCreate()
        stack.callback(session.stop)
        yield session


@contextmanager
def _cluster(folder):
    with spark_clusters.standalone_cluster(folder) as cluster, _classic(folder, cluster.url) as session:
        yield session
