"""The features of Iceberg tables: those that are read, and those that are refused by name.

Source: iceberg specification, "Format Versioning" and Appendix E.
"""

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.features import (
    COLUMN_TYPES,
    ROW_CHANGES,
    SHARED,
    SHREDDING,
    declare_refused,
    declare_supported,
    features_in,
)

_ADVICE = "Its history, schema and files are available; read the rows with Iceberg's own readers."

FORMAT_VERSIONS = declare_supported(
    "format versions 1, 2 and 3", "format-version of the metadata file", area="versions"
)
OTHER_FORMAT_VERSIONS = declare_refused(
    "format version 4, which is not released, and all others",
    "format-version of the metadata file is not 1, 2 or 3",
    area="versions",
    message="{path} has format version {version}, which is not supported; 1, 2 and 3 are. Read the table with the "
    "engine that wrote it.",
)
LARGE_NUMBERS = declare_refused(
    "ids with more than 64 bits",
    "a number of a metadata file is not a signed integer of 64 bits",
    area="metadata",
    message="{path} has {value} as {field}, which is not a signed 64-bit integer. Iceberg cannot read it either. Ask "
    "the writer of the table for a repaired copy.",
)
ENCRYPTED_METADATA = declare_refused(
    "encrypted manifest lists and manifests",
    "a snapshot has a key-id, or a manifest key_metadata",
    area="metadata",
    message="{path} is encrypted, which is not supported: the keys are not in the table. The history is available; "
    "read the rows with an engine that has the keys.",
)
OTHER_MANIFEST_FORMATS = declare_refused(
    "manifests that are not Avro",
    "a manifest list or a manifest is parquet, as in drafts of format version 4",
    area="metadata",
    message="{path} is a manifest in parquet, as in drafts of format version 4. Only Avro is supported.",
)

SCHEMAS = declare_supported(
    "schema evolution by field id, defaults, name mapping, type promotion", "every table", area="rows"
)
DELETES = declare_supported(
    "position deletes, equality deletes and deletion vectors", "the version has delete files", area="rows"
)
ROW_LINEAGE = declare_supported(
    "row lineage: `_row_id` and `_last_updated_sequence_number`", "format version 3", area="rows"
)
DATA_FILES = declare_supported(
    "data files and delete files in parquet, ORC and Avro", "the file_format of an entry", area="data files"
)
VARIANTS = declare_supported(
    "variants, shredded or not, as value and metadata", "format version 3, and a column is a variant", area="types"
)
SPATIAL_TYPES = declare_supported(
    "geometry and geography, as WKB, with `crs` and `edges` in the metadata of the field",
    "format version 3, and a column is of such a type",
    area="types",
)
UNREAD_TYPES = declare_refused(
    "types that are not in format versions 1 to 3",
    "a column is of such a type, or contains one",
    area="types",
    message="The table has a column of type {type}, which is not supported. " + _ADVICE,
)
FILES_WITHOUT_IDS = declare_refused(
    "files without field ids, if the schema was changed and there is no name mapping",
    "no column of a data file has a field id, and the table has no schema.name-mapping.default",
    area="data files",
    message="The data file {path} has no field ids, the schema of the table was changed, and the table has no name "
    "mapping (schema.name-mapping.default) to match columns by. " + _ADVICE,
)
OTHER_FILE_FORMATS = declare_refused(
    "data files that are not parquet, ORC or Avro",
    "the file_format of an entry",
    area="data files",
    message="The file {path} has the format {file_format}, which is not supported; parquet, ORC and Avro are. "
    + _ADVICE,
)
ENCRYPTED_DATA = declare_refused(
    "encrypted data files and delete files",
    "the key_metadata of an entry",
    area="data files",
    message="The file {path} has key_metadata: it is encrypted, which is not supported, since the keys are not in the "
    "table. The history and the list of files are available; read the rows with an engine that has the keys.",
)
EQUALITY_TYPES = declare_refused(
    "equality deletes by a variant, a geometry or a geography",
    "the equality_ids of an equality delete file",
    area="rows",
    message="An equality delete file compares the column {column!r} of type {type}, which is not supported. " + _ADVICE,
)
LARGE_DELETION_VECTORS = declare_refused(
    "deletion vectors of more than 256 MiB",
    "content_size_in_bytes of an entry",
    area="rows",
    message="The deletion vector of {path} has {size:,} bytes; the limit is {limit:,}. Read the rows with Iceberg's "
    "own readers.",
)

CHANGES = declare_supported(
    "rows that commits changed, from data files and deletes", "mode='auto' or mode='delta'", area="changes"
)
DIFFERENCE = declare_supported("differences between the rows of two versions", "mode='diff'", area="changes")
CHANGES_ACROSS_EXPIRY = declare_refused(
    "row changes of a commit whose parent has expired",
    "the parent snapshot of a version in the range has expired",
    area="changes",
    message=Message(
        "The parent snapshot of version {version} has expired, so the changes of the version are unknown. Choose "
        "a range that begins with it, or compare two versions with ",
        Hint("", {"mode": "diff"}),
        ".",
    ),
)

EXPIRY = declare_supported(
    "the files that `expire_snapshots` would delete, for all branches and tags", "every table", area="retention"
)
EXPIRY_WITHOUT_GC = declare_refused(
    "expiry of tables with gc.enabled=false",
    "the property gc.enabled is false",
    area="retention",
    message="The table has gc.enabled=false: Iceberg refuses to expire its snapshots, because other tables may need "
    "its files. Set gc.enabled=true first if no other table does.",
)

FEATURES = (*features_in(globals()), *ROW_CHANGES, *COLUMN_TYPES, *SHREDDING, *SHARED)
