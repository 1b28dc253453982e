"""`HudiVersion`: one version of a Hudi table, as `formats.TableVersion` defines it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import vectors
from snapshot_explorer.arrow.arrays import empty_table
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import (
    ChangeMode,
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
from snapshot_explorer.formats.hudi.changes.row_changes import (
    ChangedSlices,
    read_changes,
    recorded_splits,
    splits_between,
)
from snapshot_explorer.formats.hudi.expiry import settings
from snapshot_explorer.formats.hudi.frames.files import changes_frame, files_frame, manifest_path, manifests_frame
from snapshot_explorer.formats.hudi.inspect.inspections import inspect_version
from snapshot_explorer.formats.hudi.metadata.file_groups import STORED, records
from snapshot_explorer.formats.hudi.metadata.history import HudiHistory, HudiSource, previous_version
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.schema import (
    field_ids,
    has_one_type_per_column,
    table_schema,
    version_schema,
)
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_field
from snapshot_explorer.formats.hudi.scan import planning
from snapshot_explorer.formats.hudi.scan import read as rows
from snapshot_explorer.formats.hudi.scan.meta_columns import COMMIT_TIME, FIELDS, metadata_columns
from snapshot_explorer.formats.hudi.scan.native_files import HudiNativeFiles, split_by_file
from snapshot_explorer.formats.interface import RowChanges, TableVersion, unknown_manifest
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """The definition of a version for other machines. Picklable."""

    config: TableConfig
    fields: tuple[HudiField, ...]
    schema_on_read: bool


class HudiVersion(TableVersion):
    """One version of a Hudi table. Immutable and picklable; its schema is read once, when first used."""

    def __init__(self, storage: Storage, number: int | None, history: HudiHistory, source: HudiSource | None) -> None:
        """Bind to a version in a listing; on another machine the timeline is listed when it is needed."""
        super().__init__(storage, number)
        self._history = history
        self._listed = source

    def __reduce__(self) -> tuple[object, tuple[Storage, int | None, _Definition]]:
        return _restore, (self._storage, self._number, self._definition)

    @cached_property
    def _source(self) -> HudiSource:
        if self._listed is not None:
            return self._listed
        return self._history.current() if self._number is None else self._history.having(self._number)

    @cached_property
    def _definition(self) -> _Definition:
        schema = version_schema(self._source, self._number)
        return _Definition(config=self._source.config, fields=schema.fields, schema_on_read=schema.schema_on_read)

    @cached_property
    def schema(self) -> TableSchema:
        return table_schema(self._definition.config, self._definition.fields)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([arrow_field(field) for field in self._definition.fields])

    @cached_property
    def field_ids(self) -> Mapping[str, FieldIds]:
        return {field.name: field_ids(field) for field in self._definition.fields}

    @property
    def properties(self) -> Mapping[str, str]:
        """Return `hoodie.properties`, which have no history: the same at every version."""
        return self._definition.config.values

    @property
    def format_version(self) -> str:
        """Return the table version, the timeline layout, the table type, and a remark that the zone is not recorded."""
        config = self._definition.config
        word = "MERGE_ON_READ" if config.is_merge_on_read else "COPY_ON_WRITE"
        zone = "" if config.has_utc_times else "; times in the unrecorded zone of its writers"
        return f"table version {config.version}, timeline layout {config.layout}: {word}{zone}"

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        return metadata_columns(names, self._definition.config)

    def validate(self) -> Validation:
        """Read the metadata of the version's commit."""
        if self._number is not None:
            self._source.commits([self._number])
        return Validation(table_id=None, notes=())

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: the metadata of the commits up to the version. Hudi has no lists of files."""
        if self._number is None:
            return frames.MANIFESTS.empty_table()
        return manifests_frame(self._source, self._source.state, self._number)

    def entries(self, manifest: str) -> pa.Table:
        """Return the files that a commit added and removed."""
        versions = self._source.versions if self._number is not None else ()
        commits = {manifest_path(self._source, version): version for version in versions}
        version = commits.get(manifest)
        if version is None or self._number is None or version > self._number:
            raise unknown_manifest(self._number, manifest)
        changes = changes_frame(self._source, self._source.state, [version])
        return changes.filter(pc.equal(changes.column("list"), "delta")).select(frames.ENTRIES.names)

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, base and log files. Reads the metadata of all commits that was not read before.

        With `statistics`, these are null: the metadata of Hudi that is read has none.
        """
        if self._number is None:
            frame = frames.FILES.empty_table()
        else:
            state = self._source.state
            files, definition = state.at(self._number, self._storage.root), self._definition
            chosen = planning.in_partitions(definition.config, definition.fields, files, predicate)
            frame = files_frame(definition.config, chosen, state.start)
        return _with_unknown_statistics(frame, self.arrow_schema) if statistics else frame

    def _files(self) -> planning.VersionFiles:
        number, state = self._number, self._source.state
        return planning.VersionFiles(
            config=self._definition.config,
            version=0 if number is None else number,
            fields=self._definition.fields,
            files=empty_table(STORED) if number is None else state.at(number, self._storage.root),
            committed_before=state.start if state.is_cut else None,
            schema_on_read=self._definition.schema_on_read,
            has_one_type_per_column=has_one_type_per_column(self._source, self._definition.fields),
        )

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        return planning.plan(self._files(), predicate)

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(split.detail, ChangedSlices):
            return read_changes(self._storage, split.detail, columns)
        return rows.read(self._storage, split, columns, predicate)

    def changelog(self) -> RowChanges:
        """Return the rows that the version's commit changed, as `changes` after the version before it."""
        before = None if self._number is None else previous_version(self._source, self._number)
        return self.changes(-1 if before is None else before, "auto")

    def changelog_files(self) -> RowChanges | None:
        """Return the rows in the files of row changes that the version's commit wrote; None without a commit."""
        number = self._number
        if number is None:
            return None
        before = previous_version(self._source, number)
        splits = partial(recorded_splits, self._source, self._at, before, number)
        return replace(self.changelog(), splits=lambda _: splits())

    def changes(self, first: int, mode: ChangeMode) -> RowChanges:
        """Return the rows that changed after another version up to this one; see `TableFormat.row_changes`."""
        last = 0 if self._number is None else self._number
        return RowChanges(
            schema=self.arrow_schema,
            metadata_columns=pa.schema([arrow_field(FIELDS[COMMIT_TIME])]),
            splits=lambda _: splits_between(self._source, self._at, first, last, mode),
            reader=self,
        )

    def _at(self, version: int) -> planning.VersionFiles:
        """Return the files from which another version's splits are planned, to be read in this version's schema."""
        state = self._source.state
        return replace(self._files(), version=version, files=state.at(version, self._storage.root))

    def health_facts(self) -> HealthFacts:
        config = self._definition.config
        return HealthFacts(
            settings=settings.settings_of(config.values, self._table_name, is_merge_on_read=config.is_merge_on_read),
            measured_files=lambda: without_delete_records(self.files()),
            own_findings=self._own_findings,
        )

    def _own_findings(self) -> Sequence[Finding]:
        if self._number is None:
            return ()
        return settings.own_findings(self._source, self._number, records(self._files().files), self._table_name)

    @property
    def _table_name(self) -> str:
        folder = self._storage.root.rstrip("/").rpartition("/")[2]
        return self._definition.config.values.get("hoodie.table.name", folder)

    def inspect(self, name: str) -> pa.Table:
        state = self._source.state
        files = [] if self._number is None else records(state.at(self._number, self._storage.root))
        return inspect_version(name, self._definition.config, files)

    def split_by_file(self, split: Split) -> Sequence[Split]:
        return split_by_file(split)

    @property
    def native_files(self) -> HudiNativeFiles:
        return HudiNativeFiles(self._storage)


def _restore(storage: Storage, number: int | None, definition: _Definition) -> HudiVersion:
    version = HudiVersion(storage, number, HudiHistory(storage), None)
    vars(version)["_definition"] = definition
    return version


def _with_unknown_statistics(frame: pa.Table, schema: pa.Schema) -> pa.Table:
    bounds = vectors.as_lists(pa.struct(list(schema)))
    counts = pa.struct([pa.field(name, pa.int64()) for name in schema.names])
    for name, data_type in (("lower", bounds), ("upper", bounds), ("null_count", counts)):
        frame = frame.append_column(name, pa.nulls(len(frame), data_type))
    return frame
