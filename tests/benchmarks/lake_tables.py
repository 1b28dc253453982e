"""Writes a lake of many tables for `lake.py`: histories by real writers, copied with rewritten commit times.

    PYTHON tests/benchmarks/lake_tables.py delta|iceberg|paimon FOLDER     with deltalake, pyiceberg or pypaimon
    PYTHON tests/benchmarks/lake_tables.py delta|iceberg|paimon FOLDER URL NAMES     the plain loop, in 32 threads

Each history of `tests/support/lakes.py` is written once by the real writer. `lake.py` copies it, and sets the times
of its commits in the log: those of files for Delta, `timestamp-ms` for Iceberg, `timeMillis` for Paimon. Nothing else
of a log is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pyarrow as pa

NEWEST = 12
"""The commits of a table that are read, as in an overview."""
MOST_SECONDS = 30
"""A library that takes longer is stopped."""


def rows_of(step: Any, columns: int) -> pa.Table:
    """Return the rows of a step; from its addition on with a third column."""
    ids = range(step["first"], step["first"] + step["rows"])
    names = [f"n{number * 7919 % 10007}" for number in ids]
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": names})
    return table if columns == 2 else table.append_column("note", pa.array(["x"] * len(table)))


def write_delta(folder: Path, steps: list[Any]) -> None:
    """Write a table with deltalake."""
    from deltalake import write_deltalake

    columns = 2
    for step in steps:
        columns += step["adds_column"]
        write_deltalake(str(folder), rows_of(step, columns), mode="append", schema_mode="merge")


def write_iceberg(folder: Path, steps: list[Any]) -> None:
    """Write a table with pyiceberg."""
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("bench", warehouse=f"file://{folder.parent}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", rows_of(steps[0], 2).schema, location=f"file://{folder}")
    columns = 2
    for step in steps:
        if step["adds_column"]:
            columns = 3
            with table.update_schema() as update:
                update.union_by_name(rows_of(step, columns).schema)
        table.append(rows_of(step, columns))


def write_paimon(folder: Path, steps: list[Any]) -> None:
    """Write a table with pypaimon."""
    from pypaimon import CatalogFactory, Schema
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    catalog = CatalogFactory.create({"warehouse": str(folder.parent / f"{folder.name}.warehouse")})
    catalog.create_database("d", ignore_if_exists=True)
    name = f"d.{folder.name}"
    catalog.create_table(name, Schema.from_pyarrow_schema(rows_of(steps[0], 2).schema), ignore_if_exists=False)
    columns = 2
    for step in steps:
        if step["adds_column"]:
            columns = 3
            catalog.alter_table(name, [SchemaChange.add_column("note", AtomicType("STRING"))])
        builder = catalog.get_table(name).new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows_of(step, columns))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
    shutil.move(str(folder.parent / f"{folder.name}.warehouse" / "d.db" / folder.name), folder)


def set_times(folder: Path, table_format: str, millis: list[int]) -> None:
    """Set the times of the commits of a copied table, in order."""
    if table_format == "delta":
        for path, time in zip(sorted((folder / "_delta_log").glob("*.json")), millis, strict=True):
            os.utime(path, ns=(time * 1_000_000,) * 2)
    elif table_format == "paimon":
        for number, time in enumerate(millis, 1):
            path = folder / "snapshot" / f"snapshot-{number}"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"timeMillis": time}))
    else:
        for path in (folder / "metadata").glob("*.metadata.json"):
            metadata = json.loads(path.read_text())
            times = {
                snapshot["snapshot-id"]: time for snapshot, time in zip(metadata["snapshots"], millis, strict=False)
            }
            for entry in (*metadata["snapshots"], *metadata["snapshot-log"]):
                entry["timestamp-ms"] = times[entry["snapshot-id"]]
            metadata["last-updated-ms"] = max(times.values(), default=millis[0])
            path.write_text(json.dumps(metadata))


def commits_of(table_format: str, folder: Path, url: str) -> Any:
    """Return a function that opens a table of the store by its name and returns its newest commits."""
    location = f"s3://lake/{folder.name}"
    if table_format == "delta":
        from deltalake import DeltaTable

        options = {"endpoint": url, "access_key_id": "k", "secret_access_key": "s", "region": "us-east-1"}
        options["allow_http"] = "true"
        return lambda name: DeltaTable(f"{location}/{name}", storage_options=options).history(NEWEST)
    if table_format == "iceberg":
        from pyiceberg.table import StaticTable

        options = {"s3.endpoint": url, "s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.region": "us-east-1"}

        def read(name: str) -> Any:
            # Without a catalog it needs to be told which metadata file is the newest.
            newest = max((folder / name / "metadata").glob("*.metadata.json")).name
            return StaticTable.from_metadata(f"{location}/{name}/metadata/{newest}", options).snapshots()[-NEWEST:]

        return read
    from pypaimon import CatalogFactory

    options = {"s3.endpoint": url, "s3.access-key": "k", "s3.secret-key": "s", "s3.region": "us-east-1"}
    catalog = CatalogFactory.create({"warehouse": location, **options})

    def read_snapshots(name: str) -> Any:
        manager = catalog.get_table(name.replace(".db/", ".")).snapshot_manager()
        newest = manager.get_latest_snapshot()
        return [manager.get_snapshot_by_id(number) for number in range(max(1, newest.id - NEWEST + 1), newest.id + 1)]

    return read_snapshots


def read_lake(table_format: str, folder: Path, url: str, names: list[str]) -> None:
    """Print the seconds in which the newest commits of all tables are read, of how many, and whether it was stopped.

    A table that cannot be opened has none.
    """
    read = commits_of(table_format, folder, url)

    def tried(name: str) -> bool:
        try:
            return bool(read(name))
        except Exception:  # noqa: BLE001 - one in a hundred is broken
            return False

    began = time.perf_counter()
    threads = ThreadPoolExecutor(32)
    ended, running = wait([threads.submit(tried, name) for name in names], MOST_SECONDS)
    count = sum(future.result() for future in ended)
    print(json.dumps([time.perf_counter() - began, count, bool(running)]), flush=True)  # noqa: T201 - the caller reads it
    os._exit(0)  # does not wait for those that run


def main() -> None:
    """Write a table for each history in a file of JSON, or read tables."""
    table_format, folder, *reading = sys.argv[1:]
    if reading:
        url, names = reading
        read_lake(table_format, Path(folder), url, json.loads(Path(names).read_text()))
        return
    write = {"delta": write_delta, "iceberg": write_iceberg, "paimon": write_paimon}[table_format]
    for name, steps in json.loads((Path(folder) / "histories.json").read_text()).items():
        write(Path(folder) / f"{name}_{table_format}", steps)


if __name__ == "__main__":
    main()
