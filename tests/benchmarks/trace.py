"""Trace rows through all versions of a Delta table against brute force: DuckDB over every file, deltalake per version.

    python tests/benchmarks/trace.py [COMMITS] [--deltalake PYTHON]

Each commit adds ten files of 2,000 rows and, from the 50th on, removes the ten oldest ones. Two conditions are traced:
one on a column whose bounds rule out no file, and one on ids, which are in one file. DuckDB counts the matching rows of
each file in one scan over all files that any version has. With `--deltalake`, an interpreter that has deltalake and
pyarrow counts those of every version, one after another. An exact profile of a column is measured beside the minima and
maxima of every file by DuckDB. Prints what it measured, and fails where counts differ.
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

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import snapshot_explorer as sx

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.support.delta.table_builder import DeltaTable, add, remove

FILES, ROWS, LIVE = 10, 2_000, 50
"""The files of a commit, the rows of a file, and the commits whose files are live."""
DELTALAKE = r"""
import json, sys, time
import pyarrow.dataset as ds
from deltalake import DeltaTable
path, count, name, value = sys.argv[1], *map(json.loads, sys.argv[2:])
start = time.perf_counter()
rows = [
    DeltaTable(path, version=version).to_pyarrow_dataset().count_rows(filter=ds.field(name) == value)
    for version in range(count)
]
print(json.dumps([rows, time.perf_counter() - start]))
"""


def write(folder: Path, commits: int) -> None:
    """Write the table."""
    table = DeltaTable(None, folder, fields=[("id", "long"), ("customer", "long"), ("amount", "double")])
    names: list[list[str]] = []
    for commit in range(commits):
        adds = []
        for number in range(commit * FILES, (commit + 1) * FILES):
            ids = np.arange(number * ROWS, (number + 1) * ROWS)
            columns = {"id": ids, "customer": ids * 31 % 100_003, "amount": ids * 7919 % 1_000_003 / 100.0}
            path = folder / f"{number}.parquet"
            pq.write_table(pa.table(columns), path, compression="zstd")
            bounds = {
                side: {
                    name: column[at].item()
                    for name, column in (("id", ids), ("customer", np.sort(columns["customer"])))
                }
                for side, at in (("minValues", 0), ("maxValues", -1))
            }
            adds.append(add(path.name, size=path.stat().st_size, stats={"numRecords": ROWS, **bounds}))
        removes = [remove(name) for name in (names[commit - LIVE] if commit >= LIVE else [])]
        table.commit(*removes, *adds)
        names.append([f"{number}.parquet" for number in range(commit * FILES, (commit + 1) * FILES)])
        if commit % 10 == 0 and commit:
            table.checkpoint()


def every_file(folder: Path, name: str, value: int) -> dict[str, int]:
    """Return the matching rows of each file that has some, counted by DuckDB."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT filename, count(*) FROM read_parquet('{folder}/*.parquet', filename = true) "
            f"WHERE {name} = {value} GROUP BY filename"
        ).fetchall()
    return {path.rpartition("/")[2]: count for path, count in rows}


def measure(folder: Path, commits: int, name: str, value: int, python: str | None) -> None:
    """Trace a value, and find it by brute force."""
    start = time.perf_counter()
    trace = sx.open_table(str(folder)).trace(f"{name} = {value}")
    ours, start = time.perf_counter() - start, time.perf_counter()
    expected = every_file(folder, name, value)
    peers = {"DuckDB over every file": time.perf_counter() - start}
    stored = {row["path"]: row["stored_rows"] for row in trace.files.to_arrow().to_pylist() if row["stored_rows"]}
    if stored != expected:
        raise SystemExit(f"{len(stored)} files have matching rows, but {len(expected)} by DuckDB")
    if python:
        command = [python, "-c", DELTALAKE, str(folder), *map(json.dumps, (commits + 1, name, value))]
        rows, peers["deltalake over every version"] = json.loads(subprocess.check_output(command))
        if rows != trace.versions.to_arrow().sort_by("version")["rows"].to_pylist():
            raise SystemExit("deltalake counts other rows")
    print(f"{name}: ours {ours:.2f} s", {peer: f"{seconds:.2f} s" for peer, seconds in peers.items()})
    which = "in one file" if len(expected) == 1 else f"in {len(expected):,} files"
    record(
        f"Delta: trace rows {which} through {commits:,} commits and {commits * FILES:,} files, also deleted ones",
        ours,
        peers,
    )


def measure_profile(folder: Path, commits: int, name: str) -> None:
    """Profile a column from its rows, and by the minima and maxima of every file."""
    start = time.perf_counter()
    profile = sx.open_table(str(folder)).profile_over(name, exact=True).columns[name]
    ours, start = time.perf_counter() - start, time.perf_counter()
    with duckdb.connect() as connection:
        files = connection.execute(
            f"SELECT filename, count(*), min({name}), max({name}) "
            f"FROM read_parquet('{folder}/*.parquet', filename = true) GROUP BY filename"
        ).fetchall()
    theirs = time.perf_counter() - start
    ends = min(low for *_, low, _ in files), max(high for *_, high in files)
    known = profile.slice(1)
    if (min(known["min"].to_pylist()), max(known["max"].to_pylist())) != ends:
        raise SystemExit("the minimum or the maximum is not that of DuckDB")
    print(f"profile of {name}: ours {ours:.2f} s, DuckDB over every file {theirs:.2f} s")
    what = f"Delta: the exact profile of a column through {commits:,} commits and {commits * FILES:,} files"
    record(what, ours, {"DuckDB over every file": theirs})


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="?", type=int, default=200)
    parser.add_argument("--deltalake", metavar="PYTHON", help="a Python that has deltalake")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), arguments.commits)
        sx.open_table(folder).trace("amount < 0")  # the first query of DuckDB is slow
        for name, value in (("customer", 42), ("id", 1_234_567)):
            measure(Path(folder), arguments.commits, name, value, arguments.deltalake)
        measure_profile(Path(folder), arguments.commits, "customer")


if __name__ == "__main__":
    main()
