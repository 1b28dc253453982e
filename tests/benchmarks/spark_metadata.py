"""Measure the lifetimes of a million file changes on Spark, with one core and with two, beside the local engine.

    python tests/benchmarks/spark_metadata.py [--changes 1000000] [--commits 500] [--rounds 1] [--memory 4g]

Writes a Paimon and a Delta history of so many changes, metadata alone, to a temporary folder. Each measurement is a
process of its own that opens the table and makes all lifetimes: on Spark every column of every row, with nothing
collected. All that local[N] starts is bound to N cores: the JVM's compiler and Spark's Python workers would otherwise
take the other cores too, and one core would look as fast as two.

Prints seconds without the start of the session: of the first time, while the JVM still compiles Spark, and of the
second in the same session, from the round whose first time is shortest. Also seconds of the processor for all of it,
and the peak memory of all processes together, the JVM included. Asserts nothing. Linux alone binds processes to cores.
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
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks import delta_open, paimon_history
from tests.benchmarks.report import record
from tests.support.delta.table_builder import ACTIONS

ENGINES = ("local[1]", "local[2]", "local engine")


def write_delta(root: Path, changes: int, commits: int) -> None:
    """Write a log whose commits add files and remove half of what the one before added, with a checkpoint."""
    delta_open.write(root, 1)
    log = root / "_delta_log"
    first = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    reported = [line for line in first if "commitInfo" not in line]  # protocol, metaData and the files of version 0
    each, before = changes * 2 // (commits * 3), []
    for version in range(1, commits + 1):
        added = [delta_open.add(version, place) for place in range(each)]
        removed = [
            {"remove": {"path": one["add"]["path"], "dataChange": True, "size": one["add"]["size"]}}
            for one in before[: each // 2]
        ]
        lines = (json.dumps(one, separators=(",", ":")) for one in (delta_open.info(version), *removed, *added))
        (log / f"{version:020d}.json").write_text("\n".join(lines))
        reported += before[each // 2 :]
        before = added
    # Writers leave a checkpoint every few commits; without any, opening reads the whole log.
    pq.write_table(
        pa.Table.from_pylist(reported + before, pa.schema(ACTIONS)), log / f"{commits:020d}.checkpoint.parquet"
    )


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
    """Make the lifetimes of a table twice, and print seconds, lifetimes, bytes of memory, seconds of the processor."""
    done, found = threading.Event(), []
    watching = threading.Thread(target=lambda: found.extend(watch(os.getpid(), done)))
    watching.start()
    if engine == "local engine":
        rows, seconds = twice(lambda: len(open_table(root).lifetimes()))
    else:
        rows, seconds = _on_spark(engine, root, memory)
    done.set()
    watching.join()
    print(json.dumps([seconds, rows, *found]))


def twice(count: Callable[[], int]) -> tuple[int, list[float]]:
    """Return what is counted, and the seconds that it takes the first time and again."""
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        rows = count()
        seconds.append(time.perf_counter() - begin)
    return rows, seconds


def _on_spark(master: str, root: str, memory: str) -> tuple[int, list[float]]:
    cores = int(master.removeprefix("local[").removesuffix("]"))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])  # what is started from here on inherits it
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.driver.memory": memory, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
    settings["spark.ui.showConsoleProgress"] = "false"
    spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    spark.range(10).mapInArrow(lambda batches: batches, "id bigint").count()  # the first worker takes long to start

    def count() -> int:
        lifetimes = open_table(root).lifetimes(engine="spark", spark=spark)
        observed = lifetimes.select(f.count(f.lit(1)), *(f.count(f.col(name)) for name in lifetimes.columns)).first()
        return int(observed[0])

    found = twice(count)
    spark.stop()
    return found


def measured(engine: str, root: Path, given: argparse.Namespace) -> tuple[float, float]:
    """Measure in processes of their own, print the best and return its seconds, of the first time and of the second."""
    runs = []
    for _ in range(given.rounds):
        command = [sys.executable, __file__, "--one", engine, "--table", str(root), "--memory", given.memory]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    (first, again), rows, memory, busy = min(runs)
    reported = f"{first:6.1f} s   again {again:6.1f} s   {busy:6.1f} s of the processor   {memory / 2**30:5.2f} GiB"
    reported += f"   {rows:,} lifetimes"
    print(f"  {engine:<14} {reported}", flush=True)
    return first, again


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
            found = {engine: measured(engine, root, given) for engine in ENGINES}
            work = (
                f"Spark: when each file was added and removed, {given.changes:,} changes in {given.commits:,} commits"
            )
            for at, when in enumerate(("", ", a second time in the session")):
                beside = {"one core": found["local[1]"][at]}
                record(f"{work}, {root.name.capitalize()}{when}", found["local[2]"][at], beside)


if __name__ == "__main__":
    main()
