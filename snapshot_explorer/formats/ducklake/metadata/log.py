"""`DuckLakeLog`: the catalog of one table, read again when something was committed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from snapshot_explorer.core.errors import SnapshotNotFoundError, TableNotFoundError
from snapshot_explorer.formats.ducklake.metadata.databases import CatalogFile, CatalogReader
from snapshot_explorer.formats.ducklake.metadata.paths import DataPath
from snapshot_explorer.formats.ducklake.metadata.postgres import PostgresCatalog
from snapshot_explorer.formats.ducklake.metadata.table_metadata import ENDLESS, DuckLakeMetadata, read_metadata
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """Where a table is: its catalog, its number there, and its data. Picklable."""

    file: CatalogFile | PostgresCatalog
    table_id: int
    data: DataPath
    relocate: Mapping[str, str]
    """The new path of each recorded folder that was moved."""

    def read(self, reader: CatalogReader, storage: Storage) -> DuckLakeMetadata:
        """Return the rows of the catalog about the table, whose data are in a storage."""
        return read_metadata(reader, self.table_id, self.file.shown, storage.root, self.relocate)


class DuckLakeLog:
    """The metadata of a table, as of the last look at its catalog. Safe to use from several threads, and picklable."""

    def __init__(self, storage: Storage, place: TablePlace, opened: DuckLakeMetadata | None = None) -> None:
        """Bind to a table. Reads nothing.

        Args:
            opened: Its metadata, if that was just read. The first refresh returns it.
        """
        self.storage = storage
        self.place = place
        self._known = self._opened = opened

    def __reduce__(self) -> tuple[type["DuckLakeLog"], tuple[Storage, TablePlace]]:
        return DuckLakeLog, (self.storage, self.place)

    def refresh(self) -> DuckLakeMetadata:
        """Return the current metadata: opens the catalog once, and reads the rows only if something was committed.

        Options change without a commit.
        """
        opened, self._opened = self._opened, None
        if opened is not None:
            return opened
        known = self._known
        with self.reading() as reader:
            if (
                known is None
                or not reader.read("snapshot").sort_by("snapshot_id").equals(known.rows["snapshot"])
                or not reader.read("metadata").equals(known.rows["metadata"])
            ):
                known = self.place.read(reader, self.storage)
        self._known = known
        return known

    @contextmanager
    def reading(self) -> Iterator[CatalogReader]:
        """Open the catalog, in one transaction.

        Raises:
            TableNotFoundError: It was replaced by another one since it was read.
        """
        with self.place.file.reading() as reader:
            if self._known is not None and not self._known.is_of(reader):
                raise TableNotFoundError(
                    f"The catalog {self.place.file.shown} was replaced: it is not the one in which {self._known.name} "
                    "was opened. Versions that were loaded before remain; to read the new catalog, open the table "
                    "again."
                )
            yield reader

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
            raise _absence(known, snapshot)
        return known


def _absence(metadata: DuckLakeMetadata, snapshot: int) -> SnapshotNotFoundError:
    """Return the error for a snapshot at which the table cannot be read, with the reason and the nearest ones."""
    existing = metadata.snapshot_ids
    state: str | None = None
    if len(existing) and existing[0] <= snapshot <= existing[-1] and snapshot not in existing:
        index = int(np.searchsorted(existing, snapshot))
        state = f"has expired: the catalog has snapshots {existing[index - 1]} and {existing[index]} beside it"
    elif snapshot < metadata.begin:
        state = f"is before {metadata.name}, which was created at {metadata.begin}"
    elif metadata.end <= snapshot <= existing[-1] and metadata.end != ENDLESS:
        state = f"is after {metadata.name}, which was dropped at {metadata.end}"
    return absent_version_error(metadata.name, snapshot, metadata.versions.tolist(), state)
