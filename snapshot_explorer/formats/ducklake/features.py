"""The features of DuckLake tables: those that are read, and those that are refused by name.

Source: DuckLake specification 1.0; DuckDB's extension of releases 1.3.0 to 1.5.5.
"""

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.features import (
    COLUMN_TYPES,
    LEAVE_OUT,
    ROW_CHANGES,
    SHARED,
    declare_refused,
    declare_supported,
    features_in,
)

_ADVICE = "Its history, schema and files can still be read; read the rows with DuckDB's own extension."

FORMATS = declare_supported(
    "formats 0.1 to 1.0, also migrated catalogs", "the key version of ducklake_metadata", area="versions"
)
OTHER_FORMATS = declare_refused(
    "other format versions",
    "the key version of ducklake_metadata has another value",
    area="versions",
    message="{catalog} has the DuckLake format version {version}; {known} are read. Use a newer version of this "
    "package.",
)

DATABASES = declare_supported(
    "catalogs in a DuckDB file and in SQLite, read-only", "the first bytes of the catalog file", area="catalogs"
)
POSTGRES = declare_supported(
    "catalogs in PostgreSQL (`pip install 'snapshot-explorer[ducklake]'`)",
    "a URL such as postgresql://host/database?metadata_schema=shop",
    area="catalogs",
)
UNPLACED_DATA = declare_refused(
    "data paths on the local disk of a catalog on a server, without `relocate`",
    "data_path in ducklake_metadata is no URL of a store",
    area="catalogs",
    message=Message(
        "The catalog records the data path {path!r}, which counts from a folder of its writer: a server does not say "
        "where that is here. Name the folder of {prefix!r} with ",
        Hint("", {"relocate": ...}),
        ".",
    ),
)
NEWER_STORAGE = declare_refused(
    "DuckDB files of a newer storage version than the installed DuckDB reads",
    "bytes 12 to 19 of the file; catalogs of DuckDB 1.5 need duckdb>=1.5",
    area="catalogs",
    message="{catalog} has the storage version {storage}, which the installed DuckDB {installed} does not read. "
    "Install a newer one: pip install 'duckdb>={needed}'.",
)
OTHER_DATABASES = declare_refused(
    "catalogs in MySQL",
    "the scheme of the URL",
    area="catalogs",
    message="A DuckLake catalog in {database} is not read. Catalogs in a DuckDB file, SQLite and PostgreSQL are.",
)
LOCKED_CATALOGS = declare_refused(
    "DuckDB files that another process holds for writing",
    "DuckDB's lock on the catalog file",
    area="catalogs",
    message="The catalog {catalog} is open for writing in another process{process}, and DuckDB lets no other process "
    "read it meanwhile. Try again when the writer has closed it, or copy the file, and {catalog}.wal if there is one, "
    "and open the copy.",
)

SCHEMAS = declare_supported(
    "columns renamed, added with defaults, dropped and widened, by field id", "every table", area="rows"
)
INLINED = declare_supported(
    "inlined rows and deletions", "ducklake_inlined_data_tables, ducklake_inlined_delete_N", area="rows"
)
DELETES = declare_supported(
    "delete files, also several of one data file, and with snapshots inside", "ducklake_delete_file", area="rows"
)
VECTORS = declare_supported(
    "deletion vectors",
    "a delete file of format puffin",
    area="rows",
    note="what a later vector replaced is lost, which is logged",
)
MERGED = declare_supported(
    "merged, flushed and rewritten files at each snapshot", "partial_max, partial_file_info", area="rows"
)
ROW_IDS = declare_supported("row ids (`_row_id`, `_snapshot_id`)", "every table", area="rows")
ADDED = declare_supported("added files: columns by name, Hive partitions", "a file with a mapping_id", area="rows")
ENCRYPTED = declare_refused(
    "encrypted lakes, and files with a key",
    "encrypted in ducklake_metadata, or encryption_key of a file",
    area="rows",
    message="{what} is encrypted, which is not read. " + _ADVICE,
)
OTHER_MAPPINGS = declare_refused(
    "name mappings of another type than map_by_name",
    "the type of a mapping in ducklake_column_mapping",
    area="rows",
    message="The data file {path} has a name mapping of the type {type!r}, which is not supported. " + _ADVICE,
)
OLD_NESTED_TEXT = declare_refused(
    "nested inlined values in SQLite with duckdb older than 1.3",
    "an inlined table has a nested column, and the catalog stores its values as text",
    area="rows",
    message="The column {column!r} has nested inlined values, which are stored as text that the installed DuckDB "
    "{installed} does not parse correctly. Install a newer one: pip install 'duckdb>=1.3'.",
)

INLINED_VARIANTS = declare_refused(
    "inlined variants in SQLite",
    "a variant column, and a live inlined row in a catalog that stores its values as text",
    area="types",
    message=Message(
        "The column {column!r} has inlined variants, which the catalog stores as text that does not say their types. "
        "Leave it out with ",
        LEAVE_OUT,
        ", or flush the inlined rows into files with ducklake_flush_inlined_data.",
    ),
)
UNKNOWN_TYPES = declare_refused(
    "column types that the specification does not have",
    "the type of a column",
    area="types",
    message="The column {column!r} has the type {type}, which is not supported. " + _ADVICE,
)
TYPES = declare_supported(
    "all other types",
    "every table",
    area="types",
    note="128-bit integers as text, timetz as the time in UTC, variants as value and metadata",
)

PARQUET = declare_supported("parquet", "the file_format of a data file", area="data files")
OTHER_FILE_FORMATS = declare_refused(
    "other data files and delete files",
    "the format of a file is not parquet, of a delete file not parquet or puffin",
    area="data files",
    message="The file {path} has the format {file_format!r}, which is not supported. " + _ADVICE,
)
ROW_CHANGE_MODES = declare_refused(
    'other modes of row changes than `mode="auto"`',
    "every table, as DuckLake writes no files of row changes and has no primary keys",
    area="changes",
    message=Message(
        "DuckLake tables have no files of row changes and no primary keys, so the mode {mode!r} is not supported. Use ",
        Hint("", {"mode": "auto"}),
        ".",
    ),
)
CHANGES = declare_supported("inserts, deletes and updates by row id", 'mode="auto"', area="changes")

FEATURES = (*features_in(globals()), *ROW_CHANGES, *COLUMN_TYPES, *SHARED)
