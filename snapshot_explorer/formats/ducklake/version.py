"""`DuckLakeVersion`: one version of a DuckLake table, as `formats.TableVersion` defines it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.records import (
    Column,
    FieldIds,
    Finding,
    Predicate,
    ReadPlan,
    Split,
    TableSchema,
    Validation,
)
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.capabilities import HealthFacts, without_delete_records
from snapshot_explorer.formats.ducklake import scan
from snapshot_explorer.formats.ducklake.changes import DuckLakeEvents, read_events
from snapshot_explorer.formats.ducklake.expiry import settings_of
from snapshot_explorer.formats.ducklake.files import RULES
from snapshot_explorer.formats.ducklake.frames import entries_frame, files_frame, manifest_path, manifests_frame
from snapshot_explorer.formats.ducklake.inspect import inspect_version
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_field, type_text, walk
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    DuckLakeLog,
    DuckLakeMetadata,
    live_mask,
    live_rows,
)
from snapshot_explorer.formats.ducklake.scan import HIDDEN, file_bounds, partition_bounds, read_split
from snapshot_explorer.formats.files.field_columns import field_ids
from snapshot_explorer.formats.interface import TableVersion, unknown_manifest
from snapshot_explorer.formats.statistics import with_bounds

_MANY_INLINED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """The schema of a version for other machines. Picklable."""

    fields: tuple[LakeField, ...]
    schema: TableSchema


class DuckLakeVersion(TableVersion):
    """One version of a DuckLake table. Immutable and picklable."""

    def __init__(self, log: DuckLakeLog, number: int | None, metadata: DuckLakeMetadata | None) -> None:
        """Bind to a version; on another machine the catalog is opened when it is needed."""
        super().__init__(log.storage, number)
        self._log = log
        self._listed = metadata

    def __reduce__(self) -> tuple[object, tuple[DuckLakeLog, int | None, None], dict[str, _Definition]]:
        return DuckLakeVersion, (self._log, self._number, None), {"_definition": self._definition}

    @property
    def _metadata(self) -> DuckLakeMetadata:
        if self._listed is None:
            self._listed = self._log.current() if self._number is None else self._log.having(self._number)
        return self._listed

    @property
    def _snapshot(self) -> int:
        """The snapshot of the version."""
        return self._metadata.begin if self._number is None else self._number

    @cached_property
    def _definition(self) -> _Definition:
        fields = self._metadata.fields_at(self._snapshot)
        return _Definition(fields=fields, schema=table_schema(self._metadata, self._snapshot))

    @property
    def schema(self) -> TableSchema:
        return self._definition.schema

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([arrow_field(field) for field in self._definition.fields])

    @cached_property
    def field_ids(self) -> Mapping[str, FieldIds]:
        return {field.name: field_ids(RULES, field) for field in self._definition.fields}

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the options of the table, its schema and the lake, which have no history, and comments."""
        metadata = self._metadata
        options = metadata.rows["metadata"].to_pylist()
        schema_ids = live_rows(metadata.rows["table"], self._snapshot).column("schema_id").to_pylist()
        owners = {None: [row["scope_id"] for row in options], "schema": schema_ids, "table": [metadata.table_id]}
        chosen = [
            row for scope, ids in owners.items() for row in options if row["scope"] == scope and row["scope_id"] in ids
        ]
        tags = live_rows(metadata.rows["tag"], self._snapshot).to_pylist()
        return {row["key"]: row["value"] for row in [*chosen, *tags]}

    @property
    def recorded_properties(self) -> Mapping[str, str]:
        return {}

    @property
    def format_version(self) -> str:
        return self._metadata.format_version

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        own = self.arrow_schema.names
        return pa.schema([arrow_field(field) for field in HIDDEN if field.name in names and field.name not in own])

    def fills_missing_columns(self, names: Collection[str]) -> bool:
        fields = tuple(field for field in self._definition.fields if field.name in names)
        return any(field.initial_default is not None for field in walk(fields))

    def validate(self) -> Validation:
        """Read the columns of the version."""
        _ = self._definition
        return Validation(table_id=self._metadata.uuid, notes=())

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame. Inlined rows are not in files. With `statistics`, opens the catalog once."""
        if self._number is None:
            return frames.FILES.empty_table()
        metadata = self._metadata
        files = live_rows(metadata.rows["data_file"], self._number)
        fields = self._definition.fields
        if predicate is not None:
            chosen = [field for field in fields if field.name in predicate.columns]
            partitions = partition_bounds(metadata, files, chosen)
            if partitions is not None:
                files = files.filter(predicate.ruled_out(partitions).is_null())
        frame = files_frame(metadata, files, self._number)
        return with_bounds(frame, file_bounds(self._log, metadata, files, fields)) if statistics else frame

    def file_count(self) -> int | None:
        return 0 if self._number is None else int(live_mask(self._metadata.rows["data_file"], self._number).sum())

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        return scan.plan(self._log, self._metadata, self._snapshot, predicate)

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(split.detail, DuckLakeEvents):
            return read_events(self._storage, split.detail, columns)
        return read_split(self._storage, split, columns, predicate)

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: the catalog's rows of each version, as if each were a manifest. Reads nothing."""
        return frames.MANIFESTS.empty_table() if self._number is None else manifests_frame(self._metadata, self._number)

    def entries(self, manifest: str) -> pa.Table:
        """Return the data files that a version added and removed, of the first version all its files."""
        metadata = self._metadata
        known = {manifest_path(metadata, version): version for version in metadata.versions.tolist()}
        version = known.get(manifest)
        if version is None or self._number is None or version > self._number:
            raise unknown_manifest(self._number, manifest)
        return entries_frame(metadata, version)

    def health_facts(self) -> HealthFacts:
        metadata = self._metadata
        return HealthFacts(
            settings=settings_of(self.properties, metadata.parts),
            measured_files=lambda: without_delete_records(self.files()),
            own_findings=self._own_findings,
        )

    def _own_findings(self) -> Sequence[Finding]:
        """Return the number of inlined rows, which a flush writes into files."""
        rows = sum(len(table.rows) for table in scan.inlined_rows(self._metadata, self._snapshot))
        return (
            Finding(
                finding="inlined rows",
                value=rows,
                watch_from=_MANY_INLINED,
                found=f"{rows:,} inlined rows in the catalog",
                threshold=f"{_MANY_INLINED:,} rows",
                meaning="Every query reads them from the catalog.",
                advice="CALL ducklake_flush_inlined_data('lake')",
            ),
        )

    def inspect(self, name: str) -> pa.Table:
        return inspect_version(name, self._metadata, self._snapshot)


def table_schema(metadata: DuckLakeMetadata, snapshot: int) -> TableSchema:
    """Return the schema at a snapshot. Partition keys are the columns of identity transforms."""
    fields = metadata.fields_at(snapshot)
    tags = live_rows(metadata.rows["column_tag"], snapshot).to_pylist()
    comments = {row["column_id"]: row["value"] for row in tags if row["key"] == "comment"}
    columns = tuple(
        Column(
            id=field.id,
            name=field.name,
            type=type_text(field),
            nullable=field.nullable,
            comment=comments.get(field.id),
        )
        for field in fields
    )
    names = {field.id: field.name for field in fields}
    specs = metadata.partition_fields(metadata.partition_at(snapshot))
    keys = [names.get(field.id) for field, transform in specs if transform == "identity" and field is not None]
    return TableSchema(
        id=metadata.value_at(snapshot, "schema_version") if snapshot in metadata.snapshot_ids else None,
        columns=columns,
        partition_keys=tuple(name for name in keys if name is not None),
        primary_keys=(),
    )
