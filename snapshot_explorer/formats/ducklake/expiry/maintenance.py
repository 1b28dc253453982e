"""`DuckLakeMaintenance`: what expiry and clean-up would delete, which files exist, and their checks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.capabilities import Erasure, Maintenance
from snapshot_explorer.formats.ducklake.expiry.retention import expiry_of
from snapshot_explorer.formats.ducklake.metadata.log import DuckLakeLog
from snapshot_explorer.formats.ducklake.metadata.paths import located, table_folders
from snapshot_explorer.formats.ducklake.metadata.table_metadata import live_mask
from snapshot_explorer.formats.expiry import Expiry, Mask, Presence, RetentionRule, checked_files, presence_from
from snapshot_explorer.formats.file_checks import FileCheck
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

    erasure: ClassVar[Erasure | None] = Erasure(
        steps=(
            ("Move inlined rows from the catalog to files.", "CALL ducklake_flush_inlined_data('{catalog}')"),
            ("Delete the rows from the newest snapshot.", "DELETE FROM {name}\nWHERE {where}"),
            (
                "Rewrite files that store deleted rows.",
                "CALL ducklake_rewrite_data_files('{catalog}', '{table}', schema => '{schema}', delete_threshold => 0)",
            ),
            (
                "Remove all other snapshots of the catalog: other tables lose theirs, too.",
                "CALL ducklake_expire_snapshots('{catalog}', older_than => now())",
            ),
            ("Delete their files.", "CALL ducklake_cleanup_old_files('{catalog}', cleanup_all => true)"),
            (
                "Delete files that the catalog does not name. Then have its database rewrite itself, as by VACUUM.",
                "CALL ducklake_delete_orphaned_files('{catalog}', cleanup_all => true)",
            ),
        ),
    )
    unsearched_values: ClassVar[str | None] = "deleted rows in free pages of the catalog"

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
        place, root = self.log.place, self.log.storage.root
        with self.log.reading() as reader:
            folders = table_folders(reader.read("schema"), reader.read("table"))
            tables = ("data_file", "delete_file", "files_scheduled_for_deletion")
            paths = [located(reader.read(name), folders, place.relocate, root).to_pylist() for name in tables]
        others = [path for path in listed.to_pylist() if not path.endswith(_SEARCHED)]
        named = [*(path for of_table in paths for path in of_table), *others]
        return NamedFiles(paths=pa.array(named, pa.string()), notes=(_NOTE,))

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        """Return the outcome of `ducklake_delete_orphaned_files` with its default age.

        Source: reference, "Expiry, cleanup, orphans": it looks for parquet files only.
        """
        rows = zip(files.column("path").to_pylist(), files.column("modified").to_pylist(), strict=True)
        return CleanUp(
            files=[_cleaned(path, modified, now) for path, modified in rows],
            rule="ducklake_delete_orphaned_files deletes parquet files below the data path that the catalog does not "
            "name and that are older than 2 days.",
            commands=(("DuckDB", "CALL ducklake_delete_orphaned_files('lake', dry_run => true)"),),
        )

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return which data files and delete files exist. One listing for each folder with files."""
        metadata = self.log.current()
        deletes = metadata.rows["delete_file"]
        recorded = (
            (single_chunk(lifetimes["path"]), lifetimes["size_bytes"]),
            (metadata.locate(deletes), deletes["file_size_bytes"]),
        )
        data, of_deletes = (
            presence_from(checked_files(self.log.storage, paths, single_chunk(sizes)), paths)
            for paths, sizes in recorded
        )

        def counted(chosen: Mask) -> dict[int, str]:
            counts = {version: int((chosen & live_mask(deletes, version)).sum()) for version in versions}
            return {version: pluralize(count, "delete file") for version, count in counts.items() if count}

        return replace(data, missing_deletes=counted(of_deletes.gone), unchecked_files=counted(of_deletes.unknown))

    def file_check(self) -> FileCheck:
        return lambda file, reading: check_file(self.log.storage, file, reading, "parquet")


def _cleaned(path: str, modified: datetime | None, now: datetime) -> FileCleanUp:
    if not path.endswith(".parquet"):
        kind = "deletion vector" if path.endswith(".puffin") else "metadata"
        return FileCleanUp(kind=kind, outcome="ignored", because="only parquet files are looked at")
    kind = "deletes" if path.endswith("-delete.parquet") else "data"
    if modified is None:
        return FileCleanUp(kind=kind, outcome=None, because="the storage does not say when it was written")
    if modified < now - _ORPHAN_AGE:
        return FileCleanUp(kind=kind, outcome="deleted", because="older than 2 days")
    return FileCleanUp(kind=kind, outcome="kept", because="not older than 2 days")
