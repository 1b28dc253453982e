"""Lifetimes on disk: one file per table in a folder of the user, never in the table.

A file consists of magic bytes, a checksum, and two Arrow IPC streams: the versions of the table, and the intervals. A
file that is not valid to the last bit is ignored, and written again.
"""

import os
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import InvalidArgumentError, StorageError
from snapshot_explorer.lifetimes.index import FileLifetimes
from snapshot_explorer.lifetimes.intervals import INTERVALS, OPEN, Intervals
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

_KIND = b"snapshot_explorer lifetimes 1\n"
_CHECKSUM = 32
_VERSIONS = pa.schema([pa.field("version", pa.int64(), nullable=False), pa.field("committed_at", frames.UTC_MILLIS)])
_FOLDERS = pa.schema([pa.field("folder", pa.string(), nullable=False)])
_PARTITIONS = pa.schema([pa.field("partition", frames.PARTITION)])


def file_of(cache_dir: str | os.PathLike[str], table: Sequence[str | None]) -> Path:
    """Return the path of the file for the lifetimes of a table.

    Args:
        table: The identity of the table, its location first.
    """
    try:
        folder = Path(cache_dir).expanduser().resolve()
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"cache_dir must be the path of a folder, got {cache_dir!r}.") from error
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
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(content)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
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
