"""Writes small DuckLake catalogs in SQLite for the tests that need a shape which no real lake at hand has.

What rows mean is judged by lakes that DuckDB wrote (tests/data); this builder serves histories of any length, metadata
that lies, and catalogs that are damaged. The tables are those of format 1.0.
"""

import io
import sqlite3
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

FIRST = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
COLUMNS = (("id", "int64"), ("name", "varchar"))
TABLES = {
    "metadata": "key, value, scope, scope_id",
    "snapshot": "snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id",
    "snapshot_changes": "snapshot_id, changes_made, author, commit_message, commit_extra_info",
    "schema": "schema_id, schema_uuid, begin_snapshot, end_snapshot, schema_name, path, path_is_relative",
    "table": "table_id, table_uuid, begin_snapshot, end_snapshot, schema_id, table_name, path, path_is_relative",
    "column": "column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name, column_type, "
    "initial_default, default_value, nulls_allowed, parent_column, default_value_type, default_value_dialect",
    "data_file": "data_file_id, table_id, begin_snapshot, end_snapshot, file_order, path, path_is_relative, "
    "file_format, record_count, file_size_bytes, footer_size, row_id_start, partition_id, encryption_key, mapping_id, "
    "partial_max",
    "delete_file": "delete_file_id, table_id, begin_snapshot, end_snapshot, data_file_id, path, path_is_relative, "
    "format, delete_count, file_size_bytes, footer_size, encryption_key, partial_max",
    "inlined_data_tables": "table_id, table_name, schema_version",
    "schema_versions": "begin_snapshot, schema_version, table_id",
    "file_column_stats": "data_file_id, table_id, column_id, column_size_bytes, value_count, null_count, min_value, "
    "max_value, contains_nan, extra_stats",
    "files_scheduled_for_deletion": "data_file_id, path, path_is_relative, schedule_start",
    "view": "view_id, view_uuid, begin_snapshot, end_snapshot, schema_id, view_name, dialect, sql, column_aliases",
}


class Catalog:
    """A catalog with the table main.rows, whose data files are called data-1, data-2, ..."""

    table_id = 1

    def __init__(self, filesystem, root, *, name="lake.sqlite", data_path="./"):
        self.filesystem, self.root, self.name = filesystem, root, name
        self.database = sqlite3.connect(":memory:")
        for table, columns in TABLES.items():
            self.database.execute(f"CREATE TABLE ducklake_{table} ({columns})")
        self.insert("metadata", "version", "1.0", None, None)
        self.insert("metadata", "data_path", data_path, None, None)
        self.insert("metadata", "encrypted", "false", None, None)
        self.insert("schema", 0, "uuid-of-main", 0, None, "main", "main/", 1)
        self.snapshot, self.files, self.rows = -1, 0, 0
        self.commit('created_schema:"main"', at=FIRST - timedelta(minutes=1))
        self.created = False

    def insert(self, table, *values):
        """Insert a row into a table of the catalog."""
        self.database.execute(f"INSERT INTO ducklake_{table} VALUES ({', '.join('?' * len(values))})", values)

    def execute(self, query, *values):
        """Run a statement on the catalog, and save it."""
        self.database.execute(query, values)
        self.save()

    def save(self):
        """Write the catalog file."""
        self.database.commit()
        self.filesystem.pipe_file(f"{self.root}/{self.name}", self.database.serialize())

    def commit(self, changes, *, at=None, schema_version=1):
        """Add a snapshot, and save the catalog."""
        self.snapshot += 1
        time = at or FIRST + timedelta(minutes=self.snapshot - 1)
        text = time.strftime("%Y-%m-%d %H:%M:%S.%f+00")
        next_file = getattr(self, "files", 0) + 1
        self.insert("snapshot", self.snapshot, text, schema_version, 10, next_file)
        self.insert("snapshot_changes", self.snapshot, changes, "someone", None, None)
        self.save()

    def create(self, columns=COLUMNS):
        """Add the table at the next snapshot."""
        self.created = True
        at = self.snapshot + 1
        self.insert("table", self.table_id, "uuid-of-rows", at, None, 0, "rows", "rows/", 1)
        self.insert("schema_versions", at, 1, self.table_id)
        for number, (name, dtype) in enumerate(columns, 1):
            self.insert("column", number, at, None, self.table_id, number, name, dtype, None, None, 1, None, None, None)

    def add(self, rows, *, begin=None, columns=COLUMNS, first_row_id=None):
        """Write a data file of the next snapshot, and return its number."""
        row_id = self.rows if first_row_id is None else first_row_id
        self.files += 1
        number = self.files
        types = {"int64": pa.int64(), "varchar": pa.string()}
        fields = [
            pa.field(name, types[dtype], metadata={"PARQUET:field_id": str(index)})
            for index, (name, dtype) in enumerate(columns, 1)
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), fields, strict=True)]
        content = io.BytesIO()
        pq.write_table(pa.table(arrays, schema=pa.schema(fields)), content)
        path = f"data-{number}.parquet"
        self.filesystem.pipe_file(f"{self.root}/main/rows/{path}", content.getvalue())
        self.insert(
            "data_file", number, self.table_id, self.snapshot + 1 if begin is None else begin, None, None, path, 1,
            "parquet", len(rows), len(content.getvalue()), None, row_id, None, None, None, None,
        )  # fmt: skip
        for index, (_, values) in enumerate(zip(columns, zip(*rows, strict=True), strict=True), 1):
            least, most = str(min(values)), str(max(values))
            self.insert("file_column_stats", number, self.table_id, index, None, len(rows), 0, least, most, None, None)
        self.rows += len(rows)
        return number

    def remove(self, *numbers):
        """End data files at the next snapshot."""
        for number in numbers:
            self.database.execute(
                "UPDATE ducklake_data_file SET end_snapshot = ? WHERE data_file_id = ?", (self.snapshot + 1, number)
            )

    def commit_rows(self, rows, *, removed=(), words=("inserted_into_table",), first_row_id=None):
        """Commit a new data file, and the end of others."""
        if not self.created:
            self.create()
        self.add(rows, first_row_id=first_row_id)
        self.remove(*removed)
        self.commit(",".join(f"{word}:{self.table_id}" for word in words))
