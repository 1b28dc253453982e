"""A primary-key table of 10 million rows in 16 buckets: ours against pypaimon, on the same table and in the same run.

    python tests/benchmarks/paimon_pypaimon.py [--rows ROWS] [--folder FOLDER] [--python PYTHON] [--rounds ROUNDS]

pypaimon pins old versions of what we use, so that it runs in an environment of its own: `--python` names the
interpreter of one that is there; without it, pip makes one in the folder. pypaimon itself writes the table, once: half
of the keys stand in files of their own, the other half in files of three commits whose keys overlap. A folder that is
given is kept, table and environment included, and used again.

Each task runs in a process of its own, ours and theirs in turn; printed are the best seconds, how often theirs takes
ours, and the greatest memory of the process. Both must give the same rows, told by counts and sums: the script fails
if they do not.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PYPAIMON = "pypaimon==2.1.0"
BUCKETS = 16
LEAST = 500
COLUMNS = ("k", "amount", "n")
_KIB_PER_MIB = 1024


def write(folder: str, rows: int) -> dict[str, Any]:
    """Have pypaimon write the table."""
    import numpy as np
    import pyarrow as pa
    from pypaimon import CatalogFactory, Schema

    fields = pa.schema(
        [
            ("k", pa.int64()),
            ("name", pa.string()),
            ("amount", pa.float64()),
            ("at", pa.timestamp("us")),
            ("n", pa.int32()),
        ]
    )
    catalog = CatalogFactory.create({"warehouse": folder})
    catalog.create_database("d", ignore_if_exists=True)
    made = Schema.from_pyarrow_schema(fields, primary_keys=["k"], options={"bucket": str(BUCKETS)})
    catalog.create_table("d.t", made, ignore_if_exists=False)
    table = catalog.get_table("d.t")
    half = rows // 2
    commits = (np.arange(half), np.arange(half, rows), np.arange(half, rows, 2), np.arange(half, rows, 4))
    for number, keys in enumerate(commits):
        chance = np.random.default_rng(number)
        names = [f"name {key}" for key in ((keys * 7 + number) % 100_000).tolist()]
        columns = {
            "k": keys,
            "name": pa.array(names),
            "amount": chance.random(len(keys)),
            "at": pa.array(keys * 1000 + number, pa.timestamp("us")),
            "n": chance.integers(0, 1000, len(keys)).astype(np.int32),
        }
        builder = table.new_batch_write_builder()
        writer = builder.new_write()
        writer.write_arrow(pa.table(columns, schema=fields))
        builder.new_commit().commit(writer.prepare_commit())
        writer.close()
    return {"rows": sum(len(keys) for keys in commits)}


def ours(folder: str, task: str) -> dict[str, Any]:
    """Read the table with the package of this repository."""
    import snapshot_explorer

    path = str(Path(folder, "d.db", "t"))

    def work() -> Any:
        snapshot = snapshot_explorer.open_table(path).at("latest")
        return snapshot.count(where=f"n >= {LEAST}") if task == "count" else snapshot.to_arrow()

    return _measured(work)


def theirs(folder: str, task: str) -> dict[str, Any]:
    """Read the table with pypaimon."""
    from pypaimon import CatalogFactory

    def work() -> Any:
        builder = CatalogFactory.create({"warehouse": folder}).get_table("d.t").new_read_builder()
        if task == "count":
            builder = builder.with_filter(builder.new_predicate_builder().greater_or_equal("n", LEAST))
        splits = builder.new_scan().plan().splits()
        read = builder.new_read()
        if task == "count":
            return sum(batch.num_rows for batch in read.to_arrow_batch_reader(splits))
        return read.to_arrow(splits)

    return _measured(work)


def _measured(work: Callable[[], Any]) -> dict[str, Any]:
    """Return how long it took, what came out and how much memory the process had at most."""
    import resource

    started = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
    if isinstance(found, int):
        return {"seconds": seconds, "peak": peak, "rows": found, "sums": []}
    import pyarrow.compute as pc

    sums = [pc.sum(found.column(name)).as_py() for name in COLUMNS]
    sums.append(pc.sum(pc.utf8_length(found.column("name"))).as_py())
    sums.append(pc.sum(found.column("at").cast("int64")).as_py())
    size = found.nbytes / _KIB_PER_MIB**2
    return {"seconds": seconds, "peak": peak, "rows": found.num_rows, "sums": sums, "size": size}


def run(python: str, role: str, *arguments: str) -> dict[str, Any]:
    """Return what a role returns in a process of its own."""
    root = str(Path(__file__).resolve().parents[2])
    command = [python, str(Path(__file__).resolve()), "--role", role, *arguments]
    there = os.environ | ({"PYTHONPATH": root} if role == "ours" else {})
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=there)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def environment(folder: Path) -> str:
    """Return an interpreter that has pypaimon; pip installs it the first time."""
    python = folder / "environment" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PYPAIMON], check=True)
    return str(python)


def same(mine: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two results are of the same rows; sums of floats depend on the order."""
    return mine["rows"] == other["rows"] and all(
        left == right or abs(left - right) <= 1e-9 * abs(left)
        for left, right in zip(mine["sums"], other["sums"], strict=True)
    )


def compare(folder: Path, python: str, rows: int, rounds: int) -> None:
    """Measure both and print it."""
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from tests.benchmarks.report import record  # not above: pypaimon's process imports this file too

    warehouse = folder / f"rows-{rows}"
    if not (warehouse / "d.db" / "t" / "snapshot" / "LATEST").exists():
        print("writing the table: pypaimon takes about 20 s for a million rows")
        run(python, "write", str(warehouse), str(rows))
    print(f"{'':24} {'rows':>10} {'ours':>9} {'theirs':>9} {'ratio':>6} {'peak, ours':>12} {'peak, theirs':>12}")
    for task, label in (("arrow", "all rows, as Arrow"), ("count", "count of half of them")):
        found: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
        for _ in range(rounds):
            found["ours"].append(run(sys.executable, "ours", str(warehouse), task))
            found["theirs"].append(run(python, "theirs", str(warehouse), task))
        if not all(same(found["ours"][0], other) for other in found["ours"] + found["theirs"]):
            sys.exit(f"the rows differ: {found}")
        mine, other = (min(result["seconds"] for result in found[who]) for who in ("ours", "theirs"))
        peaks = [max(result["peak"] for result in found[who]) for who in ("ours", "theirs")]
        print(
            f"{label:24} {found['ours'][0]['rows']:>10,} {mine:7.2f} s {other:7.2f} s {other / mine:6.1f} "
            f"{peaks[0]:8,.0f} MiB {peaks[1]:8,.0f} MiB"
        )
        if task == "arrow":
            work = f"Paimon: read {_words(rows)} rows of a primary-key table, {BUCKETS} buckets"
            record(work, mine, {"pypaimon": other})
            print(f"{'  of which the result':24} {'':37} {found['ours'][0]['size']:14,.0f} MiB")


def _words(rows: int) -> str:
    return f"{rows // 10**6} million" if rows % 10**6 == 0 else f"{rows:,}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role:
        role, folder, last = given.role
        roles = {"write": lambda: write(folder, int(last)), "ours": lambda: ours(folder, last)}
        print(json.dumps(roles.get(role, lambda: theirs(folder, last))()))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        compare(folder, given.python or environment(folder), given.rows, given.rounds)


if __name__ == "__main__":
    main()
