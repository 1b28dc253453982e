"""Sessions of Spark with the connector of any format, and tables in them by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.support.delta import connector
from tests.support.hudi import histories as hudi
from tests.support.iceberg import histories as iceberg
from tests.support.oracles import sessions

INNER = {"hudi": "hudi", "paimon": "hudi"}
"""The environment within that of .ci/oracles that has the Spark for a format's connector."""
JARS = {"hudi": "hudi-1.2", "paimon": "paimon-spark"}
"""The folder with the jars of a format's connector, where its name is not the format's."""
_BOTH = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
    "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM lists in as many tasks
}
_PAIMON_SETTINGS = {
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.paimon.spark.SparkCatalog",
}


def session(kind: str, out: Path) -> Any:
    """Return a session with the connector of a format, everything in UTC; tables without a path are below `out`."""
    folder = Path(sys.executable).parents[2 if kind in INNER else 1] / "jars"
    jars = sorted((folder / JARS.get(kind, kind)).glob("*.jar"))
    if kind == "delta":
        return connector.session(jars)
    if kind == "iceberg":
        # With Delta beside it: tables are converted in place.
        return iceberg.session([*jars, *sorted((folder / "delta").glob("*.jar"))], out, _BOTH)
    if kind == "hudi":
        spark = hudi.session(jars, out / "warehouse")
        for key, value in hudi.OPTIONS.items():
            spark.sql(f"SET {key}={value}")
        return spark
    spark = sessions.session(jars, {**_PAIMON_SETTINGS, "spark.sql.catalog.lake.warehouse": out.as_uri()})
    spark.sql("CREATE DATABASE IF NOT EXISTS lake.db")
    return spark


def location(kind: str, out: Path, name: str) -> tuple[str, Path]:
    """Return the name of a table in the session, and its folder."""
    if kind == "delta":
        path = out / name
        return f"delta.`{str(path).replace('`', '``')}`", path
    if kind == "hudi":
        return name, out / name
    return f"lake.db.{name}", out / ("db.db" if kind == "paimon" else "db") / name
