"""The frames FILES and CHANGES of Iceberg versions."""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Predicate
from snapshot_explorer.formats.iceberg.frames.deleted_rows import applicable_deletes
from snapshot_explorer.formats.iceberg.metadata.contents import CommitChanges
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.entries import IcebergLiveFiles, Select, known_rows, known_sizes
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory
from snapshot_explorer.formats.iceberg.metadata.manifests import DELETED
from snapshot_explorer.formats.iceberg.metadata.partitions import (
    MatchingPartitions,
    parse_spec,
    partition_columns,
    partition_texts,
    spec_with,
)
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema, parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot, TableMetadata
from snapshot_explorer.formats.iceberg.metadata.values import single_values
from snapshot_explorer.formats.spatial import SPATIAL

_MAX_NAMED = 1_000_000
"""Pairs of a data file and a delete file whose names are shown."""
_METRICS = {
    "column_size": "column_sizes",
    "value_count": "value_counts",
    "null_value_count": "null_value_counts",
    "nan_value_count": "nan_value_counts",
    "lower_bound": "lower_bounds",
    "upper_bound": "upper_bounds",
}
"""The metrics of a column, and the entry fields that contain them by field id."""


def partition_maps(metadata: TableMetadata, tuples: Mapping[int, pa.StructArray]) -> Mapping[int, pa.MapArray]:
    """Return the distinct partitions of each spec as text: name of the partition field to value."""
    schema = parse_schema(metadata.current_schema)
    result = {}
    for spec_id, stored in tuples.items():
        spec = spec_with(metadata.specs, spec_id)
        texts = partition_texts(partition_columns(spec, schema, stored), len(stored))
        result[spec_id] = pa.array([list(text.items()) for text in texts], frames.PARTITION)
    return result


def partitions_of(rows: pa.Table, maps: Mapping[int, pa.MapArray]) -> pa.Array:
    """Return the partition of each entry as text."""
    spec_ids, numbers = rows.column("spec_id").to_numpy(), rows.column("partition").to_numpy()
    if not len(rows):
        return pa.array([], frames.PARTITION)
    begins, parts, begin = {}, [], 0
    for spec_id, texts in maps.items():
        begins[spec_id] = begin
        begin += len(texts)
        parts.append(texts)
    offsets = np.zeros(len(rows), np.int64)
    for spec_id in np.unique(spec_ids).tolist():
        offsets[spec_ids == spec_id] = begins[spec_id]
    return pa.concat_arrays(parts).take(pa.array(offsets + numbers))


def file_columns(rows: pa.Table, maps: Mapping[int, pa.MapArray]) -> dict[str, object]:
    """Return the columns that FILES, CHANGES and ENTRIES share, without deletions."""
    return {
        "path": rows.column("location"),
        "partition": partitions_of(rows, maps),
        "rows": known_rows(rows),
        "size_bytes": known_sizes(rows),
    }


def change_words(rows: pa.Table) -> pa.Array:
    """Return `add` or `remove` for each entry."""
    removed = single_chunk(pc.equal(rows.column("status"), DELETED))
    return pc.if_else(removed, "remove", "add")


def files_frame(metadata: TableMetadata, live: IcebergLiveFiles) -> pa.Table:
    """Return the FILES frame of a version.

    `deletion_vector` is the location of the deletion vector of a file, or the delete files that apply to it;
    `deleted_rows` is known of deletion vectors only. `added_version` is the sequence number of the commit that added
    the file, null in format 1.
    """
    rows = live.data
    columns = file_columns(rows, partition_maps(metadata, live.partitions))
    columns["deletion_vector"], columns["deleted_rows"] = _deletions(metadata, live)
    numbers = pc.coalesce(single_chunk(rows.column("file_sequence_number")), _numbers_of_commits(metadata, rows))
    columns["added_version"] = pc.if_else(pc.greater(numbers, 0), numbers, None)
    return frames.table_of(frames.FILES, columns)


def _numbers_of_commits(metadata: TableMetadata, rows: pa.Table) -> pa.Array:
    """Return the sequence number of the snapshot that added each file; null if it has expired."""
    numbers = metadata.snapshots.numbers
    ids = single_chunk(rows.column("snapshot_id").dictionary_encode())
    versions = [numbers.get(item) for item in ids.dictionary.to_pylist()]
    return pa.array(versions, pa.int64()).take(ids.indices)


def in_partitions(metadata: TableMetadata, schema: IcebergSchema, predicate: Predicate) -> Select:
    """Return the selection of the files whose partition might contain a row that matches a condition."""
    partitions = MatchingPartitions(metadata.specs, parse_schema(metadata.current_schema), schema, predicate)
    return lambda files, tuples: files.filter(pa.array(partitions.of(files, tuples)))


def readable_metrics(files: pa.Table, fields: Sequence[IcebergField]) -> pa.StructArray:
    """Return the metrics of files by the dotted name of each column that is not nested, sorted, with typed bounds.

    Bounds of text and binary may be truncated. Columns of types that are not read are left out.

    Args:
        files: Entries with STATISTICS.

    Source: iceberg MetricsUtil.readableMetricsSchema.
    """
    columns = [(name, _metrics(files, field)) for name, field in sorted(_leaves(fields, ""), key=itemgetter(0))]
    if not columns:
        return pa.array([{}] * len(files), pa.struct([]))
    return pa.StructArray.from_arrays([column for _, column in columns], [name for name, _ in columns])


def _leaves(fields: Sequence[IcebergField], prefix: str) -> Iterator[tuple[str, IcebergField]]:
    for field in fields:
        if is_nested(field.type):
            yield from _leaves(field.type.fields, f"{prefix}{field.name}.")
        elif is_read(field.type) and field.type.root not in ("variant", "unknown", *SPATIAL):
            yield f"{prefix}{field.name}", field


def _metrics(files: pa.Table, field: IcebergField) -> pa.StructArray:
    metrics = {name: values_of(files.column(stored), field.id) for name, stored in _METRICS.items()}
    for name in ("lower_bound", "upper_bound"):
        metrics[name] = single_values(metrics[name], field.type)
    return pa.StructArray.from_arrays(list(metrics.values()), list(metrics))


def _deletions(metadata: TableMetadata, live: IcebergLiveFiles) -> tuple[pa.Array, pa.Array]:
    """Return the location of each data file's deletions, and the number of rows that its deletion vector removes."""
    count = len(live.data)
    unpartitioned = [number for number, raw in metadata.specs.items() if parse_spec(raw).is_unpartitioned]
    pairs = applicable_deletes(live, unpartitioned)
    if not len(pairs.data):
        return pa.nulls(count, pa.string()), pa.nulls(count, pa.int64())
    deletes = live.deletes
    is_vector = single_chunk(pc.equal(deletes.column("file_format"), "puffin"))
    location = single_chunk(deletes.column("location"))
    offset = single_chunk(deletes.column("content_offset")).cast(pa.string())
    names = pc.if_else(is_vector, pc.binary_join_element_wise(location, offset, "@"), location)
    counts = np.bincount(pairs.data, minlength=count)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int64())
    indices = pa.array(pairs.deletes)
    if len(pairs.data) > _MAX_NAMED:
        # So many names would take more memory than the table's metadata itself.
        texts = pc.binary_join_element_wise(pa.array(counts).cast(pa.string()), "delete files", " ")
    else:
        texts = pc.binary_join(pa.LargeListArray.from_arrays(offsets, names.take(indices)), ", ")
    rows = np.zeros(count, np.int64)
    of_vector = is_vector.take(indices).to_numpy(zero_copy_only=False)
    removed = deletes.column("record_count").to_numpy()[pairs.deletes]
    np.add.at(rows, pairs.data[of_vector], removed[of_vector])
    others = np.zeros(count, np.bool_)
    others[pairs.data[~of_vector]] = True
    known = (counts > 0) & ~others
    return pc.if_else(pa.array(counts > 0), texts, None), pa.array(rows, mask=~known)


def changes_data(snapshot: IcebergSnapshot) -> bool:
    """Return whether a commit changes rows: a replacement only rearranges them."""
    return snapshot.summary.get("operation") != "replace"


def changes_frame(history: IcebergHistory, changed: CommitChanges) -> pa.Table:
    """Return the CHANGES frame of versions: the data files that their commits removed and added."""
    rows = changed.data
    by_id = {item.id: (version, item) for version, item in history.snapshots.items()}
    ids = pc.unique(rows.column("owner")).to_pylist()
    indices = single_chunk(pc.index_in(rows.column("owner"), pa.array(ids, pa.int64())))
    versions = pa.array([by_id[item][0] for item in ids], pa.int64())
    data_change = pa.array([changes_data(by_id[item][1]) for item in ids], pa.bool_())
    columns = file_columns(rows, partition_maps(history.metadata, changed.partitions.arrays())) | {
        "version": versions.take(indices),
        "change": change_words(rows),
        "list": "delta",
        "data_change": data_change.take(indices),
    }
    return frames.table_of(frames.CHANGES, columns)
