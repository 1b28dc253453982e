"""How long many small files take to read: ours against the library that wrote them, in turns in one run.

    python tests/benchmarks/small_files.py delta PYTHON_WITH_DELTALAKE [FILES]
    python tests/benchmarks/small_files.py paimon PYTHON_WITH_PYPAIMON [FILES]

Prints seconds of the processor, and judges nothing. Each file has 20 rows and is a partition of its own. That of
Iceberg is in `iceberg_rows.py`.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record

ROUNDS = 3
ROWS = """
import sys, time
import numpy as np, pyarrow as pa
folder, files, does_write = sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3
n = 20 * files
rows = pa.table({"part": pa.array(np.arange(n) // 20, pa.int32()), "id": np.arange(n), "amount": np.arange(n) / 2,
                 "name": [f"n{i}" for i in range(n)]})
"""
TIMED = """
    start = time.process_time()
    found = read()
    print(time.process_time() - start, found.num_rows)
"""
DELTA = f"""{ROWS}
from deltalake import DeltaTable, QueryBuilder, write_deltalake
if does_write:
    write_deltalake(folder + "/t", rows, partition_by=["part"])
else:
    def read():
        return QueryBuilder().register("t", DeltaTable(folder + "/t")).execute("select * from t").read_all()
{TIMED}
"""
PAIMON = f"""{ROWS}
from pypaimon import CatalogFactory, Schema
catalog = CatalogFactory.create({{"warehouse": folder}})
if does_write:
    catalog.create_database("d", ignore_if_exists=True)
    catalog.create_table("d.t", Schema.from_pyarrow_schema(rows.schema, partition_keys=["part"]), False)
    builder = catalog.get_table("d.t").new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(rows)
    builder.new_commit().commit(writer.prepare_commit())
    writer.close()
else:
    def read():
        builder = CatalogFactory.create({{"warehouse": folder}}).get_table("d.t").new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())
{TIMED}
"""
PEERS = {"delta": ("deltalake", DELTA, "t"), "paimon": ("pypaimon", PAIMON, "d.db/t")}
"""By format the peer, its script, and where it puts the table."""


def measure(table_format: str, folder: Path, python: str, files: int) -> None:
    peer, script, place = PEERS[table_format]
    command = [python, "-W", "ignore", "-c", script, str(folder), str(files)]
    subprocess.run([*command, "write"], check=True, capture_output=True)
    mine, theirs = [], []
    for _ in range(ROUNDS):
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        start = time.process_time()
        found = open_table(folder / place).at("latest").to_arrow()
        mine.append(time.process_time() - start)
        theirs.append(float(answer[-2]))
        if found.num_rows != int(answer[-1]):
            raise SystemExit(f"{found.num_rows} rows, and {peer} returns {answer[-1]}")
    best, other = min(mine), min(theirs)
    print(f"{files} files of 20 rows   ours {best:6.2f} s   {peer} {other:6.2f} s   ratio {best / other:4.2f}")
    name = table_format.capitalize()
    record(f"{name}: read {files:,} files of 20 rows", best, {peer: other}, processor=True)


def main() -> None:
    logging.disable(logging.WARNING)
    table_format, python = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        measure(table_format, Path(folder), python, int(sys.argv[3]) if len(sys.argv) > 3 else 4000)


if __name__ == "__main__":
    main()
