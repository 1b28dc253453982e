"""`PaimonVersion`: one version of a Paimon table, as `formats.TableVersion` defines it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.records import (
    FieldIds,
    Finding,
    MaintenanceSettings,
    Predicate,
    ReadPlan,
    Split,
    TableSchema,
)
from snapshot_explorer.core.single_flight import SingleFlight, cached_property
from snapshot_explorer.formats.capabilities import HealthFacts
from snapshot_explorer.formats.interface import RowChanges, TableVersion
from snapshot_explorer.formats.missing_versions import empty_table_error
from snapshot_explorer.formats.paimon import fallback
from snapshot_explorer.formats.paimon.changes.events import (
    Difference,
    PaimonEvents,
    PaimonVectorDifference,
    read_difference,
    read_events,
)
from snapshot_explorer.formats.paimon.changes.row_changes import by_file, changelog_splits
from snapshot_explorer.formats.paimon.expiry.settings import features_in_use, settings_of, sql_name
from snapshot_explorer.formats.paimon.files import blobs, deletion_vectors
from snapshot_explorer.formats.paimon.frames.files import files_frame
from snapshot_explorer.formats.paimon.frames.manifests import entries_of, manifests_frame
from snapshot_explorer.formats.paimon.inspect.inspections import PaimonInspector
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.contents import (
    ManifestLists,
    read_index_manifests,
    read_lists_of,
    state_lists,
)
from snapshot_explorer.formats.paimon.metadata.data_types import arrow_field, field_ids
from snapshot_explorer.formats.paimon.metadata.manifests import FILE_COLUMNS, STATISTICS_COLUMNS
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, table_schema
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.row_identity import PaimonRowIdentity
from snapshot_explorer.formats.paimon.scan import read as rows
from snapshot_explorer.formats.paimon.scan.metadata_columns import metadata_fields
from snapshot_explorer.formats.paimon.scan.native_files import PaimonNativeFiles, split_by_file
from snapshot_explorer.formats.paimon.scan.scans import (
    file_schemas,
    filtered_state,
    paths_of,
    scan,
    vectors_in,
)
from snapshot_explorer.formats.paimon.scan.statistics import with_statistics
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.formats.unmatched_deletes import of_unmatched_deletes
from snapshot_explorer.storage import Storage


class PaimonVersion(TableVersion):
    """One version of a branch. Immutable and picklable; schema and options are read once, when first used."""

    def __init__(self, metadata: BranchMetadata, snapshot: PaimonSnapshot | None) -> None:
        """Bind to a snapshot. Reads nothing.

        Args:
            metadata: The metadata of the branch, with its schemas pinned or not. Its newest state is read under the
                newest schema, not under the snapshot's schema.
            snapshot: None for the table before its first commit.
        """
        super().__init__(metadata.storage, None if snapshot is None else snapshot.id)
        self._snapshot = snapshot
        self._metadata = metadata.pinned()
        # As of now: other versions read schemas at the same time, and requests must not depend on which is first.
        self._has_read_schema = snapshot is not None and metadata.schemas.is_read(snapshot.schema_id)
        self._early_hints: Mapping[str, bytes | None] = {}
        self._reads = SingleFlight()
        self._is_newest_state = snapshot is not None and snapshot.id == metadata.newest_state

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        schemas = {name: value for name, value in vars(self).items() if name in ("_schema", "_newest_schema")}
        own = self._metadata
        return _restore, (own.storage, own.layout.branch, own.newest_state, self._snapshot, schemas)

    def in_own_schema(self) -> "PaimonVersion":
        """Return the version under its snapshot's schema; the version itself if that is known to be the newest schema.

        Both versions share their caches.
        """
        has_own = self._snapshot is None or self._metadata.schemas.newest_id == self._snapshot.schema_id
        if not self._is_newest_state or has_own:
            return self
        result = PaimonVersion(replace(self._metadata, newest_state=None), self._snapshot)
        result._reads = self._reads
        return result

    @cached_property
    def _newest_schema(self) -> PaimonSchema:
        return self._metadata.schemas.newest(0 if self._snapshot is None else self._snapshot.schema_id)

    @cached_property
    def _schema(self) -> PaimonSchema:
        if self._snapshot is None:
            return self._newest_schema
        if self._has_read_schema and not self._is_newest_state:
            return self._metadata.schemas.by_id([self._snapshot.schema_id])[self._snapshot.schema_id]
        # The options of the newest schema are needed next.
        key = "newest schema" if self._is_newest_state else "schema"
        return self._reads.get(key, partial(self._beside_lists, lambda: self._with_newest_schema()[0]))

    def _with_newest_schema(self) -> tuple[PaimonSchema, PaimonSchema]:
        """Return the schema to read under, and the newest one."""
        own, newest = self._metadata.schemas.with_newest(self._existing().schema_id)
        return (newest if self._is_newest_state else own), newest

    def _to_read(self) -> PaimonSnapshot:
        """Return the snapshot with the schema to read under."""
        snapshot = self._existing()
        return replace(snapshot, schema_id=self._newest_schema.id) if self._is_newest_state else snapshot

    def _beside_lists(self, read: Callable[[], PaimonSchema]) -> PaimonSchema:
        """Return a schema. On remote storage, the lists that planning reads next are read at the same time."""
        if self._storage.is_local:
            return read()
        early_hints = partial(fallback.early_hints, self._metadata)
        self._early_hints, _, schema = self._storage.together(early_hints, self._read_lists_early, read)
        return schema

    def _read_lists_early(self) -> None:
        with suppress(SnapshotExplorerError):  # raised when the lists are needed
            self._lists()

    def _lists(self) -> ManifestLists:
        """Return the lists of the version's files, which are read once."""
        return self._reads.get("lists", lambda: state_lists(self._storage, self._existing()))

    @cached_property
    def schema(self) -> TableSchema:
        return table_schema(self._schema)

    @cached_property
    def field_ids(self) -> Mapping[str, FieldIds]:
        return {field.name: field_ids(field.type, field.id) for field in self._schema.fields}

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        if self._snapshot is None:
            fallback.check_empty(self._metadata)
        return pa.schema([arrow_field(field) for field in self._schema.fields])

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the newest options, which apply to every version, whatever the options of its schema.

        Source: paimon docs, "Time Travel"; paimon AbstractFileStoreTable.tryTimeTravel.
        """
        return self._newest_schema.options

    @property
    def format_version(self) -> str:
        """Return the format version of the snapshot and, if the newest schema was read, how the table is stored.

        No request. The defaults are Paimon's.
        """
        newest = self._metadata.schemas.known_newest
        version = "" if self._snapshot is None else f"snapshot {self._snapshot.format_version}"
        return ": ".join(
            part for part in (version, "" if newest is None else ", ".join(features_in_use(newest))) if part
        )

    @property
    def recorded_properties(self) -> Mapping[str, str]:
        """Return the options of the version's own schema. Reads apply the newest options instead."""
        return self._schema.options

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        """Return the hidden columns among the names, which rows have only on request.

        These are `_ROW_ID` and `_SEQUENCE_NUMBER`, and for a blob column `b` its descriptors, `b$descriptor`: the
        locations of the values, as with Paimon's option `blob-as-descriptor`.
        """
        newest = self._newest_schema
        tracked = parse_flag(newest.options, "row-tracking.enabled") and not newest.primary_keys
        described = blobs.descriptor_fields(names, newest)
        return pa.schema([arrow_field(field) for field in (*metadata_fields(names, tracked=tracked), *described)])

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: base, delta, changelog, index, in list order. Reads only the lists.

        An expired version whose long-lived changelog exists has only the lists that are left.
        """
        if self._snapshot is None:
            return frames.MANIFESTS.empty_table()
        lists = read_lists_of(self._storage, self._snapshot, ("base", "delta", "changelog"))
        return manifests_frame(self._snapshot, lists, self._schema)

    def file_count(self) -> int | None:
        """Return the number of live data files; None if a manifest list lacks a count. Reads only the lists."""
        if self._snapshot is None:
            return 0
        if self._snapshot.file_kind == "changelog":
            return None
        manifests = self._lists().manifests
        counts = [pc.sum(manifests[name], skip_nulls=False, min_count=0) for name in ("added", "deleted")]
        total: int | None = pc.subtract(*counts).as_py()
        return total

    def entries(self, manifest: str) -> pa.Table:
        schema, options = self._schema, self._newest_schema.options
        return entries_of(self._storage, self._existing(), manifest, schema=schema, options=options)

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, restricted to partitions that might match the predicate.

        Reads the version's base and delta lists and index manifest concurrently, then its manifests. With `statistics`,
        it also reads the schemas that the files were written with.
        """
        keys = ("min_key", "max_key") if statistics and self._schema.primary_keys else ()
        frame, entries = self._files(predicate, (*STATISTICS_COLUMNS, *keys) if statistics else FILE_COLUMNS)
        if not statistics or entries is None:
            return frame
        return with_statistics(frame, entries, self._schema, file_schemas(self._metadata.schemas, entries))

    def _files(self, predicate: Predicate | None, columns: Sequence[str]) -> tuple[pa.Table, pa.Table | None]:
        """Return FILES, and these columns of their ENTRIES. Without a snapshot, ENTRIES is None."""
        snapshot = self._snapshot
        if snapshot is None:
            return frames.FILES.empty_table(), None
        (schema, newest), lists = self._storage.together(self._with_newest_schema, self._lists)
        options = newest.options
        state, partitions = filtered_state(self._storage, snapshot, lists, schema, predicate, columns)
        paths = paths_of(self._storage, state.entries, partitions, schema, options, strict=False)
        vectors = vectors_in(self._storage, state.indexes, schema, options)
        frame = files_frame(state, version=snapshot.id, partitions=partitions, paths=paths, vectors=vectors)
        return frame, state.entries

    def _measured_files(self) -> pa.Table:
        """Return FILES and `delete_records`, the rows in each file of kind -D and -U. Reads as `files`."""
        frame, entries = self._files(None, FILE_COLUMNS)
        records = pa.nulls(0, pa.int64()) if entries is None else entries.column("deleted_rows")
        return frame.append_column("delete_records", records)

    def _own_findings(self) -> Sequence[Finding]:
        snapshot = self._snapshot
        if snapshot is None or snapshot.index_manifest is None:
            return ()
        indexes = read_index_manifests(self._storage, {snapshot.index_manifest: snapshot.path})
        rows = indexes[snapshot.index_manifest]
        vectors = 0 if rows is None else deletion_vectors.count(rows)
        if not vectors:
            return ()
        matched = pc.sum(self.files()["deletion_vector"].is_valid()).as_py() or 0
        return (of_unmatched_deletes(vectors - matched, vectors, advice=self._maintenance_settings().compact),)

    def _maintenance_settings(self) -> MaintenanceSettings:
        return settings_of(self._newest_schema, sql_name(self._storage.root, self._metadata.layout.branch))

    def health_facts(self) -> HealthFacts:
        return HealthFacts(
            settings=self._maintenance_settings(),
            measured_files=self._measured_files,
            own_findings=self._own_findings,
        )

    def inspect(self, name: str) -> pa.Table:
        return PaimonInspector(self._metadata).of_version(name, self._snapshot)

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        """Return the splits of the rows, and the files that the predicate skips.

        Files are skipped by partition, bucket, keys and statistics, all from manifests: no data file is opened. If the
        newest options define a fallback branch, its splits are included; see `fallback`.

        Source: paimon AppendOnlyFileStoreScan, KeyValueFileStoreScan.
        """
        if self._snapshot is None:
            fallback.check_empty(self._metadata)
            return ReadPlan(splits=(), skipped=frames.SKIPPED.empty_table)
        if self._metadata.schemas.known_newest is None and self._reads.peek("lists") is None:
            self._beside_lists(partial(self._metadata.schemas.newest, self._snapshot.schema_id))
        own = self._to_read()
        return fallback.plan(
            self._metadata,
            own,
            lambda schemas, snapshot: scan(
                self._storage, schemas, snapshot, predicate, lists=self._lists if snapshot is own else None
            ),
            self._early_hints,
        )

    def changelog(self) -> RowChanges:
        """Return the row changes in the version's changelog, also in a long-lived one.

        Planning reads the changelog manifest list and its manifests; see `row_changes.changelog_splits`.
        """
        snapshot = self._to_read()
        return RowChanges(
            schema=self.arrow_schema,
            metadata_columns=pa.schema([]),
            splits=lambda predicate: changelog_splits(self._storage, self._metadata.schemas, snapshot, predicate),
            reader=self,
        )

    def changelog_files(self) -> RowChanges | None:
        """Return the rows in the changelog files of the version's commit; None without any."""
        if self._existing().changelog_manifest_list is None:
            return None
        changes = self.changelog()
        return replace(changes, splits=lambda predicate: by_file(changes.splits(predicate)))

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(split.detail, PaimonEvents | Difference):
            return read_events(self._storage, split.detail, columns)
        if isinstance(split.detail, PaimonVectorDifference):
            return read_difference(self._storage, split.detail, columns)
        return rows.read(self._storage, split, columns, predicate)

    def split_by_file(self, split: Split) -> Sequence[Split]:
        return split_by_file(split)

    @property
    def native_files(self) -> PaimonNativeFiles:
        return PaimonNativeFiles(self._storage)

    @property
    def row_identity(self) -> PaimonRowIdentity:
        return PaimonRowIdentity(
            metadata=self._metadata,
            snapshot=self._snapshot,
            to_read=self._to_read,
            lists=self._lists,
        )

    def _existing(self) -> PaimonSnapshot:
        if self._snapshot is None:
            raise empty_table_error(self._storage.root)
        return self._snapshot


def _restore(
    storage: Storage,
    branch: str | None,
    newest_state: int | None,
    snapshot: PaimonSnapshot | None,
    resolved: Mapping[str, PaimonSchema],
) -> PaimonVersion:
    metadata = replace(BranchMetadata.of(storage, branch), newest_state=newest_state)
    result = PaimonVersion(metadata, snapshot)
    vars(result).update(resolved)
    return result
