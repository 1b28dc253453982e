"""Logs of Delta tables with files of many ages, and what Delta 4.4 deletes of each when it writes a checkpoint.

`tests/oracles/test_retention.py` has the connector delete again; elsewhere what it deleted is written down here.
"""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.support.delta.table_builder import DeltaTable, metadata, protocol

DAY = timedelta(days=1)
V2 = protocol(features=["v2Checkpoint"])
PROTECTED = {
    "protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "checkpointProtection"],
    }
}
_UP_TO_8 = {"delta.requireCheckpointProtectionBeforeVersion": "8"}
_UP_TO_25 = {"delta.requireCheckpointProtectionBeforeVersion": "25"}


@dataclass(frozen=True, kw_only=True)
class ExpiredLog:
    """A log whose commits are a day apart, unless ages are given."""

    first_kept: int
    """The first version whose files Delta leaves, of a log that keeps 10 days."""
    commits: int = 26
    ages: tuple[float, ...] = ()
    """How many days before noon of today each commit was written."""
    checkpoints: tuple = ()
    """Versions, or versions with arguments of `DeltaTable.checkpoint`."""
    checksums: tuple = ()
    compactions: tuple = ()
    settings: dict = field(default_factory=dict)
    first: dict = field(default_factory=protocol)
    """The first action: the protocol."""
    removed: tuple = ()
    """Patterns of log files that are removed before."""
    young: tuple = ()
    """Patterns of log files that were written a day ago."""
    also: tuple = ()
    """Patterns of further files that Delta deletes."""

    def write(self, root, noon):
        """Write the table; return the builder."""
        settings = {
            "delta.logRetentionDuration": "interval 10 days",
            "delta.checkpointInterval": "1000",
        } | self.settings
        table = DeltaTable(None, root, first=(self.first, metadata(configuration=settings)))
        ages = self.ages or [self.commits - 1 - version for version in range(self.commits)]
        for version in range(1, len(ages)):
            table.commit(table.data(f"f{version}.parquet", [(version, "a")]))
        for version in self.checksums:
            table.checksum(version)
        for versions in self.compactions:
            table.compaction(*versions)
        for item in self.checkpoints:
            version, arguments = (item, {}) if isinstance(item, int) else item
            table.checkpoint(version, **arguments)
        log = Path(root) / "_delta_log"
        for pattern in self.removed:
            for path in log.glob(pattern):
                path.unlink()
        for path in log.rglob("0*"):
            when = (noon - ages[int(path.name[:20])] * DAY).timestamp()
            os.utime(path, (when, when))
        for path in (path for pattern in self.young for path in log.glob(pattern)):
            os.utime(path, ((noon - DAY).timestamp(),) * 2)
        return table


def days(*ages):
    return tuple(float(age) for age in ages)


LOGS = {
    "checkpoints before and after": ExpiredLog(
        first_kept=10, checkpoints=(10, 20), checksums=(5, 9, 10, 15), compactions=((0, 4), (3, 8), (8, 12))
    ),
    "several old checkpoints": ExpiredLog(first_kept=15, commits=30, checkpoints=(5, 10, 15, 25)),
    "no old checkpoint": ExpiredLog(first_kept=0, checkpoints=(20,)),
    "no checkpoint": ExpiredLog(first_kept=0),
    "a checkpoint of the first young commit": ExpiredLog(first_kept=15, checkpoints=(14, 15, 16, 20)),
    "all old": ExpiredLog(first_kept=25, ages=days(*range(65, 39, -1)), checkpoints=(10, 20)),
    "all old, without a checkpoint": ExpiredLog(first_kept=25, ages=days(*range(65, 39, -1))),
    "all old, with one of the newest": ExpiredLog(
        first_kept=25, ages=days(*range(65, 39, -1)), checkpoints=(10, 20, 25)
    ),
    "at midnight": ExpiredLog(
        first_kept=16, ages=days(*(age + 0.5 for age in range(25, -1, -1))), checkpoints=(10, 14, 15, 16, 20)
    ),
    "a young commit between old ones": ExpiredLog(
        first_kept=7,
        ages=days(25, 24, 23, 15, 22, 21, 20, 19, 5, *range(18, 1, -1)),
        checkpoints=(4, 7, 12, 20),
    ),
    "a young commit before a checkpoint": ExpiredLog(
        first_kept=9,
        ages=days(25, 24, 23, 22, 21, 8, *range(20, 14, -1), *range(13, -1, -1)),
        checkpoints=(3, 4, 7, 9, 20),
    ),
    "a commit older than the one before": ExpiredLog(
        first_kept=9,
        ages=days(25, 24, 23, 22, 21, 14, *range(20, 14, -1), *range(13, -1, -1)),
        checkpoints=(5, 7, 9, 20),
    ),
    "young checkpoints of old commits": ExpiredLog(
        first_kept=13,
        checkpoints=(10, 13, 20),
        young=(f"{10:020d}.checkpoint.parquet", f"{13:020d}.checkpoint.parquet"),
    ),
    "checkpoints of several parts": ExpiredLog(
        first_kept=10,
        commits=30,
        checkpoints=((5, {"form": "multi-part"}), (10, {"form": "multi-part", "parts": 3}), 20),
    ),
    "a checkpoint without one of its parts": ExpiredLog(
        first_kept=5,
        commits=30,
        checkpoints=(5, (10, {"form": "multi-part", "parts": 3}), 20),
        removed=(f"{10:020d}.checkpoint.{2:010d}.*",),
    ),
    "checkpoints with sidecars": ExpiredLog(
        first_kept=12,
        commits=30,
        checkpoints=(
            (5, {"form": "parquet", "sidecars": 2}),
            (10, {"form": "json", "sidecars": 1}),
            (12, {"form": "parquet", "sidecars": 1}),
        ),
        first=V2,
    ),
    "two checkpoints of a version": ExpiredLog(
        first_kept=12,
        commits=30,
        checkpoints=(5, 12, (12, {"form": "json", "name": "00000000-0000-4000-8000-000000000000"}), 25),
        first=V2,
        also=(f"{12:020d}.checkpoint.*.json",),
    ),
    "protected versions": ExpiredLog(
        first_kept=12, commits=30, checkpoints=(5, 10, 12, 25), first=PROTECTED, settings=_UP_TO_8
    ),
    "more protected versions": ExpiredLog(
        first_kept=12, commits=30, checkpoints=(5, 10, 12, 25), first=PROTECTED, settings=_UP_TO_25
    ),
    "switched off": ExpiredLog(first_kept=0, checkpoints=(10, 20), settings={"delta.enableExpiredLogCleanup": "false"}),
    "cleaned before": ExpiredLog(
        first_kept=14,
        commits=30,
        checkpoints=(8, 14, 25),
        removed=tuple(f"{version:020d}.json" for version in range(8)),
    ),
    "without the first commits": ExpiredLog(
        first_kept=10, checkpoints=(10, 20), removed=tuple(f"{version:020d}.json" for version in range(4))
    ),
    "a checkpoint without its commit": ExpiredLog(
        first_kept=12, checkpoints=(10, 12, 20), removed=(f"{12:020d}.json",)
    ),
}


def deleted(log, root):
    """Return the paths of the log files that Delta deletes, but for sidecars."""
    folder = Path(root) / "_delta_log"
    paths = {
        path for path in folder.glob("0*") if int(path.name[:20]) < log.first_kept and ".compacted." not in path.name
    }
    paths |= {path for pattern in log.also for path in folder.glob(pattern)}
    return {path.relative_to(root).as_posix() for path in paths}
