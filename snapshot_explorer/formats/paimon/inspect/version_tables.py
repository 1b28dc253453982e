"""Paimon's system tables of one version: manifests, files, key ranges, partitions, buckets, statistics, indexes.

Each function returns the result of `SELECT * FROM t$NAME` at that version, without Paimon; `schemas` has the columns.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import vectors
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.paimon.casts.values import NotCastableError, cast, castable
from snapshot_explorer.formats.paimon.files.deletion_vectors import DELETION_VECTORS
from snapshot_explorer.formats.paimon.inspect.history_tables import parse_json
from snapshot_explorer.formats.paimon.inspect.schemas import schema_of
from snapshot_explorer.formats.paimon.inspect.texts import (
    braced_texts,
    java_texts,
    key_texts,
    map_texts,
    partition_paths,
    row_texts,
)
from snapshot_explorer.formats.paimon.metadata import record_files as avro
from snapshot_explorer.formats.paimon.metadata.contents import ManifestLists, PaimonState
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonField, arrow_type
from snapshot_explorer.formats.paimon.metadata.layout import format_of
from snapshot_explorer.formats.paimon.metadata.manifests import read_indexes
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.scan.statistics import with_statistics

_SOURCES = {0: "APPEND", 1: "COMPACT"}
_INDEX = pa.schema(
    {
        "_PARTITION": pa.binary(),
        "_BUCKET": pa.int32(),
        "_INDEX_TYPE": pa.string(),
        "_FILE_NAME": pa.string(),
        "_FILE_SIZE": pa.int64(),
        "_ROW_COUNT": pa.int64(),
        "_DELETIONS_VECTORS_RANGES": pa.list_(
            pa.struct({"f0": pa.string(), "f1": pa.int32(), "f2": pa.int32(), "_CARDINALITY": pa.int64()})
        ),
        "_GLOBAL_INDEX": pa.struct(
            {
                "_ROW_RANGE_START": pa.int64(),
                "_ROW_RANGE_END": pa.int64(),
                "_INDEX_FIELD_ID": pa.int32(),
                "_EXTRA_FIELD_IDS": pa.list_(pa.int32()),
            }
        ),
    }
)

Column: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[Any]"


def manifests(lists: ManifestLists, schema: PaimonSchema) -> pa.Table:
    """Return a row per manifest: of the base list, the delta list, the changelog list."""
    rows = lists.manifests
    fields = [schema.field(name) for name in schema.partition_keys]
    return _table(
        "manifests",
        {
            "file_name": rows.column("name"),
            "file_size": rows.column("size_bytes"),
            "num_added_files": rows.column("added"),
            "num_deleted_files": rows.column("deleted"),
            "schema_id": rows.column("schema_id"),
            "min_partition_stats": row_texts(rows.column("partition_min"), fields),
            "max_partition_stats": row_texts(rows.column("partition_max"), fields),
            "min_row_id": rows.column("min_row_id"),
            "max_row_id": rows.column("max_row_id"),
        },
    )


def files(
    entries: pa.Table,
    partitions: PaimonPartitions,
    locations: Sequence[str],
    schema: PaimonSchema,
    file_schemas: Mapping[int, PaimonSchema],
) -> pa.Table:
    """Return a row per live file, in the order of the manifests; Paimon's order is undefined.

    Args:
        locations: The full location of each file.
        schema: The version's schema, which defines the columns of the statistics. Without a version, Paimon uses the
            newest schema.
        file_schemas: The schemas that the files were written with.
    """
    return _table(
        "files", _file_columns(entries, partitions, locations, file_schemas) | _more(entries, schema, file_schemas)
    )


def file_key_ranges(
    entries: pa.Table, partitions: PaimonPartitions, locations: Sequence[str], file_schemas: Mapping[int, PaimonSchema]
) -> pa.Table:
    """Return a row per live file, in the order of the manifests; arguments as `files`."""
    columns = _file_columns(entries, partitions, locations, file_schemas)
    return _table("file_key_ranges", columns | {"first_row_id": entries.column("first_row_id")})


def _file_columns(
    entries: pa.Table, partitions: PaimonPartitions, locations: Sequence[str], file_schemas: Mapping[int, PaimonSchema]
) -> dict[str, Column]:
    names = entries.column("file_name").to_pylist()
    return {
        "partition": _partition_column(partitions),
        "bucket": entries.column("bucket"),
        "file_path": locations,
        "file_format": [format_of(name) for name in names],
        "schema_id": entries.column("schema_id"),
        "level": entries.column("level"),
        "record_count": entries.column("rows"),
        "file_size_in_bytes": entries.column("size_bytes"),
        "min_key": _keys(entries, "min_key", file_schemas),
        "max_key": _keys(entries, "max_key", file_schemas),
    }


def _partition_column(partitions: PaimonPartitions) -> pa.Array:
    texts = [braced_texts(list(partition.values())) for partition in partitions.texts]
    return pa.array(texts, pa.string()).take(partitions.of_rows)


def _keys(entries: pa.Table, column: str, file_schemas: Mapping[int, PaimonSchema]) -> list[str | None]:
    result: list[str | None] = [None] * len(entries)
    for number, rows in _by_schema(entries):
        texts = key_texts(entries.take(pa.array(rows)).column(column), file_schemas[number])
        for row, text in zip(rows, texts, strict=True):
            result[row] = text
    return result


def _by_schema(entries: pa.Table) -> list[tuple[int, list[int]]]:
    """Return the row numbers per schema that files were written with."""
    rows: dict[int, list[int]] = {}
    for row, number in enumerate(entries.column("schema_id").to_pylist()):
        rows.setdefault(number, []).append(row)
    return list(rows.items())


def _more(entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]) -> dict[str, Column]:
    texts: dict[str, list[str]] = {}
    for number, rows in _by_schema(entries):
        for column, values in _statistics_texts(entries.take(pa.array(rows)), schema, file_schemas[number]).items():
            into = texts.setdefault(column, [""] * len(entries))
            for row, value in zip(rows, values, strict=True):
                into[row] = value
    return {
        **{name: texts.get(name, []) for name in ("null_value_counts", "min_value_stats", "max_value_stats")},
        "min_sequence_number": entries.column("min_sequence"),
        "max_sequence_number": entries.column("max_sequence"),
        "creation_time": entries.column("created_at"),
        "deleteRowCount": entries.column("deleted_rows"),
        "file_source": [_SOURCES.get(source) for source in entries.column("source").to_pylist()],
        "first_row_id": entries.column("first_row_id"),
        "write_cols": entries.column("write_columns"),
    }


def _statistics_texts(entries: pa.Table, schema: PaimonSchema, file_schema: PaimonSchema) -> dict[str, list[str]]:
    """Return the statistics of files of one schema, under the names and in the types of the version's.

    Source: paimon FilesTable, SimpleStatsEvolution.
    """
    known = with_statistics(entries.select(["file_name"]), entries, file_schema, {file_schema.id: file_schema})
    indices = {field.id: index for index, field in enumerate(file_schema.fields)}
    structs = {name: single_chunk(known.column(name)) for name in ("null_count", "lower", "upper")}
    names = [field.name for field in schema.fields]
    counts: list[Sequence[str | None]] = []
    bounds: dict[str, list[Sequence[str | None]]] = {"lower": [], "upper": []}
    rows = [str(count) for count in entries.column("rows").to_pylist()]
    for field in schema.fields:
        position = indices.get(field.id)
        if position is None:
            counts.append(rows)
        else:
            nulls = structs["null_count"].field(position).to_pylist()
            counts.append([None if count is None else str(count) for count in nulls])
        for side, into in bounds.items():
            into.append(_bound_texts(structs[side], position, file_schema.fields, field))
    return {
        "null_value_counts": map_texts(names, counts, len(entries)),
        "min_value_stats": map_texts(names, bounds["lower"], len(entries)),
        "max_value_stats": map_texts(names, bounds["upper"], len(entries)),
    }


def _bound_texts(
    values: pa.StructArray, index: int | None, file_fields: Sequence[PaimonField], field: PaimonField
) -> list[str | None]:
    """Return the bounds of a column as text, cast if its type has changed."""
    if index is None:
        return [None] * len(values)
    column, source = values.field(index), file_fields[index].type
    if column.type == vectors.as_lists(arrow_type(field.type)):
        return java_texts(column, field.type)
    if not castable(source, field.type):
        return [None] * len(values)
    try:
        return java_texts(cast(column, source, field.type), field.type)
    except NotCastableError:
        return [None] * len(values)


def partitions(state: PaimonState, written: pa.Table, parts: PaimonPartitions, options: Mapping[str, str]) -> pa.Table:
    """Return a row per partition with live files, sorted by its text.

    `last_update_time` is the creation time of the newest file in the manifests, live or not. Columns that need a
    catalog service (created_at, created_by, updated_by, options) are null, and `done` is false.
    `deleted_record_count` is null if a deletion vector has no recorded count.

    Source: paimon PartitionsTable, PartitionEntry.
    """
    texts = partition_paths(parts, options)
    sums = _sums(state.entries, written, ["partition"])
    part_of = dict(zip(state.entries.column("partition").to_pylist(), parts.of_rows.to_pylist(), strict=True))
    columns = (state.entries.column(name).to_pylist() for name in ("partition", "total_buckets"))
    total = dict(zip(*columns, strict=True))
    deleted = _deleted_rows(state)
    parts_with_files = sums.column("partition").to_pylist()
    rows = {
        "partition": [texts[part_of[partition]] for partition in parts_with_files],
        **_totals(sums),
        "total_buckets": [total[partition] for partition in parts_with_files],
        "done": [False] * len(sums),
        "deleted_record_count": [deleted.get(partition, 0) for partition in parts_with_files],
    }
    empty = {name: [None] * len(sums) for name in ("created_at", "created_by", "updated_by", "options")}
    return _table("partitions", rows | empty).sort_by("partition")


def _deleted_rows(state: PaimonState) -> dict[bytes, int | None]:
    """Return the number of deleted rows per partition; None if a deletion vector has no recorded count."""
    result: dict[bytes, int | None] = {}
    vectors = state.indexes.filter(pc.equal(state.indexes.column("index_type"), DELETION_VECTORS))
    vectors = vectors.filter(pc.is_valid(vectors.column("data_file")))
    counts = vectors.column("cardinality").to_pylist()
    for partition, count in zip(vectors.column("partition").to_pylist(), counts, strict=True):
        before = result.get(partition, 0)
        result[partition] = None if before is None or count is None else before + count
    return result


def buckets(state: PaimonState, written: pa.Table, parts: PaimonPartitions) -> pa.Table:
    """Return a row per bucket with live files, sorted by partition and bucket; arguments as `partitions`.

    Paimon returns only the buckets of the latest version.

    Source: paimon BucketsTable, BucketEntry.
    """
    sums = _sums(state.entries, written, ["partition", "bucket"])
    part_of = dict(zip(state.entries.column("partition").to_pylist(), parts.of_rows.to_pylist(), strict=True))
    texts = [braced_texts(list(partition.values())) for partition in parts.texts]
    rows = {
        "partition": [texts[part_of[partition]] for partition in sums.column("partition").to_pylist()],
        "bucket": sums.column("bucket"),
        **_totals(sums),
    }
    return _table("buckets", rows).sort_by([("partition", "ascending"), ("bucket", "ascending")])


def _sums(entries: pa.Table, written: pa.Table, keys: list[str]) -> pa.Table:
    """Return rows, bytes and files of each group of live entries, and the newest time among all entries."""
    aggregations = [("rows", "sum"), ("size_bytes", "sum"), ("rows", "count")]
    sums = entries.select([*keys, "rows", "size_bytes"]).group_by(keys, use_threads=False).aggregate(aggregations)
    times = written.select([*keys, "created_at"]).group_by(keys, use_threads=False).aggregate([("created_at", "max")])
    return sums.join(times, keys)


def _totals(sums: pa.Table) -> dict[str, Column]:
    return {
        "record_count": sums.column("rows_sum"),
        "file_size_in_bytes": sums.column("size_bytes_sum"),
        "file_count": sums.column("rows_count"),
        "last_update_time": sums.column("created_at_max"),
    }


def statistics(content: bytes, path: str) -> pa.Table:
    """Return the row of a statistics file; `colstat` is JSON in Paimon's layout."""

    def row(raw: Mapping[str, Any]) -> pa.Table:
        columns = raw.get("colStats")
        values = {
            "snapshot_id": raw["snapshotId"],
            "schema_id": raw["schemaId"],
            "mergedRecordCount": raw.get("mergedRecordCount"),
            "mergedRecordSize": raw.get("mergedRecordSize"),
            "colstat": None
            if columns is None
            else json.dumps(columns, indent=2, separators=(",", " : "), ensure_ascii=False),
        }
        return _table("statistics", {name: [value] for name, value in values.items()})

    result: pa.Table = parse_json(content, path, row)
    return result


def table_indexes(content: bytes, path: str, schema: PaimonSchema) -> pa.Table:
    """Return a row per index file of an index manifest, in its order.

    Source: paimon TableIndexesTable.
    """
    read_indexes([(path, content)])  # raises for damaged or unsafe manifests
    rows = avro.rows([(path, content)], _INDEX)[0]
    fields = [schema.field(name) for name in schema.partition_keys]
    names = {field.id: field.name for field in schema.fields}
    indexes = [index or {} for index in rows.column("_GLOBAL_INDEX").to_pylist()]
    return _table(
        "table_indexes",
        {
            "partition": row_texts(rows.column("_PARTITION"), fields),
            "bucket": rows.column("_BUCKET"),
            "index_type": rows.column("_INDEX_TYPE"),
            "file_name": rows.column("_FILE_NAME"),
            "file_size": rows.column("_FILE_SIZE"),
            "row_count": rows.column("_ROW_COUNT"),
            "dv_ranges": rows.column("_DELETIONS_VECTORS_RANGES").to_pylist(),
            "row_range_start": [index.get("_ROW_RANGE_START") for index in indexes],
            "row_range_end": [index.get("_ROW_RANGE_END") for index in indexes],
            "index_field_id": [index.get("_INDEX_FIELD_ID") for index in indexes],
            "index_field_name": [_indexed(index, names) for index in indexes],
        },
    )


def _indexed(index: Mapping[str, Any], names: Mapping[int, str]) -> str | None:
    several = index.get("_EXTRA_FIELD_IDS")
    if several:
        return ",".join(names.get(number, "?") for number in several)
    return names.get(index.get("_INDEX_FIELD_ID", -1))


def _table(name: str, columns: Mapping[str, Column]) -> pa.Table:
    schema = schema_of(name)
    arrays = []
    for field in schema:
        column = columns[field.name]
        if isinstance(column, pa.Array | pa.ChunkedArray):
            arrays.append(column.cast(field.type))
        else:
            arrays.append(pa.array(column, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)
