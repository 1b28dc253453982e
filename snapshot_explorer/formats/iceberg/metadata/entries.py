"""The live files of a version as Arrow tables: the interface between the metadata and the scan.

`manifests.py` decodes them, with inheritance resolved; `scan/` plans splits from them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.iceberg.metadata.partition_tuples import PartitionTuples
from snapshot_explorer.storage import Storage

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""Values of `content`. A deletion vector is a position delete in the file format `puffin`."""

COUNTS = pa.map_(pa.int32(), pa.int64())
BOUNDS = pa.map_(pa.int32(), pa.binary())
"""A value per field id, in the binary form of single values."""

STATISTICS = pa.schema(
    [
        pa.field("column_sizes", COUNTS),
        pa.field("value_counts", COUNTS),
        pa.field("null_value_counts", COUNTS),
        pa.field("nan_value_counts", COUNTS),
        pa.field("lower_bounds", BOUNDS),
        pa.field("upper_bounds", BOUNDS),
    ]
)
"""Statistics of columns by field id; null, or a missing key, is unknown."""

LIVE = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("location", pa.string(), nullable=False),
        pa.field("file_format", pa.string(), nullable=False),
        pa.field("content", pa.int8(), nullable=False),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("has_confirmed_rows", pa.bool_()),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("has_doubted_size", pa.bool_()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("file_sequence_number", pa.int64()),
        pa.field("first_row_id", pa.int64()),
        pa.field("sort_order_id", pa.int32()),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("split_offsets", pa.list_(pa.int64())),
        pa.field("referenced_data_file", pa.string()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size_bytes", pa.int64()),
        pa.field("key_metadata", pa.binary()),
    ]
)
"""A row is a live data file or delete file, in the order of the manifest list.

`path` is the text that is recorded, and the only one to compare: with `referenced_data_file` and the `file_path` of
position deletes. `location` is the path for `Storage.open` and `Storage.read`: relative to the table's folder, or the
full location of an external file. `file_format` is in lower case: parquet, orc, avro or puffin. `partition` is a row of
`IcebergLiveFiles.partitions[spec_id]`: two files are in the same partition if `spec_id` and `partition` are equal.
`sequence_number` is the data sequence number and decides which deletes apply. `file_sequence_number` is the number of
the commit that added the file, null if its writer did not record it, as Iceberg before 1.1. `record_count` and
`size_bytes` are recorded by the writer and may be wrong. `has_confirmed_rows`: whether another number of the metadata
agrees with `record_count`, or contradicts it; null without another number. `first_row_id` is resolved, and null if the
version has no row ids. A file with `key_metadata` is encrypted.

Source: iceberg specification, "Manifests"."""


def known_rows(files: pa.Table) -> pa.Array:
    """Return the number of rows of each file in LIVE; null if the metadata contradicts itself."""
    return _nullify_doubted(files.column("record_count"), pc.invert(files.column("has_confirmed_rows")))


def known_sizes(files: pa.Table) -> pa.Array:
    """Return the size of each file in LIVE; null if it is probably wrong."""
    return _nullify_doubted(files.column("size_bytes"), files.column("has_doubted_size"))


def _nullify_doubted(values: pa.ChunkedArray, are_doubted: pa.ChunkedArray) -> pa.Array:
    return pc.if_else(pc.fill_null(single_chunk(are_doubted), fill_value=False), None, single_chunk(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergLiveFiles:
    """The live files of a version."""

    data: pa.Table
    """LIVE, where `content` is 0, and the requested columns of STATISTICS."""
    deletes: pa.Table
    partitions: Mapping[int, pa.StructArray]
    """The distinct partition tuples of each spec id, one row per tuple.

    The fields are named by the partition field id as text (`"1000"`), in the order of the manifest. Types are those
    stored: bool, int64 (int, long, date, time, timestamps), float64, string, and binary (fixed, uuid; decimals as in
    the binary form of single values: unscaled, two's complement, big-endian, fewest bytes). A spec without fields has
    one row of an empty struct. Tuples differ if a float differs in its bits; all NaN are one."""


Select = Callable[[pa.Table, PartitionTuples], pa.Table]
"""Returns the rows of LIVE to keep, some manifests at a time; their partitions are numbered in the tuples so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMetadata:
    """The metadata that a scan of a version needs. Picklable if `live` is."""

    storage: Storage
    format_version: int
    schema: Mapping[str, Any]
    """The schema to read under, as JSON."""
    schemas: Mapping[int, Mapping[str, Any]]
    """All schemas of the table by id, as JSON; a column that equality deletes need may be in an old one only."""
    specs: Mapping[int, Mapping[str, Any]]
    """All partition specs by id, as JSON: `{"spec-id": ..., "fields": [...]}`. Fields of format 1 have ids too."""
    current_schema: Mapping[str, Any]
    """The table's current schema: partition fields take the type of their source from it."""
    properties: Mapping[str, str]
    live: Callable[[Sequence[str], Select], IcebergLiveFiles]
    """Returns the selected live files, by the named columns of STATISTICS. Reads the manifests when called."""
