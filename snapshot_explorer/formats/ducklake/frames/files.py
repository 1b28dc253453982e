"""The frames FILES and CHANGES of DuckLake versions."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.formats.ducklake.frames.commits import VersionEvents, rearranges_rows
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata, live_rows, numbers
from snapshot_explorer.formats.ducklake.scan.planning import inlined_positions, last_deletes
from snapshot_explorer.formats.ducklake.scan.statistics import named_partitions

_INLINED = "inlined"
"""The text for deletes that the catalog itself contains."""
_PARTIAL = "rows up to snapshot"
"""The text for a merged file that has rows of later snapshots too."""


def _file_columns(metadata: DuckLakeMetadata, files: pa.Table) -> dict[str, object]:
    partitions = [list(partition.items()) for partition in named_partitions(metadata, files)]
    return {
        "path": single_chunk(files.column("location")),
        "partition": pa.array(partitions, frames.PARTITION),
        "rows": single_chunk(files.column("record_count")),
        "size_bytes": single_chunk(files.column("file_size_bytes")),
        "schema_id": _schema_ids(metadata, numbers(files, "begin_snapshot")),
    }


def _schema_ids(metadata: DuckLakeMetadata, snapshots: np.ndarray) -> pa.Array:
    """Return the schema version at snapshots; null for expired ones."""
    positions = pc.index_in(
        pa.array(snapshots, pa.int64()), value_set=single_chunk(metadata.snapshots.column("snapshot_id"))
    )
    return single_chunk(metadata.snapshots.column("schema_version")).take(positions)


def files_frame(metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> pa.Table:
    """Return the FILES frame of live data files at a snapshot.

    `deletion_vector` has the delete files of a file, `inlined` for deletes in the catalog, and for a merged file with
    later rows the snapshot up to which its rows are visible. `deleted_rows` is null where a delete file may contain
    deletes of later snapshots, or several may delete the same row. `added_version` is the first snapshot of the file's
    rows; null if it has expired.
    """
    columns = _file_columns(metadata, files)
    columns["deletion_vector"], columns["deleted_rows"] = _deletions(metadata, files, snapshot)
    begins = pa.array(numbers(files, "begin_snapshot"), pa.int64())
    exists = pc.is_in(begins, value_set=single_chunk(metadata.snapshots.column("snapshot_id")))
    columns["added_version"] = pc.if_else(exists, begins, pa.scalar(None, pa.int64()))
    return frames.table_of(frames.FILES, columns)


def _deletions(metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> tuple[pa.Array, pa.Array]:
    """Return what hides rows of each file, and how many. Texts are equal only if the same rows are hidden."""
    names: dict[int, list[str]] = {}
    counts: dict[int, int | None] = {}
    live = live_rows(metadata.delete_files, snapshot)
    for row, last in zip(live.to_pylist(), last_deletes(metadata, live).tolist(), strict=True):
        number, is_whole = row["data_file_id"], last <= snapshot
        counts[number] = row["delete_count"] if is_whole and number not in counts else None
        names.setdefault(number, []).append(row["location"] if is_whole else f"{row['location']} up to {snapshot}")
    for number, positions in inlined_positions(metadata, snapshot).items():
        counts[number] = None if number in counts else len(positions)
        names.setdefault(number, []).append(f"{_INLINED} ({len(positions)})")  # they only grow
    for number, partial in metadata.partials.items():
        if partial.last > snapshot:
            counts[number] = None
            names.setdefault(number, []).append(f"{_PARTIAL} {snapshot}")
    ids = files.column("data_file_id").to_pylist()
    texts = pa.array([", ".join(names[number]) if number in names else None for number in ids], pa.string())
    return texts, pa.array([counts.get(number) for number in ids], pa.int64())


def changes_frame(metadata: DuckLakeMetadata, versions: Sequence[int], *, whole_first: bool = False) -> pa.Table:
    """Return the CHANGES frame: the data files that commits added and removed, as the catalog has them now.

    Files that were merged later are no longer in it. Deletes are not in it: they are at the versions' files.

    Args:
        whole_first: Whether the first known version counts all its files as added.
    """
    events = VersionEvents(metadata)
    parts = [frames.CHANGES.empty_table()]
    for version in versions:
        is_moved = rearranges_rows(metadata.words.get(version, ()))
        for change, files in _changed(metadata, events, version, whole_first=whole_first):
            if len(files):
                columns = _file_columns(metadata, files)
                columns |= {"version": version, "change": change, "list": "delta", "data_change": not is_moved}
                parts.append(frames.table_of(frames.CHANGES, columns))
    return pa.concat_tables(parts).combine_chunks()


def _changed(
    metadata: DuckLakeMetadata, events: VersionEvents, version: int, *, whole_first: bool
) -> Sequence[tuple[str, pa.Table]]:
    if whole_first and version == metadata.versions[0]:
        return [("add", live_rows(metadata.data_files, version))]
    return [("remove", events.removed(version)), ("add", events.added(version))]


def manifest_path(metadata: DuckLakeMetadata, version: int) -> str:
    """Return the path that stands for the catalog's rows of a version."""
    return f"{metadata.catalog}#{version}"


def manifests_frame(metadata: DuckLakeMetadata, number: int) -> pa.Table:
    """Return the MANIFESTS frame: a manifest per version with what it changed, the own one last."""
    events = VersionEvents(metadata)
    rows = []
    for position, version in enumerate(metadata.versions[metadata.versions <= number].tolist()):
        changed = dict(_changed(metadata, events, version, whole_first=True))
        row = {
            "version": number,
            "list": "delta" if version == number else "base",
            "position": position,
            "path": manifest_path(metadata, version),
            "added_files": len(changed["add"]),
            "removed_files": len(changed.get("remove", ())),
            "schema_id": metadata.schema_version(version),
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=frames.MANIFESTS)
