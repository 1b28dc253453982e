"""FILES, CHANGES, ENTRIES and MANIFESTS of Hudi tables.

No commit lists the files of the table: the metadata of a commit is shown as its only manifest.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core import frames
from snapshot_explorer.formats.hudi.metadata.commits import change_data
from snapshot_explorer.formats.hudi.metadata.file_states import FileStates
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.scan.partitions import partition_column

_SAME = ("path", "rows", "size_bytes")
"""The columns of STORED that frames contain too."""


def files_frame(config: TableConfig, files: pa.Table, start: int) -> pa.Table:
    """Return the FILES frame. The version that added a file is unknown for files before the first known commit."""
    added = pc.list_element(files.column("commits"), 0)
    columns = {name: files.column(name) for name in _SAME} | {
        "partition": partition_column(config, files.column("partition")),
        "data_change": pc.invert(files.column("moves_rows")),
        "added_version": pc.if_else(pc.less(added, start), pa.scalar(None, pa.int64()), added),
    }
    return frames.table_of(frames.FILES, columns)


def changes_frame(source: HudiSource, state: FileStates, versions: Sequence[int]) -> pa.Table:
    """Return the CHANGES frame: per version its removed files, then its added files, then its change data files."""
    commits = source.commits(versions)
    state.check_changes(versions, source.storage.root)
    (removed, removing), (added, adding) = state.changed(versions, "removed"), state.changed(versions, "first")
    change_files = list(change_data(commits))
    index_of = {version: index for index, version in enumerate(versions)}
    of_version = np.concatenate(
        [removing, adding, np.array([index_of[file.version] for file in change_files], np.int64)]
    )
    part = np.repeat([0, 1, 2], [len(removed), len(added), len(change_files)])
    order = np.lexsort((part, of_version))
    services = np.array([commits[version].is_service for version in versions], np.bool_)
    stored = state.files.take(from_numpy(np.concatenate([removed, added])))
    moves_rows = np.concatenate([services[removing], stored.column("moves_rows").to_numpy()[len(removed) :]])
    recorded = pa.table(
        {name: [getattr(file, name, None) for file in change_files] for name in ("partition", *_SAME)},
        stored.select(["partition", *_SAME]).schema,
    )
    files = pa.concat_tables([stored.select(["partition", *_SAME]), recorded]).take(from_numpy(order))
    columns = {name: files.column(name) for name in _SAME} | {
        "version": from_numpy(np.array(versions, np.int64)[of_version[order]]),
        "change": pa.array(["remove", "add", "add"]).take(from_numpy(part[order])),
        "list": pa.array(["delta", "delta", "changelog"]).take(from_numpy(part[order])),
        "partition": partition_column(source.config, files.column("partition")),
        "data_change": from_numpy(np.append(~moves_rows, np.ones(len(change_files), np.bool_))[order]),
    }
    return frames.table_of(frames.CHANGES, columns)


def manifests_frame(source: HudiSource, state: FileStates, version: int) -> pa.Table:
    """Return the MANIFESTS frame: the metadata of earlier commits as base, of the version's own commit as delta.

    A version contains the files that any of these commits added and none removed.
    """
    rows = []
    versions = source.versions[: bisect_right(source.versions, version)]
    active = [instant for number in versions if (instant := source.timeline.writes.get(number)) is not None]
    sizes = {instant.path: instant.size_bytes for instant in active}
    sizes |= source.storage.sizes([path for path, size in sizes.items() if size is None])
    added, removed = (state.counts(versions, bound).files.tolist() for bound in ("first", "removed"))
    removes_lost = {lost.removed for lost in state.lost_slices}
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
                "added_files": None if number in state.unread.errors else added[position],
                "removed_files": None if number in removes_lost or number >= state.unknown_from else removed[position],
            }
        )
    return pa.Table.from_pylist(rows, frames.MANIFESTS)


def manifest_path(source: HudiSource, version: int) -> str:
    """Return the path of the metadata of a version's commit: its file, or the archive's file and the instant."""
    instant = source.instant(version)
    return f"{instant.path}#{instant.text}" if version not in source.timeline.writes else instant.path
