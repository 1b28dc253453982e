"""Metadata tasks of a Paimon table, which can be read in parallel: manifests of a version, and runs of commits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.capabilities import MetadataTasks
from snapshot_explorer.formats.metadata_tasks import (
    MetadataTask,
    Prefetch,
    StateTasks,
    TaskReader,
    commit_batches,
    manifest_batches,
    of_changes,
    of_state,
)
from snapshot_explorer.formats.paimon.frames.files import files_frame
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.contents import PaimonState, index_of, read_listed, state_lists
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import Layout
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE, identities
from snapshot_explorer.formats.paimon.metadata.partitions import partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.scan.scans import changes_of, paths_of, vectors_in
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonManifestsTask:
    """A task: some manifests of a version."""

    version: int
    snapshot: PaimonSnapshot
    listed: pa.Table
    list_path: str
    own: int
    """The number of manifests, at the end, of the version's own commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonCommitsTask:
    """A task: consecutive commits."""

    version: int
    last: int
    for_lifetimes: bool


@dataclass(frozen=True, kw_only=True)
class PaimonMetadataTasks(MetadataTasks):
    """The manifests of a branch in tasks."""

    metadata: BranchMetadata

    def of_state(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - manifest lists need no prefetch
        """Return the tasks that read the live files of a version. Reads its base and delta lists."""
        snapshot = self.metadata.history.snapshots([version])[0]
        lists = state_lists(self.metadata.storage, snapshot)
        listed = lists.manifests
        own = len(listed) - lists.counts[0]
        tasks: list[MetadataTask] = []
        for indices in manifest_batches(listed.column("size_bytes")):
            part = listed.slice(indices[0], len(indices))
            ours = max(0, min(len(part), indices[-1] + 1 - (len(listed) - own)))
            tasks.append(
                PaimonManifestsTask(
                    version=snapshot.id, snapshot=snapshot, listed=part, list_path=lists.paths[0], own=ours
                )
            )
        return StateTasks(tasks=tasks, keeps_last_add=False)

    def of_changes(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:  # noqa: ARG002 - as above
        """Return the tasks that read the changes of commits. Reads the newest schema, which may raise."""
        self.metadata.schemas.newest()
        return [
            PaimonCommitsTask(version=run[0], last=run[-1], for_lifetimes=lifetimes) for run in commit_batches(versions)
        ]

    def reader(self) -> TaskReader:
        return partial(_read, self.metadata.storage, self.metadata.layout)


def _read(storage: Storage, layout: Layout, task: MetadataTask) -> Iterator[pa.Table]:
    schemas = Schemas(storage, layout)
    if isinstance(task, PaimonManifestsTask):
        yield _of_state(storage, schemas, task)
    elif isinstance(task, PaimonCommitsTask):
        yield _of_commits(storage, layout, schemas, task)


def _of_commits(storage: Storage, layout: Layout, schemas: Schemas, task: PaimonCommitsTask) -> pa.Table:
    snapshots = PaimonHistory(storage, layout).snapshots(range(task.version, task.last + 1))
    changes = changes_of(storage, schemas, snapshots, ("delta",) if task.for_lifetimes else ("delta", "changelog"))
    if not task.for_lifetimes:
        return of_changes(changes)
    return of_changes(changes, {snapshot.id: snapshot.committed_at for snapshot in snapshots})


def _of_state(storage: Storage, schemas: Schemas, task: PaimonManifestsTask) -> pa.Table:
    snapshot, options = task.snapshot, schemas.newest(task.snapshot.schema_id).options
    schema = schemas.by_id([snapshot.schema_id])[snapshot.schema_id]
    entries, counts = read_listed(storage, snapshot, task.listed, task.list_path)
    old = sum(counts[: len(counts) - task.own])
    entries = entries.append_column("is_new", pa.array(np.arange(len(entries)) >= old))
    indexes = index_of(storage, snapshot)
    # Drop the indexes of other tasks' files, of which there may be many.
    indexes = indexes.filter(pc.is_in(indexes.column("data_file"), single_chunk(entries.column("file_name"))))
    partitions = partitions_of(entries.column("partition"), schema)
    frame = files_frame(
        PaimonState(entries=entries, indexes=indexes),
        version=snapshot.id,
        partitions=partitions,
        paths=paths_of(storage, entries, partitions, schema, options, strict=False),
        vectors=vectors_in(storage, indexes, schema, options),
    )
    removed = pc.equal(single_chunk(entries.column("kind")), DELETE)
    return of_state(
        frame,
        snapshot.id,
        change=pc.if_else(removed, "remove", "add"),
        identity=identities(entries),
        # A DELETE removes its file wherever it is listed.
        rank=removed.cast(pa.int64()),
    )
