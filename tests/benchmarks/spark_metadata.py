"""Measure the lifetimes of a million file changes on Spark, with one core and with two, beside the local engine.

    python tests/benchmarks/spark_metadata.py [--changes 1000000] [--commits 500] [--rounds 1] [--memory 4g]

Writes a Paimon and a Delta history of so many changes, metadata alone, to a temporary folder. Each measurement is a
process of its own that opens the table and makes all lifetimes: on Spark every column of every row, with nothing
collected. Prints seconds, without the start of the session, the best of the rounds; seconds of the processor, with it;
and the peak memory of all processes together, the JVM included. Asserts nothing. On a machine with other work the
processor's time is the one to judge by.
"""

# ruff: noqa: T201 - it prints what it measured
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import delta_open
import paimon_history

from snapshot_explorer import open_table

ENGINES = ("local[1]", "local[2]", "local engine")


def write_delta(root: Path, changes: int, commits: int) -> None:
    """Write a log in which each commit adds files and removes half of what the one before it added."""
    delta_open.write(root, 1)
    each, before = changes * 2 // (commits * 3), []
    for version in range(1, commits + 1):
        added = [delta_open.add(version, place) for place in range(each)]
        removed = [
            {"remove": {"path": one["add"]["path"], "dataChange": True, "size": one["add"]["size"]}}
            for one in before[: each // 2]
        ]
        lines = (json.dumps(one, separators=(",", ":")) for one in (delta_open.info(version), *removed, *added))
        (root / "_delta_log" / f"{version:020d}.json").write_text("\n".join(lines))
        before = added


def watch(process: int, done: threading.Event) -> tuple[int, float]:
    """Return the most bytes that a process and its children held at once, and their seconds of the processor."""
    most, ticks = 0, {}
    while not done.wait(0.2):
        found = {int(entry.name): _status(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal()}
        family = {process}
        while more := {child for child, (parent, _, _) in found.items() if parent in family} - family:
            family |= more
        most = max(most, sum(found[one][1] for one in family if one in found))
        ticks |= {one: found[one][2] for one in family if one in found}
    return most, sum(ticks.values()) / os.sysconf("SC_CLK_TCK")


def _status(process: Path) -> tuple[int, int, int]:
    """Return the parent of a process, its bytes of memory and its ticks of the processor; zeros if it has ended."""
    try:
        parts = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0, 0
    return int(parts[1]), int(parts[21]) * os.sysconf("SC_PAGE_SIZE"), int(parts[11]) + int(parts[12])


def one(engine: str, root: str, memory: str) -> None:
    """Make the lifetimes of a table, and print seconds, lifetimes, bytes of memory and seconds of the processor."""
    done, found = threading.Event(), []
    watching = threading.Thread(target=lambda: found.extend(watch(os.getpid(), done)))
    watching.start()
    if engine == "local engine":
        begin = time.perf_counter()
        rows = len(open_table(root).lifetimes())
        seconds = time.perf_counter() - begin
    else:
        rows, seconds = _on_spark(engine, root, memory)
    done.set()
    watching.join()
    print(json.dumps([seconds, rows, *found]))


def _on_spark(master: str, root: str, memory: str) -> tuple[int, float]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.driver.memory": memory, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
    settings["spark.ui.showConsoleProgress"] = "false"
    spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    spark.range(10).mapInArrow(lambda batches: batches, "id bigint").count()  # the first worker takes long to start
    begin = time.perf_counter()
    lifetimes = open_table(root).lifetimes(engine="spark", spark=spark)
    observed = lifetimes.select(f.count(f.lit(1)), *(f.count(f.col(name)) for name in lifetimes.columns)).first()
    seconds = time.perf_counter() - begin
    spark.stop()
    return int(observed[0]), seconds


def measured(engine: str, root: Path, given: argparse.Namespace) -> None:
    """Measure in processes of their own, and print the best."""
    runs = []
    for _ in range(given.rounds):
        command = [sys.executable, __file__, "--one", engine, "--table", str(root), "--memory", given.memory]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    seconds, rows, memory, busy = min(runs)
    told = f"{seconds:8.1f} s   {busy:8.1f} s of the processor   {memory / 2**30:6.2f} GiB   {rows:,} lifetimes"
    print(f"  {engine:<14} {told}", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=sys.modules[__name__].__doc__)
    asked.add_argument("--changes", type=int, default=1_000_000)
    asked.add_argument("--commits", type=int, default=500)
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--memory", default="4g")
    asked.add_argument("--one", choices=ENGINES, help=argparse.SUPPRESS)
    asked.add_argument("--table", help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.one:
        one(given.one, given.table, given.memory)
        return
    with tempfile.TemporaryDirectory() as name:
        paimon, delta = Path(name) / "paimon", Path(name) / "delta"
        # A compaction takes away nine tenths of what is added in between: nearly two changes for each file.
        paimon_history.write(paimon, given.commits, given.changes * 10 // 19, compacted=True)
        write_delta(delta, given.changes, given.commits)
        for root in (paimon, delta):
            print(f"{root.name}, {given.changes:,} changes in {given.commits:,} commits:", flush=True)
            for engine in ENGINES:
                measured(engine, root, given)


if __name__ == "__main__":
    main()
