"""The features of Paimon tables: those that are read, and those that are refused by name."""

from functools import partial

from snapshot_explorer.formats.features import AVRO, SHARED, declared, read, refused


def _needed(need: str, where: str = "{where}") -> str:
    return (
        f"The rows of version {{version}} need {need} ({where}), which is not supported yet. History, schema, "
        "manifests and files are available; read the rows with Paimon's own engines."
    )


_refused_versions = partial(refused, area="versions")
_refused_metadata = partial(refused, area="metadata")
_refused_rows = partial(refused, area="rows")
_refused_merging = partial(refused, area="merging")
_refused_branches = partial(refused, area="branches")
_refused_changes = partial(refused, area="changes")
_refused_wide_rows = partial(refused, area="wide rows")
_refused_types = partial(refused, area="types")

FORMAT_VERSIONS = read(
    "tables of Paimon 0.3 and newer; tested with tables from 0.7, 0.8, 0.9 and 1.4",
    "the version in each snapshot",
    area="versions",
)
OTHER_SNAPSHOT_FORMATS = _refused_versions(
    "snapshots from before Paimon 0.3, or in a newer format",
    "the version in a snapshot",
    message="{path} has format version {version}; versions {oldest} and {newest}, of Paimon 0.3 and newer, are "
    "supported.",
)
OTHER_MANIFEST_FORMATS = _refused_versions(
    "manifest versions other than 2",
    "_VERSION in the rows of a manifest or manifest list",
    message="A {what} of the table has version {version}; version {newest}, of Paimon 0.3 and newer, is supported.",
)
OTHER_FILE_INDEXES = _refused_versions(
    "file index versions other than 1, in the system table file_indexes",
    "the header of a file index",
    message="The file index {path} has version {version}; version {newest} is supported. The other system tables do "
    "not need it.",
)
TABLE_TYPES = _refused_versions(
    "table types other than `table` and `materialized-table`",
    "the option type",
    message="{root} is a {type}, which is not supported. Supported types: table, materialized-table.",
)
METADATA = read(
    "all metadata: snapshots, hints, tags, branches, long-lived changelogs, schemas, manifests in Avro, ORC and "
    "parquet, statistics",
    "every table",
    area="metadata",
)
ENTRY_KINDS = _refused_metadata(
    "manifests with entries that are neither ADD nor DELETE",
    "_KIND in the rows of a manifest",
    message="A manifest among {path} has an entry that is neither ADD nor DELETE, which is not supported.",
)
REMOVED_INDEXES = _refused_metadata(
    "index manifests with DELETE entries",
    "_KIND in the rows of an index manifest",
    message="{path} has a DELETE entry, which is not supported in an index manifest.",
)
TIMESTAMPS_OUT_OF_RANGE = _refused_metadata(
    "timestamps outside the range of 64 bits, in partitions and keys",
    "a value in a manifest",
    message="A {type}({precision}) in a partition or key is outside the range of 64 bits of {unit}seconds, which is "
    "not supported.",
)
BINARY_PARTITION_FOLDERS = _refused_metadata(
    "folders of binary or nested partition values",
    "a partition column is BINARY, VARBINARY or nested, and its folder names are needed",
    message="Folder names of partitions by a {type} column are not supported.",
)
TABLE_KINDS = read(
    "append tables and primary-key tables of every merge engine: deduplicate, partial-update, aggregation "
    "(`hll_sketch` and `theta_sketch` with `pip install datasketches`), first-row; sequence fields and groups",
    "the option merge-engine and primary keys",
    area="rows",
)
DELETION_VECTORS = read("deletion vectors", "the option deletion-vectors.enabled", area="rows")
BUCKETS = read("all bucket modes", "the option bucket", area="rows")
COMBINED_BRANCHES = read(
    "fallback and primary branches", "the options scan.fallback-branch and scan.primary-branch", area="rows"
)
CHAIN_TABLES = _refused_rows(
    "a chain table",
    "the option is true",
    keyword="chain-table.enabled",
    message=_needed("a chain table", "the option {option}={value}"),
)
POSTPONE_MERGE_ON_READ = _refused_rows(
    "merge-on-read of postponed buckets",
    "the option is true",
    keyword="postpone.merge-on-read",
    message=_needed("merge-on-read of postponed buckets", "the option {option}={value}"),
)
CLUSTERING_OVERRIDE = _refused_rows(
    "files that are clustered by columns other than the key",
    "the option is true",
    keyword="pk-clustering-override",
    message=_needed("files that are clustered by columns other than the key", "the option {option}={value}"),
)
SNAPSHOT_ORDERING = _refused_rows(
    "rows ordered by snapshot",
    "the option is true",
    keyword="sequence.snapshot-ordering",
    message=_needed("rows ordered by snapshot", "the option {option}={value}"),
)
MAP_LAYOUTS = _refused_rows(
    "other storage layouts of maps",
    "an option fields.*.map.storage-layout",
    message=_needed("other storage layouts of maps", "the option {option}={value}"),
)
LARGE_DELETION_VECTORS = _refused_rows(
    "deletion vectors of files with more than 2,147,483,648 rows",
    "the row count of a data file with a deletion vector",
    message="A deletion vector in {path} is for a file with {rows} rows; the limit is {most}.",
)
DISABLED_VECTORS = _refused_rows(
    "deletion vectors of a table whose newest options disable them",
    "an append table has deletion vectors, but deletion-vectors.enabled is off",
    message=_needed("deletion vectors of a table whose newest options disable them"),
)
VERSIONS_BEFORE_VECTORS = _refused_rows(
    "versions that need a merge, from before deletion vectors were enabled",
    "a version from before deletion-vectors.enabled has files on several levels, or on level 0",
    message=_needed(
        "a merge, which Paimon no longer does since deletion vectors were enabled",
        "the option {option}=true",
    ),
)
UNDECLARED_POSTPONED_BUCKETS = _refused_rows(
    "postponed buckets without the option bucket=-2",
    "files of a bucket below 0",
    message=_needed("postponed buckets without the option bucket={postponed}", "the data file {file}"),
)
MERGE_ENGINES = _refused_merging(
    "unknown merge engines",
    "the option merge-engine",
    message=_needed("the merge engine {name}", "the option merge-engine={name}"),
)
FIRST_ROW_BY_SEQUENCE = _refused_merging(
    "first-row with sequence fields",
    "the options merge-engine and sequence.field",
    message=_needed("merge-engine=first-row with sequence fields", "the options merge-engine and sequence.field"),
)
ABSENT_SEQUENCE_FIELDS = _refused_merging(
    "sequence fields that are not in the schema",
    "the option sequence.field, or the option of a sequence group",
    message=_needed("the sequence field {name!r}, which is not in the schema"),
)
NESTED_SEQUENCE_FIELDS = _refused_merging(
    "sequence fields of nested types",
    "the option sequence.field, or the option of a sequence group",
    message=_needed("a sequence field of a nested type"),
)
REMOVE_WITH_GROUPS = _refused_merging(
    "partial-update that removes records on delete, with sequence groups or ignored deletes",
    "the options partial-update.remove-record-on-delete, ignore-delete and sequence groups",
    message=_needed("remove-record-on-delete with sequence groups or ignored deletes", "the option {option}"),
)
REMOVE_BY_GROUP = _refused_merging(
    "partial-update that removes records by sequence group, with ignored deletes",
    "the options partial-update.remove-record-on-sequence-group and ignore-delete",
    message=_needed("remove-record-on-sequence-group with ignored deletes", "the option {option}"),
)
FUNCTIONS_OUTSIDE_GROUPS = _refused_merging(
    "partial-update with aggregate functions outside of sequence groups",
    "an option fields.*.aggregate-function",
    message=_needed(
        "the aggregate function {function} of the column {column!r} outside of a sequence group",
        "an option of fields.*.aggregate-function",
    ),
)
GROUP_COLUMNS = _refused_merging(
    "sequence groups with a duplicate, key or missing column",
    "an option fields.*.sequence-group",
    message=_needed(
        "the column {column!r} in a sequence group, where it is a duplicate, a key column or missing", "{option}"
    ),
)
INVALID_REMOVE_FIELDS = _refused_merging(
    "remove-record-on-sequence-group with a field that is not in a sequence group",
    "the option partial-update.remove-record-on-sequence-group",
    message=_needed("the sequence field {name!r}, which is not in a sequence group", "the option {option}"),
)
REMOVE_WITH_IGNORED_RETRACTS = _refused_merging(
    "aggregation that removes records on delete, with ignored retracts",
    "the options aggregation.remove-record-on-delete and fields.*.ignore-retract",
    message=_needed("remove-record-on-delete with ignored retracts", "the option fields.{column}.ignore-retract"),
)
INVALID_COUNT_LIMITS = _refused_merging(
    "nested_update with a count-limit that is not a positive number",
    "an option fields.*.count-limit",
    message=_needed("a limit of {limit!r} rows", "the option fields.{column}.count-limit={limit}"),
)
AGGREGATE_FUNCTIONS = _refused_merging(
    "unknown aggregate functions, and those not defined for the column's type",
    "an option fields.*.aggregate-function",
    message=_needed(
        "the aggregate function {function} of the column {column!r} of type {type}",
        "the option fields.{column}.aggregate-function={function}",
    ),
)
BLANK_STRINGS = _refused_merging(
    "listagg of blank strings",
    "a value of a column with the function listagg",
    message="A column with the aggregate function listagg contains blank strings, which Paimon skips since 2.0 and "
    "older releases do not. Leave the column out, or read it with Paimon's own engines.",
)
OTHER_THETA_SKETCHES = _refused_merging(
    "theta sketches that are not compact",
    "a value of a column with the function theta_sketch",
    message="A column with the aggregate function theta_sketch contains bytes that begin with {bytes}, which is not a "
    "compact sketch. Leave the column out, or read it with Paimon's own engines.",
)
COLLECT_RETRACTS = _refused_merging(
    "collect with retracts of nested elements or bytes",
    "a retract in a column with the function collect",
    message="A column with the aggregate function collect has retracts of elements of type {type}, for which Paimon's "
    "own readers return different results or fail. Leave the column out.",
)
NULLS_AMONG_DISTINCT_ROWS = _refused_merging(
    "collect of distinct rows, one of them null",
    "a value of a column with the function collect and the option distinct",
    message="A column with the aggregate function collect and the option distinct contains a null row, for which "
    "Paimon fails too. Leave the column out.",
)
AMBIGUOUS_NESTED_ROWS = _refused_merging(
    "nested rows for which Paimon's releases return different results",
    "nulls, duplicate keys or rows above the limit in a column with the function nested_update or "
    "nested_partial_update",
    message="A column with nested rows contains {what}, for which Paimon's releases return different results. Leave "
    "the column out, or read it with Paimon's own engines.",
)
OVERFLOWING_SUMS = _refused_merging(
    "sums with more digits than their type",
    "the merged values of a DECIMAL column with the function sum or product",
    message="The sum of a key has more digits than its type {type}, for which Paimon's engines return different "
    "results. Leave the column out, or read it with Paimon's own engines.",
)
EMPTY_BRANCH = _refused_branches(
    "a branch without versions whose fallback or primary branch has some",
    "the options scan.fallback-branch and scan.primary-branch",
    message="{root} has no versions on this branch, but it is combined with the branch {branch!r} ({option}), which "
    "has some. Open that branch.",
)
ABSENT_BRANCH = _refused_branches(
    "a fallback or primary branch that does not exist",
    "the options scan.fallback-branch and scan.primary-branch",
    message=_needed("the branch {branch!r}, which does not exist", "{option}"),
)
EXPIRED_VERSION_WITH_BRANCH = _refused_branches(
    "expired versions of tags, combined with a branch",
    "the version exists only as a tag",
    message=_needed("a branch combined with a version that has expired and exists only as a tag", "{option}"),
)
AMBIGUOUS_BRANCH_VERSION = _refused_branches(
    "older versions for which the version of the other branch is ambiguous",
    "the other branch's versions are out of order, have the same time, or have expired",
    message=_needed("the other branch at the same time", "{option}, {reason}"),
)
OTHER_BRANCH_COLUMNS = _refused_branches(
    "branches with different columns or partition keys",
    "the schemas of both branches",
    message=_needed("a branch with different columns{what}", "{option}"),
)
HIDDEN_BRANCH_PARTITIONS = _refused_branches(
    "branches combined while all files of a partition wait for a compaction",
    "all files of a partition of the first branch are on level 0 or in postponed buckets",
    message=_needed("branches combined while all files of a partition wait for a compaction", "{option}"),
)
FALLBACK_BRANCH_CHANGES = _refused_changes(
    "row changes of tables with a fallback branch",
    "the option scan.fallback-branch is set",
    message=_needed("row changes of a fallback branch", "the option {option}={value}"),
)
PRIMARY_BRANCH_CHANGES = _refused_changes(
    "row changes of tables with a primary branch",
    "the option scan.primary-branch is set",
    message=_needed("row changes of a primary branch", "the option {option}={value}"),
)
DATA_EVOLUTION = read(
    "data evolution, also with deletion vectors, row ids",
    "the options data-evolution.enabled and row-tracking.enabled",
    area="wide rows",
)
BLOBS = read(
    'blobs, up to 256 MiB at a time, or their descriptors (`columns=["b$descriptor"]`)',
    "a column of type BLOB",
    area="wide rows",
)
BLOBS_OVER_LIMIT = _refused_wide_rows(
    "more than 256 MiB of blobs at a time",
    "the blobs of the requested rows",
    message="The requested blob columns have {total:,} bytes; the limit of one read is {most:,}. Leave them out with "
    "columns=[...], or read fewer partitions with a condition on the partition columns.",
)
EVOLUTION_WITH_KEYS = _refused_wide_rows(
    "data evolution with a primary key",
    "the option data-evolution.enabled of a table with a primary key",
    message=_needed("data evolution of a table with a primary key", "the option data-evolution.enabled=true"),
)
EVOLUTION_WITH_VECTORS = _refused_wide_rows(
    "data evolution with deletion vectors of newer files",
    "the columns of a row are in several files, and one that is not the oldest has a deletion vector",
    message=_needed(
        "a deletion vector of a file that is not the oldest one with columns of its rows", "the data file {file}"
    ),
)
PARTIAL_FILES = _refused_wide_rows(
    "files with only some columns, without data evolution",
    "the write columns of a file",
    message=_needed(
        "data evolution, where the columns of a row are in several files",
        "the data file {file} lacks the column {column!r}",
    ),
)
BLOB_DESCRIPTORS = _refused_wide_rows(
    "blobs that are stored as descriptors",
    "the option is set",
    keyword="blob-descriptor-field",
    message=_needed("blobs that are stored as descriptors", "the option {option}={value}"),
)
BLOB_VIEWS = _refused_wide_rows(
    "blobs that are views of another table",
    "the option is set",
    keyword="blob-view-field",
    message=_needed("blobs that are views of another table", "the option {option}={value}"),
)
BLOB_COLUMNS = _refused_wide_rows(
    "blobs without data evolution",
    "a column of type BLOB without the option data-evolution.enabled, or a BLOB in another type",
    message=_needed("blob columns", "the column {column!r} of type {type}"),
)
BLOB_FILES = _refused_wide_rows(
    "blob files without data evolution",
    "a blob file without row ids",
    message=_needed("blob files without data evolution", "the data file {file}"),
)
BLOBS_IN_OTHER_FILES = _refused_wide_rows(
    "blobs outside of blob files",
    "a file of another format contains a BLOB column",
    message=_needed("blobs outside of blob files", "the column {column!r} of the data file {file}"),
)
TYPES = read("all others", "the schema", area="types")
SCHEMA_EVOLUTION = read("schema evolution by field id, with Paimon's casts", "the schemas of files", area="types")
CHARS = read(
    "CHAR as in Paimon's core: without the blanks that ORC files add (Paimon's Spark connector pads all values)",
    "a column of type CHAR",
    area="types",
)
VECTOR_COLUMNS = _refused_types(
    "vectors",
    "a column of type VECTOR, or a nested one",
    keyword="VECTOR",
    message=_needed("vector columns", "the column {column!r} of type {type}"),
)
SPATIAL_TYPES = _refused_types(
    "spatial columns", "a column of type GEOMETRY or GEOGRAPHY", message="Columns of type {type} are not supported."
)
UNKNOWN_TYPES = _refused_types(
    "unknown types", "a column whose type is not one of Paimon's", message="The column type {type} is unknown."
)
SHREDDED_VARIANTS = _refused_types(
    "variants shredded into types that variants do not have",
    "the type of a typed_value in a parquet file",
    message="its variants are shredded into {found}, a type that variants do not have",
)
CASTS = _refused_types(
    "other casts that Paimon has",
    "the type of a column was changed, and files have the old type",
    message="The column {column!r} was changed from {before} to {after}; this cast of older files is not supported. "
    "History, files and versions from before the change are available.",
)
CASTS_OF_VALUES = _refused_types(
    "values whose cast is not verified",
    "a value in a file of the old type",
    message="The column {column!r} of the data file {path} cannot be read with the requested schema: {reason}. Leave "
    "the column out with columns=[...], or read a version from before its type was changed.",
)
CHANGELOGS = read("changelog rows (`snapshot.changelog()`)", "the option changelog-producer", area="changes")
INCREMENTAL = read("incremental rows in the modes auto, delta, changelog and diff", "every table", area="changes")
CHANGES_OF_EVOLUTION = _refused_changes(
    "row changes of tables with data evolution",
    "the option data-evolution.enabled",
    message=_needed("changes of rows whose columns are in several files", "the option data-evolution.enabled=true"),
)
CHANGE_COLUMN_CONFLICT = _refused_changes(
    "row changes of a table with a column `rowkind`",
    "the schema",
    message="The table has its own column {column!r}, which is also the column for the kind of a change, so its row "
    "changes are not supported. file_changes() returns the changed files.",
)
UPDATES_WITH_REMOVALS = _refused_changes(
    "APPEND commits that remove files, as by UPDATE in Paimon 0.9",
    "DELETE entries in an APPEND commit",
    message="Version {version} is an {kind} that removes files, as Paimon 0.9 records an UPDATE. Its files do not "
    "show which rows changed, and Paimon cannot read its changes either. Leave it out of the range, or compare "
    "to_arrow() of both versions.",
)
CHANGES_OF_POSTPONED_BUCKETS = _refused_changes(
    "row changes of postponed buckets",
    "the option bucket=-2",
    message="Version {version} wrote to postponed buckets (bucket=-2), whose row changes are not supported.",
)
CHANGELOG_OF_LEVEL_0 = _refused_changes(
    "changelogs of level 0 with deletion vectors or first-row",
    "the level of changelog files",
    message="The changelog of version {version} has files of level 0, which Paimon skips in tables with deletion "
    "vectors or merge-engine=first-row. This is not supported.",
)
DIFFERENCE_OF_POSTPONED_BUCKETS = _refused_changes(
    "`diff` of postponed buckets",
    "files of a bucket below 0",
    message=_needed("mode='diff' of postponed buckets", "a bucket below 0"),
)
DIFFERENCE_OF_REMOVED_FILES = _refused_changes(
    "`diff` of append tables whose files were removed",
    "a file of the first version is not in the last",
    message="Between versions {first} and {last} the file {path} was removed by a compaction, an overwrite or a "
    "delete, and the table has no primary key to match rows by. Use mode='delta'.",
)
DIFFERENCE_OF_BUCKET_COUNTS = _refused_changes(
    "`diff` of partitions whose number of buckets changed",
    "the bucket counts of both versions",
    message="The number of buckets of a partition changed from {before} to {after} between the versions, so their "
    "keys cannot be matched. Compare to_arrow() of both versions.",
)
DIFFERENCE_OF_OLDER_ROWS = _refused_changes(
    "`diff` of keys whose later row has a lower sequence number",
    "sequence numbers and sequence fields of both versions",
    message="Rows changed between the versions whose later row does not have the greater sequence number (in {path} "
    "or another file of its bucket), as after an overwrite. Whether Paimon returns these rows as changed is "
    "undefined. Use mode='delta', or compare to_arrow() of both versions.",
)
COLUMNS_OF_TWO_BRANCHES = _refused_changes(
    "differences between versions of two branches that each added columns under one field id",
    "the schemas of both branches",
    message="The versions cannot be compared: the columns {column!r} and {other!r} were added on different branches, "
    "and both have the field id {id}. Load both versions and compare them by name.",
)
AUDIT_COLUMN_CONFLICT = _refused_changes(
    "`audit_log` and `binlog` of a table with a column `rowkind`",
    "the schema",
    message="The table has its own column {column!r}, which is also the column of {table} for the kind of an event, "
    "so {table} is not supported. to_arrow() returns the rows.",
)
AUDIT_SEQUENCE_NUMBERS = _refused_changes(
    "`audit_log` with sequence numbers of a table without a primary key",
    "the option table-read.sequence-number.enabled",
    message="The option {option} adds sequence numbers to {table}, which rows without a primary key do not have, so "
    "{table} is not supported. to_arrow() returns the rows.",
)
FILE_FORMATS = read("parquet, ORC, Avro", "the extension of data files", area="data files")
OTHER_FILE_FORMATS = refused(
    "csv, json, lance, vortex, ...",
    "the extension of data files",
    area="data files",
    message=_needed("files of the format {format}", "the data file {file}"),
)
STORAGES = read(
    "local disk, and all file systems of fsspec; tested on an S3 API (`pip install s3fs`)",
    "the location",
    area="storages",
)
EXPIRY = read("the files that expiring versions would delete", "every table", area="retention")
EXPIRY_OVER_GAPS = refused(
    "expiry of a range in which a snapshot is missing",
    "the listing of snapshots",
    area="retention",
    message="What expiring versions {first} to {last} would delete is unknown: snapshot {missing} is missing, and "
    "Paimon's expiry stops at a gap. Repair the table, or keep more versions.",
)
FEATURES = (*declared(globals()), *AVRO, *SHARED)
