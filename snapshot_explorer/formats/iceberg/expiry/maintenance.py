"""`IcebergMaintenance`: what the expiry of snapshots and the removal of orphan files do to a table."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.formats.capabilities import Erasure, Maintenance
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, FileReading, RecordedFile
from snapshot_explorer.formats.files.field_columns import FileField
from snapshot_explorer.formats.files.whole_files import check_file
from snapshot_explorer.formats.iceberg.expiry.orphans import clean_up, named_files
from snapshot_explorer.formats.iceberg.expiry.presence import presence
from snapshot_explorer.formats.iceberg.expiry.retention import expiry
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules, file_fields, id_rules
from snapshot_explorer.formats.iceberg.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.iceberg.metadata.schema import parse_schema
from snapshot_explorer.formats.iceberg.scan.statistics import statistics_files
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.formats.statistics import StatisticsFiles


@dataclass(frozen=True, kw_only=True)
class IcebergMaintenance(Maintenance):
    """The maintenance of a branch of an Iceberg table."""

    erasure: ClassVar[Erasure | None] = Erasure(
        settings={"gc.enabled": ("true", "true")},
        steps=(
            ("Delete the rows from the newest snapshot.", "DELETE FROM {name}\nWHERE {where}"),
            (
                "Rewrite data files that have delete files: they store deleted rows.",
                (
                    "CALL system.rewrite_data_files(table => '{name}', options =>\n"
                    "  map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true'))"
                ),
            ),
            ("Write manifests without the bounds of removed files.", "CALL system.rewrite_manifests('{name}')"),
            ("The tag keeps the rows.", "ALTER TABLE {name} DROP TAG {tag}"),
            ("The branch keeps the rows.", "ALTER TABLE {name} DROP BRANCH {branch}"),
            (
                "Delete the files of all other snapshots.",
                "CALL system.expire_snapshots('{name}',\n  older_than => TIMESTAMP '9999-01-01', retain_last => 1)",
            ),
            (
                "Delete files that no snapshot names, if they are older than 3 days.",
                "CALL system.remove_orphan_files('{name}')",
            ),
        ),
    )
    unsearched_values: ClassVar[str | None] = (
        "equality delete files, manifest lists with partitions, statistics and partition statistics files"
    )

    metadata: BranchMetadata

    def expiry(
        self,
        rule: RetentionRule,
        lifetimes: pa.Table,
        newest: int | None,  # noqa: ARG002 - all of one file
        unread: Collection[int] = (),  # noqa: ARG002 - found by reading all manifests
    ) -> Expiry:
        source, history, _ = self.metadata.read()
        return expiry(source, history, rule, lifetimes)

    def file_check(self) -> FileCheck:
        @cache
        def rules() -> IdRules:
            metadata = self.metadata.current()[0].metadata
            return id_rules(metadata.properties, [parse_schema(raw) for _, raw in sorted(metadata.schemas.items())])

        def check(file: RecordedFile, reading: FileReading) -> CheckedFile:
            def fields_of(schema: pa.Schema, is_orc: bool) -> Sequence[FileField]:  # noqa: FBT001 - as FieldsOf
                return file_fields(schema, rules(), file.path, by_position=not is_orc)

            return check_file(self.metadata.storage, file, reading, fields_of=fields_of)

        return check

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        source, history = self.metadata.having(versions)
        return presence(source, history, lifetimes, versions)

    def statistics_files(self, versions: Sequence[int], at: int, columns: Collection[str]) -> StatisticsFiles:
        source, history = self.metadata.having([at])
        snapshots = [(version, history.snapshots[version]) for version in versions if version in history.ids]
        schema = parse_schema(history.metadata.schema_with(self.metadata.schema_id(history, at)))
        return statistics_files(source, snapshots, [field for field in schema.fields if field.name in columns])

    def named_files(self, listed: pa.Array) -> NamedFiles:
        source, _, _ = self.metadata.read()
        return named_files(source, listed)

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        source, _ = self.metadata.current()
        return clean_up(source, files, now)
