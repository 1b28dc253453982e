"""`DuckLakeLog`: the catalog of one table, read again when something was committed."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.formats.ducklake.metadata.databases import CatalogFile
from snapshot_explorer.formats.ducklake.metadata.paths import DataPath, below_root, file_paths, folder_below
from snapshot_explorer.formats.ducklake.metadata.postgres import PostgresCatalog
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata, read_identity, read_metadata
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """Where a table is: its catalog, its number there, and its data. Picklable."""

    file: CatalogFile | PostgresCatalog
    table_id: int
    data: DataPath
    relocate: tuple[tuple[str, str], ...] = ()
    """Recorded folders that were moved, each with its new path."""

    @property
    def relocations(self) -> Mapping[str, str]:
        """The new path of each recorded folder."""
        return dict(self.relocate)


class DuckLakeLog:
    """The metadata of a table, as of the last look at its catalog. Safe to use from several threads, and picklable."""

    def __init__(self, storage: Storage, place: TablePlace) -> None:
        """Bind to a table. Reads nothing."""
        self.storage = storage
        self.place = place
        self._known: DuckLakeMetadata | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["DuckLakeLog"], tuple[Storage, TablePlace]]:
        return DuckLakeLog, (self.storage, self.place)

    @property
    def shown(self) -> str:
        """The catalog, for display."""
        return self.place.file.shown

    def refresh(self) -> DuckLakeMetadata:
        """Return the current metadata: opens the catalog once, and reads the rows only if something was committed."""
        known = self._known
        with self.place.file.reading() as reader:
            if known is not None:
                identity = read_identity(reader)
                if known.identity[: len(identity)] == identity:
                    options = reader.read("ducklake_metadata")  # these change without a commit
                    if options.equals(known.options):
                        return known
            result = self.with_paths(read_metadata(reader, self.place.table_id, self.shown))
        with self._lock:
            self._known = result
        return result

    def current(self) -> DuckLakeMetadata:
        """Return the metadata that was read last; reads it the first time."""
        return self._known or self.refresh()

    def having(self, snapshot: int) -> DuckLakeMetadata:
        """Return metadata in which a snapshot exists and the table is there.

        Raises:
            SnapshotNotFoundError: The snapshot has expired, or the table was created later or dropped before.
        """
        known = self.current()
        if known.version_at(snapshot) is None:
            known = self.refresh()
        if known.version_at(snapshot) is None:
            raise absence(known, snapshot)
        return known

    def with_paths(self, metadata: DuckLakeMetadata) -> DuckLakeMetadata:
        """Return metadata whose files have the column `location`: their paths below the data path, or absolute."""
        schemas = {row["schema_id"]: row for row in metadata.schemas.to_pylist()}
        row = metadata.tables.sort_by([("begin_snapshot", "descending")]).slice(0, 1).to_pylist()[0]
        schema = schemas.get(row["schema_id"], {})
        folder = folder_below("", schema.get("path"), is_relative=schema.get("path_is_relative"))
        folder = folder_below(folder, row["path"], is_relative=row["path_is_relative"])

        def located(rows: pa.Table) -> pa.Table:
            paths = file_paths(rows, folder, self.place.relocations)
            root = self.storage.root
            return rows.append_column("location", pa.array([below_root(path, root) for path in paths], pa.string()))

        return replace(metadata, data_files=located(metadata.data_files), delete_files=located(metadata.delete_files))


def absence(metadata: DuckLakeMetadata, snapshot: int) -> SnapshotNotFoundError:
    """Return the error for a snapshot at which the table cannot be read, with the reason and the nearest ones."""
    existing = metadata.snapshot_ids
    state: str | None = None
    if len(existing) and existing[0] <= snapshot <= existing[-1] and snapshot not in existing:
        index = int(np.searchsorted(existing, snapshot))
        state = f"has expired: the catalog has snapshots {existing[index - 1]} and {existing[index]} beside it"
    elif snapshot < metadata.begin:
        state = f"is before {metadata.name}, which was created at {metadata.begin}"
    elif metadata.end is not None and metadata.end <= snapshot <= existing[-1]:
        state = f"is after {metadata.name}, which was dropped at {metadata.end}"
    return absent_version_error(metadata.name, snapshot, metadata.versions.tolist(), state)
