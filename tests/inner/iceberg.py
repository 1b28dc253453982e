"""The names of inner modules of `formats/iceberg` that tests use."""

from snapshot_explorer.formats.iceberg.changes.events import row_codes
from snapshot_explorer.formats.iceberg.deletes.equality import DeletedRows, comparable_values
from snapshot_explorer.formats.iceberg.metadata import contents, manifest_lists
from snapshot_explorer.formats.iceberg.metadata.avro_files import read_avro
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, arrow_type, parse_type, type_text
from snapshot_explorer.formats.iceberg.metadata.entries import (
    BOUNDS,
    COUNTS,
    LIVE,
    STATISTICS,
    IcebergLiveFiles,
    VersionMetadata,
)
from snapshot_explorer.formats.iceberg.metadata.partitions import (
    bucket,
    matching,
    parse_spec,
    partition_columns,
    partition_texts,
)
from snapshot_explorer.formats.iceberg.metadata.schema import arrow_schema, parse_schema, table_schema
from snapshot_explorer.formats.iceberg.metadata.values import default_value, single_values, stored_values
from snapshot_explorer.formats.iceberg.scan import planning
from snapshot_explorer.formats.iceberg.scan.metadata_columns import METADATA_COLUMNS, metadata_schema
from snapshot_explorer.formats.iceberg.scan.native_files import IcebergNativeFiles
from snapshot_explorer.formats.iceberg.scan.read import RowReader, plan_of
