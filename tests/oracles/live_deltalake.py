"""A writer that changes a Delta table as fast as the library deltalake can, and notes the rows of each version.

    .venv-oracles/bin/python tests/oracles/live_deltalake.py FOLDER MODEL [--seconds N] [--pause SECONDS]

Appends, deletes, compacts, checkpoints, cleans up the log, and vacuums. It takes what tests/support/live.py takes, for
`tests/benchmarks/live.py --format delta --writer .venv-oracles/bin/python tests/oracles/live_deltalake.py`.
"""

import argparse
import hashlib
import os
import random
import time
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

_COMPACTED_EVERY = 9
_TIDIED_EVERY = 25
_MOST_ROWS = 300
_AHEAD = 3
"""Versions that a step may commit: vacuum commits when it begins and when it ends."""


class Writer:
    """Writes one table."""

    def __init__(self, root, model):
        self.root, self.ids, self.next_id = root, set(), 0
        self.random = random.Random(0)
        self._model = Path(model).open("ab", buffering=0)  # noqa: SIM115 - as long as the process
        self.note(-1, self.ids)
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
        DeltaTable.create(
            root,
            schema,
            configuration={
                "delta.logRetentionDuration": "interval 2 seconds",
                "delta.deletedFileRetentionDuration": "interval 1 seconds",
            },
        )
        self.table = DeltaTable(root)

    def note(self, version, ids):
        """Note the rows of the versions that may be committed next."""
        mark = hashlib.blake2b(repr(sorted(ids)).encode(), digest_size=12).hexdigest()
        for number in range(version + 1, version + 1 + _AHEAD):
            self._model.write(f"{number} {len(ids)} {mark}\n".encode())

    def step(self):
        """Commit once."""
        version = self.table.version()
        if version % _TIDIED_EVERY == _TIDIED_EVERY - 1:
            self.note(version, self.ids)
            self.table.create_checkpoint()
            self.table.cleanup_metadata()
            self.table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
            self.append()
        elif version % _COMPACTED_EVERY == _COMPACTED_EVERY - 1:
            self.note(version, self.ids)
            self.table.optimize.compact()
            self.append()
        elif self.ids and (len(self.ids) > _MOST_ROWS or self.random.random() < 0.2):
            gone = set(self.random.sample(sorted(self.ids), max(1, len(self.ids) - _MOST_ROWS)))
            self.ids = self.ids - gone
            self.note(version, self.ids)
            self.table.delete(f"id in ({', '.join(map(str, gone))})")
        else:
            self.append()
        self.table.update_incremental()

    def append(self):
        """Append three rows."""
        self.table.update_incremental()
        new = list(range(self.next_id, self.next_id + 3))
        self.next_id += 3
        self.ids = self.ids | set(new)
        self.note(self.table.version(), self.ids)
        write_deltalake(self.table, pa.table({"id": pa.array(new, pa.int64()), "name": ["x"] * 3}), mode="append")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=0.0)
    arguments = parser.parse_args()
    writer = Writer(arguments.folder, arguments.model)
    end, parent = time.monotonic() + arguments.seconds, os.getppid()
    while time.monotonic() < end and os.getppid() == parent:
        writer.step()
        time.sleep(arguments.pause)


if __name__ == "__main__":
    main()
