"""Write the test tables below `tests/data/paimon` with Apache Paimon itself, and the rows that Paimon reads from them.

    python -m tests.scripts.make_paimon RELEASE [--jars FILE] [--only NAME,...]

RELEASE is one of 0.9.0, 0.8.2 and 0.7.0-incubating, the releases whose connector for Spark 3.5 was at hand
(`org.apache.paimon:paimon-spark-3.5:RELEASE`). Needs PySpark 3.5.9 and Java 17; one release per run. A table is a
list of SQL statements and, where SQL has no word for it, of calls of Paimon's Java interface through the same Java
process. Each statement runs six hours of the writer's clock after the one before it.
"""

# ruff: noqa: E501, FBT003 - SQL is read best in one piece; Java knows no arguments by name

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.scripts import expect, make_samples
from tests.scripts.tables_of_types import types_table

DATA = Path(__file__).resolve().parents[1] / "data"
Step = str | Callable[[Any], object]

KEEP = "'snapshot.num-retained.min' = '1000'"


def _java_table(spark: Any, name: str) -> tuple[Any, Any]:
    """Return Paimon's catalog and the identifier of a table, as Java objects."""
    catalog = spark._jsparkSession.sessionState().catalogManager().catalog("p").paimonCatalog()
    return catalog, spark._jvm.org.apache.paimon.catalog.Identifier.create("d", name)


def retype(name: str, column: str, kind: str) -> Step:
    """Change a column's type in a way that Spark's own ALTER would refuse; `kind` is a call of Java's DataTypes."""

    def step(spark: Any) -> None:
        catalog, identifier = _java_table(spark, name)
        types = spark._jvm.org.apache.paimon.types.DataTypes
        word, _, numbers = kind.partition("(")
        new = getattr(types, word)(*(int(number) for number in numbers.rstrip(")").split(",") if number))
        change = spark._jvm.org.apache.paimon.schema.SchemaChange.updateColumnType(column, new)
        changes = spark._jvm.java.util.ArrayList()
        changes.add(change)
        catalog.alterTable(identifier, changes, False)

    return step


def consumer(name: str, consumer_id: str, snapshot: int) -> Step:
    """Write a consumer file that stands before `snapshot`."""

    def step(spark: Any) -> None:
        catalog, identifier = _java_table(spark, name)
        table = catalog.getTable(identifier)
        java = spark._jvm.org.apache.paimon.consumer
        java.ConsumerManager(table.fileIO(), table.location()).resetConsumer(consumer_id, java.Consumer(snapshot))

    return step


def _pk(name: str, options: str, columns: str = "k INT NOT NULL, v STRING, n BIGINT") -> str:
    return f"CREATE TABLE {name} ({columns}) TBLPROPERTIES ('primary-key' = 'k', {options})"


def _life(name: str, options: str) -> list[Step]:
    """Return a primary-key table's small life: insert, upsert, delete, full compaction."""
    return [
        _pk(name, f"'bucket' = '2', 'file.format' = 'parquet', 'write-only' = 'true', {KEEP}, {options}"),
        f"INSERT INTO {name} VALUES (1, 'a', 10), (2, 'b', NULL), (3, NULL, 30), (4, 'd', 40)",
        f"INSERT INTO {name} VALUES (2, 'B', 20), (5, 'e', 50)",
        f"DELETE FROM {name} WHERE k IN (1, 4)",
        f"CALL sys.compact(table => 'd.{name}')",
    ]


def _evolution(name: str, options: str, key: str = "") -> list[Step]:
    """Return a table whose every column changes: renamed, dropped and added again, moved, retyped."""
    columns = "k INT NOT NULL, a INT, b INT, c DOUBLE, m DECIMAL(10, 2), s STRING, gone STRING, f FLOAT, day DATE"
    properties = f"'primary-key' = '{key}', 'bucket' = '1'" if key else "'bucket' = '-1'"
    return [
        f"CREATE TABLE {name} ({columns}) TBLPROPERTIES ({properties}, 'write-only' = 'true', {options}, {KEEP})",
        (
            f"INSERT INTO {name} VALUES (1, 11, 12, 1.9, 1.25, 'x', 'old', 1.5, DATE '2026-01-01'), "
            "(2, NULL, -7, -1.9, -1.35, NULL, NULL, NULL, NULL), (3, 33, 2000000000, 1e12, 99999999.99, 'z', 'old', 0.1, "
            "DATE '1969-12-31')"
        ),
        f"ALTER TABLE {name} RENAME COLUMN s TO text",
        f"ALTER TABLE {name} DROP COLUMN gone",
        f"INSERT INTO {name} VALUES (4, 44, 4, 4.0, 4.44, 'four', 4.5, DATE '2026-04-04')",
        f"ALTER TABLE {name} ADD COLUMN gone STRING COMMENT 'the same name, another column'",
        f"ALTER TABLE {name} ADD COLUMN first_one INT FIRST",
        f"ALTER TABLE {name} ALTER COLUMN a TYPE BIGINT",
        (
            f"INSERT INTO {name} VALUES (50, 5, 5000000000, 5, 5.0, 5.55, 'five', 5.5, DATE '2026-05-05', 'new'), "
            "(20, 2, 22, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        ),
        f"ALTER TABLE {name} ALTER COLUMN c AFTER k",
        retype(name, "b", "STRING()"),
        retype(name, "c", "INT()"),
        retype(name, "m", "DECIMAL(12,1)"),
        retype(name, "f", "DOUBLE()"),
        retype(name, "day", "STRING()"),
        (
            f"INSERT INTO {name} VALUES (60, 6, 6, 66, 'six', 6.6, 'six', 6.25, 'a day', 'new'), "
            "(30, 3, NULL, 33, 'three', 3.3, NULL, 3.25, NULL, NULL)"
        ),
        f"ALTER TABLE {name} RENAME COLUMN text TO s",
        f"CALL sys.compact(table => 'd.{name}')",
    ]


_ODD = ("a b", "it's", 'say "hi"', "naïve_ünï", "x.y", "<script>alert(1)</script>", "100%", "_VALUE_KIND2", "from")


def _odd_names() -> list[Step]:
    columns = ", ".join(f"`{name}` STRING" for name in _ODD)
    values = ", ".join(f"'{number}'" for number in range(len(_ODD)))
    places = ("'a=b/c'", "''", "'  '", "NULL", "'ünï'", "'100%'", "'<b>&'", "'x:y?*[z]'", "'plain'")
    rows = ", ".join(
        f"({row}, {values}, {place}, DATE '2026-11-0{row + 1}', {row - 4})" for row, place in enumerate(places)
    )
    return [
        (
            f"CREATE TABLE odd_names (k INT, {columns}, `place` STRING, `d` DATE, `n` INT) PARTITIONED BY (`place`, `d`, `n`) "
            f"TBLPROPERTIES ('bucket' = '-1', 'file.format' = 'parquet', {KEEP})"
        ),
        f"INSERT INTO odd_names VALUES {rows}",
        (
            f"INSERT INTO odd_names VALUES (100, {values}, 'plain', NULL, NULL), (101, {values}, NULL, NULL, NULL), "
            f"(102, {values}, '', DATE '1950-01-01', -2147483648)"
        ),
    ]


def _levels() -> list[Step]:
    statements: list[Step] = [
        _pk(
            "many_levels",
            "'bucket' = '1', 'file.format' = 'parquet', 'sequence.field' = 'ts,seq', "
            f"'num-sorted-run.compaction-trigger' = '3', {KEEP}",
            "k INT NOT NULL, ts TIMESTAMP, seq INT, v STRING",
        )
    ]
    for turn in range(9):
        late = f"TIMESTAMP '2026-11-01 00:00:{30 - 3 * turn:02d}'"
        values = [
            f"({turn}, TIMESTAMP '2026-11-01 00:00:0{turn}', {turn}, 'own {turn}')",
            f"(100, {late}, {turn}, 'late {turn}')",  # ever older: the first one stays
            f"(101, TIMESTAMP '2026-11-01 00:00:00', 7, 'tie {turn}')",  # equal: the last written wins
            f"(102, NULL, {turn}, 'null first {turn}')",
            f"(103, TIMESTAMP '2026-11-01 00:00:00', {'NULL' if turn % 2 else 9 - turn}, 'null second {turn}')",
            f"({200 + turn % 3}, TIMESTAMP '2026-11-01 00:00:0{turn}', NULL, 'again {turn}')",
        ]
        statements.append("INSERT INTO many_levels VALUES " + ", ".join(values))
    statements.append("DELETE FROM many_levels WHERE k IN (0, 201)")
    return statements


def _inspected() -> list[Step]:
    """Return a table with something in every system table."""
    name = "inspected"
    columns = "day DATE NOT NULL, name STRING NOT NULL, at TIMESTAMP NOT NULL, v STRING COMMENT 'the value', n BIGINT"
    options = (
        "'primary-key' = 'day,name,at', 'bucket' = '1', 'file.format' = 'parquet', 'changelog-producer' = 'lookup'"
    )
    first, second = "DATE '2026-11-01'", "DATE '2026-11-02'"
    early, late = "TIMESTAMP '2026-11-01 00:00:00'", "TIMESTAMP '2026-11-01 01:02:03.450'"
    return [
        (
            f"CREATE TABLE {name} ({columns}) PARTITIONED BY (day) COMMENT 'much to inspect' "
            f"TBLPROPERTIES ({options}, {KEEP})"
        ),
        f"INSERT INTO {name} VALUES ({first}, 'a', {early}, 'one', 1), ({first}, 'b', {late}, NULL, 2)",
        f"INSERT INTO {name} VALUES ({first}, 'a', {early}, 'ONE', 10), ({second}, 'c', {late}, 'three', NULL)",
        f"DELETE FROM {name} WHERE name = 'b'",
        f"CALL sys.create_tag(table => 'd.{name}', tag => 'kept', snapshot => 2)",
        f"CALL sys.create_tag(table => 'd.{name}', tag => 'passing', snapshot => 4, time_retained => '36 h')",
        consumer(name, "reader", 3),
        f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS",
        f"INSERT INTO {name} VALUES ({second}, 'c', {late}, 'THREE', 3)",
    ]


_EXPIRING = (
    "'bucket' = '1', 'file.format' = 'parquet', 'changelog-producer' = 'input', 'snapshot.num-retained.min' = '2', "
    "'snapshot.num-retained.max' = '3', 'snapshot.time-retained' = '1 h', 'changelog.num-retained.min' = '4', "
    "'changelog.num-retained.max' = '20', 'changelog.time-retained' = '365 d', 'write-only' = 'false'"
)

TABLES_0_9: dict[str, list[Step]] = {
    "append_parquet": types_table("append_parquet", "parquet"),
    "append_orc": types_table("append_orc", "orc"),
    "append_avro": types_table("append_avro", "avro"),
    "manifests_null": _life("manifests_null", "'manifest.compression' = 'null'"),
    "manifests_deflate": _life("manifests_deflate", "'manifest.compression' = 'deflate'"),
    "manifests_snappy": _life("manifests_snappy", "'manifest.compression' = 'snappy'"),
    "manifests_orc": _life("manifests_orc", "'manifest.format' = 'orc'"),
    "manifests_parquet": _life("manifests_parquet", "'manifest.format' = 'parquet'"),
    "written_by_0_9": _life("written_by_0_9", "'num-levels' = '4'"),
    "expired": [
        _pk("expired", _EXPIRING),
        "INSERT INTO expired VALUES (1, 'a', 1), (2, 'b', 2)",
        "CALL sys.create_tag(table => 'd.expired', tag => 'kept', snapshot => 1)",
        *(f"INSERT INTO expired VALUES ({turn}, 'v{turn}', {turn}), (1, 'a{turn}', {turn})" for turn in range(3, 9)),
        "DELETE FROM expired WHERE k = 3",
        "CALL sys.expire_snapshots(table => 'd.expired', retain_max => 2)",
        consumer("expired", "reader", 8),
        "INSERT INTO expired VALUES (9, 'nine', 9)",
    ],
    "evolution_append": _evolution("evolution_append", "'file.format' = 'parquet'"),
    "evolution_append_orc": _evolution("evolution_append_orc", "'file.format' = 'orc'"),
    "evolution_append_avro": _evolution("evolution_append_avro", "'file.format' = 'avro'"),
    "evolution_pk": _evolution("evolution_pk", "'file.format' = 'parquet'", "k"),
    "odd_names": _odd_names(),
    "dv": [
        _pk("dv", f"'bucket' = '1', 'file.format' = 'parquet', 'deletion-vectors.enabled' = 'true', {KEEP}"),
        "INSERT INTO dv VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)",
        "INSERT INTO dv VALUES (2, 'B', 20), (5, 'e', 5)",
        "DELETE FROM dv WHERE k = 3",
    ],
    "dv_append": [
        (
            "CREATE TABLE dv_append (k INT, v STRING) TBLPROPERTIES ('bucket' = '-1', 'file.format' = 'parquet', "
            f"'deletion-vectors.enabled' = 'true', {KEEP})"
        ),
        "INSERT INTO dv_append VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
        "DELETE FROM dv_append WHERE k IN (1, 3)",
        "UPDATE dv_append SET v = 'D' WHERE k = 4",
        "INSERT INTO dv_append VALUES (5, 'e')",
    ],
    "partial_update": [
        _pk("partial_update", f"'bucket' = '1', 'file.format' = 'parquet', 'merge-engine' = 'partial-update', {KEEP}"),
        "INSERT INTO partial_update VALUES (1, 'a', NULL), (2, NULL, 2)",
        "INSERT INTO partial_update VALUES (1, NULL, 1), (2, 'b', NULL), (3, NULL, NULL)",
        "INSERT INTO partial_update VALUES (1, 'A', NULL)",
        "CALL sys.compact(table => 'd.partial_update')",
    ],
    "aggregation": [
        _pk(
            "aggregation",
            "'bucket' = '1', 'file.format' = 'parquet', 'merge-engine' = 'aggregation', "
            f"'fields.v.aggregate-function' = 'max', 'fields.n.aggregate-function' = 'sum', {KEEP}",
        ),
        "INSERT INTO aggregation VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT INTO aggregation VALUES (1, 'A', 10), (2, 'c', NULL)",
        "CALL sys.compact(table => 'd.aggregation')",
    ],
    "aggregates_numbers": [
        _pk(
            "aggregates_numbers",
            "'bucket' = '1', 'file.format' = 'parquet', 'merge-engine' = 'aggregation', 'write-only' = 'true', "
            "'fields.default-aggregate-function' = 'sum', 'fields.p.aggregate-function' = 'product', "
            "'fields.q.aggregate-function' = 'product', 'fields.day.aggregate-function' = 'max', "
            "'fields.at.aggregate-function' = 'min', 'fields.at.ignore-retract' = 'true', "
            f"'fields.day.ignore-retract' = 'true', {KEEP}",
            "k INT NOT NULL, b TINYINT, s SMALLINT, i INT, n BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38, 3), "
            "p DECIMAL(10, 2), q INT, day DATE, at TIMESTAMP",
        ),
        (
            "INSERT INTO aggregates_numbers VALUES (1, 100, 30000, 2000000000, 9000000000000000000, 16777216, 0.1, 1.125, "
            "1.15, -7, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00.5'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
            "NULL, NULL, NULL, NULL), (3, -128, 1, 1, 1, 1, 1, 1, 1, 1, NULL, NULL)"
        ),
        (
            "INSERT INTO aggregates_numbers VALUES (1, 27, 2767, 147483647, 223372036854775807, 1, 0.2, -2.25, 0.90, 3, "
            "DATE '2025-01-01', TIMESTAMP '2025-01-01 00:00:00'), (2, 1, 2, 3, 4, 5.5, 6.5, 7.5, 8.5, 9, DATE '1969-12-31', "
            "TIMESTAMP '1969-12-31 23:59:59'), (3, 127, -1, -1, -1, -1, -1, -1, -1, -1, NULL, NULL)"
        ),
        "INSERT INTO aggregates_numbers VALUES (1, -1, -1, -1, -1, 1, 1, 1, 1, 2, NULL, NULL)",
    ],
    "first_row": [
        _pk("first_row", f"'bucket' = '1', 'file.format' = 'parquet', 'merge-engine' = 'first-row', {KEEP}"),
        "INSERT INTO first_row VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT INTO first_row VALUES (1, 'A', 10), (3, 'c', 3)",
        "CALL sys.compact(table => 'd.first_row')",
    ],
    "empty": [_pk("empty", "'bucket' = '1', 'file.format' = 'parquet'")],
    "many_levels": _levels(),
    "ignore_delete": [
        _pk(
            "ignore_delete",
            f"'bucket' = '1', 'file.format' = 'parquet', 'write-only' = 'true', 'ignore-delete' = 'true', {KEEP}",
        ),
        "INSERT INTO ignore_delete VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        "DELETE FROM ignore_delete WHERE k IN (1, 2)",
        "INSERT INTO ignore_delete VALUES (2, 'B', 20)",
        "CALL sys.compact(table => 'd.ignore_delete')",
    ],
    "append_bucketed": [
        (
            "CREATE TABLE append_bucketed (k INT, v STRING) TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'k', "
            f"'file.format' = 'parquet', {KEEP})"
        ),
        "INSERT INTO append_bucketed VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO append_bucketed VALUES (1, 'a'), (4, NULL)",
    ],
    "inspected": _inspected(),
    "changelog_full": [
        _pk(
            "changelog_full",
            f"'bucket' = '1', 'file.format' = 'parquet', 'changelog-producer' = 'full-compaction', {KEEP}",
        ),
        "INSERT INTO changelog_full VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT INTO changelog_full VALUES (1, 'A', 10), (2, 'b', 2), (3, 'c', 3)",
        "CALL sys.compact(table => 'd.changelog_full')",
        "INSERT INTO changelog_full VALUES (2, 'B', 20)",
        "DELETE FROM changelog_full WHERE k = 1",
        "CALL sys.compact(table => 'd.changelog_full')",
        "ALTER TABLE changelog_full RENAME COLUMN v TO word",
        "INSERT OVERWRITE changelog_full VALUES (9, 'only', 9)",
    ],
    "dynamic_bucket": [
        (
            "CREATE TABLE dynamic_bucket (day STRING NOT NULL, k INT NOT NULL, v STRING) PARTITIONED BY (day) TBLPROPERTIES "
            f"('primary-key' = 'day,k', 'bucket' = '-1', 'dynamic-bucket.target-row-num' = '2', {KEEP})"
        ),
        "INSERT INTO dynamic_bucket VALUES ('a', 1, 'x'), ('a', 2, 'y'), ('a', 3, 'z'), ('b', 1, 'w')",
        "INSERT INTO dynamic_bucket VALUES ('a', 3, 'Z'), ('b', 2, 'v')",
        "DELETE FROM dynamic_bucket WHERE k = 1",
    ],
}

TABLES: dict[str, dict[str, list[Step]]] = {
    "0.9.0": TABLES_0_9,
    "0.8.2": {"written_by_0_8": _life("written_by_0_8", "'num-levels' = '4'")},
    "0.7.0-incubating": {"written_by_0_7": _life("written_by_0_7", "'num-levels' = '4'")},
}


def write(spark: Any, clock: make_samples.Clock, names: dict[str, list[Step]]) -> list[str]:
    """Run the statements of each table; return the names of those that went through."""
    done = []
    for name, steps in names.items():
        moment = datetime(2026, 11, 1, 6)  # noqa: DTZ001 - the clock takes UTC without a zone
        for number, step in enumerate(steps):
            clock.set((moment + timedelta(hours=6 * number)).isoformat())
            try:
                spark.sql(step) if isinstance(step, str) else step(spark)
            except Exception:  # noqa: BLE001 - one table that a release refuses must not stop the others
                break
        else:
            done.append(name)
    return done


def main() -> None:
    """Read the command line, write the tables and have them read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("release", choices=sorted(TABLES))
    parser.add_argument("--jars")
    parser.add_argument("--only", help="names, separated by commas")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else list(TABLES[arguments.release])
    source = f"Apache Paimon {arguments.release} (Spark connector, PySpark 3.5.9)"
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        clock = make_samples.Clock(folder)
        package = f"org.apache.paimon:paimon-spark-3.5:{arguments.release}"
        spark = make_samples.session(folder / "warehouse", jars=arguments.jars, clock=clock, package=package)
        done = write(spark, clock, {name: TABLES[arguments.release][name] for name in wanted})
        for name in done:
            shutil.rmtree(DATA / "paimon" / name, ignore_errors=True)
            make_samples.clean_copy(folder / "warehouse" / "d.db" / name, DATA / "paimon" / name)
            spark.sql(f"DROP TABLE {name}")
        tables = [DATA / "paimon" / name for name in done]
        expect.expect(spark, folder / "warehouse", tables, DATA / "expected" / "paimon", source)
        spark.stop()


if __name__ == "__main__":
    main()
