"""The COMMITS frame of Paimon versions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.milliseconds import from_millis
from snapshot_explorer.core.records import Kind, Readable
from snapshot_explorer.formats.paimon.frames.deleted_rows import (
    FILE_COLUMNS,
    IndexStates,
    might_have_option,
    read_index_states,
    row_counts,
)
from snapshot_explorer.formats.paimon.metadata.contents import Changes, read_changes
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE
from snapshot_explorer.formats.paimon.metadata.schema import Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.row_counts import RowChanges, logical_counts, no_record
from snapshot_explorer.storage import Storage

RECORDED = frozenset(("version", "committed_at", "kind", "operation", "user", "identifier", "schema_id", "details"))
"""The columns for which only the snapshots are read."""
_COUNTED = ("kind", "rows", "size_bytes", "min_key", "write_columns")
_NO_FIELDS = b"\0\0\0\0"
"""The beginning of a serialized row without fields: the key of a file in a table without primary key."""
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000, 253_402_300_799_999
_KINDS: Mapping[str, Kind] = {"APPEND": "append", "COMPACT": "compact", "ANALYZE": "analyze"}
_OVERWRITES: Mapping[str, Kind] = {"DELETE": "delete", "TRUNCATE": "delete", "UPDATE": "update", "MERGE": "merge"}


def kind_of(snapshot: PaimonSnapshot) -> Kind:
    """Return the kind of a commit in the terms that all formats share.

    The kind of an OVERWRITE comes from its operation, which Paimon 2.0 and newer record.
    """
    if snapshot.kind == "OVERWRITE":
        return _OVERWRITES.get(snapshot.operation or "", "overwrite")
    return _KINDS.get(snapshot.kind, "other")


def readable_of(snapshot: PaimonSnapshot, *, known: bool) -> Readable | None:
    """Return whether a version can be loaded; None if unknown: data files are not checked.

    Args:
        known: Whether its delta manifest list (for a changelog, the changelog list) and the manifests in it exist.
    """
    if not known:
        return "no"
    return "metadata" if snapshot.file_kind == "changelog" else None


def read_commits(
    storage: Storage,
    history: PaimonHistory,
    schemas: Schemas,
    snapshots: Sequence[PaimonSnapshot],
) -> pa.Table:
    """Return the COMMITS frame of snapshots, in their order, without tags; see `commits_frame`.

    Reads their delta manifest lists and delta manifests, each kind concurrently; with deletion vectors also their
    index manifests, see `deleted_rows.read_index_states`; with data evolution the snapshots before them; of a snapshot
    whose delta has vanished meanwhile, also its tag or changelog.
    """
    has_indexes = any(snapshot.index_manifest is not None for snapshot in snapshots)
    columns = (*_COUNTED, *FILE_COLUMNS) if has_indexes else _COUNTED
    columns = (*columns, "first_row_id") if any(snapshot.next_row_id for snapshot in snapshots) else columns
    expired = [snapshot for snapshot in snapshots if snapshot.file_kind == "changelog"]
    states, first_new_rows, delta, changelog = storage.together(
        partial(read_index_states, storage, history, schemas, snapshots),
        partial(_first_new_rows, history, schemas, snapshots),
        partial(read_changes, storage, snapshots, "delta", columns=columns),
        partial(read_changes, storage, expired, "changelog", columns=_COUNTED),
    )
    left = _known_versions(expired, changelog)
    if lost := [
        snapshot.id
        for snapshot, known in zip(snapshots, delta.known, strict=True)
        if not known and snapshot.file_kind != "changelog"
    ]:
        # A snapshot may have expired to a changelog since it was read.
        again = [snapshot for snapshot in history.read_again(lost).values() if snapshot.file_kind == "changelog"]
        left |= _known_versions(again, read_changes(storage, again, "changelog", columns=_COUNTED))
    readable = [
        "metadata" if snapshot.id in left else readable_of(snapshot, known=known)
        for snapshot, known in zip(snapshots, delta.known, strict=True)
    ]
    return commits_frame(
        snapshots,
        delta,
        readable,
        states=states,
        first_new_rows=first_new_rows,
        is_alone=not history.might_have_branches,
    )


def _first_new_rows(
    history: PaimonHistory, schemas: Schemas, snapshots: Sequence[PaimonSnapshot]
) -> Mapping[int, int | None]:
    """Return the id of the first row that is new in each commit that may write columns of older rows; None if unknown.

    Reads nothing of a table without row ids, and only schemas, which are cached, of one without data evolution.
    Otherwise reads the snapshots before those given, one for a run without gaps.

    Source: paimon docs, "Data Evolution"; of each commit the new rows begin at the `nextRowId` of the snapshot before,
    compared with Paimon 1.4.
    """
    numbered = [snapshot for snapshot in snapshots if snapshot.next_row_id]
    if not numbered or not might_have_option(schemas, numbered, ("data-evolution.enabled",)):
        return {}
    by_version = {snapshot.id: snapshot for snapshot in snapshots}
    earlier = [item.id - 1 for item in numbered if item.id > 1 and item.id - 1 not in by_version]
    with suppress(CorruptTableError):  # which rows the commit after it wrote remains unknown
        by_version |= history.present(earlier) if earlier else {}
    ids = {version: item.next_row_id for version, item in by_version.items()}
    return {item.id: 0 if item.id == 1 else ids.get(item.id - 1) for item in numbered}


def _known_versions(snapshots: Sequence[PaimonSnapshot], changes: Changes) -> set[int]:
    return {snapshot.id for snapshot, known in zip(snapshots, changes.known, strict=True) if known}


def commits_frame(
    snapshots: Sequence[PaimonSnapshot],
    delta: Changes,
    readable: Sequence[Readable | None],
    *,
    states: IndexStates | None = None,
    first_new_rows: Mapping[int, int | None],
    is_alone: bool,
) -> pa.Table:
    """Return the COMMITS frame without tags. Counts are null for a commit whose delta no longer exists.

    Args:
        delta: The files that each commit changed, with `deleted_rows.FILE_COLUMNS` if there are `states`.
        readable: Whether each version can be loaded.
        states: The deletion vectors before and after each commit; None if there are none.
        first_new_rows: See `_first_new_rows`.
        is_alone: Whether the table has no branch whose rows readers may combine with its own.
    """
    counts = _counts(delta, len(snapshots))
    unknown = ~np.array(delta.known, np.bool_)
    pairs = zip(snapshots, delta.adds_up, strict=True)
    totals = [snapshot.total_rows if adds_up else None for snapshot, adds_up in pairs]
    columns = {name: pa.array(values, mask=unknown) for name, values in counts.items()}
    if states is not None:
        rows = row_counts(states, delta, totals)
        totals = [row.total for row in rows]
        for name, values in (("added", [row.added for row in rows]), ("removed", [row.removed for row in rows])):
            columns[f"{name}_rows"] = pc.if_else(pa.array(unknown), None, pa.array(values, pa.int64()))
    is_partial = _writes_columns(snapshots, delta, first_new_rows)
    columns |= _logical_counts(
        snapshots, delta, columns, is_partial=is_partial, are_vectors_known=states is not None, is_alone=is_alone
    )
    columns |= recorded_columns(snapshots) | {"readable": list(readable), "total_rows": totals}
    rows = frames.table_of(frames.COMMITS, columns)
    has_only_whole_rows = len(delta.commits) and is_alone and not first_new_rows and not _is_merged(delta).any()
    return rows if has_only_whole_rows else frames.with_rows_in_files(rows)


def _is_merged(changes: Changes) -> npt.NDArray[np.bool_]:
    """Return for each changed file whether readers may merge its rows with others: it has a key, or may have one."""
    is_plain_key = pc.fill_null(pc.starts_with(changes.entries.column("min_key"), _NO_FIELDS), fill_value=False)
    return ~np.array(is_plain_key, np.bool_)


def recorded_columns(snapshots: Sequence[PaimonSnapshot]) -> dict[str, object]:
    """Return the columns of COMMITS for which only the snapshots are read; `tags` is empty."""
    return {
        "version": [snapshot.id for snapshot in snapshots],
        "committed_at": [snapshot.committed_at for snapshot in snapshots],
        "details": [snapshot.stored for snapshot in snapshots],
        "kind": [kind_of(snapshot) for snapshot in snapshots],
        "operation": [snapshot.operation for snapshot in snapshots],
        "user": [snapshot.user for snapshot in snapshots],
        "identifier": [str(snapshot.identifier) for snapshot in snapshots],
        "schema_id": [snapshot.schema_id for snapshot in snapshots],
        "watermark": [_watermark(snapshot.watermark) for snapshot in snapshots],
        "tags": [[] for _ in snapshots],
    }


def with_tags(commits: pa.Table, tags: Mapping[int, Sequence[str]], *, are_all: bool) -> pa.Table:
    """Return COMMITS with the known tags of each version.

    If some tags are unreadable, `tags` is null instead of empty, and `readable` is null for versions with only a
    changelog: an unreadable tag may keep their files.
    """
    index = frames.COMMITS.get_field_index("tags")
    unknown: list[str] | None = [] if are_all else None
    versions = commits.column("version").to_pylist()
    names = [list(tags[version]) if version in tags else unknown for version in versions]
    commits = commits.set_column(index, frames.COMMITS.field(index), pa.array(names, frames.COMMITS.field(index).type))
    if are_all:
        return commits
    index = frames.COMMITS.get_field_index("readable")
    is_unknown = pc.and_(pc.equal(commits["readable"], "metadata"), commits["tags"].is_null())
    return commits.set_column(index, frames.COMMITS.field(index), pc.if_else(is_unknown, None, commits["readable"]))


def _counts(delta: Changes, commits: int) -> dict[str, npt.NDArray[np.int64]]:
    removed = delta.entries.column("kind").to_numpy() == DELETE
    counts: dict[str, npt.NDArray[np.int64]] = {}
    for word, chosen in (("added", ~removed), ("removed", removed)):
        owners = delta.commits[chosen]
        counts[f"{word}_files"] = np.bincount(owners, minlength=commits).astype(np.int64)
        for unit, column in (("rows", "rows"), ("bytes", "size_bytes")):
            sums = np.zeros(commits, np.int64)
            np.add.at(sums, owners, delta.entries.column(column).to_numpy()[chosen])
            counts[f"{word}_{unit}"] = sums
    return counts


def _writes_columns(
    snapshots: Sequence[PaimonSnapshot], delta: Changes, first_new_rows: Mapping[int, int | None]
) -> npt.NDArray[np.bool_]:
    """Return for each changed file whether it may have only some columns of rows, or columns of rows of other files.

    A file that was written for older rows says so by its columns, unless they are all columns of the table.
    """
    has_some = np.array(delta.entries.column("write_columns").is_valid(), np.bool_)
    if not first_new_rows:
        return has_some
    ends = [first_new_rows.get(snapshot.id, 0) for snapshot in snapshots]
    bounds = np.array([np.iinfo(np.int64).max if end is None else end for end in ends], np.int64)
    first = delta.entries.column("first_row_id")
    has_id = np.array(first.is_valid(), np.bool_)
    is_old = np.array(pc.fill_null(first, 0), np.int64) < bounds[delta.commits]
    return has_some | (has_id & is_old)


def _logical_counts(
    snapshots: Sequence[PaimonSnapshot],
    delta: Changes,
    columns: Mapping[str, pa.Array],
    *,
    is_partial: npt.NDArray[np.bool_],
    are_vectors_known: bool,
    is_alone: bool,
) -> dict[str, pa.Array]:
    """Return the logical counts; null if files have a key, so that readers merge their rows, or only some columns.

    Whether a compaction changes the rows of a table with a primary key depends on its options, which COMMITS do not
    read: with deletion vectors or the merge engine first-row, rows of level 0 are invisible until then. In a table
    without a key, a commit of kind COMPACT that only replaces deletion vectors deletes rows.

    Source: paimon docs, "Deletion Vectors", "First Row", "Data Evolution".
    """
    is_merged = np.zeros(len(snapshots), np.bool_)
    is_merged[delta.commits[_is_merged(delta) | is_partial]] = True
    kinds = np.array([snapshot.kind for snapshot in snapshots], np.object_)
    has_indexes = np.array([item.index_manifest is not None for item in snapshots], np.bool_)
    is_plain = is_alone & ~is_merged & (are_vectors_known | ~has_indexes)
    added, removed = (pc.if_else(pa.array(is_plain), columns[f"{word}_rows"], None) for word in ("added", "removed"))
    is_even = np.array(pc.fill_null(pc.equal(added, removed), fill_value=False), np.bool_)
    return logical_counts(
        RowChanges(
            added=added,
            removed=removed,
            removes_files=pc.fill_null(columns["removed_files"], 0).to_numpy() > 0,
            keeps_rows=(kinds == "ANALYZE") | ((kinds == "COMPACT") & is_even),
            is_plain=is_plain,
            deletes_only=np.array([kind_of(snapshot) == "delete" for snapshot in snapshots], np.bool_),
            recorded=no_record(len(snapshots)),
        )
    )


def _watermark(millis: int | None) -> datetime | None:
    """Return a watermark as a time; None if it is missing or out of the range of `datetime`."""
    if millis is None or not _FIRST_TIME <= millis <= _LAST_TIME:
        return None
    return from_millis(millis)
