"""Metadata tasks of an Iceberg table, which can be read in parallel: manifests of a version, and runs of commits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.capabilities import MetadataTasks
from snapshot_explorer.formats.iceberg.frames.files import changes_frame, files_frame
from snapshot_explorer.formats.iceberg.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.iceberg.metadata.contents import Source, changed_files, live_of, manifests_of
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA
from snapshot_explorer.formats.iceberg.metadata.manifests import nonempty_manifests
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot
from snapshot_explorer.formats.metadata_tasks import (
    MetadataTask,
    Prefetch,
    StateTasks,
    TaskReader,
    commit_batches,
    manifest_batches,
    of_changes,
    of_live_files,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergManifestsTask:
    """A task: some manifests of a version."""

    version: int
    data: pa.Table
    deletes: pa.Table
    """All MANIFEST_FILES of delete files of the version; none if deletions are not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCommitsTask:
    """A task: consecutive commits."""

    version: int
    snapshots: tuple[tuple[int, IcebergSnapshot], ...]
    for_lifetimes: bool


@dataclass(frozen=True, kw_only=True)
class IcebergMetadataTasks(MetadataTasks):
    """The manifests of a branch in tasks."""

    metadata: BranchMetadata

    def of_state(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - manifest lists need no prefetch
        return self._of_state(version, deletes=True)

    def of_lifetimes(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - as above
        return self._of_state(version, deletes=False)

    def _of_state(self, version: int, *, deletes: bool) -> StateTasks:
        """Return the tasks that read the live files of a version. Reads its manifest list.

        Each task also reads the manifests of delete files, if requested: any of them may apply to its data files.
        """
        source, history = self.metadata.having([version])
        listed = manifests_of(source, [history.snapshots[version]])
        manifests = nonempty_manifests(listed, "added_files", "existing_files")
        of_data = pc.equal(manifests.column("content"), DATA)
        data = manifests.filter(of_data)
        rest = manifests.filter(pc.invert(of_data)) if deletes else manifests.slice(0, 0)
        tasks = [
            IcebergManifestsTask(version=version, data=data.slice(indices[0], len(indices)), deletes=rest)
            for indices in manifest_batches(data.column("length"))
        ]
        return StateTasks(tasks=tasks, keeps_last_add=False)

    def of_changes(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:  # noqa: ARG002 - as above
        """Return the tasks that read the changes of commits. A task contains consecutive versions of the history."""
        _, history = self.metadata.having(versions)
        indices = {version: index for index, version in enumerate(history.versions)}
        tasks = []
        for run in commit_batches([indices[version] for version in versions]):
            snapshots = tuple((history.versions[index], history.snapshots[history.versions[index]]) for index in run)
            tasks.append(IcebergCommitsTask(version=snapshots[0][0], snapshots=snapshots, for_lifetimes=lifetimes))
        return tasks

    def reader(self) -> TaskReader:
        """Return the reader of tasks. It carries the table's schemas and specs, not its snapshots."""
        source, history = self.metadata.current()
        metadata = source.metadata.without_history()
        bare = replace(history, metadata=metadata, versions=(), ids={}, snapshots={}, numbers={}, without_commit=())
        return partial(_read, replace(source, metadata=metadata), bare)


def _read(source: Source, history: IcebergHistory, task: MetadataTask) -> Iterator[pa.Table]:
    if isinstance(task, IcebergManifestsTask):
        frame = files_frame(source.metadata, live_of(source, task.data, task.deletes))
        yield of_live_files(frame, task.version)
    elif isinstance(task, IcebergCommitsTask):
        yield _of_commits(source, history, task)


def _of_commits(source: Source, history: IcebergHistory, task: IcebergCommitsTask) -> pa.Table:
    snapshots = dict(task.snapshots)
    own_history = replace(history, snapshots=snapshots)
    changes = changes_frame(own_history, changed_files(source, list(snapshots.values())))
    if not task.for_lifetimes:
        return of_changes(changes)
    return of_changes(changes, {version: own_history.time_of(version) for version in snapshots})
