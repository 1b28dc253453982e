"""The history of all rows of a Delta table against DuckDB reading each of its files once.

    python tests/benchmarks/row_history.py [ROWS] [COMMITS]

The table has 100 files; half of them are appended one by one, and each of the others replaces a file with a tenth of
its rows changed, or comes with a deletion vector of another file. The rest of the commits are empty. Both return Arrow
batches of all columns. Prints a table and judges nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import duckdb

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.benchmarks.rows_diff import FIELDS, FILES, rows_of, written
from tests.benchmarks.timing import timed
from tests.support.delta.table_builder import DeltaTable, add, remove

APPENDED = FILES // 2


def write(folder: Path, rows: int, commits: int) -> None:
    """Write the table: files that are appended, some of which later commits replace or delete rows of."""
    table = DeltaTable(None, folder, fields=FIELDS, features=["deletionVectors"])
    for number in range(APPENDED):
        table.commit(written(folder, f"{number}-1.parquet", rows_of(number, rows, changed=0)))
    for number in range(APPENDED):
        old = f"{number}-1.parquet"
        if number % 2:
            new = written(folder, f"{number}-2.parquet", rows_of(number, rows, changed=0.1))
            table.commit(remove(old), new, operation="UPDATE")
        else:
            vector = table.vector(range(0, rows, 10))
            size = (folder / old).stat().st_size
            new = written(folder, f"{number + FILES}-1.parquet", rows_of(number + FILES, rows, changed=0))
            table.commit(remove(old), add(old, size=size, rows=rows, vector=vector), new, operation="DELETE")
    while table.version < commits:
        table.commit()
    table.checkpoint()


def main() -> None:
    given = [int(argument) for argument in sys.argv[1:]]
    total, commits = given[0] if given else 10_000_000, given[1] if len(given) > 1 else 200
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, total // FILES, commits)

        def ours() -> None:
            history = open_table(str(folder)).row_history()
            rows = sum(part.num_rows for part in history.tables())
            print(f"  ours: {rows:,} states; reads {history.plan.reading}")

        def theirs() -> None:
            with duckdb.connect() as connection:
                reader = connection.execute(f"SELECT * FROM read_parquet('{folder}/*.parquet')").to_arrow_reader()
                print(f"  DuckDB: {sum(batch.num_rows for batch in reader):,} rows")

        ours()  # memory that a process uses for the first time is slow
        pairs = [(timed(ours), timed(theirs)) for _ in range(3)]
    mine, other = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"ours {mine:.2f} s   DuckDB {other:.2f} s   ratio {mine / other:.2f}")
    record(
        f"Delta: the history of {total / 10**6:g} million rows in {FILES} files over {commits} commits",
        mine,
        {"DuckDB over every file": other},
    )


if __name__ == "__main__":
    main()
