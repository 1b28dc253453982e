"""Units: pieces of a table's metadata that are read apart from each other, each where there is room for it.

A unit is a picklable record of a format's own. What is read of it are RECORDS; what many units come to, such as which
files are live, is for whoever has the records of all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.model import Listing

RECORDS = pa.schema(
    [
        *(field.remove_metadata() for field in frames.CHANGES),
        pa.field("added_version", pa.int64()),
        pa.field("committed_at", frames.UTC_MILLIS),
        pa.field("place", pa.int64()),
        pa.field("identity", pa.binary()),
        pa.field("rank", pa.int64()),
    ]
)
"""A row is a data file that came or went: CHANGES and what puts records in order.

Of a change, `version` is the commit, `committed_at` its time where it was asked for, and `place` the order in it.
Of a state, `version` is the version of the state and `added_version` the commit that added the file, where known. An
add counts unless a remove of the same `identity` has a greater `rank`."""

PREFETCHED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("content", pa.binary(), nullable=False),
    ]
)
"""A row is a piece of a file of a version that is to be known before other units can be told."""


class MetadataTask(Protocol):
    """A piece of metadata. Picklable."""

    @property
    def version(self) -> int:
        """The version whose state it is a part of, or the first of those whose changes it tells."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTasks:
    """The units whose RECORDS give the live files of a version."""

    units: Sequence[MetadataTask]
    """The units."""
    keeps_last_add: bool
    """Whether the last of several adds of one file counts, where their ranks are equal."""


Prefetch = Callable[[Sequence[MetadataTask]], pa.Table]
"""Reads units that tell PREFETCHED, wherever that is quickest, and returns all of them, in no order."""
Reader = Callable[[MetadataTask], Iterator[pa.Table]]
"""Yields the RECORDS of a unit, or its PREFETCHED. Picklable."""


def of_changes(changes: pa.Table, committed_at: pa.Array | None = None) -> pa.Table:
    """Return the RECORDS of CHANGES, which hold whole commits in their order.

    Args:
        changes: CHANGES.
        committed_at: When the commit of each row was made; None if that is not asked for.
    """
    count = len(changes)
    more = {
        "added_version": changes.column("version"),
        "committed_at": pa.nulls(count, frames.UTC_MILLIS) if committed_at is None else committed_at,
        "place": pa.array(np.arange(count)),
    }
    return _records(changes, more)


def of_state(files: pa.Table, version: int, *, change: pa.Array, identity: pa.Array, rank: pa.Array) -> pa.Table:
    """Return the RECORDS of FILES that are told of the state of a version.

    Args:
        files: FILES, those that were removed included.
        version: The version.
        change: `add` or `remove`.
        identity: What the files are told apart by, binary.
        rank: When they came or went.
    """
    count = len(files)
    more = {
        "version": pa.repeat(pa.scalar(version, pa.int64()), count),
        "change": change,
        "place": pa.array(np.arange(count)),
        "identity": identity,
        "rank": rank,
    }
    return _records(files, more)


def _records(files: pa.Table, more: dict[str, pa.Array]) -> pa.Table:
    columns = {name: files.column(name) for name in files.column_names} | more
    count = len(files)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in RECORDS]
    return pa.table(arrays, schema=RECORDS)


def contiguous_runs(versions: Sequence[int]) -> list[Sequence[int]]:
    """Return versions, ascending, cut into runs of consecutive numbers."""
    return Listing(versions=tuple(versions), identity=()).runs(versions)
