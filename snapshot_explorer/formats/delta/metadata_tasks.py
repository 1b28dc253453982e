"""Tasks that read a Delta log independently: files of a checkpoint, and runs of commits.

Each task needs the metaData in force, for the names of partition columns. It is searched for first: here, or in
parallel tasks over all commits if there are too many.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import numpy as np
import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.capabilities import MetadataTasks
from snapshot_explorer.formats.delta.frames.files import changes_frame, files_frame
from snapshot_explorer.formats.delta.metadata.actions import check_is_commit, parse_commits
from snapshot_explorer.formats.delta.metadata.batches import check_size, first_batch
from snapshot_explorer.formats.delta.metadata.checkpoints import read_adds
from snapshot_explorer.formats.delta.metadata.layout import DeltaLogFile
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.partitions import partition_texts
from snapshot_explorer.formats.delta.metadata.records import Actions, Metadata
from snapshot_explorer.formats.delta.metadata.replay import (
    ADD_RANK,
    REMOVE_RANK,
    ReplayState,
    complete,
    followed_by,
    keys,
    ranks,
)
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, schema_of
from snapshot_explorer.formats.delta.metadata.times import ListedTimes, Times
from snapshot_explorer.formats.delta.scan import statistics as values
from snapshot_explorer.formats.metadata_tasks import (
    PREFETCHED,
    MetadataTask,
    Prefetch,
    StateTasks,
    TaskReader,
    contiguous_runs,
    of_changes,
    of_state,
)
from snapshot_explorer.formats.statistics import with_bounds
from snapshot_explorer.storage import Storage

_BYTES = 16 << 20
"""The approximate size of commits per task: parsing them takes several times as long as starting the task."""
_LOOK_BYTES = 64 << 20
"""The size of commits per task if it only searches for protocol and metaData, which is much faster."""
_COMMITS = 500
"""The maximum number of commits per task: each takes a request."""
_MAX_LOCAL = 16 << 20
"""The maximum size of commits that are read on this machine instead of in tasks."""
_CHECKPOINT_BYTES = 16 << 20
"""The approximate size of a part of a checkpoint file per task."""
_WORDS = (b'"metaData"', b'"protocol"', b"\\u")
"""One of these is in each line with protocol or metaData: names may be written with escapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPart:
    """A part of a checkpoint file of a version."""

    version: int
    path: str
    size_bytes: int | None
    part: int
    """The index of the part, from 0."""
    parts: int
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCommits:
    """Commits of a version after its checkpoint."""

    version: int
    commits: tuple[DeltaLogFile, ...]
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCommitsTask:
    """Commits whose changes are read."""

    version: int
    commits: tuple[DeltaLogFile, ...]
    """Their files, ascending, without a gap."""
    metadata: Metadata
    times: ListedTimes | None
    """Their commit times, if the listing contains them; None if not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsTask:
    """Commits that are searched for protocol and metaData."""

    version: int
    commits: tuple[DeltaLogFile, ...]
    """Their files, ascending."""


def changes_of(actions: Actions, versions: Sequence[int], in_force: Sequence[tuple[int, Metadata]]) -> pa.Table:
    """Return the CHANGES of commits.

    Args:
        versions: Their versions, in the order of the result.
        in_force: Versions where the metadata changes, ascending, including the first version.
    """
    files = {"remove": actions.removes, "add": actions.adds, "cdc": actions.cdc}
    return changes_frame(
        actions,
        versions,
        partitions={kind: _partitions(files_of_kind, in_force) for kind, files_of_kind in files.items()},
        rows={kind: values.rows_of(files[kind]) for kind in ("remove", "add")},
    )


def statistics_of(
    adds: pa.Table, in_force: Sequence[tuple[int, Metadata]], columns: Sequence[str], schema: DeltaSchema
) -> pa.Table:
    """Return path, level, deletion_vector and statistics of added files; see `ChangesWithStatistics`.

    Args:
        adds: ADDS, in order of version.
        in_force: The metadata in force from some versions on, ascending.
    """
    parts = []
    for files, metadata in _by_metadata(adds, in_force):
        frame = files_frame(files, partitions=partition_texts(files, metadata), rows=values.rows_of(files))
        known = values.bounds_in(files, columns, schema, schema_of(metadata))
        parts.append(with_bounds(frame.select(["path", "level", "deletion_vector"]), known))
    return pa.concat_tables(parts)


@dataclass(frozen=True, kw_only=True)
class DeltaMetadataTasks(MetadataTasks):
    """The log of a table in tasks."""

    storage: Storage
    log: DeltaLog
    times: Times

    def of_state(self, version: int, prefetch: Prefetch) -> StateTasks:
        """Return the tasks for the live files of a version.

        Reads the actions of its checkpoint that are not files, and searches the commits after it for metaData.
        """
        segment, checkpoint = self.log.outline(version)
        metadata = _in_force(self.storage, version, checkpoint.replay_state, segment.commits, prefetch)
        tasks: list[MetadataTask] = []
        for file in checkpoint.files:
            parts = 1 if file.path.endswith(".json") else max(1, (file.size_bytes or 0) // _CHECKPOINT_BYTES)
            tasks += [
                CheckpointPart(
                    version=version,
                    path=file.path,
                    size_bytes=file.size_bytes,
                    part=part,
                    parts=parts,
                    metadata=metadata,
                )
                for part in range(parts)
            ]
        pieces = _pieces(segment.commits)
        tasks += [StateCommits(version=version, commits=commits, metadata=metadata) for commits in pieces]
        return StateTasks(tasks=tasks, keeps_last_add=True)

    def of_changes(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:
        """Return the tasks for the changes of commits. Searches commits in tasks if there are too many to read here.

        Reads the metadata in force at the first commit of each run, and searches the commits for later metadata.
        """
        times = self.times.listed(versions) if lifetimes else None
        files = dict(zip(versions, self.log.commit_files(versions), strict=True))
        runs = [_pieces([files[version] for version in run]) for run in contiguous_runs(versions)]
        several = [commit for pieces in runs for piece in pieces[:-1] for commit in piece]
        later = _settings(self.storage, several, prefetch).metadatas
        tasks: list[MetadataTask] = []
        for pieces in runs:
            metadata = _metadata_near(self.storage, self.log, pieces[0][0].version, prefetch)
            for commits in pieces:
                first, last = commits[0].version, commits[-1].version
                metadata = later.get(first, metadata)
                listed = times.only(range(first, last + 1)) if times is not None else None
                tasks.append(DeltaCommitsTask(version=first, commits=commits, metadata=metadata, times=listed))
                metadata = next(
                    (later[commit.version] for commit in reversed(commits) if commit.version in later), metadata
                )
        return tasks

    def reader(self) -> TaskReader:
        return partial(_read, self.storage)


def _pieces(commits: Sequence[DeltaLogFile], size_bytes: int = _BYTES) -> list[tuple[DeltaLogFile, ...]]:
    left, pieces = commits, []
    while left:
        piece, _ = first_batch(left[:_COMMITS], size_bytes)
        pieces.append(tuple(piece))
        left = left[len(piece) :]
    return pieces


def _metadata_near(storage: Storage, log: DeltaLog, version: int, prefetch: Prefetch) -> Metadata:
    """Return the metadata at a version; if it cannot be reconstructed, at the earliest version that can."""
    try:
        segment, checkpoint = log.outline(version)
    except SnapshotNotFoundError:
        version = log.earliest()
        segment, checkpoint = log.outline(version)
    return _in_force(storage, version, checkpoint.replay_state, segment.commits, prefetch)


def _in_force(
    storage: Storage, version: int, before: ReplayState, commits: Sequence[DeltaLogFile], prefetch: Prefetch
) -> Metadata:
    settings = _settings(storage, commits, prefetch)
    state = followed_by(ReplayState(protocol=before.protocol, metadata=before.metadata), settings)
    metadata = complete(state, version, storage.root)[1]
    schema_of(metadata)  # raises for unsupported features before any task runs
    return metadata


def _settings(storage: Storage, commits: Sequence[DeltaLogFile], prefetch: Prefetch) -> Actions:
    """Return the protocols and metaData of commits, read here if they are small."""
    pieces = [SettingsTask(version=run[0].version, commits=run) for run in _pieces(commits, _LOOK_BYTES)]
    if not pieces:
        notes = PREFETCHED.empty_table()
    elif sum(_MAX_LOCAL if commit.size_bytes is None else commit.size_bytes for commit in commits) > _MAX_LOCAL:
        notes = prefetch(pieces)
    else:
        notes = pa.concat_tables(_of_settings(storage, piece) for piece in pieces)
    rows = notes.sort_by("version").to_pylist()
    contents = ((row["version"], row["path"], row["content"]) for row in rows)
    return parse_commits(contents, infos=False, excerpts=True)


def _contents(storage: Storage, commits: Sequence[DeltaLogFile]) -> Iterator[tuple[int, str, bytes]]:
    for commit, content in zip(commits, storage.read_each([commit.path for commit in commits]), strict=True):
        yield commit.version, commit.path, content
        check_size(commit.path, commit.size_bytes, content)


def _read(storage: Storage, task: MetadataTask) -> Iterator[pa.Table]:
    match task:
        case SettingsTask():
            yield _of_settings(storage, task)
        case DeltaCommitsTask():
            yield _of_commits(storage, task)
        case CheckpointPart():
            for adds in read_adds(storage, task.path, task.size_bytes, part=task.part, parts=task.parts):
                yield _of_state(adds, task.version, task.metadata, "add", ADD_RANK)
        case StateCommits():
            actions = parse_commits(_contents(storage, task.commits), infos=False, limits=storage.limits)
            yield _of_state(actions.adds, task.version, task.metadata, "add", ADD_RANK)
            yield _of_state(actions.removes, task.version, task.metadata, "remove", REMOVE_RANK)


def _of_settings(storage: Storage, task: SettingsTask) -> pa.Table:
    """Return the lines that may contain protocol or metaData; others become empty, to keep line numbers."""
    rows = []
    for version, path, content in _contents(storage, task.commits):
        check_is_commit(path, content)
        if any(word in content for word in _WORDS):
            lines = json_text.lines(content, path, storage.limits)
            relevant = [line if any(word in line for word in _WORDS) else b"" for line in lines]
            rows.append({"version": version, "path": path, "content": b"\n".join(relevant)})
    return pa.Table.from_pylist(rows, PREFETCHED)


def _of_commits(storage: Storage, task: DeltaCommitsTask) -> pa.Table:
    versions = [commit.version for commit in task.commits]
    reads_infos = task.times is not None and any(map(task.times.reads_commit_file, versions))
    actions = parse_commits(_contents(storage, task.commits), infos=reads_infos, limits=storage.limits)
    in_force = {task.version: task.metadata} | dict(actions.metadatas)
    changes = changes_of(actions, versions, sorted(in_force.items(), key=itemgetter(0)))
    if task.times is None:
        return of_changes(changes)
    return of_changes(changes, dict(zip(versions, task.times.times(versions, actions.commit_infos), strict=True)))


def _of_state(files: pa.Table, version: int, metadata: Metadata, change: str, index: int) -> pa.Table:
    frame = files_frame(files, partitions=partition_texts(files, metadata), rows=values.rows_of(files))
    return of_state(
        frame,
        version,
        change=pa.repeat(change, len(files)),
        identity=keys(files).cast(pa.binary()),
        rank=pa.array(ranks(files, index)),
    )


def _partitions(files: pa.Table, in_force: Sequence[tuple[int, Metadata]]) -> pa.Array:
    if not in_force:
        return pa.array([], frames.PARTITION)
    return pa.concat_arrays([partition_texts(part, metadata) for part, metadata in _by_metadata(files, in_force)])


def _by_metadata(files: pa.Table, in_force: Sequence[tuple[int, Metadata]]) -> Iterator[tuple[pa.Table, Metadata]]:
    versions = files.column("version").to_numpy()
    starts = np.searchsorted(versions, [version for version, _ in in_force], side="left").tolist()
    ends = [*starts[1:], len(versions)]
    for (_, metadata), start, end in zip(in_force, starts, ends, strict=True):
        yield files.slice(start, end - start), metadata
