"""Compute from the files and changes of versions when each data file was added and removed.

The key of a file is its path and level; in formats without levels (Delta), its path and deletion vector: replacing the
vector ends the interval of the file with the old one and begins another. In Paimon a deletion vector changes during the
interval of its file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import Codes, codes_of_maps, distinct_maps, group_ids, split_paths
from snapshot_explorer.core import frames
from snapshot_explorer.core.safe_text import logger_of

log = logger_of(__name__)

OPEN = np.iinfo(np.int32).max
"""The end of an open interval."""
INTERVALS = pa.schema(
    [
        pa.field("folder", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        *(
            frames.FILES.field(name).remove_metadata()
            for name in frames.FILES.names
            if name not in ("path", "partition")
        ),
        pa.field("first", pa.int32(), nullable=False),
        pa.field("last", pa.int32(), nullable=False),
    ]
)
"""One row per interval: FILES, with folder and partition as indices into tables of their own, and the half-open range
of version positions in which the file is live."""
FACTS = ("bucket", "rows", "size_bytes", "schema_id")
"""The columns that must be equal if a live file is added again; otherwise a new interval begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """When each data file was added and removed. Positions count the versions of an index, from 0."""

    rows: pa.Table
    """INTERVALS, in one chunk."""
    folders: pa.Array
    """The folders of the files, with a trailing slash."""
    partitions: pa.Array

    def paths(self, rows: pa.Table) -> pa.Array:
        """Return the paths of some of the intervals."""
        folders = self.folders.take(single_chunk(rows.column("folder")))
        return pc.binary_join_element_wise(folders, single_chunk(rows.column("name")), "")

    def partition(self, rows: pa.Table) -> pa.Array:
        """Return the partitions of some of the intervals."""
        return self.partitions.take(single_chunk(rows.column("partition")))


def no_intervals() -> Intervals:
    """Return an empty table of intervals."""
    return Intervals(
        rows=INTERVALS.empty_table(), folders=pa.array([], pa.string()), partitions=pa.array([], frames.PARTITION)
    )


def with_state(intervals: Intervals, files: pa.Table, position: int) -> Intervals:
    """Return the intervals after a version whose files are known, but not the changes of the commits up to it.

    A file that was live before and has equal attributes counts as never removed.
    """
    known = _open_intervals(intervals)
    codes = _identities([known.identity, _identity(files)])
    gone = known.identity.filter(pa.array(~np.isin(codes[: known.count], codes[known.count :])))
    removed = _Events.of(_as_files(gone), np.full(len(gone), position), adds=False)
    return _apply_events(intervals, [removed, _Events.of(files, np.full(len(files), position), adds=True)])


def with_changes(intervals: Intervals, changes: pa.Table, positions: npt.NDArray[np.int64]) -> Intervals:
    """Return the intervals after versions whose changes are known.

    Adding a live file changes nothing, unless its attributes differ: then a new interval begins. Removing a file that
    is not live changes nothing. A file that one commit adds and removes, in this order, was never live.

    Args:
        changes: CHANGES of data files of the versions, in the order of the versions.
    """
    adds = single_chunk(pc.equal(changes.column("change"), "add")).to_numpy(zero_copy_only=False)
    versions = changes.column("version")
    files = changes.select([name for name in frames.FILES.names if name != "added_version"])
    return _apply_events(
        intervals, [_Events(files.append_column(frames.FILES.field("added_version"), versions), positions, adds)]
    )


@dataclass(frozen=True, slots=True)
class _Events:
    """Adds and removes of files."""

    files: pa.Table
    """FILES."""
    positions: npt.NDArray[np.int64]
    """When."""
    adds: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, files: pa.Table, positions: npt.NDArray[np.int64], *, adds: bool) -> "_Events":
        return cls(files.select(frames.FILES.names), positions, np.full(len(files), adds))


@dataclass(frozen=True, slots=True)
class _OpenIntervals:
    indices: npt.NDArray[np.int64]
    """Their row numbers."""
    rows: pa.Table
    identity: pa.Table

    @property
    def count(self) -> int:
        return len(self.indices)


def _open_intervals(intervals: Intervals) -> _OpenIntervals:
    indices = np.flatnonzero(intervals.rows.column("last").to_numpy() == OPEN)
    rows = intervals.rows.take(pa.array(indices))
    named = rows.append_column("path", intervals.paths(rows))
    return _OpenIntervals(indices, rows, _identity(named))


def _identity(files: pa.Table) -> pa.Table:
    level = single_chunk(files.column("level"))
    vector = single_chunk(files.column("deletion_vector"))
    apart = pc.if_else(level.is_null(), vector, pa.scalar(None, pa.string()))
    return pa.table({"path": single_chunk(files.column("path")), "level": level, "vector": apart})


def _identities(parts: Sequence[pa.Table]) -> Codes:
    """Return a number per file, equal for equal keys."""
    return group_ids(pa.concat_tables(parts).columns)


def interval_identities(intervals: Intervals) -> Codes:
    """Return a number per interval, equal for equal keys."""
    level = single_chunk(intervals.rows.column("level"))
    vector = pc.if_else(
        level.is_null(), single_chunk(intervals.rows.column("deletion_vector")), pa.scalar(None, pa.string())
    )
    return group_ids([intervals.rows.column("folder"), intervals.rows.column("name"), level, vector])


def _as_files(identity: pa.Table) -> pa.Table:
    known = {"path": identity.column("path"), "level": identity.column("level")}
    known["deletion_vector"] = identity.column("vector")
    columns = [
        known[field.name] if field.name in known else pa.nulls(len(identity), field.type) for field in frames.FILES
    ]
    return pa.table(columns, schema=frames.FILES)


def _apply_events(intervals: Intervals, events: Sequence[_Events]) -> Intervals:
    known = _open_intervals(intervals)
    files = pa.concat_tables([event.files for event in events])
    if not len(files):
        return intervals
    adds = np.concatenate([np.ones(known.count, np.bool_), *(event.adds for event in events)])
    when = np.concatenate([np.full(known.count, -1), *(event.positions for event in events)]).astype(np.int64)
    codes = _identities([known.identity, _identity(files)])
    order = np.argsort(codes, kind="stable")
    facts = pa.concat_tables([known.rows.select(FACTS), files.select(FACTS)])
    opens, closes = _transitions(codes[order], adds[order], facts, order)
    ends = _ends(codes[order], when[order], opens, closes)
    begins_at = order[opens]
    is_old = begins_at < known.count
    last = intervals.rows.column("last").to_numpy().copy()
    last[known.indices[begins_at[is_old]]] = ends[is_old]
    lasting = ~is_old & (ends > when[begins_at])
    chosen = np.flatnonzero(lasting)[np.argsort(begins_at[lasting], kind="stable")]
    # If there are only adds, they all begin an interval, in order.
    new = files if len(chosen) == len(files) else files.take(pa.array(begins_at[chosen] - known.count))
    return _joined(intervals, last, new, when[begins_at[chosen]], ends[chosen])


def _transitions(
    codes: Codes, adds: npt.NDArray[np.bool_], facts: pa.Table, order: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which events begin an interval, and which end one. They are sorted by key, then by time."""
    follows = np.concatenate([[False], codes[1:] == codes[:-1]]) if len(codes) else np.zeros(0, np.bool_)
    alive = follows & np.concatenate([[False], adds[:-1]])
    again = np.flatnonzero(alive & adds)
    changed = np.zeros(len(codes), np.bool_)
    changed[again] = _differ(facts.take(pa.array(order[again - 1])), facts.take(pa.array(order[again])))
    orphans = int((~alive & ~adds).sum())
    if orphans:
        log.debug("%d removed files were not live", orphans)
    return np.flatnonzero(adds & (~alive | changed)), np.flatnonzero(alive & (~adds | changed))


def _differ(before: pa.Table, after: pa.Table) -> npt.NDArray[np.bool_]:
    different = np.zeros(len(before), np.bool_)
    for name in before.column_names:
        # Nulls are equal to each other.
        both = pa.concat_arrays([single_chunk(before.column(name)), single_chunk(after.column(name))])
        codes = group_ids([both])
        different |= codes[: len(before)] != codes[len(before) :]
    return different


def _ends(
    codes: Codes, when: npt.NDArray[np.int64], opens: npt.NDArray[np.int64], closes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Return the end of each interval: the next end event with the same key."""
    ends = np.full(len(opens), OPEN, np.int32)
    following = np.searchsorted(closes, opens, side="right")
    matched = np.flatnonzero(following < len(closes))
    matched = matched[codes[closes[following[matched]]] == codes[opens[matched]]]
    ends[matched] = when[closes[following[matched]]]
    return ends


def _joined(
    intervals: Intervals,
    last: npt.NDArray[np.int32],
    files: pa.Table,
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int32],
) -> Intervals:
    folders, names = split_paths(files.column("path"))
    all_folders, folder = _with_folders(intervals.folders, folders)
    partitions, partition = _with_partitions(intervals.partitions, files.column("partition"))
    columns = {name: files.column(name) for name in files.column_names} | {
        "folder": pa.array(folder, pa.int32()),
        "name": names,
        "partition": pa.array(partition, pa.int32()),
        "first": pa.array(begins, pa.int32()),
        "last": pa.array(ends),
    }
    new = pa.table([columns[name] for name in INTERVALS.names], schema=INTERVALS)
    updated_rows = intervals.rows.set_column(INTERVALS.get_field_index("last"), INTERVALS.field("last"), pa.array(last))
    return Intervals(
        rows=pa.concat_tables([updated_rows, new]).combine_chunks(), folders=all_folders, partitions=partitions
    )


def _with_folders(known: pa.Array, more: pa.Array) -> tuple[pa.Array, Codes]:
    """Return the distinct folders of both, the known ones first, and the index of each of the others."""
    encoded = pa.concat_arrays([known, more]).dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy()[len(known) :].astype(np.int64)


def _with_partitions(known: pa.Array, more: pa.ChunkedArray) -> tuple[pa.Array, Codes]:
    """Return the distinct partitions of both, the known ones first, and the index of each of the others."""
    distinct, indices = distinct_maps(more)
    every = pa.concat_arrays([known, distinct])
    codes = codes_of_maps(every)
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    # In the order of first appearance, so that the known ones keep their indices.
    ranks = np.argsort(np.argsort(firsts))
    return every.take(pa.array(np.sort(firsts))), ranks[inverse[len(known) :]][indices]
