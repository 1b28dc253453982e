"""The features of Paimon tables: those that are read, and those that are refused by name."""

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.features import (
    AVRO,
    LEAVE_OUT,
    ROW_CHANGES,
    SHARED,
    SHREDDING,
    declare_refused,
    declare_supported,
    features_in,
)

_ROW_DIFF = Hint("table.diff_rows", {"a": ..., "b": ...})
_DELTA = Hint("", {"mode": "delta"})


def _refusal_text(need: str, where: str = "{where}") -> str:
    return (
        f"The rows of version {{version}} need {need} ({where}), which is not supported yet. History, schema, "
        "manifests and files are available; read the rows with Paimon's own engines."
    )


FORMAT_VERSIONS = declare_supported(
    "tables of Paimon 0.3 and newer; tested with tables from 0.7, 0.8, 0.9 and 1.4, and of pypaimon 2.0 and 2.1",
    "the version in each snapshot",
    area="versions",
)
OTHER_SNAPSHOT_FORMATS = declare_refused(
    "snapshots from before Paimon 0.3, or in a newer format",
    "the version in a snapshot",
    area="versions",
    message="{path} has format version {version}; versions {oldest} and {newest}, of Paimon 0.3 and newer, are "
    "supported.",
)
OTHER_MANIFEST_FORMATS = declare_refused(
    "manifest versions other than 2",
    "_VERSION in the rows of a manifest or manifest list",
    area="versions",
    message="A {what} of the table has version {version}; version {newest}, of Paimon 0.3 and newer, is supported.",
)
OTHER_FILE_INDEXES = declare_refused(
    "file index versions other than 1, in the system table file_indexes",
    "the header of a file index",
    area="versions",
    message="The file index {path} has version {version}; version {newest} is supported. The other system tables do "
    "not need it.",
)
TABLE_TYPES = declare_refused(
    "table types other than `table` and `materialized-table`",
    "the option type",
    area="versions",
    message="{root} is a {type}, which is not supported. Supported types: table, materialized-table.",
)
METADATA = declare_supported(
    (
        "all metadata: snapshots, hints, tags, branches, long-lived changelogs, schemas, manifests in Avro, ORC "
        "and parquet, statistics"
    ),
    "every table",
    area="metadata",
)
ENTRY_KINDS = declare_refused(
    "manifests with entries that are neither ADD nor DELETE",
    "_KIND in the rows of a manifest",
    area="metadata",
    message="A manifest among {path} has an entry that is neither ADD nor DELETE, which is not supported.",
)
REMOVED_INDEXES = declare_refused(
    "index manifests with DELETE entries",
    "_KIND in the rows of an index manifest",
    area="metadata",
    message="{path} has a DELETE entry, which is not supported in an index manifest.",
)
TIMESTAMPS_OUT_OF_RANGE = declare_refused(
    "timestamps outside the range of 64 bits, in partitions and keys",
    "a value in a manifest",
    area="metadata",
    message="A {type}({precision}) in a partition or key is outside the range of 64 bits of {unit}seconds, which is "
    "not supported.",
)
BINARY_PARTITION_FOLDERS = declare_refused(
    "folders of binary or nested partition values",
    "a partition column is BINARY, VARBINARY or nested, and its folder names are needed",
    area="metadata",
    message="Folder names of partitions by a {type} column are not supported.",
)
TABLE_KINDS = declare_supported(
    (
        "append tables and primary-key tables of every merge engine: deduplicate, partial-update, aggregation"
        " (`hll_sketch` and `theta_sketch` with `pip install datasketches`), first-row; sequence fields and "
        "groups"
    ),
    "the option merge-engine and primary keys",
    area="rows",
)
DELETION_VECTORS = declare_supported("deletion vectors", "the option deletion-vectors.enabled", area="rows")
BUCKETS = declare_supported("all bucket modes", "the option bucket", area="rows")
COMBINED_BRANCHES = declare_supported(
    "fallback and primary branches", "the options scan.fallback-branch and scan.primary-branch", area="rows"
)
CHAIN_TABLES = declare_refused(
    "a chain table",
    "the option is true",
    area="rows",
    keyword="chain-table.enabled",
    message=_refusal_text("a chain table", "the option {option}={value}"),
)
POSTPONE_MERGE_ON_READ = declare_refused(
    "merge-on-read of postponed buckets",
    "the option is true",
    area="rows",
    keyword="postpone.merge-on-read",
    message=_refusal_text("merge-on-read of postponed buckets", "the option {option}={value}"),
)
CLUSTERING_OVERRIDE = declare_refused(
    "files that are clustered by columns other than the key",
    "the option is true",
    area="rows",
    keyword="pk-clustering-override",
    message=_refusal_text("files that are clustered by columns other than the key", "the option {option}={value}"),
)
SNAPSHOT_ORDERING = declare_refused(
    "rows ordered by snapshot",
    "the option is true",
    area="rows",
    keyword="sequence.snapshot-ordering",
    message=_refusal_text("rows ordered by snapshot", "the option {option}={value}"),
)
MAP_LAYOUTS = declare_refused(
    "other storage layouts of maps",
    "an option fields.*.map.storage-layout",
    area="rows",
    message=_refusal_text("other storage layouts of maps", "the option {option}={value}"),
)
LARGE_DELETION_VECTORS = declare_refused(
    "deletion vectors of files with more than 2,147,483,648 rows",
    "the row count of a data file with a deletion vector",
    area="rows",
    message="A deletion vector in {path} is for a file with {rows} rows; the limit is {limit}.",
)
DISABLED_VECTORS = declare_refused(
    "deletion vectors of a table whose newest options disable them",
    "an append table has deletion vectors, but deletion-vectors.enabled is off",
    area="rows",
    message=_refusal_text("deletion vectors of a table whose newest options disable them"),
)
VERSIONS_BEFORE_VECTORS = declare_refused(
    "versions that need a merge, from before deletion vectors were enabled",
    "a version from before deletion-vectors.enabled has files on several levels, or on level 0",
    area="rows",
    message=_refusal_text(
        ("a merge, which Paimon no longer does since deletion vectors were enabled"),
        "the option {option}=true",
    ),
)
UNDECLARED_POSTPONED_BUCKETS = declare_refused(
    "postponed buckets without the option bucket=-2",
    "files of a bucket below 0",
    area="rows",
    message=_refusal_text("postponed buckets without the option bucket={postponed}", "the data file {file}"),
)
MERGE_ENGINES = declare_refused(
    "unknown merge engines",
    "the option merge-engine",
    area="merging",
    message=_refusal_text("the merge engine {name}", "the option merge-engine={name}"),
)
PARTITION_KEYS = declare_refused(
    "primary keys of partition columns only",
    "the primary key has no other column",
    area="merging",
    message="The rows of version {version} cannot be read: the primary key {keys} has only partition columns, and "
    "Paimon's own engines refuse such tables too. History, schema, manifests and files are available.",
)
FIRST_ROW_BY_SEQUENCE = declare_refused(
    "first-row with sequence fields",
    "the options merge-engine and sequence.field",
    area="merging",
    message=_refusal_text("merge-engine=first-row with sequence fields", "the options merge-engine and sequence.field"),
)
ABSENT_SEQUENCE_FIELDS = declare_refused(
    "sequence fields that are not in the schema",
    "the option sequence.field, or the option of a sequence group",
    area="merging",
    message=_refusal_text("the sequence field {name!r}, which is not in the schema"),
)
NESTED_SEQUENCE_FIELDS = declare_refused(
    "sequence fields of nested types",
    "the option sequence.field, or the option of a sequence group",
    area="merging",
    message=_refusal_text("a sequence field of a nested type"),
)
REMOVE_WITH_GROUPS = declare_refused(
    "partial-update that removes records on delete, with sequence groups or ignored deletes",
    "the options partial-update.remove-record-on-delete, ignore-delete and sequence groups",
    area="merging",
    message=_refusal_text("remove-record-on-delete with sequence groups or ignored deletes", "the option {option}"),
)
REMOVE_BY_GROUP = declare_refused(
    "partial-update that removes records by sequence group, with ignored deletes",
    "the options partial-update.remove-record-on-sequence-group and ignore-delete",
    area="merging",
    message=_refusal_text("remove-record-on-sequence-group with ignored deletes", "the option {option}"),
)
FUNCTIONS_OUTSIDE_GROUPS = declare_refused(
    "partial-update with aggregate functions outside of sequence groups",
    "an option fields.*.aggregate-function",
    area="merging",
    message=_refusal_text(
        "the aggregate function {function} of the column {column!r} outside of a sequence group",
        "an option of fields.*.aggregate-function",
    ),
)
GROUP_COLUMNS = declare_refused(
    "sequence groups with a duplicate, key or missing column",
    "an option fields.*.sequence-group",
    area="merging",
    message=_refusal_text(
        "the column {column!r} in a sequence group, where it is a duplicate, a key column or missing", "{option}"
    ),
)
INVALID_REMOVE_FIELDS = declare_refused(
    "remove-record-on-sequence-group with a field that is not in a sequence group",
    "the option partial-update.remove-record-on-sequence-group",
    area="merging",
    message=_refusal_text("the sequence field {name!r}, which is not in a sequence group", "the option {option}"),
)
REMOVE_WITH_IGNORED_RETRACTS = declare_refused(
    "aggregation that removes records on delete, with ignored retracts",
    "the options aggregation.remove-record-on-delete and fields.*.ignore-retract",
    area="merging",
    message=_refusal_text("remove-record-on-delete with ignored retracts", "the option fields.{column}.ignore-retract"),
)
INVALID_COUNT_LIMITS = declare_refused(
    "nested_update with a count-limit that is not a positive number",
    "an option fields.*.count-limit",
    area="merging",
    message=_refusal_text("a limit of {limit!r} rows", "the option fields.{column}.count-limit={limit}"),
)
AGGREGATE_FUNCTIONS = declare_refused(
    "unknown aggregate functions, and those not defined for the column's type",
    "an option fields.*.aggregate-function",
    area="merging",
    message=_refusal_text(
        "the aggregate function {function} of the column {column!r} of type {type}",
        "the option fields.{column}.aggregate-function={function}",
    ),
)
BLANK_STRINGS = declare_refused(
    "listagg of blank strings",
    "a value of a column with the function listagg",
    area="merging",
    message="A column with the aggregate function listagg contains blank strings, which Paimon skips since 2.0 and "
    "older releases do not. Leave the column out, or read it with Paimon's own engines.",
)
OTHER_THETA_SKETCHES = declare_refused(
    "theta sketches that are not compact",
    "a value of a column with the function theta_sketch",
    area="merging",
    message="A column with the aggregate function theta_sketch contains bytes that begin with {bytes}, which is not a "
    "compact sketch. Leave the column out, or read it with Paimon's own engines.",
)
COLLECT_RETRACTS = declare_refused(
    "collect with retracts of nested elements or bytes",
    "a retract in a column with the function collect",
    area="merging",
    message="A column with the aggregate function collect has retracts of elements of type {type}, for which Paimon's "
    "own readers return different results or fail. Leave the column out.",
)
NULLS_AMONG_DISTINCT_ROWS = declare_refused(
    "collect of distinct rows, one of them null",
    "a value of a column with the function collect and the option distinct",
    area="merging",
    message="A column with the aggregate function collect and the option distinct contains a null row, for which "
    "Paimon fails too. Leave the column out.",
)
AMBIGUOUS_NESTED_ROWS = declare_refused(
    "nested rows for which Paimon's releases return different results",
    (
        "nulls, duplicate keys or rows above the limit in a column with the function nested_update or "
        "nested_partial_update"
    ),
    area="merging",
    message="A column with nested rows contains {what}, for which Paimon's releases return different results. Leave "
    "the column out, or read it with Paimon's own engines.",
)
OVERFLOWING_SUMS = declare_refused(
    "sums with more digits than their type",
    "the merged values of a DECIMAL column with the function sum or product",
    area="merging",
    message="The sum of a key has more digits than its type {type}, for which Paimon's engines return different "
    "results. Leave the column out, or read it with Paimon's own engines.",
)
EMPTY_BRANCH = declare_refused(
    "a branch without versions whose fallback or primary branch has some",
    "the options scan.fallback-branch and scan.primary-branch",
    area="branches",
    message="{root} has no versions on this branch, but it is combined with the branch {branch!r} ({option}), which "
    "has some. Open that branch.",
)
ABSENT_BRANCH = declare_refused(
    "a fallback or primary branch that does not exist",
    "the options scan.fallback-branch and scan.primary-branch",
    area="branches",
    message=_refusal_text("the branch {branch!r}, which does not exist", "{option}"),
)
EXPIRED_VERSION_WITH_BRANCH = declare_refused(
    "expired versions of tags, combined with a branch",
    "the version exists only as a tag",
    area="branches",
    message=_refusal_text("a branch combined with a version that has expired and exists only as a tag", "{option}"),
)
AMBIGUOUS_BRANCH_VERSION = declare_refused(
    "older versions for which the version of the other branch is ambiguous",
    "the other branch's versions are out of order, have the same time, or have expired",
    area="branches",
    message=_refusal_text("the other branch at the same time", "{option}, {reason}"),
)
OTHER_BRANCH_COLUMNS = declare_refused(
    "branches with different columns or partition keys",
    "the schemas of both branches",
    area="branches",
    message=_refusal_text("a branch with different columns{what}", "{option}"),
)
HIDDEN_BRANCH_PARTITIONS = declare_refused(
    "branches combined while all files of a partition wait for a compaction",
    "all files of a partition of the first branch are on level 0 or in postponed buckets",
    area="branches",
    message=_refusal_text("branches combined while all files of a partition wait for a compaction", "{option}"),
)
FALLBACK_BRANCH_CHANGES = declare_refused(
    "row changes of tables with a fallback branch",
    "the option scan.fallback-branch is set",
    area="changes",
    message=_refusal_text("row changes of a fallback branch", "the option {option}={value}"),
)
PRIMARY_BRANCH_CHANGES = declare_refused(
    "row changes of tables with a primary branch",
    "the option scan.primary-branch is set",
    area="changes",
    message=_refusal_text("row changes of a primary branch", "the option {option}={value}"),
)
DATA_EVOLUTION = declare_supported(
    "data evolution, also with deletion vectors, row ids",
    "the options data-evolution.enabled and row-tracking.enabled",
    area="wide rows",
)
BLOBS = declare_supported(
    'blobs, up to 256 MiB at a time, or their descriptors (`columns=["b$descriptor"]`)',
    "a column of type BLOB",
    area="wide rows",
)
BLOBS_OVER_LIMIT = declare_refused(
    "more than 256 MiB of blobs at a time",
    "the blobs of the requested rows",
    area="wide rows",
    message=Message(
        "The requested blob columns have {total:,} bytes; the limit of one read is {limit:,}. Leave them out with ",
        LEAVE_OUT,
        ", or read fewer partitions with a condition on the partition columns.",
    ),
)
EVOLUTION_WITH_KEYS = declare_refused(
    "data evolution with a primary key",
    "the option data-evolution.enabled of a table with a primary key",
    area="wide rows",
    message=_refusal_text("data evolution of a table with a primary key", "the option data-evolution.enabled=true"),
)
EVOLUTION_WITH_VECTORS = declare_refused(
    "data evolution with deletion vectors of newer files",
    "the columns of a row are in several files, and one that is not the oldest has a deletion vector",
    area="wide rows",
    message=_refusal_text(
        "a deletion vector of a file that is not the oldest one with columns of its rows", "the data file {file}"
    ),
)
PARTIAL_FILES = declare_refused(
    "files with only some columns, without data evolution",
    "the write columns of a file",
    area="wide rows",
    message=_refusal_text(
        "data evolution, where the columns of a row are in several files",
        "the data file {file} lacks the column {column!r}",
    ),
)
BLOB_DESCRIPTORS = declare_refused(
    "blobs that are stored as descriptors",
    "the option is set",
    area="wide rows",
    keyword="blob-descriptor-field",
    message=_refusal_text("blobs that are stored as descriptors", "the option {option}={value}"),
)
BLOB_VIEWS = declare_refused(
    "blobs that are views of another table",
    "the option is set",
    area="wide rows",
    keyword="blob-view-field",
    message=_refusal_text("blobs that are views of another table", "the option {option}={value}"),
)
BLOB_COLUMNS = declare_refused(
    "blobs without data evolution",
    "a column of type BLOB without the option data-evolution.enabled, or a BLOB in another type",
    area="wide rows",
    message=_refusal_text("blob columns", "the column {column!r} of type {type}"),
)
BLOB_FILES = declare_refused(
    "blob files without data evolution",
    "a blob file without row ids",
    area="wide rows",
    message=_refusal_text("blob files without data evolution", "the data file {file}"),
)
BLOBS_IN_OTHER_FILES = declare_refused(
    "blobs outside of blob files",
    "a file of another format contains a BLOB column",
    area="wide rows",
    message=_refusal_text("blobs outside of blob files", "the column {column!r} of the data file {file}"),
)
TYPES = declare_supported("all others", "the schema", area="types")
SCHEMA_EVOLUTION = declare_supported(
    "schema evolution by field id, with Paimon's casts", "the schemas of files", area="types"
)
CHARS = declare_supported(
    "CHAR as in Paimon's core: without the blanks that ORC files add (Paimon's Spark connector pads all values)",
    "a column of type CHAR",
    area="types",
)
VECTOR_COLUMNS = declare_supported(
    "vectors, as lists of a fixed length",
    "a column of type VECTOR, or a nested one, in parquet, ORC or Avro files",
    area="types",
)
LONG_VECTORS = declare_refused(
    "vectors of more than 1,048,576 items",
    "a column of type VECTOR, or a nested one",
    area="types",
    message=_refusal_text("vectors of more than 1,048,576 items", "the column {column!r} of type {type}"),
)
VECTOR_FILES = declare_refused(
    "files for vectors alone",
    "the option vector.file.format, and a data file whose name contains .vector.",
    area="wide rows",
    message=_refusal_text("files for vectors alone", "the data file {file}"),
)
SPATIAL_TYPES = declare_refused(
    "spatial columns",
    "a column of type GEOMETRY or GEOGRAPHY",
    area="types",
    message="Columns of type {type} are not supported.",
)
UNKNOWN_TYPES = declare_refused(
    "unknown types",
    "a column whose type is not one of Paimon's",
    area="types",
    message="The column type {type} is unknown.",
)
CASTS = declare_refused(
    "other casts that Paimon has",
    "the type of a column was changed, and files have the old type",
    area="types",
    message="The column {column!r} was changed from {before} to {after}; this cast of older files is not supported. "
    "History, files and versions from before the change are available.",
)
CASTS_OF_VALUES = declare_refused(
    "values whose cast is not verified",
    "a value in a file of the old type",
    area="types",
    message=Message(
        "The column {column!r} of the data file {path} cannot be read with the requested schema: {reason}. Leave "
        "the column out with ",
        LEAVE_OUT,
        ", or read a version from before its type was changed.",
    ),
)
CHANGELOGS = declare_supported(
    "changelog rows (`snapshot.changelog()`)", "the option changelog-producer", area="changes"
)
INCREMENTAL = declare_supported(
    "incremental rows in the modes auto, delta, changelog and diff", "every table", area="changes"
)
CHANGES_OF_EVOLUTION = declare_refused(
    "row changes of tables with data evolution",
    "the option data-evolution.enabled",
    area="changes",
    message=_refusal_text(
        "changes of rows whose columns are in several files", "the option data-evolution.enabled=true"
    ),
)
UPDATES_WITH_REMOVALS = declare_refused(
    "APPEND commits that remove files, as by UPDATE in Paimon 0.9",
    "DELETE entries in an APPEND commit",
    area="changes",
    message=Message(
        "Version {version} is an {kind} that removes files, as Paimon 0.9 records an UPDATE. Its files do not "
        "show which rows changed, and Paimon cannot read its changes either. Leave it out of the range, or "
        "compare both versions with ",
        _ROW_DIFF,
        ".",
    ),
)
CHANGES_OF_POSTPONED_BUCKETS = declare_refused(
    "row changes of postponed buckets",
    "the option bucket=-2",
    area="changes",
    message="Version {version} wrote to postponed buckets (bucket=-2), whose row changes are not supported.",
)
CHANGELOG_OF_LEVEL_0 = declare_refused(
    "changelogs of level 0 with deletion vectors or first-row",
    "the level of changelog files",
    area="changes",
    message="The changelog of version {version} has files of level 0, which Paimon skips in tables with deletion "
    "vectors or merge-engine=first-row. This is not supported.",
)
DIFFERENCE_OF_POSTPONED_BUCKETS = declare_refused(
    "`diff` of postponed buckets",
    "files of a bucket below 0",
    area="changes",
    message=_refusal_text("the mode diff of postponed buckets", "a bucket below 0"),
)
DIFFERENCE_OF_REMOVED_FILES = declare_refused(
    "`diff` of append tables whose files were removed",
    "a file of the first version is not in the last",
    area="changes",
    message=Message(
        "Between versions {first} and {last} the file {path} was removed by a compaction, an overwrite or a "
        "delete, and the table has no primary key to match rows by. Use ",
        _DELTA,
        ".",
    ),
)
DIFFERENCE_OF_BUCKET_COUNTS = declare_refused(
    "`diff` of partitions whose number of buckets changed",
    "the bucket counts of both versions",
    area="changes",
    message=Message(
        "The number of buckets of a partition changed from {before} to {after} between the versions, so their "
        "keys cannot be matched. Compare both versions with ",
        _ROW_DIFF,
        ".",
    ),
)
DIFFERENCE_OF_OLDER_ROWS = declare_refused(
    "`diff` of keys whose later row has a lower sequence number",
    "sequence numbers and sequence fields of both versions",
    area="changes",
    message=Message(
        "Rows changed between the versions whose later row does not have the greater sequence number (in {path} or"
        " another file of its bucket), as after an overwrite. Whether Paimon returns these rows as changed is "
        "undefined. Use ",
        _DELTA,
        ", or compare both versions with ",
        _ROW_DIFF,
        ".",
    ),
)
COLUMNS_OF_TWO_BRANCHES = declare_refused(
    "differences between versions of two branches that each added columns under one field id",
    "the schemas of both branches",
    area="changes",
    message="The versions cannot be compared: the columns {column!r} and {other!r} were added on different branches, "
    "and both have the field id {id}. Load both versions and compare them by name.",
)
AUDIT_COLUMN_CONFLICT = declare_refused(
    "`audit_log` and `binlog` of a table with a column `rowkind`",
    "the schema",
    area="changes",
    message=Message(
        "The table has its own column {column!r}, which is also the column of {table} for the kind of an event, "
        "so {table} is not supported. ",
        Hint("snapshot.to_arrow"),
        " returns the rows.",
    ),
)
AUDIT_SEQUENCE_NUMBERS = declare_refused(
    "`audit_log` with sequence numbers of a table without a primary key",
    "the option table-read.sequence-number.enabled",
    area="changes",
    message=Message(
        "The option {option} adds sequence numbers to {table}, which rows without a primary key do not have, so "
        "{table} is not supported. ",
        Hint("snapshot.to_arrow"),
        " returns the rows.",
    ),
)
FILE_FORMATS = declare_supported("parquet, ORC, Avro", "the extension of data files", area="data files")
OTHER_FILE_FORMATS = declare_refused(
    "row, csv, json, lance, vortex, mosaic, ...",
    "the extension of data files",
    area="data files",
    message=_refusal_text("files of the format {format}", "the data file {file}"),
)
STORAGES = declare_supported(
    "local disk, and all file systems of fsspec; tested on an S3 API (`pip install s3fs`)",
    "the location",
    area="storages",
)
EXPIRY = declare_supported("the files that expiring versions would delete", "every table", area="retention")
FEATURES = (*features_in(globals()), *ROW_CHANGES, *SHREDDING, *AVRO, *SHARED)
