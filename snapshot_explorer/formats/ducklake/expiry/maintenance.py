"""`DuckLakeMaintenance`: what expiry and clean-up would delete, which files exist, and their checks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.capabilities import Maintenance
from snapshot_explorer.formats.ducklake.expiry.retention import expiry_of
from snapshot_explorer.formats.ducklake.metadata.log import DuckLakeLog
from snapshot_explorer.formats.ducklake.metadata.paths import file_paths
from snapshot_explorer.formats.ducklake.metadata.table_metadata import live_mask, read_metadata, read_overview
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule, checked_files, presence_from
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, RecordedFile
from snapshot_explorer.formats.files.whole_files import check_file
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles

_SEARCHED = (".parquet", ".puffin")
"""The endings of files that writers make below the data path."""
_ORPHAN_AGE = timedelta(days=2)
_NOTE = (
    "Files that the next clean-up deletes count as named. If another lake has the same data path, its files are "
    "shown as orphans."
)


@dataclass(frozen=True, kw_only=True)
class DuckLakeMaintenance(Maintenance):
    """The maintenance of a DuckLake table."""

    log: DuckLakeLog

    def expiry(
        self,
        rule: RetentionRule,
        lifetimes: pa.Table,  # noqa: ARG002 - the catalog has them
        newest: int | None,  # noqa: ARG002 - likewise
        unread: Collection[int] = (),  # noqa: ARG002 - likewise
    ) -> Expiry:
        """Return the effect of an expiry on the newest state of the catalog, which has the lifetimes of all files."""
        return expiry_of(self.log.current(), rule)

    def named_files(self, listed: pa.Array) -> NamedFiles:
        """Return the files that any table of the catalog names, and those that the next clean-up deletes.

        A catalog that shares its data path with another one does not name the files of that one.
        """
        paths: list[str] = []
        unread: list[str] = []
        with self.log.place.file.reading() as reader:
            overview = read_overview(reader, self.log.shown)
            for table_id in overview.table_ids:
                try:
                    metadata = self.log.with_paths(read_metadata(reader, table_id, self.log.shown))
                except TableNotFoundError as error:
                    unread.append(error.message)
                    continue
                paths += metadata.data_files.column("location").to_pylist()
                paths += metadata.delete_files.column("location").to_pylist()
            scheduled = reader.read("ducklake_files_scheduled_for_deletion")
        paths += file_paths(scheduled, "", self.log.place.relocations)
        own = [path for path in listed.to_pylist() if not path.endswith(_SEARCHED)]
        return NamedFiles(
            paths=pa.array([*paths, *own], pa.string()),
            unread=tuple(unread),
            notes=(_NOTE,),
        )

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        """Return the outcome of `ducklake_delete_orphaned_files` with its default age.

        Source: reference, "Expiry, cleanup, orphans": it looks for parquet files only.
        """
        limit = now - _ORPHAN_AGE
        results = []
        for row in files.to_pylist():
            kind = "deletion vector" if row["path"].endswith(".puffin") else "data"
            kind = "deletes" if row["path"].endswith("-delete.parquet") else kind
            if kind == "deletion vector":
                outcome, because = "ignored", "only parquet files are looked at"
            elif row["modified"] is None:
                outcome, because = None, "the storage does not say when it was written"
            else:
                is_old = row["modified"] < limit
                outcome, because = ("deleted", "older than 2 days") if is_old else ("kept", "not older than 2 days")
            results.append(FileCleanUp(kind=kind, outcome=outcome, because=because))
        return CleanUp(
            files=results,
            rule="ducklake_delete_orphaned_files deletes parquet files below the data path that the catalog does not "
            "name and that are older than 2 days.",
            commands=(("DuckDB", "CALL ducklake_delete_orphaned_files('lake', dry_run => true)"),),
        )

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return which data files and delete files exist. One listing for each folder with files."""
        metadata, storage = self.log.current(), self.log.storage
        paths, sizes = (single_chunk(lifetimes.column(name)) for name in ("path", "size_bytes"))
        result = presence_from(checked_files(storage, paths, sizes), paths)
        deletes = metadata.delete_files
        names = single_chunk(deletes.column("location"))
        checked = checked_files(storage, names, single_chunk(deletes.column("file_size_bytes")))
        gone = np.isin(names.to_pylist(), checked.gone.to_pylist())
        unknown = np.isin(names.to_pylist(), checked.unknown.to_pylist())
        missing: dict[int, str] = {}
        unchecked: dict[int, str] = {}
        for version in versions:
            live = live_mask(deletes, version)
            for words, mask in ((missing, gone & live), (unchecked, unknown & live)):
                if mask.any():
                    words[version] = pluralize(int(mask.sum()), "delete file")
        return Presence(
            gone=result.gone,
            resized=result.resized,
            unknown=result.unknown,
            missing_deletes=missing,
            unchecked_files=unchecked,
        )

    def file_check(self) -> FileCheck:
        return partial(_check, self.log)


def _check(log: DuckLakeLog, file: RecordedFile, is_whole: bool) -> CheckedFile:  # noqa: FBT001 - as FileCheck
    return check_file(log.storage, file, is_whole=is_whole, kind="parquet")
