"""Read the `FileLifetimes` of a table from its log, incrementally."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
)
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.lifetimes.index import FileLifetimes
from snapshot_explorer.lifetimes.intervals import INTERVALS, OPEN, Intervals
from snapshot_explorer.model import Listing
from snapshot_explorer.progress import Step, step
from snapshot_explorer.results.outputs import make_folder, output_file, output_folder
from snapshot_explorer.visible import logger_of

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
        return self.format.lifetime_files(version)

    def changes(self, versions: Sequence[int]) -> pa.Table:
        """Return the CHANGES of data files."""
        return self.format.changes(versions, changelog=False)


def read_lifetimes(
    table_format: TableFormat, known: FileLifetimes | None = None, *, title: str, source: FileSource | None = None
) -> FileLifetimes:
    """Return the lifetimes of the data files of a table, over all versions with known files.

    Reads the log once: the files of the earliest version, of versions after a gap and of those without a commit, and
    the changes of all others. With `known`, reads only newer versions, a listing and the newest known commit, to check
    that the history is the same. If it is not, or if all known versions have expired, reads everything again. Known
    versions that have expired since are kept.
    """
    source = source or FileSource(table_format)
    for left in reversed(range(_TRIES)):
        listing = _listing(table_format) if known is None else table_format.listing(0)
        base = known if known is not None and _continues(table_format, known, listing) else FileLifetimes(title=title)
        try:
            result = _extended(source, base, listing)
        except (SnapshotNotFoundError, CorruptTableError) as error:
            # A version may have expired since the listing.
            if not left or (isinstance(error, CorruptTableError) and not _has_expired(table_format, listing)):
                raise
            continue
        if result is base or _is_unchanged(table_format, result, base, listing):
            return result.with_gaps(listing.gaps(result.versions))
    raise SnapshotNotFoundError(
        f"Versions expired, or history was rewritten, during each of {_TRIES} reads. "
        "Try again when the table changes less."
    )


def despite_expiry(table_format: TableFormat, read: Callable[[Listing], T]) -> T:
    """Return what is read of the versions of a new listing. Reads again if versions expired meanwhile."""
    listing = table_format.listing(0)
    left = _TRIES
    while True:
        try:
            return read(listing)
        except (SnapshotNotFoundError, CorruptTableError):
            left -= 1
            if not left or not _has_expired(table_format, listing):
                raise
            listing = table_format.listing(0)


def _has_expired(table_format: TableFormat, listing: Listing) -> bool:
    """Return whether versions of a listing have expired since. One listing."""
    return not frozenset(listing.reachable).issubset(table_format.listing(0).reachable)


def _listing(table_format: TableFormat) -> Listing:
    """Return a listing of all versions. Where requests take long, the newest commits are read at the same time."""
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
    if result is not kept and result.versions:
        save(file, result)
    return result


def fingerprint_of(table_format: TableFormat, version: int) -> str:
    """Return a fingerprint of a commit, which differs for other commits of its version."""
    commit = table_format.commit_details([version])
    return blake2b(repr(commit.to_pylist()).encode(), digest_size=16).hexdigest()


def time_of(table_format: TableFormat, version: int) -> datetime | None:
    """Return the commit time of a version; None if unknown, for example if only a checkpoint is left, or it expired."""
    try:
        return table_format.committed_at([version])[0]
    except (CorruptTableError, SnapshotNotFoundError) as error:
        log.debug("no time: %s", error)
        return None


def states_of(listing: Listing) -> list[int]:
    """Return the versions of a listing with known files, ascending."""
    return sorted(set(listing.reachable).difference(listing.stateless))


def _continues(table_format: TableFormat, known: FileLifetimes, listing: Listing) -> bool:
    states = states_of(listing)
    if not states or not known.versions or states[-1] < known.versions[-1]:
        return False
    newest = known.versions[-1]
    if any(version < newest for version in set(states).difference(known.versions)):
        return False  # an outdated listing did not contain them when the others were read
    if newest in states:
        return repr(listing.identity) == known.identity or fingerprint_of(table_format, newest) == known.fingerprint
    # The newest known version has expired. One that still exists, such as a tag's, must be the same.
    both = max(set(states).intersection(known.versions), default=None)
    return both is not None and time_of(table_format, both) == known.time_of(both)


def _extended(source: FileSource, base: FileLifetimes, listing: Listing) -> FileLifetimes:
    """Return lifetimes that include the newer versions of a listing."""
    newest = base.versions[-1] if base.versions else None
    result = base
    unknown = [version for version in states_of(listing) if newest is None or version > newest]
    with step("Reading the changes of versions", total=len(unknown)) as reading:
        for run in listing.runs(unknown, listing.commitless):
            rest, read = run, None
            if (
                not result.versions
                or listing.predecessor(run[0]) != result.versions[-1]
                or run[0] in listing.commitless
            ):
                result, rest, read = _with_first_state_and_changes(source, result, run, listing.commitless)
                reading.advance(len(run) - len(rest))
            result = _with_later_changes(source, result, rest, reading, read)
    if unknown and not result.versions:
        raise SnapshotNotFoundError("All versions expired while their files were read. Try again.")
    if result is base:
        return base
    return result.with_fingerprint(repr(listing.identity), fingerprint_of(source.format, result.versions[-1]))


class _Changes(NamedTuple):
    """The changes of versions, and when each was committed."""

    versions: Sequence[int]
    times: Sequence[datetime]
    changes: pa.Table


def _changes(source: FileSource, versions: Sequence[int]) -> _Changes:
    times = source.format.committed_at(versions)
    return _Changes(versions, times, source.changes(versions))


def _with_first_state_and_changes(
    source: FileSource, base: FileLifetimes, run: Sequence[int], commitless: Collection[int]
) -> tuple[FileLifetimes, Sequence[int], _Changes | None]:
    """Return what `_with_first_state` returns, and the changes of the next versions if both are read at once."""
    later = run[1 : 1 + FIRST_COMMITS]
    if not later:
        return *_with_first_state(source, base, run, commitless), None

    def changes() -> _Changes | SnapshotExplorerError:
        try:
            return _changes(source, later)
        except SnapshotExplorerError as error:
            return error

    read, (result, rest) = source.format.storage.together(
        changes, lambda: _with_first_state(source, base, run, commitless)
    )
    if rest[: len(later)] != later:
        return result, rest, None  # the first state is that of a later version
    if isinstance(read, SnapshotExplorerError):
        raise read
    return result, rest, read


def _with_later_changes(
    source: FileSource, lifetimes: FileLifetimes, rest: Sequence[int], reading: Step, read: _Changes | None
) -> FileLifetimes:
    """Return lifetimes extended by the versions after the known ones, from their changes."""
    number = FIRST_COMMITS
    while rest:
        batch, rest = rest[:number], rest[number:]
        _, times, changes = _changes(source, batch) if read is None else read
        read = None
        lifetimes = lifetimes.extended(batch, times, changes)
        reading.advance(len(batch))
        # Each step also takes time for the live files. With this many changes, it is small in proportion.
        count = max(COMMITS_AT_ONCE, len(lifetimes)) * len(batch) // max(1, len(changes))
        number = min(max(1, count), _FASTER * len(batch))
    return lifetimes


def _with_first_state(
    source: FileSource, base: FileLifetimes, run: Sequence[int], commitless: Collection[int]
) -> tuple[FileLifetimes, Sequence[int]]:
    """Return lifetimes extended by the first version with known files of a run, and the versions after it."""
    for index, version in enumerate(run):
        try:
            files = source.files(version)
        except SnapshotNotFoundError as error:
            log.debug("left out: %s", error)
            continue
        # Stored lifetimes would keep an unknown time, so a damaged commit is an error.
        time = time_of(source.format, version) if version in commitless else source.format.committed_at([version])[0]
        return base.with_state(version, time, files), run[index + 1 :]
    return base, ()


def _is_unchanged(table_format: TableFormat, lifetimes: FileLifetimes, base: FileLifetimes, listing: Listing) -> bool:
    """Return whether exactly the versions that were read still exist, and the newest is still the same."""
    again = table_format.listing(0)
    existing = set(states_of(again))
    if not set(lifetimes.versions).difference(base.versions) <= existing:
        return False
    if existing.intersection(states_of(listing)).difference(lifetimes.versions):
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
            f"cache_dir={str(cache_dir)!r} is in the table's own folder, where nothing is ever written. "
            "Choose a folder outside the table."
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
        return _parsed(content, title)
    except (pa.ArrowException, ValueError, IndexError, KeyError, OSError, UnicodeDecodeError) as error:
        log.warning("%s contains no valid lifetimes (%s). Reading them again.", file.name, error)
        return None


def save(file: Path, lifetimes: FileLifetimes) -> None:
    """Write lifetimes to a file, atomically: a concurrent reader sees the old or the new file."""
    content = _serialized(lifetimes)
    try:
        make_folder(file.parent)
        with output_file(file) as out:
            out.write(content)
    except OSError as error:
        raise StorageError(
            f"The lifetimes could not be written to {file.parent}: {error.strerror}. "
            "Choose a writable cache_dir, or leave it out."
        ) from error


def _serialized(lifetimes: FileLifetimes) -> bytes:
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


def _parsed(content: bytes, title: str) -> FileLifetimes:
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
