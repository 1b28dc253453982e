"""A writer that changes an Iceberg table as fast as the library pyiceberg can; see live_writer.py.

Appends, deletes by rewriting, expires snapshots, and removes the files that no snapshot names. Needs SQLAlchemy, as in
the extra sql-sqlite of pyiceberg.
"""

from pathlib import Path

import pyarrow as pa
from live_writer import LiveWriter, main
from pyiceberg.catalog.sql import SqlCatalog

_TIDIED_EVERY = 25
_KEPT = 20


class IcebergWriter(LiveWriter):
    """Writes one table."""

    def __init__(self, root, model):
        super().__init__(root, model)
        folder = Path(root).parent
        catalog = SqlCatalog("live", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
        catalog.create_namespace("live")
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
        self.table = catalog.create_table("live.table", schema, location=Path(root).as_uri())
        self.steps = 0

    def version(self):
        return len(self.table.metadata.snapshots) and self.table.metadata.last_sequence_number

    def step(self):
        """Commit once; tidy up now and then."""
        self.steps += 1
        if self.steps % _TIDIED_EVERY == 0:
            self.tidy()
        elif gone := self.removed():
            self.table.delete(f"id in ({', '.join(map(str, gone))})")
        else:
            new = pa.table({"id": pa.array(self.added(), pa.int64()), "name": ["x"] * 3})
            self.table.append(new)

    def tidy(self):
        """Expire old snapshots, and remove their files, the metadata first."""
        old = sorted(self.table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)[:-_KEPT]
        before = self._files()
        self.table.maintenance.expire_snapshots().by_ids([snapshot.snapshot_id for snapshot in old]).commit()
        after = self._files()
        for path in [path for path in before if path not in after]:
            Path(path.removeprefix("file://")).unlink(missing_ok=True)

    def _files(self):
        """Return the files of all snapshots: manifest lists, manifests, data files."""
        lists = {snapshot.manifest_list: None for snapshot in self.table.metadata.snapshots}
        manifests = self.table.inspect.all_manifests()["path"].to_pylist()
        return lists | dict.fromkeys(manifests) | dict.fromkeys(self.table.inspect.all_files()["file_path"].to_pylist())


if __name__ == "__main__":
    main(IcebergWriter)
