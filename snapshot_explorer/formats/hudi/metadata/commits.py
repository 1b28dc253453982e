"""The metadata of a completed write: the files that it wrote and the file groups that it replaced.

Source: hudi HoodieCommitMetadata, HoodieReplaceCommitMetadata, HoodieWriteStat.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core.errors import CorruptTableError, LimitError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.avro.container import Shape
from snapshot_explorer.formats.hudi.metadata.avro_commits import STATS, read_avro_commits
from snapshot_explorer.formats.hudi.metadata.avro_records import is_avro, read_record

_SCALARS = frozenset((str, int, float, bool))
_MAX_INTEGER = 2**63
_MANY = 1_000
"""The number of write stats that are converted into columns at a time: Python values take much more memory."""
_RECORDED = pa.schema(
    [
        ("partition", pa.string()),
        ("fileId", pa.string()),
        ("path", pa.string()),
        *((name, pa.int64()) for name in ("fileSizeInBytes", "numWrites", "numInserts", "numUpdateWrites")),
        ("numDeletes", pa.int64()),
        ("prevCommit", pa.string()),
        ("cdcStats", pa.map_(pa.string(), pa.int64())),
    ]
)
"""The partition of a write stat, and the fields that are read."""
_FIELDS = tuple(_RECORDED.names[1:])
WRITTEN = pa.schema(
    [
        ("version", pa.int64()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("rows", pa.int64()),
        ("inserts", pa.int64()),
        ("updates", pa.int64()),
        ("deletes", pa.int64()),
        ("previous", pa.string()),
        ("is_log", pa.bool_()),
        ("change_files", pa.map_(pa.string(), pa.int64())),
    ]
)
"""The files that commits wrote: the commit; the path of the partition, empty without partitions; the file group; the
path and the size of the file; the rows of a base file, or the records that were added to a log file; the rows that
were inserted, updated and deleted; the instant of the group's previous base file, null if the commit began the group;
whether it is a log file; the files with change data, with their sizes."""
RecordedStat = tuple[Any, ...]
"""The values of a write stat in the order of _RECORDED."""


class WriteStats:
    """The write stats of commits that were read together, in one sequence. Converted to columns on first use."""

    def __init__(self, recorded: pa.RecordBatch | None = None) -> None:
        self._recorded = recorded
        self.rows: list[RecordedStat] = []
        """The write stats of commits that were read one by one."""

    def extend(self, stats: Sequence[RecordedStat]) -> tuple[int, int]:
        """Add the write stats of a commit. Return their start and end index."""
        start = len(self.rows)
        self.rows += stats
        return start, len(self.rows)

    def convert_rows(self) -> None:
        """Convert the rows into columns."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(_RECORDED)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _RECORDED, strict=True)]
        self._recorded, self.rows = pa.RecordBatch.from_arrays(arrays, schema=_RECORDED), []

    @cached_property
    def columns(self) -> pa.RecordBatch:
        """The columns of WRITTEN but the version."""
        if self._recorded is None:
            self.convert_rows()
        columns = _written_columns(self._recorded)
        self._recorded = None
        return columns


class CommitMetadata(NamedTuple):
    """The metadata of a completed write."""

    replaced: Mapping[str, tuple[str, ...]]
    """The file groups that it replaced, by partition."""
    operation: str | None
    """The writer's operation, such as UPSERT."""
    extra: Mapping[str, str]
    """Additional metadata of the writer, such as the schema."""
    is_compaction: bool
    """Whether it compacted log files."""
    recorded: Mapping[str, Any]
    """All recorded fields except the write stats."""
    stats: WriteStats
    """The write stats of this and other commits."""
    start: int = 0
    """The index of this commit's first write stat."""
    end: int = 0
    is_empty: bool = False
    """Whether nothing was recorded. Such a commit wrote no files, but its operation is unknown."""

    @property
    def schema(self) -> str | None:
        """The Avro schema of the table; None if it is not recorded."""
        return self.extra.get("schema") or None

    @property
    def is_service(self) -> bool:
        """Whether it only rearranged rows."""
        return self.is_compaction or self.operation in ("COMPACT", "LOG_COMPACT", "CLUSTER")


def written_files(commits: Mapping[int, CommitMetadata]) -> pa.Table:
    """Return the files that commits wrote, in order: WRITTEN."""
    parts: list[tuple[WriteStats, int, int]] = []
    for commit in commits.values():
        if parts and parts[-1][0] is commit.stats and parts[-1][2] == commit.start:
            parts[-1] = (commit.stats, parts[-1][1], commit.end)
        else:
            parts.append((commit.stats, commit.start, commit.end))
    batches = [stats.columns.slice(start, end - start) for stats, start, end in parts]
    counts = np.array([commit.end - commit.start for commit in commits.values()], np.int64)
    versions = np.repeat(np.fromiter(commits, np.int64, len(commits)), counts)
    table = pa.Table.from_batches(batches, pa.schema(list(WRITTEN)[1:]))
    return table.add_column(0, WRITTEN.field(0), from_numpy(versions))


class ChangeDataFile(NamedTuple):
    """A file with change data."""

    version: int
    partition: str
    file_id: str
    path: str
    """The file, relative to the table's root."""
    size_bytes: int


def change_data(commits: Mapping[int, CommitMetadata]) -> Iterator[ChangeDataFile]:
    """Yield the files with change data that commits wrote, in order."""
    stats = written_files(commits).select(["version", "partition", "file_id", "change_files"])
    for row in stats.filter(stats.column("change_files").is_valid()).to_pylist():
        for path, size_bytes in row["change_files"]:
            name = path.rpartition("/")[2]
            path_in_table = f"{row['partition']}/{name}" if row["partition"] else name
            yield ChangeDataFile(row["version"], row["partition"], row["file_id"], path_in_table, size_bytes)


def read_raw(content: bytes, path: str, shapes: dict[bytes, Shape], limits: Limits) -> Mapping[str, Any]:
    """Return all fields in a completed file of the timeline: JSON, Avro, or empty."""
    if not content.strip():
        return {}
    return read_record(content, path, shapes, limits) if is_avro(content) else _document(content, path, limits)


def _document(content: bytes, path: str, limits: Limits) -> Mapping[str, Any]:
    try:
        raw = json_text.document(content, path, limits)
    except LimitError:
        raise
    except ValueError as error:
        raise _damaged_error(path, str(error)) from error
    if not isinstance(raw, Mapping):
        raise _damaged_error(path, "it is not a record")
    return raw


def read_commits(
    contents: Mapping[str, bytes | Mapping[str, Any] | None],
    shapes: dict[bytes, Shape],
    limits: Limits,
    refused: dict[str, str],
) -> dict[str, CommitMetadata]:
    """Return the metadata of commits by path.

    Args:
        contents: By path, a file that is JSON, Avro, or empty, or the record of an archive.
        refused: The error of each file that is too large. A file that raises the error now is added.
    """
    commits: dict[str, CommitMetadata] = {}
    files = {path: content for path, content in contents.items() if isinstance(content, bytes)}
    for read in read_avro_commits(files, _RECORDED, shapes, limits):
        stats = WriteStats(read.stats)
        distinct = {id(recorded): recorded for recorded in read.recorded}
        alike = {key: _commit(recorded, stats) for key, recorded in distinct.items()}
        for path, recorded, (start, end) in zip(read.paths, read.recorded, pairwise(read.bounds), strict=True):
            commits[path] = alike[id(recorded)]._replace(start=start, end=end)
    stats = WriteStats()
    for path, content in contents.items():
        if path in commits:
            continue
        try:
            rows, recorded, is_empty = _read_commit(content, path, shapes, limits)
        except LimitError as error:
            refused[path] = str(error)
            raise
        with _translated(path):
            start, end = stats.extend([row for row in rows if row is not None])
            commits[path] = _commit(recorded, stats)._replace(start=start, end=end, is_empty=is_empty)
        if len(stats.rows) >= _MANY:
            stats.convert_rows()
            stats = WriteStats()
    return commits


def _read_commit(
    content: bytes | Mapping[str, Any] | None, path: str, shapes: dict[bytes, Shape], limits: Limits
) -> tuple[Sequence[RecordedStat | None], Mapping[str, Any], bool]:
    """Return the write stats of a commit, its other fields, and whether nothing is recorded."""
    raw = content or {}
    if isinstance(raw, bytes):
        raw = read_raw(raw, path, shapes, limits)
    with _translated(path):
        stats = [_stat(str(partition), stat) for partition, stats in (raw.get(STATS) or {}).items() for stat in stats]
    return stats, {name: value for name, value in raw.items() if name != STATS}, not raw


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise _damaged_error(path, f"{type(error).__name__}: {error}") from error


def _commit(recorded: Mapping[str, Any], stats: WriteStats) -> CommitMetadata:
    operation = recorded.get("operationType")
    return CommitMetadata(
        replaced={
            str(partition): tuple(map(str, ids))
            for partition, ids in (recorded.get("partitionToReplaceFileIds") or {}).items()
        },
        operation=None if operation in (None, "", "UNKNOWN") else str(operation),
        extra={str(name): str(value) for name, value in (recorded.get("extraMetadata") or {}).items()},
        is_compaction=recorded.get("compacted") is True,
        recorded=recorded,
        stats=stats,
    )


def _written_columns(recorded: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of WRITTEN but the version, from write stats that name files."""
    partition, file_id, path, size_bytes, rows, inserts, updates, deletes, previous, change_files = recorded.columns
    # Old writers record absolute paths. The partition and the name are always right.
    parts = pc.split_pattern(path, pattern="/", max_splits=1, reverse=True)
    names = parts.values.take(pc.subtract(parts.offsets.slice(1), 1)) if len(path) else path
    columns = [
        partition,
        pc.fill_null(file_id, "None"),
        pc.if_else(pc.equal(partition, ""), names, pc.binary_join_element_wise(partition, names, "/")),
        pc.if_else(pc.equal(size_bytes, 0), pa.scalar(None, pa.int64()), size_bytes),
        rows,
        *(pc.fill_null(counts, 0) for counts in (inserts, updates, deletes)),
        pc.if_else(pc.is_in(previous, value_set=pa.array(["", "null"])), pa.scalar(None, pa.string()), previous),
        pc.starts_with(names, "."),
        change_files,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(WRITTEN)[1:]))


def _stat(partition: str, stat: Mapping[str, Any]) -> RecordedStat | None:
    """Return a write stat from its record; None if it names no file."""
    path = stat.get("path")
    if not path:
        return None
    previous = stat.get("prevCommit")
    return (
        partition,
        str(stat["fileId"]),
        str(path),
        *(None if (number := stat.get(name)) is None else _integer(number) for name in _FIELDS[2:7]),
        None if previous is None else str(previous),
        [(str(file), _integer(size)) for file, size in (stat.get("cdcStats") or {}).items()] or None,
    )


def _integer(value: Any) -> int:
    number = int(value)
    if not -_MAX_INTEGER <= number < _MAX_INTEGER:
        raise ValueError(f"{number} is not a long")
    return number


def _damaged_error(path: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} cannot be read as the metadata of a commit: {reason}. It is damaged; compare it with a copy of the "
        "table."
    )


def details(raw: Mapping[str, Any]) -> str | None:
    """Return all recorded metadata of an instant as JSON text; None if its file is empty."""
    return json_text.dumps(_jsonable(raw)) if raw else None


def _jsonable(value: object, levels: int = json_text.WRITTEN_LEVELS) -> object:
    if not levels and isinstance(value, Mapping | list):
        return "..."
    if isinstance(value, Mapping):
        # Absent fields of Avro records are null: they are left out.
        return {
            str(name): part if type(part) in _SCALARS else _jsonable(part, levels - 1)
            for name, part in value.items()
            if part is not None
        }
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_jsonable(part, levels - 1) for part in value]
    return value
