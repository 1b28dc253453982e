"""The COMMITS frame of Iceberg versions."""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Kind, Readable
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory, time_of
from snapshot_explorer.formats.row_counts import RowChanges, logical_counts, no_record

_COUNTERS = ("added-", "deleted-", "removed-", "total-")
_COUNTS = {
    "added_files": "added-data-files",
    "removed_files": "deleted-data-files",
    "added_rows": "added-records",
    "removed_rows": "deleted-records",
    "added_bytes": "added-files-size",
    "removed_bytes": "removed-files-size",
}
_POSITIONS = ("added-position-deletes", "removed-position-deletes")
_DELETE_FILES = ("added-delete-files", "removed-delete-files")
_TOTALS = ("total-records", "total-position-deletes")
_EQUALITY = ("added-equality-deletes", "removed-equality-deletes", "total-equality-deletes")
_VECTORS = ("added-dvs", "removed-dvs")
_POSITION_FILES = ("added-position-delete-files", "removed-position-delete-files")
_USER, _TRINO_USER = "user", "trino_user"
_MAX_DIGITS = 19
_MAX = 2**63 - 1


def commits_frame(
    history: IcebergHistory,
    versions: Sequence[int],
    readable: Sequence[Readable | None],
    tags: Mapping[int, Sequence[str]],
    *,
    is_moved: bool,
) -> pa.Table:
    """Return the COMMITS frame of versions, in their order, from the metadata file alone.

    Counts are as the writer recorded them; null if it recorded none. Rows are unknown if position deletes are involved,
    bytes if delete files were added or removed, because the writer records the sum of both kinds of files.
    """
    count = len(versions)
    ids = list(map(history.ids.__getitem__, versions))
    names = ("timestamp_ms", "parent_id", "summary", "schema_id", "raw")
    times, parents, summaries, schema_ids, raws = history.metadata.snapshots.columns(names, ids)
    summary_keys = frozenset[str]().union(*summaries)
    recorded = _recorded_counts(summaries, summary_keys)

    def column(name: str) -> pa.Array:
        return pa.array(
            [summary.get(name) for summary in summaries] if name in summary_keys else pa.nulls(count), pa.string()
        )

    operation = column("operation")
    is_first = pa.array(parents, pa.int64()).is_null()
    is_replaced = pc.or_(pc.fill_null(pc.equal(column("replace-partitions"), "true"), fill_value=False), is_first)
    counts = _counts(summaries, summary_keys, recorded)
    columns = {
        **counts,
        **_logical_counts(history, versions, counts, recorded, operation, is_moved=is_moved),
        "version": pa.array(versions, pa.int64()),
        "committed_at": _times(times),
        "readable": pa.array(readable, pa.string()),
        "kind": _kinds(operation, is_replaced, recorded),
        "operation": operation,
        "user": pc.coalesce(column(_TRINO_USER), column(_USER)),
        "identifier": pa.array(ids, pa.int64()).cast(pa.string()),
        "schema_id": pa.array(schema_ids, pa.int64()),
        "tags": _tags(versions, tags),
        "details": pa.array(list(map(json_text.dumps, raws)), pa.string()),
    }
    rows = frames.table_of(frames.COMMITS, columns)
    has_equality = pc.any(pc.greater(recorded[_EQUALITY[-1]], 0)).as_py()
    return frames.with_rows_in_files(rows) if has_equality else rows


def _times(millis: Sequence[int]) -> pa.Array:
    times = pa.array(millis, pa.int64())
    for end in pc.min_max(times).values():
        time_of(end.as_py() or 0)  # raises unless it is a time
    return times.cast(frames.UTC_MILLIS)


def _tags(versions: Sequence[int], tags: Mapping[int, Sequence[str]]) -> pa.Array:
    dtype = frames.COMMITS.field("tags").type
    if not tags:
        return pa.array([()] * len(versions), dtype)
    return pa.array([tags.get(version, ()) for version in versions], dtype)


def _kinds(operation: pa.Array, is_replaced: pa.Array, recorded: Mapping[str, pa.Array]) -> pa.Array:
    """Return the kinds of commits in the terms that all formats share.

    The metadata does not distinguish an UPDATE from a MERGE, nor these from an INSERT OVERWRITE of files: a commit that
    replaced data files, or added deletes, is an update.

    Args:
        is_replaced: For each whether it replaced whole partitions, or is the first commit.
        recorded: The counters in their summaries.
    """
    has_removed, has_deletes = (
        pc.fill_null(pc.greater(recorded[name], 0), fill_value=False)
        for name in ("deleted-data-files", "added-delete-files")
    )
    is_update = pc.and_not(pc.or_(has_removed, has_deletes), is_replaced)
    kinds: dict[str, Kind | pa.Array] = {
        "append": "append",
        "delete": "delete",
        "replace": pc.if_else(has_removed, "compact", "maintenance"),
        "overwrite": pc.if_else(is_update, "update", "overwrite"),
    }
    is_word = [pc.fill_null(pc.equal(operation, word), fill_value=False) for word in kinds]
    return pc.case_when(pa.StructArray.from_arrays(is_word, names=list(kinds)), *kinds.values(), "other")


def _counts(
    summaries: Sequence[Mapping[str, str]], summary_keys: frozenset[str], recorded: Mapping[str, pa.Array]
) -> dict[str, pa.Array]:
    """Return the counts in summaries with these keys. An absent counter is 0 if the summary has any counter."""
    counters = frozenset(name for name in summary_keys if name.startswith(_COUNTERS))
    uncounted = pa.array(list(map(counters.isdisjoint, summaries)), pa.bool_())
    has_positions, has_deletes, has_old_positions = (
        pc.fill_null(reduce(pc.or_kleene, (pc.greater(recorded[name], 0) for name in names)), fill_value=False)
        for names in (_POSITIONS, _DELETE_FILES, _TOTALS[1:])
    )
    unknown = {"rows": pc.or_(has_positions, uncounted), "bytes": pc.or_(has_deletes, uncounted), "files": uncounted}
    result = {
        column: pc.if_else(unknown[column.rpartition("_")[2]], None, pc.fill_null(recorded[name], 0))
        for column, name in _COUNTS.items()
    }
    return result | {"total_rows": pc.if_else(has_old_positions, None, recorded[_TOTALS[0]])}


def _logical_counts(
    history: IcebergHistory,
    versions: Sequence[int],
    columns: Mapping[str, pa.Array],
    recorded: Mapping[str, pa.Array],
    operation: pa.Array,
    *,
    is_moved: bool,
) -> dict[str, pa.Array]:
    """Return the logical counts. Writers record none: an UPDATE, a MERGE and an INSERT OVERWRITE look the same.

    The rows of a snapshot without a parent replace all earlier rows. Rows of removed data files are known if
    no delete file was live before. Position deletes delete as many rows as the commit adds to those that it replaces: a
    writer only deletes rows that it reads. Deletion vectors do so if no position delete file was live before, which are
    merged into the vectors of their data files. Position delete files have paths of data files, which name none of them
    in some tables that were moved. Equality deletes delete an unknown number of rows.

    Args:
        columns: The counts of files of COMMITS; null for a summary without counters.
        recorded: The counters, which are absent if they are 0.
        is_moved: Whether the table is elsewhere than its metadata records.

    Source: iceberg specification, "Snapshots" and "Deletion Vectors"; iceberg SnapshotSummary.
    """

    def number(name: str) -> pa.Array:
        return pc.fill_null(recorded[name], 0)

    def live_before(deletes: str) -> pa.Array:
        added, removed = (number(f"{word}-{deletes}") for word in ("added", "removed"))
        return pc.add(pc.subtract(recorded[f"total-{deletes}"], added), removed)

    none_before = pc.and_(*(pc.equal(live_before(name), 0) for name in ("position-deletes", "equality-deletes")))
    none_before = pc.fill_null(none_before, history.metadata.format_version == 1)
    is_counted = columns["added_files"].is_valid()
    removes_files = pc.greater(number("deleted-data-files"), 0)
    has_positions, has_equality, has_vectors, has_delete_files = (
        reduce(pc.or_, (pc.greater(number(name), 0) for name in names))
        for names in (_POSITIONS, _EQUALITY[:2], _VECTORS, (*_DELETE_FILES, *_VECTORS))
    )
    # Files whose rows or deletes are not counted.
    lacks_added = pc.and_(pc.greater(number("added-data-files"), 0), recorded["added-records"].is_null())
    lacks_removed = pc.and_(removes_files, recorded["deleted-records"].is_null())
    lacks_removed = pc.or_(lacks_removed, pc.and_not(has_delete_files, has_positions))
    removed = pc.if_else(pc.or_(pc.invert(removes_files), none_before), number("deleted-records"), None)
    positions = pc.subtract(*map(number, _POSITIONS))
    is_lost = pc.or_(removes_files, pc.less(positions, 0))
    has_only_vectors = pa.repeat(pa.scalar(False), len(versions))  # noqa: FBT003 - the value
    if pc.any(has_vectors).as_py():
        exact = _after_only_vectors(history)
        has_only_vectors = pa.array([version in exact for version in versions], pa.bool_())
    # A position delete file names data files by their paths, a vector by its metadata, which follows a moved table.
    is_unsure = pc.if_else(has_vectors, pc.invert(has_only_vectors), is_moved)
    removed = pc.if_else(has_positions, pc.if_else(pc.or_(is_lost, is_unsure), None, positions), removed)
    is_matched = pc.or_(none_before, pc.or_(has_only_vectors, not is_moved))
    replacing = set(history.without_commit).difference(history.after_gaps)
    logical = logical_counts(
        RowChanges(
            added=pc.if_else(pc.and_not(is_counted, lacks_added), number("added-records"), None),
            removed=pc.if_else(pc.and_not(is_counted, pc.or_(has_equality, lacks_removed)), removed, None),
            removes_files=np.array(removes_files, np.bool_),
            keeps_rows=_is(operation, "replace") & np.array(is_matched, np.bool_),
            is_plain=np.array([version not in replacing for version in versions], np.bool_),
            deletes_only=_is(operation, "delete"),
            recorded=no_record(len(versions)),
        )
    )
    has_net = pc.or_(columns["added_rows"].is_valid(), logical["rows_inserted"].is_valid())
    return {**logical, "rows_source": pc.if_else(has_net, logical["rows_source"], None)}


def _is(operation: pa.Array, word: str) -> npt.NDArray[np.bool_]:
    return np.array(pc.fill_null(pc.equal(operation, word), fill_value=False), np.bool_)


def _after_only_vectors(history: IcebergHistory) -> frozenset[int]:
    """Return the versions before which no position delete file is live.

    Their number is the sum of those that were added and removed since there was no delete file.
    """
    snapshots = history.metadata.snapshots
    parents, summaries = snapshots.columns(("parent_id", "summary"), list(history.ids.values()))
    live: int | None = 0 if parents[:1] == [None] else None
    result = set()
    for version, summary in zip(history.ids, summaries, strict=True):
        if live == 0:
            result.add(version)
        added, removed = (summary.get(name, "0") for name in _POSITION_FILES)
        is_count = all(text.isdecimal() and len(text) < _MAX_DIGITS for text in (added, removed))
        live = live + int(added) - int(removed) if live is not None and is_count else None
        live = 0 if summary.get("total-delete-files") == "0" else live
    return frozenset(result)


def _recorded_counts(summaries: Sequence[Mapping[str, str]], summary_keys: frozenset[str]) -> dict[str, pa.Array]:
    """Return the counters of summaries with these keys; null where one is absent, or is not a count."""
    every = (*_COUNTS.values(), *_POSITIONS, *_DELETE_FILES, *_TOTALS, *_EQUALITY, *_VECTORS)
    names, count = [name for name in every if name in summary_keys], len(summaries)
    texts = pa.array([summary.get(name) for name in names for summary in summaries], pa.string())
    is_count = pc.and_(pc.ascii_is_decimal(texts), pc.less_equal(pc.binary_length(texts), _MAX_DIGITS))
    numbers = pc.if_else(is_count, texts, None).cast(pa.uint64())
    counts = pc.if_else(pc.less_equal(numbers, _MAX), numbers, None).cast(pa.int64())
    by_name = {name: counts.slice(index * count, count) for index, name in enumerate(names)}
    return dict.fromkeys(every, pa.nulls(count, pa.int64())) | by_name
