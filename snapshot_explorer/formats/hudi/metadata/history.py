"""The history of a Hudi table: its completed writes, active and archived, and the resulting state."""

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core.errors import (
    UNREADABLE,
    CorruptTableError,
    LimitError,
    MissingFileError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.hudi.metadata.archive import Archive, ArchivedInstant, ArchiveListing, archived_writes
from snapshot_explorer.formats.hudi.metadata.avro_records import read_record
from snapshot_explorer.formats.hudi.metadata.commits import CommitMetadata, read_commits, read_raw, written_files
from snapshot_explorer.formats.hudi.metadata.file_groups import (
    FileGroup,
    ListedFile,
    WriteHistory,
    is_before,
    stored_files,
)
from snapshot_explorer.formats.hudi.metadata.file_names import base_instant, log_name
from snapshot_explorer.formats.hudi.metadata.file_states import FileStates
from snapshot_explorer.formats.hudi.metadata.properties import (
    FOLDER,
    PROPERTIES,
    PROPERTY_FILES,
    TableConfig,
    read_config,
)
from snapshot_explorer.formats.hudi.metadata.timeline import (
    Instant,
    Timeline,
    newest_at_or_before,
    parse_instant,
    timeline_folder,
    timeline_of,
)
from snapshot_explorer.formats.hudi.metadata.unread_commits import (
    lost_slices,
    unread_commits,
)
from snapshot_explorer.formats.missing_versions import (
    TRIES,
    missing_table_error,
    missing_versions_error,
    now,
    pause,
)
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.storage import EntryFields, Storage

if TYPE_CHECKING:
    from snapshot_explorer.formats.avro.container import Shape

log = logger_of(__name__)

_WORK = ("partitionToWriteStats", "operations", "clusteringPlan")
"""The fields of requested and inflight files that contain the planned writes of a commit."""
_AT_ONCE = 2_000
"""Commits whose contents are in memory at the same time."""
_REMOVING = ("clean", "rollback", "restore")
"""Actions that remove data files."""
_LAST = 10**17 - 1
"""An instant after all others."""
_MAX_EARLY = 64
"""Commits that are read before the timeline is listed again."""
_DEEPEST = 12
"""Levels of partition folders that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadArchive:
    instants: Mapping[tuple[int, str], ArchivedInstant]
    removed: frozenset[str]
    """The instants of the archive that restores removed."""
    problem: SnapshotExplorerError | None
    """Why older actions are unknown."""


class HudiSource:
    """One listing of a table's timeline, and the metadata read since. Thread-safe."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        entries: Sequence[EntryFields],
        archived: ArchiveListing,
        reader: "HudiCommitReader | None" = None,
    ) -> None:
        """Bind to a listing. Reads nothing. Without a reader, commits that were read before are read again."""
        self.storage = storage
        self.config = config
        self.entries = entries
        self.timeline: Timeline = timeline_of(entries, config)
        self.archive_listing = archived
        self.reader = HudiCommitReader(storage) if reader is None else reader
        self.filled = self.reader.filled
        self._lock = threading.RLock()
        self._state: FileStates | None = None
        self._empty_folders: set[str] = set()
        """The folders that were empty when the partitions were listed for the state."""
        self._listings: Mapping[str, Sequence[EntryFields]] = {}
        """Folders that were listed early."""

    def __reduce__(self) -> tuple[object, ...]:
        """Return the listing, without the metadata read since."""
        return HudiSource, (self.storage, self.config, self.entries, self.archive_listing)

    @property
    def identity(self) -> tuple[object, ...]:
        """Return a value that is equal for listings of the same timeline and archive."""
        return self.timeline.names, self.archive_listing.names, self.filled

    @cached_property
    def _archive(self) -> "_ReadArchive":
        """The contents of the archive. Reads it."""
        instants, problem = self.reader.archive.read(self.archive_listing)
        try:
            removed = self._restored_away() if archived_writes(instants) else frozenset[str]()
        except UNREADABLE as error:
            instants, removed, problem = {}, frozenset[str](), error
        return _ReadArchive(instants=instants, removed=removed, problem=problem)

    @property
    def archived(self) -> Mapping[tuple[int, str], ArchivedInstant]:
        """The completed actions in the archive, by time and action. Reads the archive."""
        return self._archive.instants

    @property
    def archive_problem(self) -> SnapshotExplorerError | None:
        """Why older actions in the archive are unknown; None if there are none. Reads the archive."""
        return self._archive.problem

    @cached_property
    def writes(self) -> dict[int, Instant | ArchivedInstant]:
        """The versions, ascending: active writes, and archived writes that no restore removed. Reads the archive."""
        writes: dict[int, Instant | ArchivedInstant] = {
            time: item
            for time, item in archived_writes(self.archived).items()
            if item.instant.text not in self._archive.removed
        }
        writes.update(self.timeline.writes)
        return dict(sorted(writes.items()))

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The versions, ascending."""
        return tuple(self.writes)

    @property
    def savepoints(self) -> dict[str, int]:
        """The versions with a savepoint, by its name."""
        saved = [item for item in self.timeline.of_action("savepoint") if item.state == "completed"]
        return {item.text: item.time for item in saved if item.time in self.writes}

    def _restored_away(self) -> frozenset[str]:
        """Return the instants that restores removed: the archive may still contain them."""
        texts: set[str] = set()
        for instant in self.timeline.of_action("restore"):
            if instant.state == "completed":
                raw = self.record(instant)
                if not raw:
                    raise CorruptTableError(
                        f"{instant.path} is empty, so it is unknown which commits in the archive the restore removed. "
                        "Compare it with a copy of the table."
                    )
                texts.update(str(item["commitTime"]) for item in raw.get("restoreInstantInfo") or ())
        return frozenset(texts)

    def instant(self, version: int) -> Instant:
        """Return the instant of a version."""
        write = self.writes[version]
        return write.instant if isinstance(write, ArchivedInstant) else write

    def record(self, instant: Instant) -> Mapping[str, Any]:
        """Return all fields in the file of an instant. One request."""
        content = self.reader.early.pop(instant.path, None) or self._content(instant.path)
        return read_raw(content, instant.path, self.reader.shapes, self.storage.limits)

    def commits(self, versions: Sequence[int]) -> dict[int, CommitMetadata]:
        """Return the metadata of versions. One request for each that is not archived and was not read before."""
        with self._lock:
            kept = self.reader.commits
            keys = {version: self._key(version) for version in versions}
            new = [version for version, key in keys.items() if key not in kept]
            empty: dict[int, CommitMetadata] = {}
            for begin in range(0, len(new), _AT_ONCE):
                for version, commit in self._read_commits(new[begin : begin + _AT_ONCE]):
                    if commit.is_empty:  # the storage's answer may have been
                        empty[version] = commit
                    else:
                        kept[keys[version]] = commit
            return {version: empty.get(version) or kept[key] for version, key in keys.items()}

    def _read_commits(self, versions: Sequence[int]) -> Iterator[tuple[int, CommitMetadata]]:
        writes = {version: self.writes[version] for version in versions}
        for write in writes.values():
            if write.path in self.reader.refused:
                raise LimitError(self.reader.refused[write.path])
        active = [write for write in writes.values() if isinstance(write, Instant)]
        contents: dict[str, bytes | Mapping[str, Any] | None] = {
            write.path: write.content for write in writes.values() if isinstance(write, ArchivedInstant)
        }
        contents.update(zip([write.path for write in active], self._contents(active), strict=True))
        read = read_commits(contents, self.reader.shapes, self.storage.limits, self.reader.refused)
        for version, write in writes.items():
            commit = read[write.path]
            if commit.is_empty and isinstance(write, Instant):
                self._check_begun(write)
                self.reader.empty.add(write.path)
            yield version, commit

    def accept_empty(self, version: int) -> None:
        """Warn that the file of a commit is empty: readers of Hudi take it for a commit that wrote nothing.

        A writer that crashes on the local disk or on HDFS leaves such a file. Reads the metadata of all commits.

        Raises:
            CorruptTableError: The commit wrote files.

        Source: hudi HoodieCommitMetadata.fromJsonString, MetadataConversionUtils.createMetaWrapperForEmptyInstant;
        compared with Hudi 0.15.0 and 1.2.0 on Spark.
        """
        if version in self.state.unread.errors:
            raise copy(self.state.unread.errors[version])
        self.storage.warn_once(log, "%s", empty_note([version]))

    def read_early(self, instants: Sequence[Instant]) -> None:
        """Read the files of completed writes that will be needed, once, and keep their bytes. They do not change."""
        early, kept = self.reader.early, self.reader.commits
        paths = [item.path for item in instants if item.path not in early and (item.path, item.text) not in kept]
        with suppress(SnapshotExplorerError):  # raised when the commits are needed
            contents = self.storage.each(self._content_if_present, paths)
            early.update((path, content) for path, content in zip(paths, contents, strict=True) if content)

    def read_newest(self, count: int) -> None:
        """Read the files early that the COMMITS frame of the newest versions needs."""
        newest = list(self.timeline.writes.values())[-min(count, _MAX_EARLY) :]
        reads: list[Callable[[], object]] = []
        if self._is_archive_absent:
            reads = [self._list_early, lambda: self.pending]
        with suppress(SnapshotExplorerError):  # as above
            self.storage.together(*reads, partial(self.read_early, newest))

    def _contents(self, instants: Sequence[Instant]) -> list[bytes]:
        early = {item.path: content for item in instants if (content := self.reader.early.pop(item.path, None))}
        try:
            rest = [item.path for item in instants if item.path not in early]
            early.update(zip(rest, self.storage.each(self._content, rest), strict=True))
            return [early[item.path] for item in instants]
        except MissingFileError as error:
            raise StorageError(
                f"{error} A writer archived or rolled back the commit since the timeline was listed. Try again."
            ) from error

    def _content(self, path: str) -> bytes:
        """Return the bytes of a file of the timeline, at least as many as the listing shows. One request."""
        return self.storage.read(path, listed_bytes=self.timeline.sizes.get(path))

    def _content_if_present(self, path: str) -> bytes | None:
        with suppress(MissingFileError):
            return self._content(path)
        return None

    def _check_begun(self, instant: Instant) -> None:
        """Raise if a commit whose file is empty had begun to write. Reads what is left of its earlier states."""
        folder = timeline_folder(self.config)
        for name in self.timeline.names:
            if not name.startswith(f"{instant.text}.") or not name.endswith(("inflight", "requested")):
                continue
            raw = read_raw(self._content(f"{folder}/{name}"), name, self.reader.shapes, self.storage.limits)
            if any(raw.get(field) for field in _WORK):
                raise _emptied_error(instant, f"{folder}/{name} says what it wrote")

    def _copied(self, files: pa.Table) -> dict[int, SnapshotExplorerError]:
        """Return the commits that name files whose names contain another instant, with errors: they were copied."""
        copied: dict[int, SnapshotExplorerError] = {}
        texts = [self.instant(version).text for version in self.versions]
        index = from_numpy(np.searchsorted(self.versions, files.column("version").to_numpy()))
        usual = [f"_{text}.parquet" for text in texts]
        paths = files.column("path").cast(pa.binary())
        ends = pc.binary_slice(paths, -len(usual[-1])) if usual else paths
        is_usual = pc.equal(ends, pa.array(usual, pa.binary()).take(index))
        others = from_numpy(np.flatnonzero(~is_usual.to_numpy()))
        unusual = files.column("path").take(others).to_pylist()
        for number, path in zip(index.take(others).to_pylist(), unusual, strict=True):
            name = path.rpartition("/")[2]
            base = base_instant(name)
            log = log_name(name) if self.config.names_logs_by_commit else None
            writer = base[1] if base else log.instant if log else texts[number]
            if writer != texts[number]:
                copied[self.versions[number]] = CorruptTableError(
                    f"{self.instant(self.versions[number]).path} names {path}, which the commit {writer} wrote. It was "
                    "copied or damaged; compare it with a copy of the table."
                )
        return copied

    def _key(self, version: int) -> tuple[str, str]:
        instant = self.instant(version)
        return instant.path, instant.text

    @cached_property
    def pending(self) -> list[tuple[FileGroup, int]]:
        """The file groups in the plans of pending compactions. One request for each."""
        groups: list[tuple[FileGroup, int]] = []
        for instant in self.timeline.pending_compactions:
            for operation in self.plan(instant).get("operations") or ():
                key = str(operation.get("partitionPath") or ""), str(operation["fileId"])
                groups.append((key, instant.time))
        return groups

    def plan(self, instant: Instant) -> Mapping[str, Any]:
        """Return the plan of a compaction, which the file of its request contains. One request."""
        path = f"{timeline_folder(self.config)}/{instant.text}.{instant.action}.requested"
        return read_record(self._content(path), path, self.reader.shapes, self.storage.limits)

    @property
    def state(self) -> FileStates:
        """The files of all versions. Reads the metadata of all commits."""
        with self._lock:
            if self._state is not None:
                return self._state
            self._empty_folders.clear()
            state = self._read_state()
            # A folder whose listing was empty may not have been: the state is not kept.
            self._state = None if self._empty_folders else state
            return state

    def forget_unread(self) -> None:
        """Read commits that could not be read again: the storage's answer may have been wrong."""
        if self._state is not None and self._state.unread.errors:
            self._state = None

    @property
    def _is_archive_absent(self) -> bool:
        return self.archive_listing.is_absent and bool(self.versions)

    @property
    def after_gaps(self) -> tuple[int, ...]:
        """The versions right after commits that are known to be missing so far."""
        return () if self._state is None else self._state.after_missing

    @property
    def earliest(self) -> int | None:
        """The first version whose files are all known; None if that is the first version, or not computed yet."""
        return None if self._state is None else self._state.earliest

    def _read_state(self) -> FileStates:
        start = self.versions[0] if self.versions else 0
        _, pending, read = self.storage.together(
            lambda: self._list_early() if self._is_archive_absent else None,
            lambda: self.pending,
            partial(read_apart, self.commits, self.versions, self.storage),
        )
        commits = {version: commit for _, part in read.parts for version, commit in part.items()}
        files = written_files(commits)
        wrong = self._copied(files)
        wrong |= self._emptied(commits, files)
        if wrong:
            commits = {version: commit for version, commit in commits.items() if version not in wrong}
            files = written_files(commits)
        is_cut = (
            self._is_archive_absent
            or self.archive_problem is not None
            or bool(is_before(files.column("previous"), start).any())
        )
        listed = [*self._listed_before(start, files)] if is_cut else []
        errors = dict(read.unread) | wrong
        unread = unread_commits(
            errors,
            files,
            self.writes,
            self.timeline,
            self.config,
            listed=lambda: self._list_before(_LAST),
            has_holes=self.archive_listing.has_holes,
        )
        stored, lost = stored_files(
            WriteHistory(
                commits=commits,
                written=files,
                completion=self.completion,
                pending=pending,
                listed=[*listed, *unread.files],
                has_completion_times=self.config.has_completion_times,
                versions=self.versions,
            )
        )
        # An unknown commit may be the only commit after a slice that the cleaner removed.
        is_begin_unknown = is_cut and bool(listed or lost or self._removals)
        known_from = max((*errors, *unread.missing), default=0) if is_begin_unknown else 0
        is_cut = bool(listed or lost)
        lost += lost_slices(unread, files)
        return FileStates(
            files=stored,
            lost_slices=lost,
            start=start,
            is_cut=is_cut,
            versions=self.versions,
            unread=unread,
            known_from=known_from,
        )

    def _emptied(self, commits: Mapping[int, CommitMetadata], files: pa.Table) -> dict[int, SnapshotExplorerError]:
        """Return the commits that name no files although they wrote some, with errors."""
        emptied: dict[int, SnapshotExplorerError] = {}
        without = [version for version, commit in commits.items() if commit.start == commit.end]
        followed = set(pc.unique(files.column("previous")).to_pylist()) if without else set()
        for version in without:
            instant = self.instant(version)
            if not commits[version].replaced and instant.text in followed:
                emptied[version] = _emptied_error(instant, "later commits follow files that it wrote")
        empty = [version for version in without if commits[version].is_empty and version not in emptied]
        if empty:
            emptied |= self._unnamed(empty, set(files.column("path").to_pylist()))
        if accepted := [version for version in empty if version not in emptied]:
            self.storage.warn_once(log, "%s", empty_note(accepted))
        return emptied

    def _unnamed(self, empty: Sequence[int], named: Collection[str]) -> dict[int, SnapshotExplorerError]:
        """Return commits without metadata to which files may belong, with errors. Lists all partitions."""
        emptied: dict[int, SnapshotExplorerError] = {}
        for file in self._list_before(empty[-1] + 1):
            by_commit = not file.is_log or self.config.names_logs_by_commit
            writers = [version for version in empty if version == file.instant or not by_commit]
            if file.path not in named and writers:
                but = f"{file.path} exists, and no other commit names it"
                emptied |= {version: _emptied_error(self.instant(version), but) for version in writers}
        return emptied

    def completion(self, version: int) -> int:
        """Return when a version was completed, if log files belong to slices by that time; otherwise the version.

        An instant that is not a version counts as completed at once.
        """
        is_recorded = self.config.has_completion_times and version in self.writes
        completion = self.instant(version).completion if is_recorded else None
        return version if completion is None else int(completion)

    def _known_files(self, start: int) -> Sequence[ListedFile] | None:
        """Return files of instants before the first known commit, from an earlier listing of the partitions.

        None if an action removed files since.
        """
        known = self.reader.listed
        return known[2] if known is not None and known[:2] == (start, self._removals) else None

    @property
    def _removals(self) -> tuple[tuple[str, str], ...]:
        return tuple((instant.text, instant.state) for instant in self.timeline.of_action(*_REMOVING))

    def _listed_before(self, start: int, written: pa.Table) -> Sequence[ListedFile]:
        """Return files of instants before the first known commit. Lists all partitions, if that is not known.

        Args:
            written: The files that known commits wrote.
        """
        known = self._known_files(start)
        if known is not None:
            return known
        partitions = [] if self.storage.is_local else pc.unique(written.column("partition")).to_pylist()
        files = self._list_before(start, _with_parents(partitions))
        self.reader.listed = None if self._empty_folders else (start, self._removals, files)
        return files

    def _list_early(self) -> None:
        """List the root and its expected partitions concurrently."""
        if not self._listings and self._known_files(self.versions[0]) is None:
            folders = ["", *self.reader.partitions]
            self._listings = dict(zip(folders, self.storage.names_many(folders), strict=True))

    def _list_before(self, start: int, expected: Collection[str] = ()) -> list[ListedFile]:
        """List all partitions, level by level. Return the files.

        Expected folders are listed with the first level. Their files count, whether or not a parent contains them.
        """
        files: list[ListedFile] = []
        usual = f"_{start}"
        level = [""]
        early, read = {*expected}, dict(self._listings)
        self._listings = {}
        for _ in range(_DEEPEST):
            below: list[str] = []
            unread = sorted(early.union(level).difference(read))
            early.clear()
            read.update(zip(unread, self.storage.names_many(unread), strict=True))
            self._check_empty(level, read)
            for folder in level:
                for name, is_folder, size_bytes, _ in read.pop(folder):
                    if usual <= name[-len(usual) - 8 : -8] < "`" and not is_folder:
                        continue  # most files of a table without an archive, found faster than by `_listed_file`
                    if is_folder:
                        if not name.startswith("."):
                            below.append(f"{folder}/{name}" if folder else name)
                        continue
                    listed = _listed_file(folder, name, size_bytes)
                    if listed is not None and listed.instant < start:
                        files.append(listed)
            # Folders that have entries, although the listing of their parent lacks them, are read last.
            level = below or sorted(name for name in read if read[name] and _parent(name) not in read)
            if not level:
                break
        return self._sized(files)

    def _check_empty(self, folders: Sequence[str], listings: dict[str, Sequence[EntryFields]]) -> None:
        """List remote folders that are empty once more, since their parents contain them, and note those that are."""
        if not listings.get("", [FOLDER]):
            raise StorageError(
                f"The listing of {self.storage.root} is empty, although its folder {FOLDER} exists: it is incomplete. "
                "Try again."
            )
        empty = [folder for folder in folders if not listings[folder]]
        if empty and not self.storage.is_local:
            listings.update(zip(empty, self.storage.names_many(empty), strict=True))
        still_empty = {folder for folder in empty if not listings[folder]}
        self._empty_folders |= still_empty
        self.reader.empty_folders |= still_empty

    def _sized(self, files: Sequence[ListedFile]) -> list[ListedFile]:
        """Return listed files with their sizes, which a listing of the local disk lacks, without files gone since."""
        sizes = self.storage.sizes([file.path for file in files if file.size_bytes is None])
        return [
            replace(file, size_bytes=sizes[file.path]) if file.size_bytes is None else file
            for file in files
            if file.size_bytes is not None or file.path in sizes
        ]


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0]


def _with_parents(partitions: Iterable[str]) -> set[str]:
    """Return the folders of partitions and those above them, without hidden ones, which are not listed."""
    paths = [partition.split("/") for partition in partitions]
    listed_parts = [parts for parts in paths if not any(part.startswith(".") or not part for part in parts)]
    return {"/".join(parts[:depth]) for parts in listed_parts for depth in range(1, len(parts) + 1)}


def _listed_file(folder: str, name: str, size_bytes: int | None) -> ListedFile | None:
    log = log_name(name)
    named = (log.file_id, log.instant) if log is not None else base_instant(name)
    if named is None or not named[1].isdigit():
        return None
    return ListedFile(
        path=f"{folder}/{name}" if folder else name,
        partition=folder,
        file_id=named[0],
        instant=int(named[1]),
        is_log=log is not None,
        size_bytes=size_bytes,
    )


class HudiCommitReader:
    """A cache of a table's commits over all listings: files of the timeline do not change."""

    def __init__(self, storage: Storage) -> None:
        self.archive = Archive(storage)
        self.shapes: dict[bytes, Shape] = {}
        self.commits: dict[tuple[str, str], CommitMetadata] = {}
        self.early: dict[str, bytes] = {}
        """Bytes of completed writes that were read before they were needed, by path."""
        self.empty: set[str] = set()
        """The files of completed writes that were empty when they were read."""
        self.empty_folders: set[str] = set()
        """The folders of partitions that were empty when they were listed."""
        self.filled = 0
        """How often such a file or folder was no longer empty later."""
        self.refused: dict[str, str] = {}
        """The error of each file that is too large."""
        self.listed: tuple[int, tuple[tuple[str, str], ...], Sequence[ListedFile]] | None = None
        """The first known commit and the actions that had removed files, when the partitions were listed; the files."""
        self.partitions: Collection[str] = ()
        """Folders of partitions that the table probably has."""


class HudiHistory:
    """The timeline of a table, listed again on request. Thread-safe."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._reader = HudiCommitReader(storage)
        self._source: HudiSource | None = None
        self._listed_at = now()

    def expect_partitions(self, folders: Collection[str]) -> None:
        """List these folders of the table's root at the same time as the root, if they are partitions."""
        if not self._storage.is_local:
            self._reader.partitions = [folder for folder in folders if not folder.startswith(".")]

    def current(self) -> HudiSource:
        """Return the last listing; lists the timeline if it was not listed yet."""
        return self._source or self.refresh()

    def refresh(self) -> HudiSource:
        """List the timeline and the archive, after reading the properties.

        Raises:
            TableNotFoundError: There were versions, and now there is none.
            StorageError: Versions are gone, and nothing rolled them back.
        """
        before, since = self._source, self._listed_at
        source = self._listed()
        for _ in range(TRIES - 1):
            if not _missing_versions(before, source):
                break
            pause()
            source = self._listed()
        if before is not None and (lost := _missing_versions(before, source)):
            if source.versions:
                raise missing_versions_error(self._storage.root, lost, source.versions, since)
            folder = timeline_folder(source.config)
            raise missing_table_error(self._storage.root, f"its folder {folder}", before.versions[-1], since)
        is_filled = self._find_filled(source)
        if is_filled:
            source = HudiSource(self._storage, source.config, source.entries, source.archive_listing, self._reader)
        with self._lock:
            self._listed_at = now()
            known = self._source
            if (
                known is not None
                and not is_filled
                and known.archive_problem is None
                and known.identity == source.identity
                and known.config == source.config
            ):
                known.forget_unread()
                return known
            self._source = source
        return source

    def _find_filled(self, source: HudiSource) -> bool:
        """Return whether a file or folder that was empty no longer is: a writer, or the storage, was not ready."""
        reader = self._reader
        sizes = source.timeline.sizes
        empty = tuple(reader.empty)
        counted = self._storage.sizes([path for path in empty if sizes.get(path) is None])
        files = {path for path in empty if sizes.get(path) or counted.get(path)}
        folders = sorted(reader.empty_folders)[:_MAX_EARLY]
        listed = zip(folders, self._storage.names_many(folders), strict=True)
        filled = {folder for folder, entries in listed if entries}
        reader.empty -= files
        reader.empty_folders -= filled
        is_filled = bool(files or filled)
        reader.filled += is_filled
        return is_filled

    def _listed(self) -> HudiSource:
        known = self._source
        if known is None:
            config = read_config(self._storage)
            entries, archived = self._folders(config)
        else:  # the properties hardly ever change
            config, (entries, archived) = self._storage.together(
                partial(read_config, self._storage), partial(self._folders, known.config)
            )
            if config != known.config:
                entries, archived = self._folders(config)
        if (
            known is not None
            and known.archive_problem is None
            and (config, entries, archived) == (known.config, known.entries, known.archive_listing)
        ):
            return known
        source = HudiSource(self._storage, config, entries, archived, self._reader)
        if not archived.is_absent and not self._storage.is_local:
            # The schema is in the newest commit. Restores determine it; it is nearly always the last write.
            newest = list(source.timeline.writes.values())[-1:]
            restores = [item for item in source.timeline.of_action("restore") if item.state == "completed"]
            self._storage.together(partial(source.read_early, [*newest, *restores]), lambda: source.archived)
        return source

    def _folders(self, config: TableConfig) -> tuple[Sequence[EntryFields], ArchiveListing]:
        return self._storage.together(
            partial(self._timeline_files, timeline_folder(config)), partial(self._reader.archive.list, config)
        )

    def _timeline_files(self, folder: str) -> Sequence[EntryFields]:
        """Return the files of the timeline; of the local disk without sizes, which would cost a call per file."""
        entries: Sequence[EntryFields]
        entries = self._storage.names_many([folder])[0] if self._storage.is_local else self._storage.list(folder)
        if folder == FOLDER and PROPERTY_FILES.isdisjoint(f"{FOLDER}/{entry[0]}" for entry in entries):
            raise StorageError(
                f"The listing of {folder} in {self._storage.root} is incomplete: {PROPERTIES} is missing from it, "
                "although it was read. Try again."
            )
        return entries

    def containing(self, versions: Sequence[int]) -> HudiSource:
        """Return a listing that contains these versions."""
        source = self.current()
        missing = [version for version in versions if version not in source.writes]
        return self.having(missing[0]) if missing else source

    def having(self, version: int) -> HudiSource:
        """Return a listing that contains a version: the last one, or a new one."""
        source = self.current()
        if version not in source.writes:
            source = self.refresh()
        if version not in source.writes:
            raise not_found(source, version)
        return source


def _missing_versions(before: HudiSource | None, source: HudiSource) -> tuple[int, ...]:
    """Return the versions of an earlier listing that a later one lacks, unless they were rolled back.

    Hudi's archive keeps the oldest ones too.
    """
    missing = () if before is None else tuple(version for version in before.versions if version not in source.writes)
    undone = source.timeline.of_action("rollback", "restore")
    return () if missing and undone and undone[-1].time > missing[-1] else missing


def not_found(source: HudiSource, version: int) -> SnapshotNotFoundError:
    """Return the error for a version that does not exist."""
    root, versions = source.storage.root, source.versions
    if not versions:
        return SnapshotNotFoundError(f"Version {version} does not exist: {root} has no completed commit yet.")
    instants = {instant.time: instant for instant in source.timeline.instants}
    pending = instants.get(version)
    problem = f"Version {version} of {root} does not exist."
    if pending is not None:
        problem = f"The instant {version} of {root} is not a version: it is a {pending.action} that is {pending.state}."
    removed = _removal_of(source, version)
    if removed is not None:
        problem = f"Version {version} of {root} was removed by the {removed.action} at {removed.text}."
    before = newest_at_or_before(versions, version)
    nearest = "" if before is None else f" The newest version before it is {before}."
    return SnapshotNotFoundError(
        Message(
            f"{problem}{nearest} Versions are the times at which commits were requested: {versions[0]} to "
            f"{versions[-1]}. ",
            Hint("table.history"),
            " lists them.",
        )
    )


def _removal_of(source: HudiSource, version: int) -> Instant | None:
    """Return the rollback or restore that removed an instant; None if none is known."""
    for instant in source.timeline.of_action("rollback", "restore"):
        if instant.state == "completed" and instant.time > version:
            raw = source.record(instant)
            items: Iterable[Mapping[str, Any]] = raw.get("instantsRollback") or raw.get("restoreInstantInfo") or ()
            if any(str(item.get("commitTime", "")).lstrip("0") == str(version) for item in items):
                return instant
    return None


def before_note(source: HudiSource) -> str | None:
    """Return why versions before the first one are unknown, in a sentence; None if they are known."""
    problem = source.archive_problem
    if problem is None:
        return None
    before = f"before {source.versions[0]}" if source.versions else "in the archive"
    return f"Versions {before} are unknown, because the archived timeline cannot be read: {str(problem).rstrip('.')}."


def empty_note(versions: Sequence[int]) -> str:
    """Return a sentence about versions whose commits are empty."""
    return (
        f"The commit metadata of {runs_text(runs_of(versions))} is empty, as a crashed writer leaves it. As in Hudi, "
        "an empty commit wrote no files; its operation, counts and schema are unknown."
    )


def committed_at(source: HudiSource, versions: Sequence[int]) -> list[Any]:
    """Return when versions were completed, or requested where the timeline does not record more; in UTC."""
    times = []
    for version in versions:
        instant = source.instant(version)
        shown = instant.completion if source.config.layout > 1 and instant.completion else instant.text
        times.append(parse_instant(shown))
    return times


def previous_version(source: HudiSource, version: int) -> int | None:
    """Return the version before one; None for the first."""
    index = bisect_left(source.versions, version)
    return source.versions[index - 1] if index else None


def _emptied_error(instant: Instant, but: str) -> CorruptTableError:
    return CorruptTableError(
        f"{instant.path} names no files, but {but}. It was emptied or damaged; compare it with a copy of the table."
    )
