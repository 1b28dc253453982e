"""How fast rows are read: ours against deltalake, polars, DuckDB and pyarrow.dataset on the bare files, in one run.

    python tests/benchmarks/rows.py [--rows 1000000] [--files 8] [--peers PYTHON] [--repeats 5]

Writes a Delta table of large files (id, name, amount, at, k), and prints for each task the seconds of every reader,
wall clock and processor, best of the repeats, the ratios of ours to the best of the others, and the peak memory that
ours needs beside the result. PyArrow and DuckDB are those of this environment; deltalake and polars are read by another
Python, given by `--peers`, because they pin packages of their own. Each reader has a process of its own. They take
turns over files that are in the page cache. Needs Linux. Judges nothing.

Then reads the sample tables on a store that takes 50 ms for each request, and prints the requests of each call and its
round trips: how many requests its time is worth, one after another.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snapshot_explorer.table import Table

sys.path.append(str(Path(__file__).parents[2]))

import snapshot_explorer
from snapshot_explorer import samples
from tests.benchmarks.report import record
from tests.support.delta.table_builder import DeltaTable, add
from tests.support.filesystems import counting


class Measure(NamedTuple):
    """What one run of a task costs."""

    wall: float
    """Seconds."""
    work: float
    """Seconds of processor, of all threads."""
    beside: float
    """Peak memory in MiB, beside the result."""


FIELDS = [("id", "long"), ("name", "string"), ("amount", "double"), ("at", "timestamp"), ("k", "integer")]
TASKS = {
    "all rows to Arrow": ("arrow", None, None),
    "all rows, plain strings": ("string", None, None),
    "two columns": ("arrow", ["id", "amount"], None),
    "where k = 5": ("arrow", None, "k = 5"),
    "where id < 1000": ("arrow", None, "id < 1000"),
    "aggregate by SQL": ("sql", None, None),
    "all rows to pandas": ("pandas", None, None),
}
SQL = "select k % 10 as d, count(*) as n, sum(amount) as s from {} group by 1 order by 1"
TIMER = """
import gc, json, os, sys, time
folder, tasks = sys.argv[1], json.loads(sys.argv[2])
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # a reader may draw how far it is
def resident(name):
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) / 1024 for line in status if line.startswith(name)), 0.0)
def bytes_of(found):
    if hasattr(found, "nbytes"):
        return found.nbytes
    if hasattr(found, "memory_usage"):
        return int(found.memory_usage(index=False).sum())
    return bytes_of(found.to_arrow()) if hasattr(found, "to_arrow") else 0
def measure(run, release=lambda: None):
    last = None
    for line in sys.stdin:
        gc.collect()
        if line != last:
            release()  # freed memory that the process keeps would hide what is needed
        last = line
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        before = resident("VmRSS")
        start, worked = time.perf_counter(), time.process_time()
        found = run(*tasks[line.strip()])
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        beside = resident("VmHWM") - before - bytes_of(found) / 2**20
        print(json.dumps([seconds, worked, beside]), file=answers, flush=True)
        del found
"""
STRINGS = """
import pyarrow as pa
def with_strings(found):
    found = pa.table(found)
    views = (pa.string_view(), pa.large_string())
    kinds = [pa.string() if field.type in views else field.type for field in found.schema]
    return found.cast(pa.schema(list(zip(found.schema.names, kinds))))
"""
"""Polars and deltalake return views, whose texts stay in the decoded pages."""
READERS = {
    "ours": """
import pyarrow as pa
import snapshot_explorer
table = snapshot_explorer.open_table(folder)
def run(kind, columns, where):
    if kind == "sql":
        return table.sql(SQL.format("this"))
    snapshot = table.current
    if kind == "pandas":
        return snapshot.to_pandas()
    return snapshot.to_arrow(columns=columns, where=where)
measure(run, pa.default_memory_pool().release_unused)
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
duckdb.sql("SET enable_progress_bar = false")
files = sorted(glob(folder + "/**/*.parquet", recursive=True))
def run(kind, columns, where):
    source = f"read_parquet({files!r})"
    query = SQL.format(source) if kind == "sql" else f"select {', '.join(columns or ['*'])} from {source}"
    found = duckdb.sql(query + (f" where {where}" if where else ""))
    return found.df() if kind == "pandas" else found.to_arrow_table()
measure(run)
""",
    "polars": f"""{STRINGS}
import polars as pl
def run(kind, columns, where):
    rows = pl.scan_parquet(folder + "/**/*.parquet")
    if kind == "sql":
        return pl.SQLContext(t=rows).execute(SQL.format("t")).collect().to_arrow()
    rows = rows.filter(pl.sql_expr(where)) if where else rows
    rows = rows.select(columns) if columns else rows
    found = rows.collect()
    if kind == "string":
        return with_strings(found.to_arrow())
    return found.to_pandas() if kind == "pandas" else found.to_arrow()
measure(run)
""",
    "deltalake": f"""{STRINGS}
from deltalake import DeltaTable, QueryBuilder
table = DeltaTable(folder)
query = QueryBuilder().register("t", table)
def run(kind, columns, where):
    if kind == "pandas":
        return table.to_pandas()
    text = SQL.format("t") if kind == "sql" else f"select {{', '.join(columns or ['*'])}} from t"
    found = query.execute(text + (f" where {{where}}" if where else "")).read_all()
    return with_strings(found) if kind == "string" else found
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


class Reader:
    """A process that runs tasks when it is told to."""

    def __init__(self, name: str, folder: Path, python: str) -> None:
        """Start it."""
        self.name = name
        script = f"SQL = {SQL!r}\n{TIMER}\n{READERS[name]}"
        command = [python, "-W", "ignore", "-c", script, str(folder), json.dumps(TASKS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, task: str) -> Measure | None:
        """Run a task once; None if the reader cannot."""
        if self._process.stdin is None or self._process.stdout is None:
            return None
        try:
            print(task, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return None
        answer = self._process.stdout.readline()
        return Measure(*json.loads(answer)) if answer else None

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measured(readers: Sequence[Reader], tasks: Sequence[str], repeats: int) -> dict[str, dict[str, Measure]]:
    """Return the best times by task and reader, and the peak memory of the first run. The readers take turns."""
    found: dict[str, dict[str, Measure]] = {task: {} for task in tasks}
    for task in tasks:
        firsts = {reader.name: reader.run(task) for reader in readers}
        for _ in range(repeats):
            for reader in readers:
                first, one = firsts[reader.name], reader.run(task)
                if one is not None and first is not None:
                    best = found[task].get(reader.name, one)
                    found[task][reader.name] = Measure(min(best.wall, one.wall), min(best.work, one.work), first.beside)
    return found


def report(found: dict[str, dict[str, Measure]]) -> None:
    """Print a line per task: the seconds of each reader, the ratios of ours to the best of the others, our memory."""
    names = [name for name in READERS if any(name in one for one in found.values())]
    print(f"{'task':<22}" + "".join(f"{name:>18}" for name in names) + f"{'ratio':>15}{'MiB beside':>12}")
    for task, one in found.items():
        line = "".join(f"{one[name].wall:>9.3f}{one[name].work:>9.3f}" if name in one else " " * 18 for name in names)
        others = [one[name] for name in names if name != "ours" and name in one]
        wall = one["ours"].wall / min(other.wall for other in others)
        work = one["ours"].work / min(other.work for other in others)
        print(f"{task:<22}{line}{wall:>7.2f} ({work:.2f}){one['ours'].beside:>11.0f}")


def record_best(found: dict[str, dict[str, Measure]], table: str) -> None:
    """Record the seconds of ours for each task beside those of the fastest of the others."""
    for task, one in found.items():
        others = {name: measure.wall for name, measure in one.items() if name != "ours"}
        if others and "ours" in one:
            fastest = f"the fastest of {', '.join(sorted(others))}"
            record(f"{table}: {task}", one["ours"].wall, {fastest: min(others.values())})


CALLS: dict[str, Callable[[Table], object]] = {
    "plan": lambda table: table.current.plan(),
    "all rows": lambda table: table.current.to_arrow(),
    "versions": lambda table: table.versions(),
    "changes of three commits": lambda table: table.row_changes(*table.versions()[-3::2]),
    "lifetimes": lambda table: table.lifetimes(),
}


def remote(latency: float) -> None:
    """Print a line per call on a store that takes some seconds per request."""
    store = counting("benchmark", latency=latency)
    fsspec.register_implementation("benchmark", store, clobber=True)
    memory = fsspec.filesystem("memory")
    print(f"\n{f'{latency * 1000:.0f} ms per request':<42}{'seconds':>9}{'requests':>10}{'round trips':>13}")
    for name in ("orders", "payments"):
        folder = samples.path(name)
        for file in (one for one in Path(folder).rglob("*") if one.is_file()):
            memory.pipe_file(f"/benchmark/{name}/{file.relative_to(folder)}", file.read_bytes())
        snapshot_explorer.open_table(f"benchmark://benchmark/{name}")  # loads what is loaded once
        store.requests.clear()
        start = time.perf_counter()
        table = snapshot_explorer.open_table(f"benchmark://benchmark/{name}")
        for label, call in {"open": None, **CALLS}.items():
            if call is not None:
                store.requests.clear()
                start = time.perf_counter()
                call(table)
            seconds = time.perf_counter() - start
            print(f"{name + ': ' + label:<42}{seconds:>9.2f}{len(store.requests):>10}{seconds / latency:>13.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows per file")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, help="a Python with deltalake and polars")
    parser.add_argument("--only", nargs="*", help="words of the tasks to run")
    parser.add_argument("--readers", nargs="*", default=list(READERS), help="the readers to run")
    parser.add_argument("--table", type=Path, help="a folder to write the table to, or to read it from")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds per request of a store; 0 for no store")
    given = parser.parse_args()
    tasks = [task for task in TASKS if not given.only or any(word in task for word in given.only)]
    with tempfile.TemporaryDirectory() as place:
        folder = given.table or Path(place)
        if not (folder / "_delta_log").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_delta(folder, given.rows, given.files)
        print(f"{given.files} files of {given.rows:,} rows: seconds, and seconds of processor, best of {given.repeats}")
        readers = [Reader(name, folder, given.peers if name in _OTHERS else sys.executable) for name in given.readers]
        found = measured(readers, tasks, given.repeats)
        report(found)
        record_best(found, f"Delta, {given.files} files of {given.rows:,} rows")
        for reader in readers:
            reader.close()
    if given.latency:
        remote(given.latency)


if __name__ == "__main__":
    main()
