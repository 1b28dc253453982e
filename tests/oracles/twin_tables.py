"""Have the connectors of Delta and Iceberg make tables over the data files of others: converted, migrated, cloned.

    python -m tests.oracles.twin_tables OUT

Writes `OUT/twins.json`: for each pair what made it, and the format and folder of both tables, whose rows are equal.
`repair_tables.py` writes the same in its session for Iceberg.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from tests.support.oracles import lakes

_COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), at TIMESTAMP, part INT"
_ROWS = (
    "SELECT id, IF(id % 4 = 0, NULL, 'n' || id) AS name, CAST(id AS DECIMAL(10, 2)) / 4 AS amount, "
    "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS at, CAST(id % 3 AS INT) AS part "
    "FROM range({}, {})"
)


def main() -> None:
    """Write the tables."""
    folder = Path(sys.argv[1]).absolute()
    logging.getLogger("py4j").setLevel(logging.WARNING)
    spark = lakes.session("iceberg", folder)
    write_all(spark, folder)
    spark.stop()


def write_all(spark: Any, out: Path) -> None:
    """Write the pairs, and what they are."""
    pairs = []
    for name, partitions in (("plain", ""), ("parted", "PARTITIONED BY (part)")):
        delta, path = _delta(spark, out, name, partitions)
        spark.sql(f"CREATE TABLE lake.db.from_delta_{name} ({_COLUMNS}) USING iceberg {partitions}")
        spark.sql(f"CALL lake.system.add_files(table => 'db.from_delta_{name}', source_table => '`parquet`.`{path}`')")
        migrated = {"format": "iceberg", "path": str(out / "db" / f"from_delta_{name}")}
        pairs.append({"made": f"add_files {name}", "a": {"format": "delta", "path": str(path)}, "b": migrated})
        clone = out / f"clone_{name}"
        spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {delta}")
        pairs.append(
            {
                "made": f"clone {name}",
                "a": {"format": "delta", "path": str(path)},
                "b": {"format": "delta", "path": str(clone)},
            }
        )
    spark.sql(f"CREATE TABLE lake.db.converted ({_COLUMNS}) USING iceberg")
    for first in (0, 10):
        spark.sql(f"INSERT INTO lake.db.converted {_ROWS.format(first, first + 10)}")
    data = out / "db" / "converted" / "data"
    spark.sql(f"CONVERT TO DELTA parquet.`{data}`")
    sides = {"format": "iceberg", "path": str(data.parent)}, {"format": "delta", "path": str(data)}
    pairs.append({"made": "convert", "a": sides[0], "b": sides[1]})
    pairs.append(_snapshotted(spark, out))
    restored, path = _delta(spark, out, "restored", "")
    spark.sql(f"DELETE FROM {restored} WHERE id > 3")
    spark.sql(f"RESTORE TABLE {restored} TO VERSION AS OF 2")
    side = {"format": "delta", "path": str(path)}
    pairs.append({"made": "restore", "a": side | {"version": 2}, "b": side})
    (out / "twins.json").write_text(json.dumps(pairs, indent=1))


def _snapshotted(spark: Any, out: Path) -> dict[str, Any]:
    """Make tables of both formats over a folder of Parquet files: by `snapshot`, and by CONVERT TO DELTA."""
    folder = out / "parquet"
    spark.sql(_ROWS.format(0, 20)).write.partitionBy("part").parquet(str(folder))
    source = "spark_catalog.default.parquet_source"
    spark.sql(f"CREATE TABLE {source} USING parquet LOCATION '{folder}'")
    spark.sql(f"MSCK REPAIR TABLE {source}")
    spark.sql(f"CALL lake.system.snapshot(source_table => '{source}', table => 'lake.db.snapshotted')")
    spark.sql(f"CONVERT TO DELTA parquet.`{folder}` PARTITIONED BY (part INT)")
    iceberg = {"format": "iceberg", "path": str(out / "db" / "snapshotted")}
    return {"made": "snapshot", "a": iceberg, "b": {"format": "delta", "path": str(folder)}}


def _delta(spark: Any, out: Path, name: str, partitions: str) -> tuple[str, Path]:
    path = out / f"delta_{name}"
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} ({_COLUMNS}) USING delta {partitions}")
    for first in (0, 10):
        spark.sql(f"INSERT INTO {table} {_ROWS.format(first, first + 10)}")
    return table, path


if __name__ == "__main__":
    main()
