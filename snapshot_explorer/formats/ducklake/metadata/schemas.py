"""The columns of the catalog's tables that are read, with their types. Other columns and tables are ignored.

A column or a table that an older format version lacks is null, or empty: one reader serves all format versions.

Source: DuckLake specification 1.0, "Tables"; reference, "The metadata tables".
"""

from collections.abc import Mapping

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError

I64, TEXT, FLAG = pa.int64(), pa.string(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The microseconds since 1970 of the years 1 to 9999. A scalar of a time would load pandas."""


def _schema(numbers: str, texts: str = "", flags: str = "", times: str = "") -> pa.Schema:
    """Return columns by their types. A name that ends in ! has no nulls."""
    groups = ((numbers, I64), (texts, TEXT), (flags, FLAG), (times, TIME))
    return pa.schema(
        [
            pa.field(name.removesuffix("!"), dtype, nullable=not name.endswith("!"))
            for names, dtype in groups
            for name in names.split()
        ]
    )


_LIVE = "begin_snapshot end_snapshot"
TABLES: Mapping[str, pa.Schema] = {
    "metadata": _schema("scope_id", "key value scope"),
    "snapshot": _schema("snapshot_id! schema_version next_file_id", times="snapshot_time"),
    "snapshot_changes": _schema("snapshot_id!", "changes_made author commit_message commit_extra_info"),
    "schema": _schema(f"schema_id {_LIVE}", "schema_uuid schema_name path", "path_is_relative"),
    "table": _schema(f"table_id {_LIVE} schema_id", "table_uuid table_name path", "path_is_relative"),
    "view": _schema(f"view_id {_LIVE} schema_id", "view_name dialect sql"),
    "column": _schema(
        f"column_id! {_LIVE} table_id column_order parent_column",
        "column_name! column_type! initial_default default_value",
        "nulls_allowed",
    ),
    "data_file": _schema(
        f"data_file_id! table_id {_LIVE} record_count file_size_bytes row_id_start partition_id mapping_id partial_max",
        "path! file_format encryption_key partial_file_info",
        "path_is_relative",
    ),
    "delete_file": _schema(
        f"delete_file_id! table_id {_LIVE} data_file_id! delete_count file_size_bytes partial_max",
        "path! format encryption_key",
        "path_is_relative",
    ),
    "inlined_data_tables": _schema("table_id schema_version", "table_name"),
    "inlined_delete": _schema("file_id! row_id! begin_snapshot!"),
    "schema_versions": _schema("begin_snapshot schema_version table_id"),
    "column_mapping": _schema("mapping_id table_id", "type"),
    "name_mapping": _schema("mapping_id column_id target_field_id parent_column", "source_name", "is_partition"),
    "partition_info": _schema(f"partition_id table_id {_LIVE}"),
    "partition_column": _schema("partition_id partition_key_index column_id", "transform"),
    "file_partition_value": _schema("data_file_id table_id partition_key_index", "partition_value"),
    "sort_info": _schema(f"sort_id table_id {_LIVE}"),
    "sort_expression": _schema("sort_id sort_key_index", "expression dialect sort_direction null_order"),
    "file_column_stats": _schema(
        "data_file_id table_id column_id null_count",
        "min_value max_value",
        "contains_nan",
    ),
    "tag": _schema(f"object_id {_LIVE}", "key value"),
    "column_tag": _schema(f"table_id column_id {_LIVE}", "key value"),
    "files_scheduled_for_deletion": _schema("data_file_id", "path!", "path_is_relative", "schedule_start"),
}
"""The tables that are read, by their names without `ducklake_`, and the types in which their columns are returned."""
INLINED = _schema("row_id! begin_snapshot! end_snapshot")
"""The first columns of a table of inlined rows."""
OLD_NAMES: Mapping[str, str] = {"file_column_stats": "file_column_statistics"}
"""Tables that older format versions have under another name."""
FORMAT_VERSIONS = ("0.1", "0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4", "1.0")
"""The format versions that are read."""


def damaged(finding: str) -> CorruptTableError:
    """Return the error for a catalog that contradicts itself or the specification.

    Args:
        finding: A sentence.
    """
    return CorruptTableError(f"{finding} The catalog is damaged; compare it with a copy.")


def check_values(rows: pa.Table, schema: pa.Schema, table: str, catalog: str) -> pa.Table:
    """Return rows of a catalog, if columns that must have a value have one, and times are of a calendar.

    Args:
        table: The table in the database.
    """
    for item in schema:
        column = rows.column(item.name)
        if column.null_count and not item.nullable:
            raise damaged(f"The catalog {catalog} has a row without {item.name} in {table}.")
        if item.type == TIME and _is_outside(column.cast(pa.int64())):
            raise damaged(f"The catalog {catalog} has a time outside of the years 1 to 9999 in {table}.")
    return rows


def _is_outside(micros: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.or_(pc.less(micros, _FIRST), pc.greater(micros, _LAST))).as_py())
