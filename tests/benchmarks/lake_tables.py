"""Writes a lake of many tables for `lake.py`: histories by real writers, copied with rewritten commit times.

    PYTHON tests/benchmarks/lake_tables.py delta|iceberg|paimon FOLDER     with deltalake, pyiceberg or pypaimon

Each history of `tests/support/lakes.py` is written once by the real writer. `lake.py` copies it, and sets the times
of its commits in the log: those of files for Delta, `timestamp-ms` for Iceberg, `timeMillis` for Paimon. Nothing else
of a log is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa


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


def main() -> None:
    """Write a table for each history in a file of JSON."""
    table_format, folder = sys.argv[1:]
    write = {"delta": write_delta, "iceberg": write_iceberg, "paimon": write_paimon}[table_format]
    for name, steps in json.loads((Path(folder) / "histories.json").read_text()).items():
        write(Path(folder) / f"{name}_{table_format}", steps)


if __name__ == "__main__":
    main()
