"""How long all rows of Hudi tables take, against hudi-rs, and where log files are merged against Hudi on Spark too.

    python tests/benchmarks/hudi_rows.py PYTHON JARS [ROWS [FOLDER]]

PYTHON is that of `.ci/oracles` for Hudi: PySpark 3.5 and hudi-rs. JARS is the folder of Hudi's bundle. Hudi writes a
copy-on-write table of so many rows, 8 million unless it is said, in eight files, and a merge-on-read table of the same
rows of which one in ten was updated into log files; tables that are in FOLDER already are not written again. Ours and
hudi-rs return Arrow, by turns, and seconds of the processor are compared. Spark, with two cores, reads all columns into
nothing, and seconds of the clock are compared. Fails where they return different numbers of rows.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record

ROUNDS = 3
SPARK = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
what, folder, jars, rows = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
settings = {
    "spark.jars": ",".join(map(str, jars.glob("*.jar"))),
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.driver.memory": "3g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def loaded(ids, late):
    return ids.selectExpr(
        "id", f"concat('name ', (id + {late}) % 1000) as name", f"id * 0.25D + {late} as amount",
        "timestamp_micros(id * 1000) as at", "date_from_unix_date(cast(id % 10000 as int)) as day",
        f"{late}L as loaded",
    )


def write(frame, table, operation, mode):
    options = {
        "hoodie.table.name": table,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if table == "mor" else "COPY_ON_WRITE",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "loaded",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.index.type": "SIMPLE",
        "hoodie.embed.timeline.server": "false",
        "hoodie.bulkinsert.shuffle.parallelism": "8",
        "hoodie.upsert.shuffle.parallelism": "8",
    }
    frame.write.format("hudi").options(**options).mode(mode).save(str(folder / table))


if what == "write":
    for table in ("cow", "mor"):
        write(loaded(spark.range(0, rows, 1, 8), 0), table, "bulk_insert", "overwrite")
    write(loaded(spark.range(0, rows, 10, 8), 1), "mor", "upsert", "append")
else:
    for _ in range(3):
        begun = time.perf_counter()
        frame = spark.read.format("hudi").load(str(folder / "mor"))
        frame.select("id", "name", "amount", "at", "day", "loaded").write.format("noop").mode("overwrite").save()
        print("spark", time.perf_counter() - begun)
spark.stop()
"""
HUDI_RS = """
import sys, time
from hudi import HudiTableBuilder
begun, busy = time.perf_counter(), time.process_time()
batches = HudiTableBuilder.from_base_uri(sys.argv[1]).build().read()
print(sum(batch.num_rows for batch in batches), time.perf_counter() - begun, time.process_time() - busy)
"""


def ours(path: Path) -> tuple[int, float, float]:
    """Return the rows, and the seconds of the clock and of the processor."""
    begun, busy = time.perf_counter(), time.process_time()
    rows = open_table(path).current.to_arrow().num_rows
    return rows, time.perf_counter() - begun, time.process_time() - busy


def peer(python: str, path: Path) -> tuple[int, float, float]:
    done = subprocess.run([python, "-c", HUDI_RS, path.as_uri()], check=True, capture_output=True, text=True)
    rows, clock, processor = done.stdout.split()
    return int(rows), float(clock), float(processor)


def spark(python: str, *arguments: str) -> list[float]:
    """Have Spark write the tables or read the one with log files; return the seconds of each time that it read."""
    environment = os.environ | {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"}
    command = [python, "-c", SPARK, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("spark ")]


def measure(folder: Path, table: str, python: str, rows: int) -> tuple[float, float, float]:
    """Print and return the best seconds: ours of the clock and of the processor, and of the processor of hudi-rs."""
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(ours(folder / table))
        theirs.append(peer(python, folder / table))
    if {read for read, _, _ in (*mine, *theirs)} != {rows}:
        raise SystemExit(f"{table}: rows differ: {mine} {theirs}")
    clock, busy = (min(one[at] for one in mine) for at in (1, 2))
    other_clock, other = (min(one[at] for one in theirs) for at in (1, 2))
    print(
        f"{table}: {rows:,} rows: ours {busy:.2f} s of processor, {clock:.2f} s of clock; hudi-rs {other:.2f} s, "
        f"{other_clock:.2f} s; ratio {busy / other:.2f}, {clock / other_clock:.2f}"
    )
    return clock, busy, other


def main() -> None:
    logging.disable(logging.WARNING)
    python, jars, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 8_000_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = sys.argv[4] if len(sys.argv) > 4 else temporary
        if not (Path(folder) / "mor").exists():
            spark(python, "write", folder, jars, str(rows))
        million = f"{rows / 10**6:g} million rows"
        _, busy, other = measure(Path(folder), "cow", python, rows)
        record(f"Hudi: read {million}, copy on write", busy, {"hudi-rs": other}, processor=True)
        clock, busy, other = measure(Path(folder), "mor", python, rows)
        work = f"Hudi: read {million}, a tenth updated in log files"
        record(work, busy, {"hudi-rs": other}, processor=True)
        connector = min(spark(python, "read", folder, jars, str(rows)))
        print(f"mor: Hudi on Spark {connector:.2f} s of clock; ratio {clock / connector:.2f}")
        record(f"{work}, against Spark", clock, {"Hudi on Spark, 2 cores": connector})


if __name__ == "__main__":
    main()
