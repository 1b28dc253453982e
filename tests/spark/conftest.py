"""One classic session for all tests on Spark."""

import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WARNED = ("PySpark does not yet fully support pandas >= 3", "The copy keyword is deprecated")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            for message in WARNED:
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}"))


@pytest.fixture(scope="package")
def spark(tmp_path_factory):
    """A classic session on this machine."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = SparkSession.builder.master("local[2]").appName("tests").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
