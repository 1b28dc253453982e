"""FILES, CHANGES, ENTRIES and MANIFESTS of Hudi tables.

No commit lists the files of the table: the metadata of a commit is shown as its only manifest.
"""

from bisect import bisect_right
from collections.abc import Sequence

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.formats.hudi.metadata.file_groups import StoredFile
from snapshot_explorer.formats.hudi.metadata.history import FileStates, HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.scan.partitions import partition_texts


def files_frame(config: TableConfig, files: Sequence[StoredFile], start: int) -> pa.Table:
    """Return the FILES frame. Of files from before the first known commit it is unknown which version added them."""
    columns = _file_columns(config, files, [not file.moves_rows for file in files]) | {
        "added_version": pa.array([file.added if file.added >= start else None for file in files], pa.int64())
    }
    return pa.table([columns[name] for name in frames.FILES.names], schema=frames.FILES)


def changes_frame(source: HudiSource, state: FileStates, versions: Sequence[int]) -> pa.Table:
    """Return the CHANGES frame: per version the files that it removed, then those that it added, then change data."""
    parts = [frames.CHANGES.empty_table()]
    commits = source.commits(versions)
    for version in versions:
        is_service = commits[version].is_service
        removed, added = state.removed.get(version, ()), state.added.get(version, ())
        columns = _file_columns(
            source.config,
            [*removed, *added],
            [not is_service] * len(removed) + [not file.moves_rows for file in added],
        ) | {
            "version": pa.repeat(pa.scalar(version, pa.int64()), len(removed) + len(added)),
            "change": pa.array(["remove"] * len(removed) + ["add"] * len(added), pa.string()),
            "list": pa.repeat("delta", len(removed) + len(added)),
        }
        parts.append(pa.table([columns[name] for name in frames.CHANGES.names], schema=frames.CHANGES))
        parts.append(_change_data(source, version))
    return pa.concat_tables(parts)


def _change_data(source: HudiSource, version: int) -> pa.Table:
    files = [
        (f"{stat.partition}/{path.rpartition('/')[2]}".lstrip("/"), stat.partition, size)
        for stat in source.commits([version])[version].stats
        for path, size in stat.change_files.items()
    ]
    rows = [
        {
            "version": version,
            "change": "add",
            "list": "changelog",
            "path": path,
            "partition": list(partition_texts(source.config, partition).items()),
            "size_bytes": size,
            "data_change": True,
        }
        for path, partition, size in files
    ]
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in frames.CHANGES.names} for row in rows], frames.CHANGES
    )


def manifests_frame(source: HudiSource, state: FileStates, version: int) -> pa.Table:
    """Return the MANIFESTS frame: the metadata of earlier commits as base, that of the version's commit as delta.

    The files of a version are those that all of them added and none removed.
    """
    rows = []
    for position, number in enumerate(source.versions[: bisect_right(source.versions, version)]):
        instant = source.instant(number)
        path = manifest_path(source, number)
        row = {
            "version": version,
            "list": "delta" if number == version else "base",
            "list_path": path if number == version else None,
            "position": 0 if number == version else position,
            "path": path,
            "size_bytes": instant.size_bytes if path == instant.path else None,
            "added_files": len(state.added.get(number, ())),
            "removed_files": len(state.removed.get(number, ())),
        }
        rows.append({name: row.get(name) for name in frames.MANIFESTS.names})
    return pa.Table.from_pylist(rows, frames.MANIFESTS)


def manifest_path(source: HudiSource, version: int) -> str:
    """Return where the metadata of a version's commit is: its file, or the file of the archive and the instant."""
    instant = source.instant(version)
    return f"{instant.path}#{instant.text}" if version not in source.timeline.writes else instant.path


def _file_columns(config: TableConfig, files: Sequence[StoredFile], data_change: Sequence[bool]) -> dict[str, pa.Array]:
    count = len(files)
    return {
        "path": pa.array([file.path for file in files], pa.string()),
        "partition": _partitions(config, files),
        "bucket": pa.nulls(count, pa.int32()),
        "level": pa.nulls(count, pa.int32()),
        "rows": pa.array([file.rows for file in files], pa.int64()),
        "size_bytes": pa.array([file.size_bytes for file in files], pa.int64()),
        "schema_id": pa.nulls(count, pa.int64()),
        "deletion_vector": pa.nulls(count, pa.string()),
        "deleted_rows": pa.nulls(count, pa.int64()),
        "data_change": pa.array(list(data_change), pa.bool_()),
    }


def _partitions(config: TableConfig, files: Sequence[StoredFile]) -> pa.Array:
    positions: dict[str, int] = {}
    places = [positions.setdefault(file.partition, len(positions)) for file in files]
    texts = pa.array([list(partition_texts(config, path).items()) for path in positions], frames.PARTITION)
    return texts.take(pa.array(places, pa.int64()))
