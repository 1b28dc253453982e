"""Measure DuckLake's metadata and rows beside DuckDB with its own extension, on one lake.

    python tests/benchmarks/ducklake_metadata.py [snapshots] [files] [python with duckdb and the ducklake extension]

The extension makes a lake with two tables: `rows`, whose files and snapshots are then written into the catalog by SQL,
and `orders`, with rows and delete files. Both open the lake anew in each run. Prints seconds of the processor, the best
of several runs, and their ratio, and the peak of memory of a process; asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks import timing

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 3
CONNECT = """
import json, os, sys, time, duckdb, duckdb_extension_ducklake
from pathlib import Path
os.chdir(sys.argv[1])
(extension,) = Path(duckdb_extension_ducklake.__file__).parent.rglob("*.duckdb_extension")
def connect():
    connection = duckdb.connect()
    connection.execute(f"load '{extension}'")
    connection.execute("attach 'ducklake:lake.ducklake' as lake (data_path 'data/', data_inlining_row_limit 0)")
    return connection
"""
MAKE = """
snapshots, files = int(sys.argv[2]), int(sys.argv[3])
connection = connect()
connection.execute("create table lake.rows (id bigint, day date, amount double, note varchar)")
connection.execute("create table lake.orders (id bigint, day date, amount double, note varchar)")
for number in range(10):
    connection.execute(
        "insert into lake.orders select i, date '2026-01-01' + (i % 90)::int, i / 7, 'order ' || i "
        f"from range({number} * 200000, {number + 1} * 200000) t(i)"
    )
connection.execute("delete from lake.orders where id % 50 = 0")
connection.execute("insert into lake.rows values (1, date '2026-01-01', 1, 'one')")
connection.close()
catalog = duckdb.connect("lake.ducklake")
(first,) = catalog.execute("select max(snapshot_id) from ducklake_snapshot").fetchone()
(table,) = catalog.execute("select table_id from ducklake_table where table_name = 'rows'").fetchone()
(start,) = catalog.execute("select next_file_id from ducklake_snapshot order by all desc limit 1").fetchone()
catalog.execute(f'''
    insert into ducklake_snapshot by name select {first} + i as snapshot_id, now() + to_seconds(i) as snapshot_time,
        schema_version, next_catalog_id, {start} + i * {files} // {snapshots} as next_file_id
        from ducklake_snapshot, range(1, {snapshots} + 1) t(i) where snapshot_id = {first};
    insert into ducklake_snapshot_changes by name select {first} + i as snapshot_id,
        'inserted_into_table:{table},deleted_from_table:{table}' as changes_made from range(1, {snapshots} + 1) t(i);
    insert into ducklake_data_file by name select {start} + i as data_file_id, {table} as table_id,
        {first} + 1 + i * {snapshots} // {files} as begin_snapshot,
        case when i % 10 = 0 and i * {snapshots} // {files} + 5 < {snapshots}
            then {first} + 6 + i * {snapshots} // {files} end as end_snapshot,
        'ducklake-' || i || '.parquet' as path, true as path_is_relative, 'parquet' as file_format,
        1000 as record_count, 20000 as file_size_bytes, 500 as footer_size, i * 1000 + 1 as row_id_start
        from range({files}) t(i);
    insert into ducklake_file_column_stats by name select {start} + i as data_file_id, {table} as table_id,
        c as column_id, 1000 as column_size_bytes, 1000 as value_count, 0 as null_count,
        [(i * 1000)::varchar, '2026-01-01', '0.5', 'a'][c] as min_value,
        [(i * 1000 + 999)::varchar, '2026-03-31', '9.5', 'z'][c] as max_value,
        false as contains_nan from range({files}) t(i), range(1, 5) u(c);
''')
catalog.close()
"""
PEER = """
questions = {
    "open and history": ("from ducklake_snapshots('lake')", "from lake.rows limit 0"),
    "files": ("from ducklake_list_files('lake', 'rows')",),
    "plan of a condition": (
        "from lake.rows limit 0",
        "explain select * from lake.rows where id between 5000000 and 5009999",
    ),
    "rows with deletes": ("from lake.orders",),
}
result = {}
for name, queries in questions.items():
    seconds = []
    for _ in range(int(sys.argv[2])):
        begin = time.process_time()
        connection = connect()
        for query in queries:
            connection.execute(query).to_arrow_table()
        seconds.append(time.process_time() - begin)
        connection.close()
    result[name] = min(seconds)
print(json.dumps(result))
"""


def run(python: str, code: str, *arguments: object) -> str:
    """Run code with another interpreter, and return what it prints."""
    command = [python, "-c", CONNECT + code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


PEAK = """
import resource, sys
from snapshot_explorer import open_table
table = open_table("lake.ducklake::rows")
if len(sys.argv) > 2:
    table.current.plan(where=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def main(snapshots: int = 2_000, files: int = 100_000, python: str = sys.executable) -> None:
    """Make the lake, and print what both take."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, MAKE, folder, snapshots, files)
        peer = json.loads(run(python, PEER, folder, RUNS).splitlines()[-1])  # after progress bars
        rows, orders = (partial(open_table, f"{folder}/lake.ducklake::{name}") for name in ("rows", "orders"))
        table = history_of(rows()).table_format
        questions: dict[str, Callable[[], object]] = {  # each opens the lake anew
            "open and history": lambda: rows().history().num_rows,
            "files": lambda: rows().current.files().num_rows,
            "plan of a condition": lambda: rows().current.plan(where="id between 5000000 and 5009999"),
            "lifetimes of all versions": lambda: rows().lifetimes().versions,
            "changes of all versions": lambda: table.changes(table.listing().versions),
            "rows with deletes": lambda: orders().current.to_arrow().num_rows,
        }
        for name, question in questions.items():
            seconds = timing.best(question, RUNS, time.process_time)
            known = peer.get(name, peer["files"])
            print(f"{name}: {seconds:.3f} s, DuckDB {known:.3f} s, ratio {seconds / known:.2f}", flush=True)
        for name, condition in (("open", ()), ("plan of a condition", ("id between 5000000 and 5009999",))):
            command = [sys.executable, "-c", "import os, sys; os.chdir(sys.argv[1])" + PEAK, folder, *condition]
            peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(f"{name}: at most {peak.strip()} MiB of memory", flush=True)


if __name__ == "__main__":
    numbers, names = sys.argv[1:3], sys.argv[3:]
    main(*map(int, numbers), *names)
