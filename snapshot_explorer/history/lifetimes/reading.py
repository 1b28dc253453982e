"""Read the `FileLifetimes` of a table from its log, incrementally."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import (
    UNREADABLE,
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import Step, step
from snapshot_explorer.core.records import Listing
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.unread_versions import PartlyRead, read_apart, readable_times
from snapshot_explorer.history.lifetimes.index import FileLifetimes
from snapshot_explorer.history.lifetimes.intervals import INTERVALS, OPEN, Intervals
from snapshot_explorer.results.outputs import make_folder, output_file, output_folder

log = logger_of(__name__)
T = TypeVar("T")

FIRST_COMMITS = 2_000
"""The number of versions in the first read. The number of changes in them determines the size of the next read."""
_FASTER = 8
"""The maximum growth factor from one read to the next: later versions may have more changes."""
COMMITS_AT_ONCE = 100_000
"""The approximate number of changes in memory, or the number of the table's files if that is greater."""
_TRIES = 5


class FileSource:
    """Reads the files of versions, and their changes, for lifetimes."""

    def __init__(self, table_format: TableFormat) -> None:
        self.format = table_format

    def files(self, version: int) -> pa.Table:
        """Return the FILES of a version."""
        deletes = self.format.delete_files
        return self.format.version(version).files() if deletes is None else deletes.data_files(version)

    def changes(self, versions: Sequence[int]) -> pa.Table:
        """Return the CHANGES of data files."""
        return self.format.changes(versions, changelog=False)


def delete_manifests(table_format: TableFormat, versions: Sequence[int]) -> Sequence[frozenset[str]]:
    """Return for each version the manifests of its delete files; none where LIFETIMES contain all deletions."""
    deletes = table_format.delete_files
    return [frozenset()] * len(versions) if deletes is None else deletes.manifests(versions)


def read_lifetimes(
    table_format: TableFormat, known: FileLifetimes | None = None, *, title: str, source: FileSource | None = None
) -> FileLifetimes:
    """Return the lifetimes of the data files of a table, over all versions with known files.

    Reads the log once: the files of the earliest version, of versions after a gap and of versions without a commit, and
    the changes of all others. Versions whose metadata cannot be read are named, and left out.

    With `known`, reads only newer versions, a listing and the newest known commit, to check that the history is the
    same. If it is not, if all known versions have expired, or if some could not be read, reads everything again. Known
    versions that have expired since are kept.
    """
    source = source or FileSource(table_format)
    for left in reversed(range(_TRIES)):
        listing = _listing(table_format) if known is None else table_format.listing(0)
        base = known if known is not None and _continues(table_format, known, listing) else FileLifetimes(title=title)
        try:
            result = _extend(source, base, listing)
        except UNREADABLE:
            if not left or not _has_expired(table_format, listing):
                raise
            continue
        if result is base:
            return result
        again = table_format.listing(0)
        if _is_unchanged(table_format, result, base, listing, again):
            return result.with_missing(again)
    raise SnapshotNotFoundError(
        f"Versions expired, or history was rewritten, during each of {_TRIES} reads. "
        "Try again when the table changes less."
    )


def despite_expiry(table_format: TableFormat, read: Callable[[Listing], T]) -> T:
    """Return the result of a read of the versions in a new listing. Reads again if versions expired meanwhile."""
    listing = table_format.listing(0)
    left = _TRIES
    while True:
        try:
            return read(listing)
        except UNREADABLE:
            left -= 1
            if not left or not _has_expired(table_format, listing):
                raise
            listing = table_format.listing(0)


def _has_expired(table_format: TableFormat, listing: Listing) -> bool:
    """Return whether versions of a listing have expired since. One listing."""
    return not frozenset(listing.reachable).issubset(table_format.listing(0).reachable)


def _listing(table_format: TableFormat) -> Listing:
    """Return a listing of all versions. On slow storage, the newest commits are read at the same time."""
    if table_format.storage.is_local:
        return table_format.listing(0)
    early = partial(table_format.read_newest, FIRST_COMMITS)
    return table_format.storage.together(early, partial(table_format.listing, 0))[1]


def keep_lifetimes(
    table_format: TableFormat,
    known: FileLifetimes | None,
    *,
    cache_dir: str | PathLike[str],
    table: Sequence[str | None],
    title: str,
) -> FileLifetimes:
    """Return lifetimes like `read_lifetimes`, cached in a folder.

    Args:
        table: The identity of the table, its location first.
    """
    file = file_of(cache_dir, table)
    kept = load(file, title=title)
    newer = known if known is not None and (kept is None or known.versions[-1:] > kept.versions[-1:]) else kept
    result = read_lifetimes(table_format, newer, title=title)
    if result is not kept and result.versions and result.is_complete:
        save(file, result)
    return result


def fingerprint_of(table_format: TableFormat, version: int) -> str:
    """Return a fingerprint of a commit, which differs for other commits of its version; empty if it cannot be read."""
    read = read_apart(lambda group: table_format.fingerprint(group[0]), [version], table_format.storage)
    return "".join(fingerprint for _, fingerprint in read.parts)


def time_of(table_format: TableFormat, version: int) -> datetime | None:
    """Return the commit time of a version; None if unknown, for example if only a checkpoint is left, or it expired."""
    return readable_times(table_format, [version])[0]


def states_of(listing: Listing) -> list[int]:
    """Return the versions of a listing with known files, ascending."""
    return sorted(set(listing.reachable).difference(listing.without_files))


def _continues(table_format: TableFormat, known: FileLifetimes, listing: Listing) -> bool:
    states = states_of(listing)
    if not states or not known.versions or states[-1] < known.versions[-1] or not known.is_complete:
        return False
    newest = known.versions[-1]
    if any(version < newest for version in set(states).difference(known.versions)):
        return False  # an outdated listing did not contain them when the others were read
    if newest in states:
        return repr(listing.identity) == known.identity or _mark_of(table_format, newest, listing) == known.fingerprint
    # The newest known version has expired. A known version that still exists, such as a tag's, must be the same.
    both = max(set(states).intersection(known.versions), default=None)
    return both is not None and time_of(table_format, both) == known.time_of(both)


def _mark_of(table_format: TableFormat, version: int, listing: Listing) -> str:
    """Return the fingerprint of a commit; another one after a correction of what the storage answered."""
    return f"{fingerprint_of(table_format, version)}{listing.corrections or ''}"


def _extend(source: FileSource, base: FileLifetimes, listing: Listing) -> FileLifetimes:
    """Return lifetimes that include the newer versions of a listing."""
    newest = base.versions[-1] if base.versions else None
    unknown = [version for version in states_of(listing) if newest is None or version > newest]
    reader = _LogReader(source, base, listing)
    with step("Reading the changes of versions", total=len(unknown)) as reading:
        for run in listing.runs(unknown, listing.without_commit):
            reader.read(run, reading)
    result = reader.lifetimes
    if unknown and not result.versions:
        raise reader.unread[max(reader.unread)]
    if result is not base:
        mark = _mark_of(source.format, result.versions[-1], listing)
        result = result.with_fingerprint(repr(listing.identity), mark)
    return result.with_missing(listing, reader.unread, reader.without_commit)


class _Changes(NamedTuple):
    """The changes of versions, and when each was committed."""

    versions: Sequence[int]
    times: Sequence[datetime]
    changes: pa.Table

    def from_version(self, version: int) -> "_Changes":
        """Return the changes of a version and of later ones."""
        if version == self.versions[0]:
            return self
        index = self.versions.index(version)
        later = pc.greater_equal(self.changes["version"], version)
        return _Changes(self.versions[index:], self.times[index:], self.changes.filter(later))


class _LogReader:
    """Extends lifetimes by the changes of versions, or by their files where changes cannot be read."""

    def __init__(self, source: FileSource, base: FileLifetimes, listing: Listing) -> None:
        self.lifetimes = base
        self.unread: dict[int, SnapshotExplorerError] = {}
        """Versions whose files are unknown."""
        self.without_commit: dict[int, SnapshotExplorerError] = {}
        """Versions whose files are known, and whose commit cannot be read."""
        self._source = source
        self._listing = listing

    def read(self, run: Sequence[int], reading: Step) -> None:
        """Read consecutive versions. Only the first one can be without a commit."""
        rest, early = run, None
        if not self._continues(run[0]) or run[0] in self._listing.without_commit:
            later = run[1 : 1 + FIRST_COMMITS]
            early, state = self._source.format.storage.together(
                partial(self._changes, later), partial(self._state, run[0])
            )
            self._add_state(run[0], state)
            rest = run[1:]
            reading.advance()
        number = FIRST_COMMITS
        while rest:
            batch, rest = rest[:number], rest[number:]
            read = self._changes(batch) if early is None else early
            early = None
            self._add_changes(batch, read)
            reading.advance(len(batch))
            # Each step also takes time for the live files. With this many changes, it is small in proportion.
            changed = sum(len(part.changes) for _, part in read.parts)
            count = max(COMMITS_AT_ONCE, len(self.lifetimes)) * len(batch) // max(1, changed)
            number = min(max(1, count), _FASTER * len(batch))

    def _continues(self, version: int) -> bool:
        known = self.lifetimes.versions
        return bool(known) and self._listing.predecessor(version) == known[-1]

    def _add_changes(self, batch: Sequence[int], read: PartlyRead[_Changes]) -> None:
        parts = {version: part for group, part in read.parts for version in group}
        index = 0
        while index < len(batch):
            version = batch[index]
            if version in parts and self._continues(version):
                changes = parts[version].from_version(version)
                self.lifetimes = self.lifetimes.extended(*changes)
                index += len(changes.versions)
                continue
            self._add_state(version, self._state(version), read.unread.get(version))
            index += 1

    def _add_state(self, version: int, state: PartlyRead[pa.Table], error: SnapshotExplorerError | None = None) -> None:
        """Add a version by its files.

        Args:
            error: Why its changes cannot be read; None if they can, or were not read.
        """
        self.unread.update(state.unread)
        for _, files in state.parts:
            times = read_apart(self._source.format.committed_at, [version], self._source.format.storage)
            if (
                version not in self._listing.without_commit
                and (error := error or times.unread.get(version)) is not None
            ):
                self.without_commit[version] = error
            time = times.parts[0][1][0] if times.parts else None
            self.lifetimes = self.lifetimes.with_state(version, time, files)

    def _changes(self, versions: Sequence[int]) -> PartlyRead[_Changes]:
        def read(group: Sequence[int]) -> _Changes:
            times = self._source.format.committed_at(group)
            return _Changes(group, times, self._source.changes(group))

        return read_apart(read, versions, self._source.format.storage) if versions else PartlyRead(parts=(), unread={})

    def _state(self, version: int) -> PartlyRead[pa.Table]:
        return read_apart(lambda _: self._source.files(version), [version], self._source.format.storage)


def _is_unchanged(
    table_format: TableFormat, lifetimes: FileLifetimes, base: FileLifetimes, listing: Listing, again: Listing
) -> bool:
    """Return whether exactly the versions of a listing that were read still exist, and the newest is still the same."""
    existing = set(states_of(again))
    if not {*lifetimes.versions, *lifetimes.unread}.difference(base.versions) <= existing:
        return False
    if existing.intersection(states_of(listing)).difference(lifetimes.versions, lifetimes.unread):
        return False  # a version that was missing when it was read now exists
    newest = lifetimes.versions[-1:]
    return again.identity == listing.identity or all(
        time_of(table_format, version) == lifetimes.time_of(version) for version in newest
    )


_KIND = b"snapshot_explorer lifetimes 1\n"
_CHECKSUM = 32
_VERSIONS = pa.schema([pa.field("version", pa.int64(), nullable=False), pa.field("committed_at", frames.UTC_MILLIS)])
_FOLDERS = pa.schema([pa.field("folder", pa.string(), nullable=False)])
_PARTITIONS = pa.schema([pa.field("partition", frames.PARTITION)])


def file_of(cache_dir: str | PathLike[str], table: Sequence[str | None]) -> Path:
    """Return the path of the file for the lifetimes of a table."""
    folder = output_folder(cache_dir, name="cache_dir")
    location = (table[0] or "").removeprefix("file://")
    if "://" not in location and folder.is_relative_to(Path(location).resolve()):
        raise InvalidArgumentError(
            Message(
                Hint("", {"cache_dir": str(cache_dir)}),
                " is in the table's own folder, where nothing is ever written. Choose a folder outside the table.",
            )
        )
    name = blake2b("\0".join(part or "" for part in table).encode(), digest_size=16).hexdigest()
    return folder / f"{name}.lifetimes"


def load(file: Path, *, title: str) -> FileLifetimes | None:
    """Return the lifetimes in a file; None if there is no valid file."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("Cannot read %s: %s", file.name, error.strerror)
        return None
    try:
        return _parse(content, title)
    except (pa.ArrowException, ValueError, IndexError, KeyError, OSError, UnicodeDecodeError) as error:
        log.warning("%s contains no valid lifetimes (%s). Reading them again.", file.name, error)
        return None


def save(file: Path, lifetimes: FileLifetimes) -> None:
    """Write lifetimes to a file, atomically: a concurrent reader sees the old or the new file."""
    content = _serialize(lifetimes)
    try:
        make_folder(file.parent)
        with output_file(file) as out:
            out.write(content)
    except OSError as error:
        raise StorageError(
            f"The lifetimes could not be written to {file.parent}: {error.strerror}. "
            "Choose a writable cache_dir, or leave it out."
        ) from error


def _serialize(lifetimes: FileLifetimes) -> bytes:
    metadata = {"identity": lifetimes.identity, "mark": lifetimes.fingerprint}
    versions = pa.table([pa.array(lifetimes.versions, pa.int64()), lifetimes.committed_at], schema=_VERSIONS)
    intervals = lifetimes.intervals
    parts = [
        versions.replace_schema_metadata(metadata),
        pa.table([intervals.folders], schema=_FOLDERS),
        pa.table([intervals.partitions], schema=_PARTITIONS),
        intervals.rows,
    ]
    out = pa.BufferOutputStream()
    for part in parts:
        with pa.ipc.new_stream(out, part.schema) as writer:
            writer.write_table(part)
    body: bytes = out.getvalue().to_pybytes()
    return _KIND + _digest(body) + body


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_CHECKSUM).digest()


def _parse(content: bytes, title: str) -> FileLifetimes:
    begin = len(_KIND) + _CHECKSUM
    body = content[begin:]
    if content[:begin] != _KIND + _digest(body):
        raise ValueError("it is of another kind, truncated or damaged")
    source = pa.BufferReader(body)
    versions, folders, partitions, rows = (
        _table(source, schema) for schema in (_VERSIONS, _FOLDERS, _PARTITIONS, INTERVALS)
    )
    metadata = {key.decode(): value.decode() for key, value in (versions.schema.metadata or {}).items()}
    intervals = Intervals(
        rows=rows.replace_schema_metadata(),
        folders=single_chunk(folders.column(0)),
        partitions=single_chunk(partitions.column(0)),
    )
    numbers = tuple(versions.column("version").to_pylist())
    _check(intervals, numbers)
    return FileLifetimes(
        title=title, versions=numbers, committed_at=single_chunk(versions.column("committed_at")), intervals=intervals
    ).with_fingerprint(metadata["identity"], metadata["mark"])


def _table(source: pa.NativeFile, schema: pa.Schema) -> pa.Table:
    result = pa.ipc.open_stream(source).read_all()
    if not result.schema.equals(schema, check_metadata=False):
        raise ValueError("its columns differ")
    result.validate(full=True)
    return result.combine_chunks()


def _check(intervals: Intervals, versions: tuple[int, ...]) -> None:
    rows = intervals.rows
    columns = {name: rows.column(name).to_numpy() for name in ("first", "last", "folder", "partition")}
    bounds = {"first": len(versions), "folder": len(intervals.folders), "partition": len(intervals.partitions)}
    fits = all(((columns[name] >= 0) & (columns[name] < bound)).all() for name, bound in bounds.items())
    ends = columns["last"]
    fits = fits and ((ends > columns["first"]) & ((ends < len(versions)) | (ends == OPEN))).all()
    if not fits or (np.diff(np.array(versions, np.int64)) <= 0).any():
        raise ValueError("its numbers contradict each other")
