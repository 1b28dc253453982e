"""How long rows of a table take through Spark: ours against Spark's own reader and the formats' connectors, in one run.

    python tests/benchmarks/spark_rows.py [raw] [plan] [vectors | merge] [--jars FOLDER] [--files FILES] [--rows ROWS]

`raw`: an aggregate over parquet files, ours with opening and planning, against `spark.read.parquet` of their paths.
`plan`: a version of 100,000 files, from opening the table until Spark's first task has ended. `vectors`: the same
aggregate where deletion vectors take a tenth of the rows of each file away, or what `--deleted` says, against Delta's
connector. `merge`: the same over a primary key table of three overlapping loads, which Paimon's connector writes,
against that connector.

The connector's jars are in the folder. Run these by a Python whose PySpark they are for, with this package's
dependencies: `vectors` with the PySpark of `.ci/oracles`, `merge` with PySpark 3.5 where paimon-spark-3.5 is what can
be had.

Prints a table and judges nothing. Each of a pair is run once before, then in turns.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.benchmarks.timing import timed
from tests.support.delta.table_builder import DeltaTable, add

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

FIELDS = [("id", "long"), ("name", "string"), ("amount", "double"), ("at", "timestamp"), ("day", "date")]
MANY = 100_000
LINKS = 10_000
"""Names of one file: file systems allow some ten thousand."""
BUCKETS, LOADS = 8, 3
"""Of the table that is merged."""
REPEATS = 3


def rows_of(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count, dtype=np.int64)
    return pa.table(
        {
            "id": ids,
            "name": pa.array([f"name {number}" for number in ids % 1000]),
            "amount": np.random.default_rng(start).random(count),
            "at": pa.array(ids * 1000, pa.timestamp("us", tz="UTC")),
            "day": pa.array((ids % 10_000).astype(np.int32), pa.date32()),
        }
    )


def write(folder: Path, files: int, rows: int, *, deleted: float = 0) -> None:
    features = ["deletionVectors"] if deleted else None
    step = round(1 / deleted) if deleted else 0
    table = DeltaTable(None, folder, fields=FIELDS, features=features)
    for number in range(files):
        name = f"part-{number}.parquet"
        pq.write_table(rows_of(number * rows, rows), folder / name)
        vector = table.vector(range(number % step, rows, step)) if deleted else None
        table.commit(add(name, size=(folder / name).stat().st_size, rows=rows, vector=vector))


def aggregate(rows: DataFrame) -> object:
    return rows.selectExpr("count(*)", "sum(id)", "max(name)", "round(sum(amount), 2)", "max(at)", "min(day)").collect()


def compare(title: str, ours: Callable[[], object], theirs: Callable[[], object], *, work: str, peer: str) -> None:
    if ours() != theirs():
        raise SystemExit(f"{title}: the rows differ")
    pairs = [(timed(ours), timed(theirs)) for _ in range(REPEATS)]
    mine, others = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"{title:<28} ours {mine * 1000:7.0f} ms   theirs {others * 1000:7.0f} ms   ratio {mine / others:4.2f}")
    record(f"Spark: {work}", mine, {peer: others})


def raw(spark: SparkSession, files: int, rows: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), files, rows)
        paths = [str(path) for path in sorted(Path(place).glob("*.parquet"))]
        compare(
            f"raw, {files} files of {rows:,}",
            lambda: aggregate(open_table(place).current.to_spark(spark)),
            lambda: aggregate(spark.read.parquet(*paths)),
            work=f"an aggregate over {files} files of {rows:,} rows",
            peer="`spark.read.parquet` of the same files",
        )


def vectors(spark: SparkSession, files: int, rows: int, deleted: float) -> None:
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), files, rows, deleted=deleted)
        compare(
            f"vectors, {files} files of {rows:,}, {deleted:.1%}",
            lambda: aggregate(open_table(place).current.to_spark(spark)),
            lambda: aggregate(spark.read.format("delta").load(place)),
            work=f"an aggregate over {files} files of {rows:,} rows, {deleted:.0%} of them in deletion vectors",
            peer="Delta's connector",
        )


def merge(spark: SparkSession, keys: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        spark.conf.set("spark.sql.catalog.paimon", "org.apache.paimon.spark.SparkCatalog")
        spark.conf.set("spark.sql.catalog.paimon.warehouse", Path(place).as_uri())
        spark.sql("create database paimon.shop")
        columns = ", ".join(f"{name} {kind}" for name, kind in FIELDS).replace("long", "bigint", 1)
        spark.sql(
            f"create table paimon.shop.orders ({columns}) tblproperties ("
            f"'primary-key' = 'id', 'bucket' = '{BUCKETS}', 'file.format' = 'parquet', 'write-only' = 'true')"
        )
        for load in range(LOADS):  # each key is in all loads but one
            spark.range(keys).where(f"id % {LOADS} <> {load}").selectExpr(
                "id",
                f"concat('name ', (id + {load}) % 1000) as name",
                f"id * 0.25D + {load} as amount",
                "timestamp_micros(id * 1000) as at",
                "date_from_unix_date(cast(id % 10000 as int)) as day",
            ).writeTo("paimon.shop.orders").append()
        compare(
            f"merge, {keys:,} keys",
            lambda: aggregate(open_table(f"{place}/shop.db/orders").current.to_spark(spark)),
            lambda: aggregate(spark.table("paimon.shop.orders")),
            work=f"an aggregate over {keys:,} keys of a primary-key table, loaded {LOADS} times",
            peer="Paimon's connector",
        )


def plan(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = DeltaTable(None, folder, fields=FIELDS)
        names = [f"part-{number:06}.parquet" for number in range(MANY)]
        for first in range(0, MANY, LINKS):
            pq.write_table(rows_of(0, 10), folder / names[first])
            for name in names[first + 1 : first + LINKS]:
                os.link(folder / names[first], folder / name)
        size = (folder / names[0]).stat().st_size
        table.commit(*(add(name, size=size, rows=10) for name in names))
        for _ in range(3):
            start, used = time.perf_counter(), time.process_time()
            snapshot = open_table(place).current
            opened = time.perf_counter() - start
            splits = len(snapshot.plan())
            planned = time.perf_counter() - start
            rows = snapshot.to_spark(spark)
            built, used = time.perf_counter() - start, time.process_time() - used
            rows.limit(1).collect()
            first = time.perf_counter() - start
            print(
                f"plan, {MANY:,} files: opened {opened:.2f} s, planned {planned - opened:.2f} s ({splits} splits), "
                f"DataFrame {built - planned:.2f} s ({used:.2f} s of processor in all), first row {first - built:.2f} s"
            )


CONNECTORS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "paimon": {"spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions"},
}


def session(jars: str | None, connector: str = "delta") -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "3g").config("spark.ui.showConsoleProgress", "false")
    if jars:
        builder = builder.config("spark.jars", ",".join(str(path) for path in Path(jars).glob("*.jar")))
        builder = builder.config(map=CONNECTORS[connector])
    return builder.getOrCreate()


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["raw", "plan"], choices=["raw", "plan", "vectors", "merge"])
    parser.add_argument("--jars", help="folder with the jars of Delta's connector, or for `merge` with Paimon's")
    parser.add_argument("--files", type=int, default=8, help="files of the tables that are aggregated")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows per file")
    parser.add_argument("--deleted", type=float, default=0.1, help="which part of the rows vectors take away")
    parser.add_argument("--keys", type=int, default=4_000_000, help="rows of the table that is merged")
    given = parser.parse_args()
    spark = session(given.jars, "paimon" if "merge" in given.parts else "delta")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if "raw" in given.parts:
            raw(spark, given.files, given.rows)
        if "vectors" in given.parts:
            vectors(spark, given.files, given.rows, given.deleted)
        if "merge" in given.parts:
            merge(spark, given.keys)
        if "plan" in given.parts:
            plan(spark)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
