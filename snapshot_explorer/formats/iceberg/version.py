"""`IcebergVersion`: one version of an Iceberg table, as `formats.TableVersion` defines it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import (
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
from snapshot_explorer.formats.files.field_columns import field_ids
from snapshot_explorer.formats.iceberg.changes.events import IcebergEvents, Part, read_events, read_part
from snapshot_explorer.formats.iceberg.changes.row_changes import no_changelog
from snapshot_explorer.formats.iceberg.deletes.unmatched import has_deletes, unmatched_deletes
from snapshot_explorer.formats.iceberg.expiry.settings import advice_on_unmatched_deletes, settings_of
from snapshot_explorer.formats.iceberg.files.columns import RULES
from snapshot_explorer.formats.iceberg.frames.files import files_frame, in_partitions
from snapshot_explorer.formats.iceberg.frames.manifests import entries_frame, manifests_frame
from snapshot_explorer.formats.iceberg.inspect.inspections import inspect_version
from snapshot_explorer.formats.iceberg.metadata.contents import (
    Source,
    entries_of,
    is_own,
    live_files,
    manifests_of,
    version_metadata,
)
from snapshot_explorer.formats.iceberg.metadata.data_types import walk
from snapshot_explorer.formats.iceberg.metadata.entries import STATISTICS
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA, DELETES
from snapshot_explorer.formats.iceberg.metadata.partitions import PartitionField, parse_spec
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema, arrow_schema, parse_schema, table_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot
from snapshot_explorer.formats.iceberg.row_identity import IcebergRowIdentity
from snapshot_explorer.formats.iceberg.scan import planning
from snapshot_explorer.formats.iceberg.scan.metadata_columns import metadata_schema
from snapshot_explorer.formats.iceberg.scan.native_files import IcebergNativeFiles
from snapshot_explorer.formats.iceberg.scan.plans import FIRST_WITH_ROW_IDS
from snapshot_explorer.formats.iceberg.scan.read import RowReader
from snapshot_explorer.formats.iceberg.scan.statistics import bounds
from snapshot_explorer.formats.interface import RowChanges, TableVersion, unknown_manifest
from snapshot_explorer.formats.missing_versions import empty_table_error
from snapshot_explorer.formats.statistics import with_bounds
from snapshot_explorer.formats.unmatched_deletes import of_unmatched_deletes


class IcebergVersion(TableVersion):
    """One version of a branch. Immutable and picklable."""

    def __init__(
        self, source: Source, snapshot: IcebergSnapshot | None, number: int | None, schema_id: int | None
    ) -> None:
        """Bind to a snapshot and a schema. Reads nothing.

        Args:
            snapshot: None for a table without one.
            schema_id: The schema to read under; None for the current one.
        """
        super().__init__(source.storage, number)
        self._source = source
        self._snapshot = snapshot
        self._schema_id = schema_id

    def __reduce__(
        self,
    ) -> tuple[type["IcebergVersion"], tuple[Source, IcebergSnapshot | None, int | None, int | None]]:
        metadata = self._source.metadata.without_history(() if self._snapshot is None else (self._snapshot,))
        return IcebergVersion, (replace(self._source, metadata=metadata), self._snapshot, self._number, self._schema_id)

    def in_own_schema(self) -> "IcebergVersion":
        own = None if self._snapshot is None else self._snapshot.schema_id
        if own in (None, self._schema_id):
            return self
        return IcebergVersion(self._source, self._snapshot, self._number, own)

    @cached_property
    def _schema(self) -> IcebergSchema:
        return parse_schema(self._source.metadata.schema_with(self._schema_id))

    def fills_missing_columns(self, names: Collection[str]) -> bool:
        fields = tuple(field for field in self._schema.fields if field.name in names)
        return any(field.initial_default is not None for field in walk(fields))

    @cached_property
    def schema(self) -> TableSchema:
        """Return the schema of the snapshot, or the current one for the newest state, and if none is recorded.

        Partition columns are those that the table's current spec contains untransformed.
        """
        fields = self._partition_fields
        return table_schema(
            self._schema, [field.source_ids[0] for field in fields if field.transform.name == "identity"]
        )

    @property
    def _partition_fields(self) -> Sequence[PartitionField]:
        metadata = self._source.metadata
        return parse_spec(metadata.specs.get(metadata.default_spec_id, {"spec-id": 0, "fields": []})).fields

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self._schema)

    @cached_property
    def field_ids(self) -> Mapping[str, FieldIds]:
        return {field.name: field_ids(RULES, field) for field in self._schema.fields}

    @property
    def properties(self) -> Mapping[str, str]:
        return self._source.metadata.properties

    @property
    def format_version(self) -> str:
        """Return the version of the table's metadata, and the partition fields and settings that affect readers."""
        metadata = self._source.metadata
        names = {column.id: column.name for column in self.schema.columns}
        features = [
            f"partitions by {field.transform.name} of {names.get(field.source_ids[0], field.name)}"
            for field in self._partition_fields
            if field.transform.name not in ("identity", "void")
        ]
        features += ["row lineage"] if metadata.format_version >= FIRST_WITH_ROW_IDS else []
        modes = {name: metadata.properties.get(f"write.{name}.mode") for name in ("delete", "update", "merge")}
        features += [f"{name} mode {mode}" for name, mode in modes.items() if mode]
        return f"{metadata.format_version}" + (f": {', '.join(features)}" if features else "")

    @property
    def recorded_properties(self) -> Mapping[str, str]:
        return {}

    def validate(self) -> Validation:
        if self._snapshot is not None:
            manifests_of(self._source, [self._snapshot])
        return Validation(table_id=self._source.metadata.table_uuid, notes=())

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame. Reads the manifest list only; see `manifests_frame`."""
        if self._snapshot is None or self._number is None:
            return frames.MANIFESTS.empty_table()
        manifests = manifests_of(self._source, [self._snapshot])
        return manifests_frame(self._source.metadata, manifests, self._snapshot, self._number)

    def file_count(self) -> int | None:
        """Return the number of live data files; None if the manifest list lacks a count. Reads the list only."""
        manifests = manifests_of(self._source, [self._snapshot] if self._snapshot is not None else [])
        of_data = manifests.filter(pc.equal(manifests["content"], DATA))
        counts = [pc.sum(of_data[name], skip_nulls=False, min_count=0) for name in ("added_files", "existing_files")]
        total: int | None = pc.add(*counts).as_py()
        return total

    def entries(self, manifest: str) -> pa.Table:
        """Return the ENTRIES of a manifest of data files.

        The entries of a base manifest are its live files, all added. The entries of a delta manifest are the changes of
        this commit and its carried over files.
        """
        if self._snapshot is None:
            raise empty_table_error(self._source.storage.root)
        manifests = manifests_of(self._source, [self._snapshot])
        chosen = manifests.filter(pc.equal(manifests.column("location"), manifest))
        if not len(chosen):
            raise unknown_manifest(self._number, manifest)
        if chosen.column("content")[0].as_py() != DATA:
            raise InvalidArgumentError(
                Message(
                    f"{manifest} contains delete files, no data files. See ",
                    Hint("table.inspect", {"name": "delete_files"}),
                    " and ",
                    Hint("table.inspect", {"name": "entries"}),
                    ".",
                )
            )
        entries = entries_of(self._source, chosen)
        writer = chosen.column("added_snapshot_id")[0].as_py()
        own = is_own(chosen, [self._snapshot])[0].as_py()
        return entries_frame(self._source.metadata, self._snapshot, entries, writer=writer, is_own=own)

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame. Reads the manifest list, then the manifests concurrently."""
        live = live_files(
            self._source,
            self._snapshot,
            statistics=STATISTICS.names if statistics else (),
            select=None if predicate is None else in_partitions(self._source.metadata, self._schema, predicate),
        )
        frame = files_frame(self._source.metadata, live)
        return with_bounds(frame, bounds(live.data, self._schema.fields)) if statistics else frame

    def health_facts(self) -> HealthFacts:
        return HealthFacts(
            settings=settings_of(self.properties, self._source.storage.root),
            measured_files=lambda: without_delete_records(self.files()),
            own_findings=self._own_findings,
        )

    def _own_findings(self) -> Sequence[Finding]:
        if self._snapshot is None or not has_deletes(manifests_of(self._source, [self._snapshot]), DELETES):
            return ()
        specs = self._source.metadata.specs.items()
        unpartitioned = {spec_id for spec_id, spec in specs if parse_spec(spec).is_unpartitioned}
        live = live_files(self._source, self._snapshot)
        advice = advice_on_unmatched_deletes(self._source.storage.root)
        return (of_unmatched_deletes(*unmatched_deletes(live, unpartitioned), advice=advice),)

    def inspect(self, name: str) -> pa.Table:
        return inspect_version(self._source, self._snapshot, name)

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        return metadata_schema(names, has_row_ids=self._source.metadata.format_version >= FIRST_WITH_ROW_IDS)

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        schema = self._source.metadata.schema_with(self._schema_id)
        return planning.plan(version_metadata(self._source, self._snapshot, schema), predicate)

    def changelog(self) -> RowChanges:
        raise no_changelog()

    @cached_property
    def _reader(self) -> RowReader:
        return RowReader(self._source.storage)

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(split.detail, IcebergEvents):
            return read_events(self._reader, split.detail, columns)
        if isinstance(split.detail, Part):
            return read_part(self._reader, split.detail, columns)
        return self._reader.read(split, columns, predicate)

    @property
    def native_files(self) -> IcebergNativeFiles:
        return IcebergNativeFiles(storage=self._storage, reader=self._reader)

    @property
    def row_identity(self) -> IcebergRowIdentity:
        return IcebergRowIdentity()
