"""The COMMITS frame of a DuckLake table: a commit is a snapshot of the catalog that touched the table."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core import frames
from snapshot_explorer.formats.ducklake.frames.events import TableEvents
from snapshot_explorer.formats.ducklake.metadata.changes_made import INSERTS, kind_of, parse_changes
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata, numbers

_MAX_OTHERS = 100
"""The maximum number of changes of other tables in the details of a commit."""


def commits_frame(metadata: DuckLakeMetadata, versions: Sequence[int]) -> pa.Table:
    """Return the COMMITS frame of versions, in the given order. Reads nothing.

    Counts of files are of the catalog as it is now: files that were merged later are no longer in it.
    """
    events = TableEvents(metadata)
    at = events.indices(np.asarray(versions, np.int64))
    files, rows = events.files, metadata.rows["data_file"]
    inlined_begun, inlined_ended, inlined_live = events.inlined_rows()
    counts, sizes = numbers(rows, "record_count"), numbers(rows, "file_size_bytes")
    words = [metadata.words.get(version, ()) for version in versions]
    added, removed_files = (files.begun(counts) + inlined_begun)[at], files.ended()[at]
    # A commit that inserted rows and shows none: they are in a merged file, which no longer says so after a migration.
    is_lost = np.asarray([not INSERTS.isdisjoint(own) for own in words], np.bool_) & (added == 0)
    no_added = events.unknown_added()[at] | is_lost
    only_inserts = np.asarray([bool(own) and INSERTS.issuperset(own) for own in words], np.bool_)
    is_inserted = only_inserts & (removed_files == 0) & ~no_added & events.follows(at)
    changes = {row["snapshot_id"]: row for row in metadata.rows["snapshot_changes"].to_pylist()}
    snapshots = metadata.rows["snapshot"].take(pa.array(at - 1, pa.int64()))
    columns: dict[str, object] = {
        "version": list(versions),
        "committed_at": snapshots.column("snapshot_time").cast(frames.COMMITS.field("committed_at").type, safe=False),
        "kind": [_kind(metadata, version, own) for version, own in zip(versions, words, strict=True)],
        "operation": [_operation(metadata, version, own) for version, own in zip(versions, words, strict=True)],
        "user": [changes.get(version, {}).get("author") for version in versions],
        "schema_id": snapshots.column("schema_version"),
        "added_files": files.begun()[at],
        "removed_files": removed_files,
        "added_rows": from_numpy(added, no_added),
        "removed_rows": from_numpy((files.ended(counts) + inlined_ended)[at], events.unknown_removed()[at]),
        "added_bytes": files.begun(sizes)[at],
        "removed_bytes": files.ended(sizes)[at],
        "rows_inserted": from_numpy(added, ~is_inserted),
        "rows_updated": from_numpy(np.zeros(len(at), np.int64), ~is_inserted),
        "rows_deleted": from_numpy(np.zeros(len(at), np.int64), ~is_inserted),
        "rows_source": ["metadata" if known else None for known in is_inserted.tolist()],
        "total_rows": from_numpy((files.live(counts) + inlined_live)[at], events.unknown_total()[at]),
        "tags": [[]] * len(at),
        "details": [_details(metadata, changes.get(version, {})) for version in versions],
    }
    arrays = {name: pa.array(value) if isinstance(value, np.ndarray) else value for name, value in columns.items()}
    return frames.table_of(frames.COMMITS, arrays)


def _kind(metadata: DuckLakeMetadata, version: int, words: Sequence[str]) -> str:
    return kind_of(words, creates=version == metadata.begin, alters=version in metadata.alterations)


def _operation(metadata: DuckLakeMetadata, version: int, words: Sequence[str]) -> str | None:
    created = ["created_table"] if version == metadata.begin else []
    return ", ".join(dict.fromkeys([*created, *words])) or None


def _details(metadata: DuckLakeMetadata, change: Mapping[str, str | None]) -> str:
    own: list[str] = []
    others: list[str] = []
    for word, value in parse_changes(change.get("changes_made")):
        (own if value == str(metadata.table_id) else others).append(f"{word}:{value}")
    recorded = {name: change.get(name) for name in ("author", "commit_message", "commit_extra_info")}
    values = {"changes_made": ",".join(own) or None, **recorded, "other_changes": others[:_MAX_OTHERS] or None}
    return json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)
