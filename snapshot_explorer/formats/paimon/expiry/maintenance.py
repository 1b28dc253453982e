"""`PaimonMaintenance`: what the expiry of snapshots and the removal of orphan files do to a table."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.core.records import RowModifier
from snapshot_explorer.formats.capabilities import Erasure, Maintenance
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import FileCheck
from snapshot_explorer.formats.interface import TableFormat
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.formats.paimon.expiry.orphans import branch_histories, clean_up, named_files
from snapshot_explorer.formats.paimon.expiry.presence import presence
from snapshot_explorer.formats.paimon.expiry.retention import expiry, read_retention_state, used_paths
from snapshot_explorer.formats.paimon.expiry.settings import sql_name
from snapshot_explorer.formats.paimon.files.whole_files import file_check
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.branches import branch_names
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout
from snapshot_explorer.formats.paimon.scan.scans import changes_of, statistics_files
from snapshot_explorer.formats.statistics import StatisticsFiles
from snapshot_explorer.formats.unread_versions import read_apart, unread_notes


@dataclass(frozen=True, kw_only=True)
class PaimonMaintenance(Maintenance):
    """The maintenance of a branch of a Paimon table."""

    erasure: ClassVar[Erasure | None] = Erasure(
        steps=(
            ("Delete the rows from the newest snapshot.", "DELETE FROM {name}\nWHERE {where}"),
            ("Merge or rewrite files that store deleted rows.", "CALL sys.compact(table => '{name}')"),
            (
                "Since Paimon 1.0: write manifests without the statistics of removed files.",
                "CALL sys.compact_manifest(table => '{name}')",
            ),
            ("The tag keeps the rows.", "CALL sys.delete_tag(table => '{name}', tag => {tag})"),
            ("The branch keeps the rows.", "CALL sys.delete_branch(table => '{name}', branch => {branch})"),
            (
                "Delete the files of all other snapshots. A consumer that waits for one keeps it.",
                (
                    "CALL sys.expire_snapshots(table => '{name}',\n"
                    "  retain_max => 1, retain_min => 1, max_deletes => 1000000)"
                ),
            ),
            (
                "Delete files that no snapshot names, if they are older than a day.",
                "CALL sys.remove_orphan_files(table => '{name}')",
            ),
        ),
    )
    unsearched_values: ClassVar[str | None] = "manifest lists with partitions, indexes and table statistics"

    metadata: BranchMetadata
    row_modifiers: Callable[[], frozenset[RowModifier]]
    """See `TableFormat.row_modifiers`."""
    table_on: Callable[[str], TableFormat]
    """Returns the table bound to another branch, which exists."""

    def expiry(
        self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None, unread: Collection[int] = ()
    ) -> Expiry:
        own = self.metadata
        state, branches = own.storage.together(
            lambda: read_retention_state(own.storage, own.layout, own.history, own.schemas, newest),
            self._used_by_others,
        )
        return expiry(
            rule,
            lifetimes,
            state,
            changelogs=lambda versions: read_apart(
                lambda group: changes_of(
                    own.storage, own.schemas, [state.snapshots[version] for version in group], ("changelog",)
                ),
                versions,
                own.storage,
            ),
            branches=branches,
            name=sql_name(own.storage.root, own.layout.branch),
            unread=unread,
        )

    def _used_by_others(self) -> dict[str, frozenset[str] | str]:
        """Return for each other branch the paths of its data files, or why they are unknown."""
        storage = self.metadata.storage
        names = [name for name in (MAIN, *branch_names(storage)) if name != self.metadata.name]
        branches = [self.table_on(name) for name in names]
        paths = storage.together(
            *(partial(used_paths, branch.listing, _files_of(branch), branch.changes) for branch in branches)
        )
        return {Layout(name).branch or MAIN: files for name, files in zip(names, paths, strict=True)}

    def file_check(self) -> FileCheck:
        return file_check(self.metadata.storage, self.metadata.schemas)

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        own = self.metadata
        snapshots = own.history.snapshots(versions)
        modifiers, checked = own.storage.together(
            self.row_modifiers, partial(presence, own.storage, own.layout, own.schemas, lifetimes, snapshots)
        )
        if "another branch" not in modifiers:
            return checked
        return replace(
            checked, unchecked_files=dict.fromkeys(versions, "files of its fallback branch are not looked for")
        )

    def statistics_files(self, versions: Sequence[int], at: int, columns: Collection[str]) -> StatisticsFiles:
        own = self.metadata
        read = read_apart(own.history.present, versions, own.storage)
        snapshots = [item for _, part in read.parts for item in part.values()]
        schema = own.schemas.by_id([own.schema_id(at)])[own.schema_id(at)]
        fields = [field for field in schema.fields if field.name in columns]
        known = statistics_files(own.storage, own.schemas, sorted(snapshots, key=lambda item: item.id), fields)
        return replace(known, unread=(*unread_notes(read.unread), *known.unread))

    def named_files(self, listed: pa.Array) -> NamedFiles:
        storage = self.metadata.storage
        names = sorted({MAIN, *branch_names(storage)})
        return named_files(storage, branch_histories(storage, names), listed)

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        partitions = len(self.metadata.schemas.newest().partition_keys)
        return clean_up(files, now, partitions=partitions, name=sql_name(self.metadata.storage.root, None))


def _files_of(table: TableFormat) -> Callable[[int], pa.Table]:
    return lambda version: table.version(version).files()
