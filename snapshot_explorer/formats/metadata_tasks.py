"""Metadata tasks: parts of a table's metadata that can be read independently, for example on executors.

A task is a picklable record of a format. Reading it returns RECORDS; a result over many tasks, such as the live files,
is computed from the RECORDS of all of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Listing

RECORDS = pa.schema(
    [
        *(field.remove_metadata() for field in frames.CHANGES),
        pa.field("added_version", pa.int64()),
        pa.field("committed_at", frames.UTC_MILLIS),
        pa.field("position", pa.int64()),
        pa.field("identity", pa.binary()),
        pa.field("rank", pa.int64()),
    ]
)
"""A row is a data file that was added or removed: CHANGES, and columns that order the records.

For a change, `version` is the commit, `committed_at` its time if requested, and `position` the order in it. For a
state, `version` is the version of the state and `added_version` the commit that added the file, if known. An add is
valid unless a remove of the same `identity` has a greater `rank`."""

PREFETCHED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("content", pa.binary(), nullable=False),
    ]
)
"""A row is a part of a version's file that must be read before the other tasks."""


class MetadataTask(Protocol):
    """A part of the metadata. Picklable."""

    @property
    def version(self) -> int:
        """The version of the state that it is a part of, or the first version whose changes it contains."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTasks:
    """The tasks whose RECORDS contain the live files of a version."""

    tasks: Sequence[MetadataTask]
    keeps_last_add: bool
    """Whether the last of several adds of the same file is valid if their ranks are equal."""


_COMMITS = 100
_TASKS = 32
"""The minimum number of tasks to create, unless tasks would have a single commit."""
_TASK_BYTES = 4 << 20
"""The target size of the manifests of a task."""

Prefetch = Callable[[Sequence[MetadataTask]], pa.Table]
"""Reads the PREFETCHED of tasks and returns all rows, in any order."""
TaskReader = Callable[[MetadataTask], Iterator[pa.Table]]
"""Yields the RECORDS of a task, or its PREFETCHED. Picklable."""


def of_changes(changes: pa.Table, committed_at: Mapping[int, datetime] | None = None) -> pa.Table:
    """Return the RECORDS of CHANGES, which contain whole commits in order.

    Args:
        changes: CHANGES.
        committed_at: The commit time of each version; None if not requested.
    """
    count = len(changes)
    times = pa.nulls(count, frames.UTC_MILLIS)
    if committed_at is not None:
        versions = pa.array(list(committed_at), pa.int64())
        indices = single_chunk(pc.index_in(changes.column("version"), versions))
        times = pa.array(list(committed_at.values()), frames.UTC_MILLIS).take(indices)
    more = {
        "added_version": changes.column("version"),
        "committed_at": times,
        "position": pa.array(np.arange(count)),
    }
    return _records(changes, more)


def of_state(files: pa.Table, version: int, *, change: pa.Array, identity: pa.Array, rank: pa.Array) -> pa.Table:
    """Return the RECORDS of FILES of the state of a version.

    Args:
        files: FILES, removed ones included.
        change: `add` or `remove`.
        identity: The identity of each file, binary.
        rank: The order of adds and removes.
    """
    count = len(files)
    more = {
        "version": pa.repeat(pa.scalar(version, pa.int64()), count),
        "change": change,
        "position": pa.array(np.arange(count)),
        "identity": identity,
        "rank": rank,
    }
    return _records(files, more)


def of_live_files(files: pa.Table, version: int) -> pa.Table:
    """Return the RECORDS of a version's live FILES, whose paths are distinct."""
    return of_state(
        files,
        version,
        change=pa.repeat("add", len(files)),
        identity=single_chunk(files.column("path")).cast(pa.binary()),
        rank=pa.repeat(pa.scalar(0, pa.int64()), len(files)),
    )


def _records(files: pa.Table, more: dict[str, pa.Array]) -> pa.Table:
    columns = {name: files.column(name) for name in files.column_names} | more
    count = len(files)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in RECORDS]
    return pa.table(arrays, schema=RECORDS)


def contiguous_runs(versions: Sequence[int]) -> list[Sequence[int]]:
    """Return runs of consecutive versions, ascending."""
    return Listing(versions=tuple(versions), identity=()).runs(versions)


def commit_batches(versions: Sequence[int]) -> list[Sequence[int]]:
    """Return runs of consecutive versions, ascending, one per task. The sizes of the commits are unknown."""
    each = min(_COMMITS, max(2, len(versions) // _TASKS))
    return [run[begin : begin + each] for run in contiguous_runs(versions) for begin in range(0, len(run), each)]


def manifest_batches(sizes: pa.ChunkedArray) -> list[list[int]]:
    """Return the indices of the manifests of each task. A task reads consecutive manifests. A size may be null."""
    known = pc.fill_null(sizes, _TASK_BYTES).to_pylist()
    return list(pack(range(len(known)), known.__getitem__, target=_TASK_BYTES))
