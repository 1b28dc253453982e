"""`Hudi`: a Hudi table on storage, an implementation of `formats.TableFormat`."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.records import ChangeMode, Inspection, Listing
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import FileCheck
from snapshot_explorer.formats.hudi.expiry import cleaning
from snapshot_explorer.formats.hudi.expiry.orphans import clean_up, named_files
from snapshot_explorer.formats.hudi.expiry.presence import presence_of
from snapshot_explorer.formats.hudi.files.whole_files import file_check
from snapshot_explorer.formats.hudi.frames.commits import commits_frame
from snapshot_explorer.formats.hudi.frames.files import changes_frame
from snapshot_explorer.formats.hudi.inspect.inspections import INSPECTIONS, inspect_table
from snapshot_explorer.formats.hudi.metadata.history import HudiHistory, HudiSource, before_note, committed_at
from snapshot_explorer.formats.hudi.metadata.properties import FOLDER, PROPERTIES, has_properties
from snapshot_explorer.formats.hudi.metadata_tasks import HudiCommitsTask, HudiStateTask, read_task
from snapshot_explorer.formats.hudi.version import HudiVersion
from snapshot_explorer.formats.interface import RepairSyntax, RowChanges, TableFormat
from snapshot_explorer.formats.metadata_tasks import MetadataTask, Prefetch, StateTasks, TaskReader
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.storage import Storage


class Hudi(TableFormat):
    """A Hudi table. A version is the time at which a completed write was requested. Thread-safe."""

    name: ClassVar[str] = "hudi"
    title: ClassVar[str] = "Hudi"
    restore_command: ClassVar[str] = "CALL rollback_to_savepoint(table => '{name}', instant_time => '{version}')"
    repairs: ClassVar[RepairSyntax | None] = RepairSyntax(
        restores_only_tags=True,
        restore_note="A rollback to a savepoint deletes all later instants: it cannot be undone.",
    )
    metadata_folders: ClassVar[frozenset[str]] = frozenset((FOLDER,))
    metadata_names: ClassVar[re.Pattern[str]] = re.compile(
        r"hoodie\.properties(?:\.backup)?|\.hoodie_partition_metadata(?:\.\w+)?"
        r"|\d{14,17}(?:_\d{14,17})?\.(?:[a-z]+\.)?(?:[a-z]*commit|requested|inflight|clean|rollback|savepoint)",
        re.ASCII,
    )
    first_file: ClassVar[str | None] = PROPERTIES
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    has_ordered_times: ClassVar[bool] = False
    has_changelogs: ClassVar[bool] = True
    unsearched_values: ClassVar[str | None] = "the metadata table in .hoodie/metadata, with its column statistics"

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table. Reads nothing."""
        if branch is not None:
            raise TableNotFoundError(
                f"{storage.root} has no branch {branch!r}: Hudi tables have no branches. Open it without a branch."
            )
        self._storage = storage
        self._history = HudiHistory(storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder has the properties of a Hudi table. One request, or two without them."""
        return FOLDER in folders and has_properties(storage)

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions: the completed writes of the active and of the archived timeline.

        Reads the properties, lists the timeline and its archive, and reads files of the archive that are new.
        """
        self._history.expect_partitions(self.root_folders)
        source = self._history.refresh()
        return Listing(
            versions=tuple(version for version in source.versions if start is None or version >= start),
            identity=source.identity,
            earliest=source.earliest,
            after_gaps=source.after_gaps,
            is_contiguous=False,
            first=source.versions[0] if source.versions else None,
            before_note=before_note(source),
        )

    def version(self, number: int | None) -> HudiVersion:
        """Return one version; the empty table for None. At most one listing."""
        source = self._history.current() if number is None else self._history.having(number)
        return HudiVersion(self._storage, number, self._history, source)

    @property
    def clock_note(self) -> str | None:
        if self._history.current().config.has_utc_times:
            return None
        return (
            "Times are as the writers' clocks showed them, in zones that are not recorded: "
            "hoodie.table.timeline.timezone is not UTC."
        )

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was completed, or requested in layout 1; from names, in the writer's zone."""
        return committed_at(self._with(versions), versions)

    def read_newest(self, count: int) -> None:
        self._history.current().read_newest(count)

    def commits(self, versions: Sequence[int]) -> pa.Table:
        source = self._with(versions)
        tags: dict[int, list[str]] = {}
        for name, version in self._savepoints(source).items():
            tags.setdefault(version, []).append(name)
        return commits_frame(source, versions, tags)

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:  # noqa: ARG002 - in the commits too
        """Return the CHANGES frame. Reads the metadata of all commits that was not read before."""
        source = self._with(versions)
        return changes_frame(source, source.state, versions)

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        """Return the rows that changed after `first` up to `last`, in the schema of `last`; see `splits_between`."""
        version = self.version(last)
        if first != last and first >= self._history.current().versions[0]:
            self._history.having(first)
        return version.changes(first, mode)

    def file_check(self) -> FileCheck:
        return file_check(self._history.current())

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:  # noqa: ARG002 - of files alone
        return presence_of(self._storage, self._history.current().config, lifetimes)

    def expiry(
        self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None, unread: Collection[int] = ()
    ) -> Expiry:
        """Return the versions and files that the cleaner would delete with a rule. Lists each folder with files."""
        source = self._history.current()
        gone = presence_of(self._storage, source.config, lifetimes).gone
        savepoints = sorted(self._savepoints(source).values())
        return cleaning.expiry(source, rule, lifetimes, newest, gone=gone, savepoints=savepoints, unread=unread)

    def named_files(self, listed: pa.Array) -> NamedFiles:
        return named_files(self._history.refresh(), listed)

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        return clean_up(self._storage.root, files, now)

    def inspect(self, name: str) -> pa.Table:
        return inspect_table(name, self._history.current())

    def state_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - one task reads everything
        return self._state_task(version, for_lifetimes=False)

    def lifetime_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:  # noqa: ARG002 - as above
        return self._state_task(version, for_lifetimes=True)

    def _state_task(self, version: int, *, for_lifetimes: bool) -> StateTasks:
        task = HudiStateTask(version=version, source=self._with([version]), for_lifetimes=for_lifetimes)
        return StateTasks(tasks=[task], keeps_last_add=False)

    def change_tasks(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:  # noqa: ARG002 - as above
        if not versions:
            return ()
        source = self._with(versions)
        task = HudiCommitsTask(version=versions[0], versions=tuple(versions), source=source, for_lifetimes=lifetimes)
        return [task]

    def task_reader(self) -> TaskReader:
        return read_task

    def tags(self) -> dict[str, int]:
        """Return the savepoints. The name of a savepoint is its version."""
        return self._savepoints(self._history.current())

    def _savepoints(self, source: HudiSource) -> dict[str, int]:
        saved = [item for item in source.timeline.of_action("savepoint") if item.state == "completed"]
        return {item.text: item.time for item in saved if item.time in source.writes}

    def _with(self, versions: Sequence[int]) -> HudiSource:
        """Return a listing that contains these versions."""
        source = self._history.current()
        missing = [version for version in versions if version not in source.writes]
        return self._history.having(missing[0]) if missing else source

    def __reduce__(self) -> tuple[type["Hudi"], tuple[Storage]]:
        return Hudi, (self._storage,)
