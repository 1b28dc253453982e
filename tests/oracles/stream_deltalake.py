"""Commits a number of versions of a Delta table with the library deltalake: appends, updates, deletes and compactions.

.venv-oracles/bin/python tests/oracles/stream_deltalake.py FOLDER COMMITS PAUSE
"""

import sys
import time

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def append(table, version, count):
    ids = range(version * 10, version * 10 + count)
    rows = pa.table({"id": pa.array(ids, pa.int64()), "name": ["x"] * count}, SCHEMA)
    write_deltalake(table, rows, mode="append")


def commit(table, version):
    """Commit once; an update, delete or compaction of nothing is no commit."""
    if version % 10 == 9:
        table.optimize.compact()
    elif version % 4 == 3:
        table.delete(f"id % 7 = {version % 7}")
    elif version % 4 == 2:
        table.update(predicate=f"id % 5 = {version % 5}", new_values={"name": f"'changed by {version}'"})
    else:
        append(table, version, 10)
    if DeltaTable(table.table_uri).version() == version:
        append(table, version, 1)


def main(folder, commits, pause):
    DeltaTable.create(folder, SCHEMA)
    while (table := DeltaTable(folder)).version() < int(commits):
        commit(table, table.version())
        time.sleep(float(pause))


if __name__ == "__main__":
    main(*sys.argv[1:])
