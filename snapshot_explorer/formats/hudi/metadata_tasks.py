"""Tasks that read the metadata of a Hudi table on executors.

No commit lists the files of the table: they follow from the metadata of all commits together, which one task adds up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.formats.capabilities import MetadataTasks
from snapshot_explorer.formats.hudi.frames.files import changes_frame, files_frame
from snapshot_explorer.formats.hudi.metadata.history import HudiHistory, HudiSource, committed_at
from snapshot_explorer.formats.metadata_tasks import (
    MetadataTask,
    Prefetch,
    StateTasks,
    TaskReader,
    of_changes,
    of_live_files,
)

_COMMITS = 2_000
"""Commits whose changes are in memory at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiStateTask:
    """A task: the files of a version."""

    version: int
    source: HudiSource
    for_lifetimes: bool
    """Whether the next version whose files are all known replaces a version with unknown files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiCommitsTask:
    """A task: the changes of commits."""

    version: int
    versions: tuple[int, ...]
    source: HudiSource
    for_lifetimes: bool


@dataclass(frozen=True, kw_only=True)
class HudiMetadataTasks(MetadataTasks):
    """The timeline of a table in tasks: one reads everything."""

    history: HudiHistory

    def of_state(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - nothing is prefetched
        return self._of_state(version, for_lifetimes=False)

    def of_lifetimes(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - as above
        return self._of_state(version, for_lifetimes=True)

    def _of_state(self, version: int, *, for_lifetimes: bool) -> StateTasks:
        task = HudiStateTask(version=version, source=self.history.containing([version]), for_lifetimes=for_lifetimes)
        return StateTasks(tasks=[task], keeps_last_add=False)

    def of_changes(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:  # noqa: ARG002 - as above
        if not versions:
            return ()
        source = self.history.containing(versions)
        task = HudiCommitsTask(version=versions[0], versions=tuple(versions), source=source, for_lifetimes=lifetimes)
        return [task]

    def reader(self) -> TaskReader:
        return read_task


def read_task(task: MetadataTask) -> Iterator[pa.Table]:
    """Yield the RECORDS of a task. Reads the metadata of all commits in the listing of the task."""
    if isinstance(task, HudiStateTask):
        yield _of_state(task)
    elif isinstance(task, HudiCommitsTask):
        yield from _of_commits(task)


def _of_state(task: HudiStateTask) -> pa.Table:
    source, state = task.source, task.source.state
    version = max(task.version, source.earliest or task.version) if task.for_lifetimes else task.version
    files = files_frame(source.config, state.at(version, source.storage.root), state.start)
    records = of_live_files(files, version)
    index = records.schema.get_field_index("committed_at")
    times = pa.repeat(pa.scalar(committed_at(source, [version])[0], records.schema.field(index).type), len(records))
    return records.set_column(index, records.schema.field(index), times)


def _of_commits(task: HudiCommitsTask) -> Iterator[pa.Table]:
    source, state = task.source, task.source.state
    versions: Sequence[int] = task.versions
    if task.for_lifetimes and (earliest := source.earliest) is not None:
        versions = [version for version in versions if version > earliest]
    for begin in range(0, len(versions), _COMMITS):
        batch = versions[begin : begin + _COMMITS]
        times = dict(zip(batch, committed_at(source, batch), strict=True)) if task.for_lifetimes else None
        yield of_changes(changes_frame(source, state, batch), times)
