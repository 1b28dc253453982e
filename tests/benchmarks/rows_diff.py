"""Row diffs of a Delta table against EXCEPT ALL in DuckDB, in one run.

    python tests/benchmarks/rows_diff.py [ROWS] [--spark] [--peak]

The table has 100 files. Version 2 has one of them written again with other amounts in every tenth row, version 3 has
half of them written again. Compared are one direction of EXCEPT ALL over all files of both versions, and over just the
files that differ; the diff gives both directions. With --spark, exceptAll of Spark over the same files, by its own
parquet reader in a local session, is measured beside it. With --peak, last, in a process of its own, two versions of
four times as many rows without a common one are compared and written to Parquet, and the peak memory is measured.
Prints a table and judges nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.benchmarks.timing import timed
from tests.support.delta.table_builder import DeltaTable, add, remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 100
FIELDS = [
    ("id", "long"),
    ("customer", "long"),
    ("amount", "double"),
    ("country", "string"),
    ("note", "string"),
    ("at", "timestamp"),
]
GREAT = "great"


def rows_of(number: int, rows: int, *, changed: float) -> pa.Table:
    """Return the rows of a file; of a changed one that share of the amounts differs."""
    ids = np.arange(number * rows, (number + 1) * rows)
    random = np.random.default_rng(number)
    amounts = random.random(rows)
    amounts[: int(rows * changed)] += 1
    return pa.table(
        {
            "id": ids,
            "customer": random.integers(0, 100_000, rows),
            "amount": amounts,
            "country": pa.array(["DE", "FR", "IT", "ES", "PL"]).take(pa.array(random.integers(0, 5, rows))),
            "note": pc.binary_join_element_wise("the note of order ", pa.array(ids).cast(pa.string()), ""),
            "at": pa.array(ids * 1_000_000, pa.timestamp("us", tz="UTC")),
        }
    )


def written(folder: Path, name: str, rows: pa.Table) -> dict[str, object]:
    pq.write_table(rows, folder / name, compression="zstd")
    return add(name, size=(folder / name).stat().st_size, rows=rows.num_rows)


def rewrite(table: DeltaTable, folder: Path, numbers: range, rows: int, *, changed: float) -> None:
    """Commit the files of some numbers written again."""
    version = table.version + 1
    adds = [written(folder, f"{one}-{version}.parquet", rows_of(one, rows, changed=changed)) for one in numbers]
    paths = [action["add"]["path"] for action in table.state() if "add" in action]
    live = {int(path.partition("-")[0]): path for path in paths}
    table.commit(*(remove(live[one]) for one in numbers), *adds)


def except_all(before: list[str], after: list[str]) -> None:
    with duckdb.connect() as connection:
        a, b = (f"SELECT * FROM read_parquet({paths})" for paths in (before, after))
        found = connection.execute(f"SELECT count(*) FROM ({b} EXCEPT ALL {a})")
        print(f"  EXCEPT ALL: {found.fetchone()[0]:,} rows")


def except_all_in_spark(spark: SparkSession, before: list[str], after: list[str]) -> None:
    a, b = (spark.read.parquet(*paths) for paths in (before, after))
    print(f"  exceptAll of Spark: {b.exceptAll(a).count():,} rows")


def session() -> SparkSession:
    """Return a local session, started and warm."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    settings |= {"spark.sql.shuffle.partitions": "8", "spark.driver.memory": "4g"}
    spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    spark.range(100_000).exceptAll(spark.range(10)).count()
    return spark


def measure(
    name: str,
    folder: Path,
    pair: tuple[int, int],
    *,
    changed_only: bool,
    repeats: int,
    spark: SparkSession | None = None,
) -> None:
    paths = []
    rows = f"{open_table(str(folder)).at(pair[0]).count() / 10**6:g} million rows"
    states = [set(open_table(str(folder)).at(version).files()["path"].to_pylist()) for version in pair]
    for own, other in (states, states[::-1]):
        chosen = own - other if changed_only else own
        paths.append([str(folder / one) for one in sorted(chosen)])

    def ours() -> None:
        diff = open_table(str(folder)).diff_rows(*pair)
        print(f"  ours: {len(diff.after):,} rows; {diff.plan.announcement}")

    ours()  # memory that a process uses for the first time is slow
    pairs = [(timed(ours), timed(lambda: except_all(*paths))) for _ in range(repeats)]
    mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"{name:<40} ours {mine:6.2f} s   EXCEPT ALL {theirs:6.2f} s   ratio {mine / theirs:5.3f}")
    beside = "`EXCEPT ALL` in DuckDB over the changed files" if changed_only else "`EXCEPT ALL` in DuckDB"
    record(f"Delta: rows that differ between two versions of {rows}, {name}", mine, {beside: theirs})
    if spark is not None:
        turns = [(timed(ours), timed(lambda: except_all_in_spark(spark, *paths))) for _ in range(repeats)]
        mine, theirs = (statistics.median(times) for times in zip(*turns, strict=True))
        print(f"{name:<40} ours {mine:6.2f} s   Spark {theirs:6.2f} s   ratio {mine / theirs:5.3f}")


def peak_bytes() -> int:
    """Return the greatest resident size of this process so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def great(folder: Path) -> None:
    """Compare two versions without a common row and write the result."""
    before = peak_bytes()
    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        diff = open_table(str(folder)).diff_rows(1, 2)
        read = time.perf_counter() - start
        diff.to_parquet(Path(place) / "diff.parquet")
        whole = time.perf_counter() - start
    size = sum(part.nbytes for part in diff.changed.parts())
    print(
        f"{sum(diff.changed.counts.values()):,} changed rows, {size / 1e9:.1f} GB in Arrow: diff {read:.0f} s, with "
        f"Parquet {whole:.0f} s, peak {peak_bytes() / 2**30:.2f} GiB (at the start {before / 2**30:.2f})"
    )


def main() -> None:
    given = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    spark = session() if "--spark" in sys.argv else None
    each = (int(given[0]) if given else 10_000_000) // FILES
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = DeltaTable(None, folder, fields=FIELDS)
        table.commit(*(written(folder, f"{one}-1.parquet", rows_of(one, each, changed=0)) for one in range(FILES)))
        rewrite(table, folder, range(7, 8), each, changed=0.1)
        measure("1 of 100 files changed", folder, (1, 2), changed_only=False, repeats=1, spark=spark)
        rewrite(table, folder, range(50, 100), each, changed=0.1)
        measure("half of the files changed", folder, (2, 3), changed_only=True, repeats=3, spark=spark)
    if "--peak" not in sys.argv:
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = DeltaTable(None, folder, fields=FIELDS)
        table.commit(*(written(folder, f"{one}-1.parquet", rows_of(one, 4 * each, changed=0)) for one in range(FILES)))
        rewrite(table, folder, range(FILES), 4 * each, changed=1)
        subprocess.run([sys.executable, __file__, GREAT, str(folder)], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [GREAT]:
        great(Path(sys.argv[2]))
    else:
        main()
