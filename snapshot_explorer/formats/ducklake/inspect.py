"""Metadata tables of a DuckLake table: the catalog's rows about it, under their names in the catalog.

Keys of encrypted files are never in them. SQL of views is shown, and never run.
"""

import pyarrow as pa

from snapshot_explorer.core.records import Inspection
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    DuckLakeLog,
    DuckLakeMetadata,
    live_mask,
    live_rows,
)
from snapshot_explorer.formats.interface import unknown_inspection

INSPECTIONS = (
    Inspection(
        name="snapshots", at_version=False, meaning="the snapshots of the whole catalog, with what they changed"
    ),
    Inspection(name="tables", at_version=False, meaning="all names that tables of the catalog have or had"),
    Inspection(name="views", at_version=False, meaning="the views of the catalog, with their SQL"),
    Inspection(name="options", at_version=False, meaning="the options of the lake, its schemas and tables"),
    Inspection(name="scheduled", at_version=False, meaning="files that the next clean-up deletes"),
    Inspection(name="data_files", at_version=True, meaning="the live data files, as the catalog records them"),
    Inspection(name="delete_files", at_version=True, meaning="the live delete files"),
    Inspection(name="columns", at_version=True, meaning="the columns, nested ones included"),
    Inspection(name="inlined", at_version=True, meaning="the inlined tables, with the number of live rows in each"),
    Inspection(name="partitions", at_version=True, meaning="the columns by which new files are partitioned"),
)
_TABLES = {
    "tables": "table",
    "views": "view",
    "options": "metadata",
    "scheduled": "files_scheduled_for_deletion",
}


def inspect_table(name: str, log: DuckLakeLog) -> pa.Table:
    """Return a metadata table of the catalog. Opens it once."""
    if name == "snapshots":
        rows = log.refresh().rows
        return rows["snapshot"].join(rows["snapshot_changes"], "snapshot_id").sort_by("snapshot_id")
    if name not in _TABLES:
        raise unknown_inspection(name, INSPECTIONS)
    with log.reading() as reader:
        return reader.read(_TABLES[name])


def inspect_version(name: str, metadata: DuckLakeMetadata, snapshot: int) -> pa.Table:
    """Return a metadata table of a version. Reads nothing."""
    match name:
        case "data_files" | "delete_files":
            return live_rows(metadata.rows[name.removesuffix("s")], snapshot).drop_columns(["encryption_key"])
        case "columns":
            return live_rows(metadata.rows["column"], snapshot).sort_by("column_order")
        case "inlined":
            tables = metadata.inlined
            counts = pa.array([live_mask(table.rows, snapshot).sum() for table in tables], pa.int64())
            return pa.table({"table": pa.array([table.name for table in tables], pa.string()), "rows": counts})
        case "partitions":
            fields = metadata.partition_fields(metadata.partition_at(snapshot))
            names = [None if field is None else field.name for field, _ in fields]
            transforms = pa.array([transform for _, transform in fields], pa.string())
            return pa.table({"column": pa.array(names, pa.string()), "transform": transforms})
    raise unknown_inspection(name, INSPECTIONS)
