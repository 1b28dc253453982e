"""A writer that changes a Delta table as fast as the library deltalake can; see live_writer.py.

Appends, deletes, compacts, checkpoints, cleans up the log, and vacuums.
"""

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from live_writer import LiveWriter, main

_COMPACTED_EVERY = 9
_TIDIED_EVERY = 25


class DeltaWriter(LiveWriter):
    """Writes one table."""

    def __init__(self, root, model):
        super().__init__(root, model)
        self.note(-1)
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

    def version(self):
        return self.table.version()

    def step(self):
        """Commit once; tidy up now and then."""
        version = self.version()
        if version % _TIDIED_EVERY == _TIDIED_EVERY - 1:
            self.note(version)
            self.table.create_checkpoint()
            self.table.cleanup_metadata()
            self.table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
            self.append()
        elif version % _COMPACTED_EVERY == _COMPACTED_EVERY - 1:
            self.note(version)
            self.table.optimize.compact()
            self.append()
        elif gone := self.removed():
            self.table.delete(f"id in ({', '.join(map(str, gone))})")
        else:
            self.append()
        self.table.update_incremental()

    def append(self):
        """Append three rows."""
        self.table.update_incremental()
        new = self.added()
        write_deltalake(self.table, pa.table({"id": pa.array(new, pa.int64()), "name": ["x"] * 3}), mode="append")


if __name__ == "__main__":
    main(DeltaWriter)
