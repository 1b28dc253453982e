"""`Hudi`: a Hudi table on storage, an implementation of `formats.TableFormat`."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.core.records import ChangeMode, Inspection, Listing
from snapshot_explorer.formats.capabilities import MetadataLayout
from snapshot_explorer.formats.hudi.expiry.maintenance import HudiMaintenance
from snapshot_explorer.formats.hudi.frames.commits import HudiClock, commits_frame
from snapshot_explorer.formats.hudi.frames.files import changes_frame
from snapshot_explorer.formats.hudi.inspect.inspections import INSPECTIONS, inspect_table
from snapshot_explorer.formats.hudi.metadata.commits import written_files
from snapshot_explorer.formats.hudi.metadata.history import HudiHistory, before_note, committed_at
from snapshot_explorer.formats.hudi.metadata.properties import FOLDER, PROPERTIES, has_properties
from snapshot_explorer.formats.hudi.metadata_tasks import HudiMetadataTasks
from snapshot_explorer.formats.hudi.version import HudiVersion
from snapshot_explorer.formats.interface import Changelogs, Repairs, RowChanges, TableFormat, digest_of
from snapshot_explorer.storage import Storage


class Hudi(TableFormat):
    """A Hudi table. A version is the time at which a completed write was requested. Thread-safe."""

    name: ClassVar[str] = "hudi"
    title: ClassVar[str] = "Hudi"
    metadata_layout: ClassVar[MetadataLayout] = MetadataLayout(
        folders=frozenset((FOLDER,)),
        file_names=re.compile(
            r"hoodie\.properties(?:\.backup)?|\.hoodie_partition_metadata(?:\.\w+)?"
            r"|\d{14,17}(?:_\d{14,17})?\.(?:[a-z]+\.)?(?:[a-z]*commit|requested|inflight|clean|rollback|savepoint)",
            re.ASCII,
        ),
        first_file=PROPERTIES,
    )
    repairs: ClassVar[Repairs | None] = Repairs(
        restore_command="CALL rollback_to_savepoint(table => '{name}', instant_time => '{version}')",
        restores_only_tags=True,
        restore_note="A rollback to a savepoint deletes all later instants: it cannot be undone.",
    )
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    has_ordered_times: ClassVar[bool] = False

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table. Reads nothing."""
        super().__init__(storage, branch=branch)
        self._history = HudiHistory(storage)

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder has the properties of a Hudi table. One request, or two without them."""
        return FOLDER in folders and has_properties(storage)

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions: the completed writes of the active and of the archived timeline.

        Reads the properties, lists the timeline and its archive, and reads files of the archive that are new.
        """
        self._history.expect_partitions(self.detection.folders)
        source = self._history.refresh()
        return Listing(
            versions=tuple(version for version in source.versions if start is None or version >= start),
            identity=source.identity,
            earliest=source.earliest,
            after_gaps=source.after_gaps,
            is_contiguous=False,
            pending=tuple(item.time for item in source.timeline.instants if item.state != "completed"),
            first=source.versions[0] if source.versions else None,
            before_note=before_note(source),
            corrections=source.filled,
        )

    def version(self, number: int | None) -> HudiVersion:
        """Return one version; the empty table for None. At most one listing."""
        source = self._history.current() if number is None else self._history.having(number)
        return HudiVersion(self._storage, number, self._history, source)

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was completed, or requested in layout 1; from names, in the writer's zone."""
        return committed_at(self._history.containing(versions), versions)

    def read_newest(self, count: int) -> None:
        self._history.current().read_newest(count)

    def commits(self, versions: Sequence[int], *, columns: Collection[str] | None = None) -> pa.Table:  # noqa: ARG002 - few
        source = self._history.containing(versions)
        tags: dict[int, list[str]] = {}
        for name, version in source.savepoints.items():
            tags.setdefault(version, []).append(name)
        return commits_frame(source, versions, tags)

    def fingerprint(self, version: int) -> str:
        """Return the hash of the instant and of the paths that it wrote: the archive has the same."""
        source = self._history.containing([version])
        paths = written_files(source.commits([version])).column("path").to_pylist()
        return digest_of(source.instant(version).text, sorted(paths))

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:  # noqa: ARG002 - in the commits too
        """Return the CHANGES frame. Reads the metadata of all commits that was not read before."""
        source = self._history.containing(versions)
        return changes_frame(source, source.state, versions)

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        """Return the rows that changed after `first` up to `last`, in the schema of `last`; see `splits_between`."""
        version = self.version(last)
        if first != last and first >= self._history.current().versions[0]:
            self._history.having(first)
        return version.changes(first, mode)

    def inspect(self, name: str) -> pa.Table:
        return inspect_table(name, self._history.current())

    def tags(self) -> dict[str, int]:
        """Return the savepoints. The name of a savepoint is its version."""
        return self._history.current().savepoints

    @property
    def clock(self) -> HudiClock:
        return HudiClock(history=self._history)

    @property
    def changelogs(self) -> Changelogs:
        return Changelogs(of_version=lambda number: self.version(number).changelog_files())

    @property
    def maintenance(self) -> HudiMaintenance:
        return HudiMaintenance(format_name=self.name, storage=self._storage, history=self._history)

    @property
    def metadata_tasks(self) -> HudiMetadataTasks:
        return HudiMetadataTasks(history=self._history)

    def __reduce__(self) -> tuple[type["Hudi"], tuple[Storage]]:
        return Hudi, (self._storage,)
