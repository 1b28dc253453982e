"""Have Delta's connector write tables, and vacuum them: a part of `delta_tables.py`.

Writes of each case `OUT/NAME/before` and `after`, copies of the table, and `asked.json`: the time just before VACUUM,
what it was told, the versions before it, all of which can be read, and those of them that can be read afterwards.
"""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

from tests.support.delta import connector, deltalake_rows
from tests.support.delta.feature_scenarios import COLUMNS, FEED, VECTORS, create, insert, merge

if TYPE_CHECKING:
    from pathlib import Path

AGE = "delta.deletedFileRetentionDuration"
OLD = (
    insert(1, 30),
    "DELETE FROM {t} WHERE id % 5 = 0",
    "UPDATE {t} SET name = upper(name) WHERE id % 4 = 1",
    merge(24, 36),
)
NEW = (
    "DELETE FROM {t} WHERE id IN (2, 3, 7)",
    "OPTIMIZE {t}",
    insert(40, 50, files=2),
    "RESTORE TABLE {t} TO VERSION AS OF 6",
)
PAUSE_SECONDS = 5
SCENARIOS = {
    "vectors": create(COLUMNS, VECTORS),
    "feed": create(COLUMNS, VECTORS, FEED, "'delta.checkpointInterval' = '3'", more="PARTITIONED BY (part)"),
}
"""How each table begins."""
CASES = (
    ("vectors", "none"),
    ("feed", "some"),
)
"""What VACUUM keeps of each table: all by a long setting, nothing by RETAIN 0 HOURS, or some by a short setting."""


def write_all(spark: Any, out: Path) -> None:
    """Write the tables, and vacuum each in every way."""
    for name, kept in CASES:
        lake = connector.Lake(spark=spark.newSession(), path=out / "tables" / f"{name}_{kept}")
        vacuum(lake, SCENARIOS[name], kept, out)


def vacuum(lake: Any, begin: str, kept: str, out: Path) -> None:
    """Let a table live, and vacuum it between two copies."""
    for statement in (begin, *OLD):
        lake.sql(statement)
    between = time.time()
    if kept == "some":
        time.sleep(PAUSE_SECONDS)
    for statement in NEW:
        lake.sql(statement)
    (lake.path / "left_behind.parquet").write_bytes(b"of a writer that failed")
    (lake.path / "_hidden").write_bytes(b"not the table's")
    if kept == "some":
        seconds = int(time.time() - between - PAUSE_SECONDS / 2)
        lake.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{AGE}' = 'interval {seconds} seconds')")
    folder = out / lake.path.name
    shutil.copytree(lake.path, folder / "before")
    before = lake.versions()
    if readable(folder / "before", before) != before:
        raise RuntimeError(f"deltalake does not read every version of {lake.path.name} before VACUUM.")
    now = time.time()
    lake.sql("VACUUM {t}" + (" RETAIN 0 HOURS" if kept == "none" else ""))
    shutil.copytree(lake.path, folder / "after")
    after = readable(folder / "after", before)
    (folder / "asked.json").write_text(json.dumps({"now": now, "kept": kept, "before": before, "after": after}))


def readable(table: Path, versions: list[int]) -> list[int]:
    """Return the versions whose rows deltalake reads: it needs the files that Spark needs, and takes milliseconds."""
    answers = {version: deltalake_rows.read(table, version) for version in versions}
    return [version for version, answer in answers.items() if answer["outcome"] == "rows"]
