"""Have engines run the statements that erase the rows of a lake's trace: a part of `connector_tables.py`.

    python -m tests.oracles.erasure_tables OUT

This has DuckDB do it; `connector_tables.py` has the connectors. Writes `OUT/erasure/`, tables whose versions, tag,
branch, deleted rows and lost files have rows of `WHERE`, and `OUT/erasure.json`: what the planner answered before, the
statements that failed, and the numbers of rows afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WHERE = "id = 42"
MARK = "forget-me-not"
"""The text in every row to erase, and in no other one."""
DAYS = 10 * 24 * 60 * 60
TABLES = {
    "delta": {
        "vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.appendOnly' = 'false')",
        "feed": "PARTITIONED BY (part) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.logRetentionDuration' = 'interval 60 days')",
    },
    "iceberg": {
        "copied": "TBLPROPERTIES ('gc.enabled' = 'false')",
        "merged": "PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read')",
    },
    "paimon": {
        "appended": "TBLPROPERTIES ('bucket' = '-1')",
        "keyed": "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')",
    },
    "hudi": {
        "copied": "TBLPROPERTIES (type = 'cow', primaryKey = 'id')",
        "merged": "TBLPROPERTIES (type = 'mor', primaryKey = 'id')",
    },
    "ducklake": {"inlined": "", "filed": ""},
}
HOLD = {
    "iceberg": (
        "ALTER TABLE {t} CREATE TAG kept",
        "ALTER TABLE {t} CREATE BRANCH dev",
    ),
    "paimon": (
        "CALL lake.sys.create_tag(table => '{n}', tag => 'kept', snapshot => 1)",
        "CALL lake.sys.create_branch(table => '{n}', branch => 'dev', tag => 'kept')",
    ),
    "hudi": ("CALL create_savepoint(table => '{t}', commit_time => '{v}')",),
}
"""What holds the first version."""
STEPS = (
    "INSERT INTO {t} SELECT id, id % 3, concat('row ', id) FROM {rows}",
    "INSERT INTO {t} SELECT 42, 1, '" + MARK + "'",
    "HOLD",
    "INSERT INTO {t} SELECT id + 100, id % 3, concat('row ', id) FROM {rows}",
    "UPDATE {t} SET name = concat(name, '!') WHERE id IN (7, 42)",
    "DELETE FROM {t} WHERE id IN (8, 42)",
    "INSERT INTO {t} SELECT 42, 2, '" + MARK + "'",
)


def main() -> None:
    """Write the tables of a DuckLake, and erase rows from them."""
    from tests.support.ducklake.write_lakes import connect  # only in its environment

    out = Path(sys.argv[1]).absolute()
    (out / "erasure").mkdir()
    os.chdir(out / "erasure")
    connection = connect("sqlite:lake.sqlite")
    erase(connection.execute, "ducklake", out)
    connection.close()
    with sqlite3.connect("lake.sqlite") as database:
        database.execute("VACUUM")


def write_all(spark: Any, kind: str, out: Path) -> None:
    """Write the tables of a format with its connector, and erase rows from them."""
    if kind in ("iceberg", "paimon"):
        spark.sql("CREATE DATABASE lake.erasure")
    erase(spark.sql, kind, out)
    spark.sql("RESET")


def erase(run: Any, kind: str, out: Path) -> None:
    """Write the tables, and run the statements of the planner."""
    lake = out / ("erasure.db" if kind == "paimon" else "erasure")
    names = {name: written(run, kind, lake, name) for name in TABLES[kind]}
    catalog = lake / "lake.sqlite" if kind == "ducklake" else lake
    plan = planned(path=str(catalog), erase=WHERE, names={} if kind in ("delta", "ducklake") else names)
    failed = [ran(run, text, lake) for name in sorted(plan["statements"]) for text in plan["statements"][name]]
    rows = {name: count(run, table) for name, table in names.items()}
    answer = {"lake": str(catalog), "plan": plan, "failed": [text for text in failed if text], "rows": rows}
    (out / "erasure.json").write_text(json.dumps(answer, indent=1))


def count(run: Any, table: str) -> list[int]:
    """Return the number of all rows of a table, and of those to erase."""
    found = run(f"SELECT count(*), count(*) FILTER (WHERE {WHERE}) FROM {table}")
    (row,) = found.fetchall() if hasattr(found, "fetchall") else found.collect()
    return list(row)


def written(run: Any, kind: str, lake: Path, name: str) -> str:
    """Write a table; return its name in the engine."""
    path, rows = lake / name, "range(0, 40)"
    if kind == "ducklake":
        table, path = f"lake.{name}", lake / "data" / "main" / name
        run(f"CREATE TABLE {table} (id BIGINT, part INT, name VARCHAR)")
        run(f"CALL lake.set_option('data_inlining_row_limit', {10 if name == 'inlined' else 0})")
        rows = "(SELECT i AS id FROM range(0, 40) t(i))"
    else:
        table = {"delta": f"delta.`{path}`", "hudi": f"erase_{name}"}.get(kind, f"lake.erasure.{name}")
        location = f"LOCATION '{path.as_uri()}'" if kind == "hudi" else ""
        run(f"CREATE TABLE {table} (id BIGINT, part INT, name STRING) USING {kind} {location} {TABLES[kind][name]}")
    for step in STEPS:
        for text in HOLD.get(kind, ()) if step == "HOLD" else (step,):
            version = newest_instant(run, table) if "{v}" in text else ""
            run(text.format(t=table, n=table.removeprefix("lake."), rows=rows, v=version))
    if kind != "hudi":  # its clean-up of lost files is a program of its own
        lose(path)
    return table


def newest_instant(run: Any, table: str) -> str:
    """Return the newest completed write of a Hudi table."""
    return str(max(row[0] for row in run(f"SELECT DISTINCT _hoodie_commit_time FROM {table}").collect()))


def lose(path: Path) -> None:
    """Put copies of the data files beside them, old enough to be removed: no version names them."""
    for number, file in enumerate(sorted(path.rglob("*.parquet"))):
        if "_delta_log" not in file.parts and "_change_data" not in file.parts:
            lost = file.with_name(f"{file.name.split('-')[0]}-lost-{number}.parquet")
            shutil.copyfile(file, lost)
            os.utime(lost, (time.time() - DAYS, time.time() - DAYS))


def planned(**asked: Any) -> Any:
    """Return what the planner answers."""
    done = subprocess.run(
        [os.environ["PLANNER"], "-m", "tests.oracles.repair_planner"],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def ran(run: Any, text: str, lake: Path) -> str | None:
    """Run a statement; return why it failed."""
    if "On the next day" in text:
        for file in lake.rglob("_delta_log/*"):
            os.utime(file, (time.time() - DAYS, time.time() - DAYS))
    try:
        result = run(text)
        if hasattr(result, "collect"):
            result.collect()
    except Exception as error:  # noqa: BLE001 - the test shows it, with the statement
        return f"{text}\n{str(error)[:1_500]}"
    return None


if __name__ == "__main__":
    main()
