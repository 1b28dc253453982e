"""Measure the lifetimes of all data files of a Paimon and a Delta table, and one large manifest, against peers.

    python tests/benchmarks/lifetimes.py [paimon] [manifest] [delta] [questions] [--snapshots 2000] [--entries 20000]
        [--commits 10000] [--pypaimon PYTHON] [--polars PYTHON] [--deltalake PYTHON]

PYTHON is the interpreter of an environment that has pypaimon, polars-avro or deltalake; they do not go with the
project's own dependencies. Prints seconds, the best of several runs; of the Delta log, whose files are many, those of
the processor too. Asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
import argparse
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fastavro
import fastavro._read as fastavro_read
import numpy as np
import pyarrow as pa

from snapshot_explorer import open_table
from snapshot_explorer.core import frames
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.history.lifetimes import FileLifetimes, read_lifetimes
from snapshot_explorer.storage import Storage
from tests.inner.analysis import over_frame
from tests.inner.paimon import PaimonSchema, manifests, settings_of

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks import delta_open, paimon_history, timing
from tests.benchmarks.paimon_manifests import entry, manifest, read_zstandard
from tests.benchmarks.report import record
from tests.benchmarks.timing import best

PARTS = ("paimon", "manifest", "delta", "questions")
LARGE = 100_000
KEYED = settings_of(
    PaimonSchema(id=0, fields=(), partition_keys=(), primary_keys=("id",), options={}, comment=None), "shop.orders"
)
TIMED = Path(timing.__file__).read_text() + "import io, sys\n"
WITH_POLARS = """
import polars_avro
content = open(sys.argv[1], "rb").read()
print(best(lambda: polars_avro.read_avro(io.BytesIO(content))))
"""
WITH_PYPAIMON = """
from pypaimon.table.file_store_table import FileStoreTable
print(best(lambda: FileStoreTable.from_path(sys.argv[1]).new_read_builder().new_scan().plan(), 3))
"""


def in_peer(python: str | None, script: str, argument: Path) -> float | None:
    """Return the seconds that a script prints which is run by another interpreter; None without one."""
    if python is None:
        return None
    done = subprocess.run([python, "-c", TIMED + script, str(argument)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def with_fastavro(folder: Path) -> int:
    """Return the number of entries of all delta manifests: snapshots, delta lists and manifests, a file each."""
    entries = 0
    for file in folder.glob("snapshot/snapshot-*"):
        snapshot = json.loads(file.read_bytes())
        for listed in rows(folder / "manifest" / snapshot["deltaManifestList"]):
            entries += len(rows(folder / "manifest" / listed["_FILE_NAME"]))
    return entries


def rows(file: Path) -> list[dict]:
    return list(fastavro.reader(io.BytesIO(file.read_bytes())))


def of_all(folder: Path) -> FileLifetimes:
    return read_lifetimes(Paimon(Storage(str(folder))), title="lifetimes")


def large_index(commits: int = 1_000) -> FileLifetimes:
    """Return lifetimes of `LARGE` files over commits that each remove a third of the files of an earlier one."""
    each, random = LARGE // commits, np.random.default_rng(0)
    names = [f"dt=2026-01-{day + 1:02}/bucket-{bucket}/" for day in range(28) for bucket in range(8)]
    parts = []
    for version in range(commits):
        added = [
            f"{names[number]}data-{version:08x}-{number:024x}-{place}.parquet"
            for place, number in enumerate(random.integers(0, len(names), each).tolist())
        ]
        parts.append((version, "add", added))
        if version:
            parts.append(
                (version, "remove", random.permutation(parts[-3 if version > 1 else -2][2])[: each // 3].tolist())
            )
    columns = {
        "version": np.concatenate([np.full(len(paths), version) for version, _, paths in parts]),
        "change": [change for _, change, paths in parts for _ in paths],
        "path": [path for _, _, paths in parts for path in paths],
    }
    count = len(columns["path"])
    columns |= {
        "list": ["delta"] * count,
        "partition": [[("dt", path[3:13])] for path in columns["path"]],
        "bucket": [int(path.split("bucket-")[1].split("/")[0]) for path in columns["path"]],
        "level": [0] * count,
        "rows": [1_000] * count,
        "size_bytes": random.integers(1_000, 200_000_000, count),
        "schema_id": [0] * count,
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in frames.CHANGES
    ]
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    times = [begin + timedelta(minutes=version) for version in range(commits)]
    return FileLifetimes().extended(range(commits), times, pa.table(arrays, schema=frames.CHANGES))


def say(what: str, seconds: float | None, *against: tuple[str, float | None]) -> None:
    """Print a line: the seconds, and their ratio to those of peers."""
    reported = "not measured" if seconds is None else f"{seconds:8.4f} s"
    ratios = [f"{seconds / other:.2f} of {name}" for name, other in against if seconds and other]
    print(f"{what:<58} {reported}  {', '.join(ratios)}")


def history(folder: Path, pypaimon: str | None) -> None:
    """Measure the lifetimes of a table of many commits."""
    peer = in_peer(pypaimon, WITH_PYPAIMON, folder)
    floor = best(lambda: with_fastavro(folder), 3)
    ours = best(lambda: of_all(folder), 3)
    say("fastavro over the same files", floor)
    say("pypaimon, plan of the newest version", peer)
    say("lifetimes of all versions", ours, ("fastavro", floor), ("pypaimon", peer))
    if peer:
        snapshots = sum(1 for _ in folder.glob("snapshot/snapshot-*"))
        work = f"Paimon: when each of {len(of_all(folder)):,} files was added and removed, over {snapshots:,} snapshots"
        record(work, ours, {"pypaimon planning *one* version": peer, "fastavro over the same files": floor})


def of_log(root: Path) -> int:
    """Return how many lifetimes a Delta table has of which nothing is known yet."""
    return len(read_lifetimes(Delta(Storage(str(root))), title="lifetimes"))


def of_open_table(root: Path) -> Callable[[Path], int]:
    """Return what makes the lifetimes of a table that is open."""
    table = open_table(root)
    return lambda _: len(table.lifetimes())


def delta_log(root: Path, deltalake: str | None) -> None:
    """Measure the lifetimes of a long Delta log, in turns with its peers, by both clocks."""
    floor, peer, ours, after = ([] for _ in range(4))
    for _ in range(delta_open.ROUNDS):
        floor.append(delta_open.timed(delta_open.floor, root))
        ours.append(delta_open.timed(of_log, root))
        after.append(delta_open.timed(of_open_table(root), root))
        if deltalake is not None:
            peer.append(delta_open.peer(deltalake, root))
    for place, clock in enumerate(("wall clock", "processor")):
        least, other, all_of_it, rest = (
            min((run[place] for run in runs), default=None) for runs in (floor, peer, ours, after)
        )
        print(f"Delta, {clock}:")
        say("list + read + orjson.loads", least)
        say("deltalake opens the newest version", other)
        say("lifetimes of all versions", all_of_it, ("list + read + parse", least), ("deltalake", other))
        say("lifetimes once the table is open", rest, ("list + read + parse", least), ("deltalake", other))
    if peer:
        files, commits = of_log(root), sum(1 for _ in (root / "_delta_log").glob("*.json"))
        opening, reading = (min(run[0] for run in runs) for runs in (peer, floor))
        peers = {"deltalake opening *one* version": opening, "reading the log and parsing it with orjson": reading}
        work = f"Delta: when each of {files:,} files was added and removed, over {commits:,} commits"
        record(work, min(run[0] for run in ours), peers)


def one_manifest(folder: Path, polars: str | None) -> None:
    """Measure one large manifest."""
    file = folder / "large"
    file.write_bytes(content := manifest([entry(number) for number in range(LARGE)]))
    peer = in_peer(polars, WITH_POLARS, file)
    ours = best(lambda: manifests.read_entries([("large", content)]))
    say(f"polars-avro, a manifest of {LARGE:,} entries", peer)
    say("ours", ours, ("polars-avro", peer))
    if peer:
        record(f"Paimon: decode one manifest of {LARGE:,} entries", ours, {"polars-avro, native code": peer})


def questions() -> None:
    """Measure what follows from lifetimes without reading."""
    lifetimes = large_index()
    first, middle, last = (lifetimes.versions[place] for place in (0, 500, -1))
    print(f"{len(lifetimes):,} lifetimes, {lifetimes.files_at(last).num_rows:,} files at the last version")
    say("files of the last version", files := best(lambda: lifetimes.files_at(last)))
    say("files of a version in the middle", best(lambda: lifetimes.files_at(middle)))
    say("difference of the first and the last version", difference := best(lambda: lifetimes.difference(first, last)))
    say("totals of all versions", best(lifetimes.totals))
    say("totals of all partitions over all versions", best(lifetimes.partition_totals))
    long = large_index(commits=10_000)
    say("health of all of 1,000 versions", best(lambda: over_frame(lifetimes, KEYED)))
    say("health of all of 10,000 versions", best(lambda: over_frame(long, KEYED)))
    kept = lifetimes.intervals
    size = kept.rows.nbytes + kept.folders.nbytes + kept.partitions.nbytes
    print(f"memory: {size / len(lifetimes):.0f} bytes a lifetime")
    kept_bytes = f"{size / len(lifetimes):.0f} bytes are kept for each lifetime"
    record(f"after `lifetimes()`, of {LARGE:,} files: those of a version", files, note=kept_bytes)
    record(f"after `lifetimes()`, of {LARGE:,} files: the difference of two versions", difference)


def main() -> None:
    asked = argparse.ArgumentParser(description=sys.modules[__name__].__doc__)
    asked.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    asked.add_argument("--snapshots", type=int, default=2_000)
    asked.add_argument("--entries", type=int, default=20_000)
    asked.add_argument("--commits", type=int, default=10_000)
    asked.add_argument("--pypaimon")
    asked.add_argument("--polars")
    asked.add_argument("--deltalake")
    given = asked.parse_args()
    # fastavro needs a further package for zstandard; here it is given pyarrow's, as ours has.
    fastavro_read.BLOCK_READERS["zstandard"] = read_zstandard
    with tempfile.TemporaryDirectory() as name:
        if "paimon" in given.parts:
            folder = Path(name) / "table"
            paimon_history.write(folder, given.snapshots, given.entries)
            history(folder, given.pypaimon)
        if "manifest" in given.parts:
            one_manifest(Path(name), given.polars)
        if "delta" in given.parts:
            delta_open.write(Path(name) / "delta", given.commits)
            delta_log(Path(name) / "delta", given.deltalake)
    if "questions" in given.parts:
        questions()


if __name__ == "__main__":
    main()
