"""Which files a Delta log may hold, told by their names alone. No I/O.

Source: delta PROTOCOL.md, "Delta Log Entries"; delta FileNames.scala.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from snapshot_explorer.storage import Entry

LOG = "_delta_log"
"""The folder of the log."""
HINT = f"{LOG}/_last_checkpoint"
"""Where writers say which checkpoint is the newest. It may be wrong."""
SIDECARS = f"{LOG}/_sidecars"
"""Where checkpoints put their lists of files."""
STAGED = "_staged_commits"
"""The folder, in the log, of commits that only a catalog may call commits."""

_LARGEST = 2**63 - 1
_WIDTH = 20
"""Digits of a version in a name that writers write."""
_CHECKPOINT = re.compile(r"([0-9]+)\.checkpoint(?:\.([0-9]+)\.([0-9]+)|\.([^.]+))?\.(parquet|json)")
_COMPACTION = re.compile(r"([0-9]+)\.([0-9]+)\.compacted\.json")
_PLAIN = re.compile(r"([0-9]+)\.(json|crc)")
_STAGED_COMMIT = re.compile(r"([0-9]+)\.[^.]+\.json")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_PLACE = itemgetter(1, 2)  # version and name of a LogFile

FileKind = Literal["commit", "checksum", "checkpoint", "compaction"]
Form = Literal["classic", "multi-part", "uuid"]
_RANK: dict[Form | None, int] = {None: -1, "classic": 0, "multi-part": 1, "uuid": 2}


class LogFile(NamedTuple):
    """A file of the log, as the listing shows it. A tuple: of a long log they are many, and a record takes longer."""

    kind: FileKind
    """What it is."""
    version: int
    """The version that it tells of; of a compaction the first one."""
    name: str
    """Its name in the log's folder."""
    size_bytes: int | None
    """Its size, where the storage says."""
    modified: datetime | None
    """When it was written, aware, UTC, where the storage says."""
    form: Form | None = None
    """Of a checkpoint: which form."""
    part: int | None = None
    """Of a part of a checkpoint: which one, from 1."""
    parts: int | None = None
    """Of a part of a checkpoint: how many there are."""
    until: int | None = None
    """Of a compaction: the last version."""

    @property
    def path(self) -> str:
        """Return the path below the table's root."""
        return f"{LOG}/{self.name}"

    @property
    def modified_ms(self) -> int | None:
        """Return when it was written, in whole milliseconds since 1970."""
        return None if self.modified is None else (self.modified - _EPOCH) // timedelta(milliseconds=1)

    @property
    def identity(self) -> tuple[str, int | None, datetime | None]:
        """Return what tells the file from another of the same name."""
        return self.name, self.size_bytes, self.modified


def log_files(entries: Iterable[Entry], known: Mapping[str, LogFile] = MappingProxyType({})) -> list[LogFile]:
    """Return the files of the log among the entries, in order of version; other files are left out.

    A checkpoint without bytes is left out too: some stores show a file before its content.

    Args:
        entries: What is in the log's folder.
        known: Files of an earlier listing, by name: one of which all is still the same is returned itself.

    Source: delta SnapshotManagement.scala, getLogSegmentForVersion.
    """
    found = []
    for entry in entries:
        name, is_folder, size_bytes, modified = entry
        file = known.get(name)
        if file is None or file.size_bytes != size_bytes or file.modified != modified:
            file = _log_file(entry)
        if file is not None and not is_folder:
            found.append(file)
    return sorted(found, key=_PLACE)


def commit_name(version: int) -> str:
    """Return the name of a version's commit."""
    return f"{version:020d}.json"


def checksum_path(version: int) -> str:
    """Return the path of a version's checksum file."""
    return f"{LOG}/{version:020d}.crc"


def staged_version(name: str) -> int | None:
    """Return the version of a staged commit, None if the name is of another kind."""
    found = _STAGED_COMMIT.fullmatch(name)
    return int(found[1]) if found and int(found[1]) <= _LARGEST else None


def checkpoint_rank(files: tuple[LogFile, ...]) -> tuple[int, int, int, str]:
    """Return by what complete checkpoints are ordered: the greatest is used.

    Source: delta CheckpointInstance.scala.
    """
    first = files[0]
    return first.version, _RANK[first.form], first.parts or 1, first.name


def _log_file(entry: Entry) -> LogFile | None:
    name = entry.name
    kind: FileKind
    number = name[:_WIDTH]
    if name[_WIDTH:] == ".json" and number.isdecimal() and number.isascii() and (version := int(number)) <= _LARGEST:
        return LogFile("commit", version, name, entry.size_bytes, entry.modified)  # nearly all are
    if found := _PLAIN.fullmatch(name):
        number, suffix = found.groups()
        kind = "commit" if suffix == "json" else "checksum"
        version = int(number)
        return LogFile(kind, version, name, entry.size_bytes, entry.modified) if version <= _LARGEST else None
    if found := _CHECKPOINT.fullmatch(name):
        return _checkpoint(entry, found)
    if found := _COMPACTION.fullmatch(name):
        return _of(entry, "compaction", int(found[1]), until=int(found[2]))
    return None


def _checkpoint(entry: Entry, found: re.Match[str]) -> LogFile | None:
    version, part, parts, unique, suffix = found.groups()
    if entry.size_bytes == 0 or (suffix == "json" and unique is None):
        return None
    if part is not None:
        return _of(entry, "checkpoint", int(version), form="multi-part", part=int(part), parts=int(parts))
    return _of(entry, "checkpoint", int(version), form="uuid" if unique else "classic")


def _of(
    entry: Entry,
    kind: FileKind,
    version: int,
    *,
    form: Form | None = None,
    part: int | None = None,
    parts: int | None = None,
    until: int | None = None,
) -> LogFile | None:
    if version > _LARGEST or (parts or 0) > _LARGEST or (until or 0) > _LARGEST:
        return None
    return LogFile(
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
