"""`Paimon`: a Paimon table on storage, an implementation of `formats.TableFormat`."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.records import (
    ChangeMode,
    ChangesWithStatistics,
    Inspection,
    Listing,
    RowModifier,
    TableSchema,
)
from snapshot_explorer.core.text import did_you_mean, list_names
from snapshot_explorer.formats.capabilities import CatalogFacts, MetadataLayout
from snapshot_explorer.formats.interface import Changelogs, Repairs, RowChanges, TableFormat, digest_of
from snapshot_explorer.formats.paimon import fallback
from snapshot_explorer.formats.paimon.changes.row_changes import splits_between
from snapshot_explorer.formats.paimon.expiry.maintenance import PaimonMaintenance
from snapshot_explorer.formats.paimon.frames.commits import RECORDED, read_commits, recorded_columns, with_tags
from snapshot_explorer.formats.paimon.frames.manifests import PaimonManifests
from snapshot_explorer.formats.paimon.inspect.inspections import INSPECTIONS, PaimonInspector
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.branches import PaimonBranches, branch_names
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout, number_of
from snapshot_explorer.formats.paimon.metadata.schema import Schemas, table_schema
from snapshot_explorer.formats.paimon.metadata_tasks import PaimonMetadataTasks
from snapshot_explorer.formats.paimon.repairs import PaimonRepairs
from snapshot_explorer.formats.paimon.scan.scans import changes_of, changes_with_statistics
from snapshot_explorer.formats.paimon.version import PaimonVersion
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000
"""The maximum number of commits whose entries are in memory at the same time."""


class Paimon(TableFormat):
    """A Paimon table, bound to one branch. Caches snapshots and schemas. Thread-safe."""

    name: ClassVar[str] = "paimon"
    title: ClassVar[str] = "Paimon"
    metadata_layout: ClassVar[MetadataLayout] = MetadataLayout(
        folders=frozenset(("schema", "snapshot", "manifest")),
        file_names=re.compile(
            r"(?:schema|snapshot|changelog|manifest(?:-list)?|index-manifest)-(?:\d{1,18}|[0-9a-f-]{36}-\d+)", re.ASCII
        ),
        first_file=Layout().hint("snapshot", "LATEST"),
    )
    catalog: ClassVar[CatalogFacts] = CatalogFacts(branch_sign="$", rest_client="pypaimon-rust")
    repairs: ClassVar[Repairs | None] = PaimonRepairs(
        restore_command="CALL sys.rollback(table => '{name}', version => '{version}')",
        time_travel="VERSION AS OF {version}",
        deletes_unknown=True,  # seen with Paimon 0.9 on tables without a primary key
        restore_note="A rollback deletes all later snapshots, and later tags: it cannot be undone.",
        flink_restore_command="CALL sys.rollback_to(`table` => '{name}', snapshot_id => {version})",
    )
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS

    def __init__(self, storage: Storage, *, branch: str | None = None, listed: Sequence[str] = (MAIN,)) -> None:
        """Bind to a table and a branch. One listing for a branch that is not listed, otherwise reads nothing."""
        super().__init__(storage)
        if branch is not None and branch not in listed and branch not in branch_names(storage):
            names = [MAIN, *branch_names(storage)]
            near = did_you_mean(branch, names)
            raise TableNotFoundError(f"{storage.root} has no branch {branch!r}. Branches: {list_names(names)}.{near}")
        self._metadata = BranchMetadata.of(storage, branch)

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder has schema files or snapshots. One listing at most.

        Source: paimon docs, "File Layouts".
        """
        if "_delta_log" in folders or not {"schema", "snapshot"}.intersection(folders):
            return False
        if "schema" not in folders:
            return True
        return "snapshot" in folders or any(
            number_of(entry.name, "schema") is not None for entry in storage.list("schema")
        )

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions of the table.

        Without `start`, only the newest version, by the hint: at most three small requests, and a listing of the
        snapshots if the hint is wrong. The first time also a listing of each folder of tags, changelogs and branches
        that the table is known to have. With `start`, all versions from there on: three concurrent listings and a
        small file per tag. In both cases also a listing of the schemas: one may be newer than the newest version.
        """
        rewrites = self._history.rewrites
        if start is None:
            folders, self.detection = self.detection.folders, replace(self.detection, folders=())
            look, newest = partial(self._history.look_into, folders), self._history.newest
            _, result, schema = self._storage.together(look, newest, self._schemas.listed_newest)
        else:
            read = partial(self._history.all_from, start)
            result, schema = self._storage.together(read, self._schemas.listed_newest)
        result = replace(result, identity=(*result.identity, schema), newest_schema=schema)
        if self._history.rewrites != rewrites:
            self._schemas.forget()
        if not result.versions and start is None:
            # Raises for kinds of tables that are not supported, which have no snapshots.
            self._schemas.pinned(schema).newest()
        return result

    def version(self, number: int | None) -> PaimonVersion:
        snapshot = None if number is None else self._history.snapshots([number])[0]
        return PaimonVersion(self._metadata, snapshot)

    def with_current_schema(self, listing: Listing) -> "Paimon":
        """Return the same table, whose newest version has the newest schema.

        Source: paimon AbstractFileStoreTable.copy, which replaces the newest schema for time travel only.
        """
        schemas = self._schemas.pinned(listing.newest_schema)
        return self.with_metadata(replace(self._metadata, schemas=schemas, newest_state=listing.latest))

    def with_metadata(self, metadata: BranchMetadata) -> "Paimon":
        """Return the same table, which reads other schemas."""
        result = Paimon.__new__(Paimon)
        vars(result).update(vars(self), _metadata=metadata)  # what was read is shared
        return result

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        return [item.committed_at for item in self._history.snapshots(versions)]

    def fingerprint(self, version: int) -> str:
        """Return the hash of the snapshot's fields that its tags and its changelog have too."""
        (item,) = self._history.snapshots([version])
        return digest_of(item.user, item.identifier, item.committed_at.isoformat(), item.delta_manifest_list)

    def read_newest(self, count: int) -> None:
        self._history.read_newest(count)

    def commits(self, versions: Sequence[int], *, columns: Collection[str] | None = None) -> pa.Table:
        """Return the COMMITS frame, in the order of `versions`.

        Reads the snapshots and, unless only `RECORDED` columns are needed, their delta manifest lists and delta
        manifests, each kind at once, and the tags. For a table with deletion vectors it also reads each index manifest
        once, and the snapshot before the first. A commit whose delta has vanished meanwhile has no counts, and is not
        readable. Rows that deletion vectors remove are not counted in `total_rows`, and count as removed by the commit
        that deleted them; null if a writer did not record their number.
        """
        snapshots = self._history.snapshots(versions)
        if not snapshots:
            return frames.COMMITS.empty_table()
        if columns is not None and RECORDED.issuperset(columns):
            return frames.table_of(frames.COMMITS, recorded_columns(snapshots))
        (tags, are_all), parts = self._storage.together(
            self._history.tags_by_version,
            lambda: [
                read_commits(self._storage, self._history, self._schemas, snapshots[begin : begin + _AT_ONCE])
                for begin in range(0, len(snapshots), _AT_ONCE)
            ],
        )
        return with_tags(frames.concat_commits(parts), tags, are_all=are_all)

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:
        """Return the CHANGES frame: per version the files of its delta, then, with `changelog`, of its changelog.

        Reads the lists and manifests of all versions concurrently, and their index manifests for deletion vectors. An
        expired version whose long-lived changelog exists has only the files of the changelog.
        """
        snapshots = self._history.snapshots(versions)
        kinds = ("delta", "changelog") if changelog else ("delta",)
        parts = [
            changes_of(self._storage, self._schemas, snapshots[begin : begin + _AT_ONCE], kinds)
            for begin in range(0, max(1, len(snapshots)), _AT_ONCE)
        ]
        return pa.concat_tables(parts)

    def schemas(self, versions: Sequence[int]) -> Sequence[TableSchema]:
        numbers = [
            self._metadata.schema_id(item.id) if item.id == self._metadata.newest_state else item.schema_id
            for item in self._history.snapshots(versions)
        ]
        by_number = {
            number: table_schema(schema) for number, schema in self._schemas.by_id(sorted(set(numbers))).items()
        }
        return [by_number[number] for number in numbers]

    def row_modifiers(self) -> frozenset[RowModifier]:
        pinned = self._metadata.pinned()
        options = pinned.schemas.newest().options
        modifiers: dict[RowModifier, bool] = {
            "deletion vectors": parse_flag(options, "deletion-vectors.enabled"),
            "data evolution": parse_flag(options, "data-evolution.enabled"),
            "another branch": fallback.fallback_link(pinned) is not None,
        }
        return frozenset(name for name, applies in modifiers.items() if applies)

    def changes_with_statistics(
        self, versions: Sequence[int], columns: Sequence[str], at: int
    ) -> ChangesWithStatistics:
        snapshots = self._history.snapshots(versions)
        number = self._metadata.schema_id(at)
        schema = self._schemas.by_id([number])[number]
        parts = [
            changes_with_statistics(self._storage, self._schemas, snapshots[begin : begin + _AT_ONCE], columns, schema)
            for begin in range(0, max(1, len(snapshots)), _AT_ONCE)
        ]
        known = zip(versions, self.schemas(versions), strict=True)
        return ChangesWithStatistics(
            changes=pa.concat_tables([part[0] for part in parts]),
            added=pa.concat_tables([part[1] for part in parts]),
            schemas=tuple(next(same) for _, same in groupby(known, key=lambda item: item[1].id)),
        )

    def tags(self) -> Mapping[str, int]:
        return {name: tag.id for name, tag in self._history.tags().items()}

    def inspect(self, name: str) -> pa.Table:
        return PaimonInspector(self._metadata).of_table(name)

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        """Return the rows that changed after `first` up to `last`, under the newest schema.

        Planning reads the lists and manifests of all versions concurrently; see `row_changes.splits_between`.
        """
        versions = [first, last] if mode == "diff" else range(first + 1, last + 1)
        metadata = self._metadata.pinned()
        schemas = metadata.schemas
        self._storage.together(schemas.newest, lambda: self._history.present(versions))
        newest = PaimonVersion(metadata, None)
        return RowChanges(
            schema=newest.arrow_schema,
            metadata_columns=pa.schema([]),
            splits=lambda predicate: splits_between(
                self._storage, schemas, self._history.snapshots(versions), mode, predicate
            ),
            reader=newest,
        )

    @property
    def _history(self) -> PaimonHistory:
        return self._metadata.history

    @property
    def _schemas(self) -> Schemas:
        return self._metadata.schemas

    def _on_branch(self, name: str) -> "Paimon":
        return Paimon(self._storage, branch=name, listed=(name,))

    @property
    def branches(self) -> PaimonBranches:
        return PaimonBranches(metadata=self._metadata, bind=self._on_branch)

    @property
    def changelogs(self) -> Changelogs:
        return Changelogs(of_version=lambda number: self.version(number).changelog_files())

    @property
    def merged_manifests(self) -> PaimonManifests:
        return PaimonManifests(storage=self._storage, history=self._history)

    @property
    def maintenance(self) -> PaimonMaintenance:
        return PaimonMaintenance(
            format_name=self.name, metadata=self._metadata, row_modifiers=self.row_modifiers, table_on=self._on_branch
        )

    @property
    def metadata_tasks(self) -> PaimonMetadataTasks:
        return PaimonMetadataTasks(metadata=self._metadata)

    def __reduce__(self) -> tuple[partial["Paimon"], tuple[Storage]]:
        own = self._metadata
        return partial(_restore, branch=own.layout.branch, newest_state=own.newest_state), (self._storage,)


def _restore(storage: Storage, *, branch: str | None, newest_state: int | None) -> Paimon:
    result = Paimon(storage, branch=branch)
    return result.with_metadata(replace(BranchMetadata.of(storage, branch), newest_state=newest_state))
