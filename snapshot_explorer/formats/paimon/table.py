"""`Paimon`: a Paimon table on storage, as `formats.TableFormat` asks for it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.errors import TableNotFoundError
from snapshot_explorer.formats.paimon import blobs, fallback, units
from snapshot_explorer.formats.paimon import read as rows
from snapshot_explorer.formats.paimon.branches import branch_names, read_branches
from snapshot_explorer.formats.paimon.commands import sql_name
from snapshot_explorer.formats.paimon.commit_frames import manifests_frame, read_commits
from snapshot_explorer.formats.paimon.contents import read_lists_of
from snapshot_explorer.formats.paimon.events import Difference, Events, read_events
from snapshot_explorer.formats.paimon.file_frames import files_frame
from snapshot_explorer.formats.paimon.history import History
from snapshot_explorer.formats.paimon.incremental import changelog_splits, splits_between
from snapshot_explorer.formats.paimon.inspections import Inspector
from snapshot_explorer.formats.paimon.layout import MAIN, Layout, number_of
from snapshot_explorer.formats.paimon.manifest_files import delta_manifests, entries_of
from snapshot_explorer.formats.paimon.manifests import FILE_COLUMNS
from snapshot_explorer.formats.paimon.pieces import deleted, pieces, stored
from snapshot_explorer.formats.paimon.presence import presence, used
from snapshot_explorer.formats.paimon.refusals import flag
from snapshot_explorer.formats.paimon.retention import expiry, read_held
from snapshot_explorer.formats.paimon.row_tracking import hidden_fields
from snapshot_explorer.formats.paimon.scans import changes_of, file_schemas, paths_of, scan, state_where, vectors_in
from snapshot_explorer.formats.paimon.schema import Schema, arrow_field, table_schema
from snapshot_explorer.formats.paimon.schemas import Schemas
from snapshot_explorer.formats.paimon.snapshots import Snapshot
from snapshot_explorer.formats.paimon.statistics import with_statistics
from snapshot_explorer.formats.paimon.system_types import INSPECTIONS
from snapshot_explorer.formats.paimon.upkeep import name_of, upkeep_of
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
"""Commits whose entries are in memory at the same time."""


class Paimon:
    """A Paimon table, bound to one branch. Keeps the snapshots and schemas it has read. Safe for several threads."""

    name: ClassVar[str] = "paimon"
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    keeps_last_add: ClassVar[bool] = False

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table and a branch. One listing where a branch is asked for, otherwise reads nothing.

        Raises:
            TableNotFoundError: There is no such branch; the message names those that are there.
        """
        self._storage = storage
        if branch is not None and branch != MAIN and branch not in branch_names(storage):
            there = ", ".join([MAIN, *branch_names(storage)])
            raise TableNotFoundError(f"{storage.root} has no branch {branch!r}. Branches: {there}.")
        layout = self._layout = Layout(branch)
        self._history = History(storage, layout)
        self._schemas = Schemas(storage, layout)
        self._here = fallback.Side(branch=layout.branch, history=self._history, schemas=self._schemas)
        self._inspector = Inspector(storage, layout, self._history, self._schemas)

    @classmethod
    def recognises(cls, storage: Storage) -> bool:
        """Return whether the folder has schema files or snapshots. Two listings at most.

        Source: paimon docs, "File Layouts".
        """
        folders = set(storage.folders(""))
        if "_delta_log" in folders or not folders & {"schema", "snapshot"}:
            return False
        if "schema" not in folders:
            return True
        return "snapshot" in folders or any(
            number_of(entry.name, "schema") is not None for entry in storage.list("schema")
        )

    def listing(self, start: int | None = None) -> Listing:
        """Return which versions there are.

        Without `start` only the newest, by the hint: three small requests at most, and a listing of the snapshots
        where the hint is wrong. With it all from there on: three listings at once and a small file per tag.
        """
        rewrites = self._history.rewrites
        found = self._history.newest() if start is None else self._history.all_from(start)
        if self._history.rewrites != rewrites:
            self._schemas.forget()
        if not found.versions and start is None:
            # A table of a kind that is not read has no snapshots either: refuse it here.
            self._schemas.newest()
        return found

    def examine(self, version: int) -> Examined:  # noqa: ARG002 - the listing has read the snapshot
        """Return nothing: whatever is read of a snapshot is checked then."""
        return Examined(table_id=None, notes=())

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware, UTC. A small file for each that was not read before."""
        return [one.committed_at for one in self._history.snapshots(versions)]

    def searched(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:  # noqa: ARG002 - there is one clock
        """Return the versions among which the last one committed by a time is looked for: all of them."""
        return versions

    def check_reachable(self, version: int) -> None:
        """Raise SnapshotNotFoundError if a version is not there. Reads its small file."""
        self._history.snapshots([version])

    def commits(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame, in the order asked for.

        Reads the snapshots, their delta manifest lists and delta manifests, each kind at once, and the tags. A
        commit whose delta has vanished meanwhile has no counts, and is readable no more.

        Raises:
            SnapshotNotFoundError: A version does not exist.
            BrokenTableError: A file is damaged; the message names it.
        """
        snapshots = self._history.snapshots(versions)
        tags = self._history.tags_by_version() if snapshots else {}
        parts = [
            read_commits(self._storage, self._history, snapshots[begin : begin + _AT_ONCE], tags)
            for begin in range(0, max(1, len(snapshots)), _AT_ONCE)
        ]
        return pa.concat_tables(parts)

    def manifests(self, version: int) -> pa.Table:
        """Return the MANIFESTS frame: base, delta, changelog, index, in list order. Reads the lists only.

        Of a version of which only the changelog is left, the lists that are left.
        """
        snapshot = self._snapshot(version)
        lists = read_lists_of(self._storage, snapshot, ("base", "delta", "changelog"))
        return manifests_frame(snapshot, lists, self._schema_of(snapshot))

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:
        """Return the CHANGES frame: per version the files of its delta, then those of its changelog if asked for.

        Reads the lists and manifests of all versions at once, and their index manifests for deletion vectors. Of a
        version of which only the changelog is left, only that.

        Raises:
            SnapshotNotFoundError: A version does not exist, or expired meanwhile.
            BrokenTableError: A file is damaged; the message names it.
        """
        snapshots = self._history.snapshots(versions)
        kinds = ("delta", "changelog") if changelog else ("delta",)
        parts = [
            changes_of(self._storage, self._schemas, snapshots[begin : begin + _AT_ONCE], kinds)
            for begin in range(0, max(1, len(snapshots)), _AT_ONCE)
        ]
        return pa.concat_tables(parts)

    def files(self, version: int, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame of a version, of the partitions that the predicate may match.

        Reads the newest options, the version's base and delta lists and index manifest at once, then its manifests.
        With `statistics` also the schemas that the files were written with.

        Raises:
            SnapshotNotFoundError: The version does not exist, expired meanwhile, or only its changelog is left.
            BrokenTableError: A file is missing or damaged; the message names it.
        """
        frame, entries = self._files(version, predicate, None if statistics else FILE_COLUMNS)
        if not statistics:
            return frame
        schema = self._schema_at(version)
        return with_statistics(frame, entries, schema, file_schemas(self._schemas, entries))

    def measured_files(self, version: int) -> pa.Table:
        """Return FILES and `delete_records`, the rows in each file of kind -D and -U. Reads as `files` does."""
        frame, entries = self._files(version, None, FILE_COLUMNS)
        return frame.append_column("delete_records", entries.column("deleted_rows"))

    def upkeep(self, version: int) -> Upkeep:  # noqa: ARG002 - the newest options are in force at every version
        """Return what the newest options say of the table's upkeep; see `upkeep.upkeep_of`."""
        return upkeep_of(self._schemas.newest(), name_of(self._storage.root, self._here.branch))

    def _files(
        self, version: int, predicate: Predicate | None, columns: Sequence[str] | None
    ) -> tuple[pa.Table, pa.Table]:
        """Return FILES of a version, and these columns of the ENTRIES that they are made of, all for None."""
        snapshot = self._snapshot(version)
        options = self._schemas.newest().options
        schema = self._schema_of(snapshot)
        state, partitions = state_where(self._storage, snapshot, schema, predicate, columns)
        paths = paths_of(self._storage, state.entries, partitions, schema, options, strict=False)
        vectors = vectors_in(self._storage, state.indexes, schema, options)
        frame = files_frame(state, version=version, partitions=partitions, paths=paths, vectors=vectors)
        return frame, state.entries

    def schema(self, version: int | None) -> TableSchema:
        """Return the schema in force at a version; the newest one for None."""
        return table_schema(self._schema_at(version))

    def properties(self, version: int | None) -> Mapping[str, str]:  # noqa: ARG002 - the same at every version
        """Return the newest options: they are in force at every version, whatever the version's schema says.

        Source: paimon docs, "Time Travel"; paimon AbstractFileStoreTable.tryTimeTravel.
        """
        return self._schemas.newest().options

    def recorded_properties(self, version: int) -> Mapping[str, str]:
        """Return the options of the version's own schema: what was set then, though the newest are in force."""
        return self._schema_at(version).options

    def manifest_entries(self, version: int, path: str) -> pa.Table:
        """Return the ENTRIES of a manifest that the version's lists name; see `manifest_files.entries_of`."""
        snapshot = self._snapshot(version)
        options = self._schemas.newest().options
        return entries_of(self._storage, snapshot, path, schema=self._schema_of(snapshot), options=options)

    def delta_manifests(self, versions: Sequence[int]) -> frozenset[str] | None:
        """Return the manifests that these commits wrote as their deltas; None if some are gone. A small file each."""
        return delta_manifests(self._storage, self._history.snapshots(versions))

    def tags(self) -> Mapping[str, int]:
        """Return each tag's version, sorted by name."""
        return {name: tag.id for name, tag in self._history.tags().items()}

    def branches(self) -> Sequence[str]:
        """Return the names of the branches, sorted, without the main one."""
        return branch_names(self._storage)

    def forks(self) -> Sequence[Branch]:
        """Return the branches with the versions that they begin with and end at; see `branches.read_branches`."""
        return read_branches(self._storage, self._history, self._layout.branch)

    def expiry(self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None) -> Expiry:
        """Return what `CALL sys.expire_snapshots` with a rule would take; see `retention.expiry`.

        Reads tags and consumers, the changelogs of what would expire, and of the other branches what they changed.
        """
        options = self._schemas.newest().options
        held = read_held(self._storage, self._layout, self._history, options, newest)
        others = [one for one in (MAIN, *branch_names(self._storage)) if one != (self._layout.branch or MAIN)]
        branches = {name: Paimon(self._storage, branch=name) for name in others}
        return expiry(
            rule,
            lifetimes,
            held,
            changelogs=lambda snapshots: changes_of(self._storage, self._schemas, snapshots, ("changelog",)),
            branches={name: used(one.listing, one.files, one.changes) for name, one in branches.items()},
            name=sql_name(self._storage.root, self._layout.branch),
        )

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return what is there of what versions need: data files, and what the snapshots name of manifests."""
        return presence(self._storage, lifetimes, self._history.snapshots(versions))

    def inspect(self, name: str, version: int | None) -> pa.Table:
        """Return one of Paimon's system tables; `inspections` lists them, `system_types` has their columns.

        Raises:
            BadReferenceError: There is no such system table, or a version is given where none makes sense.
            SnapshotNotFoundError: The version does not exist, expired meanwhile, or only its changelog is left.
            BrokenTableError: A file is missing or damaged; the message names it.
        """
        return self._inspector.inspect(name, version)

    def arrow_schema(self, version: int | None) -> pa.Schema:
        """Return the Arrow schema of the rows at a version; of the newest schema for None.

        Raises:
            UnsupportedFeatureError: There is no version, but rows of another branch belong to the table.
        """
        if version is None:
            fallback.check_empty(self._storage, self._here)
        return pa.schema([arrow_field(field) for field in self._schema_at(version).fields])

    def hidden_columns(self, names: Sequence[str], version: int | None) -> pa.Schema:  # noqa: ARG002 - by the newest options
        """Return those of the names that are columns which are given only when asked for.

        `_ROW_ID` and the like; of a blob column `b` its descriptors, `b$descriptor`: where the values are, as Paimon's
        `blob-as-descriptor` gives them.

        Raises:
            BadReferenceError: The table does not keep them.
        """
        newest = self._schemas.newest()
        tracked = flag(newest.options, "row-tracking.enabled") and not newest.primary_keys
        described = blobs.descriptor_fields(names, newest)
        return pa.schema([arrow_field(field) for field in (*hidden_fields(names, tracked=tracked), *described)])

    def splits(self, version: int, predicate: Predicate | None = None) -> Sequence[Split]:
        """Return the units of reading the rows of a version that the predicate may match; see `plan`."""
        return self.plan(version, predicate).splits

    def plan(self, version: int, predicate: Predicate | None = None) -> ReadPlan:
        """Return the units of reading the rows of a version, and what the predicate spares.

        Files are skipped by partition, bucket, keys and statistics, all from manifests: no data file is opened. Where
        the newest options name a branch to fall back on, its plan is part of it; see `fallback`.

        Raises:
            UnsupportedFeatureError: The version needs a feature that is not read; no data file has been opened.

        Source: paimon AppendOnlyFileStoreScan, KeyValueFileStoreScan.
        """
        snapshot = self._snapshot(version)
        return fallback.plan(
            self._storage, self._here, snapshot, lambda schemas, one: scan(self._storage, schemas, one, predicate)
        )

    def changelog(self, version: int, predicate: Predicate | None = None) -> Sequence[Split]:
        """Return the units of reading a version's changelog; long-lived changelogs are read too.

        Reads the changelog manifest list and its manifests; further as `incremental.changelog_splits`.
        """
        return changelog_splits(self._storage, self._schemas, self._snapshot(version), predicate)

    def row_changes(
        self, first: int, last: int, mode: ChangeMode, predicate: Predicate | None = None
    ) -> Sequence[Split]:
        """Return the units of reading what changed after `first` up to `last`, under the newest schema.

        Reads the lists and manifests of all the versions at once; further as `incremental.splits_between`.
        """
        wanted = [first, last] if mode == "diff" else range(first + 1, last + 1)
        return splits_between(self._storage, self._schemas, self._history.snapshots(wanted), mode, predicate)

    def change_schema(self, first: int, last: int) -> pa.Schema:  # noqa: ARG002 - the newest for every range
        """Return the newest schema: under it changes are told."""
        return self.arrow_schema(None)

    def hidden_change_columns(self) -> pa.Schema:
        """Return no column."""
        return pa.schema([])

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as Paimon means them, with these columns in this order."""
        if isinstance(split.detail, Events | Difference):
            return read_events(self._storage, split.detail, columns)
        return rows.read(self._storage, split, columns)

    def state_units(self, version: int, look: Look) -> Sequence[Unit]:  # noqa: ARG002 - the lists tell it all
        """Return the units that tell the live files of a version. Reads its base and delta lists."""
        return units.state_units(self._storage, self._snapshot(version))

    def change_units(self, versions: Sequence[int], look: Look, *, lifetimes: bool) -> Sequence[Unit]:  # noqa: ARG002 - as above
        """Return the units that tell what commits changed. Reads the newest schema, which may refuse the table."""
        self._schemas.newest()
        return units.change_units(versions, lifetimes=lifetimes)

    def unit_reader(self) -> Reader:
        """Return what reads units."""
        return units.unit_reader(self._storage, self._layout)

    def missing(self, splits: Sequence[Split]) -> Sequence[str]:
        """Return the data files of splits that are not there, as far as asking is quick; see `Storage.missing`."""
        return self._storage.missing([path for split in splits for path in split.files])

    def pieces(self, split: Split) -> Sequence[Split]:
        """Return a split cut into one for each of its files; itself where they are merged, or hold parts of rows."""
        return pieces(split)

    def stored(self, split: Split) -> StoredRows | None:
        """Return where other readers find the rows of a split: not where rows are merged, dropped or cast."""
        return stored(self._storage, split)

    def deleted(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return for each part, a file each, the positions of the rows that its deletion vector takes away."""
        return deleted(self._storage, parts, rows)

    def __reduce__(self) -> tuple[partial["Paimon"], tuple[Storage]]:
        return partial(Paimon, branch=self._here.branch), (self._storage,)

    def _snapshot(self, version: int) -> Snapshot:
        return self._history.snapshots([version])[0]

    def _schema_of(self, snapshot: Snapshot) -> Schema:
        return self._schemas.by_id([snapshot.schema_id])[snapshot.schema_id]

    def _schema_at(self, version: int | None) -> Schema:
        return self._schemas.newest() if version is None else self._schema_of(self._snapshot(version))
