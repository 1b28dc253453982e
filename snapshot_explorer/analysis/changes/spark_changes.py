"""Row changes for Spark: planned on the driver commit by commit, and read on executors in one schema for the stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.changes.commit_changes import plan_commit, row_columns
from snapshot_explorer.analysis.changes.new_commits import check_position, commits_after, naming_ways_on
from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns, align_columns
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import CHANGE_COLUMNS
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_batch
from snapshot_explorer.engines.spark.tasks import OPEN_BYTES, TARGET_BYTES, pack_splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snapshot_explorer.analysis.changes.commit_changes import CommitChanges
    from snapshot_explorer.analysis.changes.new_commits import NewCommit
    from snapshot_explorer.analysis.changes.position import ChangePosition
    from snapshot_explorer.analysis.diff.diff_plan import DiffRequest
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkChanges:
    """What all commits of a stream share. Picklable. It contains the storage with its options, so it has no repr."""

    reference: TableVersion
    """The version whose schema the changes have: the newest one when the query started."""
    request: DiffRequest
    """The key, columns and condition, in the names of that schema."""

    def __repr__(self) -> str:
        return f"SparkChanges(schema={self.schema.names})"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the rows, in the order of the table."""
        return row_columns(self.reference, self.request)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, which may be null before they were added, and CHANGE_COLUMNS."""
        own = self.reference.arrow_schema
        return pa.schema([*(own.field(name).with_nullable(True) for name in self.names), *CHANGE_COLUMNS])  # noqa: FBT003 - pyarrow's


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTask:
    """The changes of a commit, or a part of them, that one task reads. Picklable."""

    changes: CommitChanges
    columns: AlignedColumns
    """The mapping of the columns of the commit's version to the stream's columns."""

    @property
    def size_bytes(self) -> int:
        """The bytes of the data files that are read, and at least the cost of opening one."""
        diff = self.changes.diff
        return OPEN_BYTES if diff is None else max(OPEN_BYTES, diff.a.size_bytes + diff.b.size_bytes)


def plan_changes(
    source: History, stream: SparkChanges, start: ChangePosition, end: ChangePosition, parallelism: int
) -> list[list[ChangeTask]]:
    """Return the tasks for the commits after a position up to another one. Opens no data file.

    A task has consecutive commits up to 128 MB; all rows of the first version are in tasks of their own.

    Raises:
        PositionError: The history does not continue from the start to the end.
        InvalidArgumentError: A commit has columns that the stream lacks.
    """
    commits = [item for item in commits_after(source, start) if end.version is not None and item.version <= end.version]
    tasks = [task for commit in commits for task in _tasks(source, stream, commit, parallelism)]
    check_position(source.relisted(), end)
    first, rest = ([task for task in tasks if (task.changes.diff is None) is is_first] for is_first in (True, False))
    return [*([task] for task in first), *pack(rest, lambda task: task.size_bytes, target=TARGET_BYTES)]


def _tasks(source: History, stream: SparkChanges, commit: NewCommit, parallelism: int) -> Iterator[ChangeTask]:
    columns = _columns(source, stream, commit.version)
    key = stream.request.key
    own = replace(
        stream.request,
        key=None if key is None else columns.names_in([key] if isinstance(key, str) else key, of_a=True),
        columns=None if stream.request.columns is None else columns.names_in(stream.request.columns, of_a=True),
    )
    with source.table_format.storage.keeping_immutable(), naming_ways_on(source, commit):
        changes = plan_commit(source, commit, own)
    if changes.diff is not None:
        if not changes.is_empty:
            yield ChangeTask(changes=changes, columns=columns)
        return
    for splits in pack_splits(changes.splits, parallelism, changes.version.split_by_file):
        yield ChangeTask(changes=replace(changes, splits=tuple(splits)), columns=columns)


def _columns(source: History, stream: SparkChanges, number: int) -> AlignedColumns:
    version, names, reference = source.table_format.version(number), stream.names, stream.reference
    columns = align_columns(version, reference, names)
    is_newer = reference.number is None or number > reference.number
    unknown = columns.only_a if is_newer and stream.request.columns is None else ()
    own = reference.arrow_schema
    other = [name for name in names if columns.schema.field(name).type != own.field(name).type]
    if unknown or other:
        name = (*unknown, *other)[0]
        raise InvalidArgumentError(
            f"The schema of the table differs from that of the stream: the column {name!r} was added or has another "
            f"type at version {number}. Start the query again, with the same checkpoint: it then has the newest schema."
        )
    return columns


def read_tasks(stream: SparkChanges, tasks: Sequence[ChangeTask]) -> Iterator[pa.RecordBatch]:
    """Yield the changes of tasks for Spark. Runs on executors."""
    names, schema = stream.names, arrow_schema(stream.schema)
    for task in tasks:
        for batch in task.changes.batches():
            rows = task.columns.rows(batch, names, of_a=True)
            yield spark_batch([*rows.columns, *(batch.column(name) for name in CHANGE_COLUMNS.names)], schema)
