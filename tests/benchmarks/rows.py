"""How fast rows are read: ours against deltalake, polars, DuckDB and pyarrow.dataset on the bare files, in one run.

    python tests/benchmarks/rows.py [--rows 1000000] [--files 8] [--peers PYTHON] [--repeats 5]

Writes a Delta table of large files (id, name, amount, at, k), and prints for each task the seconds of every reader,
best of the repeats, and the ratio of ours to the fastest. PyArrow and DuckDB are those of this environment;
deltalake and polars are read by another Python, given by `--peers`, because they pin packages of their own. Each reader
runs in a process of its own, one after another, over files that are in the page cache. Judges nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.delta.table_builder import DeltaTable, add

FIELDS = [("id", "long"), ("name", "string"), ("amount", "double"), ("at", "timestamp"), ("k", "integer")]
TASKS = {
    "all rows to Arrow": ("arrow", None, None),
    "two columns": ("arrow", ["id", "amount"], None),
    "where k = 5": ("arrow", None, "k = 5"),
    "where id < 1000": ("arrow", None, "id < 1000"),
    "aggregate by SQL": ("sql", None, None),
    "all rows to pandas": ("pandas", None, None),
}
SQL = "select k % 10 as d, count(*) as n, sum(amount) as s from {} group by 1 order by 1"
TIMER = """
import gc, json, sys, time
folder, repeats, tasks = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
def measure(run):
    found = {}
    for name, (kind, columns, where) in tasks.items():
        times = []
        for _ in range(repeats + 1):
            gc.collect()
            start = time.perf_counter()
            run(kind, columns, where)
            times.append(time.perf_counter() - start)
        found[name] = min(times[1:])
    print(json.dumps(found))
"""
READERS = {
    "ours": """
import snapshot_explorer
table = snapshot_explorer.open_table(folder)
def run(kind, columns, where):
    if kind == "sql":
        return table.sql(SQL.format("this"))
    snapshot = table.current
    if kind == "pandas":
        return snapshot.to_pandas()
    return snapshot.to_arrow(columns=columns, where=where)
measure(run)
""",
    "pyarrow": """
import duckdb, pyarrow.dataset as ds, pyarrow.compute as pc
from glob import glob
files = sorted(glob(folder + "/**/*.parquet", recursive=True))
wheres = {"k = 5": pc.field("k") == 5, "id < 1000": pc.field("id") < 1000}
def run(kind, columns, where):
    data = ds.dataset(files)
    if kind == "sql":
        return duckdb.sql(SQL.format("data")).to_arrow_table()
    rows = data.to_table(columns=columns, filter=wheres.get(where))
    return rows.to_pandas() if kind == "pandas" else rows
measure(run)
""",
    "duckdb": """
import duckdb
from glob import glob
files = sorted(glob(folder + "/**/*.parquet", recursive=True))
def run(kind, columns, where):
    source = f"read_parquet({files!r})"
    query = SQL.format(source) if kind == "sql" else f"select {', '.join(columns or ['*'])} from {source}"
    found = duckdb.sql(query + (f" where {where}" if where else ""))
    return found.df() if kind == "pandas" else found.to_arrow_table()
measure(run)
""",
    "polars": """
import polars as pl
def run(kind, columns, where):
    rows = pl.scan_parquet(folder + "/**/*.parquet")
    if kind == "sql":
        return pl.SQLContext(t=rows).execute(SQL.format("t")).collect().to_arrow()
    rows = rows.filter(pl.sql_expr(where)) if where else rows
    rows = rows.select(columns) if columns else rows
    found = rows.collect()
    return found.to_pandas() if kind == "pandas" else found.to_arrow()
measure(run)
""",
    "deltalake": """
from deltalake import DeltaTable, QueryBuilder
table = DeltaTable(folder)
query = QueryBuilder().register("t", table)
def run(kind, columns, where):
    if kind == "pandas":
        return table.to_pandas()
    text = SQL.format("t") if kind == "sql" else f"select {', '.join(columns or ['*'])} from t"
    return query.execute(text + (f" where {where}" if where else "")).read_all()
measure(run)
""",
}
_OTHERS = ("polars", "deltalake")
"""Readers of the other environment."""


def rows_of(start: int, count: int) -> pa.Table:
    """Return rows with ids from `start` on."""
    ids = np.arange(start, start + count, dtype=np.int64)
    chance = np.random.default_rng(start)
    return pa.table(
        {
            "id": ids,
            "name": pa.array([f"name {number}" for number in chance.integers(0, 100_000, count)]),
            "amount": chance.random(count),
            "at": pa.array(ids * 1000, pa.timestamp("us", tz="UTC")),
            "k": chance.integers(0, 1000, count).astype(np.int32),
        }
    )


def write_delta(folder: Path, rows: int, files: int) -> None:
    """Write a Delta table of files with `rows` rows each, with statistics."""
    table = DeltaTable(None, folder, fields=FIELDS)
    for number in range(files):
        found = rows_of(number * rows, rows)
        name = f"part-{number}.parquet"
        pq.write_table(found, folder / name)
        least, most = number * rows, (number + 1) * rows - 1
        table.commit(
            add(
                name,
                size=(folder / name).stat().st_size,
                rows=rows,
                stats={
                    "numRecords": rows,
                    "minValues": {"id": least, "k": 0},
                    "maxValues": {"id": most, "k": 999},
                    "nullCount": {"id": 0, "k": 0},
                },
            )
        )


def seconds(reader: str, folder: Path, repeats: int, python: str) -> dict[str, float]:
    """Return the best time of each task by a reader, in a process of its own."""
    script = f"SQL = {SQL!r}\n{TIMER}\n{READERS[reader]}"
    command = [python, "-W", "ignore", "-c", script, str(folder), str(repeats), json.dumps(TASKS)]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    if answer.returncode:
        print(f"{reader} is left out: {(answer.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        return {}
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def report(found: dict[str, dict[str, float]]) -> None:
    """Print a line per task: the seconds of each reader and the ratio of ours to the fastest of the others."""
    names = [name for name in found if found[name]]
    print(f"{'task':<22}" + "".join(f"{name:>11}" for name in names) + f"{'ratio':>9}")
    for task in TASKS:
        fastest = min(found[name][task] for name in names if name != "ours")
        line = "".join(f"{found[name][task]:>11.3f}" for name in names)
        print(f"{task:<22}{line}{found['ours'][task] / fastest:>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows per file")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, help="a Python with deltalake and polars")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_delta(folder, given.rows, given.files)
        print(f"{given.files} files of {given.rows:,} rows, seconds, best of {given.repeats}")
        report(
            {
                reader: seconds(reader, folder, given.repeats, given.peers if reader in _OTHERS else sys.executable)
                for reader in READERS
            }
        )


if __name__ == "__main__":
    main()
