"""Write the sample table `rides` with Apache Hudi itself.

    python -m tests.scripts.make_rides OUT EXPECTED --jars FOLDER

Writer: Apache Hudi 1.2.0, `org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0` in FOLDER, on PySpark 3.5 and Java 17, all
in UTC. What Hudi's own time travel reads at each version is written to EXPECTED, in the form of `tests/data/README.md`.

The rows, the versions and what each did are the same on every run; ids of file groups are random. The clock of the Java
process is shifted, as for the other samples.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.scripts.make_samples import Clock
from tests.support.canonical import canonical_rows
from tests.support.oracles import sessions

WRITER = "Apache Hudi 1.2.0 (Spark connector, PySpark 3.5)"

_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.index.bloom.num_entries": "60",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
}
_DRIVERS = ("Amir", "Berta", "Chloe", "Dario", "Emine")


def _rides(first: int, last: int, day: str) -> str:
    """Return the INSERT of new rides of a day: every ninth has no fare yet."""
    rows = []
    for ride in range(first, last + 1):
        fare = "NULL" if ride % 9 == 0 else f"{ride * 7919 % 4200 / 100 + 3.5:.2f}"
        moment = f"{day} {8 + ride % 12:02d}:{ride * 7 % 60:02d}:00"
        city = ("Kassel", "Lyon")[ride % 2]
        rows.append(f"({ride}, '{_DRIVERS[ride * 3 % 5]}', {fare}, 'booked', TIMESTAMP '{moment}', '{city}')")
    return "INSERT INTO rides VALUES " + ", ".join(rows)


def _update(change: str, condition: str, moment: str) -> str:
    return f"UPDATE rides SET {change}, updated_at = TIMESTAMP '{moment}' WHERE {condition}"


# A message that comes late: older than what the table has of ride 2, newer than what it has of ride 31.
_LATE = (
    "MERGE INTO rides t USING (SELECT * FROM VALUES "
    "(2L, 'Berta', CAST(36.88 AS DECIMAL(8, 2)), 'corrected', TIMESTAMP '2026-11-03 05:30:00', 'Kassel'), "
    "(31L, 'Dario', CAST(23.39 AS DECIMAL(8, 2)), 'corrected', TIMESTAMP '2026-11-04 05:30:00', 'Lyon') "
    "AS v(ride_id, driver, fare, status, updated_at, city)) s ON t.ride_id = s.ride_id WHEN MATCHED THEN UPDATE SET *"
)
_RIDES = (
    (
        "2026-11-02T06:00:00",
        (
            "CREATE TABLE rides (ride_id BIGINT, driver STRING, fare DECIMAL(8, 2), status STRING, updated_at "
            "TIMESTAMP, city STRING) USING hudi PARTITIONED BY (city) LOCATION '{location}' TBLPROPERTIES (type = "
            "'mor', primaryKey = 'ride_id', orderingFields = 'updated_at', 'hoodie.table.timeline.timezone' = 'UTC')"
        ),
    ),
    ("2026-11-02T22:00:00", _rides(1, 24, "2026-11-02")),
    ("2026-11-03T06:00:00", _update("status = 'paid'", "ride_id <= 14", "2026-11-03 06:00:00")),
    ("2026-11-03T22:00:00", _rides(25, 36, "2026-11-03")),
    ("2026-11-04T06:00:00", _LATE),
    ("2026-11-04T09:00:00", "DELETE FROM rides WHERE ride_id IN (5, 17, 30)"),
    ("2026-11-04T12:00:00", "CALL create_savepoint(table => 'rides', commit_time => '{newest}', user => 'lake')"),
    ("2026-11-05T02:00:00", "CALL run_compaction(op => 'schedule', table => 'rides')"),
    ("2026-11-05T02:05:00", "CALL run_compaction(op => 'run', table => 'rides')"),
    ("2026-11-05T22:00:00", _rides(37, 44, "2026-11-05")),
    ("2026-11-06T03:00:00", _update("fare = -fare", "city = 'Lyon'", "2026-11-06 03:00:00")),
    ("2026-11-06T08:00:00", _rides(45, 50, "2026-11-06")),
    ("2026-11-06T11:00:00", _update("fare = -fare", "fare < 0", "2026-11-06 11:00:00")),
    ("2026-11-07T02:00:00", "CALL run_compaction(op => 'schedule', table => 'rides')"),
    ("2026-11-07T02:05:00", "CALL run_compaction(op => 'run', table => 'rides')"),
    ("2026-11-08T12:00:00", "DELETE FROM rides WHERE driver = 'Dario'"),
    ("2026-11-09T22:00:00", _rides(51, 58, "2026-11-09")),
    ("2026-11-10T02:00:00", "CALL run_clustering(table => 'rides')"),
    ("2026-11-10T22:00:00", _update("status = 'settled'", "status = 'paid'", "2026-11-10 22:00:00")),
    (
        "2026-11-11T02:00:00",
        "CALL run_clean(table => 'rides', clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 8)",
    ),
    ("2026-11-12T02:00:00", "CALL run_compaction(op => 'schedule', table => 'rides')"),
    ("2026-11-12T22:00:00", _rides(59, 62, "2026-11-12")),
)


def session(jars: Path, clock: Clock, warehouse: Path) -> Any:
    """Return a local Spark session. One per process."""
    settings = _SETTINGS | {"spark.sql.warehouse.dir": warehouse.as_uri()}
    spark = sessions.session(sorted(jars.glob("*.jar")), settings, master="local[1]", variables=clock.environment())
    for key, value in _OPTIONS.items():
        spark.sql(f"SET {key}={value}")
    return spark


def versions(table: Path) -> list[str]:
    """Return the instants of the completed writes, in order."""
    names = [path.name for path in (table / ".hoodie" / "timeline").iterdir()]
    writes = ("commit", "deltacommit", "replacecommit")
    return sorted(name[:17] for name in names if name.rpartition(".")[2] in writes and "_" in name)


def write(out: Path, expected: Path, jars: Path) -> None:
    """Write the table `rides` below `out`, each statement at its own time, and what Hudi reads of it."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(Path(folder))
        clock.set("2026-11-01T00:00:00")
        table = Path(folder) / "rides"
        spark = session(jars, clock, Path(folder) / "warehouse")
        for moment, statement in _RIDES:
            clock.set(moment)
            print(moment, statement[:90])
            newest = versions(table)[-1] if "{newest}" in statement else ""
            spark.sql(statement.replace("{location}", table.as_uri()).replace("{newest}", newest)).collect()
        write_expected(spark, table, expected / "rides")
        spark.stop()
        shutil.copytree(table, out / "rides", ignore=shutil.ignore_patterns("*.crc", ".temp", ".aux"))


def write_expected(spark: Any, table: Path, folder: Path) -> None:
    """Write what Hudi reads at every version; of one whose files were cleaned, the error."""
    folder.mkdir(parents=True, exist_ok=True)
    for instant in versions(table):
        about = {"version": int(instant), "instant": instant, "source": WRITER}
        try:
            frame = spark.read.format("hudi").option("as.of.instant", instant).load(table.as_uri())
            frame = frame.select(*[name for name in frame.columns if not name.startswith("_hoodie_")])
            rows = pa.Table.from_pandas(frame.toPandas(), schema=_schema(), preserve_index=False)
            about |= {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows)}
        except Exception as error:  # noqa: BLE001 - of Java: cleaned files
            about |= {"outcome": "error", "why": str(error).partition("\n")[0][:200]}
        (folder / f"{int(instant)}.json").write_text(json.dumps(about, ensure_ascii=False) + "\n")


def _schema() -> pa.Schema:
    return pa.schema(
        [
            ("ride_id", pa.int64()),
            ("driver", pa.string()),
            ("fare", pa.decimal128(8, 2)),
            ("status", pa.string()),
            ("updated_at", pa.timestamp("us", tz="UTC")),
            ("city", pa.string()),
        ]
    )


def main() -> None:
    """Read the command line and write the sample."""
    parser = argparse.ArgumentParser(description="Write the sample table of Apache Hudi.")
    parser.add_argument("out", type=Path, help="folder that gets a folder for the table")
    parser.add_argument("expected", type=Path, help="folder that gets a folder with what Hudi reads")
    parser.add_argument("--jars", type=Path, required=True, help="folder with the connector's jar")
    arguments = parser.parse_args()
    write(arguments.out, arguments.expected, arguments.jars)


if __name__ == "__main__":
    main()
