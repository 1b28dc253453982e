"""The row diff of two tables against DuckDB's EXCEPT ALL over their files, lake-sift and reladiff, in one run.

    python tests/benchmarks/pairs.py [ROWS] [--peers PYTHON] [--peak] [--memory MIB] [--once]

Both tables are Delta tables of 20 files; in the second one, 0.1 % of the rows have another amount, and the rows of its
files are cut elsewhere. Compared are the diff by its key and as multisets; both directions of EXCEPT ALL, with
`--memory` within that limit of DuckDB's memory, by default without; and, with
`--peers`, an interpreter that has lake-sift and reladiff[duckdb], lake-sift's comparison of the files by their key
and reladiff's join in DuckDB, in a process each. Two clones, which have the same files, are compared beside it: the
files that were opened are counted. With --peak, the peak memory of both diffs is measured, in a process each. With
--once, for 100 million rows, each is measured once. Prints a table and judges nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import snapshot_explorer as sx

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.support.delta.table_builder import DeltaTable, add

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FILES = 20
FIELDS = [("id", "long"), ("customer", "long"), ("amount", "double"), ("country", "string"), ("at", "timestamp")]
DIFFERENT = 1_000
"""Every so many rows differ."""
REPEATS = 3
LAKE_SIFT = r"""
import sys, time
from lakesift import ParquetSource, diff
a, b = (ParquetSource(folder + "/*.parquet") for folder in sys.argv[1:])
start = time.perf_counter()
with diff(a, b, key=["id"]) as found:
    print("", time.perf_counter() - start, sep="\n")
"""
RELADIFF = r"""
import sys, time
import duckdb
from reladiff import connect_to_table, diff_tables, Algorithm
a, b, path = sys.argv[1:]
with duckdb.connect(path) as connection:
    for name, folder in (("a", a), ("b", b)):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder}/*.parquet')")
names = ("customer", "amount", "country", "at")
start = time.perf_counter()
sides = [connect_to_table("duckdb://" + path, name, "id", extra_columns=names) for name in "ab"]
found = sum(1 for _ in diff_tables(*sides, algorithm=Algorithm.JOINDIFF))
print(found, time.perf_counter() - start, sep="\n")
"""
"""Programs for the peers: the last line that they print are seconds."""


def rows_of(first: int, last: int, *, changed: bool) -> pa.Table:
    """Return rows by their ids; if `changed`, every so many with another amount."""
    ids = np.arange(first, last)
    amounts = (ids * 7919 % 1_000_003) / 100.0
    if changed:
        amounts[ids % DIFFERENT == 0] += 1
    return pa.table(
        {
            "id": ids,
            "customer": ids * 31 % 100_003,
            "amount": amounts,
            "country": pa.array(["DE", "FR", "IT", "ES", "PL"]).take(pa.array(ids % 5)),
            "at": pc.cast(pa.array(ids * 1_000_000), pa.timestamp("us", tz="UTC")),
        }
    )


def write(folder: Path, rows: int, *, changed: bool) -> None:
    """Write a table; the files of the changed one begin at other rows."""
    table = DeltaTable(None, folder, fields=FIELDS)
    cuts = np.linspace(0, rows, FILES + 1).astype(int)
    if changed:
        cuts[1:-1] += rows // FILES // 3
    adds = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        path = folder / f"{number}.parquet"
        pq.write_table(rows_of(first, last, changed=changed), path, compression="zstd")
        adds.append(add(path.name, size=path.stat().st_size, rows=int(last - first)))
    table.commit(*adds)


def clone(folder: Path, of: Path) -> None:
    """Write a table with the files of another one, as a shallow clone."""
    files = [(path, pq.read_metadata(path).num_rows) for path in sorted(of.glob("*.parquet"))]
    DeltaTable(None, folder, fields=FIELDS).commit(
        *(add(f"file://{path}", size=path.stat().st_size, rows=rows) for path, rows in files)
    )


def newest(folder: Path) -> sx.Snapshot:
    """Return the newest version of a table."""
    return sx.open_table(str(folder)).at("latest")


def timed(task: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the clock and of the processor that a task takes."""
    start, used = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - start, time.process_time() - used


def except_all(a: Path, b: Path, memory: int | None) -> None:
    """Count the rows that differ in DuckDB, within these MiB of memory."""
    with duckdb.connect() as connection:
        if memory:
            connection.execute(f"SET memory_limit = '{memory}MiB'; SET temp_directory = '{a.parent / 'temporary'}'")
        sides = [f"SELECT * FROM read_parquet('{folder}/*.parquet')" for folder in (a, b)]
        found = [
            connection.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchone()[0]
            for one, other in (sides, sides[::-1])
        ]
    print(f"  EXCEPT ALL: {found} rows")


def diff(a: Path, b: Path, key: Sequence[str]) -> None:
    """Compare two tables."""
    print(f"  ours: {sx.diff(newest(a), newest(b), key).counts}")


def peer(python: str, program: str, *arguments: object) -> float:
    """Return the seconds that a peer prints."""
    done = subprocess.run(
        [python, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=1_200
    )
    if done.returncode:
        print(done.stderr[-2_000:], file=sys.stderr)
        raise SystemExit("a peer failed")
    return float(done.stdout.split()[-1])


def peak(a: str, b: str, *key: str) -> None:
    """Compare two tables and print the peak memory of this process."""
    diff(Path(a), Path(b), key)
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(line for line in lines if line.startswith("VmHWM")))


def measure(name: str, repeats: int, ours: Callable[[], None], theirs: Callable[[], None]) -> tuple[float, float]:
    """Measure both in turns; return the medians of the clock."""
    if repeats > 1:
        ours()  # memory that a process uses for the first time is slow
    turns = [(timed(ours), timed(theirs)) for _ in range(repeats)]
    (mine, own), (other, used) = (
        tuple(statistics.median(turn[side][place] for turn in turns) for place in (0, 1)) for side in (0, 1)
    )
    print(f"{name:<40} ours {mine:6.2f} s ({own:.2f} of the processor)   EXCEPT ALL {other:6.2f} s ({used:.2f})")
    print(f"{'':<40} ratio {mine / other:.2f}, of the processor {own / used:.2f}")
    return mine, other


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--peers", help="a Python that has lake-sift and reladiff")
    parser.add_argument("--peak", action="store_true")
    parser.add_argument("--memory", type=int, help="MiB of memory that DuckDB may use")
    parser.add_argument("--once", action="store_true")
    arguments = parser.parse_args()
    rows = f"{arguments.rows / 10**6:g} million rows"
    with tempfile.TemporaryDirectory() as place:
        a, b, c = (Path(place) / name for name in ("a", "b", "clone"))
        write(a, arguments.rows, changed=False)
        write(b, arguments.rows, changed=True)
        clone(c, a)
        start = time.perf_counter()
        plan = sx.diff(newest(a), newest(c), preview=True)
        print(f"clones: {time.perf_counter() - start:.3f} s, {plan.a.files + plan.b.files} files to open. {plan.proof}")
        repeats, memory = 1 if arguments.once else REPEATS, arguments.memory
        name = "two `EXCEPT ALL` in DuckDB" + (f" within {memory} MiB" if memory else "")
        mine, theirs = measure("by key", repeats, lambda: diff(a, b, ["id"]), lambda: except_all(a, b, memory))
        peers = {name: theirs}
        if arguments.peers:
            peers["lake-sift"] = peer(arguments.peers, LAKE_SIFT, a, b)
            peers["reladiff's join in DuckDB"] = peer(arguments.peers, RELADIFF, a, b, Path(place) / "reladiff.db")
            print({name: f"{seconds:.2f} s, ratio {mine / seconds:.2f}" for name, seconds in peers.items()})
        record(f"Two Delta tables of {rows} of which 0.1 % differ: rows that differ, by key", mine, peers)
        mine, theirs = measure("without a key", repeats, lambda: diff(a, b, []), lambda: except_all(a, b, memory))
        record(
            f"Two Delta tables of {rows} of which 0.1 % differ: rows that differ, as multisets",
            mine,
            {name: theirs},
        )
        for key in (["id"], []) if arguments.peak else ():
            subprocess.run([sys.executable, __file__, "--peak-of", str(a), str(b), *key], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak-of"]:
        peak(*sys.argv[2:])
    else:
        main()
