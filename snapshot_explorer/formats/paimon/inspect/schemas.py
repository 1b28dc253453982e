"""The columns of Paimon's system tables and their types, as `SELECT * FROM t$files` shows them."""

from collections.abc import Mapping
from functools import cache

import pyarrow as pa

from snapshot_explorer.formats.paimon.metadata.data_types import arrow_field, parse_type

_FILE_HEAD = (
    "`partition` STRING, bucket INT NOT NULL, file_path STRING NOT NULL, file_format STRING NOT NULL, "
    "schema_id BIGINT NOT NULL, level INT NOT NULL, record_count BIGINT NOT NULL, "
    "file_size_in_bytes BIGINT NOT NULL, min_key STRING, max_key STRING"
)
_COLUMNS: Mapping[str, str] = {
    "snapshots": (
        "snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, commit_user STRING NOT NULL, "
        "commit_identifier BIGINT NOT NULL, commit_kind STRING NOT NULL, commit_time TIMESTAMP(3) NOT NULL, "
        "base_manifest_list STRING NOT NULL, delta_manifest_list STRING NOT NULL, changelog_manifest_list STRING, "
        "total_record_count BIGINT, delta_record_count BIGINT, changelog_record_count BIGINT, watermark BIGINT, "
        "next_row_id BIGINT, operation STRING, writer_version STRING"
    ),
    "schemas": (
        "schema_id BIGINT NOT NULL, fields STRING NOT NULL, partition_keys STRING NOT NULL, "
        "primary_keys STRING NOT NULL, options STRING NOT NULL, comment STRING, update_time TIMESTAMP(3) NOT NULL"
    ),
    "options": "key STRING NOT NULL, value STRING NOT NULL",
    "manifests": (
        "file_name STRING NOT NULL, file_size BIGINT NOT NULL, num_added_files BIGINT NOT NULL, "
        "num_deleted_files BIGINT NOT NULL, schema_id BIGINT NOT NULL, min_partition_stats STRING, "
        "max_partition_stats STRING, min_row_id BIGINT, max_row_id BIGINT"
    ),
    "files": (
        f"{_FILE_HEAD}, null_value_counts STRING NOT NULL, min_value_stats STRING NOT NULL, "
        "max_value_stats STRING NOT NULL, min_sequence_number BIGINT, max_sequence_number BIGINT, "
        "creation_time TIMESTAMP(3), deleteRowCount BIGINT, file_source STRING, first_row_id BIGINT, "
        "write_cols ARRAY<STRING>"
    ),
    "file_key_ranges": f"{_FILE_HEAD}, first_row_id BIGINT",
    "partitions": (
        "`partition` STRING, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL, "
        "file_count BIGINT NOT NULL, last_update_time TIMESTAMP(3), created_at TIMESTAMP(3), created_by STRING, "
        "updated_by STRING, options STRING, total_buckets INT, done BOOLEAN, deleted_record_count BIGINT"
    ),
    "buckets": (
        "`partition` STRING, bucket INT NOT NULL, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL, "
        "file_count BIGINT NOT NULL, last_update_time TIMESTAMP(3)"
    ),
    "tags": (
        "tag_name STRING NOT NULL, snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, "
        "commit_time TIMESTAMP(3) NOT NULL, record_count BIGINT, create_time TIMESTAMP(3), time_retained STRING"
    ),
    "branches": "branch_name STRING NOT NULL, create_time TIMESTAMP(3)",
    "consumers": "consumer_id STRING NOT NULL, next_snapshot_id BIGINT NOT NULL",
    "statistics": (
        "snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, mergedRecordCount BIGINT, mergedRecordSize BIGINT, "
        "colstat STRING"
    ),
    "aggregation_fields": (
        "field_name STRING NOT NULL, field_type STRING NOT NULL, `function` STRING, function_options STRING, "
        "comment STRING"
    ),
    "table_indexes": (
        "`partition` STRING, bucket INT NOT NULL, index_type STRING NOT NULL, file_name STRING NOT NULL, "
        "file_size BIGINT NOT NULL, row_count BIGINT NOT NULL, "
        "dv_ranges ARRAY<ROW<f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT>>, "
        "row_range_start BIGINT, row_range_end BIGINT, index_field_id INT, index_field_name STRING"
    ),
    "file_indexes": (
        "`partition` STRING, bucket INT NOT NULL, file_path STRING NOT NULL, file_size_in_bytes BIGINT NOT NULL, "
        "record_count BIGINT NOT NULL, schema_id BIGINT NOT NULL, column_name STRING NOT NULL, "
        "index_type STRING NOT NULL, storage_type STRING NOT NULL, index_file_path STRING, "
        "index_size_in_bytes BIGINT NOT NULL, index_container_size_in_bytes BIGINT NOT NULL, is_empty BOOLEAN NOT NULL"
    ),
}


@cache
def schema_of(name: str) -> pa.Schema:
    """Return the Arrow schema of a system table of metadata: Paimon's column names and types, in Paimon's order.

    A TIMESTAMP(3) is timestamp[ms] without zone. It is in UTC, where Paimon uses the zone of its JVM. Only
    creation_time of files and create_time of tags are in the writer's local time, as stored.

    Source: paimon docs, "System Tables".
    """
    return pa.schema([arrow_field(field) for field in parse_type(f"ROW<{_COLUMNS[name]}>").fields])
