"""The metadata of a completed write: the files that it wrote and the file groups that it replaced.

Source: hudi HoodieCommitMetadata, HoodieReplaceCommitMetadata, HoodieWriteStat.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from snapshot_explorer.errors import CorruptTableError, LimitError, SnapshotExplorerError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.avro.container import Shape, TruncatedError, read_container
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS
from snapshot_explorer.formats.hudi.metadata.avro_batches import read_avro_commits
from snapshot_explorer.formats.hudi.metadata.avro_commits import (
    STATS,
    LengthError,
    StatReader,
    number_of,
    read_avro_commit,
    text_of,
)
from snapshot_explorer.formats.hudi.metadata.avro_records import is_avro, only_record, read_record
from snapshot_explorer.limits import Limits

_SCALARS = frozenset((str, int, float, bool))
_STAT_FIELDS = [
    pa.field("fileId", pa.string()),
    pa.field("path", pa.string()),
    *(
        pa.field(name, pa.int64())
        for name in ("fileSizeInBytes", "numWrites", "numInserts", "numUpdateWrites", "numDeletes")
    ),
    pa.field("prevCommit", pa.string()),
    pa.field("cdcStats", pa.map_(pa.string(), pa.int64())),
]
"""The fields of a write stat that are read."""
_NO_FILES: Mapping[str, int] = {}


class WriteStat(NamedTuple):
    """A file that a commit wrote."""

    partition: str
    """The path of the partition; empty for a table without partitions."""
    file_id: str
    path: str
    """The file, relative to the table's root."""
    size_bytes: int | None
    """The size of the file then."""
    rows: int | None
    """Rows of a base file, or records that were added to a log file."""
    inserts: int
    """Rows that were inserted."""
    updates: int
    """Rows that were updated."""
    deletes: int
    """Rows that were deleted."""
    previous: str | None
    """The instant of the file group's previous base file; None if the commit began the group."""
    is_log: bool
    change_files: Mapping[str, int]
    """Files with change data of the commit, with their sizes."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """The metadata of a completed write."""

    stats: tuple[WriteStat, ...]
    """The files that it wrote, in order."""
    replaced: Mapping[str, tuple[str, ...]]
    """The file groups that it replaced, by partition."""
    operation: str | None
    """The writer's operation, such as UPSERT."""
    extra: Mapping[str, str]
    """What the writer recorded beside, such as the schema."""
    is_compaction: bool
    """Whether it compacted log files."""
    is_empty: bool
    """Whether nothing was recorded. Such a commit wrote no files, but what it was is unknown."""
    recorded: Mapping[str, Any]
    """Everything that was recorded but the write stats."""

    @property
    def schema(self) -> str | None:
        """The Avro schema of the table; None if it is not recorded."""
        return self.extra.get("schema") or None

    @property
    def is_service(self) -> bool:
        """Whether it only rearranged rows."""
        return self.is_compaction or self.operation in ("COMPACT", "LOG_COMPACT", "CLUSTER")


def read_raw(content: bytes, path: str, shapes: dict[bytes, Shape], limits: Limits) -> Mapping[str, Any]:
    """Return everything in a completed file of the timeline: JSON, Avro, or empty."""
    if not content.strip():
        return {}
    return read_record(content, path, shapes, limits) if is_avro(content) else _document(content, path, limits)


def _document(content: bytes, path: str, limits: Limits) -> Mapping[str, Any]:
    try:
        raw = json_text.document(content, path, limits)
    except LimitError:
        raise
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(raw, Mapping):
        raise _damaged(path, "it is not a record")
    return raw


def read_commit(content: bytes, path: str, shapes: dict[bytes, Shape], limits: Limits) -> CommitMetadata:
    """Return the metadata of a commit from its file: JSON, Avro, or empty."""
    if not is_avro(content):
        return parse_commit(read_raw(content, path, shapes, limits), path)
    container = read_container(content, path, shapes, limits=limits)
    try:
        read = read_avro_commit(container, _STATS)
    except (*FOREIGN_ERRORS, TruncatedError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    if read is None:
        return parse_commit(only_record(container), path)
    with _translated(path):
        return _commit(*read)


def read_commits(
    contents: Sequence[bytes], paths: Sequence[str], shapes: dict[bytes, Shape], limits: Limits
) -> dict[str, CommitMetadata]:
    """Return the metadata of commits by path, of those that can be read together: Avro files, if there are many."""
    containers = []
    for content, path in zip(contents, paths, strict=True):
        if is_avro(content):
            try:
                containers.append(read_container(content, path, shapes, limits=limits))
            except SnapshotExplorerError:
                continue  # raised where it is read alone
    return {
        container.path: _commit([_write_stat(*stat) for stat in commit.stats], commit.recorded)
        for container, commit in read_avro_commits(containers, _STAT_FIELDS)
    }


def parse_commit(raw: Mapping[str, Any], path: str) -> CommitMetadata:
    """Return the metadata of a commit from its record."""
    with _translated(path):
        stats = [_stat(str(partition), stat) for partition, stats in (raw.get(STATS) or {}).items() for stat in stats]
        return _commit(stats, {name: value for name, value in raw.items() if name != STATS}, is_empty=not raw)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _commit(
    stats: Sequence[WriteStat | None], recorded: Mapping[str, Any], *, is_empty: bool = False
) -> CommitMetadata:
    operation = recorded.get("operationType")
    return CommitMetadata(
        stats=tuple(stat for stat in stats if stat is not None),
        replaced={
            str(partition): tuple(map(str, ids))
            for partition, ids in (recorded.get("partitionToReplaceFileIds") or {}).items()
        },
        operation=None if operation in (None, "", "UNKNOWN") else str(operation),
        extra={str(name): str(value) for name, value in (recorded.get("extraMetadata") or {}).items()},
        is_compaction=recorded.get("compacted") is True,
        is_empty=is_empty,
        recorded=recorded,
    )


def _stat(partition: str, stat: Mapping[str, Any]) -> WriteStat | None:
    """Return a write stat from its record; None if it names no file."""
    path = stat.get("path")
    if not path:
        return None
    size, rows, previous = stat.get("fileSizeInBytes"), stat.get("numWrites"), stat.get("prevCommit")
    return _write_stat(
        partition,
        str(stat["fileId"]),
        str(path),
        int(size) if size else None,
        None if rows is None else int(rows),
        _count(stat, "numInserts"),
        _count(stat, "numUpdateWrites"),
        _count(stat, "numDeletes"),
        None if previous is None else str(previous),
        [(str(file), int(size)) for file, size in (stat.get("cdcStats") or {}).items()],
    )


def _write_stat(  # noqa: PLR0913, PLR0917 - the fields of a record, in order
    partition: str,
    file_id: str | None,
    path: str | None,
    size_bytes: int | None,
    rows: int | None,
    inserts: int | None,
    updates: int | None,
    deletes: int | None,
    previous: str | None,
    change_files: Sequence[tuple[str, int]] | None,
) -> WriteStat | None:
    """Return a write stat from the values of its fields; None if it names no file."""
    if not path:
        return None
    # Old writers record absolute paths. The partition and the name are always right.
    name = path.rpartition("/")[2]
    return WriteStat(
        partition,
        str(file_id),
        f"{partition}/{name}" if partition else name,
        size_bytes or None,
        rows,
        inserts or 0,
        updates or 0,
        deletes or 0,
        None if previous in ("", "null") else previous,
        ".log." in name,
        dict(change_files) if change_files else _NO_FILES,
    )


def _encoded_stat(partition: str, values: tuple[bytes | None, ...]) -> WriteStat | None:
    """Return a write stat from its encoded fields, as `_stat` does from a record."""
    file_id, path, size, rows, inserts, updates, deletes, previous, _ = values
    if path is None or file_id is None:
        raise LengthError  # unexpected: `_stat` decides
    return _write_stat(
        partition,
        text_of(file_id),
        text_of(path),
        None if size is None else number_of(size),
        None if rows is None else number_of(rows),
        None if inserts is None else number_of(inserts),
        None if updates is None else number_of(updates),
        None if deletes is None else number_of(deletes),
        None if previous is None else text_of(previous),
        None,
    )


_STATS = StatReader(
    fields=tuple(field.name for field in _STAT_FIELDS),
    of_values=_encoded_stat,
    of_record=_stat,
)


def _count(stat: Mapping[str, Any], name: str) -> int:
    return int(stat.get(name) or 0)


def _damaged(path: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} cannot be read as the metadata of a commit: {reason}. It is damaged; compare it with a copy of the "
        "table."
    )


def details(raw: Mapping[str, Any]) -> str | None:
    """Return everything that was recorded about an instant as JSON text; None if its file is empty."""
    return orjson.dumps(_jsonable(raw)).decode() if raw else None


def commit_details(commit: CommitMetadata) -> str | None:
    """Return what was recorded about a commit, and of its write stats the sums, as JSON text; None if it is empty."""
    if commit.is_empty:
        return None
    stats = commit.stats
    counted = {
        "numWrites": sum(stat.rows or 0 for stat in stats),
        "numInserts": sum(stat.inserts for stat in stats),
        "numUpdateWrites": sum(stat.updates for stat in stats),
        "numDeletes": sum(stat.deletes for stat in stats),
    }
    return details({"operationMetrics": counted, **commit.recorded} if stats else commit.recorded)


def _jsonable(value: object) -> object:
    if isinstance(value, Mapping):
        # Absent fields of Avro records are null: they say nothing.
        return {
            str(name): part if type(part) in _SCALARS else _jsonable(part)
            for name, part in value.items()
            if part is not None
        }
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_jsonable(part) for part in value]
    return value
