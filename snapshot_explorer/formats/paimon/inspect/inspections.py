"""`inspect(name)`: reads the metadata of a system table and returns its rows."""

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.records import Inspection
from snapshot_explorer.formats.interface import unknown_inspection
from snapshot_explorer.formats.paimon.inspect import history_tables
from snapshot_explorer.formats.paimon.inspect import version_tables as system_files
from snapshot_explorer.formats.paimon.inspect.file_indexes import file_indexes
from snapshot_explorer.formats.paimon.inspect.row_tables import system_rows
from snapshot_explorer.formats.paimon.inspect.schemas import schema_of
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.contents import PaimonState, read_lists_of, read_or_explain, read_written
from snapshot_explorer.formats.paimon.metadata.layout import manifest_path, safe_name
from snapshot_explorer.formats.paimon.metadata.manifests import live_entries
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions, data_paths, folders_of, partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot

INSPECTIONS = (
    Inspection(name="snapshots", at_version=False, meaning="every snapshot file that exists"),
    Inspection(name="schemas", at_version=False, meaning="every schema, as JSON"),
    Inspection(name="options", at_version=False, meaning="the newest options, which apply to every version"),
    Inspection(name="manifests", at_version=True, meaning="the manifests of the base, delta and changelog lists"),
    Inspection(name="files", at_version=True, meaning="the live data files, with statistics as text"),
    Inspection(name="file_key_ranges", at_version=True, meaning="the live data files, with their key ranges"),
    Inspection(name="partitions", at_version=True, meaning="rows, files and bytes of each partition"),
    Inspection(name="buckets", at_version=True, meaning="rows, files and bytes of each bucket"),
    Inspection(name="tags", at_version=False, meaning="tags, their snapshots, and how long they are kept"),
    Inspection(name="branches", at_version=False, meaning="branches other than the main one"),
    Inspection(name="consumers", at_version=False, meaning="streaming readers and their next snapshots"),
    Inspection(name="statistics", at_version=True, meaning="the statistics of the last ANALYZE"),
    Inspection(name="aggregation_fields", at_version=False, meaning="the columns with their aggregate functions"),
    Inspection(name="table_indexes", at_version=True, meaning="index files, such as those of deletion vectors"),
    Inspection(name="file_indexes", at_version=True, meaning="the indexes of data files, such as bloom filters"),
    Inspection(name="audit_log", at_version=True, meaning="the last event of each key, with its kind", of_rows=True),
    Inspection(name="binlog", at_version=True, meaning="as audit_log, each value in a list", of_rows=True),
    Inspection(name="ro", at_version=True, meaning="the rows of fully compacted files", of_rows=True),
    Inspection(name="row_tracking", at_version=True, meaning="the rows with their ids", of_rows=True),
)

_STATISTICS = "statistics"
_LISTS = ("base", "delta", "changelog")


class PaimonInspector:
    """Reads the system tables of a branch."""

    def __init__(self, metadata: BranchMetadata) -> None:
        self._storage = metadata.storage
        self._layout = metadata.layout
        self._history = metadata.history
        self._schemas = metadata.schemas

    def of_table(self, name: str) -> pa.Table:
        """Return a system table of the whole table."""
        match name:
            case "snapshots":
                return history_tables.snapshots(self._storage, self._layout, self._history)
            case "schemas":
                return history_tables.schemas(self._storage, self._layout)
            case "options":
                return history_tables.options(self._schemas.newest())
            case "tags":
                return history_tables.tags(self._history)
            case "branches":
                return history_tables.branches(self._storage)
            case "consumers":
                return history_tables.consumers(self._storage, self._layout)
            case "aggregation_fields":
                return history_tables.aggregation_fields(self._schemas.newest())
        raise unknown_inspection(name, INSPECTIONS, "system table")

    def of_version(self, name: str, snapshot: PaimonSnapshot | None) -> pa.Table:
        """Return a system table of a version; no rows without a snapshot."""
        if any(item.name == name and item.of_rows for item in INSPECTIONS):
            return system_rows(self._storage, self._schemas, name, snapshot)
        if snapshot is None:
            return schema_of(name).empty_table()
        return self._of_version(name, snapshot)

    def _of_version(self, name: str, snapshot: PaimonSnapshot) -> pa.Table:
        schema = self._schemas.by_id([snapshot.schema_id])[snapshot.schema_id]
        match name:
            case "manifests":
                return system_files.manifests(read_lists_of(self._storage, snapshot, _LISTS), schema)
            case "statistics":
                return self._statistics(snapshot)
            case "table_indexes":
                return self._indexes(snapshot, schema)
        written = read_written(self._storage, snapshot)
        state = PaimonState(entries=live_entries(written.entries, self._storage), indexes=written.indexes)
        parts = partitions_of(state.entries.column("partition"), schema)
        match name:
            case "partitions":
                return system_files.partitions(state, written.entries, parts, self._schemas.newest().options)
            case "buckets":
                return system_files.buckets(state, written.entries, parts)
        return self._files(name, state, parts, schema)

    def _files(self, name: str, state: PaimonState, parts: PaimonPartitions, schema: PaimonSchema) -> pa.Table:
        entries = state.entries
        folders = folders_of(parts, entries.column("bucket"), schema, self._schemas.newest().options)
        paths = data_paths(entries, folders, self._storage, strict=name == "file_indexes").to_pylist()
        external = entries.column("external_path").to_pylist()
        root = self._storage.root.rstrip("/")
        full = [path if beside else f"{root}/{path}" for path, beside in zip(paths, external, strict=True)]
        theirs = self._schemas.by_id(pc.unique(entries.column("schema_id")).to_pylist())
        if name == "file_indexes":
            return file_indexes(self._storage, entries, parts, paths, full)
        if name == "files":
            return system_files.files(entries, parts, full, schema, theirs)
        return system_files.file_key_ranges(entries, parts, full, theirs)

    def _statistics(self, snapshot: PaimonSnapshot) -> pa.Table:
        if snapshot.statistics is None:
            return schema_of("statistics").empty_table()
        path = f"{_STATISTICS}/{safe_name(snapshot.statistics, snapshot.path)}"
        return system_files.statistics(self._read(snapshot, path), path)

    def _indexes(self, snapshot: PaimonSnapshot, schema: PaimonSchema) -> pa.Table:
        if snapshot.index_manifest is None:
            return schema_of("table_indexes").empty_table()
        path = manifest_path(snapshot.index_manifest, snapshot.path)
        return system_files.table_indexes(self._read(snapshot, path), path, schema)

    def _read(self, snapshot: PaimonSnapshot, path: str) -> bytes:
        return read_or_explain(self._storage, snapshot, lambda: self._storage.read_many([path]))[0]
