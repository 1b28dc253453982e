"""Scenarios of Delta tables: deletion vectors, mapped columns, checkpoints of every kind, change data, restores."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from tests.support.delta.connector import Scenario

if TYPE_CHECKING:
    from tests.support.delta.connector import Lake

VECTORS = "'delta.enableDeletionVectors' = 'true'"
FEED = "'delta.enableChangeDataFeed' = 'true'"
_NO_VECTORS = "'delta.enableDeletionVectors' = 'false'"
_NO_STRUCTS = "'delta.checkpoint.writeStatsAsStruct' = 'false'"


def create(columns: str, *properties: str, more: str = "") -> str:
    """Return CREATE TABLE with properties and more clauses.

    Without a word about them no deletion vectors, and no statistics as columns of checkpoints, which are long.
    """
    asked = " ".join(properties)
    plain = (("enableDeletionVectors", _NO_VECTORS), ("writeStatsAsStruct", _NO_STRUCTS))
    listed = ", ".join((*properties, *(text for name, text in plain if name not in asked)))
    return f"CREATE TABLE {{t}} ({columns}) USING delta {more} TBLPROPERTIES ({listed})"


def insert(first: int, last: int, expressions: str = "id, 'n' || id, id % 3", files: int = 1) -> str:
    """Return an INSERT of rows with ids `first` to `last`, in so many files."""
    return f"INSERT INTO {{t}} SELECT {expressions} FROM range({first}, {last + 1}, 1, {files})"


def merge(first: int, last: int, columns: str = "id, name, part", values: str = "s.id, 'new' || s.id, s.id % 3") -> str:
    """Return a MERGE of ids `first` to `last`: every fourth is deleted, the others updated or inserted."""
    return (
        f"MERGE INTO {{t}} t USING (SELECT id FROM range({first}, {last + 1}, 1, 1)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id % 4 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged' || s.id "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


COLUMNS = "id BIGINT, name STRING, part BIGINT"

_VECTORED = (
    Scenario(
        name="dv_partitioned",
        kept=True,
        steps=(
            create(COLUMNS, VECTORS, more="PARTITIONED BY (part)"),
            insert(1, 30),
            "DELETE FROM {t} WHERE id % 5 = 0",
            "DELETE FROM {t} WHERE id IN (1, 2, 3)",
            "UPDATE {t} SET name = upper(name) WHERE id % 4 = 1",
            "DELETE FROM {t} WHERE part = 2",
            merge(24, 36),
            "OPTIMIZE {t} WHERE part = 0",
            "REORG TABLE {t} APPLY (PURGE)",
            "DELETE FROM {t} WHERE id > 30",
            "DELETE FROM {t}",
            insert(40, 42),
        ),
    ),
    Scenario(
        name="dv_containers",  # 20,000 positions: an array, runs and a bitmap, as roaring bitmaps have them
        steps=(
            create("id BIGINT", VECTORS),
            insert(0, 19_999, "id"),
            "DELETE FROM {t} WHERE id < 6000",
            "DELETE FROM {t} WHERE id % 2 = 0 OR id > 19000",
            "DELETE FROM {t} WHERE id % 1000 > 30",
        ),
    ),
    Scenario(
        name="dv_files",  # several files with vectors in one file of vectors; then a checkpoint and more
        steps=(
            create(COLUMNS, VECTORS, "'delta.checkpointInterval' = '4'", "'delta.randomizeFilePrefixes' = 'true'"),
            insert(1, 40, files=4),
            "DELETE FROM {t} WHERE id % 10 = 3",
            "DELETE FROM {t} WHERE id % 10 = 4",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
            "DELETE FROM {t} WHERE id % 10 = 5",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
        ),
    ),
)

_NESTED = (
    "id BIGINT, name STRING, part BIGINT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT, y: INT>>, "
    "m MAP<STRING, STRUCT<k: INT>>"
)
_NESTED_ROWS = (
    "id, 'n' || id, id % 2, named_struct('a', CAST(id AS INT), 'b', 'b' || id), "
    "array(named_struct('x', CAST(id AS INT), 'y', 1)), map('k' || id, named_struct('k', CAST(id AS INT)))"
)


def _mapped(mode: str) -> tuple[str, ...]:
    """Return a life with columns renamed, dropped, added, and added again, at the top and inside."""
    return (
        create(_NESTED, f"'delta.columnMapping.mode' = '{mode}'", more="PARTITIONED BY (part)"),
        insert(1, 6, _NESTED_ROWS),
        "ALTER TABLE {t} RENAME COLUMN name TO title",
        "ALTER TABLE {t} RENAME COLUMN s.b TO c",
        "ALTER TABLE {t} RENAME COLUMN part TO half",
        insert(7, 9, _NESTED_ROWS),
        "ALTER TABLE {t} DROP COLUMNS (title, l.element.x)",
        "ALTER TABLE {t} ADD COLUMNS (title INT FIRST, s.d DATE, m.value.v STRING, l.element.x STRING)",
        (
            "INSERT INTO {t} (id, title, half, s) SELECT id, CAST(-id AS INT), 1, named_struct('a', 1, 'c', 'c', "
            "'d', DATE '2026-11-01') FROM range(10, 12)"
        ),
        "DELETE FROM {t} WHERE id = 2 OR title = -10",
        "OPTIMIZE {t}",
    )


_MAPPED = (
    Scenario(name="mapping_name", kept=True, steps=_mapped("name")),
    Scenario(name="mapping_id", kept=True, steps=_mapped("id")),
    Scenario(
        name="mapping_later",  # the old files keep the names they have; then the mapping is removed
        kept=True,
        steps=(
            create(COLUMNS),
            insert(1, 5),
            (
                "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = "
                "'2', 'delta.minWriterVersion' = '5')"
            ),
            "ALTER TABLE {t} RENAME COLUMN name TO `a name, with (odd) = characters;`",
            insert(6, 9),
            "ALTER TABLE {t} DROP COLUMN part",
            "ALTER TABLE {t} ADD COLUMN part STRING",
            "INSERT INTO {t} VALUES (10, 'x', 'part')",
            "ALTER TABLE {t} RENAME COLUMN `a name, with (odd) = characters;` TO name",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
            "INSERT INTO {t} VALUES (11, 'y', 'part')",
        ),
    ),
    Scenario(
        name="mapping_vectors_feed",
        checkpoints=True,
        kept=True,
        steps=(
            create(
                COLUMNS,
                VECTORS,
                FEED,
                "'delta.columnMapping.mode' = 'name'",
                "'delta.checkpointInterval' = '5'",
                more="PARTITIONED BY (part)",
            ),
            insert(1, 12),
            "DELETE FROM {t} WHERE id % 5 = 1",
            "UPDATE {t} SET name = 'u' || id WHERE id % 5 = 2",
            "ALTER TABLE {t} RENAME COLUMN part TO third",
            "ALTER TABLE {t} RENAME COLUMN name TO title",
            insert(13, 15),
            "UPDATE {t} SET title = 'v' || id WHERE third = 0",
            "DELETE FROM {t} WHERE id > 13",
            "RESTORE TABLE {t} TO VERSION AS OF 7",
        ),
    ),
    Scenario(
        name="iceberg_compatible",  # partition columns lie inside the files as well
        steps=(
            create(
                COLUMNS + ", l ARRAY<INT>",
                "'delta.enableIcebergCompatV2' = 'true'",
                "'delta.columnMapping.mode' = 'name'",
                more="PARTITIONED BY (part)",
            ),
            insert(1, 6, "id, 'n' || id, id % 2, array(1, 2)"),
            "DELETE FROM {t} WHERE id = 3",
        ),
    ),
)

_MANY = tuple(insert(10 * n + 1, 10 * n + 8, "id, 'n' || id, id % 2") for n in range(5))


def _checkpointed(*properties: str, vectors: bool = True) -> tuple[str, ...]:
    """Return a life with a checkpoint at version 5 of 8."""
    kind = VECTORS if vectors else _NO_VECTORS
    return (
        create(COLUMNS, kind, "'delta.checkpointInterval' = '5'", *properties, more="PARTITIONED BY (part)"),
        *_MANY[:3],
        "DELETE FROM {t} WHERE id % 10 = 2",
        *_MANY[3:],
        "UPDATE {t} SET name = NULL WHERE part = 1",
        "DELETE FROM {t} WHERE part = 0",
    )


_V2 = "'delta.checkpointPolicy' = 'v2'"
_TOP = "SET spark.databricks.delta.checkpointV2.topLevelFileFormat = "
_PARTS = "SET spark.databricks.delta.checkpoint.partSize = 6"

_CHECKPOINTS = (
    Scenario(
        name="checkpoint_v2_parquet",
        checkpoints=True,
        kept=True,
        checksums=True,
        steps=(_TOP + "parquet", _PARTS, *_checkpointed(_V2)),
    ),
    Scenario(
        name="checkpoint_v2_json",
        checkpoints=True,
        kept=True,
        steps=(_TOP + "json", *_checkpointed(_V2, "'delta.columnMapping.mode' = 'id'")),
    ),
    Scenario(name="checkpoint_parts", checkpoints=True, kept=True, steps=(_PARTS, *_checkpointed(vectors=False))),
    Scenario(
        name="checkpoint_structs",
        checkpoints=True,  # statistics as columns only
        kept=True,
        steps=_checkpointed(
            "'delta.checkpoint.writeStatsAsJson' = 'false'", "'delta.checkpoint.writeStatsAsStruct' = 'true'"
        ),
    ),
    Scenario(
        name="checkpoint_policies",  # from classic to V2 and back again, by the feature's removal
        steps=(
            *_checkpointed(),
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')",
            *_MANY[:3],
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'classic')",
            *_MANY[3:],
        ),
    ),
)


def _compact(first: int, last: int) -> object:
    """Return a step in which Delta's kernel writes the compaction of some commits."""

    def step(lake: Lake) -> None:
        java = lake.spark._jvm
        engine = java.io.delta.kernel.defaults.engine.DefaultEngine.create(lake.spark._jsc.hadoopConfiguration())
        path = java.io.delta.kernel.internal.fs.Path
        hook = java.io.delta.kernel.internal.hook.LogCompactionHook(
            path(lake.path.as_uri()), path((lake.path / "_delta_log").as_uri()), first, last, 0
        )
        hook.threadSafeInvoke(engine)
        assert (lake.path / "_delta_log" / f"{first:020d}.{last:020d}.compacted.json").exists()

    return step


def age_log(days: int) -> object:
    """Return a step that makes the log's files so many days older."""

    def step(lake: Lake) -> None:
        for number, file in enumerate(sorted((lake.path / "_delta_log").glob("*"))):
            moment = time.time() - days * 86400 + number
            os.utime(file, (moment, moment))
        lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    return step


def _drop_log(*names: str) -> object:
    """Return a step that removes files of the log, as a careless hand would."""

    def step(lake: Lake) -> None:
        for name in names:
            for file in (lake.path / "_delta_log").glob(name):
                file.unlink()
        lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    return step


_LOGS = (
    Scenario(
        name="compacted_log",
        checkpoints=True,
        kept=True,
        steps=(
            create(COLUMNS, VECTORS, "'delta.checkpointInterval' = '8'"),
            insert(1, 5),
            "DELETE FROM {t} WHERE id = 2",
            insert(6, 9),
            "OPTIMIZE {t}",
            _compact(1, 4),
            insert(10, 12),
            "UPDATE {t} SET name = 'u' WHERE id > 8",
            _compact(5, 6),
            insert(13, 14),
            "DELETE FROM {t} WHERE id < 6",
            insert(15, 16),
            _compact(8, 9),
        ),
    ),
    Scenario(
        name="cleaned_log",
        checkpoints=True,  # the log begins with a checkpoint: what was before is gone
        late=True,
        kept=True,
        steps=(
            create(
                COLUMNS,
                VECTORS,
                "'delta.checkpointInterval' = '3'",
                "'delta.logRetentionDuration' = 'interval 2 days'",
                "'delta.deletedFileRetentionDuration' = 'interval 1 days'",
            ),
            *_MANY,
            age_log(9),
            insert(60, 62),
            "DELETE FROM {t} WHERE id = 61",
            insert(63, 64),
            insert(65, 66),
        ),
    ),
    Scenario(
        name="lost_hint",  # no _last_checkpoint, one checkpoint lost, no checksums
        late=True,
        steps=(*_checkpointed(), _drop_log("_last_checkpoint", "*5.checkpoint*", "*.crc", ".*.crc")),
    ),
    Scenario(
        name="vacuumed",  # old versions are in the log, their files are not there
        late=True,
        kept=True,
        steps=(
            create(COLUMNS, VECTORS),
            insert(1, 6),
            insert(7, 12),
            "UPDATE {t} SET name = 'u' WHERE id > 3",
            "OPTIMIZE {t}",
            "VACUUM {t} RETAIN 0 HOURS",
            insert(13, 14),
        ),
    ),
)

SCENARIOS = (*_VECTORED, *_MAPPED, *_CHECKPOINTS, *_LOGS)
