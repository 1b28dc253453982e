"""`HudiMaintenance`: what the cleaner does to a table, and which files its timeline names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.formats.capabilities import Erasure, Maintenance
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import FileCheck
from snapshot_explorer.formats.hudi.expiry import cleaning
from snapshot_explorer.formats.hudi.expiry.orphans import clean_up, named_files
from snapshot_explorer.formats.hudi.expiry.presence import presence_of
from snapshot_explorer.formats.hudi.files.whole_files import file_check
from snapshot_explorer.formats.hudi.metadata.history import HudiHistory
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, kw_only=True)
class HudiMaintenance(Maintenance):
    """The maintenance of a Hudi table."""

    unsearched_values: ClassVar[str | None] = "the metadata table in .hoodie/metadata, with its column statistics"
    storage: Storage
    history: HudiHistory

    @property
    def erasure(self) -> Erasure | None:
        """Return the statements that erase rows. Reads the timeline."""
        compaction = (
            "Merge log files: base files store deleted rows.",
            "CALL run_compaction(op => 'scheduleAndExecute', table => '{name}')",
        )
        is_merged = self.history.current().config.is_merge_on_read
        return Erasure(
            steps=(
                ("Delete the rows from the newest version.", "DELETE FROM {name}\nWHERE {where}"),
                *((compaction,) if is_merged else ()),
                (
                    "The savepoint keeps the rows.",
                    "CALL delete_savepoint(table => '{name}', instant_time => '{version}')",
                ),
                (
                    "Delete the files of older versions. These stay in the timeline, and can no longer be read.",
                    (
                        "CALL run_clean(table => '{name}', clean_policy =>\n"
                        "  'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)"
                    ),
                ),
            )
        )

    def expiry(
        self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None, unread: Collection[int] = ()
    ) -> Expiry:
        """Return the versions and files that the cleaner would delete with a rule. Lists each folder with files."""
        source = self.history.current()
        gone = presence_of(self.storage, source.config, lifetimes).gone
        savepoints = sorted(source.savepoints.values())
        return cleaning.expiry(source, rule, lifetimes, newest, gone=gone, savepoints=savepoints, unread=unread)

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:  # noqa: ARG002 - of files alone
        return presence_of(self.storage, self.history.current().config, lifetimes)

    def file_check(self) -> FileCheck:
        return file_check(self.history.current())

    def named_files(self, listed: pa.Array) -> NamedFiles:
        return named_files(self.history.refresh(), listed)

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        return clean_up(self.storage.root, files, now)
