"""Write the sample table `shipments` with Apache Iceberg itself.

    python -m tests.scripts.make_shipments OUT EXPECTED --jars FOLDER

Writer: Apache Iceberg 1.12.0, `org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0` in FOLDER, on PySpark 4.1.4
and Java 17, all in UTC. `.ci/oracles` makes such an environment. What Iceberg reads at each version is written to
EXPECTED, in the form of `tests/data/README.md`.

The rows, the versions and what each did are the same on every run; snapshot ids and names of files are random. The
clock of the Java process is shifted, as for the other samples. Hadoop's view file system shows a temporary folder as
`s3a://lake`, so the table records paths of a bucket: the sample is a table that was moved.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.scripts.make_samples import Clock
from tests.support.canonical import canonical_rows
from tests.support.oracles import sessions

WRITER = "Apache Iceberg 1.12.0 (Spark connector, PySpark 4.1.4)"

_SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": "s3a://lake",
    "spark.hadoop.fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
}

_CARRIERS = ("Falke", "Nordpost", "Kolibri", "Tortuga")


def session(lake: Path, jars: Path, clock: Clock) -> Any:
    """Return a local Spark session with the catalog `lake`, a bucket that is a folder. One per process."""
    settings = _SETTINGS | {"spark.hadoop.fs.viewfs.mounttable.lake.link./shop": lake.as_uri()}
    return sessions.session(sorted(jars.glob("*.jar")), settings, master="local[1]", variables=clock.environment())


def _shipments(first: int, last: int, day: str, *, country: bool = True) -> str:
    """Return the INSERT of new shipments of a day; every eleventh was not weighed, and every fifteenth is a test."""
    rows = []
    for shipment in range(first, last + 1):
        carrier = "Test" if shipment % 15 == 0 else _CARRIERS[shipment * 3 % 4]
        weight = "NULL" if shipment % 11 == 0 else f"{shipment * 7919 % 2400 / 100 + 0.2:.2f}"
        moment = f"{day} {8 + shipment % 12:02d}:{shipment * 7 % 60:02d}:00"
        more = f", '{('DE', 'FR', 'JP')[shipment * 5 % 3]}'" if country else ""
        rows.append(f"({shipment}, '{carrier}', {weight}, 'shipped', TIMESTAMP '{moment}'{more})")
    return "INSERT INTO {t} VALUES " + ", ".join(rows)


# The carriers' scales say how much the shipments of a day really weigh; the bad job joins on the carrier, in grams.
_WEIGHED = "SELECT * FROM VALUES (52, 'Falke', 3150), (55, 'Kolibri', 870), (61, 'Nordpost', 12400) AS v(id, by, grams)"

_SHIPMENTS = (
    (
        "2026-11-02T06:00:00",
        (
            "CREATE TABLE {t} (shipment_id BIGINT NOT NULL, carrier STRING, weight DECIMAL(8, 2) COMMENT "
            "'in kilograms', status STRING, shipped_at TIMESTAMP) USING iceberg "
            "COMMENT 'Shipments of a small shop' TBLPROPERTIES ("
            "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
            "'write.merge.mode' = 'merge-on-read', 'write.metadata.compression-codec' = 'gzip', "
            "'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '4', "
            "'write.spark.accept-any-schema' = 'false', 'write.distribution-mode' = 'none', "
            "'history.expire.max-snapshot-age-ms' = '864000000')"
        ),
    ),
    ("2026-11-02T21:00:00", _shipments(1, 16, "2026-11-02", country=False)),
    ("2026-11-03T21:00:00", _shipments(17, 32, "2026-11-03", country=False)),
    ("2026-11-04T07:00:00", "UPDATE {t} SET status = 'delivered' WHERE shipped_at < TIMESTAMP '2026-11-03 00:00:00'"),
    ("2026-11-04T09:30:00", "DELETE FROM {t} WHERE carrier = 'Test'"),
    ("2026-11-04T12:00:00", "ALTER TABLE {t} ADD COLUMN country STRING COMMENT 'where it goes'"),
    ("2026-11-04T21:00:00", _shipments(33, 48, "2026-11-04")),
    ("2026-11-05T08:00:00", "ALTER TABLE {t} CREATE TAG `first-days`"),
    ("2026-11-05T09:00:00", "ALTER TABLE {t} ADD PARTITION FIELD days(shipped_at)"),
    ("2026-11-05T21:00:00", _shipments(49, 64, "2026-11-05")),
    ("2026-11-06T09:00:00", "ALTER TABLE {t} CREATE BRANCH reweigh"),
    (
        "2026-11-06T09:05:00",
        (
            f"MERGE INTO {{t}}.branch_reweigh t USING ({_WEIGHED}) s ON t.shipment_id = s.id "
            "WHEN MATCHED THEN UPDATE SET weight = s.grams / 1000"
        ),
    ),
    ("2026-11-06T21:00:00", _shipments(65, 80, "2026-11-06")),
    (
        "2026-11-07T03:00:00",
        (
            f"MERGE INTO {{t}} t USING ({_WEIGHED}) s ON t.carrier = s.by AND t.shipped_at >= "
            "TIMESTAMP '2026-11-05 00:00:00' WHEN MATCHED THEN UPDATE SET weight = s.grams"
        ),
    ),
    ("2026-11-07T21:00:00", _shipments(81, 96, "2026-11-07")),
    ("2026-11-08T09:00:00", "CALL lake.system.rollback_to_snapshot('shop.shipments', {8})"),
    ("2026-11-08T09:20:00", _shipments(81, 96, "2026-11-07")),
    ("2026-11-08T14:00:00", "ALTER TABLE {t} RENAME COLUMN weight TO weight_kg"),
    ("2026-11-08T14:05:00", "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')"),
    ("2026-11-08T21:00:00", _shipments(97, 112, "2026-11-08")),
    ("2026-11-09T10:00:00", "DELETE FROM {t} WHERE shipment_id IN (66, 70, 84, 101)"),
    ("2026-11-10T02:00:00", "CALL lake.system.rewrite_data_files('shop.shipments')"),
    ("2026-11-10T21:00:00", _shipments(113, 124, "2026-11-10")),
    ("2026-11-11T07:00:00", "UPDATE {t} SET status = 'lost' WHERE shipment_id IN (70, 98, 115)"),
    (
        "2026-11-12T02:00:00",
        "CALL lake.system.expire_snapshots('shop.shipments', TIMESTAMP '2026-11-03 12:00:00', 1)",
    ),
)


def newest_metadata(table: Path) -> dict[str, Any]:
    """Return the content of the newest metadata file of a table that has a hint."""
    number = (table / "metadata" / "version-hint.text").read_text().strip()
    return json.loads(gzip.decompress((table / "metadata" / f"v{number}.gz.metadata.json").read_bytes()))


def snapshot_of(table: Path, version: int) -> str:
    """Return the id of the snapshot of a sequence number."""
    snapshots = newest_metadata(table)["snapshots"]
    return str(next(one["snapshot-id"] for one in snapshots if one["sequence-number"] == version))


def write(out: Path, expected: Path, jars: Path) -> None:
    """Write the table `shipments` below `out`, each statement at its own time, and what Iceberg reads of it."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(Path(folder))
        clock.set("2026-11-01T00:00:00")
        lake = Path(folder) / "shop"
        lake.mkdir()
        spark = session(lake, jars, clock)
        table = lake / "shipments"
        for moment, statement in _SHIPMENTS:
            clock.set(moment)
            print(moment, statement[:90])
            named = statement.replace("{t}", "lake.shop.shipments")
            spark.sql(named.replace("{8}", snapshot_of(table, 8)) if "{8}" in named else named)
        write_expected(spark, newest_metadata(table), expected / "shipments")
        spark.stop()
        shutil.copytree(table, out / "shipments", ignore=shutil.ignore_patterns(".*"))


def write_expected(spark: Any, metadata: dict[str, Any], folder: Path) -> None:
    """Write what Iceberg reads at every snapshot: of main by its version, of others by branch or snapshot id."""
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    heads = {name: ref["snapshot-id"] for name, ref in metadata["refs"].items() if ref["type"] == "branch"}
    main, found = set(), heads["main"]
    while found in snapshots:
        main.add(found)
        found = snapshots[found].get("parent-snapshot-id")
    names = {snapshot: name for name, snapshot in heads.items() if snapshot not in main}
    folder.mkdir(parents=True, exist_ok=True)
    for snapshot, about in snapshots.items():
        version = about["sequence-number"]
        name = str(version) if snapshot in main else f"branch-{names.get(snapshot, snapshot)}-{version}"
        _write_rows(spark, str(snapshot), {"version": version}, folder / f"{name}.json")
    for tag, ref in metadata["refs"].items():
        if ref["type"] == "tag":
            version = snapshots[ref["snapshot-id"]]["sequence-number"]
            _write_rows(spark, f"'{tag}'", {"version": version, "tag": tag}, folder / f"tag-{tag}.json")


def _write_rows(spark: Any, ref: str, about: dict[str, Any], file: Path) -> None:
    frame = spark.sql(f"SELECT * FROM lake.shop.shipments VERSION AS OF {ref}")
    rows = pa.Table.from_batches(frame._collect_as_arrow())
    content = {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows), "source": WRITER}
    file.write_text(json.dumps(about | content, ensure_ascii=False) + "\n")


def main() -> None:
    """Read the command line and write the sample."""
    parser = argparse.ArgumentParser(description="Write the sample table of Apache Iceberg.")
    parser.add_argument("out", type=Path, help="folder that gets a folder for the table")
    parser.add_argument("expected", type=Path, help="folder that gets a folder with what Iceberg reads")
    parser.add_argument("--jars", type=Path, required=True, help="folder with the connector's jar")
    arguments = parser.parse_args()
    write(arguments.out, arguments.expected, arguments.jars)


if __name__ == "__main__":
    main()
