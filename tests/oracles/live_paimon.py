"""A writer that changes a Paimon table as fast as Paimon's Java core can; see live_writer.py.

Upserts and deletes by the primary key, compacts, and expires snapshots, which deletes their files.
"""

import sys
from pathlib import Path

from live_writer import LiveWriter, main

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.oracles import paimon_core

_OPTIONS = {
    "bucket": "1",
    "file.format": "parquet",
    "num-sorted-run.compaction-trigger": "4",
    "snapshot.num-retained.min": "20",
    "snapshot.num-retained.max": "40",
    "snapshot.time-retained": "1 s",
}


class PaimonWriter(LiveWriter):
    """Writes one table."""

    def __init__(self, root, model):
        super().__init__(root, model)
        folder = Path(root).parent
        self.core = paimon_core.Core(Path(sys.prefix) / "jars" / "paimon-1.4", folder)
        self.core.create("t", {"id": "BIGINT NOT NULL", "name": "STRING"}, "id", _OPTIONS)
        Path(root).symlink_to(self.core.warehouse / "d.db" / "t")
        self.table = self.core.table("t")

    def version(self):
        latest = self.table.snapshotManager().latestSnapshotId()
        return 0 if latest is None else int(latest)

    def step(self):
        """Commit once; Paimon compacts and expires by the table's options."""
        if gone := self.removed():
            self.core.write("t", [(number, "x") for number in gone], delete=True)
        else:
            self.core.write("t", [(number, "x") for number in self.added()])


if __name__ == "__main__":
    main(PaimonWriter)
