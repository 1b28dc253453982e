"""How long rows of a Delta table take: ours against pyarrow's bare read of the same files and deltalake's, in one run.

    python tests/benchmarks/delta_rows.py [ROWS [PYTHON_WITH_DELTALAKE]]

Prints a table and judges nothing: the ratio to pyarrow says what planning, casting and deletion vectors cost beyond
reading bytes. The log has been read before the clock starts, for deltalake too.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.schema import arrow_schema
from snapshot_explorer.formats.delta.scan import planning, read
from snapshot_explorer.storage import Storage

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.delta.table_builder import DeltaTable, add

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 4
FIELDS = [("id", "long"), ("name", "string"), ("amount", "double"), ("at", "timestamp"), ("day", "date")]
REPEATS = 5
DELTALAKE = """
import sys, time
from deltalake import DeltaTable, QueryBuilder
table = DeltaTable(sys.argv[1])
query = QueryBuilder().register("t", table)
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    found = query.execute(f"select {sys.argv[3]} from t").read_all()
    print(time.perf_counter() - start)
"""


class Reader:
    """Just what the engine asks of a format."""

    def __init__(self, folder: str) -> None:
        self.storage = Storage(folder)

    def read(self, split, columns, predicate=None):
        return read.read(self.storage, split, columns)

    def split_by_file(self, split):
        return (split,)

    def native_files(self, split):
        return None


def rows_of(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count, dtype=np.int64)
    return pa.table(
        {
            "id": ids,
            "name": pa.array([f"name {number}" for number in ids % 1000]),
            "amount": np.random.default_rng(start).random(count),
            "at": pa.array(ids * 1000, pa.timestamp("us", tz="UTC")),
            "day": pa.array((ids % 10_000).astype(np.int32), pa.date32()),
        }
    )


def write(folder: Path, rows: int, *, deleted: bool, int96: bool) -> DeltaTable:
    features = ["deletionVectors"] if deleted else None
    table = DeltaTable(None, folder, fields=FIELDS, features=features)
    for number in range(FILES):
        found = rows_of(number * rows, rows)
        vector = table.vector(range(number, rows, 100)) if deleted else None
        name = f"part-{number}.parquet"
        marked = found.replace_schema_metadata({"org.apache.spark.version": "3.5.0"})
        pq.write_table(marked, folder / name, use_deprecated_int96_timestamps=int96)
        table.commit(add(name, size=(folder / name).stat().st_size, rows=rows, vector=vector))
    return table


def timed(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def measure(name: str, folder: Path, columns: list[str], python: str | None) -> None:
    reader = Reader(str(folder))
    state = DeltaLog(reader.storage).state(FILES)
    schema = arrow_schema(state.metadata)
    paths = [str(path) for path in sorted(folder.glob("*.parquet"))]

    def ours() -> pa.Table:
        plan = planning.plan(reader.storage, state)
        return local.to_arrow(reader, plan.splits, scan_of(schema, columns))

    def bare() -> pa.Table:
        return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])

    ours(), bare()
    pairs = [(timed(ours), timed(bare)) for _ in range(REPEATS)]
    mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    reported = f"{name:<28} ours {mine * 1000:7.0f} ms   pyarrow {theirs * 1000:7.0f} ms   ratio {mine / theirs:4.2f}"
    if python:
        command = [python, "-c", DELTALAKE, str(folder), str(REPEATS + 1), ", ".join(columns)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        other = statistics.median([float(line) for line in answer.stdout.split()][1:])
        reported += f"   deltalake {other * 1000:7.0f} ms   ratio {mine / other:4.2f}"
    print(reported)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    python = sys.argv[2] if len(sys.argv) > 2 else None
    print(f"{FILES} files of {rows:,} rows, median of {REPEATS}")
    names = [name for name, _ in FIELDS]
    for title, deleted, int96 in (("plain", False, False), ("deletion vectors", True, False), ("INT96", False, True)):
        with tempfile.TemporaryDirectory() as place:
            write(Path(place), rows, deleted=deleted, int96=int96)
            measure(title, Path(place), names, python)
            measure(f"{title}, one column", Path(place), ["id"], python)


if __name__ == "__main__":
    main()
