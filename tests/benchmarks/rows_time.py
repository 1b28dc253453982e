"""Measure questions about rows through time: blame of one key, bisection by rows, and a profile from metadata.

    python tests/benchmarks/rows_time.py [--commits 1000] [--files 10] [--long 10000]

Writes Delta tables on the local disk and prints seconds and what was opened; asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[2]))

from snapshot_explorer import open_table
from snapshot_explorer.lifetimes import read_statistics
from tests.support.delta.table_builder import DeltaTable, add

_ROWS = 100
_COLUMNS = 10
_LIVE = 30


def timed(work, runs=1):
    """Return the least seconds of some runs, and the last result."""
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds), found


def keyed(folder, commits, files):
    """Write a table of so many commits, each of which adds files of disjoint ids, and one that updates id 42."""
    table = DeltaTable(None, folder, fields=(("id", "long"), ("amount", "double")))
    last = None
    for commit in range(commits - 2):
        actions = []
        for number in range(files):
            first = (commit * files + number) * _ROWS
            actions.append(_file(table, f"part-{commit}-{number}.parquet", first))
        last = last or actions[0]
        table.commit(*actions)
    removed = {"remove": {"path": "part-0-0.parquet", "dataChange": True, "deletionTimestamp": 0}}
    table.commit(_file(table, "updated.parquet", 0, amount=-1.0), removed, operation="UPDATE")


def _file(table, name, first, amount=1.0):
    rows = pa.table({"id": pa.array(range(first, first + _ROWS), pa.int64()), "amount": pa.repeat(amount, _ROWS)})
    path = Path(table.root) / name
    pq.write_table(rows, path)
    stats = {
        "numRecords": _ROWS,
        "minValues": {"id": first, "amount": amount},
        "maxValues": {"id": first + _ROWS - 1, "amount": amount},
        "nullCount": {"id": 0, "amount": 0},
    }
    return add(name, size=path.stat().st_size, stats=json.dumps(stats))


def long(folder, commits):
    """Write the log of a table of so many commits, each of which adds a file and, from the 30th on, removes one."""
    names = [f"c{number}" for number in range(_COLUMNS)]
    table = DeltaTable(None, folder, fields=tuple((name, "long") for name in names))
    for commit in range(commits - 1):
        stats = {
            "numRecords": _ROWS,
            "minValues": dict.fromkeys(names, commit),
            "maxValues": dict.fromkeys(names, commit + _ROWS),
            "nullCount": dict.fromkeys(names, commit % 7),
        }
        actions = [add(f"part-{commit}.parquet", stats=json.dumps(stats))]
        if commit >= _LIVE:
            path = f"part-{commit - _LIVE}.parquet"
            actions.append({"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0}})
        table.commit(*actions)


def bisected(root, announced, *, once):
    """Return what a bisection by rows finds, by loads or in a single pass."""
    return open_table(root).bisect("min(amount) < 0", announce=announced.append, single_pass=once)


def main():
    asked = argparse.ArgumentParser(description=sys.modules[__name__].__doc__)
    asked.add_argument("--commits", type=int, default=1_000)
    asked.add_argument("--files", type=int, default=10)
    asked.add_argument("--long", type=int, default=10_000)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "keyed"
        keyed(root, given.commits, given.files)
        seconds, found = timed(lambda: open_table(root).blame("id = 42", key="id"), 3)
        print(f"blame of one key over {len(found.versions):,} versions and {found.files:,} files: {seconds:.2f} s")
        print(f"  admitted {found.admitted_files}, opened {found.opened_files}, lines {len(found)}")
        for once in (False, True):
            announced = []
            seconds, found = timed(lambda: bisected(root, announced, once=once))  # noqa: B023 - called at once
            print(f"bisect by rows over {len(found.versions):,} versions: {seconds:.2f} s")
            print(f"  evaluated {len(found.evaluated):,} versions. {announced[0]}")
        root = Path(name) / "long"
        long(root, given.long)
        names = [f"c{number}" for number in range(_COLUMNS)]
        floor, _ = timed(lambda: open_table(root).lifetimes(), 3)
        with_statistics, _ = timed(lambda: _statistics(open_table(root), names), 3)
        ours, found = timed(lambda: open_table(root).profile_over(names), 3)
        print(f"profile of {_COLUMNS} columns over {len(found.versions):,} versions: {ours:.2f} s")
        print(
            f"  lifetimes {floor:.2f} s, with statistics {with_statistics:.2f} s: {ours / with_statistics:.2f} of that"
        )


def _statistics(table, names):
    return read_statistics(table.bound, names, table.current.version)


if __name__ == "__main__":
    main()
