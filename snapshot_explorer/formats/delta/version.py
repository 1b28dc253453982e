"""`DeltaVersion`: one version of a Delta table, as `formats.TableVersion` defines it."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.records import (
    FieldIds,
    MaintenanceSettings,
    NativeRows,
    PlannedPair,
    Predicate,
    ReadPlan,
    Split,
    TableSchema,
    Validation,
)
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.delta.changes.events import HIDDEN, DeltaEvents, DeltaVectorDifference, read_events
from snapshot_explorer.formats.delta.changes.row_changes import ChangeData
from snapshot_explorer.formats.delta.expiry.settings import settings_of
from snapshot_explorer.formats.delta.files import deletion_vectors
from snapshot_explorer.formats.delta.files.missing_files import Removals
from snapshot_explorer.formats.delta.frames.files import files_frame
from snapshot_explorer.formats.delta.frames.manifests import entries_of, manifests_frame
from snapshot_explorer.formats.delta.inspect.inspections import DeltaInspector
from snapshot_explorer.formats.delta.metadata import schema as schemas
from snapshot_explorer.formats.delta.metadata.data_types import field_ids
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.partitions import partition_texts, partitions_of
from snapshot_explorer.formats.delta.metadata.records import DeltaState, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.times import Times
from snapshot_explorer.formats.delta.scan import planning
from snapshot_explorer.formats.delta.scan import read as rows
from snapshot_explorer.formats.delta.scan import statistics as values
from snapshot_explorer.formats.delta.scan.metadata_columns import metadata_schema
from snapshot_explorer.formats.delta.scan.native_files import native_files, split_by_file
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan
from snapshot_explorer.formats.delta.scan.removals import removed_in
from snapshot_explorer.formats.interface import RowChanges, TableVersion
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.formats.statistics import with_bounds
from snapshot_explorer.storage import Storage


class DeltaVersion(TableVersion):
    """One version of a Delta table. Immutable and picklable; protocol and metadata are read once, on first use.

    The log caches the live files of the last few versions.
    """

    def __init__(self, storage: Storage, number: int, *, log: DeltaLog, times: Times) -> None:
        self._storage = storage
        self._number = number
        self._log = log
        self._times = times

    def __reduce__(self) -> tuple[object, tuple[Storage, int, tuple[Protocol, Metadata] | None]]:
        return _restore, (self._storage, self._number, vars(self).get("_definition"))

    @property
    def storage(self) -> Storage:
        return self._storage

    @property
    def number(self) -> int:
        return self._number

    @cached_property
    def _definition(self) -> tuple[Protocol, Metadata]:
        return self._log.protocol_and_metadata(self._number)

    @cached_property
    def schema(self) -> TableSchema:
        return schemas.table_schema(self._definition[1])

    @cached_property
    def field_ids(self) -> Mapping[str, FieldIds]:
        return {
            field.name: field_ids(field.type, field.stored) for field in schemas.schema_of(self._definition[1]).fields
        }

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return schemas.arrow_schema(self._definition[1])

    @property
    def properties(self) -> Mapping[str, str]:
        return self._definition[1].configuration

    @property
    def format_version(self) -> str:
        """Return the protocol that the version needs: reader and writer version, and features."""
        protocol = self._definition[0]
        features = sorted((protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset()))
        versions = f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
        return versions + (f": {', '.join(features)}" if features else "")

    def repair_obstacle(self, *, of_rows: bool) -> str | None:
        """Return the reason, a column or property, why rows cannot be written again or removed; None without one.

        Source: delta PROTOCOL.md, "Generated Columns", "Identity Columns", "Append-only Tables".
        """
        if parse_flag(self.properties, "delta.appendOnly"):
            return "The property delta.appendOnly=true forbids that rows are removed."
        computed = schemas.computed_columns(self._definition[1]) if of_rows else ()
        if not computed:
            return None
        return f"Delta computes the values of the generated or identity columns {', '.join(computed)} itself."

    def repair_settings(self, *, merges: bool) -> Sequence[str]:
        """Return the settings for partition columns with a dot or a backtick in their names, and for char(n).

        MERGE repartitions its rows by the partition columns, whose names are not quoted there. Where Spark pads the
        values of char(n) as it reads them, MERGE does not find the columns
        (DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT), and DELETE skips files by statistics of values that are not
        padded; seen with Delta 4.4.
        Source: delta `MergeIntoCommandBase.writeFiles`; spark `ApplyCharTypePadding`.
        """
        settings = []
        if merges and any("." in name or "`" in name for name in self._definition[1].partition_columns):
            settings.append("spark.databricks.delta.merge.repartitionBeforeWrite.enabled = false")
        if any("char(" in column.type.lower().replace("varchar(", "") for column in self.schema.columns):
            settings.append("spark.sql.readSideCharPadding = false")
        return settings

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        return metadata_schema(names, self._definition[1])

    def validate(self) -> Validation:
        """Return the table's id, and the differences of the version's checksum file from the log.

        Reads the checksum file, and protocol and metadata from the log: from the commits after the checkpoint or, if
        they do not contain them, the checkpoint.
        """
        table_id, notes = self._log.validate(self._number)
        return Validation(table_id=table_id, notes=tuple(notes))

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: the files of the checkpoint as base, the commits after it as delta.

        Reads both, since nothing else contains their file counts.
        """
        checkpoint = self._log.checkpoint_files(self._number)
        segment = self._log.segment(self._number)
        actions = self._log.actions([commit.version for commit in segment.commits], infos=False)
        return manifests_frame(segment, checkpoint, actions)

    def file_count(self) -> int:
        return len(self._log.state(self._number).adds)

    def entries(self, manifest: str) -> pa.Table:
        return entries_of(self._storage, self._log, self._number, manifest)

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, restricted to partitions that might match the predicate.

        Reads the checkpoint and the commits after it, unless they are cached.
        """
        state = self._log.state(self._number)
        adds = _in_partitions(state, predicate)
        rows = values.rows_of(adds)
        frame = files_frame(adds, partitions=partition_texts(adds, state.metadata), rows=rows)
        return with_bounds(frame, values.bounds_of(adds, state.metadata)) if statistics else frame

    def maintenance_settings(self) -> MaintenanceSettings:
        return settings_of(self.properties, self._storage.root)

    def inspect(self, name: str) -> pa.Table:
        return DeltaInspector(self._storage, self._log, self._times).of_version(name, self._number)

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        return planning.plan(self._storage, self._log.state(self._number), predicate)

    def plan_pair(self, other: Self, predicates: Sequence[Predicate | None]) -> PlannedPair:
        states = self._storage.together(
            *(partial(version._log.state, version._number) for version in (self, other))  # noqa: SLF001 - its own
        )
        return planning.plan_pair(self._storage, states, predicates)

    def changelog(self) -> RowChanges:
        change_data = ChangeData(self._storage, self._log, self._times)
        return RowChanges(
            schema=self.arrow_schema,
            metadata_columns=HIDDEN,
            splits=lambda _: change_data.of_version(self._number),
            reader=self,
        )

    def changelog_files(self) -> RowChanges:
        change_data = ChangeData(self._storage, self._log, self._times)
        return replace(self.changelog(), splits=lambda _: change_data.recorded(self._number))

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(split.detail, DeltaEvents):
            return read_events(self._storage, split.detail, columns, self._removals(split.detail.version))
        return rows.read(self._storage, split, columns, predicate, removals=self._removals(self._number))

    def split_by_file(self, split: Split) -> Sequence[Split]:
        return split_by_file(split)

    def native_files(self, split: Split) -> NativeRows | None:
        return native_files(self._storage, split)

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        files = [plan.files[0] for part in parts if (plan := _plan_of_file(part)) is not None]
        read = partial(deletion_vectors.read_deleted_positions, self._storage, removals=self._removals(self._number))
        return [
            NOTHING if file.vector is None else read(file.vector, file.path, n)
            for file, n in zip(files, rows, strict=True)
        ]

    def identity_without_vector(self, split: Split) -> Hashable | None:
        plan = _plan_of_file(split)
        return None if plan is None else (tuple(sorted(split.partition.items())), plan.files[0].path, plan.schema)

    def stored_rows(self, split: Split) -> Split | None:
        plan = _plan_of_file(split)
        if plan is None:
            return None
        files = (replace(plan.files[0], vector=None),)
        return replace(split, raw=True, live_rows=None, detail=replace(plan, files=files))

    def identity_in(self, split: Split, columns: Sequence[str | None], absent: frozenset[str]) -> Hashable | None:
        # The schemas of the versions may differ: a column is read as stored in the file, by its name there or its id.
        plan = _plan_of_file(split)
        if plan is None:
            return None
        read: list[Hashable] = []
        for name in columns:
            if name is None or name in absent:
                read.append(None)
                continue
            field, is_partition = plan.schema.field(name), name in plan.schema.partition_columns
            key = field.id if plan.schema.mode == "id" and not is_partition else field.stored
            read.append((key, is_partition, field.type, field.changes))
        # The names of partition columns may differ, their order may not.
        return tuple(split.partition.values()), plan.files[0].path, plan.files[0].vector, tuple(read)

    def columns_added_since(self, other: Self) -> frozenset[str]:
        """Return the columns whose ids are greater than all ids of the table at the other version.

        None of that version's files contains them, because an id is assigned only once. Empty if column mapping is not
        enabled in both.

        Source: delta PROTOCOL.md, "Column Mapping", delta.columnMapping.maxColumnId.
        """
        schema, older = (schemas.schema_of(version._definition[1]) for version in (self, other))  # noqa: SLF001 - its own
        if older.max_id is None or "none" in (schema.mode, older.mode):
            return frozenset()
        return frozenset(field.name for field in schema.fields if field.id is not None and field.id > older.max_id)

    def rows_deleted(self, before: Split, after: Split) -> Split | None:
        plan, later = _plan_of_file(before), _plan_of_file(after)
        if plan is None or later is None:
            return None
        (file,), (other,) = plan.files, later.files
        if other.vector is None or other.vector == file.vector:
            return None
        events = DeltaEvents(
            files=before,
            change="delete",
            version=self._number,
            committed_at=None,
            columns=tuple(field.name for field in plan.schema.fields),
            vector_difference=DeltaVectorDifference(
                path=file.path, rows=file.rows, deleted_by=other.vector, not_deleted_by=file.vector
            ),
        )
        return replace(before, raw=False, rows=other.vector.cardinality, live_rows=None, detail=events)

    def _removals(self, version: int) -> Removals:
        """Return the search for a later version without a missing file, which shows that this version has expired."""
        return Removals(version=version, removed_in=partial(removed_in, self._storage, self._log))


def _plan_of_file(split: Split) -> DeltaPlan | None:
    plan = split.detail
    return plan if isinstance(plan, DeltaPlan) and len(plan.files) == 1 else None


def _restore(storage: Storage, number: int, definition: tuple[Protocol, Metadata] | None) -> DeltaVersion:
    log = DeltaLog(storage)
    result = DeltaVersion(storage, number, log=log, times=Times(storage, log))
    if definition is not None:
        vars(result)["_definition"] = definition
    return result


def _in_partitions(state: DeltaState, predicate: Predicate | None) -> pa.Table:
    names = frozenset(state.metadata.partition_columns)
    part = predicate.on(names) if predicate is not None and names else None
    if part is None:
        return state.adds
    partitions = partitions_of(state.adds, schemas.schema_of(state.metadata))
    passes = np.asarray(part.mask(partitions.values).to_numpy(zero_copy_only=False), np.bool_)
    return state.adds.filter(pa.array(passes[partitions.of_rows]))
