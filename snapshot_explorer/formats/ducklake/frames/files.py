"""The frames FILES, CHANGES, ENTRIES and MANIFESTS of DuckLake versions."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.formats.ducklake.frames.commits import TableEvents
from snapshot_explorer.formats.ducklake.metadata.changes_made import COMPACTIONS
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata, live_rows
from snapshot_explorer.formats.ducklake.scan.planning import inlined_positions, last_deletes
from snapshot_explorer.formats.ducklake.scan.statistics import partition_maps


def _file_columns(metadata: DuckLakeMetadata, files: pa.Table) -> dict[str, object]:
    existing, begins = (
        single_chunk(rows.column(name))
        for rows, name in ((metadata.rows["snapshot"], "snapshot_id"), (files, "begin_snapshot"))
    )
    known = pc.index_in(begins, value_set=existing)
    return {
        "path": metadata.locate(files),
        "partition": partition_maps(metadata, files),
        "rows": files.column("record_count"),
        "size_bytes": files.column("file_size_bytes"),
        "schema_id": single_chunk(metadata.rows["snapshot"].column("schema_version")).take(known),
        "added_version": existing.take(known),
    }


def files_frame(metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> pa.Table:
    """Return the FILES frame of live data files at a snapshot.

    `deletion_vector` has the delete files of a file, `inlined` for deletes in the catalog, and for a merged file with
    later rows the snapshot up to which its rows are visible. `deleted_rows` is null where a delete file may contain
    deletes of later snapshots, or several may delete the same row. `schema_id` and `added_version` are of the first
    snapshot of the file's rows; null if it has expired.
    """
    texts, counts = _deletions(metadata, files, snapshot)
    columns = _file_columns(metadata, files) | {"deletion_vector": texts, "deleted_rows": counts}
    return frames.table_of(frames.FILES, columns)


def _deletions(metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> tuple[pa.Array, pa.Array]:
    """Return what hides rows of each file, and how many. Texts are equal only if the same rows are hidden."""
    names: dict[int, list[str]] = {}
    counts: dict[int, int | None] = {}
    live = live_rows(metadata.rows["delete_file"], snapshot)
    columns = [live.column("data_file_id").to_pylist(), metadata.locate(live).to_pylist()]
    columns.append(live.column("delete_count").to_pylist())
    for number, path, count, last in zip(*columns, last_deletes(metadata, live).tolist(), strict=True):
        is_whole = last <= snapshot
        counts[number] = count if is_whole and number not in counts else None
        names.setdefault(number, []).append(path if is_whole else f"{path} up to {snapshot}")
    for number, positions in inlined_positions(metadata, snapshot).items():
        counts[number] = None if number in counts else len(positions)
        names.setdefault(number, []).append(f"inlined ({len(positions)})")  # they only grow
    for number, partial in metadata.partials.items():
        if partial.last > snapshot:
            counts[number] = None
            names.setdefault(number, []).append(f"rows up to snapshot {snapshot}")
    ids = files.column("data_file_id").to_pylist()
    texts = pa.array([", ".join(names[number]) if number in names else None for number in ids], pa.string())
    return texts, pa.array([counts.get(number) for number in ids], pa.int64())


def changes_frame(metadata: DuckLakeMetadata, versions: Sequence[int]) -> pa.Table:
    """Return the CHANGES frame: the data files that commits added and removed, as the catalog has them now.

    Files that were merged later are no longer in it. Deletes are not in it: they are at the versions' files.
    """
    events, numbers = TableEvents(metadata), np.asarray(versions, np.int64)
    of_versions, of_files, is_new = events.changed_files(events.indices(numbers))
    changes_rows = np.asarray([_changes_rows(metadata, version) for version in versions], np.bool_)
    columns = _file_columns(metadata, metadata.rows["data_file"].take(pa.array(of_files, pa.int64()))) | {
        "version": pa.array(numbers[of_versions], pa.int64()),
        "change": pa.array(["remove", "add"]).take(pa.array(is_new.astype(np.int64))),
        "list": "delta",
        "data_change": pa.array(changes_rows[of_versions]),
    }
    return frames.table_of(frames.CHANGES, columns)


def _changes_rows(metadata: DuckLakeMetadata, version: int) -> bool:
    """Return whether a commit did more than move rows to other files."""
    words = metadata.words.get(version)
    return not words or not COMPACTIONS.issuperset(words)


def entries_frame(metadata: DuckLakeMetadata, version: int) -> pa.Table:
    """Return the ENTRIES of what stands for the manifest of a version: its changes; of the first version all files."""
    if version != metadata.versions[0]:
        return changes_frame(metadata, [version]).select(frames.ENTRIES.names)
    columns = _file_columns(metadata, live_rows(metadata.rows["data_file"], version))
    return frames.table_of(frames.ENTRIES, columns | {"change": "add", "data_change": _changes_rows(metadata, version)})


def manifest_path(metadata: DuckLakeMetadata, version: int) -> str:
    """Return the path that stands for the catalog's rows of a version."""
    return f"{metadata.catalog}#{version}"


def manifests_frame(metadata: DuckLakeMetadata, number: int) -> pa.Table:
    """Return the MANIFESTS frame: a manifest per version with what it changed, the own one last."""
    events, versions = TableEvents(metadata), metadata.versions[metadata.versions <= number]
    at = events.indices(versions)
    added, removed = events.files.begun()[at], events.files.ended()[at]
    added[0], removed[0] = events.files.live()[at[0]], 0
    columns = {
        "version": number,
        "list": ["delta" if version == number else "base" for version in versions.tolist()],
        "position": pa.array(np.arange(len(at))),
        "path": [manifest_path(metadata, version) for version in versions.tolist()],
        "added_files": pa.array(added),
        "removed_files": pa.array(removed),
        "schema_id": metadata.rows["snapshot"].column("schema_version").take(pa.array(at - 1, pa.int64())),
    }
    return frames.table_of(frames.MANIFESTS, columns)
