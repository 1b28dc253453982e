"""`DeltaVersion`: one version of a Delta table, as `formats.TableVersion` defines it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.records import (
    FieldIds,
    Predicate,
    ReadPlan,
    Split,
    TableSchema,
    Validation,
)
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.capabilities import HealthFacts, without_delete_records
from snapshot_explorer.formats.delta.changes.events import HIDDEN, DeltaEvents, read_events
from snapshot_explorer.formats.delta.changes.row_changes import ChangeData
from snapshot_explorer.formats.delta.expiry.settings import settings_of
from snapshot_explorer.formats.delta.files.missing_files import Removals
from snapshot_explorer.formats.delta.frames.files import files_frame
from snapshot_explorer.formats.delta.frames.manifests import entries_of, manifests_frame
from snapshot_explorer.formats.delta.inspect.inspections import DeltaInspector
from snapshot_explorer.formats.delta.metadata import schema as schemas
from snapshot_explorer.formats.delta.metadata.checkpoints import ALL_COLUMNS, NeededColumns
from snapshot_explorer.formats.delta.metadata.data_types import field_ids
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.partitions import partition_texts, partitions_of
from snapshot_explorer.formats.delta.metadata.records import Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.times import Times
from snapshot_explorer.formats.delta.row_identity import DeltaRowIdentity
from snapshot_explorer.formats.delta.scan import planning
from snapshot_explorer.formats.delta.scan import read as rows
from snapshot_explorer.formats.delta.scan import statistics as values
from snapshot_explorer.formats.delta.scan.metadata_columns import metadata_schema
from snapshot_explorer.formats.delta.scan.native_files import DeltaNativeFiles, split_by_file
from snapshot_explorer.formats.delta.scan.removals import removed_in
from snapshot_explorer.formats.interface import RowChanges, TableVersion
from snapshot_explorer.formats.statistics import with_bounds
from snapshot_explorer.storage import Storage


class DeltaVersion(TableVersion):
    """One version of a Delta table. Immutable and picklable; protocol and metadata are read once, on first use.

    The log caches the live files of the last few versions.
    """

    _number: int

    def __init__(self, storage: Storage, number: int, *, log: DeltaLog, times: Times) -> None:
        super().__init__(storage, number)
        self._log = log
        self._times = times

    def __reduce__(self) -> tuple[object, tuple[Storage, int, tuple[Protocol, Metadata] | None]]:
        return _restore, (self._storage, self._number, vars(self).get("_definition"))

    @cached_property
    def _definition(self) -> tuple[Protocol, Metadata]:
        return self._log.protocol_and_metadata(self._number)

    @property
    def metadata(self) -> Metadata:
        """The action metaData in force."""
        return self._definition[1]

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
        return self._log.over_live_files(
            self._number, lambda _protocol, _metadata, live_files: sum(map(len, live_files)), _PATHS
        )

    def entries(self, manifest: str) -> pa.Table:
        return entries_of(self._storage, self._log, self._number, manifest)

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, restricted to partitions that might match the predicate.

        Reads the checkpoint and the commits after it, unless they are cached.
        """

        def frame_of(adds: pa.Table, metadata: Metadata) -> pa.Table:
            adds = _in_partitions(adds, metadata, predicate)
            frame = files_frame(adds, partitions=partition_texts(adds, metadata), rows=values.rows_of(adds))
            return with_bounds(frame, values.bounds_of(adds, metadata)) if statistics else frame

        def frame(_: Protocol, metadata: Metadata, live_files: Iterator[pa.Table]) -> pa.Table:
            return pa.concat_tables([frame_of(adds, metadata) for adds in live_files])

        return self._log.over_live_files(self._number, frame, _LISTED if not statistics else _WITH_STATISTICS)

    def health_facts(self) -> HealthFacts:
        return HealthFacts(
            settings=settings_of(self.properties, self._storage.root),
            measured_files=lambda: without_delete_records(self.files()),
        )

    def inspect(self, name: str) -> pa.Table:
        return DeltaInspector(self._storage, self._log, self._times).of_version(name, self._number)

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        if predicate is None:
            self._log.state(self._number)  # all files stay, so they are cached
        needed = ALL_COLUMNS if predicate is None else planning.needed_columns(self.metadata, predicate)
        return self._log.over_live_files(self._number, partial(planning.plan, self._storage, predicate), needed)

    def changelog(self) -> RowChanges:
        change_data = ChangeData(self._storage, self._log, self._times)
        return RowChanges(
            schema=self.arrow_schema,
            metadata_columns=HIDDEN,
            splits=lambda _: change_data.of_version(self._number),
            reader=self,
        )

    def changelog_files(self) -> RowChanges:
        """Return the rows in the change data files of the version's commit."""
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

    @property
    def native_files(self) -> DeltaNativeFiles:
        return DeltaNativeFiles(storage=self._storage, removals=self._removals(self._number))

    @property
    def row_identity(self) -> DeltaRowIdentity:
        return DeltaRowIdentity(
            storage=self._storage, log=self._log, number=self._number, metadata=lambda: self.metadata
        )

    def _removals(self, version: int) -> Removals:
        """Return the search for a later version without a missing file, which shows that this version has expired."""
        return Removals(version=version, removed_in=partial(removed_in, self._storage, self._log))


def _restore(storage: Storage, number: int, definition: tuple[Protocol, Metadata] | None) -> DeltaVersion:
    log = DeltaLog(storage)
    result = DeltaVersion(storage, number, log=log, times=Times(storage, log))
    if definition is not None:
        vars(result)["_definition"] = definition
    return result


_PATHS = NeededColumns(names=frozenset())
_LISTED = NeededColumns(names=frozenset({"partition_values", "stats"}))
_WITH_STATISTICS = replace(_LISTED, parsed=None)


def _in_partitions(adds: pa.Table, metadata: Metadata, predicate: Predicate | None) -> pa.Table:
    names = frozenset(metadata.partition_columns)
    part = predicate.on(names) if predicate is not None and names else None
    if part is None:
        return adds
    partitions = partitions_of(adds, schemas.schema_of(metadata))
    passes = np.asarray(part.mask(partitions.values).to_numpy(zero_copy_only=False), np.bool_)
    return adds.filter(pa.array(passes[partitions.of_rows]))
