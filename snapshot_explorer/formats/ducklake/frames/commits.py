"""The COMMITS frame of a DuckLake table: a commit is a snapshot of the catalog that touched the table."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.formats.ducklake.metadata.changes_made import (
    INSERTS,
    kind_of,
    parse_changes,
)
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    DuckLakeMetadata,
    live_mask,
    numbers,
)

_COMPACTIONS = frozenset(("merge_adjacent", "rewrite_delete", "compacted_table"))
_MAX_OTHERS = 100
"""The maximum number of changes of other tables in the details of a commit."""


def rearranges_rows(words: Sequence[str]) -> bool:
    """Return whether a commit only moved rows to other files."""
    return bool(words) and _COMPACTIONS.issuperset(words)


class VersionEvents:
    """What the catalog's rows say about what each version changed."""

    def __init__(self, metadata: DuckLakeMetadata) -> None:
        self._metadata = metadata
        self._begins = numbers(metadata.data_files, "begin_snapshot")
        self._ends = numbers(metadata.data_files, "end_snapshot")

    def before(self, version: int) -> int:
        """Return the existing snapshot before a version; the one before the version itself if it has expired."""
        index = self._metadata.index_of(version)
        return int(self._metadata.snapshot_ids[index - 1]) if index else version - 1

    def added(self, version: int) -> pa.Table:
        """Return the data files that a version has and the snapshot before it lacks."""
        before = self.before(version)
        mask = (before < self._begins) & (self._begins <= version) & (self._ends > version)
        return self._metadata.data_files.filter(pa.array(mask))

    def removed(self, version: int) -> pa.Table:
        """Return the data files that the snapshot before a version has and the version lacks."""
        before = self.before(version)
        mask = (self._begins <= before) & (before < self._ends) & (self._ends <= version)
        return self._metadata.data_files.filter(pa.array(mask))

    def inserted_inlined(self, version: int) -> int:
        """Return the number of inlined rows that a version has and the snapshot before it lacks."""
        before = self.before(version)
        return sum(int((live_mask(t.rows, version) & ~live_mask(t.rows, before)).sum()) for t in self._metadata.inlined)

    def removed_rows(self, version: int, removed: pa.Table) -> int | None:
        """Return the number of rows in removed files and of removed inlined rows; null if delete files hide some."""
        metadata, before = self._metadata, self.before(version)
        deletes = metadata.delete_files
        begins, lasts = numbers(deletes, "begin_snapshot"), numbers(deletes, "partial_max", -1)
        inlined = numbers(metadata.inlined_deletes, "begin_snapshot")
        is_new = (before < begins) & (begins <= version) | (begins <= version) & (lasts > before)
        ids = set(removed.column("data_file_id").to_pylist())
        of_removed = {
            *deletes.column("data_file_id").to_pylist(),
            *metadata.inlined_deletes.column("file_id").to_pylist(),
        }
        if (
            is_new.any()
            or ((before < inlined) & (inlined <= version)).any()
            or ids & of_removed
            or not self.is_known(removed)
        ):
            return None
        ended = sum(int((live_mask(t.rows, before) & ~live_mask(t.rows, version)).sum()) for t in metadata.inlined)
        return _sum(removed, "record_count") + ended

    def is_known(self, files: pa.Table) -> bool:
        """Return whether all rows of files are of the snapshot at which the files begin."""
        return not any(number in self._metadata.partials for number in files.column("data_file_id").to_pylist())


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
    result["total_rows"] = total_rows(metadata, version)
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


def total_rows(metadata: DuckLakeMetadata, snapshot: int) -> int | None:
    """Return the number of rows at a snapshot, inlined rows included; null if deletes or merged files hide some.

    Source: reference, "Statistics".
    """
    files = metadata.data_files.filter(pa.array(live_mask(metadata.data_files, snapshot)))
    ids = files.column("data_file_id").to_pylist()
    has_deletes = bool(live_mask(metadata.delete_files, snapshot).any()) or bool(
        (numbers(metadata.inlined_deletes, "begin_snapshot") <= snapshot).any()
    )
    if has_deletes or any(number in metadata.partials and metadata.partials[number].last > snapshot for number in ids):
        return None
    inlined = sum(int(live_mask(table.rows, snapshot).sum()) for table in metadata.inlined)
    return _sum(files, "record_count") + inlined
