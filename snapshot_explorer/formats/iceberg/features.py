"""The features of Iceberg tables: those that are read, and those that are refused by name.

Source: iceberg specification, "Format Versioning" and Appendix E.
"""

from functools import partial

from snapshot_explorer.formats.features import SHARED, Feature

_ADVICE = "Its history, schema and files are available; read the rows with Iceberg's own readers."
_read = partial(Feature, status="read", since="0.1.0")
_refused = partial(Feature, status="refused", since="0.1.0")

FORMAT_VERSIONS = _read(
    name="format versions 1, 2 and 3",
    area="versions",
    condition="format-version of the metadata file",
    checked=("iceberg.metadata.table_metadata",),
)
OTHER_FORMAT_VERSIONS = _refused(
    name="format version 4, which is not released, and all others",
    area="versions",
    condition="format-version of the metadata file is not 1, 2 or 3",
    checked=("iceberg.metadata.table_metadata._check_format_version",),
    message=(
        "{path} has format version {version}, which is not supported; 1, 2 and 3 are. Read the table with the "
        "engine that wrote it."
    ),
)
LARGE_NUMBERS = _refused(
    name="ids with more than 64 bits",
    area="metadata",
    condition="a number of a metadata file is not a signed integer of 64 bits",
    checked=("iceberg.metadata.json_fields.integer",),
    message=(
        "{path} has {value} as {field}, which is not a signed 64-bit integer. Iceberg cannot read it either. Ask "
        "the writer of the table for a repaired copy."
    ),
)
ENCRYPTED_METADATA = _refused(
    name="encrypted manifest lists and manifests",
    area="metadata",
    condition="a snapshot has a key-id, or a manifest key_metadata",
    checked=("iceberg.metadata.manifest_lists.encrypted",),
    message=(
        "{path} is encrypted, which is not supported: the keys are not in the table. The history is available; "
        "read the rows with an engine that has the keys."
    ),
)
OTHER_MANIFEST_FORMATS = _refused(
    name="manifests that are not Avro",
    area="metadata",
    condition="a manifest list or a manifest is parquet, as in drafts of format version 4",
    checked=("iceberg.metadata.avro_files.read_avro",),
    message="{path} is a manifest in parquet, as in drafts of format version 4. Only Avro is supported.",
)

SCHEMAS = _read(
    name="schema evolution by field id, defaults, name mapping, type promotion",
    area="rows",
    condition="every table",
    checked=("iceberg.files.columns",),
)
DELETES = _read(
    name="position deletes, equality deletes and deletion vectors",
    area="rows",
    condition="the version has delete files",
    checked=("iceberg.deletes",),
)
ROW_LINEAGE = _read(
    name="row lineage: `_row_id` and `_last_updated_sequence_number`",
    area="rows",
    condition="format version 3",
    checked=("iceberg.scan.metadata_columns",),
)
DATA_FILES = _read(
    name="data files and delete files in parquet, ORC and Avro",
    area="data files",
    condition="the file_format of an entry",
    checked=("iceberg.files.data_files",),
)
VARIANTS = _read(
    name="variants, shredded or not, as value and metadata",
    area="types",
    condition="format version 3, and a column is a variant",
    checked=("iceberg.files.columns._variant",),
)
UNREAD_TYPES = _refused(
    name="geometry, geography and types that are not in format versions 1 to 3",
    area="types",
    condition="a column is of such a type, or contains one",
    checked=("iceberg.metadata.types.arrow_type",),
    message="The table has a column of type {type}, which is not supported. " + _ADVICE,
)
SHREDDED_VARIANTS = _refused(
    name="variants shredded into types that variants do not have",
    area="data files",
    condition="the type of a typed_value in a parquet file",
    checked=("iceberg.files.columns._variant",),
    message="its variants are shredded into {found}, a type that variants do not have",
)
FILES_OF_OTHER_TYPES = _refused(
    name="file columns with a type that cannot represent the table's type",
    area="data files",
    condition="the type of a column in a data file's footer",
    checked=("iceberg.files.columns._other_type", "iceberg.files.columns._variant"),
    message="its type in the file is {found}, which is not supported for {type}",
)
FILES_WITHOUT_IDS = _refused(
    name="files without field ids, if the schema was changed and there is no name mapping",
    area="data files",
    condition="no column of a data file has a field id, and the table has no schema.name-mapping.default",
    checked=("iceberg.files.field_ids.file_fields", "iceberg.files.field_ids._by_names"),
    message=(
        "The data file {path} has no field ids, the schema of the table was changed, and the table has no name "
        "mapping (schema.name-mapping.default) to match columns by. " + _ADVICE
    ),
)
OTHER_FILE_FORMATS = _refused(
    name="data files that are not parquet, ORC or Avro",
    area="data files",
    condition="the file_format of an entry",
    checked=("iceberg.scan.planning._check_readable",),
    message="The file {path} has the format {file_format}, which is not supported; parquet, ORC and Avro are. "
    + _ADVICE,
)
ENCRYPTED_DATA = _refused(
    name="encrypted data files and delete files",
    area="data files",
    condition="the key_metadata of an entry",
    checked=("iceberg.scan.planning._check_readable",),
    message=(
        "The file {path} has key_metadata: it is encrypted, which is not supported, since the keys are not in the "
        "table. The history and the list of files are available; read the rows with an engine that has the keys."
    ),
)
EQUALITY_TYPES = _refused(
    name="equality deletes by a variant",
    area="rows",
    condition="the equality_ids of an equality delete file",
    checked=("iceberg.deletes.equality.check_columns",),
    message="An equality delete file compares the column {column!r} of type {type}, which is not supported. " + _ADVICE,
)
LARGE_DELETION_VECTORS = _refused(
    name="deletion vectors of more than 256 MiB",
    area="rows",
    condition="content_size_in_bytes of an entry",
    checked=("iceberg.deletes.vectors.vector_of",),
    message=(
        "The deletion vector of {path} has {size:,} bytes; the limit is {most:,}. Read the rows with Iceberg's "
        "own readers."
    ),
)

CHANGES = _read(
    name="rows that commits changed, from data files and deletes",
    area="row changes",
    condition="mode='auto' or mode='delta'",
    checked=("iceberg.changes.row_changes",),
)
DIFFERENCE = _read(
    name="differences between the rows of two versions",
    area="row changes",
    condition="mode='diff'",
    checked=("iceberg.changes.row_changes",),
)
CHANGES_ACROSS_EXPIRY = _refused(
    name="row changes of a commit whose parent has expired",
    area="row changes",
    condition="the parent snapshot of a version in the range has expired",
    checked=("iceberg.changes.row_changes._before",),
    message=(
        "The parent snapshot of version {version} has expired, so the changes of the version are unknown. Choose "
        "a range that begins with it, or compare two versions with mode='diff'."
    ),
)
TAKEN_CHANGE_COLUMNS = _refused(
    name="row changes of tables that have a column with the name of a change column",
    area="row changes",
    condition="a column is called rowkind or _change_type, or has the name of another change column",
    checked=("iceberg.changes.row_changes._wanted",),
    message=(
        "The table has its own column {column!r}, which is also a column of row changes, so its row changes are "
        "not supported. Compare the rows of both versions with SQL."
    ),
)

EXPIRY = _read(
    name="the files that `expire_snapshots` would delete, for all branches and tags",
    area="retention",
    condition="every table",
    checked=("iceberg.maintenance.retention",),
)
EXPIRY_WITHOUT_GC = _refused(
    name="expiry of tables with gc.enabled=false",
    area="retention",
    condition="the property gc.enabled is false",
    checked=("iceberg.maintenance.retention.expiry",),
    message=(
        "The table has gc.enabled=false: Iceberg refuses to expire its snapshots, because other tables may need "
        "its files. Set gc.enabled=true first if no other table does."
    ),
)

_METADATA: tuple[Feature, ...] = (
    FORMAT_VERSIONS,
    OTHER_FORMAT_VERSIONS,
    LARGE_NUMBERS,
    ENCRYPTED_METADATA,
    OTHER_MANIFEST_FORMATS,
)
_ROWS: tuple[Feature, ...] = (
    SCHEMAS,
    DELETES,
    ROW_LINEAGE,
    LARGE_DELETION_VECTORS,
    EQUALITY_TYPES,
    VARIANTS,
    UNREAD_TYPES,
    DATA_FILES,
    OTHER_FILE_FORMATS,
    ENCRYPTED_DATA,
    FILES_WITHOUT_IDS,
    SHREDDED_VARIANTS,
    FILES_OF_OTHER_TYPES,
)

_CHANGES: tuple[Feature, ...] = (CHANGES, DIFFERENCE, CHANGES_ACROSS_EXPIRY, TAKEN_CHANGE_COLUMNS)
_RETENTION: tuple[Feature, ...] = (EXPIRY, EXPIRY_WITHOUT_GC)

FEATURES: tuple[Feature, ...] = (*_METADATA, *_ROWS, *_CHANGES, *_RETENTION, *SHARED)
"""All features, in the order of the guide."""
