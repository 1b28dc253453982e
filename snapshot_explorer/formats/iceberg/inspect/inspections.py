"""`inspect(name)` of Iceberg tables: the metadata tables, with their names in Spark and Trino.

Partitions are maps from the name of the partition field to the value as text.

Source: iceberg docs, "Inspecting tables"; iceberg core, SnapshotsTable, HistoryTable, RefsTable,
MetadataLogEntriesTable, BaseEntriesTable, BaseFilesTable, ManifestsTable, PartitionsTable.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames, resources
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Inspection
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.iceberg.frames.files import partition_maps, partitions_of, readable_metrics
from snapshot_explorer.formats.iceberg.metadata.contents import Source, entries_of, live_files, manifests_of
from snapshot_explorer.formats.iceberg.metadata.entries import BOUNDS, COUNTS, STATISTICS
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory, time_of
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import SUMMARIES
from snapshot_explorer.formats.iceberg.metadata.manifests import live_entries
from snapshot_explorer.formats.iceberg.metadata.schema import parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot
from snapshot_explorer.formats.interface import inspection_schema, unknown_inspection

INSPECTIONS = (
    Inspection(name="snapshots", at_version=False, meaning="every snapshot of the table, of all branches"),
    Inspection(name="history", at_version=False, meaning="which snapshot was current in main, and since when"),
    Inspection(name="refs", at_version=False, meaning="branches and tags, and how long expiry keeps them"),
    Inspection(
        name="metadata_log_entries", at_version=False, meaning="the metadata files before this one, and this one"
    ),
    Inspection(name="specs", at_version=False, meaning="partition specs, a row per field"),
    Inspection(name="sort_orders", at_version=False, meaning="sort orders, a row per field"),
    Inspection(name="schemas", at_version=False, meaning="schemas, each as JSON"),
    Inspection(name="properties", at_version=False, meaning="the table's properties"),
    Inspection(name="statistics", at_version=False, meaning="statistics files, a row per statistic of columns"),
    Inspection(name="manifests", at_version=True, meaning="the manifests of the version"),
    Inspection(name="entries", at_version=True, meaning="the entries of its manifests, also of deleted files"),
    Inspection(name="files", at_version=True, meaning="its live data files and delete files"),
    Inspection(name="data_files", at_version=True, meaning="its live data files"),
    Inspection(name="delete_files", at_version=True, meaning="its live delete files"),
    Inspection(name="partitions", at_version=True, meaning="its partitions, with files and rows, no deletes applied"),
    Inspection(name="all_manifests", at_version=False, meaning="the manifests of every snapshot of the table"),
    Inspection(name="all_entries", at_version=False, meaning="the entries of all of them, each manifest once"),
    Inspection(name="all_files", at_version=False, meaning="live files in any of them; a file may occur several times"),
    Inspection(name="all_data_files", at_version=False, meaning="data files among these"),
    Inspection(name="all_delete_files", at_version=False, meaning="delete files among these"),
)

_TIME = frames.UTC_MILLIS
_schema_of = partial(
    inspection_schema,
    bounds=BOUNDS,
    counts=COUNTS,
    ints=pa.list_(pa.int32()),
    longs=pa.list_(pa.int64()),
    partition=frames.PARTITION,
    strings=pa.map_(pa.string(), pa.string()),
    summaries=SUMMARIES,
    time=_TIME,
)
_SNAPSHOTS = _schema_of(
    "committed_at time, snapshot_id int64, parent_id int64, operation string, manifest_list string, summary strings, "
    "sequence_number int64, schema_id int64"
)
_HISTORY = _schema_of("made_current_at time, snapshot_id int64, parent_id int64, is_current_ancestor bool")
_REFS = _schema_of(
    "name string, type string, snapshot_id int64, max_reference_age_in_ms int64, min_snapshots_to_keep int64, "
    "max_snapshot_age_in_ms int64"
)
_METADATA_LOG = _schema_of(
    "timestamp time, file string, latest_snapshot_id int64, latest_schema_id int64, latest_sequence_number int64"
)
_SPECS = _schema_of("spec_id int64, is_default bool, field_id int64, name string, transform string, source_ids longs")
_SORT_ORDERS = _schema_of(
    "order_id int64, is_default bool, transform string, source_ids longs, direction string, null_order string"
)
_SCHEMAS = _schema_of("schema_id int64, is_current bool, schema string")
_PROPERTIES = _schema_of("key string, value string")
_STATISTICS = _schema_of(
    "snapshot_id int64, path string, size_bytes int64, type string, fields longs, properties strings"
)
_FILE_COLUMNS = _schema_of(
    "content int32, file_path string, file_format string, spec_id int32, partition partition, record_count int64, "
    "file_size_in_bytes int64, column_sizes counts, value_counts counts, null_value_counts counts, "
    "nan_value_counts counts, lower_bounds bounds, upper_bounds bounds, key_metadata binary, split_offsets longs, "
    "equality_ids ints, sort_order_id int32, first_row_id int64, referenced_data_file string, content_offset int64, "
    "content_size_in_bytes int64"
)
_ENTRIES = pa.schema(
    [
        *_schema_of("status int32, snapshot_id int64, sequence_number int64, file_sequence_number int64"),
        *_FILE_COLUMNS,
    ]
)
_STORED_NAMES = {
    "file_path": "path",
    "file_size_in_bytes": "size_bytes",
    "content_size_in_bytes": "content_size_bytes",
}
_MANIFESTS = _schema_of(
    "content int32, path string, length int64, partition_spec_id int32, added_snapshot_id int64, "
    "added_data_files_count int64, existing_data_files_count int64, deleted_data_files_count int64, "
    "added_delete_files_count int64, existing_delete_files_count int64, deleted_delete_files_count int64, "
    "partition_summaries summaries, sequence_number int64, min_sequence_number int64, first_row_id int64"
)
_PARTITIONS = _schema_of(
    "partition partition, spec_id int32, record_count int64, file_count int64, total_data_file_size_in_bytes int64, "
    "position_delete_record_count int64, position_delete_file_count int64, equality_delete_record_count int64, "
    "equality_delete_file_count int64, last_updated_at time, last_updated_snapshot_id int64"
)
_OF_FILES = {"files": (True, True), "data_files": (True, False), "delete_files": (False, True)}
"""Whether data files and delete files are in a metadata table."""
_ALL = "all_"


def inspect_table(source: Source, history: IcebergHistory, name: str) -> pa.Table:
    """Return a metadata table of the whole table.

    Reads nothing, because the metadata file contains all of it; except for `all_...`, which reads the manifest lists of
    all snapshots and, unless it is `all_manifests`, each of their manifests once.
    """
    made = {
        "snapshots": (_snapshots, _SNAPSHOTS),
        "refs": (_refs, _REFS),
        "metadata_log_entries": (_metadata_log, _METADATA_LOG),
        "specs": (_specs, _SPECS),
        "sort_orders": (_sort_orders, _SORT_ORDERS),
        "schemas": (_schemas, _SCHEMAS),
        "properties": (
            lambda source: [{"key": key, "value": value} for key, value in sorted(source.metadata.properties.items())],
            _PROPERTIES,
        ),
        "statistics": (_statistics, _STATISTICS),
    }
    if name == "history":
        return pa.Table.from_pylist(_history(history), _HISTORY)
    if name.removeprefix(_ALL) in ("manifests", "entries", *_OF_FILES) and name.startswith(_ALL):
        return _of_all_snapshots(source, name.removeprefix(_ALL))
    if name not in made:
        raise unknown_inspection(name, INSPECTIONS)
    rows, schema = made[name]
    try:
        return pa.Table.from_pylist(rows(source), schema)
    except (pa.ArrowException, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        resources.check(error, f"{source.metadata.path} could not be read")
        raise CorruptTableError(
            f"{source.metadata.path} is damaged: {name} cannot be shown ({error}). Compare it with a copy of the table."
        ) from error


def inspect_version(source: Source, snapshot: IcebergSnapshot | None, name: str) -> pa.Table:
    """Return a metadata table of a version. Reads its manifest list and, unless it is `manifests`, its manifests."""
    if name == "manifests":
        return _manifest_table(manifests_of(source, [] if snapshot is None else [snapshot]))
    if name == "entries":
        return _entry_table(source, manifests_of(source, [] if snapshot is None else [snapshot]), snapshot)
    if name == "partitions":
        return _partitions(source, snapshot)
    if name not in _OF_FILES:
        raise unknown_inspection(name, INSPECTIONS)
    files = live_files(source, snapshot, statistics=STATISTICS.names)
    with_data, with_deletes = _OF_FILES[name]
    rows = pa.concat_tables([*([files.data] if with_data else []), *([files.deletes] if with_deletes else [])])
    maps = partition_maps(source.metadata, files.partitions)
    return _with_metrics(_file_table(rows, maps, _FILE_COLUMNS), source, snapshot)


def _of_all_snapshots(source: Source, name: str) -> pa.Table:
    """Return the rows of a version's metadata table for all snapshots of the table.

    Source: iceberg AllManifestsTable, AllEntriesTable, BaseAllMetadataTableScan.
    """
    snapshots = list(source.metadata.snapshots.values())
    manifests = manifests_of(source, snapshots)
    if name == "manifests":
        owners = manifests.column("snapshot_id")
        return _manifest_table(manifests).append_column("reference_snapshot_id", owners)
    paths = single_chunk(manifests.column("path"))
    once = manifests.take(pc.index_in(pc.unique(paths), paths))
    if name == "entries":
        return _entry_table(source, once, None)
    with_data, with_deletes = _OF_FILES[name]
    kinds = [content for content, is_included in ((0, with_data), (1, with_deletes)) if is_included]
    chosen = once.filter(pc.is_in(once.column("content"), pa.array(kinds)))
    entries = entries_of(source, chosen, statistics=STATISTICS.names)
    rows = _file_table(
        live_entries(entries.rows), partition_maps(source.metadata, entries.partitions.arrays()), _FILE_COLUMNS
    )
    return _with_metrics(rows, source, None)


def _with_metrics(rows: pa.Table, source: Source, snapshot: IcebergSnapshot | None) -> pa.Table:
    """Return rows of files with `readable_metrics`, by the columns of a snapshot; of the current schema for None."""
    schema = parse_schema(source.metadata.schema_with(None if snapshot is None else snapshot.schema_id))
    return rows.append_column("readable_metrics", readable_metrics(rows, schema.fields))


def _snapshots(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "committed_at": time_of(snapshot.timestamp_ms),
            "snapshot_id": snapshot.id,
            "parent_id": snapshot.parent_id,
            "operation": snapshot.summary.get("operation"),
            "manifest_list": snapshot.manifest_list,
            "summary": [(key, value) for key, value in snapshot.summary.items() if key != "operation"],
            "sequence_number": snapshot.sequence_number,
            "schema_id": snapshot.schema_id,
        }
        for snapshot in source.metadata.snapshots.values()
    ]


def _history(history: IcebergHistory) -> list[dict[str, Any]]:
    metadata = history.metadata
    return [
        {
            "made_current_at": time_of(millis),
            "snapshot_id": item,
            "parent_id": metadata.snapshots.parents.get(item),
            "is_current_ancestor": item in history.numbers,
        }
        for millis, item in zip(*metadata.snapshot_log, strict=True)
    ]


def _refs(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "name": ref.name,
            "type": "BRANCH" if ref.is_branch else "TAG",
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for ref in sorted(source.metadata.refs.values(), key=lambda item: item.name)
    ]


def _metadata_log(source: Source) -> list[dict[str, Any]]:
    metadata = source.metadata
    files = [*metadata.metadata_log, (metadata.last_updated_ms, metadata.path)]
    log = sorted(zip(*metadata.snapshot_log, strict=True))
    times = np.array([millis for millis, _ in log], np.int64)
    rows = []
    for millis, file in files:
        index = int(np.searchsorted(times, millis, side="right")) - 1
        snapshot = metadata.snapshots.get(log[index][1]) if index >= 0 else None
        rows.append(
            {
                "timestamp": time_of(millis),
                "file": file,
                "latest_snapshot_id": log[index][1] if index >= 0 else None,
                "latest_schema_id": None if snapshot is None else snapshot.schema_id,
                "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
            }
        )
    return rows


def _specs(source: Source) -> list[dict[str, Any]]:
    metadata = source.metadata
    return [
        {
            "spec_id": number,
            "is_default": number == metadata.default_spec_id,
            "field_id": field.get("field-id"),
            "name": field.get("name"),
            "transform": field.get("transform"),
            "source_ids": _source_ids(field),
        }
        for number, spec in metadata.specs.items()
        for field in spec["fields"] or [{}]
    ]


def _sort_orders(source: Source) -> list[dict[str, Any]]:
    metadata = source.metadata
    return [
        {
            "order_id": order.get("order-id"),
            "is_default": order.get("order-id") == metadata.default_sort_order_id,
            "transform": field.get("transform"),
            "source_ids": _source_ids(field),
            "direction": field.get("direction"),
            "null_order": field.get("null-order"),
        }
        for order in metadata.sort_orders
        for field in order.get("fields") or [{}]
    ]


def _source_ids(field: Mapping[str, Any]) -> list[int] | None:
    if "source-ids" in field:
        return list(field["source-ids"])
    return [field["source-id"]] if "source-id" in field else None


def _schemas(source: Source) -> list[dict[str, Any]]:
    current = source.metadata.current_schema_id
    return [
        {"schema_id": number, "is_current": number == current, "schema": json_text.dumps(raw)}
        for number, raw in source.metadata.schemas.items()
    ]


def _statistics(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "snapshot_id": item.get("snapshot-id"),
            "path": item.get("statistics-path"),
            "size_bytes": item.get("file-size-in-bytes"),
            "type": blob.get("type"),
            "fields": blob.get("fields"),
            "properties": list((blob.get("properties") or {}).items()),
        }
        for item in source.metadata.statistics
        for blob in item.get("blob-metadata") or [{}]
    ]


def _manifest_table(manifests: pa.Table) -> pa.Table:
    of_data = pc.equal(manifests.column("content"), 0)
    columns = {
        "content": manifests.column("content"),
        "path": manifests.column("path"),
        "length": manifests.column("length"),
        "partition_spec_id": manifests.column("spec_id"),
        "added_snapshot_id": manifests.column("added_snapshot_id"),
        "partition_summaries": manifests.column("partitions"),
        **{name: manifests.column(name) for name in ("sequence_number", "min_sequence_number", "first_row_id")},
    }
    for word in ("added", "existing", "deleted"):
        counts = manifests.column(f"{word}_files")
        columns[f"{word}_data_files_count"] = pc.if_else(of_data, counts, 0)
        columns[f"{word}_delete_files_count"] = pc.if_else(of_data, 0, counts)
    return frames.table_of(_MANIFESTS, columns)


def _entry_table(source: Source, manifests: pa.Table, snapshot: IcebergSnapshot | None) -> pa.Table:
    entries = entries_of(source, manifests, statistics=STATISTICS.names)
    rows = _file_table(entries.rows, partition_maps(source.metadata, entries.partitions.arrays()), _ENTRIES)
    return _with_metrics(rows, source, snapshot)


def _file_table(rows: pa.Table, maps: Mapping[int, pa.MapArray], schema: pa.Schema) -> pa.Table:
    arrays = []
    for field in schema:
        if field.name == "partition":
            column = partitions_of(rows, maps)
        else:
            column = rows.column(_STORED_NAMES.get(field.name, field.name))
        if field.name == "file_format":
            column = pc.utf8_upper(column)
        arrays.append(column.cast(field.type) if pa.types.is_integer(field.type) else column)
    return pa.table(arrays, schema=schema)


def _partitions(source: Source, snapshot: IcebergSnapshot | None) -> pa.Table:
    files = live_files(source, snapshot)
    maps = partition_maps(source.metadata, files.partitions)
    names = ("spec_id", "partition", "content", "record_count", "size_bytes", "snapshot_id")
    rows = pa.concat_tables([files.data.select(names), files.deletes.select(names)])
    times = {snapshot.id: snapshot.timestamp_ms for snapshot in source.metadata.snapshots.values()}
    ids = pc.unique(rows.column("snapshot_id")).to_pylist()
    known = pa.array([times.get(item) for item in ids], pa.int64())
    rows = rows.append_column(
        "time", known.take(single_chunk(pc.index_in(rows.column("snapshot_id"), pa.array(ids, pa.int64()))))
    )
    for name, content in (("data", 0), ("position", 1), ("equality", 2)):
        is_of = pc.equal(rows.column("content"), content)
        rows = rows.append_column(f"{name}_files", is_of.cast(pa.int64()))
        rows = rows.append_column(f"{name}_rows", pc.if_else(is_of, rows.column("record_count"), 0))
    rows = rows.append_column("bytes", pc.if_else(pc.equal(rows.column("content"), 0), rows.column("size_bytes"), 0))
    rows = rows.sort_by([("time", "ascending")])
    summed = ("data_files", "data_rows", "position_files", "position_rows", "equality_files", "equality_rows", "bytes")
    grouped = rows.group_by(["spec_id", "partition"], use_threads=False).aggregate(
        [*((name, "sum") for name in summed), ("time", "max"), ("snapshot_id", "last")]
    )
    columns = {
        "partition": partitions_of(grouped, maps),
        "spec_id": grouped.column("spec_id"),
        "record_count": grouped.column("data_rows_sum"),
        "file_count": grouped.column("data_files_sum"),
        "total_data_file_size_in_bytes": grouped.column("bytes_sum"),
        "position_delete_record_count": grouped.column("position_rows_sum"),
        "position_delete_file_count": grouped.column("position_files_sum"),
        "equality_delete_record_count": grouped.column("equality_rows_sum"),
        "equality_delete_file_count": grouped.column("equality_files_sum"),
        "last_updated_at": grouped.column("time_max").cast(pa.timestamp("ms")).cast(_TIME),
        "last_updated_snapshot_id": pc.if_else(
            grouped.column("time_max").is_valid(), grouped.column("snapshot_id_last"), None
        ),
    }
    return frames.table_of(_PARTITIONS, columns)
