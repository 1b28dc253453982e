"""The COMMITS frame of a DuckLake table: a commit is a snapshot of the catalog that touched the table."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.formats.ducklake.metadata.changes_made import (
    COMPACTIONS,
    INSERTS,
    kind_of,
    parse_changes,
)
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    DuckLakeMetadata,
    live_mask,
    numbers,
)

_MAX_OTHERS = 100
"""The maximum number of changes of other tables in the details of a commit."""


def rearranges_rows(words: Sequence[str]) -> bool:
    """Return whether a commit only moved rows to other files."""
    return bool(words) and COMPACTIONS.issuperset(words)


class VersionEvents:
    """What the catalog's rows say about what each version changed. Each version costs what changed, not all files."""

    def __init__(self, metadata: DuckLakeMetadata) -> None:
        self._metadata = metadata
        files = metadata.data_files
        self._begins, self._ends = (numbers(files, name) for name in ("begin_snapshot", "end_snapshot"))
        rows = numbers(files, "record_count")
        self._by_begin, self._by_end = (np.argsort(values, kind="stable") for values in (self._begins, self._ends))
        self._sorted_begins, self._sorted_ends = self._begins[self._by_begin], self._ends[self._by_end]
        self._rows_begun, self._rows_ended = (
            np.concatenate([[0], np.cumsum(rows[order])]) for order in (self._by_begin, self._by_end)
        )
        deletes, inlined = metadata.delete_files, metadata.inlined_deletes
        self._delete_begins, self._delete_ends = (numbers(deletes, n) for n in ("begin_snapshot", "end_snapshot"))
        self._delete_lasts = numbers(deletes, "partial_max", -1)
        self._inlined_deletes = numbers(inlined, "begin_snapshot")
        self._with_deletes = {*deletes.column("data_file_id").to_pylist(), *inlined.column("file_id").to_pylist()}
        of_file = dict(zip(files.column("data_file_id").to_pylist(), self._begins.tolist(), strict=True))
        self._partials = np.asarray(
            [(of_file[number], partial.last) for number, partial in metadata.partials.items()], np.int64
        ).reshape(-1, 2)

    def before(self, version: int) -> int:
        """Return the existing snapshot before a version; the one before the version itself if it has expired."""
        index = self._metadata.index_of(version)
        return int(self._metadata.snapshot_ids[index - 1]) if index else version - 1

    def added(self, version: int) -> pa.Table:
        """Return the data files that a version has and the snapshot before it lacks."""
        first, last = np.searchsorted(self._sorted_begins, (self.before(version), version), side="right")
        chosen = self._by_begin[first:last]
        return self._files(chosen[self._ends[chosen] > version])

    def removed(self, version: int) -> pa.Table:
        """Return the data files that the snapshot before a version has and the version lacks."""
        before = self.before(version)
        first, last = np.searchsorted(self._sorted_ends, (before, version), side="right")
        chosen = self._by_end[first:last]
        return self._files(chosen[self._begins[chosen] <= before])

    def _files(self, indices: np.ndarray) -> pa.Table:
        return self._metadata.data_files.take(pa.array(np.sort(indices), pa.int64()))

    def inserted_inlined(self, version: int) -> int:
        """Return the number of inlined rows that a version has and the snapshot before it lacks."""
        before = self.before(version)
        return sum(int((live_mask(t.rows, version) & ~live_mask(t.rows, before)).sum()) for t in self._metadata.inlined)

    def removed_rows(self, version: int, removed: pa.Table) -> int | None:
        """Return the number of rows in removed files and of removed inlined rows; null if delete files hide some."""
        before = self.before(version)
        is_new = (self._delete_begins <= version) & ((self._delete_begins > before) | (self._delete_lasts > before))
        is_new_inlined = (before < self._inlined_deletes) & (self._inlined_deletes <= version)
        has_deletes = not self._with_deletes.isdisjoint(removed.column("data_file_id").to_pylist())
        if is_new.any() or is_new_inlined.any() or has_deletes or not self.is_known(removed):
            return None
        tables = self._metadata.inlined
        ended = sum(int((live_mask(t.rows, before) & ~live_mask(t.rows, version)).sum()) for t in tables)
        return _sum(removed, "record_count") + ended

    def is_known(self, files: pa.Table) -> bool:
        """Return whether all rows of files are of the snapshot at which the files begin."""
        return not any(number in self._metadata.partials for number in files.column("data_file_id").to_pylist())

    def total_rows(self, version: int) -> int | None:
        """Return the number of rows at a version, inlined rows included; null if deletes or merged files hide some.

        Source: reference, "Statistics".
        """
        deletes = ((self._delete_begins <= version) & (version < self._delete_ends)).any()
        hidden = ((self._partials[:, 0] <= version) & (version < self._partials[:, 1])).any()
        if deletes or hidden or (self._inlined_deletes <= version).any():
            return None
        begun = np.searchsorted(self._sorted_begins, version, side="right")
        ended = np.searchsorted(self._sorted_ends, version, side="right")
        inlined = sum(int(live_mask(table.rows, version).sum()) for table in self._metadata.inlined)
        return int(self._rows_begun[begun] - self._rows_ended[ended]) + inlined


def commits_frame(metadata: DuckLakeMetadata, versions: Sequence[int]) -> pa.Table:
    """Return the COMMITS frame of versions, in the given order. Reads nothing.

    Counts of files are of the catalog as it is now: files that were merged later are no longer in it.
    """
    events = VersionEvents(metadata)
    texts = {row["snapshot_id"]: row for row in metadata.changes.to_pylist()}
    rows = [_commit(metadata, events, version, texts.get(version, {})) for version in versions]
    return pa.Table.from_pylist(rows, schema=frames.COMMITS)


def _commit(
    metadata: DuckLakeMetadata, events: VersionEvents, version: int, change: Mapping[str, str | None]
) -> dict[str, object]:
    index = metadata.index_of(version)
    words = list(metadata.words.get(version, ()))
    creates = version == metadata.begin
    alters = not creates and bool(_altered(metadata, version))
    kind = kind_of(words, creates=creates, comments_only=not alters)
    shown = [*(["created_table"] if creates and "created_table" not in words else []), *words]
    added, removed = events.added(version), events.removed(version)
    inlined = events.inserted_inlined(version)
    result: dict[str, object] = {
        "version": version,
        "committed_at": _millis(metadata, index),
        "kind": kind,
        "operation": ", ".join(dict.fromkeys(shown)) or None,
        "user": change.get("author"),
        "identifier": None,
        "schema_id": metadata.schema_version(version),
        "added_files": len(added),
        "removed_files": len(removed),
        "added_bytes": _sum(added, "file_size_bytes"),
        "removed_bytes": _sum(removed, "file_size_bytes"),
        "tags": [],
        "details": _details(metadata, change),
    }
    if events.is_known(added):
        result["added_rows"] = _sum(added, "record_count") + inlined
    result["removed_rows"] = events.removed_rows(version, removed)
    only_inserts = bool(words) and INSERTS.issuperset(words) and not len(removed)
    if only_inserts and "added_rows" in result and events.before(version) == version - 1:
        result |= {
            "rows_inserted": result["added_rows"],
            "rows_updated": 0,
            "rows_deleted": 0,
            "rows_source": "metadata",
        }
    result["total_rows"] = events.total_rows(version)
    return result


def _sum(files: pa.Table, name: str) -> int:
    return sum(files.column(name).to_pylist())


def _millis(metadata: DuckLakeMetadata, index: int) -> object:
    value = metadata.snapshots.column("snapshot_time")[index].as_py()
    return None if value is None else value.replace(microsecond=value.microsecond // 1000 * 1000)


def _altered(metadata: DuckLakeMetadata, version: int) -> bool:
    """Return whether columns, partitions, sorting or the name changed, not comments alone."""
    rows = (metadata.columns, metadata.partition_infos, metadata.sort_infos, metadata.tables)
    return any(
        bool(np.any(numbers(table, name) == version)) for table in rows for name in ("begin_snapshot", "end_snapshot")
    )


def _details(metadata: DuckLakeMetadata, change: Mapping[str, str | None]) -> str:
    own: list[str] = []
    others: list[str] = []
    for word, value in parse_changes(change.get("changes_made")):
        (own if value == str(metadata.table_id) else others).append(f"{word}:{value}")
    values = {
        "changes_made": ",".join(own) or None,
        "author": change.get("author"),
        "commit_message": change.get("commit_message"),
        "commit_extra_info": change.get("commit_extra_info"),
        "other_changes": others[:_MAX_OTHERS] or None,
    }
    return json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)
