"""The metadata of a completed write: the files that it wrote and the file groups that it replaced.

Source: hudi HoodieCommitMetadata, HoodieReplaceCommitMetadata, HoodieWriteStat.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from snapshot_explorer.errors import CorruptTableError, LimitError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.avro.container import Shape
from snapshot_explorer.formats.hudi.metadata.avro_records import is_avro, read_record
from snapshot_explorer.limits import Limits

_SCALARS = frozenset((str, int, float, bool))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStat:
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
    if is_avro(content):
        return read_record(content, path, shapes, limits)
    try:
        raw = json_text.document(content, path, limits)
    except LimitError:
        raise
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(raw, Mapping):
        raise _damaged(path, "it is not a record")
    return raw


def parse_commit(raw: Mapping[str, Any], path: str) -> CommitMetadata:
    """Return the metadata of a commit from its record."""
    try:
        operation = raw.get("operationType")
        return CommitMetadata(
            stats=tuple(_stats(raw)),
            replaced={
                str(partition): tuple(map(str, ids))
                for partition, ids in (raw.get("partitionToReplaceFileIds") or {}).items()
            },
            operation=None if operation in (None, "", "UNKNOWN") else str(operation),
            extra={str(name): str(value) for name, value in (raw.get("extraMetadata") or {}).items()},
            is_compaction=raw.get("compacted") is True,
            is_empty=not raw,
        )
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _stats(raw: Mapping[str, Any]) -> Iterator[WriteStat]:
    for partition, stats in (raw.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            path = stat.get("path")
            if path:
                yield _stat(str(partition), str(path), stat)


def _stat(partition: str, path: str, stat: Mapping[str, Any]) -> WriteStat:
    # Old writers record absolute paths. The partition and the name are always right.
    name = path.rpartition("/")[2]
    previous = stat.get("prevCommit")
    size = stat.get("fileSizeInBytes")
    rows = stat.get("numWrites")
    return WriteStat(
        partition=partition,
        file_id=str(stat["fileId"]),
        path=f"{partition}/{name}" if partition else name,
        size_bytes=int(size) if size else None,
        rows=None if rows is None else int(rows),
        inserts=_count(stat, "numInserts"),
        updates=_count(stat, "numUpdateWrites"),
        deletes=_count(stat, "numDeletes"),
        previous=None if previous in (None, "", "null") else str(previous),
        is_log=".log." in name,
        change_files={str(file): int(size) for file, size in (stat.get("cdcStats") or {}).items()},
    )


def _count(stat: Mapping[str, Any], name: str) -> int:
    return int(stat.get(name) or 0)


def _damaged(path: str, what: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} cannot be read as the metadata of a commit: {what}. It is damaged; compare it with a copy of the "
        "table."
    )


def details(raw: Mapping[str, Any]) -> str | None:
    """Return everything that was recorded about an instant as JSON text; None if its file is empty."""
    return orjson.dumps(_jsonable(raw)).decode() if raw else None


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
