"""Measure Iceberg's metadata: opening, history, files, a plan and lifetimes, beside fastavro and pyiceberg.

    python tests/benchmarks/iceberg_metadata.py [snapshots] [python with pyiceberg]

Makes a table like those of fast appends: five files each, manifests merged every 100. fastavro only decodes the
manifests of the newest version. For a history pyiceberg reads the metadata file alone; opening reads the newest
manifest list too, and a history checks that all manifest lists exist. Prints seconds of the processor, the best of
several runs; asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
import json
import logging
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import fsspec

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks import timing
from tests.benchmarks.report import record
from tests.support.iceberg.table_builder import ADDED, EXISTING, IcebergTable, entry

FILES, COLUMNS, MERGED = 5, 7, 100
PEER = """
import sys, time
from pyiceberg.table import StaticTable
def best(name, function, runs=20):
    seconds = []
    for _ in range(runs):
        begin = time.process_time()
        function()
        seconds.append(time.process_time() - begin)
    print(f"pyiceberg: {name}: {min(seconds):.4f}")
load = lambda: StaticTable.from_metadata(sys.argv[1])
best("load", load)
best("load and history", lambda: load().inspect.snapshots())
best("plan of the newest version", lambda: list(load().scan().plan_files()), 3)
"""


class _Table(IcebergTable):
    """A table whose metadata file is written once, at the end."""

    def write(self, path, content):
        (Path(self.root) / path).write_bytes(content)
        return len(content)

    def write_metadata(self, millis=None, **changed):
        self.metadata["last-updated-ms"] = millis

    def finish(self):
        self.write("metadata/v1.metadata.json", json.dumps(self.metadata).encode())
        self.write("metadata/version-hint.text", b"1")


def data_file(table: IcebergTable, chance: random.Random) -> dict[str, Any]:
    def pairs(value: Callable[[], object]) -> list[dict[str, object]]:
        return [{"key": column, "value": value()} for column in range(1, COLUMNS + 1)]

    return {
        "content": 0,
        "file_path": table.path(f"data/{chance.getrandbits(128):032x}-00001.parquet"),
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 20,
        "file_size_in_bytes": chance.randint(600, 900),
        "column_sizes": pairs(lambda: chance.randint(40, 300)),
        "value_counts": pairs(lambda: 20),
        "null_value_counts": pairs(lambda: 0),
        "nan_value_counts": [],
        "lower_bounds": pairs(lambda: struct.pack("<q", chance.getrandbits(40))),
        "upper_bounds": pairs(lambda: struct.pack("<q", chance.getrandbits(40))),
        "split_offsets": [4],
        "sort_order_id": 0,
    }


def make(root: Path, snapshots: int) -> None:
    (root / "metadata").mkdir()
    chance = random.Random(1)
    table = _Table(fsspec.filesystem("file"), str(root), location=str(root))
    table.ids = iter([chance.getrandbits(62) for _ in range(snapshots)])
    head, listed = None, []
    for number in range(1, snapshots + 1):
        table.sequence, snapshot_id = number, next(table.ids)
        entries = [entry(ADDED, data_file(table, chance)) for _ in range(FILES)]
        if len(listed) + 1 >= MERGED:
            entries += [_carried(one, record) for record in listed for one in table.entries[record["manifest_path"]]]
            listed = []
        listed = [table.manifest(snapshot_id, entries), *listed]
        table.manifests[snapshot_id] = listed
        summary = {"operation": "append", "added-data-files": str(FILES), "total-records": str(100 * number)}
        table.add_snapshot(snapshot_id, head, summary, millis=1_767_225_600_000 + 60_000 * number)
        head = snapshot_id
    table.finish()


def _carried(one: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    owner = one["snapshot_id"] or record["added_snapshot_id"]
    number = one["sequence_number"] or record["sequence_number"]
    return entry(EXISTING, one["data_file"], owner, number, one["file_sequence_number"] or number)


def best(name: str, function: Callable[[], object], runs: int = 3) -> float:
    seconds = timing.best(function, runs, time.process_time)
    print(f"{name}: {seconds:.4f}")
    return seconds


def main(snapshots: int, peer: str | None) -> None:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), snapshots)
        table = open_table(folder)
        newest = history_of(table).table_format.version(snapshots)
        manifests = [Path(folder) / path for path in newest.manifests()["path"].to_pylist()]
        best("open", lambda: open_table(folder))
        lists = newest._source.metadata.snapshots.column("manifest_list", newest._source.metadata.snapshots)
        names = [str(Path(path).relative_to(folder)) for path in lists]
        best("of open: the newest manifest list", newest.validate)
        best("of history: whether all manifest lists exist", lambda: Storage(folder).missing(names))
        files = best("files of the newest version", newest.files)
        best("files with statistics", lambda: newest.files(statistics=True))
        best("plan of the newest version", newest.plan)
        decoded = best("fastavro: manifests of the newest version", lambda: [list(_rows(path)) for path in manifests])
        lifetimes = best("lifetimes of all versions", lambda: open_table(folder).lifetimes())
        history = best("open and history", lambda: open_table(folder).history(), 20)
        if peer is not None:
            command = [peer, "-c", PEER, f"{folder}/metadata/v1.metadata.json"]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            print("\n".join(lines))
            theirs = {name: float(value) for _, name, value in (line.split(": ") for line in lines)}
            whole, plan = theirs["load and history"], theirs["plan of the newest version"]
            table = f"Iceberg, {snapshots:,} snapshots"
            record(f"{table}: open and history", history, {"pyiceberg": whole}, processor=True)
            beside = {"pyiceberg's plan": plan, "fastavro over the manifests": decoded}
            record(f"{table}: the {FILES * snapshots:,} files of the newest", files, beside, processor=True)
            beside = {"pyiceberg planning *one* version": plan}
            record(f"{table}: when each file was added and removed", lifetimes, beside, processor=True)


def _rows(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return list(fastavro.reader(file))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, sys.argv[2] if len(sys.argv) > 2 else None)
