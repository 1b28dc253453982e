"""`Delta`: a Delta table on storage, an implementation of `formats.TableFormat`."""

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, SnapshotNotFoundError, TableNotFoundError
from snapshot_explorer.core.records import (
    ChangeMode,
    ChangesWithStatistics,
    Inspection,
    Listing,
    TableSchema,
)
from snapshot_explorer.formats.capabilities import MetadataLayout
from snapshot_explorer.formats.delta import metadata_tasks
from snapshot_explorer.formats.delta.changes.events import HIDDEN
from snapshot_explorer.formats.delta.changes.row_changes import ChangeData
from snapshot_explorer.formats.delta.expiry.maintenance import DeltaMaintenance
from snapshot_explorer.formats.delta.frames.commits import BRIEF, DeltaHistory
from snapshot_explorer.formats.delta.frames.recorded_times import DeltaClock
from snapshot_explorer.formats.delta.inspect.inspections import INSPECTIONS, DeltaInspector
from snapshot_explorer.formats.delta.metadata.hints import CheckpointHint, read_hint
from snapshot_explorer.formats.delta.metadata.layout import LOG
from snapshot_explorer.formats.delta.metadata.log import DeltaLog, check_published
from snapshot_explorer.formats.delta.metadata.log_segment import LogListing, earliest
from snapshot_explorer.formats.delta.metadata.records import Actions, Metadata
from snapshot_explorer.formats.delta.metadata.schema import schema_of, table_schema
from snapshot_explorer.formats.delta.metadata.times import Times
from snapshot_explorer.formats.delta.metadata_tasks import DeltaMetadataTasks
from snapshot_explorer.formats.delta.repairs import DeltaRepairs
from snapshot_explorer.formats.delta.version import DeltaVersion
from snapshot_explorer.formats.interface import Changelogs, Repairs, RowChanges, TableFormat, digest_of
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000


class Delta(TableFormat):
    """A Delta table. Caches the listing of its log and recent states. Thread-safe."""

    name: ClassVar[str] = "delta"
    title: ClassVar[str] = "Delta Lake"
    metadata_layout: ClassVar[MetadataLayout] = MetadataLayout(
        folders=frozenset((LOG,)),
        file_names=re.compile(r"\d{20}\.(?:[\w.-]+\.)?(?:json|crc|parquet)|_last_checkpoint", re.ASCII),
    )
    repairs: ClassVar[Repairs | None] = DeltaRepairs(
        restore_command="RESTORE TABLE {name} TO VERSION AS OF {version}",
        time_travel="VERSION AS OF {version}",
        path_schema="delta",
        replaces_rows_at_once=True,
        restores_schema=True,
        restore_note="RESTORE is a commit of its own: later versions remain and can be restored in the same way.",
    )
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    has_exact_row_counts: ClassVar[bool] = True

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        super().__init__(storage, branch=branch)
        self._log = DeltaLog(storage)
        self._times = Times(storage, self._log)
        self._history = DeltaHistory(storage, self._log, self._times)
        self._last_metadata: tuple[int, int, Metadata] | None = None  # generation, version, its metadata

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:  # noqa: ARG003 - others read
        """Return whether the folder has a log. No request.

        Source: delta PROTOCOL.md, "File Types".
        """
        return LOG in folders

    def listing(self, start: int | None = None) -> Listing:
        """Return the listing of versions.

        Lists the log once; without `start`, also reads the hint, and the versions begin with the checkpoint of the
        newest version. If there are staged commits, lists them.
        """
        hint, notes, log_listing = self._hint_and_listing() if start is None else (None, (), self._log.refresh())
        if start is None:
            self._log.hint = hint
        first_checkpoint = start if hint is None else hint.version
        versions = log_listing.versions
        if not versions:
            if start is None:
                raise _no_table(self._storage, is_empty=log_listing.is_empty)
            return Listing(versions=(), identity=(), start=0)
        try:
            segment = self._log.newest(log_listing, first_checkpoint or None)
        except CorruptTableError:
            # A listing during two commits may contain only the second one.
            log_listing = self._log.refresh()
            versions, segment = log_listing.versions, self._log.newest(log_listing, first_checkpoint or None)
        for folder in log_listing.staged:
            check_published(self._storage, self._log, folder, segment.version)
        first = segment.checkpoint_version or 0
        last = segment.last_commit or segment.checkpoint[0]
        return Listing(
            versions=tuple(version for version in versions if version >= (first if start is None else start)),
            unloadable=log_listing.unloadable,
            identity=(segment.version, last.identity, self._log.generation),
            checkpoint=segment.checkpoint_version,
            start=first,
            without_commit=log_listing.without_commit,
            notes=(*notes, *segment.notes),
            earliest=earliest(log_listing),
            first=0,
        )

    def _hint_and_listing(self) -> tuple[CheckpointHint | None, tuple[str, ...], LogListing]:
        """Return the parsed hint, notes on it, and a listing of the log that is not older than the hint."""
        (hint, notes), listing = self._storage.together(partial(read_hint, self._storage), self._log.refresh)
        versions = listing.versions
        if hint is not None and versions and versions[-1] < hint.version:
            listing = self._log.refresh()  # a writer added a commit and its checkpoint during both reads
        return hint, notes, listing

    def version(self, number: int | None) -> DeltaVersion:
        segment = self._log.segment(number)
        return DeltaVersion(self._storage, segment.version, log=self._log, times=self._times)

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return the commit time of each version, aware, UTC: Delta's adjusted file times, or in-commit timestamps.

        Uses the listing, unless commits contain their times: then it reads one commit file for each; see `Times`.
        """
        return self._times.committed_at(versions)

    def candidates_at(self, time: datetime, versions: Sequence[int], *, follow_log: bool = True) -> Sequence[int]:  # noqa: ARG002 - the log cannot be rolled back
        return self._times.searched(time, versions)

    def read_newest(self, count: int) -> None:
        self._log.read_newest(count)

    def commits(self, versions: Sequence[int], *, columns: Collection[str] | None = None) -> pa.Table:
        is_brief = columns is not None and BRIEF.issuperset(columns)
        return self._history.brief_frame(versions) if is_brief else self._history.frame(versions)

    def fingerprint(self, version: int) -> str:
        """Return the hash of the commit file; of a version without one, of the paths of its files."""
        if version in self._log.listing().without_commit:
            return digest_of(sorted(self._log.state(version).adds["path"].to_pylist()))
        (file,) = self._log.commit_files([version])
        return digest_of(self._storage.read(file.path, immutable=True))

    def inspect(self, name: str) -> pa.Table:
        return DeltaInspector(self._storage, self._log, self._times).of_table(name)

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:  # noqa: ARG002 - in the commits too
        """Return the CHANGES frame: per version its removed files, added files and change data files.

        Reads the commits, one request each, and the metadata in force at the first of them.
        """
        parts = [
            self._changes(versions[begin : begin + _AT_ONCE]) for begin in range(0, max(1, len(versions)), _AT_ONCE)
        ]
        return pa.concat_tables(parts)

    def schemas(self, versions: Sequence[int]) -> Sequence[TableSchema]:
        by_version: dict[int, TableSchema] = {}
        ascending = sorted(set(versions))
        for begin in range(0, len(ascending), _AT_ONCE):
            batch = ascending[begin : begin + _AT_ONCE]
            in_force = self._metadata_of(batch, self._log.actions(batch, infos=False))
            starts = [version for version, _ in in_force]
            known = [table_schema(metadata) for _, metadata in in_force]
            by_version |= {version: known[bisect_right(starts, version) - 1] for version in batch}
        return [by_version[version] for version in versions]

    def changes_with_statistics(
        self, versions: Sequence[int], columns: Sequence[str], at: int
    ) -> ChangesWithStatistics:
        schema = schema_of(self._log.protocol_and_metadata(at)[1])
        changes, added, schemas = [], [], []
        for begin in range(0, max(1, len(versions)), _AT_ONCE):
            batch = versions[begin : begin + _AT_ONCE]
            actions = self._log.actions(batch, infos=False)
            in_force = self._metadata_of(batch, actions)
            changes.append(metadata_tasks.changes_of(actions, batch, in_force))
            added.append(metadata_tasks.statistics_of(actions.adds, in_force, columns, schema))
            schemas += [(version, table_schema(metadata)) for version, metadata in in_force]
        return ChangesWithStatistics(
            changes=pa.concat_tables(changes), added=pa.concat_tables(added), schemas=tuple(schemas)
        )

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        change_data = ChangeData(self._storage, self._log, self._times)
        return RowChanges(
            schema=change_data.schema(first, last),
            metadata_columns=HIDDEN,
            splits=lambda _: change_data.between(first, last, mode),
            reader=self.version(last),
        )

    @property
    def clock(self) -> DeltaClock:
        return DeltaClock()

    @property
    def changelogs(self) -> Changelogs:
        return Changelogs(of_version=lambda number: self.version(number).changelog_files())

    @property
    def maintenance(self) -> DeltaMaintenance:
        return DeltaMaintenance(format_name=self.name, storage=self._storage, log=self._log, times=self._times)

    @property
    def metadata_tasks(self) -> DeltaMetadataTasks:
        return DeltaMetadataTasks(storage=self._storage, log=self._log, times=self._times)

    def __reduce__(self) -> tuple[type["Delta"], tuple[Storage]]:
        return Delta, (self._storage,)

    def _changes(self, versions: Sequence[int]) -> pa.Table:
        actions = self._log.actions(versions, infos=False)
        self._history.keep_brief(versions, actions)
        return metadata_tasks.changes_of(actions, versions, self._metadata_of(versions, actions))

    def _metadata_of(self, versions: Sequence[int], actions: Actions) -> list[tuple[int, Metadata]]:
        """Return the metadata in force at the first version, and at each version that changes it, ascending."""
        result: list[tuple[int, Metadata]] = []
        generation, last = self._log.generation, self._last_metadata
        # A caller that reads the log in order continues after the version of the last call.
        before = last[1] if last is not None and last[0] == generation else None
        for version in sorted(set(versions)):
            if version in actions.metadatas:
                result.append((version, actions.metadatas[version]))
            elif before is None or version != before + 1:
                result.append((version, self._metadata_near(version)))
            elif not result and last is not None:
                result.append((version, last[2]))
            before = version
        if result and before is not None:
            self._last_metadata = generation, before, result[-1][1]
        return result

    def _metadata_near(self, version: int) -> Metadata:
        """Return the metadata at a version; if it cannot be reconstructed, at the earliest version that can."""
        try:
            return self._log.protocol_and_metadata(version)[1]
        except SnapshotNotFoundError:
            return self._log.protocol_and_metadata(self._log.earliest())[1]


def _no_table(storage: Storage, *, is_empty: bool) -> TableNotFoundError:
    state = "is empty" if is_empty else "contains no commit and no complete checkpoint"
    return TableNotFoundError(
        f"{storage.root} is not a Delta table: its folder {LOG} {state}. Check the path; if the table was copied, copy "
        "its log too."
    )
