"""Have Hudi's connector for Spark write tables that record the changes of rows, and ask it for these changes.

    python -m tests.scripts.make_hudi_changes OUT JAR

Runs in the environment of .ci/oracles for Spark 3.5; JAR is a folder of its jars. Leaves `tables/NAME/`, without
Hadoop's .crc files, and `changes/NAME.json`: what Hudi's change query returns of the whole history, as
`{"VERSION": [[operation, row before, row after], ...]}`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.support.hudi import histories

TABLES = {
    "logged_cow_6_keys": ("hudi-0.15", 6, "op_key_only"),
    "logged_cow_9_before": ("hudi-1.2", 9, "data_before"),
    "logged_mor_9_rows": ("hudi-1.2", 9, "data_before_after"),
}
"""The folder of the writer's jar, the table version and the logging mode."""
_ROWS = (
    "SELECT id, concat('{name}', id) AS name, id / 4D AS price, {ordering}L AS ordering, "
    "array('x', 'y')[id % 2] AS part"
)
_STATEMENTS = (
    "INSERT INTO {t} " + _ROWS.format(name="a", ordering=1) + " FROM range(0, 12)",
    "INSERT INTO {t} " + _ROWS.format(name="b", ordering=2) + " FROM range(9, 15)",
    "UPDATE {t} SET name = 'c', ordering = 3 WHERE id < 3",
    "UPDATE {t} SET name = name, ordering = ordering WHERE id < 3",
    "DELETE FROM {t} WHERE id % 5 = 0",
    "MERGE INTO {t} t USING ("
    + _ROWS.format(name="m", ordering=4)
    + " FROM range(10, 20)) s ON t.id = s.id WHEN MATCHED "
    "AND s.id = 11 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "ALTER TABLE {t} ADD COLUMNS (extra STRING)",
    "UPDATE {t} SET extra = 'e', ordering = 5 WHERE id IN (1, 2, 16)",
    "INSERT OVERWRITE {t} PARTITION (part = 'y') SELECT id, 'o', 1D, 6L, 'e' FROM range(1, 30, 8)",
    "ALTER TABLE {t} DROP IF EXISTS PARTITION (part = 'x')",
    "INSERT INTO {t} SELECT id, 'n', 2D, 7L, NULL, 'x' FROM range(0, 4, 2)",
)
"""What is done to each table."""


def main() -> None:
    """Write the tables of the writer that the command line names."""
    out, jar = Path(sys.argv[1]).absolute(), sys.argv[2]
    jars = sorted(Path(sys.executable).parents[2].joinpath("jars", jar).glob("*.jar"))
    spark = histories.session(jars, out / "warehouse")
    for key, value in histories.OPTIONS.items():
        spark.sql(f"SET {key}={value}")
    spark.sql("SET hoodie.metadata.enable=false")
    (out / "changes").mkdir()
    for name, (writer, version, mode) in TABLES.items():
        if writer == jar:
            path = out / "tables" / name
            _write(spark, path, version, mode)
            (out / "changes" / f"{name}.json").write_text(json.dumps(_changes(spark, path)) + "\n")
            _tidy(path)
    spark.stop()


def _tidy(path: Path) -> None:
    for folder in (".aux", ".temp", ".heartbeat", ".locks"):
        shutil.rmtree(path / ".hoodie" / folder, ignore_errors=True)
    for file in path.rglob(".*.crc"):
        file.unlink()


def _write(spark: Any, path: Path, version: int, mode: str) -> None:
    is_merged = "_mor_" in path.name
    more = "" if version < 8 else f", 'hoodie.write.table.version' = '{version}'"
    if more:
        spark.sql(f"SET hoodie.write.table.version={version}")
        spark.sql("SET hoodie.write.auto.upgrade=false")
    spark.sql("SET hoodie.spark.sql.insert.into.operation=upsert")
    spark.sql(
        f"CREATE TABLE {path.name} (id BIGINT, name STRING, price DOUBLE, ordering BIGINT, part STRING) USING hudi "
        f"PARTITIONED BY (part) LOCATION '{path.as_uri()}' TBLPROPERTIES (type = '{'mor' if is_merged else 'cow'}', "
        "primaryKey = 'id', preCombineField = 'ordering', 'hoodie.table.timeline.timezone' = 'UTC', "
        f"'hoodie.table.cdc.enabled' = 'true', 'hoodie.table.cdc.supplemental.logging.mode' = '{mode}'{more})"
    )
    for statement in _STATEMENTS:
        spark.sql(statement.replace("{t}", path.name)).collect()
    if is_merged:
        for operation in ("schedule", "run"):
            spark.sql(f"CALL run_compaction(table => '{path.name}', op => '{operation}')").collect()
    spark.sql(f"CALL run_clustering(table => '{path.name}')").collect()


def _changes(spark: Any, path: Path) -> dict[str, list[list[Any]]]:
    reader = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    reader = reader.option("hoodie.datasource.query.incremental.format", "cdc")
    rows = reader.option("hoodie.datasource.read.begin.instanttime", "000").load(path.as_uri()).collect()
    changes: dict[str, list[list[Any]]] = {}
    for row in rows:
        images = [_image(json.loads(row[image] or "null")) for image in ("before", "after")]
        changes.setdefault(row["ts_ms"], []).append([row["op"], *images])
    return changes


def _image(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}


if __name__ == "__main__":
    main()
