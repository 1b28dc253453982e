"""The archived timeline: an LSM tree of parquet files in layout 2, log files of Avro records in layout 1.

Data files of archived commits may still be live, so the history of a table begins in its archive.

Source: hudi specification, "Timeline", "LSM Timeline"; hudi LSMTimeline, HoodieArchivedMetaEntry.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import parquet_pages
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import UNREADABLE, CorruptTableError, LimitError, SnapshotExplorerError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.avro.container import Shape
from snapshot_explorer.formats.hudi.metadata import log_format
from snapshot_explorer.formats.hudi.metadata.avro_records import read_records
from snapshot_explorer.formats.hudi.metadata.commits import read_raw
from snapshot_explorer.formats.hudi.metadata.properties import FOLDER, TableConfig
from snapshot_explorer.formats.hudi.metadata.timeline import WRITES, Instant, timeline_folder
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.storage import Entry, Storage

_LOG_NAME = re.compile(r"\.commits_\.archive\.(\d+)_[\w-]+", re.ASCII)
_MANIFEST_NAME = re.compile(r"manifest_(\d{1,18})", re.ASCII)
_TREE_NAME = re.compile(r"(\d{1,18})_(\d{1,18})_\d{1,3}\.parquet", re.ASCII)
"""Two instants of a file of the tree, and its level."""
_COLUMNS = ("instantTime", "completionTime", "action", "metadata")
_NESTED = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
    "savepoint": "hoodieSavePointMetadata",
}
"""The field of a record of layout 1 that contains the metadata of an action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedInstant:
    """A completed action in the archive."""

    instant: Instant
    content: bytes | Mapping[str, Any] | None
    """Its metadata: the contents of its file (layout 2) or its record (layout 1)."""

    @property
    def path(self) -> str:
        """Its path, for messages."""
        return f"{self.instant.path} (instant {self.instant.text})"

    def raw(self, shapes: dict[bytes, Shape], limits: Limits) -> Mapping[str, Any]:
        """Return all recorded metadata of the action."""
        if isinstance(self.content, bytes):
            return read_raw(self.content, self.path, shapes, limits)
        return self.content or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveListing:
    """The valid files of an archive."""

    names: tuple[str, ...]
    """Their paths, in order."""
    sizes: tuple[int | None, ...]
    is_absent: bool
    """Whether there is no archive, so that nothing was archived, or the archive was deleted."""
    unread: Mapping[str, SnapshotExplorerError] = field(default_factory=dict)
    """Why some of the files cannot be read, by path, if the listing shows it."""
    has_holes: bool = False
    """Whether files may be missing between the listed ones, by their numbers."""
    problem: SnapshotExplorerError | None = None
    """Why it is unknown which files are valid; None if it is known."""


class Archive:
    """The archive of a table. Caches its files by path and size, because they do not change. Thread-safe."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._shapes: dict[bytes, Shape] = {}
        self._files: dict[tuple[str, int | None], tuple[ArchivedInstant, ...]] = {}
        self._manifest: tuple[tuple[str, int | None], Sequence[str]] | None = None

    def list(self, config: TableConfig) -> ArchiveListing:
        """Return the files of the archive: one listing, and in layout 2 the two small files that name them."""
        return self._logs(config) if config.layout == 1 else self._tree(config)

    def read(
        self, listing: ArchiveListing
    ) -> tuple[dict[tuple[int, str], ArchivedInstant], SnapshotExplorerError | None]:
        """Return the completed actions in the archive, by time and action, after the last unreadable one.

        Also returns why older actions are unknown. Reads files that were not read before.
        """
        with self._lock:
            keys = list(zip(listing.names, listing.sizes, strict=True))
            new = [key for key in keys if key not in self._files and key[0] not in listing.unread]
            read = read_apart(
                lambda indices: self._read([new[index] for index in indices]), range(len(new)), self._storage
            )
            unread = dict(listing.unread) | {new[index][0]: error for index, error in read.unread.items()}
            names = [path.rpartition("/")[2] for path in unread]
            # Layout 1 numbers its files in order; layout 2 puts the first and the last instant into file names.
            begin = max((listing.names.index(path) + 1 for path in unread if not path.endswith(".parquet")), default=0)
            ends = [
                int(instant) for name in names if (named := _TREE_NAME.fullmatch(name)) for instant in named.groups()
            ]
            newest = max(ends, default=0)
            instants = {
                (archived.instant.time, archived.instant.action): archived
                for key in keys[begin:]
                for archived in self._files.get(key, ())
                if archived.instant.time > newest
            }
            return instants, listing.problem or next(iter(unread.values()), None)

    def _read(self, keys: Sequence[tuple[str, int | None]]) -> None:
        contents = self._storage.each(lambda key: self._storage.read(key[0], listed_bytes=key[1]), keys)
        for key, content in zip(keys, contents, strict=True):
            parse = self._read_parquet if key[0].endswith(".parquet") else self._read_log
            self._files[key] = tuple(parse(content, key[0]))

    def _logs(self, config: TableConfig) -> ArchiveListing:
        folder = f"{FOLDER}/{config.text('hoodie.archivelog.folder', default='archived')}"
        numbered = sorted(
            (int(matched[1]), entry)
            for entry in self._storage.list(folder)
            if (matched := _LOG_NAME.fullmatch(entry.name)) is not None
        )
        # A writer may be about to fill the newest one.
        entries = [entry for _, entry in numbered[:-1]] + [entry for _, entry in numbered[-1:] if entry.size_bytes != 0]
        empty = [f"{folder}/{entry.name}" for entry in entries if entry.size_bytes == 0]
        listing = _listing(folder, entries)
        return replace(
            listing,
            unread={path: _damaged_error(path, ValueError("it is empty")) for path in empty},
            has_holes=bool(numbered) and numbered[-1][0] - numbered[0][0] >= len(numbered),
        )

    def _tree(self, config: TableConfig) -> ArchiveListing:
        folder = f"{timeline_folder(config)}/{config.text('hoodie.timeline.history.path', default='history')}"
        read_version = partial(self._version, folder)
        is_first = self._manifest is None
        version, listed = self._storage.together(
            (lambda: None) if is_first else read_version, partial(self._storage.list, folder)
        )
        entries = {entry.name: entry for entry in listed}
        manifests = {int(matched[1]): name for name in entries if (matched := _MANIFEST_NAME.fullmatch(name))}
        if not manifests:
            return _listing(folder, [])
        newest = entries[manifests[max(manifests)]]
        if is_first:
            version, _ = self._storage.together(read_version, partial(self._read_early, folder, newest))
        name = manifests.get(version if version is not None else -1, newest.name)
        path = f"{folder}/{name}"
        try:
            files = self._named(path, entries[name].size_bytes)
        except UNREADABLE as error:
            return replace(_listing(folder, []), problem=error)
        missing_names = [name for name in files if name not in entries]
        listing = _listing(folder, [entries[name] for name in files if name in entries])
        return replace(
            listing, unread={f"{folder}/{name}": _missing(f"{folder}/{name}", path) for name in missing_names}
        )

    def _version(self, folder: str) -> int | None:
        """Return the number of the valid manifest, None if it is not recorded. It may be older than a listing."""
        content = self._storage.read_present([f"{folder}/_version_"])[0]
        text = "" if content is None else content.decode("utf-8", "replace").strip()
        return int(text) if text.isascii() and text.isdigit() else None

    def _read_early(self, folder: str, manifest: Entry) -> None:
        if not self._storage.is_local:
            with suppress(SnapshotExplorerError):  # raised when the manifest is needed
                self._named(f"{folder}/{manifest.name}", manifest.size_bytes)

    def _named(self, path: str, size_bytes: int | None) -> Sequence[str]:
        """Return the names of files in a manifest. The last one read is cached, because manifests do not change."""
        if (last := self._manifest) is not None and last[0] == (path, size_bytes):
            return last[1]
        content = self._storage.read(path, listed_bytes=size_bytes)
        try:
            files = [str(file["fileName"]) for file in json_text.document(content, path, self._storage.limits)["files"]]
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, LimitError):
                raise
            raise CorruptTableError(
                f"{path} is not a manifest of the archived timeline: {error}. Compare it with a copy of the table."
            ) from error
        self._manifest = (path, size_bytes), files
        return files

    def _read_parquet(self, content: bytes, path: str) -> Iterator[ArchivedInstant]:
        source = pa.BufferReader(content)
        try:
            file = parquet_pages.open_metadata_file(source)
            parquet_pages.check(file, source, path, columns=list(_COLUMNS), limits=self._storage.limits)
            rows = file.read(columns=list(_COLUMNS)).to_pylist()
            _check_range([str(row["instantTime"]) for row in rows], path)
            for row in rows:
                instant = _completed(row["instantTime"], row["action"], row["completionTime"], path, len(content))
                yield ArchivedInstant(instant=instant, content=row["metadata"])
        except (pa.ArrowException, CorruptBytesError, OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, LimitError | CorruptTableError):
                raise
            resources.check(error, f"{path} could not be read")
            raise _damaged_error(path, error) from error

    def _read_log(self, content: bytes, path: str) -> Iterator[ArchivedInstant]:
        for block in log_format.blocks(content, path):
            if block.type != log_format.AVRO:
                continue
            records = log_format.avro_records(block, path, self._shapes, self._storage.limits)
            for row in read_records(records.container):
                state = row.get("actionState")
                if state in (None, "COMPLETED"):
                    yield self._archived(row, path, len(content))

    def _archived(self, row: Mapping[str, Any], path: str, size_bytes: int) -> ArchivedInstant:
        try:
            action = str(row["actionType"])
            completion = row.get("stateTransitionTime")
            instant = _completed(row["commitTime"], action, completion, path, size_bytes)
        except (KeyError, ValueError, TypeError) as error:
            raise _damaged_error(path, error) from error
        return ArchivedInstant(instant=instant, content=row.get(_NESTED.get(action, "")))


def _check_range(instants: Sequence[str], path: str) -> None:
    """Raise if a file of the tree lacks an instant in its name: the first and the last, which an upgrade may swap."""
    named = _TREE_NAME.fullmatch(path.rpartition("/")[2])
    if named is not None and not set(instants).issuperset(named.groups()):
        raise ValueError("it lacks the instants in its name")


def _listing(folder: str, entries: Sequence[Entry]) -> ArchiveListing:
    return ArchiveListing(
        names=tuple(f"{folder}/{entry.name}" for entry in entries),
        sizes=tuple(entry.size_bytes for entry in entries),
        is_absent=not entries,
    )


def _completed(text: object, action: object, completion: object, path: str, size_bytes: int) -> Instant:
    digits = str(text)
    return Instant(
        time=int(digits),
        text=digits,
        action=str(action),
        state="completed",
        completion=None if completion in (None, "") else str(completion),
        path=path,
        size_bytes=size_bytes,
    )


def archived_writes(archived: Mapping[tuple[int, str], ArchivedInstant]) -> dict[int, ArchivedInstant]:
    """Return the writes among archived actions by time."""
    return {time: item for (time, action), item in archived.items() if action in WRITES}


def _missing(path: str, manifest: str) -> CorruptTableError:
    return CorruptTableError(
        f"The archived timeline lacks {path}, which {manifest} names. If a writer is active, try again; otherwise "
        "files of the archive were deleted: restore them from a copy of the table."
    )


def _damaged_error(path: str, error: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"{path} cannot be read as a file of the archived timeline: {error}. It is cut short or damaged; compare it "
        "with a copy of the table."
    )
