"""Scenarios of Delta tables: every kind of write, change data, row tracking, commit times, clustering, clones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.delta.connector import Scenario
from tests.support.delta.feature_scenarios import COLUMNS, FEED, VECTORS, age_log, create, insert, merge

if TYPE_CHECKING:
    from tests.support.delta.connector import Lake


def _source(statement: str) -> object:
    """Return a step about the table beside this one, from which it is cloned."""

    def step(lake: Lake) -> None:
        lake.spark.sql(statement.replace("{source}", f"delta.`{lake.path}_source`"))

    return step


def _plain_files(lake: Lake) -> None:
    """Write files as Spark does without Delta."""
    rows = lake.spark.sql(
        "SELECT id, 'n' || id AS name, CASE id % 3 WHEN 0 THEN 'a b/c%d' WHEN 1 THEN 'é=#?' END AS part FROM "
        "range(1, 10, 1, 1)"
    )
    rows.write.partitionBy("part").parquet(str(lake.path))


SCENARIOS = (
    Scenario(
        name="schema_changes",
        kept=True,
        steps=(
            create("id INT, s STRUCT<a: INT>, l ARRAY<STRUCT<b: INT>>"),
            "INSERT INTO {t} VALUES (1, named_struct('a', 1), array(named_struct('b', 1), NULL)), (2, NULL, NULL)",
            "ALTER TABLE {t} ADD COLUMNS (name STRING FIRST, s.c STRING, l.element.d DATE COMMENT 'a day')",
            (
                "INSERT INTO {t} VALUES ('x', 3, named_struct('a', 3, 'c', 'c'), array(named_struct('b', 3, 'd', "
                "DATE '2026-11-03')))"
            ),
            "ALTER TABLE {t} ALTER COLUMN name AFTER id",
            "ALTER TABLE {t} ALTER COLUMN s.c FIRST",
            "INSERT INTO {t} VALUES (4, 'y', named_struct('c', 'd', 'a', 4), array())",
            "REPLACE TABLE {t} (other STRING, id BIGINT) USING delta PARTITIONED BY (other)",
            "INSERT INTO {t} VALUES ('z', 5), (NULL, 6)",
            "RESTORE TABLE {t} TO VERSION AS OF 3",
        ),
    ),
    Scenario(
        name="overwrites",
        steps=(
            create(COLUMNS, FEED, more="PARTITIONED BY (part)"),
            insert(1, 9),
            "INSERT OVERWRITE {t} SELECT id, 'o', 1 FROM range(20, 23)",
            "INSERT INTO {t} REPLACE WHERE part = 1 SELECT 30, 'r', 1",
            insert(40, 45),
            "SET spark.sql.sources.partitionOverwriteMode = dynamic",
            "INSERT OVERWRITE {t} SELECT id, 'd', 2 FROM range(50, 52)",
            "INSERT INTO {t} REPLACE WHERE id > 43 SELECT 50, 'w', 0",
            "DELETE FROM {t} WHERE part = 0",
            "RESTORE TABLE {t} TO VERSION AS OF 4",
            "TRUNCATE TABLE {t}",
        ),
    ),
    Scenario(
        name="change_feed",
        kept=True,
        steps=(
            create(COLUMNS, more="PARTITIONED BY (part)"),
            insert(1, 6),
            f"ALTER TABLE {{t}} SET TBLPROPERTIES ({FEED})",
            insert(7, 12),
            "UPDATE {t} SET name = 'u' || id, part = 2 - part WHERE id % 4 = 0",
            "DELETE FROM {t} WHERE id % 5 = 0",
            merge(8, 15),
            "MERGE INTO {t} t USING (SELECT 99 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "OPTIMIZE {t}",
            "ALTER TABLE {t} ADD COLUMN extra STRING",
            insert(20, 21, "id, 'n', 0, 'extra'"),
            "RESTORE TABLE {t} TO VERSION AS OF 5",
            "DELETE FROM {t} WHERE part = 1",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
            "DELETE FROM {t} WHERE part = 0",
        ),
    ),
    Scenario(
        name="change_feed_vectors",
        steps=(
            create(COLUMNS, VECTORS, FEED),
            insert(1, 12, files=2),
            "DELETE FROM {t} WHERE id % 4 = 0",
            "UPDATE {t} SET name = 'u' || id WHERE id % 4 = 1",
            merge(2, 15),
            "DELETE FROM {t} WHERE id = 2",
            "REORG TABLE {t} APPLY (PURGE)",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
            "DELETE FROM {t}",
        ),
    ),
    Scenario(
        name="row_tracking",
        kept=True,
        steps=(
            create(COLUMNS, "'delta.enableRowTracking' = 'true'", VECTORS, more="PARTITIONED BY (part)"),
            insert(1, 6),
            insert(7, 12),
            "UPDATE {t} SET name = 'u' || id WHERE id % 4 = 0",
            "DELETE FROM {t} WHERE id IN (2, 5)",
            merge(9, 15),
            "OPTIMIZE {t}",
            "UPDATE {t} SET part = 7 WHERE id = 1",
        ),
    ),
    Scenario(
        name="row_tracking_later",
        steps=(
            create(COLUMNS, "'delta.columnMapping.mode' = 'id'"),
            insert(1, 6, files=2),
            "UPDATE {t} SET name = 'u' || id WHERE id > 4",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
            "UPDATE {t} SET name = 'v' || id WHERE id < 3",
            insert(7, 9),
            "OPTIMIZE {t}",
        ),
    ),
    Scenario(
        name="commit_times_later",
        kept=True,
        steps=(
            create(COLUMNS),
            insert(1, 3),
            insert(4, 6),
            age_log(3),
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
            insert(7, 9),
            "DELETE FROM {t} WHERE id = 5",
        ),
    ),
    Scenario(
        name="commit_times",
        steps=(
            create(COLUMNS, "'delta.enableInCommitTimestamps' = 'true'"),
            insert(1, 3),
            "UPDATE {t} SET name = 'u'",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false')",
            insert(4, 6),
        ),
    ),
    Scenario(
        name="clustered",
        kept=True,
        steps=(
            create(
                "id BIGINT, name STRING, s STRUCT<a: BIGINT>",
                VECTORS,
                "'delta.columnMapping.mode' = 'name'",
                more="CLUSTER BY (id, s.a)",
            ),
            insert(1, 20, "id, 'n' || id, named_struct('a', -id)", files=3),
            "OPTIMIZE {t}",
            "DELETE FROM {t} WHERE id = 7",
            "ALTER TABLE {t} RENAME COLUMN id TO number",
            "ALTER TABLE {t} CLUSTER BY (name)",
            insert(30, 33, "id, 'n' || id, NULL"),
            "OPTIMIZE {t} FULL",
            "ALTER TABLE {t} CLUSTER BY NONE",
        ),
    ),
    Scenario(
        name="filled_columns",  # generated, default, identity, with constraints
        kept=True,
        steps=(
            (
                "CREATE TABLE {t} (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY 5), at "
                "TIMESTAMP NOT NULL, "
                "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), kind STRING DEFAULT 'none', price DECIMAL(8, 2)) "
                "USING delta "
                "PARTITIONED BY (day) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', "
                "'delta.appendOnly' = 'false')"
            ),
            "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (price IS NULL OR price > 0)",
            (
                "INSERT INTO {t} (at, price) VALUES (TIMESTAMP '2026-11-01 23:59:59.999999', 1.5), (TIMESTAMP "
                "'2026-11-02 00:00:00', NULL)"
            ),
            "INSERT INTO {t} (id, at, kind) VALUES (1, TIMESTAMP '1969-12-31 23:59:59', NULL)",
            "ALTER TABLE {t} ALTER COLUMN kind SET DEFAULT 'some'",
            "INSERT INTO {t} (at) VALUES (TIMESTAMP '2026-11-03 12:00:00')",
            "UPDATE {t} SET at = at + INTERVAL 1 DAY WHERE kind = 'none'",
        ),
    ),
    Scenario(
        name="cloned",
        steps=(
            _source(
                "CREATE TABLE {source} (id BIGINT, name STRING, part BIGINT) USING delta PARTITIONED BY (part) "
                f"TBLPROPERTIES ({VECTORS})"
            ),
            _source("INSERT INTO {source} SELECT id, 'n %' || id, id % 2 FROM range(1, 9, 1, 1)"),
            _source("DELETE FROM {source} WHERE id = 4"),
            "CREATE TABLE {t} SHALLOW CLONE delta.`{p}_source`",
            "DELETE FROM {t} WHERE id IN (1, 2)",
            insert(20, 22),
            "OPTIMIZE {t}",
        ),
    ),
    Scenario(
        name="converted",  # files that a plain Spark wrote, under names that need escapes
        steps=(
            _plain_files,
            "CONVERT TO DELTA parquet.`{p}` PARTITIONED BY (part STRING)",
            "INSERT INTO {t} VALUES (10, 'new', 'a b/c%d'), (11, NULL, 'é=#?')",
            "UPDATE {t} SET name = 'u' WHERE id IN (1, 10)",
        ),
    ),
    Scenario(name="empty", kept=True, steps=(create(COLUMNS, "'delta.columnMapping.mode' = 'name'"),)),
)
