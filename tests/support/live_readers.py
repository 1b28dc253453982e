"""Readers of a table that a writer changes all the time: every answer is a version that existed, or says why not."""

import collections
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.compute as pc

from snapshot_explorer import diff, open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.delta.table_builder import DeltaTable
from tests.support.live import Model, mark_of

ROOT = Path(__file__).parents[2]
STILL = collections.Counter(range(0, 90, 2))
"""The ids of a table that nobody changes."""
_NAMED = re.compile(r"\d")
"""What an error must name: a version, or a file."""


@contextmanager
def live_table(kind, *, seconds, pause=0.0, command=None):
    """Run a writer of a table; yield the table's folder and its `Model`, once there are a few versions.

    Args:
        kind: delta, iceberg or paimon.
        seconds: How long it writes at most.
        pause: Seconds that it waits after each commit.
        command: The program that writes; the writers of `tests.support.live` without it.
    """
    with tempfile.TemporaryDirectory() as folder:
        root, noted = f"{folder}/table", f"{folder}/model"
        command = command or [sys.executable, "-m", "tests.support.live", kind]
        command = [*command, root, noted, "--seconds", str(seconds), "--pause", str(pause)]
        writer = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)})
        try:
            until = time.monotonic() + 60
            while not Path(noted).exists() or len(model := Model(noted)) < 5:
                assert writer.poll() is None, "the writer has ended"
                assert time.monotonic() < until, "the writer does not begin"
                time.sleep(0.02)
            yield root, model
            assert writer.poll() in (None, 0), "the writer has failed"
        finally:
            writer.terminate()
            writer.wait(30)


class Reader:
    """Asks a table in every way, and compares the answers with the model."""

    def __init__(self, root, model, seed, table=None):
        self.root, self.model = root, model
        self.random = random.Random(seed)
        self.still = open_table(f"{Path(root).parent}/still")
        self.table = table or open_table(root)
        self.newest = self.table.current.version
        self.right, self.errors, self.wrong = collections.Counter(), collections.Counter(), []
        self.said = {}

    def run(self, end):
        while time.monotonic() < end and not self.wrong:
            ask = self.random.choice(ASKED)
            try:
                ask(self)
            except SnapshotExplorerError as error:
                kind = f"{ask.__name__}: {type(error).__name__}"
                self.errors[kind] += 1
                self.said.setdefault(kind, str(error))
                if not _NAMED.search(str(error)):
                    self.wrong.append(f"{kind} names nothing: {error}")
            except Exception as error:  # noqa: BLE001 - any other exception is what is looked for
                self.wrong.append(f"{ask.__name__}: {type(error).__name__}: {error}")
            else:
                self.right[ask.__name__] += 1

    def check(self, holds, reported):
        if not holds:
            raise AssertionError(reported)

    def rows_of(self, version):
        known = self.model[version]
        self.check(known is not None, f"version {version} was never committed")
        return known

    def check_rows(self, snapshot):
        """Compare the rows of a version with the model, and return their ids."""
        ids = snapshot.to_arrow(columns=["id"])["id"].to_pylist()
        found, known = (len(ids), mark_of(ids)), self.rows_of(snapshot.version)
        self.check(found == known, f"version {snapshot.version} holds {found}, was written with {known}")
        return collections.Counter(ids)

    def a_version(self):
        return self.random.choice(self.table.versions()[-20:])

    # What is asked

    def update(self):
        version = self.table.update().version
        self.rows_of(version)
        self.check(version >= self.newest, f"update went back from {self.newest} to {version}")
        self.newest = version

    def open(self):
        table = open_table(self.root)
        self.rows_of(table.current.version)
        self.check(table.current.version >= self.newest, f"opened {table.current.version}, {self.newest} was there")
        self.check_rows(table.current)

    def load_newest(self):
        self.check_rows(self.table.update())

    def load_one(self):
        self.check_rows(self.table.at(self.a_version()))

    def count(self):
        snapshot = self.table.at(self.a_version())
        rows = snapshot.count()
        self.check(rows == self.rows_of(snapshot.version)[0], f"version {snapshot.version} counts {rows}")

    def files(self):
        snapshot = self.table.at(self.a_version())
        rows = sum(snapshot.files().to_arrow()["rows"].to_pylist())
        self.check(rows == self.rows_of(snapshot.version)[0], f"files of {snapshot.version} hold {rows} rows")

    def history(self):
        commits = self.table.history(limit=15).to_arrow()
        versions = commits["version"].to_pylist()
        self.check(versions == sorted(set(versions), reverse=True), f"history in the order {versions}")
        self.check(versions[0] >= self.newest, f"history ends with {versions[0]}, {self.newest} was there")
        for version, rows in zip(versions, commits["total_rows"].to_pylist(), strict=True):
            known = self.rows_of(version)[0]
            self.check(rows is None or rows == known, f"history says {rows} rows of version {version}, not {known}")

    def compare(self):
        a, b = self.a_version(), self.a_version()
        found = self.table.compare(a, b).files.to_arrow().to_pylist()
        added = sum(one["rows"] for one in found if one["change"] == "added")
        removed = sum(one["rows"] for one in found if one["change"] == "removed")
        expected = self.rows_of(b)[0] - self.rows_of(a)[0]
        self.check(added - removed == expected, f"{a}..{b} differ by {added - removed} rows, not {expected}")

    def lifetimes(self):
        found = self.table.lifetimes()
        for version in self.random.sample(found.versions, min(5, len(found.versions))):
            rows = sum(found.files_at(version)["rows"].to_pylist())
            self.check(rows == self.rows_of(version)[0], f"lifetimes give {rows} rows for version {version}")
        newest = found.versions[-1]
        self.check(newest >= self.newest, f"lifetimes end with {newest}, {self.newest} was there")

    def changes(self):
        last = self.a_version()
        found = self.table.at("latest").file_changes(since=last).to_arrow()
        for version in set(found["version"].to_pylist()):
            self.rows_of(version)

    def readability(self):
        found = self.table.verify().versions.to_arrow()
        for version in found["version"].to_pylist():
            self.rows_of(version)

    def diff_of_tables(self):
        pinned = [self.table.at(self.a_version()), open_table(self.root).at(self.a_version())]
        a, b = self.random.sample([*pinned, self.still.current], 2)
        counts = diff(a, b, key=[]).counts
        before, after = (STILL if one is self.still.current else self.check_rows(one) for one in (a, b))
        found = counts["inserted"], counts["deleted"]
        expected = (after - before).total(), (before - after).total()
        self.check(found == expected, f"versions {a.version} and {b.version} differ by {found}, not {expected}")

    def trace(self):
        held = {version: self.check_rows(self.table.at(version)) for version in {self.a_version(), self.a_version()}}
        before = set(self.table.versions())
        number = self.random.choice(sorted(sum(held.values(), collections.Counter()))) if any(held.values()) else 0
        found = self.table.trace(f"id = {number}")
        after = set(self.table.versions())
        rows = {row["version"]: row["rows"] for row in found.versions.to_arrow().to_pylist()}
        for version in rows:
            self.rows_of(version)
        self.check(before & after <= set(rows), f"trace lacks versions {sorted(before & after - set(rows))}")
        for version, ids in held.items():
            known = rows.get(version)
            self.check(known in (None, ids[number]), f"trace: {known} rows of {number} in {version}")
            is_gone = "no data file of a version stores" in found.verdict
            self.check(not (is_gone and version in after and ids[number]), f"{number} is in {version}: gone")

    def orphans(self):
        self.check(not len(self.table.orphans("1h").files), "files younger than an hour are orphans")
        self.check_live(lambda: self.table.orphans("0d").files.to_arrow().filter(pc.field("is_orphan")), "orphaned")

    def verify(self):
        level = self.random.choice(["existence", "footers", "bytes"])
        self.check_live(lambda: self.table.verify(level).files.to_arrow().filter(pc.field("state") != "ok"), "bad")

    def check_live(self, found, word):
        """Check that none of the files that were found are those of a version that exists before and after."""
        snapshot = self.table.update()
        live = set(snapshot.files().to_arrow()["path"].to_pylist())
        paths = set(found()["path"].to_pylist())
        self.check_rows(snapshot)
        self.check(not live & paths, f"{sorted(live & paths)} of version {snapshot.version}: {word}")

    def retention(self):
        self.table.retention(keep_last=10) if self.table.format == "paimon" else self.table.retention()


ASKED = (
    Reader.update,
    Reader.update,
    Reader.open,
    Reader.load_newest,
    Reader.load_newest,
    Reader.load_one,
    Reader.count,
    Reader.files,
    Reader.history,
    Reader.compare,
    Reader.lifetimes,
    Reader.changes,
    Reader.readability,
    Reader.retention,
    Reader.diff_of_tables,
    Reader.trace,
    Reader.orphans,
    Reader.verify,
)


def used(root):
    """Return how many threads the package has, and how many files below a folder are open.

    Libraries that other tests of this process use start threads and open files too.
    """
    threads = sum(thread.name.startswith(("snapshot-", "ThreadPool")) for thread in threading.enumerate())
    files = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            files += descriptor.readlink().is_relative_to(root)
    return threads, files


def read_live(kind, *, seconds, readers=4, command=None, pause=0.0):
    """Read a live table from several threads, half of which share a table, and return what was found.

    A dict: commits, right and errors by what was asked, wrong as sentences, threads and files before and after.
    """
    with live_table(kind, seconds=seconds + 60, command=command, pause=pause) as (root, model):
        still = DeltaTable(None, f"{Path(root).parent}/still")
        still.commit(still.data("still.parquet", [(number, "x") for number in STILL]))
        shared = open_table(root)
        shared.current.to_arrow()
        shared.history(limit=3)
        before = used(root)
        them = [Reader(root, model, seed, shared if seed % 2 else None) for seed in range(readers)]
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=one.run, args=(end,), daemon=True) for one in them]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 120)
        hangs = sum(thread.is_alive() for thread in threads)
        commits = len(model)
    until = time.monotonic() + 20
    while (after := used(root)) > before and time.monotonic() < until:
        time.sleep(0.1)
    return {
        "commits": commits,
        "right": sum((one.right for one in them), collections.Counter()),
        "errors": sum((one.errors for one in them), collections.Counter()),
        "said": {kind: reported for one in them for kind, reported in one.said.items()},
        "wrong": [sentence for one in them for sentence in one.wrong] + [f"{hangs} readers hang"] * bool(hangs),
        "before": before,
        "after": after,
    }
