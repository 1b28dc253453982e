"""Measure Hudi's metadata: opening, history, files, lifetimes, beside hudi-rs, and the memory of a million files.

    python tests/benchmarks/hudi_metadata.py [commits] [python with hudi] [files]

Makes a table of so many commits with five base files each, in the form that Hudi 1.1 writes; the base files exist, and
are empty, because hudi-rs lists them. Its history is that of the timeline with the metadata of every commit. Then a
table of `files` base files, a million unless it is said, whose files are listed in a process of its own. Prints
seconds of the processor, the best of several runs taken in turns; asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fastavro

from snapshot_explorer import open_table

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.benchmarks.scale_tables import hudi_commits, hudi_files

FILES, ROUNDS = 5, 5
PEER = """
import sys, time
from hudi import HudiTableBuilder
def load():
    return HudiTableBuilder.from_base_uri(sys.argv[1]).build()
def history():
    timeline = load().get_timeline()
    return [timeline.get_instant_metadata_in_json(commit) for commit in timeline.get_completed_commits()]
for name, function in (
    ("open", load),
    ("instants", lambda: load().get_timeline().get_completed_commits()),
    ("history", history),
    ("files", lambda: load().get_file_slices()),
):
    begun = time.process_time()
    result = function()
    print(name, time.process_time() - begun)
"""
MEMORY = """
import resource, sys, time
from snapshot_explorer import open_table
files = open_table(sys.argv[1]).current.files().to_arrow()
print(files.num_rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, time.process_time())
"""


def timed(work: Callable[[], object]) -> float:
    """Return seconds of the processor, of the threads too."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def peer(python: str, uri: str) -> dict[str, float]:
    done = subprocess.run([python, "-c", PEER, uri], check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def decoded(root: Path) -> None:
    """Read and decode all commits: what names the rows of each file, which hudi-rs does not list."""
    for path in (root / ".hoodie" / "timeline").glob("*_*.commit"):
        with path.open("rb") as file:
            list(fastavro.reader(file))


def measure(root: Path, commits: int, python: str | None) -> None:
    for path in hudi_commits(root, commits, FILES):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).touch()
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: open_table(root),
        "history": lambda: open_table(root).history(),
        "files": lambda: open_table(root).current.files().to_arrow(),
        "lifetimes": lambda: open_table(root).lifetimes().to_arrow(),
    }
    own: dict[str, float] = {}
    other: dict[str, float] = {}
    floor = 1e9
    for _ in range(ROUNDS):
        for name, call in calls.items():
            own[name] = min(own.get(name, 1e9), timed(call))
        floor = min(floor, timed(lambda: decoded(root)))
        for name, seconds in (peer(python, root.as_uri()) if python else {}).items():
            other[name] = min(other.get(name, 1e9), seconds)
    for name, seconds in own.items():
        print(f"{name:12} {seconds:8.3f} s")
    for name, seconds in other.items():
        print(f"hudi-rs: {name:12} {seconds:8.3f} s")
    print(f"fastavro: commits {floor:8.3f} s")
    if not other:
        return
    work = f"Hudi, {commits:,} commits"
    beside = {"hudi-rs, the metadata of each commit": other["history"]}
    record(f"{work}: open and history", own["history"], beside, processor=True)
    fastavro_peer = {"fastavro over the commits": floor}
    beside = {"hudi-rs": other["files"]} | fastavro_peer
    record(f"{work}: the {FILES * commits:,} files of the newest", own["files"], beside, processor=True)
    beside = {"hudi-rs listing *one* version": other["files"]} | fastavro_peer
    record(f"{work}: when each file was added and removed", own["lifetimes"], beside, processor=True)


def memory(root: Path, files: int) -> None:
    """Print and record what listing the files of a large table takes, in a process of its own."""
    hudi_files(root, files)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(root)], check=True, capture_output=True, text=True, env=environment
    )
    rows, peak, seconds = done.stdout.split()
    print(f"{int(rows):,} files: {int(peak) / 2**20:,.0f} MiB at most, {float(seconds):.1f} s")
    note = f"{int(peak) / 2**20:,.0f} MiB at most"
    record(f"Hudi: the {int(rows):,} files of the newest version", float(seconds), processor=True, note=note)


def main() -> None:
    logging.disable(logging.WARNING)
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), commits, sys.argv[2] if len(sys.argv) > 2 else None)
    with tempfile.TemporaryDirectory() as folder:
        memory(Path(folder), int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000)


if __name__ == "__main__":
    main()
