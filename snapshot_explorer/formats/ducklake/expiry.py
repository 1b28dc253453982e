"""What expiry and clean-up would delete, which files exist, their checks, and the settings of maintenance.

Source: DuckLake specification 1.0, "Expire Snapshots", "Cleanup of Files"; reference, "Expiry, cleanup, orphans".
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import MaintenanceSettings
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.capabilities import Erasure, Maintenance
from snapshot_explorer.formats.ducklake.metadata.names import MAIN
from snapshot_explorer.formats.ducklake.metadata.paths import located, table_folders
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    DuckLakeLog,
    DuckLakeMetadata,
    live_mask,
    numbers,
    option,
)
from snapshot_explorer.formats.ducklake.scan import partition_maps
from snapshot_explorer.formats.expiry import (
    Expiry,
    Mask,
    Presence,
    RetentionRule,
    check_age,
    checked_files,
    format_duration,
    holder,
    parse_duration,
    presence_from,
)
from snapshot_explorer.formats.file_checks import FileCheck
from snapshot_explorer.formats.files.whole_files import check_file
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles
from snapshot_explorer.formats.settings import SettingsReader, parse_bytes

_SEARCHED = (".parquet", ".puffin")
"""The endings of files that writers make below the data path."""
_ORPHAN_AGE = timedelta(days=2)
_OPTION = "expire_older_than"
_TARGET = 512_000_000
_NOTE = (
    "Files that the next clean-up deletes count as named. If another lake has the same data path, its files are "
    "shown as orphans."
)

_EXPIRY_NOTES = (
    "Expired files are scheduled, and ducklake_cleanup_old_files deletes them later, by default after 2 days.",
    "Nothing expires unless someone calls it. Snapshots are of the whole catalog: other tables lose them too.",
    "Inlined rows of expired snapshots remain in the catalog, and merged files keep their rows.",
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
        """Return what `ducklake_expire_snapshots` with an age would do to the newest state: exact, from the catalog.

        A file is freed if every existing snapshot that sees it expires. The catalog's newest snapshot never expires.

        Raises:
            InvalidArgumentError: The rule has a number of versions: snapshots expire by age, or one by one.
        """
        if rule.keep_last is not None:
            raise InvalidArgumentError(
                "DuckLake expires snapshots by their age, not by their number: leave keep_last out. Give an age as "
                "keep."
            )
        metadata = self.log.current()
        text = option(metadata.rows["metadata"], _OPTION)
        keep = rule.keep if rule.keep is not None else None if text is None else parse_duration(text)
        existing = metadata.snapshot_ids
        expires = np.zeros(len(existing), np.bool_)
        if keep is not None:
            limit = check_age(rule.now, keep)
            times = metadata.rows["snapshot"].column("snapshot_time").to_pylist()
            expires[:-1] = [at is not None and at < limit for at in times[:-1]]
        files, deletes = (
            _freed(metadata.rows[name], existing, existing[~expires]) for name in ("data_file", "delete_file")
        )
        freed = [_frame(metadata, files, what="data", partition=partition_maps(metadata, files))]
        freed.append(_frame(metadata, deletes, what="deletes"))
        is_unknown = text is not None and rule.keep is None and keep is None
        return Expiry(
            versions=_versions(metadata, expires),
            freed=pa.concat_tables(freed),
            holders=_holders(metadata, files),
            rules=((_OPTION, _rule_text(keep, rule, text)),),
            commands=(("DuckDB", _command(limit)),) if keep is not None and expires.any() else (),
            notes=_EXPIRY_NOTES,
            unknown=f"The option {_OPTION}={text!r} is not understood, so what expires is unknown."
            if is_unknown
            else None,
        )

    def named_files(self, listed: pa.Array) -> NamedFiles:
        """Return the files that any table of the catalog names, and those that the next clean-up deletes.

        A catalog that shares its data path with another one does not name the files of that one.
        """
        relocate, root = self.log.relocate, self.log.storage.root
        with self.log.reading() as reader:
            folders = table_folders(reader.read("schema"), reader.read("table"))
            tables = ("data_file", "delete_file", "files_scheduled_for_deletion")
            paths = [located(reader.read(name), folders, relocate, root).to_pylist() for name in tables]
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


def settings_of(properties: Mapping[str, str], parts: tuple[str, str]) -> MaintenanceSettings:
    """Return the settings of maintenance from the options of a table, or DuckLake's defaults.

    Args:
        parts: The names of its schema and of the table.
    """
    settings = SettingsReader(properties, noun="option", engine="DuckLake")
    target, target_source = settings.of("target_file_size", _TARGET, parse_bytes)
    schema, table = (part.replace("'", "''") for part in parts)
    chosen = f"'{table}'" if schema == MAIN else f"'{table}', schema => '{schema}'"
    return MaintenanceSettings(
        target_bytes=target,
        target_source=target_source,
        small_bytes=max(1, target // 2),
        small_source="half of the target",
        deleted_ratio=0.95,
        deleted_source="DuckLake's default of rewrite_delete_threshold",
        compact=f"CALL ducklake_merge_adjacent_files('lake', {chosen})",
        repartition_advice="Choose coarser partitions with ALTER TABLE ... SET PARTITIONED BY",
        notes=tuple(settings.notes),
    )


def _rule_text(keep: timedelta | None, rule: RetentionRule, text: str | None) -> str:
    if keep is None:
        return "not set: nothing expires" if text is None else text
    return f"{format_duration(keep)}, {'as requested' if rule.keep is not None else f'the option {_OPTION}'}"


def _command(limit: datetime) -> str:
    return f"CALL ducklake_expire_snapshots('lake', older_than => TIMESTAMPTZ '{limit:%Y-%m-%d %H:%M:%S+00}')"


def _freed(rows: pa.Table, existing: np.ndarray, kept: np.ndarray) -> pa.Table:
    """Return the rows that an existing snapshot sees and no kept one."""
    begins, ends = numbers(rows, "begin_snapshot"), numbers(rows, "end_snapshot")

    def seen(snapshots: np.ndarray) -> Mask:
        mask: Mask = np.searchsorted(snapshots, begins) < np.searchsorted(snapshots, ends)
        return mask

    return rows.filter(pa.array(seen(existing) & ~seen(kept)))


def _frame(metadata: DuckLakeMetadata, rows: pa.Table, **known: object) -> pa.Table:
    columns = {
        "path": metadata.locate(rows),
        "size_bytes": rows.column("file_size_bytes"),
        "removed_version": rows.column("end_snapshot"),
    }
    return frames.table_of(frames.FREED, columns | known)


def _versions(metadata: DuckLakeMetadata, expires: Mask) -> pa.Table:
    """Return the RETAINED frame of the versions. Which snapshots expire is in their order."""
    at = np.searchsorted(metadata.snapshot_ids, metadata.versions)
    times = metadata.rows["snapshot"].column("snapshot_time").take(pa.array(at, pa.int64()))
    newest = len(expires) - 1
    texts = ("not older than the age to keep", "the snapshot is older than the age to keep", "the newest snapshot")
    columns = {
        "version": pa.array(metadata.versions, pa.int64()),
        "committed_at": times.cast(frames.RETAINED.field("committed_at").type, safe=False),
        "outcome": ["lost" if lost else "kept" for lost in expires[at].tolist()],
        "because": [texts[2 if index == newest else int(expires[index])] for index in at.tolist()],
    }
    return frames.table_of(frames.RETAINED, columns)


def _holders(metadata: DuckLakeMetadata, freed: pa.Table) -> pa.Table:
    """Return the HOLDERS frame: the kept versions hold the files that ended and are not freed."""
    ended = metadata.rows["data_file"].filter(metadata.rows["data_file"].column("end_snapshot").is_valid())
    locations = metadata.locate(ended).to_pylist()
    sizes = dict(zip(locations, ended.column("file_size_bytes").to_pylist(), strict=True))
    paths = sizes.keys() - frozenset(metadata.locate(freed).to_pylist())
    row = holder("kept versions", None, version=None, sizes=sizes, paths=paths, exclusive=paths)
    return pa.Table.from_pylist([row], frames.HOLDERS)
