"""`Delta`: a Delta table on storage, as `formats.TableFormat` asks for it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import BrokenTableError, SnapshotNotFoundError, TableNotFoundError
from snapshot_explorer.formats.delta import planning, units
from snapshot_explorer.formats.delta import read as rows
from snapshot_explorer.formats.delta import schema as schemas
from snapshot_explorer.formats.delta import statistics as values
from snapshot_explorer.formats.delta.catalogs import check_published
from snapshot_explorer.formats.delta.change_data import ChangeData
from snapshot_explorer.formats.delta.entries import entries_of
from snapshot_explorer.formats.delta.events import HIDDEN, Events, read_events
from snapshot_explorer.formats.delta.file_frames import files_frame, manifests_frame
from snapshot_explorer.formats.delta.hints import read_hint
from snapshot_explorer.formats.delta.history import History
from snapshot_explorer.formats.delta.inspections import INSPECTIONS, Inspector
from snapshot_explorer.formats.delta.layout import LOG
from snapshot_explorer.formats.delta.log import Log
from snapshot_explorer.formats.delta.log_segment import earliest
from snapshot_explorer.formats.delta.partitions import partition_texts, partitions_of
from snapshot_explorer.formats.delta.pieces import deleted, pieces, stored
from snapshot_explorer.formats.delta.records import Actions, Metadata, State
from snapshot_explorer.formats.delta.retention import Vacuum
from snapshot_explorer.formats.delta.times import Times
from snapshot_explorer.formats.delta.upkeep import upkeep_of
from snapshot_explorer.formats.retained import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.roaring import Positions
from snapshot_explorer.formats.units import Look, Reader, Unit
from snapshot_explorer.model import (
    Branch,
    ChangeMode,
    Examined,
    Inspection,
    Listing,
    Predicate,
    ReadPlan,
    Split,
    StoredRows,
    TableSchema,
    Upkeep,
)
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000
"""Commits whose actions are in memory at the same time."""


class Delta:
    """A Delta table. Keeps the listing of its log and the states it has reconstructed. Safe for several threads."""

    name: ClassVar[str] = "delta"
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    keeps_last_add: ClassVar[bool] = True

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table; reads nothing.

        Raises:
            TableNotFoundError: A branch is asked for: Delta tables have none.
        """
        if branch is not None:
            raise TableNotFoundError(
                f"{storage.root} has no branch {branch!r}: Delta tables have no branches. Open it without a branch."
            )
        self._storage = storage
        self._log = Log(storage)
        self._times = Times(storage, self._log)
        self._history = History(storage, self._log, self._times)
        self._inspector = Inspector(storage, self._log, self._times)
        self._changed = ChangeData(storage, self._log, self._times)
        self._vacuum = Vacuum(storage, self._log, self._times.committed_at)
        self._told: tuple[int, int, Metadata] | None = None  # generation, version, its metadata

    @classmethod
    def recognises(cls, storage: Storage) -> bool:
        """Return whether the folder has a log. One listing.

        Source: delta PROTOCOL.md, "File Types".
        """
        return LOG in storage.folders("")

    def listing(self, start: int | None = None) -> Listing:
        """Return which versions there are.

        One listing of the log; without `start` the hint is read too, and the versions begin with the checkpoint that
        the newest version is made from. Where there are staged commits, a listing of them.

        Raises:
            TableNotFoundError: The log is gone or, without `start`, empty.
            StorageError: The log lacks versions that it had, other than its oldest ones.
            BrokenTableError: The log has a gap before the newest version, or begins too late.
            UnsupportedFeatureError: A catalog decides which of the staged commits count.
        """
        hint, notes = read_hint(self._storage) if start is None else (start, ())
        found = self._log.refresh()
        versions = found.versions()
        if not versions:
            if start is None:
                raise _no_table(self._storage, is_empty=found.is_empty)
            return Listing(versions=(), identity=(), start=0)
        try:
            segment = self._log.newest(found, hint or None)
        except BrokenTableError:
            # A listing that is made while two commits land may show the second one alone.
            found = self._log.refresh()
            versions, segment = found.versions(), self._log.newest(found, hint or None)
        if found.has_staged:
            check_published(self._storage, self._log, segment.version)
        first = segment.checkpoint_version or 0
        last = segment.last_commit or segment.checkpoint[0]
        return Listing(
            versions=tuple(one for one in versions if one >= (first if start is None else start)),
            lost=found.lost,
            identity=(segment.version, last.identity, self._log.generation),
            checkpoint=segment.checkpoint_version,
            start=first,
            commitless=found.commitless,
            notes=(*notes, *segment.notes),
            earliest=earliest(found),
        )

    def examine(self, version: int) -> Examined:
        """Return the table's id, and how the version's checksum file contradicts the log.

        Reads the checksum file, and of the log what tells protocol and metadata: the commits after the checkpoint and,
        where these do not tell, the checkpoint.

        Raises:
            BrokenTableError: The version has no protocol or no metadata, or a file is damaged.
        """
        table_id, notes = self._log.verify(version)
        return Examined(table_id=table_id, notes=tuple(notes))

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware, UTC: by Delta's adjusted file times, or in-commit timestamps.

        From the listing alone, unless commits carry their times: then a commit file for each; see `Times`.
        """
        return self._times.committed_at(versions)

    def searched(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:
        """Return the run of these versions in which the last one committed by a time is to be looked for."""
        return self._times.searched(time, versions)

    def check_reachable(self, version: int) -> None:
        """Raise SnapshotNotFoundError if a version can not be reconstructed. A listing at most."""
        self._log.segment(version)

    def commits(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame, in the order asked for; `History.frame` tells what it reads."""
        return self._history.frame(versions)

    def inspect(self, name: str, version: int | None) -> pa.Table:
        """Return DESCRIBE HISTORY, DESCRIBE DETAIL or another of `inspections`, with the columns of Delta's own.

        Raises:
            BadReferenceError: There is no such table, or a version is given where none makes sense.
            SnapshotNotFoundError: The version can not be reconstructed.
            BrokenTableError: A file of the log is missing or damaged; the message names it.
        """
        return self._inspector.inspect(name, version)

    def expiry(self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None) -> Expiry:
        """Return what VACUUM with a rule would take; see `Vacuum.expiry`."""
        return self._vacuum.expiry(rule, lifetimes, newest)

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:  # noqa: ARG002 - the log is there
        """Return which data files and deletion vectors are there; see `Vacuum.presence`."""
        return self._vacuum.presence(lifetimes)

    def manifests(self, version: int) -> pa.Table:
        """Return the MANIFESTS frame: the files of the checkpoint as base, the commits after it as delta.

        Reads both; nothing else tells how many files they hold.
        """
        checkpoint = self._log.checkpoint_files(version)
        segment = self._log.segment(version)
        actions = self._log.actions([commit.version for commit in segment.commits], infos=False)
        return manifests_frame(segment, checkpoint, actions)

    def manifest_entries(self, version: int, path: str) -> pa.Table:
        """Return the ENTRIES of a commit or a file of a checkpoint that the version is made of; see `entries_of`."""
        return entries_of(self._storage, self._log, version, path)

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:  # noqa: ARG002 - in the commits too
        """Return the CHANGES frame: per version the files it removed, those it added, and those of change data.

        Reads the commits, a request each, and what tells the partition columns at the first of them.

        Raises:
            SnapshotNotFoundError: The commit of a version is gone.
            BrokenTableError: A commit is damaged; the file and the line are named.
        """
        parts = [
            self._changes(versions[begin : begin + _AT_ONCE]) for begin in range(0, max(1, len(versions)), _AT_ONCE)
        ]
        return pa.concat_tables(parts)

    def files(self, version: int, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame of a version, of the partitions that the predicate may match.

        Reads the checkpoint and the commits after it, unless they are kept.

        Raises:
            SnapshotNotFoundError: The version does not exist, or can not be reconstructed any more.
            BrokenTableError: A file is missing or damaged; the message names it.
        """
        state = self._log.state(version)
        adds = _of_partitions(state, predicate)
        counted = values.rows_of(adds)
        frame = files_frame(adds, partitions=partition_texts(adds, state.metadata), rows=counted)
        return values.with_statistics(frame, adds, state.metadata) if statistics else frame

    def measured_files(self, version: int) -> pa.Table:
        """Return FILES and `delete_records`, which are not known here: null. Reads as `files` does."""
        files = self.files(version)
        return files.append_column("delete_records", pa.nulls(len(files), pa.int64()))

    def upkeep(self, version: int) -> Upkeep:
        """Return what the properties at a version say of the table's upkeep; see `upkeep.upkeep_of`."""
        return upkeep_of(self.properties(version), self._storage.root)

    def schema(self, version: int | None) -> TableSchema:
        """Return the schema in force at a version; the newest one for None."""
        return schemas.table_schema(self._metadata(version))

    def properties(self, version: int | None) -> Mapping[str, str]:
        """Return the table's properties in force at a version; the newest ones for None."""
        return self._metadata(version).configuration

    def tags(self) -> Mapping[str, int]:
        """Return no tag: Delta has none."""
        return {}

    def branches(self) -> Sequence[str]:
        """Return no branch: Delta has none."""
        return ()

    def forks(self) -> Sequence[Branch]:
        """Return no branch: Delta has none."""
        return ()

    def arrow_schema(self, version: int | None) -> pa.Schema:
        """Return the Arrow schema of the rows at a version; of the newest schema for None."""
        return schemas.arrow_schema(self._metadata(version))

    def hidden_columns(self, names: Sequence[str], version: int | None) -> pa.Schema:
        """Return those of the names that are columns which are given only when asked for: `_row_id` and the like.

        Raises:
            BadReferenceError: The table does not track its rows at the version.
        """
        return rows.hidden_columns(names, self._metadata(version))

    def splits(self, version: int, predicate: Predicate | None = None) -> Sequence[Split]:
        """Return the units of reading the rows of a version that the predicate may match; see `plan`."""
        return self.plan(version, predicate).splits

    def plan(self, version: int, predicate: Predicate | None = None) -> ReadPlan:
        """Return the units of reading the rows of a version, and what the predicate spares.

        Files are skipped by partition and statistics, all from the log: no data file is opened.

        Raises:
            UnsupportedFeatureError: The version needs a feature that is not read; no data file has been opened.
        """
        return planning.plan(self._storage, self._log.state(version), predicate)

    def changelog(self, version: int, predicate: Predicate | None = None) -> Sequence[Split]:  # noqa: ARG002 - spares nothing
        """Return the units of reading what a version changed, under its own schema; see `ChangeData.of_version`."""
        return self._changed.of_version(version)

    def row_changes(
        self,
        first: int,
        last: int,
        mode: ChangeMode,
        predicate: Predicate | None = None,  # noqa: ARG002 - spares nothing
    ) -> Sequence[Split]:
        """Return the units of reading what changed after `first` up to `last`; see `ChangeData.between`."""
        return self._changed.between(first, last, mode)

    def change_schema(self, first: int, last: int) -> pa.Schema:
        """Return the newest schema or, with column mapping, that of `last`: under it changes are told."""
        return self._changed.schema(first, last)

    def hidden_change_columns(self) -> pa.Schema:
        """Return `_change_type`, `_commit_version` and `_commit_timestamp`."""
        return HIDDEN

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as Delta means them, with these columns in this order."""
        if isinstance(split.detail, Events):
            return read_events(self._storage, split.detail, columns)
        return rows.read(self._storage, split, columns, removed_in=self._log.removed_in)

    def state_units(self, version: int, look: Look) -> Sequence[Unit]:
        """Return the units that tell the live files of a version; see `units.state_units`."""
        return units.state_units(self._storage, self._log, version, look)

    def change_units(self, versions: Sequence[int], look: Look, *, lifetimes: bool) -> Sequence[Unit]:
        """Return the units that tell what commits changed; see `units.change_units`."""
        listed = self._times.listed(versions) if lifetimes else None
        return units.change_units(self._storage, self._log, versions, look, listed)

    def unit_reader(self) -> Reader:
        """Return what reads units."""
        return units.unit_reader(self._storage)

    def missing(self, splits: Sequence[Split]) -> Sequence[str]:
        """Return the data files of splits that are not there, as far as asking is quick; see `Storage.missing`."""
        return self._storage.missing([path for split in splits for path in split.files])

    def pieces(self, split: Split) -> Sequence[Split]:
        """Return a split of rows cut into one for each of its files; one of changes as it is."""
        return pieces(split)

    def stored(self, split: Split) -> StoredRows | None:
        """Return where other readers find the rows of a split: not with columns found by id."""
        return stored(self._storage, split)

    def deleted(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return for each part, a file each, the positions of the rows that its deletion vector takes away."""
        return deleted(self._storage, parts, rows)

    def __reduce__(self) -> tuple[type["Delta"], tuple[Storage]]:
        return Delta, (self._storage,)

    def _metadata(self, version: int | None) -> Metadata:
        if version is None:
            version = self._log.segment().version
        return self._log.protocol_and_metadata(version)[1]

    def _changes(self, versions: Sequence[int]) -> pa.Table:
        actions = self._log.actions(versions, infos=False)
        return units.changes_of(actions, versions, self._metadata_of(versions, actions))

    def _metadata_of(self, versions: Sequence[int], actions: Actions) -> list[tuple[int, Metadata]]:
        """Return the metadata in force from some versions on, ascending: of the first, and where they change."""
        found: list[tuple[int, Metadata]] = []
        generation, told = self._log.generation, self._told
        # Whoever goes through the log asks next for what follows what was told last.
        before = told[1] if told is not None and told[0] == generation else None
        for version in sorted(set(versions)):
            if version in actions.metadatas:
                found.append((version, actions.metadatas[version]))
            elif before is None or version != before + 1:
                found.append((version, self._metadata_near(version)))
            elif not found and told is not None:
                found.append((version, told[2]))
            before = version
        if found and before is not None:
            self._told = generation, before, found[-1][1]
        return found

    def _metadata_near(self, version: int) -> Metadata:
        """Return the metadata at a version; where it can not be reconstructed, those of the earliest that can."""
        try:
            return self._metadata(version)
        except SnapshotNotFoundError:
            return self._metadata(self._log.earliest())


def _of_partitions(state: State, predicate: Predicate | None) -> pa.Table:
    names = frozenset(state.metadata.partition_columns)
    part = predicate.on(names) if predicate is not None and names else None
    if part is None:
        return state.adds
    found = partitions_of(state.adds, schemas.schema_of(state.metadata))
    passes = np.asarray(part.mask(found.values).to_numpy(zero_copy_only=False), np.bool_)
    return state.adds.filter(pa.array(passes[found.of_rows]))


def _no_table(storage: Storage, *, is_empty: bool) -> TableNotFoundError:
    what = "is empty" if is_empty else "holds no commit and no complete checkpoint"
    return TableNotFoundError(
        f"{storage.root} is no Delta table: its folder {LOG} {what}. Check the path; if the table was copied, copy "
        "its log too."
    )
