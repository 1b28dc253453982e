"""What writers of live tables share: the notes of the rows of each version, and the command line of their scripts.

    .venv-oracles/bin/python tests/oracles/live_deltalake.py FOLDER MODEL [--seconds N] [--pause SECONDS]

They take what tests/support/live.py takes, for `tests/benchmarks/live.py --format delta --writer PYTHON SCRIPT`.
"""

import argparse
import hashlib
import os
import random
import time
from pathlib import Path

_MOST_ROWS = 300
_AHEAD = 3
"""Versions that a step may commit, such as a compaction after an append."""


class LiveWriter:
    """Appends and deletes rows of one table, and notes the rows of a version before it is committed."""

    def __init__(self, root, model):
        self.root, self.ids, self.next_id = root, set(), 0
        self.random = random.Random(0)
        self._model = Path(model).open("ab", buffering=0)  # noqa: SIM115 - as long as the process

    def note(self, version):
        """Note the present rows of the versions that may be committed after a version."""
        mark = hashlib.blake2b(repr(sorted(self.ids)).encode(), digest_size=12).hexdigest()
        for number in range(version + 1, version + 1 + _AHEAD):
            self._model.write(f"{number} {len(self.ids)} {mark}\n".encode())

    def added(self):
        """Return the ids of three new rows, which are noted."""
        new = list(range(self.next_id, self.next_id + 3))
        self.next_id += 3
        self.ids = self.ids | set(new)
        self.note(self.version())
        return new

    def removed(self):
        """Return the ids of rows that are deleted now, which is noted; none if rows are to be appended."""
        if not self.ids or (len(self.ids) <= _MOST_ROWS and self.random.random() >= 0.2):
            return []
        gone = self.random.sample(sorted(self.ids), max(1, len(self.ids) - _MOST_ROWS))
        self.ids = self.ids.difference(gone)
        self.note(self.version())
        return gone


def main(writer_class):
    """Write the table that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=0.0)
    arguments = parser.parse_args()
    writer = writer_class(arguments.folder, arguments.model)
    end, parent = time.monotonic() + arguments.seconds, os.getppid()
    while time.monotonic() < end and os.getppid() == parent:
        writer.step()
        time.sleep(arguments.pause)
