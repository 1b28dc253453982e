"""The kinds of files in a Delta log, by their names. No I/O.

Source: delta PROTOCOL.md, "Delta Log Entries"; delta FileNames.scala.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from snapshot_explorer.core.milliseconds import to_millis
from snapshot_explorer.storage import Entry

LOG = "_delta_log"
HINT = f"{LOG}/_last_checkpoint"
"""The hint of writers to the newest checkpoint. It may be wrong."""
SIDECARS = f"{LOG}/_sidecars"
STAGED = {"_staged_commits": ("catalogManaged", "catalogOwned-preview"), "_commits": ("coordinatedCommits-preview",)}
"""The folders in the log for commits that are not published yet, and the features of tables with such folders.

A catalog or a commit coordinator (Delta's RFC managed-commits) publishes the commits.
"""

_LARGEST = 2**63 - 1
_WIDTH = 20
"""Digits of a version in file names."""
_CHECKPOINT = re.compile(r"([0-9]+)\.checkpoint(?:\.([0-9]+)\.([0-9]+)|\.([^.]+))?\.(parquet|json)")
_COMPACTION = re.compile(r"([0-9]+)\.([0-9]+)\.compacted\.json")
_PLAIN = re.compile(r"([0-9]+)\.(json|crc)")
_STAGED_COMMIT = re.compile(r"([0-9]+)\.[^.]+\.json")

_PLACE = itemgetter(1, 2)  # version and name of a DeltaLogFile

FileKind = Literal["commit", "checksum", "checkpoint", "compaction"]
Form = Literal["classic", "multi-part", "uuid"]
_RANK: dict[Form | None, int] = {None: -1, "classic": 0, "multi-part": 1, "uuid": 2}


class DeltaLogFile(NamedTuple):
    """A file of the log, from a listing. A tuple, which is faster to create than a dataclass, and a log has many."""

    kind: FileKind
    version: int
    name: str
    """Its name in the log's folder."""
    size_bytes: int | None
    modified: datetime | None
    """When it was written, aware, UTC, if the storage reports it."""
    form: Form | None = None
    part: int | None = None
    """The number of a checkpoint part, from 1."""
    parts: int | None = None
    until: int | None = None
    """The last version of a compaction."""

    @property
    def path(self) -> str:
        """Return the path below the table's root."""
        return f"{LOG}/{self.name}"

    @property
    def modified_ms(self) -> int | None:
        """Return when it was written, in whole milliseconds since 1970."""
        return None if self.modified is None else to_millis(self.modified)

    @property
    def identity(self) -> tuple[str, int | None, datetime | None]:
        """Return a value that distinguishes files of the same name."""
        return self.name, self.size_bytes, self.modified


def log_files(entries: Iterable[Entry], known: Mapping[str, DeltaLogFile] = MappingProxyType({})) -> list[DeltaLogFile]:
    """Return the files of the log among the entries, in order of version; other files are left out.

    An empty checkpoint is left out too: some stores list a file before it has content.

    Args:
        known: Files of an earlier listing, by name: an unchanged one is returned as the same object.

    Source: delta SnapshotManagement.scala, getLogSegmentForVersion.
    """
    files = []
    for entry in entries:
        name, is_folder, size_bytes, modified = entry
        file = known.get(name)
        if file is None or file.size_bytes != size_bytes or file.modified != modified:
            file = _log_file(entry)
        if file is not None and not is_folder:
            files.append(file)
    return sorted(files, key=_PLACE)


def commit_name(version: int) -> str:
    """Return the name of a version's commit."""
    return f"{version:020d}.json"


def checksum_path(version: int) -> str:
    """Return the path of a version's checksum file."""
    return f"{LOG}/{version:020d}.crc"


def staged_version(name: str) -> int | None:
    """Return the version of a staged commit, None for another kind of name."""
    match = _STAGED_COMMIT.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= _LARGEST else None


def checkpoint_rank(files: tuple[DeltaLogFile, ...]) -> tuple[int, int, int, str]:
    """Return the sort key of complete checkpoints: the maximum is used.

    Source: delta CheckpointInstance.scala.
    """
    first = files[0]
    return first.version, _RANK[first.form], first.parts or 1, first.name


def _log_file(entry: Entry) -> DeltaLogFile | None:
    name = entry.name
    kind: FileKind
    number = name[:_WIDTH]
    if name[_WIDTH:] == ".json" and number.isdecimal() and number.isascii() and (version := int(number)) <= _LARGEST:
        # Nearly all are commits. `_make` takes a third of the time of the constructor.
        return DeltaLogFile._make(("commit", version, name, entry.size_bytes, entry.modified, None, None, None, None))
    if match := _PLAIN.fullmatch(name):
        number, suffix = match.groups()
        kind = "commit" if suffix == "json" else "checksum"
        version = int(number)
        return DeltaLogFile(kind, version, name, entry.size_bytes, entry.modified) if version <= _LARGEST else None
    if match := _CHECKPOINT.fullmatch(name):
        return _checkpoint(entry, match)
    if match := _COMPACTION.fullmatch(name):
        return _create(entry, "compaction", int(match[1]), until=int(match[2]))
    return None


def _checkpoint(entry: Entry, match: re.Match[str]) -> DeltaLogFile | None:
    version, part, parts, unique, suffix = match.groups()
    if entry.size_bytes == 0 or (suffix == "json" and unique is None):
        return None
    if part is not None:
        return _create(entry, "checkpoint", int(version), form="multi-part", part=int(part), parts=int(parts))
    return _create(entry, "checkpoint", int(version), form="uuid" if unique else "classic")


def _create(
    entry: Entry,
    kind: FileKind,
    version: int,
    *,
    form: Form | None = None,
    part: int | None = None,
    parts: int | None = None,
    until: int | None = None,
) -> DeltaLogFile | None:
    if version > _LARGEST or (parts or 0) > _LARGEST or (until or 0) > _LARGEST:
        return None
    return DeltaLogFile(
        kind=kind,
        version=version,
        name=entry.name,
        size_bytes=entry.size_bytes,
        modified=entry.modified,
        form=form,
        part=part,
        parts=parts,
        until=until,
    )
