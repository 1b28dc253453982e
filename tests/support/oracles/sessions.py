"""A local session of Spark with a format's connector: small, and everything in UTC."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_SETTINGS = {
    "spark.driver.extraJavaOptions": " ".join(
        # A small young generation is collected hundreds of times: a tenth of the time of a long history.
        ("-Duser.timezone=UTC", "-XX:ReservedCodeCacheSize=256m", "-Xms768m", "-Xmn512m", *java.SHORT_LIVED)
    ),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Each query writes its plan for the UI, at length.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "2",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A query over a dozen rows ends before code for it would be compiled."""


def session(
    jars: Iterable[Path],
    settings: Mapping[str, str],
    *,
    master: str = "local[2]",
    variables: Mapping[str, str] | None = None,
) -> Any:
    """Return a session of the user "lake": one per process.

    Args:
        jars: The connector.
        settings: Settings beside and in place of the common ones.
        master: Where Spark runs.
        variables: More environment variables of the Java process.
    """
    before = dict(os.environ)
    os.environ.update({"TZ": "UTC", "HADOOP_USER_NAME": "lake", "SPARK_USER": "lake", "SPARK_LOCAL_IP": "127.0.0.1"})
    os.environ.update(variables or {})
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master(master)
    for key, value in {**_SETTINGS, "spark.jars": ",".join(map(str, jars)), **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    os.environ.clear()
    os.environ.update(before)
    spark.sparkContext.setLogLevel("OFF")
    return spark
