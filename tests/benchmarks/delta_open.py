"""Measure how fast a long Delta log opens: ours, deltalake's, and the least that reading its JSON costs, in one run.

    python tests/benchmarks/delta_open.py [commits] [python of an environment with deltalake]

Writes a log of so many commits with 10 adds each and no checkpoint (10,000 are 41 MB) to a temporary folder, then
opens its newest version. Of ours that is `open_table` and the index of the live files, all their columns; of
deltalake `DeltaTable(path)` alone, without asking it for its files. Both begin after the import. Prints seconds of the
clock and of the processor, the best of several runs taken in turns, and the ratios; asserts nothing. On a machine with
other work the processor's time is the one to judge by.
"""

# ruff: noqa: T201 - it prints what it measured
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record

ROUNDS = 7
PEER = """
import time, sys
import deltalake
began, busy = time.perf_counter(), time.process_time()
table = deltalake.DeltaTable(sys.argv[1])
print(time.perf_counter() - began, time.process_time() - busy)
"""


def write(root: Path, commits: int) -> None:
    """Write the log as Spark does."""
    (root / "_delta_log").mkdir(parents=True)
    columns = {"id": "long", "name": "string", "day": "string"}
    first = first_actions(columns, str(uuid.uuid4()), 1_700_000_000_000)
    for version in range(commits):
        actions = [info(version), *(first if version == 0 else []), *(add(version, place) for place in range(10))]
        content = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions) + "\n"
        (root / "_delta_log" / f"{version:020d}.json").write_text(content)


def first_actions(columns: Mapping[str, str], table_id: str, created: int) -> list[dict[str, object]]:
    """Return the protocol and the metadata of a table with partitions by day."""
    fields = [{"name": name, "type": dtype, "nullable": True, "metadata": {}} for name, dtype in columns.items()]
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": table_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": ["day"],
                "configuration": {},
                "createdTime": created,
            }
        },
    ]


def commit_info(timestamp: int, transaction: uuid.UUID, files: int) -> dict[str, object]:
    """Return what Spark writes of a commit that adds files of 100 rows."""
    metrics = {"numFiles": str(files), "numOutputRows": str(100 * files), "numOutputBytes": "12345"}
    return {
        "commitInfo": {
            "timestamp": timestamp,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": '["day"]'},
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": metrics,
            "engineInfo": "Apache-Spark/4.1.2 Delta-Lake/4.3.1",
            "txnId": str(transaction),
        }
    }


def info(version: int) -> dict[str, object]:
    return commit_info(1_700_000_000_000 + version * 1000, uuid.uuid4(), 10)


def add(version: int, place: int) -> dict[str, object]:
    day = f"2026-01-{version % 28 + 1:02d}"
    low = version * 1000 + place * 100
    stats = {
        "numRecords": 100,
        "minValues": {"id": low, "name": "a"},
        "maxValues": {"id": low + 99, "name": "zzz"},
        "nullCount": {"id": 0, "name": 0},
    }
    return {
        "add": {
            "path": f"day={day}/part-{place:05d}-{uuid.uuid4()}.c000.snappy.parquet",
            "partitionValues": {"day": day},
            "size": 12345 + place,
            "modificationTime": 1_700_000_000_000 + version * 1000,
            "dataChange": True,
            "stats": json.dumps(stats, separators=(",", ":")),
        }
    }


def floor(root: Path) -> int:
    """List, read, and parse every line; return how many there are."""
    folder, lines = f"{root}/_delta_log", 0
    with os.scandir(folder) as found:
        names = sorted(entry.name for entry in found)
    for name in names:
        with open(f"{folder}/{name}", "rb") as file:  # noqa: PTH123 - the least that it can cost
            content = file.read()
        for line in content.split(b"\n"):
            if line:
                orjson.loads(line)
                lines += 1
    return lines


def ours(root: Path) -> int:
    """Open the newest version with its live files; return how many there are."""
    table = open_table(root)
    return int(history_of(table).table_format._log.state(table.current.version).adds.num_rows)


def timed(work: Callable[[Path], int], root: Path) -> tuple[float, float]:
    """Return seconds of the clock and of the processor."""
    began, busy = time.perf_counter(), time.process_time()
    work(root)
    return time.perf_counter() - began, time.process_time() - busy


def peer(python: str, root: Path) -> tuple[float, float]:
    reported = subprocess.run([python, "-c", PEER, str(root)], capture_output=True, text=True, check=True)
    clock, processor = map(float, reported.stdout.split())
    return clock, processor


def best(runs: list[tuple[float, float]]) -> tuple[float, float]:
    return min(clock for clock, _ in runs), min(processor for _, processor in runs)


def main() -> None:
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    python = sys.argv[2] if len(sys.argv) > 2 else sys.executable
    least, own, other = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "table"
        write(root, commits)
        ours(root)  # imports
        for _ in range(ROUNDS):
            least.append(timed(floor, root))
            own.append(timed(ours, root))
            try:
                other.append(peer(python, root))
            except subprocess.CalledProcessError as error:
                print(f"deltalake is not there: {error.stderr.splitlines()[-1]}")
                break
    found = {"list + read + orjson.loads": least, "snapshot_explorer": own, "deltalake": other}
    for name, runs in found.items():
        if runs:
            print(f"{name:28} {best(runs)[0]:8.3f} s   processor {best(runs)[1]:8.3f} s")
    for name, runs, limit in (("floor", least, 2.5), ("deltalake", other, 0.25)):
        if runs:
            clock, processor = (mine / theirs for mine, theirs in zip(best(own), best(runs), strict=True))
            print(f"ours / {name:10} {clock:.2f} (at most {limit})   processor {processor:.2f}")
    if other:
        work = f"Delta: open the newest of {commits:,} commits without checkpoint"
        record(work, best(own)[0], {"deltalake": best(other)[0]})


if __name__ == "__main__":
    main()
