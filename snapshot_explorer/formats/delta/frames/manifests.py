"""The frames MANIFESTS and ENTRIES of Delta versions: the files of the log, and the data files in each of them.

Source: delta PROTOCOL.md, "Add File and Remove File", "Checkpoints", "Sidecar Files".
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.formats.delta.frames.files import file_columns
from snapshot_explorer.formats.delta.metadata.actions import Parser
from snapshot_explorer.formats.delta.metadata.batches import check_size
from snapshot_explorer.formats.delta.metadata.checkpoints import (
    ALL_COLUMNS,
    CheckpointFile,
    FileActions,
    NeededColumns,
    checkpoint_files,
    file_actions,
)
from snapshot_explorer.formats.delta.metadata.data_types import is_known
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.log_segment import LogListing, LogSegment
from snapshot_explorer.formats.delta.metadata.partitions import partition_texts, partitions_of
from snapshot_explorer.formats.delta.metadata.records import Actions, Metadata
from snapshot_explorer.formats.delta.metadata.schema import schema_of
from snapshot_explorer.formats.delta.scan.statistics import bounds, rows_of
from snapshot_explorer.formats.statistics import StatisticsFile, StatisticsFiles, rename_columns
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000
"""Commits whose actions are in memory at the same time."""


def manifests_frame(segment: LogSegment, checkpoint: Sequence[CheckpointFile], actions: Actions) -> pa.Table:
    """Return the MANIFESTS frame of a version: base, the files of its checkpoint, and delta, the commits after it.

    For a sidecar, `list_path` is the checkpoint file that names it; otherwise null. The counts are the numbers of add
    and remove actions in the file, without the tombstones of a checkpoint, which remove nothing.

    Args:
        actions: The actions of its commits after the checkpoint.
    """
    counts = [_counts(files) for files in (actions.adds, actions.removes)]
    base: list[dict[str, object]] = [
        {
            "list": "base",
            "list_path": file.list_path,
            "position": position,
            "path": file.path,
            "size_bytes": file.size_bytes,
            "added_files": file.adds,
            "removed_files": 0,
        }
        for position, file in enumerate(checkpoint)
    ]
    delta: list[dict[str, object]] = [
        {
            "list": "delta",
            "position": position,
            "path": commit.path,
            "size_bytes": commit.size_bytes,
            "added_files": counts[0].get(commit.version, 0),
            "removed_files": counts[1].get(commit.version, 0),
        }
        for position, commit in enumerate(segment.commits)
    ]
    rows = [{"version": segment.version} | row for row in (*base, *delta)]
    return pa.Table.from_pylist(rows, frames.MANIFESTS)


def _counts(files: pa.Table) -> dict[int, int]:
    counts = pc.value_counts(files.column("version"))
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def entries_of(storage: Storage, log: DeltaLog, version: int, path: str) -> pa.Table:
    """Return the ENTRIES of a file of the log that a version is made of: a commit, a checkpoint's file or a sidecar.

    Entries are in the order of the file, without files of change data. A remove in a checkpoint is a tombstone: it
    removes nothing, but records that the file was removed before. Partitions have the columns in force at the commit
    or the checkpoint, as in CHANGES.

    Reads the file: a commit, or a checkpoint in JSON, whole, one in parquet a row group at a time. The actions of the
    checkpoint that are not file actions are read too, unless they are cached.

    Args:
        path: The file, as in the column `path` of MANIFESTS.
    """
    base = {file.path: file for file in log.checkpoint_files(version, adds=False)}
    segment = log.segment(version)
    sizes = {file.path: file.size_bytes for file in base.values()}
    sizes |= {commit.path: commit.size_bytes for commit in segment.commits}
    owners = {commit.path: commit.version for commit in segment.commits}
    owners |= dict.fromkeys(base, -1 if segment.checkpoint_version is None else segment.checkpoint_version)
    if path not in owners:
        raise InvalidArgumentError(
            Message(
                f"Version {version} is not made of {path!r}. It is made of {len(owners):,} files of the log, which ",
                Hint("snapshot.manifests", {"ref": version}),
                " lists.",
            )
        )
    metadata = log.protocol_and_metadata(owners[path])[1]
    parts = actions_of(storage, path, sizes[path])
    return pa.concat_tables([frames.ENTRIES.empty_table(), *(_in_order(part, metadata) for part in parts)])


def actions_of(
    storage: Storage, path: str, size_bytes: int | None, needed: NeededColumns = ALL_COLUMNS
) -> Iterator[list[FileActions]]:
    """Yield the file actions of a file of the log, part by part; of a parquet file with the columns that are needed."""
    if path.endswith(".json"):
        return _of_lines(storage, path, size_bytes)
    return file_actions(storage, path, size_bytes, needed)


def _of_lines(storage: Storage, path: str, size_bytes: int | None) -> Iterator[list[FileActions]]:
    """Yield the file actions of a commit, or of a checkpoint in JSON, as one item."""
    content = storage.read(path, immutable=True)
    parser = Parser(infos=False, limits=storage.limits)
    parser.feed(None, path, content)
    actions = parser.actions()
    check_size(path, size_bytes, content)
    # The parser returns the actions by kind, each in order; the kinds of the lines restore the order of all.
    kinds = [
        kind
        for line in content.split(b"\n")
        if line.strip()
        for kind, body in orjson.loads(line).items()
        if body is not None and kind in ("add", "remove")
    ]
    adds = np.array([kind == "add" for kind in kinds], np.bool_)
    yield [
        FileActions(kind="add", row_numbers=np.flatnonzero(adds), files=actions.adds),
        FileActions(kind="remove", row_numbers=np.flatnonzero(~adds), files=actions.removes),
    ]


def _in_order(actions: Sequence[FileActions], metadata: Metadata) -> pa.Table:
    entries = [
        entries_frame(
            action.files, action.kind, partitions=partition_texts(action.files, metadata), rows=rows_of(action.files)
        )
        for action in actions
    ]
    together = pa.concat_tables([frames.ENTRIES.empty_table(), *entries])
    if len(actions) <= 1:
        return together
    order = np.argsort(np.concatenate([action.row_numbers for action in actions]), kind="stable")
    return together.take(pa.array(order))


def entries_frame(files: pa.Table, change: str, *, partitions: pa.Array, rows: pa.Array) -> pa.Table:
    """Return the ENTRIES of file actions of one kind, in order.

    Args:
        files: ADDS or REMOVES.
        change: Which of them: add or remove.
        partitions: Their partitions, by logical name.
        rows: The rows of each file before deletions; null where its statistics omit them.
    """
    columns = file_columns(files, partitions, rows) | {"change": change}
    return frames.table_of(frames.ENTRIES, columns)


def statistics_files(storage: Storage, log: DeltaLog, at: int, columns: Collection[str]) -> StatisticsFiles:
    """Return the files of the log that have statistics: every commit, and the files of every checkpoint.

    Reads the commits, and the names of sidecars in checkpoints.
    """
    listing = log.refresh()
    commits, checkpoints = listing.commits, listing.checkpoints
    sizes = {(_COMMIT, commit.version, commit.path): commit.size_bytes for commit in commits.values()}
    unread = []
    for checkpoint in checkpoints:
        version = checkpoint[0].version
        try:
            parts = checkpoint_files(storage, checkpoint)
        except SnapshotExplorerError as error:
            unread.append(Message(f"The checkpoint of version {version} could not be read: ", error))
        else:
            sizes |= {("checkpoint", version, path): size_bytes for path, size_bytes in parts.items()}
    schema = schema_of(log.protocol_and_metadata(at)[1])
    names = {field.stored: field.name for field in schema.fields if field.name in columns}
    needed = NeededColumns(names=frozenset(("stats", "partition_values")), parsed=frozenset(names), vectors=False)
    in_force = _metadata_in_force(log, sorted({*commits, *listing.versions}), listing, at)

    def read(files: Sequence[StatisticsFile]) -> list[list[Bounds]]:
        actions = log.actions([file.first for file in files if file.what == _COMMIT], infos=False)
        of_checkpoints = {
            file.path: partial(_tables_of, storage, file.path, sizes[file.what, file.first, file.path], needed)
            for file in files
            if file.what != _COMMIT
        }
        tables = dict(zip(of_checkpoints, storage.together(*of_checkpoints.values()), strict=True))
        of_files = [_of_version(actions, file.first) if file.what == _COMMIT else tables[file.path] for file in files]
        return _recorded_bounds(of_files, [in_force[file.first] for file in files], names)

    return StatisticsFiles(
        files=[StatisticsFile(path=path, what=what, first=version, last=version) for what, version, path in sizes],
        read=read,
        unread=unread,
    )


def _metadata_in_force(
    log: DeltaLog, versions: Sequence[int], listing: LogListing, at: int
) -> dict[int, Metadata | SnapshotExplorerError]:
    """Return the metadata in force at each version, or why it is unknown. Reads each commit once.

    Args:
        versions: Ascending.
        at: The version whose metadata is taken for commits that no checkpoint leads to.
    """
    commits = listing.commits
    existing = [version for version in versions if version in commits]
    changed: dict[int, Metadata | SnapshotExplorerError] = {}
    for begin in range(0, len(existing), _AT_ONCE):
        changed |= _changed_metadata(log, existing[begin : begin + _AT_ONCE])
    starts = {checkpoint[0].version for checkpoint in listing.checkpoints}
    result: dict[int, Metadata | SnapshotExplorerError] = {}
    for version in versions:
        before = result.get(version - 1)
        if version in changed:
            result[version] = changed[version]
        elif before is None or (isinstance(before, SnapshotExplorerError) and version in starts):
            result[version] = _metadata_at(log, version, at)
        else:
            result[version] = before
    return result


def _changed_metadata(log: DeltaLog, versions: Sequence[int]) -> dict[int, Metadata | SnapshotExplorerError]:
    """Return the metadata that commits set, and the errors of those that cannot be read."""
    try:
        return dict(log.actions(versions, infos=False).metadatas)
    except SnapshotExplorerError as error:
        if len(versions) == 1:
            return {versions[0]: error}
    middle = len(versions) // 2
    return _changed_metadata(log, versions[:middle]) | _changed_metadata(log, versions[middle:])


def _metadata_at(log: DeltaLog, version: int, at: int) -> Metadata | SnapshotExplorerError:
    try:
        return log.protocol_and_metadata(version)[1]
    except SnapshotNotFoundError:
        return log.protocol_and_metadata(at)[1]
    except SnapshotExplorerError as error:
        return error


def _recorded_bounds(
    files: Sequence[Sequence[pa.Table]],
    metadata: Sequence[Metadata | SnapshotExplorerError],
    names: Mapping[str, str],
) -> list[list[Bounds]]:
    """Return the bounds in files of the log; those of files with the same metadata are parsed together.

    Args:
        files: The file actions of each.
        metadata: The metadata in force at each file.
        names: By their stored names, the columns whose bounds are returned, and how they are called in the result.
    """
    alike: defaultdict[tuple[int, pa.Schema], list[tuple[int, pa.Table]]] = defaultdict(list)
    known: dict[int, Metadata] = {}
    for index, (tables, in_force) in enumerate(zip(files, metadata, strict=True)):
        if isinstance(in_force, SnapshotExplorerError):
            raise in_force
        known[id(in_force)] = in_force
        for table in filter(len, tables):
            part = table.select([name for name in _OF_BOUNDS if name in table.column_names])
            alike[id(in_force), part.schema].append((index, part))
    result: list[list[Bounds]] = [[] for _ in files]
    for (number, _), tables in alike.items():
        schema = schema_of(known[number])
        fields = [field for field in schema.fields if field.stored in names and is_known(field.type)]
        together = pa.concat_tables([table for _, table in tables])
        stored = bounds(together, fields, rows_of(together), partitions_of(together, schema))
        every = rename_columns(stored, {field.name: names[field.stored] for field in fields})
        begin = 0
        for index, table in tables:
            result[index].append(every.slice(begin, len(table)))
            begin += len(table)
    return result


def _tables_of(storage: Storage, path: str, size_bytes: int | None, needed: NeededColumns) -> list[pa.Table]:
    return [action.files for actions in actions_of(storage, path, size_bytes, needed) for action in actions]


def _of_version(actions: Actions, version: int) -> list[pa.Table]:
    return [files.filter(pc.equal(files.column("version"), version)) for files in (actions.adds, actions.removes)]


_COMMIT = "commit"
_OF_BOUNDS = ("path", "partition_values", "stats", "stats_parsed")
