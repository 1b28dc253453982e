"""Find the orphans of a Delta table of many files: time of the processor and peak memory.

    python tests/benchmarks/orphans.py [FILES]

The commits of the table name all files but every tenth, in folders of 1,000 files. The data files are listed, but
stored nowhere: none is opened. Prints what it measured and judges nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import datetime as dt
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

sys.path.append(str(Path(__file__).parents[2]))

from snapshot_explorer import open_table
from tests.support.delta.table_builder import DeltaTable, add

FOLDER, COMMIT = 1_000, 20_000
_WRITTEN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class ManyFiles(LocalFileSystem):
    """The local disk, with folders `part=N` of files that are stored nowhere in the table's folder."""

    protocol = "manyfiles"
    root = ""
    files = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("manyfiles://")))

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:  # noqa: FBT001, FBT002 - fsspec's
        path = self._strip_protocol(path)
        name = path.rpartition("/")[2]
        if name.startswith("part="):
            entry = {"size": 1000, "type": "file", "mtime": _WRITTEN.timestamp(), "created": _WRITTEN.timestamp()}
            first = int(name.removeprefix("part=")) * FOLDER
            numbers = range(first, min(first + FOLDER, self.files))
            return [{"name": f"{path}/{number:09}.parquet", **entry} for number in numbers]
        folders = range(-(-self.files // FOLDER) if path == self.root else 0)
        added = [{"name": f"{path}/part={number}", "size": 0, "type": "directory"} for number in folders]
        return [*super().ls(path, detail=detail, **options), *added]


def write(folder: str, files: int) -> None:
    """Write the log of the table."""
    table = DeltaTable(None, folder)
    for first in range(0, files, COMMIT):
        named = (number for number in range(first, min(first + COMMIT, files)) if number % 10)
        table.commit(*(add(f"part={number // FOLDER}/{number:09}.parquet", size=1000, rows=1) for number in named))


def measure(folder: str, files: int) -> None:
    """Find the orphans, and print what it takes."""
    fsspec.register_implementation("manyfiles", ManyFiles)
    ManyFiles.root, ManyFiles.files = folder, files
    table = open_table(f"manyfiles://{folder}")
    before, used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    orphans = table.orphans("1d")
    used = time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(orphans.verdict)
    print(f"{files:,} files: {used:.1f} s of the processor, {(peak - before) / 1024:,.0f} MiB more at the peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.files)
        return
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own, whose memory does not count.
        subprocess.run([sys.executable, __file__, str(options.files), "--write", folder], check=True)
        measure(folder, options.files)


if __name__ == "__main__":
    main()
