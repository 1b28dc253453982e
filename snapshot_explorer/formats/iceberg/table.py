"""`Iceberg`: an Iceberg table on storage, an implementation of `formats.TableFormat`."""

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.records import ChangeMode, Inspection, Listing, Readable
from snapshot_explorer.formats.capabilities import CatalogFacts, MetadataLayout
from snapshot_explorer.formats.iceberg.changes.events import HIDDEN
from snapshot_explorer.formats.iceberg.changes.row_changes import splits_between
from snapshot_explorer.formats.iceberg.expiry.maintenance import IcebergMaintenance
from snapshot_explorer.formats.iceberg.frames.commits import commits_frame
from snapshot_explorer.formats.iceberg.frames.delete_files import IcebergDeleteFiles
from snapshot_explorer.formats.iceberg.frames.files import changes_frame
from snapshot_explorer.formats.iceberg.frames.manifests import IcebergManifests
from snapshot_explorer.formats.iceberg.inspect.inspections import INSPECTIONS, inspect_table
from snapshot_explorer.formats.iceberg.metadata.branch_metadata import BranchMetadata, ReadLast
from snapshot_explorer.formats.iceberg.metadata.branches import IcebergBranches
from snapshot_explorer.formats.iceberg.metadata.contents import Source, changed_files
from snapshot_explorer.formats.iceberg.metadata.history import (
    IcebergHistory,
    committed_by,
    current_at,
    not_in_history,
    time_of,
)
from snapshot_explorer.formats.iceberg.metadata.metadata_files import (
    HINT,
    METADATA_FILE,
    MetadataFiles,
    has_metadata,
)
from snapshot_explorer.formats.iceberg.metadata.schema import arrow_schema, parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import MAIN
from snapshot_explorer.formats.iceberg.metadata_tasks import IcebergMetadataTasks
from snapshot_explorer.formats.iceberg.version import IcebergVersion
from snapshot_explorer.formats.interface import Repairs, RowChanges, TableFormat, digest_of
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000


class Iceberg(TableFormat):
    """An Iceberg table, bound to one branch. Caches the metadata file that it read last. Thread-safe."""

    name: ClassVar[str] = "iceberg"
    title: ClassVar[str] = "Iceberg"
    metadata_layout: ClassVar[MetadataLayout] = MetadataLayout(
        folders=frozenset(("metadata",)),
        file_names=re.compile(r".+\.metadata\.json(?:\.gz)?|version-hint\.text|snap-\d+-.+\.avro", re.ASCII),
        first_file=HINT,
        table_files=METADATA_FILE,
    )
    catalog: ClassVar[CatalogFacts] = CatalogFacts(
        file_query="SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
    )
    repairs: ClassVar[Repairs | None] = Repairs(
        restore_command="CALL system.rollback_to_snapshot('{name}', {identifier})",
        time_travel="VERSION AS OF {identifier}",
        restore_note="A rollback moves the branch main back. Later snapshots leave its history, and expiry removes "
        "them unless a tag or a branch names them.",
    )
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    commits_are_in_one_file: ClassVar[bool] = True
    has_ordered_times: ClassVar[bool] = False

    def __init__(
        self,
        storage: Storage,
        *,
        branch: str | None = None,
        metadata_file: str | None = None,
        relocate: Mapping[str, str] | None = None,
        numbers: Mapping[int, int] | None = None,
    ) -> None:
        """Bind to a table and a branch. Reads nothing; for a branch other than main it reads the metadata file.

        Args:
            branch: A branch, or a snapshot id as text, for the history that ends there.
            metadata_file: The metadata file to read, whether or not there are newer ones.
            relocate: Recorded folders that were moved, and their new paths.
            numbers: Versions of snapshots without sequence numbers that were counted before.
        """
        super().__init__(storage)
        self._metadata = BranchMetadata(
            storage=storage,
            branch=branch,
            relocate=dict(relocate or {}),
            files=MetadataFiles(storage, metadata_file),
            read_last=ReadLast(numbers=dict(numbers or {})),
        )
        if branch not in (None, MAIN):
            self._metadata.read()

    @classmethod
    def at_metadata(
        cls, storage: Storage, *, branch: str | None, metadata_file: str | None, relocate: Mapping[str, str] | None
    ) -> "Iceberg":
        return cls(storage, branch=branch, metadata_file=metadata_file, relocate=relocate)

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder has a version hint or metadata files. One request or, without a hint, two."""
        return bool(cls.metadata_layout.folders.intersection(folders)) and has_metadata(storage)

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions of the history, from `start` on. Reads the current metadata file."""
        source, history, notes = self._metadata.read()
        metadata = source.metadata
        return Listing(
            versions=history.versions[0 if start is None else bisect_left(history.versions, start) :],
            identity=(
                metadata.path,
                metadata.table_uuid,
                metadata.last_updated_ms,
                metadata.current_snapshot_id,
                history.versions[-1:],
            ),
            without_commit=history.without_commit,
            after_gaps=history.after_gaps,
            notes=notes,
            location_note=source.locations.note,
            is_contiguous=False,
            first=1,
        )

    def version(self, number: int | None) -> IcebergVersion:
        source, history = self._metadata.current()
        if number is None:
            return IcebergVersion(source, None, None, None)
        version = history.version_of(number)
        if version is None:
            # It may be newer than what was read.
            source, history, _ = self._metadata.read()
            version = history.version_of(number)
        if version is None:
            raise self._metadata.not_found(history, number)
        return IcebergVersion(source, history.snapshots[version], version, self._metadata.schema_id(history, version))

    def with_current_schema(self, listing: Listing) -> "Iceberg":
        """Return the same table, whose newest version has the table's current schema.

        The history that ends at a snapshot is not the newest state of the table.

        Source: iceberg SnapshotUtil.schemaFor, which returns the current schema for a branch.
        """
        return self.with_newest_state(listing.latest)

    def with_newest_state(self, version: int | None) -> "Iceberg":
        """Return the same table, which reads a version under the current schema."""
        result = Iceberg.__new__(Iceberg)
        metadata = replace(self._metadata, newest_state=version)
        vars(result).update(vars(self), _metadata=metadata)  # what was read is shared
        return result

    def version_named(self, number: int) -> int:
        version = self._metadata.current()[1].version_of(number)
        return number if version is None else version

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return the commit time of each version, aware, UTC. Reads nothing if the metadata file has been read.

        Versions that tags name in other histories are known too.
        """
        _, history = self._metadata.current()
        snapshots = history.metadata.snapshots
        ids = history.ids
        if any(version not in ids for version in versions):
            elsewhere = {number: item for item, number in snapshots.numbers.items() if number}
            _, history = self._metadata.having([version for version in versions if version not in elsewhere])
            ids = {**elsewhere, **history.ids}
            snapshots = history.metadata.snapshots
        return [time_of(millis) for millis in snapshots.column("timestamp_ms", [ids[version] for version in versions])]

    def candidates_at(self, time: datetime, versions: Sequence[int], *, follow_log: bool = True) -> Sequence[int]:
        """Return the version that was current in main at a time; without a log the last one committed before it."""
        _, history = self._metadata.having(versions)
        snapshot = current_at(history, time) if follow_log else None
        if snapshot is not None:
            if history.numbers.get(snapshot.id) not in versions:
                raise not_in_history(history, snapshot)
            return [history.numbers[snapshot.id]]
        committed = committed_by(history, time, versions)
        has_log = follow_log and self._metadata.branch in (None, MAIN) and bool(history.metadata.snapshot_log.times)
        if committed and has_log:
            begin = time_of(min(history.metadata.snapshot_log.times))
            raise SnapshotNotFoundError(
                f"Which version was current at {time:%Y-%m-%d %H:%M:%S} UTC is unknown: the snapshot log of the table "
                f"begins at {begin:%Y-%m-%d %H:%M:%S} UTC, and versions before it have expired. The last one that is "
                f"left from before is {committed[0]}."
            )
        return committed or versions[:1]

    def commits(self, versions: Sequence[int], *, columns: Collection[str] | None = None) -> pa.Table:  # noqa: ARG002 - few
        """Return the COMMITS frame, in the order of `versions`, from the metadata file; see `commits_frame`.

        On the local disk a version whose manifest list is missing is not readable. Otherwise `readable` is null.
        """
        source, history = self._metadata.having(versions)
        tags: dict[int, list[str]] = {}
        for name, version in self._tags(history).items():
            tags.setdefault(version, []).append(name)
        is_moved = source.locations.note is not None
        return commits_frame(history, versions, self._readable(source, history, versions), tags, is_moved=is_moved)

    def fingerprint(self, version: int) -> str:
        """Return the hash of the table's id and of the snapshot's id, which is random."""
        source, history = self._metadata.having([version])
        return digest_of(source.metadata.table_uuid, history.ids[version])

    def _readable(self, source: Source, history: IcebergHistory, versions: Sequence[int]) -> list[Readable | None]:
        if self._storage.local_address("") is None:
            return [None] * len(versions)
        ids = map(history.ids.__getitem__, versions)
        recorded = history.metadata.snapshots.column("manifest_list", ids)
        lists = [path for path in recorded if path is not None]
        addresses: list[str] = source.locations.many(pa.array(lists, pa.string())).to_pylist()
        missing = set(self._storage.missing(addresses))
        gone = {path for path, address in zip(lists, addresses, strict=True) if address in missing}
        return ["no" if path in gone else None for path in recorded]

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:  # noqa: ARG002 - Iceberg keeps none
        """Return the CHANGES frame: per version the data files that its commit removed and added.

        Reads the manifest lists of all versions concurrently, then the manifests that their commits wrote. Delete files
        are not changes of data files: they are in `files` of a version, as the deletions of the files they apply to.
        """
        source, history = self._metadata.having(versions)
        snapshots = [history.snapshots[version] for version in versions]
        parts = [frames.CHANGES.empty_table()]
        for begin in range(0, len(snapshots), _AT_ONCE):
            changed = changed_files(source, snapshots[begin : begin + _AT_ONCE])
            parts.append(changes_frame(history, changed))
        return pa.concat_tables(parts)

    def tags(self) -> Mapping[str, int]:
        """Return the version of each tag, sorted by name.

        A tag may name a snapshot of another branch, or of none: its version is unique in the table, but not in this
        history. A tag of a snapshot without a number is left out.
        """
        _, history, _ = self._metadata.read()
        return self._tags(history)

    def _tags(self, history: IcebergHistory) -> Mapping[str, int]:
        snapshots = history.metadata.snapshots
        numbers = {
            name: history.numbers.get(ref.snapshot_id, snapshots.numbers[ref.snapshot_id] or None)
            for name, ref in sorted(history.metadata.refs.items())
            if not ref.is_branch
        }
        return {name: number for name, number in numbers.items() if number is not None}

    def inspect(self, name: str) -> pa.Table:
        source, history, _ = self._metadata.read()
        return inspect_table(source, history, name)

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        source, history = self._metadata.having([last])
        reading = self.version(last)
        return RowChanges(
            schema=arrow_schema(parse_schema(source.metadata.current_schema)),
            metadata_columns=HIDDEN,
            splits=lambda predicate: splits_between(source, history, first, last, mode, predicate),
            reader=reading,
        )

    def _on_branch(self, name: str) -> "Iceberg":
        own = self._metadata
        result = Iceberg(self._storage, metadata_file=own.files.file, relocate=own.relocate)
        result._metadata = replace(result._metadata, branch=None if name == MAIN else name)
        return result

    @property
    def branches(self) -> IcebergBranches:
        return IcebergBranches(metadata=self._metadata, bind=self._on_branch)

    @property
    def delete_files(self) -> IcebergDeleteFiles:
        return IcebergDeleteFiles(metadata=self._metadata)

    @property
    def merged_manifests(self) -> IcebergManifests:
        return IcebergManifests(metadata=self._metadata)

    @property
    def maintenance(self) -> IcebergMaintenance:
        return IcebergMaintenance(format_name=self.name, metadata=self._metadata)

    @property
    def metadata_tasks(self) -> IcebergMetadataTasks:
        return IcebergMetadataTasks(metadata=self._metadata)

    def __reduce__(self) -> tuple["partial[Iceberg]", tuple[Storage]]:
        own = self._metadata
        made = partial(
            _restore,
            newest_state=own.newest_state,
            branch=own.branch,
            metadata_file=own.files.file,
            relocate=own.relocate,
            numbers=own.read_last.numbers,
        )
        return made, (self._storage,)


def _restore(storage: Storage, *, newest_state: int | None, **options: Any) -> Iceberg:
    return Iceberg(storage, **options).with_newest_state(newest_state)
