"""An explorer follows a live table for an hour: memory, threads and open files level out.

    python tests/benchmarks/soak.py [--minutes 60] [--format delta|iceberg|paimon|all] [--pause 0.2] [--every 60]

A process of its own commits to a table, compacts, checkpoints, expires and vacuums it, with a pause after each commit.
An explorer in this process follows the table all the time, and a second one that is closed and opened anew every
minute; a script does with both what users do: it moves the markers, changes tabs, filters and pages, and refreshes. A
sample is printed every so many seconds, and at the end a verdict: the medians of the last third against those of the
third before. Ends with 1 if something grows, or went wrong that is no error of the table's own. The formats share the
minutes.
"""

# ruff: noqa: T201 - it prints what it measured

import argparse
import asyncio
import collections
import gc
import logging
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa

from snapshot_explorer import open_table
from snapshot_explorer.jupyter.explorer import Explorer
from tests.inner.jupyter import COMPARED, HEALTH, MEASURES, TABS

ROOT = Path(__file__).parents[2]

FORMATS = ("delta", "iceberg", "paimon")
_COLUMNS = ("rss_mb", "arrow_mb", "threads", "files", "objects")
_ALLOWED = {
    "rss_mb": (1.02, 4),
    "arrow_mb": (1.05, 1),
    "threads": (1.0, 3),
    "files": (1.0, 5),
    "objects": (1.01, 1_000),
}
"""By what factor, and by how much more, the median of the last third may exceed that of the third before."""
_FOREIGN = ("Error:", "Exception:", "Iteration:")
"""How a sentence begins, behind the name of a class, that tells of an exception which is not ours."""
_REOPENED = 60
"""Seconds after which the second explorer is closed, and another one opened."""


def sample():
    """Return what this process uses."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss_mb": pages * resource.getpagesize() / 2**20,
        "arrow_mb": pa.total_allocated_bytes() / 2**20,
        "threads": threading.active_count(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "objects": len(gc.get_objects()),
    }


class User:
    """Does with an explorer what users do."""

    def __init__(self, path, seed):
        self.path = path
        self.random = random.Random(seed)
        self.done, self.reported, self.wrong = collections.Counter(), collections.Counter(), collections.Counter()
        self.open()

    def open(self):
        self.table = open_table(self.path)
        self.explorer = Explorer(self.table, name="t", variables={})
        self.explorer.state.interval = 0.5
        self.explorer.state.follow = True

    def act(self):  # noqa: C901 - one thing of many
        state, chosen = self.explorer.state, self.random.choice
        versions = state.versions
        match self.random.randrange(12):
            case 0 | 1:
                state.tab = chosen(TABS)
            case 2 if versions:
                state.b = chosen(versions)
            case 3 if versions:
                state.a = chosen(versions)
            case 4:
                state.measure = chosen(MEASURES)
            case 5:
                state.compared, state.health = chosen(COMPARED), chosen(HEALTH)
            case 6:
                state.kind = chosen((None, "append", "compact"))
            case 7:
                state.reset_filters()
            case 8:
                state.next()
            case 9:
                self.explorer.choose(chosen(("latest", "latest~3", "earliest")))
            case 10:
                self.explorer.refresh()
            case _:
                state.turn("files", 1)
        self.done["acts"] += 1

    def look(self):
        """Note what is shown that went wrong: an error of ours is counted, any other is wrong."""
        shown = [self.explorer.state.note, *(view.error for view in self.explorer.views.values())]
        for sentence in filter(None, shown):
            head = sentence.split(" ", 1)[0]
            (self.wrong if head.endswith(_FOREIGN) else self.reported)[sentence[:160]] += 1

    def close(self):
        self.explorer.close()
        self.done["explorers"] += 1


async def drive(path, seconds, every, samples):
    """Use explorers for so many seconds, take samples, and return the users."""
    stays, comes_and_goes = users = User(path, 1), User(path, 2)
    begin = time.monotonic()
    due, reopened = begin + every, begin
    while (now := time.monotonic()) < begin + seconds:
        for user in users:
            user.act()
            await asyncio.sleep(0.25)
            user.look()
        if now - reopened > _REOPENED:
            comes_and_goes.close()
            comes_and_goes.open()
            reopened = now
        if now >= due:
            due += every
            taken = {"minute": (now - begin) / 60} | sample() | {"newest": stays.table.current.version}
            samples.append(taken)
            print("  ".join(f"{name} {value:,.1f}" for name, value in taken.items()), flush=True)
    for user in users:
        user.close()
    return users


def verdict(samples):
    """Return a line for each quantity that grows."""
    third = len(samples) // 3
    found = []
    for name in _COLUMNS:
        before, last = (
            statistics.median(one[name] for one in some) for some in (samples[third : 2 * third], samples[2 * third :])
        )
        factor, more = _ALLOWED[name]
        print(f"{name}: {before:,.1f} in the second third, {last:,.1f} in the last")
        if last > before * factor + more:
            found.append(f"{name} grows")
    return found


def soak(kind, minutes, every, pause):
    """Return what is wrong after so many minutes; nothing if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        root, model = f"{folder}/table", f"{folder}/model"
        command = [sys.executable, "-m", "tests.support.live", kind, root, model]
        command += ["--seconds", str(minutes * 60 + 30), "--pause", str(pause)]
        writer = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)})
        try:
            while not Path(model).exists() or len(Path(model).read_bytes().splitlines()) < 5:
                time.sleep(0.1)
            samples = []
            users = asyncio.run(drive(root, minutes * 60, every, samples))
        finally:
            writer.terminate()
            writer.wait(30)
        commits = len(Path(model).read_bytes().splitlines())
    done, reported, wrong = (
        sum((getattr(user, name) for user in users), collections.Counter()) for name in ("done", "reported", "wrong")
    )
    print(f"{kind}: {commits:,} commits, {done['acts']:,} acts, {done['explorers']:,} explorers")
    print(f"errors of the table's own, as often as one was seen on the screen: {reported.total():,}")
    for sentence, times in reported.most_common(8):
        print(f"  {times:,} x {sentence}")
    found = [f"{times} x {sentence}" for sentence, times in wrong.most_common()]
    return found + (verdict(samples) if len(samples) >= 6 else ["fewer than 6 samples: no verdict"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--format", choices=(*FORMATS, "all"), default="all")
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--every", type=float, default=60)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    kinds = FORMATS if asked.format == "all" else (asked.format,)
    found = []
    for kind in kinds:
        found += [f"{kind}: {one}" for one in soak(kind, asked.minutes / len(kinds), asked.every, asked.pause)]
    print("\n".join(found) if found else "LEVEL: memory, threads and open files do not grow.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
