"""`BranchMetadata`: the metadata of a table bound to a branch, read again for versions that it lacks."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse

from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.formats.iceberg.metadata.contents import Source
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory, history_of, not_in_history
from snapshot_explorer.formats.iceberg.metadata.locations import locations_of
from snapshot_explorer.formats.iceberg.metadata.metadata_files import MetadataFiles
from snapshot_explorer.formats.iceberg.metadata.table_metadata import MAIN, TableMetadata
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.storage import Storage


@dataclass(slots=True, kw_only=True)
class ReadLast:
    """The metadata of a table that was read last."""

    numbers: Mapping[int, int]
    """The versions of snapshots without sequence numbers."""
    history: tuple[Source, IcebergHistory, tuple[str, ...]] | None = None
    """The history, and notes on it."""
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMetadata:
    """The history of a branch, or the history that ends at a snapshot. Caches the metadata file that was read last."""

    storage: Storage
    branch: str | None
    """The branch, or a snapshot id as text; None for main."""
    relocate: Mapping[str, str]
    files: MetadataFiles
    newest_state: int | None = None
    """The newest version, which is read under the current schema; None if every version has its own schema."""
    read_last: ReadLast

    def current(self) -> tuple[Source, IcebergHistory]:
        """Return the history that was read last; reads it the first time."""
        known = self.read_last.history
        if known is None:
            source, history, _ = self.read()
            return source, history
        return known[0], known[1]

    def having(self, versions: Sequence[int]) -> tuple[Source, IcebergHistory]:
        """Return a history that contains these versions. Reads it again if the last one read lacks some."""
        source, history = self.current()
        if not all(map(history.ids.__contains__, versions)):
            source, history, _ = self.read()
            missing = next(filterfalse(history.ids.__contains__, versions), None)
            if missing is not None:
                raise self.not_found(history, missing)
        return source, history

    def read(self) -> tuple[Source, IcebergHistory, tuple[str, ...]]:
        """Return the current history, and notes on it. Reads the current metadata file."""
        current, last = self.files.current(), self.read_last
        with last.lock:
            known = last.history
            if known is not None and known[0].metadata is current.metadata:
                return known
            history = history_of(current.metadata, self.branch, last.numbers)
            if history.is_counted:
                last.numbers = dict(history.numbers)
            source = self._source(current.metadata)
            last.history = source, history, (*current.notes, *history.notes)
            return last.history

    def _source(self, metadata: TableMetadata) -> Source:
        earlier = [file for _, file in metadata.metadata_log[::-1]]
        lists = filter(None, metadata.snapshots.every("manifest_list"))
        locations = locations_of(self.storage.root, metadata.location, chain(earlier, lists), self.relocate)
        return Source(storage=self.storage, metadata=metadata, locations=locations)

    def not_found(self, history: IcebergHistory, number: int) -> SnapshotNotFoundError:
        """Return the error for a version that the history lacks."""
        snapshots = history.metadata.snapshots
        other = snapshots.get(number) or next(
            (snapshot for snapshot in snapshots.values() if snapshot.sequence_number == number and number), None
        )
        if other is not None:
            return not_in_history(history, other)
        state = "does not exist, nor a snapshot of that id"
        return absent_version_error(self.storage.root, number, history.versions, state)

    def schema_id(self, history: IcebergHistory, version: int) -> int | None:
        """Return the id of the schema of a version; None if it is not recorded."""
        metadata = history.metadata
        ref = metadata.refs.get(self.branch or MAIN)
        if version == self.newest_state and ref is not None and ref.is_branch:
            return metadata.current_schema_id
        return history.snapshots[version].schema_id
