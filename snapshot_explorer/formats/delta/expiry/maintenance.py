"""`DeltaMaintenance`: what VACUUM and the clean-up of the log do to a table."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.formats.capabilities import Erasure, Maintenance
from snapshot_explorer.formats.delta.expiry.orphans import named_files
from snapshot_explorer.formats.delta.expiry.presence import presence
from snapshot_explorer.formats.delta.expiry.retention import Vacuum
from snapshot_explorer.formats.delta.frames.manifests import statistics_files
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.times import Times
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import FileCheck
from snapshot_explorer.formats.files.whole_files import check_file
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.formats.statistics import StatisticsFiles
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, kw_only=True)
class DeltaMaintenance(Maintenance):
    """The maintenance of a Delta table."""

    statistics_clean_up: ClassVar[str | None] = (
        "the clean-up of the log, which a checkpoint starts, once it is older than delta.logRetentionDuration"
    )
    erasure: ClassVar[Erasure | None] = Erasure(
        settings={
            "delta.appendOnly": ("false", "false"),
            "delta.enableExpiredLogCleanup": ("true", "true"),
            "delta.deletedFileRetentionDuration": ("interval 0 hours", None),
            "delta.logRetentionDuration": ("interval 0 hours", None),
            "delta.checkpointInterval": ("1", None),
        },
        steps=(
            ("Delete the rows from the newest version.", "DELETE FROM {name}\nWHERE {where}"),
            ("Rewrite files with deletion vectors: they store deleted rows.", "REORG TABLE {name} APPLY (PURGE)"),
            (
                "No reader, writer or shallow clone may use the table from here on.",
                "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
            ),
            ("Delete files of older versions, and files that no version names.", "VACUUM {name} RETAIN 0 HOURS"),
            (
                "On the next day in UTC: the checkpoint of this commit deletes the log of earlier days.",
                "ALTER TABLE {name}\nSET TBLPROPERTIES ('delta.checkpointInterval' = '1')",
            ),
        ),
    )
    unsearched_values: ClassVar[str | None] = "checksum files and compacted commits of the log"

    storage: Storage
    log: DeltaLog
    times: Times

    @property
    def _vacuum(self) -> Vacuum:
        return Vacuum(self.storage, self.log, self.times.committed_at)

    def expiry(
        self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None, unread: Collection[int] = ()
    ) -> Expiry:
        return self._vacuum.expiry(rule, lifetimes, newest, unread)

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:  # noqa: ARG002 - the log always exists
        return presence(self.storage, lifetimes)

    def file_check(self) -> FileCheck:
        # Early releases of delta-rs recorded the size 0 for each file.
        return lambda file, reading: check_file(
            self.storage, replace(file, size_bytes=file.size_bytes or None), reading, "parquet"
        )

    def named_files(self, listed: pa.Array) -> NamedFiles:
        return named_files(self.storage, self.log, listed)

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        return self._vacuum.clean_up(files, now)

    def statistics_files(
        self,
        versions: Sequence[int],  # noqa: ARG002 - the log has all
        at: int,
        columns: Collection[str],
    ) -> StatisticsFiles:
        return statistics_files(self.storage, self.log, at, columns)
