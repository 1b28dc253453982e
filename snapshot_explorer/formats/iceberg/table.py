"""`Iceberg`: an Iceberg table on storage, an implementation of `formats.TableFormat`."""

import re
import threading
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, filterfalse
from typing import Any, ClassVar

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.records import Branch, ChangeMode, Inspection, Listing, Readable
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import FileCheck
from snapshot_explorer.formats.files.whole_files import check_file
from snapshot_explorer.formats.iceberg import metadata_tasks
from snapshot_explorer.formats.iceberg.changes.events import HIDDEN
from snapshot_explorer.formats.iceberg.changes.row_changes import splits_between
from snapshot_explorer.formats.iceberg.expiry.orphans import clean_up, named_files
from snapshot_explorer.formats.iceberg.expiry.presence import presence
from snapshot_explorer.formats.iceberg.expiry.retention import expiry
from snapshot_explorer.formats.iceberg.frames.commits import commits_frame
from snapshot_explorer.formats.iceberg.frames.files import changes_frame, files_frame
from snapshot_explorer.formats.iceberg.inspect.inspections import INSPECTIONS, inspect_table
from snapshot_explorer.formats.iceberg.metadata.contents import (
    Source,
    changed_files,
    live_files,
    manifests_of,
    own_manifests,
)
from snapshot_explorer.formats.iceberg.metadata.history import (
    IcebergHistory,
    committed_by,
    current_at,
    detached_heads,
    history_of,
    not_in_history,
    time_of,
)
from snapshot_explorer.formats.iceberg.metadata.locations import locations_of
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA
from snapshot_explorer.formats.iceberg.metadata.metadata_files import (
    HINT,
    MetadataFiles,
    has_metadata,
    is_metadata_file,
)
from snapshot_explorer.formats.iceberg.metadata.schema import arrow_schema, parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import MAIN, TableMetadata
from snapshot_explorer.formats.iceberg.scan.statistics import statistics_files
from snapshot_explorer.formats.iceberg.version import IcebergVersion
from snapshot_explorer.formats.interface import RepairSyntax, RowChanges, TableFormat
from snapshot_explorer.formats.metadata_tasks import MetadataTask, Prefetch, StateTasks, TaskReader
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.formats.statistics import StatisticsFiles
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000
_MAX_FORKS = 100
"""The maximum number of branches whose fork is computed."""


@dataclass(slots=True, kw_only=True)
class _ReadLast:
    """The metadata of a table that was read last."""

    numbers: Mapping[int, int]
    """The versions of snapshots without sequence numbers."""
    history: tuple[Source, IcebergHistory, tuple[str, ...]] | None = None
    """The history, and notes on it."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Iceberg(TableFormat):
    """An Iceberg table, bound to one branch. Caches the metadata file that it read last. Thread-safe."""

    name: ClassVar[str] = "iceberg"
    title: ClassVar[str] = "Iceberg"
    catalog_file_query: ClassVar[str | None] = (
        "SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
    )
    restore_command: ClassVar[str] = "CALL system.rollback_to_snapshot('{name}', {identifier})"
    repairs: ClassVar[RepairSyntax | None] = RepairSyntax(
        time_travel="VERSION AS OF {identifier}",
        restore_note="A rollback moves the branch main back. Later snapshots leave its history, and expiry removes "
        "them unless a tag or a branch names them.",
    )
    metadata_folders: ClassVar[frozenset[str]] = frozenset(("metadata",))
    metadata_names: ClassVar[re.Pattern[str]] = re.compile(
        r".+\.metadata\.json(?:\.gz)?|version-hint\.text|snap-\d+-.+\.avro", re.ASCII
    )
    first_file: ClassVar[str | None] = HINT
    main_branch: ClassVar[str | None] = MAIN
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    commits_are_in_one_file: ClassVar[bool] = True
    has_ordered_times: ClassVar[bool] = False
    merges_manifests: ClassVar[bool] = True
    lifetimes_have_deletions: ClassVar[bool] = False
    unsearched_values: ClassVar[str | None] = (
        "equality delete files, manifest lists with partitions, statistics and partition statistics files"
    )

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
        self._storage = storage
        self._branch = branch
        self._relocate = dict(relocate or {})
        self._files = MetadataFiles(storage, metadata_file)
        self._newest_state: int | None = None
        self._read_last = _ReadLast(numbers=dict(numbers or {}))
        if branch not in (None, MAIN):
            self._read()

    @classmethod
    def is_metadata_file(cls, name: str) -> bool:
        return is_metadata_file(name)

    @classmethod
    def at_metadata(
        cls, storage: Storage, *, branch: str | None, metadata_file: str | None, relocate: Mapping[str, str] | None
    ) -> "Iceberg":
        return cls(storage, branch=branch, metadata_file=metadata_file, relocate=relocate)

    @property
    def storage(self) -> Storage:
        return self._storage

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder has a version hint or metadata files. One request or, without a hint, two."""
        return bool(cls.metadata_folders.intersection(folders)) and has_metadata(storage)

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions of the history, from `start` on. Reads the current metadata file."""
        source, history, notes = self._read()
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
        source, history = self._current()
        if number is None:
            return IcebergVersion(source, None, None, None)
        version = history.version_of(number)
        if version is None:
            # It may be newer than what was read.
            source, history, _ = self._read()
            version = history.version_of(number)
        if version is None:
            raise self._not_found(history, number)
        return IcebergVersion(source, history.snapshots[version], version, self._schema_of(history, version))

    def with_current_schema(self, listing: Listing) -> "Iceberg":
        """Return the same table, whose newest version has the table's current schema.

        The history that ends at a snapshot is not the newest state of the table.

        Source: iceberg SnapshotUtil.schemaFor, which returns the current schema for a branch.
        """
        result = Iceberg.__new__(Iceberg)
        vars(result).update(vars(self), _newest_state=listing.latest)  # what was read is shared
        return result

    def _schema_of(self, history: IcebergHistory, version: int) -> int | None:
        """Return the id of the schema of a version; None if it is not recorded."""
        metadata = history.metadata
        ref = metadata.refs.get(self._branch or MAIN)
        if version == self._newest_state and ref is not None and ref.is_branch:
            return metadata.current_schema_id
        return history.snapshots[version].schema_id

    def version_named(self, number: int) -> int:
        version = self._current()[1].version_of(number)
        return number if version is None else version

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return the commit time of each version, aware, UTC. Reads nothing if the metadata file has been read.

        Versions that tags name in other histories are known too.
        """
        _, history = self._current()
        snapshots = history.metadata.snapshots
        ids = history.ids
        if any(version not in ids for version in versions):
            elsewhere = {number: item for item, number in snapshots.numbers.items() if number}
            _, history = self._history([version for version in versions if version not in elsewhere])
            ids = {**elsewhere, **history.ids}
            snapshots = history.metadata.snapshots
        return [time_of(millis) for millis in snapshots.column("timestamp_ms", [ids[version] for version in versions])]

    def candidates_at(self, time: datetime, versions: Sequence[int], *, follow_log: bool = True) -> Sequence[int]:
        """Return the version that was current in main at a time; without a log the last one committed before it."""
        _, history = self._history(versions)
        snapshot = current_at(history, time) if follow_log else None
        if snapshot is not None:
            if history.numbers.get(snapshot.id) not in versions:
                raise not_in_history(history, snapshot)
            return [history.numbers[snapshot.id]]
        committed = committed_by(history, time, versions)
        has_log = follow_log and self._branch in (None, MAIN) and bool(history.metadata.snapshot_log.times)
        if committed and has_log:
            begin = time_of(min(history.metadata.snapshot_log.times))
            raise SnapshotNotFoundError(
                f"Which version was current at {time:%Y-%m-%d %H:%M:%S} UTC is unknown: the snapshot log of the table "
                f"begins at {begin:%Y-%m-%d %H:%M:%S} UTC, and versions before it have expired. The last one that is "
                f"left from before is {committed[0]}."
            )
        return committed or versions[:1]

    def branch_at(self, time: datetime) -> str | None:
        _, history, _ = self._read()
        snapshot = current_at(history, time)
        return None if snapshot is None or snapshot.id in history.numbers else str(snapshot.id)

    def commits(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame, in the order of `versions`, from the metadata file; see `commits_frame`.

        On the local disk a version whose manifest list is missing is not readable. Otherwise `readable` is null.
        """
        source, history = self._history(versions)
        tags: dict[int, list[str]] = {}
        for name, version in self._tags(history).items():
            tags.setdefault(version, []).append(name)
        return commits_frame(history, versions, self._readable(source, history, versions), tags)

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
        source, history = self._history(versions)
        snapshots = [history.snapshots[version] for version in versions]
        parts = [frames.CHANGES.empty_table()]
        for begin in range(0, len(snapshots), _AT_ONCE):
            changed = changed_files(source, snapshots[begin : begin + _AT_ONCE])
            parts.append(changes_frame(history, changed))
        return pa.concat_tables(parts)

    def delta_manifests(self, versions: Sequence[int]) -> frozenset[str] | None:
        source, history = self._history(versions)
        snapshots = [history.snapshots[version] for version in versions]
        manifests = own_manifests(manifests_of(source, snapshots), snapshots)
        return frozenset(manifests.filter(pc.equal(manifests.column("content"), DATA)).column("location").to_pylist())

    def delete_manifests(self, versions: Sequence[int]) -> Sequence[frozenset[str]]:
        """Return for each version the manifests of its live delete files. Reads the manifest lists concurrently.

        Versions with the same manifests have the same deletes.
        """
        source, history = self._history(versions)
        snapshots = [history.snapshots[version] for version in versions]
        locations: dict[int, set[str]] = {snapshot.id: set() for snapshot in snapshots}
        for begin in range(0, len(snapshots), _AT_ONCE):
            manifests = manifests_of(source, snapshots[begin : begin + _AT_ONCE])
            # Counts are null in lists of version 1, which has no deletes.
            live = pc.add(pc.fill_null(manifests["added_files"], 1), pc.fill_null(manifests["existing_files"], 1))
            chosen = manifests.filter(pc.and_(pc.not_equal(manifests["content"], DATA), pc.greater(live, 0)))
            for snapshot, location in zip(
                chosen["snapshot_id"].to_pylist(), chosen["location"].to_pylist(), strict=True
            ):
                locations[snapshot].add(location)
        return [frozenset(locations[snapshot.id]) for snapshot in snapshots]

    def lifetime_files(self, version: int) -> pa.Table:
        source, history = self._history([version])
        live = live_files(source, history.snapshots[version], statistics=False, deletes=False)
        return files_frame(source.metadata, live)

    def tags(self) -> Mapping[str, int]:
        """Return the version of each tag, sorted by name.

        A tag may name a snapshot of another branch, or of none: its version is unique in the table, but not in this
        history. A tag of a snapshot without a number is left out.
        """
        _, history, _ = self._read()
        return self._tags(history)

    def _tags(self, history: IcebergHistory) -> Mapping[str, int]:
        snapshots = history.metadata.snapshots
        numbers = {
            name: history.numbers.get(ref.snapshot_id, snapshots.numbers[ref.snapshot_id] or None)
            for name, ref in sorted(history.metadata.refs.items())
            if not ref.is_branch
        }
        return {name: number for name, number in numbers.items() if number is not None}

    def branches(self) -> Sequence[Branch]:
        """Return the other branches, sorted, with the version of this history that each forks from.

        Of more than 100 branches only the name and the newest version are known.
        """
        _, history, _ = self._read()
        metadata = history.metadata
        others = sorted(name for name, ref in metadata.refs.items() if ref.is_branch and name != (self._branch or MAIN))
        return [
            Branch(
                name=name,
                forked_version=_fork(history, metadata.refs[name].snapshot_id) if len(others) <= _MAX_FORKS else None,
                newest_version=metadata.snapshots.numbers[metadata.refs[name].snapshot_id] or None,
            )
            for name in others
        ]

    def branch_names(self) -> Sequence[str]:
        _, history, _ = self._read()
        return sorted({MAIN, *(name for name, ref in history.metadata.refs.items() if ref.is_branch)})

    def detached_heads(self) -> Sequence[str]:
        _, history, _ = self._read()
        return detached_heads(history.metadata)

    def has_history(self, name: str) -> bool:
        _, history, _ = self._read()
        return name.isascii() and name.isdigit() and int(name[:20]) in history.metadata.snapshots

    def on_branch(self, name: str) -> "Iceberg":
        result = copy(self)
        result._branch = None if name == MAIN else name  # noqa: SLF001 - a copy of this object
        result._read_last, result._newest_state = _ReadLast(numbers={}), None  # noqa: SLF001 - likewise
        return result

    def shared_versions(self, other: "Iceberg") -> Mapping[int, int]:
        (_, own), (_, others) = self._current(), other._current()  # noqa: SLF001 - of this class
        return {number: others.numbers[item] for number, item in own.ids.items() if item in others.numbers}

    def inspect(self, name: str) -> pa.Table:
        source, history, _ = self._read()
        return inspect_table(source, history, name)

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        source, history = self._history([last])
        reading = self.version(last)
        return RowChanges(
            schema=arrow_schema(parse_schema(source.metadata.current_schema)),
            metadata_columns=HIDDEN,
            splits=lambda predicate: splits_between(source, history, first, last, mode, predicate),
            reader=reading,
        )

    def expiry(
        self,
        rule: RetentionRule,
        lifetimes: pa.Table,
        newest: int | None,  # noqa: ARG002 - all of one file
        unread: Collection[int] = (),  # noqa: ARG002 - found by reading all manifests
    ) -> Expiry:
        source, history, _ = self._read()
        return expiry(source, history, rule, lifetimes)

    def file_check(self) -> FileCheck:
        return lambda file, is_whole: check_file(self._storage, file, is_whole=is_whole)

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        source, history = self._history(versions)
        return presence(source, history, lifetimes, versions)

    def statistics_files(self, versions: Sequence[int], at: int) -> StatisticsFiles:
        source, history = self._history([at])
        snapshots = [(version, history.snapshots[version]) for version in versions if version in history.ids]
        schema = parse_schema(history.metadata.schema_with(self._schema_of(history, at)))
        return statistics_files(source, snapshots, schema.fields)

    def named_files(self, listed: pa.Array) -> NamedFiles:
        source, _, _ = self._read()
        return named_files(source, listed)

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        source, _ = self._current()
        return clean_up(source, files, now)

    def state_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - manifest lists need no prefetch
        return self._state_tasks(version, deletes=True)

    def lifetime_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - as above
        return self._state_tasks(version, deletes=False)

    def _state_tasks(self, version: int, *, deletes: bool) -> StateTasks:
        source, history = self._history([version])
        tasks = metadata_tasks.state_tasks(source, history.snapshots[version], version, deletes=deletes)
        return StateTasks(tasks=tasks, keeps_last_add=False)

    def change_tasks(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:  # noqa: ARG002 - as above
        return metadata_tasks.change_tasks(self._history(versions)[1], versions, lifetimes=lifetimes)

    def task_reader(self) -> TaskReader:
        source, history = self._current()
        return metadata_tasks.task_reader(source, history)

    def _current(self) -> tuple[Source, IcebergHistory]:
        """Return the history that was read last; reads it the first time."""
        known = self._read_last.history
        if known is None:
            source, history, _ = self._read()
            return source, history
        return known[0], known[1]

    def _history(self, versions: Sequence[int]) -> tuple[Source, IcebergHistory]:
        """Return a history that contains these versions. Reads it again if the last one read lacks some."""
        source, history = self._current()
        if not all(map(history.ids.__contains__, versions)):
            source, history, _ = self._read()
            missing = next(filterfalse(history.ids.__contains__, versions), None)
            if missing is not None:
                raise self._not_found(history, missing)
        return source, history

    def _read(self) -> tuple[Source, IcebergHistory, tuple[str, ...]]:
        """Return the current history, and notes on it. Reads the current metadata file."""
        current, last = self._files.current(), self._read_last
        with last.lock:
            known = last.history
            if known is not None and known[0].metadata is current.metadata:
                return known
            history = history_of(current.metadata, self._branch, last.numbers)
            if history.is_counted:
                last.numbers = dict(history.numbers)
            source = self._source(current.metadata)
            last.history = source, history, (*current.notes, *history.notes)
            return last.history

    def _source(self, metadata: TableMetadata) -> Source:
        earlier = [file for _, file in metadata.metadata_log[::-1]]
        lists = filter(None, metadata.snapshots.every("manifest_list"))
        locations = locations_of(self._storage.root, metadata.location, chain(earlier, lists), self._relocate)
        return Source(storage=self._storage, metadata=metadata, locations=locations)

    def _not_found(self, history: IcebergHistory, number: int) -> SnapshotNotFoundError:
        snapshots = history.metadata.snapshots
        other = snapshots.get(number) or next(
            (snapshot for snapshot in snapshots.values() if snapshot.sequence_number == number and number), None
        )
        if other is not None:
            return not_in_history(history, other)
        state = "does not exist, nor a snapshot of that id"
        return absent_version_error(self._storage.root, number, history.versions, state)

    def __reduce__(self) -> tuple["partial[Iceberg]", tuple[Storage]]:
        made = partial(
            _restore,
            newest_state=self._newest_state,
            branch=self._branch,
            metadata_file=self._files.file,
            relocate=self._relocate,
            numbers=self._read_last.numbers,
        )
        return made, (self._storage,)


def _restore(storage: Storage, *, newest_state: int | None, **options: Any) -> Iceberg:
    result = Iceberg(storage, **options)
    vars(result).update(_newest_state=newest_state)
    return result


def _fork(history: IcebergHistory, head: int) -> int | None:
    """Return the newest version of a history that is an ancestor of a snapshot, or the snapshot itself."""
    parents = history.metadata.snapshots.parents
    seen: set[int] = set()
    snapshot_id: int | None = head
    while snapshot_id is not None and snapshot_id in parents and snapshot_id not in seen:
        if snapshot_id in history.numbers:
            return history.numbers[snapshot_id]
        seen.add(snapshot_id)
        snapshot_id = parents[snapshot_id]
    return None
