"""FILES, CHANGES, ENTRIES and MANIFESTS of Hudi tables.

No commit lists the files of the table: the metadata of a commit is shown as its only manifest.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.formats.hudi.metadata.commits import CommitMetadata
from snapshot_explorer.formats.hudi.metadata.file_groups import StoredFile
from snapshot_explorer.formats.hudi.metadata.history import FileStates, HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.scan.partitions import partition_column


class _ChangeFile(NamedTuple):
    """A file with change data."""

    path: str
    partition: str
    size_bytes: int
    rows: None = None


def files_frame(config: TableConfig, files: Sequence[StoredFile], start: int) -> pa.Table:
    """Return the FILES frame. Of files from before the first known commit it is unknown which version added them."""
    columns = _file_columns(config, files, [not file.moves_rows for file in files]) | {
        "added_version": [file.added if file.added >= start else None for file in files]
    }
    return frames.table_of(frames.FILES, columns)


def changes_frame(source: HudiSource, state: FileStates, versions: Sequence[int]) -> pa.Table:
    """Return the CHANGES frame: per version the files that it removed, then those that it added, then change data."""
    commits = source.commits(versions)
    files: list[StoredFile | _ChangeFile] = []
    data_change: list[bool] = []
    numbers: list[int] = []
    changes: list[str] = []
    lists: list[str] = []
    for version in versions:
        commit = commits[version]
        removed, added = state.removed.get(version, ()), state.added.get(version, ())
        change_data = list(_change_data(commit))
        files += [*removed, *added, *change_data]
        data_change += [not commit.is_service] * len(removed) + [not file.moves_rows for file in added]
        data_change += [True] * len(change_data)
        changes += ["remove"] * len(removed) + ["add"] * (len(added) + len(change_data))
        lists += ["delta"] * (len(removed) + len(added)) + ["changelog"] * len(change_data)
        numbers += [version] * (len(files) - len(numbers))
    columns = {"version": numbers, "change": changes, "list": lists}
    return frames.table_of(frames.CHANGES, _file_columns(source.config, files, data_change) | columns)


def _change_data(commit: CommitMetadata) -> Iterator[_ChangeFile]:
    for stat in commit.stats:
        for path, size_bytes in stat.change_files.items():
            name = path.rpartition("/")[2]
            path_in_table = f"{stat.partition}/{name}" if stat.partition else name
            yield _ChangeFile(path_in_table, stat.partition, size_bytes)


def manifests_frame(source: HudiSource, state: FileStates, version: int) -> pa.Table:
    """Return the MANIFESTS frame: the metadata of earlier commits as base, that of the version's commit as delta.

    The files of a version are those that all of them added and none removed.
    """
    rows = []
    versions = source.versions[: bisect_right(source.versions, version)]
    active = [instant for number in versions if (instant := source.timeline.writes.get(number)) is not None]
    sizes = {instant.path: instant.size_bytes for instant in active}
    sizes |= source.storage.sizes([path for path, size in sizes.items() if size is None])
    for position, number in enumerate(versions):
        path = manifest_path(source, number)
        rows.append(
            {
                "version": version,
                "list": "delta" if number == version else "base",
                "list_path": path if number == version else None,
                "position": 0 if number == version else position,
                "path": path,
                "size_bytes": sizes.get(path),
                "added_files": len(state.added.get(number, ())),
                "removed_files": len(state.removed.get(number, ())),
            }
        )
    return pa.Table.from_pylist(rows, frames.MANIFESTS)


def manifest_path(source: HudiSource, version: int) -> str:
    """Return where the metadata of a version's commit is: its file, or the file of the archive and the instant."""
    instant = source.instant(version)
    return f"{instant.path}#{instant.text}" if version not in source.timeline.writes else instant.path


def _file_columns(
    config: TableConfig, files: Sequence[StoredFile | _ChangeFile], data_change: Sequence[bool]
) -> dict[str, object]:
    return {
        "path": [file.path for file in files],
        "partition": partition_column(config, [file.partition for file in files]),
        "rows": [file.rows for file in files],
        "size_bytes": [file.size_bytes for file in files],
        "data_change": list(data_change),
    }
