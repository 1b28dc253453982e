"""Have Delta Lake's own connector for Spark write tables, and write down what it reads of them at every version.

Runs in an environment with PySpark and Delta's jars; nothing of `snapshot_explorer` takes part. A `Scenario` is what is
done to a table; `play` runs it below a folder and writes what Delta says of it:

- `NAME/VERSION.json`: `{"version", "outcome": "rows", "columns", "rows", "files", "row_ids", "source"}`, or
  `"outcome": "error"` with Delta's own `"message"`. `files` counts the live data files, from Delta's version checksum,
  null where it wrote none; `row_ids` are the rows again, behind them row id and row commit version, where the version
  tracks rows; a variant is its two binary parts, value and metadata.
- `NAME.json`: `{"history", "detail", "changes", "modified"}`: the rows of DESCRIBE HISTORY and DESCRIBE DETAIL, the
  change rows by version or Delta's message, and when the files of the log were modified, in milliseconds.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.support.canonical import canonical_rows
from tests.support.oracles import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

log = logging.getLogger(__name__)

SOURCE = "Delta Lake (Spark connector)"
_SETTINGS = sessions.INTERPRETED | {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.default.parallelism": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM lists in as many tasks
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A table's life: what is done to it, one step after the other."""

    name: str
    """The table's folder."""
    steps: tuple[str | Callable[[Lake], None], ...]
    """SQL, in which {t} is the table and {p} its path, or a function that is given the lake."""
    kept: bool = False
    """Lies in tests/data/delta as well."""
    late: bool = False
    """Is read at the end only: its versions are not what they were by then."""
    checksums: bool = False
    """Is kept with its version checksums."""
    checkpoints: bool = False
    """Is kept with its checkpoints. They are half of the bytes, and those logs are whole without them."""


@dataclass(frozen=True, kw_only=True)
class Lake:
    """Where a scenario takes place."""

    spark: Any
    """A session of the scenario's own: what it sets stays in it."""
    path: Path
    """The table's folder."""

    def sql(self, statement: str) -> Any:
        """Run a statement about the table."""
        return self.spark.sql(statement.replace("{t}", f"delta.`{self.path}`").replace("{p}", str(self.path)))

    @property
    def java(self) -> Any:
        """Delta's DeltaLog object of the table."""
        delta_log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog
        return delta_log.forTable(self.spark._jsparkSession, str(self.path))

    def versions(self) -> list[int]:
        """Return the versions whose commit file is there."""
        return sorted(int(file.stem) for file in (self.path / "_delta_log").glob("*.json") if file.stem.isdigit())


def session(jars: Iterable[Path], *, master: str = "local[2]", variables: Mapping[str, str] | None = None) -> Any:
    """Return a local Spark session that knows Delta."""
    return sessions.session(jars, _SETTINGS, master=master, variables=variables)


def play(spark: Any, folder: Path, scenario: Scenario, out: Path) -> None:
    """Play a scenario below a folder, and write what Delta reads of it, at every version."""
    lake = Lake(spark=spark.newSession(), path=folder / scenario.name)
    for number, step in enumerate(scenario.steps, 1):
        if callable(step):
            step(lake)
        else:
            lake.sql(step)
        if not scenario.late or number == len(scenario.steps):
            _read_new(lake, out / scenario.name)
    _write(out / f"{scenario.name}.json", about(lake))


def _read_new(lake: Lake, folder: Path) -> None:
    """Write the rows of versions not read yet: while a version is the newest, Delta has its state at hand."""
    for version in lake.versions():
        if not (folder / f"{version}.json").exists():
            _write(folder / f"{version}.json", rows_at(lake, version))


def about(lake: Lake) -> dict[str, Any]:
    """Return what Delta says of a table as a whole."""
    functions = importlib.import_module("pyspark.sql.functions")
    history, detail = (lake.sql(f"DESCRIBE {word} {{t}}") for word in ("HISTORY", "DETAIL"))
    return {
        "history": _answer(history),
        "detail": _answer(detail.withColumn("location", functions.lit(lake.path.name))),
        "changes": _changes(lake),
        "modified": {
            file.name: file.stat().st_mtime_ns // 10**6 for file in sorted(lake.path.glob("_delta_log/*.json"))
        },
    }


def write_all(spark: Any, scenarios: Iterable[Scenario], tables: Path, expected: Path, *, threads: int = 2) -> None:
    """Play scenarios, some at a time, and write what Delta reads of each."""

    def one(scenario: Scenario) -> str | None:
        start = time.monotonic()
        try:
            play(spark, tables, scenario, expected)
        except Exception as error:
            log.exception("%s failed", scenario.name)
            return f"{scenario.name}: {_message(error)}"
        log.info("%s %.1f s", scenario.name, time.monotonic() - start)
        return None

    with ThreadPoolExecutor(threads) as pool:
        failed = [failure for failure in pool.map(one, scenarios) if failure]
    if failed:
        raise RuntimeError("Scenarios that could not be played:\n" + "\n".join(failed))


def prune(table: Path, scenario: Scenario) -> None:
    """Remove what a kept table does not need: Hadoop's checksum files, and what the scenario does not ask for."""
    unwanted = [".*", *([] if scenario.checksums else ["*.crc"])]
    unwanted += [] if scenario.checkpoints else ["*.checkpoint.*", "_last_checkpoint"]
    for pattern in unwanted:
        for file in table.rglob(pattern):
            file.unlink()
    for name in ("_commits", "_staged_commits"):
        shutil.rmtree(table / "_delta_log" / name, ignore_errors=True)


def arrow(frame: Any) -> pa.Table:
    """Return a frame's rows as Arrow, with zone-less and UTC timestamps distinguished."""
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else pa.table({column: pa.nulls(0) for column in frame.columns})


def rows_at(lake: Lake, version: int) -> dict[str, Any]:
    """Return what Delta reads at a version."""
    try:
        frame = lake.spark.read.format("delta").option("versionAsOf", version).load(str(lake.path))
        tracked = _tracks_rows(lake, version)
        extra = ("_metadata.row_id AS `_row_id`", "_metadata.row_commit_version AS `_row_commit_version`")
        whole = arrow(frame.selectExpr("*", *extra) if tracked else frame)
        rows = whole.select(frame.columns)
    except Exception as error:  # noqa: BLE001 - whatever Delta says of it is the expectation
        return {"version": version, "outcome": "error", "message": _message(error), "source": SOURCE}
    return {
        "version": version,
        "outcome": "rows",
        "columns": rows.column_names,
        "rows": canonical_rows(rows),
        "files": _live_files(lake.path, version),
        "row_ids": canonical_rows(whole) if tracked else None,
        "source": SOURCE,
    }


def _tracks_rows(lake: Lake, version: int) -> bool:
    """Say whether the property is on in the newest metadata up to a version, read from the commits themselves."""
    on = False
    for commit in range(version + 1):
        file = lake.path / "_delta_log" / f"{commit:020d}.json"
        for line in file.read_text().splitlines() if file.exists() else ():
            if line.startswith('{"metaData"'):
                properties = json.loads(line)["metaData"].get("configuration", {})
                on = properties.get("delta.enableRowTracking") == "true"
    return on


def _live_files(table: Path, version: int) -> int | None:
    checksum = table / "_delta_log" / f"{version:020d}.crc"
    return json.loads(checksum.read_text())["numFiles"] if checksum.exists() else None


def _answer(frame: Any) -> dict[str, Any]:
    rows = arrow(frame)
    return {"columns": rows.column_names, "rows": canonical_rows(rows)}


def _changes(lake: Lake) -> dict[str, Any]:
    """Return the change rows by version; a version whose rows Delta does not show has its message instead."""
    versions = [version for version in lake.versions() if _feeds(lake, version)]
    if not versions:
        return {}
    whole = _changes_of(lake, versions[0], versions[-1])
    if whole["outcome"] == "error" or any("columnMapping.mode" in text for text in _commits(lake, versions[-1])):
        # With mapped columns the rows have the schema of the last version that is asked for.
        return {str(version): _changes_of(lake, version, version) for version in versions}
    place = whole["columns"].index("_commit_version")
    return {
        str(version): whole | {"rows": [row for row in whole["rows"] if row[place] == version]} for version in versions
    }


def _feeds(lake: Lake, version: int) -> bool:
    """Say whether the change feed may be on; Delta itself says whether it is."""
    return any("delta.enableChangeDataFeed" in text for text in _commits(lake, version))


def _commits(lake: Lake, last: int) -> list[str]:
    log_folder = lake.path / "_delta_log"
    return [(log_folder / f"{version:020d}.json").read_text() for version in lake.versions() if version <= last]


def _changes_of(lake: Lake, first: int, last: int) -> dict[str, Any]:
    try:
        reader = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
        rows = arrow(reader.option("endingVersion", last).load(str(lake.path)))
    except Exception as error:  # noqa: BLE001 - whatever Delta says of it is the expectation
        return {"outcome": "error", "message": _message(error)}
    return {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows)}


def _message(error: Exception) -> str:
    return re.sub(r"(file:)?/+\S*/", "", str(error).splitlines()[0])[:300]


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, ensure_ascii=False) + "\n")
