"""The features of Paimon tables: those that are read, and those that are refused by name."""

from functools import partial

from snapshot_explorer.formats.features import AVRO, SHARED, Feature

_read = partial(Feature, status="read", since="0.1.0")
_refused = partial(Feature, status="refused", since="0.1.0")


def _needed(need: str, where: str = "{where}") -> str:
    """Return the message for rows that need an unsupported feature, which was found at `where`."""
    return (
        f"The rows of version {{version}} need {need} ({where}), which is not supported yet. History, schema, "
        "manifests and files are available; read the rows with Paimon's own engines."
    )


FORMAT_VERSIONS = _read(
    name="tables of Paimon 0.3 and newer; tested with tables from 0.7, 0.8, 0.9 and 1.4",
    area="versions",
    condition="the version in each snapshot",
    checked=("paimon.metadata.contents._check_readable",),
)
OTHER_SNAPSHOT_FORMATS = _refused(
    name="snapshots from before Paimon 0.3, or in a newer format",
    area="versions",
    condition="the version in a snapshot",
    checked=("paimon.metadata.contents._check_readable",),
    message=(
        "{path} has format version {version}; versions {oldest} and {newest}, of Paimon 0.3 and newer, are supported."
    ),
)
OTHER_MANIFEST_FORMATS = _refused(
    name="manifest versions other than 2",
    area="versions",
    condition="_VERSION in the rows of a manifest or manifest list",
    checked=("paimon.metadata.manifests._check_version",),
    message=("A {what} of the table has version {version}; version {newest}, of Paimon 0.3 and newer, is supported."),
)
OTHER_FILE_INDEXES = _refused(
    name="file index versions other than 1, in the system table file_indexes",
    area="versions",
    condition="the header of a file index",
    checked=("paimon.system_tables.file_indexes._head",),
    message=(
        "The file index {path} has version {version}; version {newest} is supported. The other system tables do "
        "not need it."
    ),
)
TABLE_TYPES = _refused(
    name="table types other than `table` and `materialized-table`",
    area="versions",
    condition="the option type",
    checked=("paimon.metadata.schema.Schemas._with_number",),
    message=("{root} is a {type}, which is not supported. Supported types: table, materialized-table."),
)
METADATA = _read(
    name=(
        "all metadata: snapshots, hints, tags, branches, long-lived changelogs, schemas, manifests in Avro, ORC "
        "and parquet, statistics"
    ),
    area="metadata",
    condition="every table",
    checked=("paimon.metadata",),
)
ENTRY_KINDS = _refused(
    name="manifests with entries that are neither ADD nor DELETE",
    area="metadata",
    condition="_KIND in the rows of a manifest",
    checked=("paimon.metadata.manifests._entries",),
    message=("A manifest among {path} has an entry that is neither ADD nor DELETE, which is not supported."),
)
REMOVED_INDEXES = _refused(
    name="index manifests with DELETE entries",
    area="metadata",
    condition="_KIND in the rows of an index manifest",
    checked=("paimon.metadata.manifests.read_indexes",),
    message="{path} has a DELETE entry, which is not supported in an index manifest.",
)
TIMESTAMPS_OUT_OF_RANGE = _refused(
    name="timestamps outside the range of 64 bits, in partitions and keys",
    area="metadata",
    condition="a value in a manifest",
    checked=("paimon.metadata.binary_row._timestamps",),
    message=(
        "A {type}({precision}) in a partition or key is outside the range of 64 bits of {unit}seconds, which is "
        "not supported."
    ),
)
BINARY_PARTITION_FOLDERS = _refused(
    name="folders of binary or nested partition values",
    area="metadata",
    condition="a partition column is BINARY, VARBINARY or nested, and its folder names are needed",
    checked=("paimon.metadata.partitions._refused",),
    message="Folder names of partitions by a {type} column are not supported.",
)
TABLE_KINDS = _read(
    name=(
        "append tables and primary-key tables of every merge engine: deduplicate, partial-update, aggregation"
        " (`hll_sketch` and `theta_sketch` with `pip install datasketches`), first-row; sequence fields and "
        "groups"
    ),
    area="rows",
    condition="the option merge-engine and primary keys",
    checked=("paimon.merge.rules",),
)
DELETION_VECTORS = _read(
    name="deletion vectors",
    area="rows",
    condition="the option deletion-vectors.enabled",
    checked=("paimon.files.deletion_vectors",),
)
BUCKETS = _read(
    name="all bucket modes",
    area="rows",
    condition="the option bucket",
    checked=("paimon.scan.visibility",),
)
COMBINED_BRANCHES = _read(
    name="fallback and primary branches",
    area="rows",
    condition="the options scan.fallback-branch and scan.primary-branch",
    checked=("paimon.fallback",),
)
CHAIN_TABLES = _refused(
    keyword="chain-table.enabled",
    name="a chain table",
    area="rows",
    condition="the option is true",
    checked=("paimon.readable.check_table",),
    message=_needed("a chain table", "the option {option}={value}"),
)
POSTPONE_MERGE_ON_READ = _refused(
    keyword="postpone.merge-on-read",
    name="merge-on-read of postponed buckets",
    area="rows",
    condition="the option is true",
    checked=("paimon.readable.check_table",),
    message=_needed("merge-on-read of postponed buckets", "the option {option}={value}"),
)
CLUSTERING_OVERRIDE = _refused(
    keyword="pk-clustering-override",
    name="files that are clustered by columns other than the key",
    area="rows",
    condition="the option is true",
    checked=("paimon.readable.check_table",),
    message=_needed("files that are clustered by columns other than the key", "the option {option}={value}"),
)
SNAPSHOT_ORDERING = _refused(
    keyword="sequence.snapshot-ordering",
    name="rows ordered by snapshot",
    area="rows",
    condition="the option is true",
    checked=("paimon.readable.check_table",),
    message=_needed("rows ordered by snapshot", "the option {option}={value}"),
)
MAP_LAYOUTS = _refused(
    name="other storage layouts of maps",
    area="rows",
    condition="an option fields.*.map.storage-layout",
    checked=("paimon.readable.check_table",),
    message=_needed("other storage layouts of maps", "the option {option}={value}"),
)
LARGE_DELETION_VECTORS = _refused(
    name="deletion vectors of files with more than 2,147,483,648 rows",
    area="rows",
    condition="the row count of a data file with a deletion vector",
    checked=("paimon.files.deletion_vectors.positions",),
    message="A deletion vector in {path} is for a file with {rows} rows; the limit is {most}.",
)
DISABLED_VECTORS = _refused(
    name="deletion vectors of a table whose newest options disable them",
    area="rows",
    condition="an append table has deletion vectors, but deletion-vectors.enabled is off",
    checked=("paimon.scan.visibility.applied_vectors",),
    message=_needed("deletion vectors of a table whose newest options disable them"),
)
VERSIONS_BEFORE_VECTORS = _refused(
    name="versions that need a merge, from before deletion vectors were enabled",
    area="rows",
    condition="a version from before deletion-vectors.enabled has files on several levels, or on level 0",
    checked=("paimon.scan.visibility._check_switched",),
    message=_needed(
        ("a merge, which Paimon no longer does since deletion vectors were enabled"),
        "the option {option}=true",
    ),
)
UNDECLARED_POSTPONED_BUCKETS = _refused(
    name="postponed buckets without the option bucket=-2",
    area="rows",
    condition="files of a bucket below 0",
    checked=("paimon.scan.visibility.visible",),
    message=_needed("postponed buckets without the option bucket={postponed}", "the data file {file}"),
)
MERGE_ENGINES = _refused(
    name="unknown merge engines",
    area="merging",
    condition="the option merge-engine",
    checked=("paimon.merge.rules._engine",),
    message=_needed("the merge engine {name}", "the option merge-engine={name}"),
)
FIRST_ROW_BY_SEQUENCE = _refused(
    name="first-row with sequence fields",
    area="merging",
    condition="the options merge-engine and sequence.field",
    checked=("paimon.merge.rules._engine",),
    message=_needed("merge-engine=first-row with sequence fields", "the options merge-engine and sequence.field"),
)
ABSENT_SEQUENCE_FIELDS = _refused(
    name="sequence fields that are not in the schema",
    area="merging",
    condition="the option sequence.field, or the option of a sequence group",
    checked=("paimon.merge.rules._check_order",),
    message=_needed("the sequence field {name!r}, which is not in the schema"),
)
NESTED_SEQUENCE_FIELDS = _refused(
    name="sequence fields of nested types",
    area="merging",
    condition="the option sequence.field, or the option of a sequence group",
    checked=("paimon.merge.rules._check_order",),
    message=_needed("a sequence field of a nested type"),
)
REMOVE_WITH_GROUPS = _refused(
    name="partial-update that removes records on delete, with sequence groups or ignored deletes",
    area="merging",
    condition="the options partial-update.remove-record-on-delete, ignore-delete and sequence groups",
    checked=("paimon.merge.rules._partial_update",),
    message=_needed("remove-record-on-delete with sequence groups or ignored deletes", "the option {option}"),
)
REMOVE_BY_GROUP = _refused(
    name="partial-update that removes records by sequence group, with ignored deletes",
    area="merging",
    condition="the options partial-update.remove-record-on-sequence-group and ignore-delete",
    checked=("paimon.merge.rules._partial_update",),
    message=_needed("remove-record-on-sequence-group with ignored deletes", "the option {option}"),
)
FUNCTIONS_OUTSIDE_GROUPS = _refused(
    name="partial-update with aggregate functions outside of sequence groups",
    area="merging",
    condition="an option fields.*.aggregate-function",
    checked=("paimon.merge.rules._partial_update",),
    message=_needed(
        "the aggregate function {function} of the column {column!r} outside of a sequence group",
        "an option of fields.*.aggregate-function",
    ),
)
GROUP_COLUMNS = _refused(
    name="sequence groups with a duplicate, key or missing column",
    area="merging",
    condition="an option fields.*.sequence-group",
    checked=("paimon.merge.rules._groups",),
    message=_needed(
        "the column {column!r} in a sequence group, where it is a duplicate, a key column or missing", "{option}"
    ),
)
INVALID_REMOVE_FIELDS = _refused(
    name="remove-record-on-sequence-group with a field that is not in a sequence group",
    area="merging",
    condition="the option partial-update.remove-record-on-sequence-group",
    checked=("paimon.merge.rules._groups",),
    message=_needed("the sequence field {name!r}, which is not in a sequence group", "the option {option}"),
)
REMOVE_WITH_IGNORED_RETRACTS = _refused(
    name="aggregation that removes records on delete, with ignored retracts",
    area="merging",
    condition="the options aggregation.remove-record-on-delete and fields.*.ignore-retract",
    checked=("paimon.merge.rules._aggregation",),
    message=_needed("remove-record-on-delete with ignored retracts", "the option fields.{column}.ignore-retract"),
)
INVALID_COUNT_LIMITS = _refused(
    name="nested_update with a count-limit that is not a positive number",
    area="merging",
    condition="an option fields.*.count-limit",
    checked=("paimon.merge.rules._limit",),
    message=_needed("a limit of {limit!r} rows", "the option fields.{column}.count-limit={limit}"),
)
AGGREGATE_FUNCTIONS = _refused(
    name="unknown aggregate functions, and those not defined for the column's type",
    area="merging",
    condition="an option fields.*.aggregate-function",
    checked=("paimon.merge.rules.check_function",),
    message=_needed(
        "the aggregate function {function} of the column {column!r} of type {type}",
        "the option fields.{column}.aggregate-function={function}",
    ),
)
BLANK_STRINGS = _refused(
    name="listagg of blank strings",
    area="merging",
    condition="a value of a column with the function listagg",
    checked=("paimon.merge.aggregates.texts.result",),
    message=(
        "A column with the aggregate function listagg contains blank strings, which Paimon skips since 2.0 and "
        "older releases do not. Leave the column out, or read it with Paimon's own engines."
    ),
)
OTHER_THETA_SKETCHES = _refused(
    name="theta sketches that are not compact",
    area="merging",
    condition="a value of a column with the function theta_sketch",
    checked=("paimon.merge.binary_aggregates.theta_sketch.union",),
    message=(
        "A column with the aggregate function theta_sketch contains bytes that begin with {bytes}, which is not a "
        "compact sketch. Leave the column out, or read it with Paimon's own engines."
    ),
)
COLLECT_RETRACTS = _refused(
    name="collect with retracts of nested elements or bytes",
    area="merging",
    condition="a retract in a column with the function collect",
    checked=("paimon.merge.nested_aggregates.collect.retract",),
    message=(
        "A column with the aggregate function collect has retracts of elements of type {type}, for which Paimon's "
        "own readers return different results or fail. Leave the column out."
    ),
)
NULLS_AMONG_DISTINCT_ROWS = _refused(
    name="collect of distinct rows, one of them null",
    area="merging",
    condition="a value of a column with the function collect and the option distinct",
    checked=("paimon.merge.nested_aggregates._distinct.add",),
    message=(
        "A column with the aggregate function collect and the option distinct contains a null row, for which "
        "Paimon fails too. Leave the column out."
    ),
)
AMBIGUOUS_NESTED_ROWS = _refused(
    name="nested rows for which Paimon's releases return different results",
    area="merging",
    condition=(
        "nulls, duplicate keys or rows above the limit in a column with the function nested_update or "
        "nested_partial_update"
    ),
    checked=("paimon.merge.nested_aggregates._differing",),
    message=(
        "A column with nested rows contains {what}, for which Paimon's releases return different results. Leave "
        "the column out, or read it with Paimon's own engines."
    ),
)
OVERFLOWING_SUMS = _refused(
    name="sums with more digits than their type",
    area="merging",
    condition="the merged values of a DECIMAL column with the function sum or product",
    checked=("paimon.merge.number_aggregates._Numbers.result",),
    message=(
        "The sum of a key has more digits than its type {type}, for which Paimon's engines return different "
        "results. Leave the column out, or read it with Paimon's own engines."
    ),
)
EMPTY_BRANCH = _refused(
    name="a branch without versions whose fallback or primary branch has some",
    area="branches",
    condition="the options scan.fallback-branch and scan.primary-branch",
    checked=("paimon.fallback.check_empty",),
    message=(
        "{root} has no versions on this branch, but it is combined with the branch {branch!r} ({option}), which "
        "has some. Open that branch."
    ),
)
ABSENT_BRANCH = _refused(
    name="a fallback or primary branch that does not exist",
    area="branches",
    condition="the options scan.fallback-branch and scan.primary-branch",
    checked=("paimon.fallback._open_branch",),
    message=_needed("the branch {branch!r}, which does not exist", "{option}"),
)
EXPIRED_VERSION_WITH_BRANCH = _refused(
    name="expired versions of tags, combined with a branch",
    area="branches",
    condition="the version exists only as a tag",
    checked=("paimon.fallback.fallback_version",),
    message=_needed("a branch combined with a version that has expired and exists only as a tag", "{option}"),
)
AMBIGUOUS_BRANCH_VERSION = _refused(
    name="older versions for which the version of the other branch is ambiguous",
    area="branches",
    condition="the other branch's versions are out of order, have the same time, or have expired",
    checked=("paimon.fallback.fallback_version",),
    message=_needed("the other branch at the same time", "{option}, {reason}"),
)
OTHER_BRANCH_COLUMNS = _refused(
    name="branches with different columns or partition keys",
    area="branches",
    condition="the schemas of both branches",
    checked=("paimon.fallback.check_same_columns",),
    message=_needed("a branch with different columns{what}", "{option}"),
)
HIDDEN_BRANCH_PARTITIONS = _refused(
    name="branches combined while all files of a partition wait for a compaction",
    area="branches",
    condition="all files of a partition of the first branch are on level 0 or in postponed buckets",
    checked=("paimon.fallback.joined",),
    message=_needed("branches combined while all files of a partition wait for a compaction", "{option}"),
)
FALLBACK_BRANCH_CHANGES = _refused(
    name="row changes of tables with a fallback branch",
    area="changes",
    condition="the option scan.fallback-branch is set",
    checked=("paimon.readable.check_table",),
    message=_needed("row changes of a fallback branch", "the option {option}={value}"),
)
PRIMARY_BRANCH_CHANGES = _refused(
    name="row changes of tables with a primary branch",
    area="changes",
    condition="the option scan.primary-branch is set",
    checked=("paimon.readable.check_table",),
    message=_needed("row changes of a primary branch", "the option {option}={value}"),
)
DATA_EVOLUTION = _read(
    name="data evolution, also with deletion vectors, row ids",
    area="wide rows",
    condition="the options data-evolution.enabled and row-tracking.enabled",
    checked=("paimon.files.column_groups",),
)
BLOBS = _read(
    name='blobs, up to 256 MiB at a time, or their descriptors (`columns=["b$descriptor"]`)',
    area="wide rows",
    condition="a column of type BLOB",
    checked=("paimon.files.blobs",),
)
BLOBS_OVER_LIMIT = _refused(
    name="more than 256 MiB of blobs at a time",
    area="wide rows",
    condition="the blobs of the requested rows",
    checked=("paimon.files.blobs.check_limit",),
    message=(
        "The requested blob columns have {total:,} bytes; the limit of one read is {most:,}. Leave them out with "
        "columns=[...], or read fewer partitions with a condition on the partition columns."
    ),
)
EVOLUTION_WITH_KEYS = _refused(
    name="data evolution with a primary key",
    area="wide rows",
    condition="the option data-evolution.enabled of a table with a primary key",
    checked=("paimon.readable.check_table",),
    message=_needed("data evolution of a table with a primary key", "the option data-evolution.enabled=true"),
)
EVOLUTION_WITH_VECTORS = _refused(
    name="data evolution with deletion vectors of newer files",
    area="wide rows",
    condition="the columns of a row are in several files, and one that is not the oldest has a deletion vector",
    checked=("paimon.scan.planning._evolving_splits",),
    message=_needed(
        "a deletion vector of a file that is not the oldest one with columns of its rows", "the data file {file}"
    ),
)
PARTIAL_FILES = _refused(
    name="files with only some columns, without data evolution",
    area="wide rows",
    condition="the write columns of a file",
    checked=("paimon.readable.check_write_columns",),
    message=_needed(
        "data evolution, where the columns of a row are in several files",
        "the data file {file} lacks the column {column!r}",
    ),
)
BLOB_DESCRIPTORS = _refused(
    keyword="blob-descriptor-field",
    name="blobs that are stored as descriptors",
    area="wide rows",
    condition="the option is set",
    checked=("paimon.readable.check_table",),
    message=_needed("blobs that are stored as descriptors", "the option {option}={value}"),
)
BLOB_VIEWS = _refused(
    keyword="blob-view-field",
    name="blobs that are views of another table",
    area="wide rows",
    condition="the option is set",
    checked=("paimon.readable.check_table",),
    message=_needed("blobs that are views of another table", "the option {option}={value}"),
)
BLOB_COLUMNS = _refused(
    name="blobs without data evolution",
    area="wide rows",
    condition="a column of type BLOB without the option data-evolution.enabled, or a BLOB in another type",
    checked=("paimon.readable.check_table",),
    message=_needed("blob columns", "the column {column!r} of type {type}"),
)
BLOB_FILES = _refused(
    name="blob files without data evolution",
    area="wide rows",
    condition="a blob file without row ids",
    checked=("paimon.scan.planning._check_file",),
    message=_needed("blob files without data evolution", "the data file {file}"),
)
BLOBS_IN_OTHER_FILES = _refused(
    name="blobs outside of blob files",
    area="wide rows",
    condition="a file of another format contains a BLOB column",
    checked=("paimon.readable.check_no_blobs",),
    message=_needed("blobs outside of blob files", "the column {column!r} of the data file {file}"),
)
TYPES = _read(
    name="all others",
    area="types",
    condition="the schema",
    checked=("paimon.metadata.data_types",),
)
SCHEMA_EVOLUTION = _read(
    name="schema evolution by field id, with Paimon's casts",
    area="types",
    condition="the schemas of files",
    checked=("paimon.files.evolution",),
)
CHARS = _read(
    name=("CHAR as in Paimon's core: without the blanks that ORC files add (Paimon's Spark connector pads all values)"),
    area="types",
    condition="a column of type CHAR",
    checked=("paimon.files.data_files",),
)
VECTOR_COLUMNS = _refused(
    keyword="VECTOR",
    name="vectors",
    area="types",
    condition="a column of type VECTOR, or a nested one",
    checked=("paimon.readable.check_table",),
    message=_needed("vector columns", "the column {column!r} of type {type}"),
)
SPATIAL_TYPES = _refused(
    name="spatial columns",
    area="types",
    condition="a column of type GEOMETRY or GEOGRAPHY",
    checked=("paimon.metadata.data_types._TypeText._atomic",),
    message="Columns of type {type} are not supported.",
)
UNKNOWN_TYPES = _refused(
    name="unknown types",
    area="types",
    condition="a column whose type is not one of Paimon's",
    checked=("paimon.metadata.data_types._TypeText._atomic",),
    message="The column type {type} is unknown.",
)
SHREDDED_VARIANTS = _refused(
    name="variants shredded into types that variants do not have",
    area="types",
    condition="the type of a typed_value in a parquet file",
    checked=("paimon.files.data_files._variant",),
    message="its variants are shredded into {found}, a type that variants do not have",
)
CASTS = _refused(
    name="other casts that Paimon has",
    area="types",
    condition="the type of a column was changed, and files have the old type",
    checked=("paimon.files.evolution._check",),
    message=(
        "The column {column!r} was changed from {before} to {after}; this cast of older files is not supported. "
        "History, files and versions from before the change are available."
    ),
)
CASTS_OF_VALUES = _refused(
    name="values whose cast is not verified",
    area="types",
    condition="a value in a file of the old type",
    checked=("paimon.files.evolution.evolve",),
    message=(
        "The column {column!r} of the data file {path} cannot be read with the requested schema: {reason}. Leave "
        "the column out with columns=[...], or read a version from before its type was changed."
    ),
)
CHANGELOGS = _read(
    name="changelog rows (`snapshot.changelog()`)",
    area="changes",
    condition="the option changelog-producer",
    checked=("paimon.changes.incremental",),
)
INCREMENTAL = _read(
    name="incremental rows in the modes auto, delta, changelog and diff",
    area="changes",
    condition="every table",
    checked=("paimon.changes.incremental",),
)
CHANGES_OF_EVOLUTION = _refused(
    name="row changes of tables with data evolution",
    area="changes",
    condition="the option data-evolution.enabled",
    checked=("paimon.changes.incremental._check_schema",),
    message=_needed("changes of rows whose columns are in several files", "the option data-evolution.enabled=true"),
)
CHANGE_COLUMN_CONFLICT = _refused(
    name="row changes of a table with a column `rowkind`",
    area="changes",
    condition="the schema",
    checked=("paimon.changes.incremental._check_schema",),
    message=(
        "The table has its own column {column!r}, which is also the column for the kind of a change, so its row "
        "changes are not supported. file_changes() returns the changed files."
    ),
)
UPDATES_WITH_REMOVALS = _refused(
    name="APPEND commits that remove files, as by UPDATE in Paimon 0.9",
    area="changes",
    condition="DELETE entries in an APPEND commit",
    checked=("paimon.changes.incremental._checked",),
    message=(
        "Version {version} is an {kind} that removes files, as Paimon 0.9 records an UPDATE. Its files do not "
        "show which rows changed, and Paimon cannot read its changes either. Leave it out of the range, or "
        "compare to_arrow() of both versions."
    ),
)
CHANGES_OF_POSTPONED_BUCKETS = _refused(
    name="row changes of postponed buckets",
    area="changes",
    condition="the option bucket=-2",
    checked=("paimon.changes.incremental._checked",),
    message="Version {version} wrote to postponed buckets (bucket=-2), whose row changes are not supported.",
)
CHANGELOG_OF_LEVEL_0 = _refused(
    name="changelogs of level 0 with deletion vectors or first-row",
    area="changes",
    condition="the level of changelog files",
    checked=("paimon.changes.incremental._checked",),
    message=(
        "The changelog of version {version} has files of level 0, which Paimon skips in tables with deletion "
        "vectors or merge-engine=first-row. This is not supported."
    ),
)
DIFFERENCE_OF_POSTPONED_BUCKETS = _refused(
    name="`diff` of postponed buckets",
    area="changes",
    condition="files of a bucket below 0",
    checked=("paimon.changes.incremental._batch_state",),
    message=_needed("mode='diff' of postponed buckets", "a bucket below 0"),
)
DIFFERENCE_OF_REMOVED_FILES = _refused(
    name="`diff` of append tables whose files were removed",
    area="changes",
    condition="a file of the first version is not in the last",
    checked=("paimon.changes.incremental._appended",),
    message=(
        "Between versions {first} and {last} the file {path} was removed by a compaction, an overwrite or a "
        "delete, and the table has no primary key to match rows by. Use mode='delta'."
    ),
)
DIFFERENCE_OF_BUCKET_COUNTS = _refused(
    name="`diff` of partitions whose number of buckets changed",
    area="changes",
    condition="the bucket counts of both versions",
    checked=("paimon.changes.incremental._check_buckets",),
    message=(
        "The number of buckets of a partition changed from {before} to {after} between the versions, so their "
        "keys cannot be matched. Compare to_arrow() of both versions."
    ),
)
DIFFERENCE_OF_OLDER_ROWS = _refused(
    name="`diff` of keys whose later row has a lower sequence number",
    area="changes",
    condition="sequence numbers and sequence fields of both versions",
    checked=("paimon.changes.events._check_order",),
    message=(
        "Rows changed between the versions whose later row does not have the greater sequence number (in {path} or"
        " another file of its bucket), as after an overwrite. Whether Paimon returns these rows as changed is "
        "undefined. Use mode='delta', or compare to_arrow() of both versions."
    ),
)
COLUMNS_OF_TWO_BRANCHES = _refused(
    name="differences between versions of two branches that each added columns under one field id",
    area="changes",
    condition="the schemas of both branches",
    checked=("paimon.metadata.branches.check_field_ids",),
    message=(
        "The versions cannot be compared: the columns {column!r} and {other!r} were added on different branches, and "
        "both have the field id {id}. Load both versions and compare them by name."
    ),
)
AUDIT_COLUMN_CONFLICT = _refused(
    name="`audit_log` and `binlog` of a table with a column `rowkind`",
    area="changes",
    condition="the schema",
    checked=("paimon.system_tables.row_tables._columns",),
    message=(
        "The table has its own column {column!r}, which is also the column of {table} for the kind of an event, "
        "so {table} is not supported. to_arrow() returns the rows."
    ),
)
AUDIT_SEQUENCE_NUMBERS = _refused(
    name="`audit_log` with sequence numbers of a table without a primary key",
    area="changes",
    condition="the option table-read.sequence-number.enabled",
    checked=("paimon.system_tables.row_tables._columns",),
    message=(
        "The option {option} adds sequence numbers to {table}, which rows without a primary key do not have, so "
        "{table} is not supported. to_arrow() returns the rows."
    ),
)
FILE_FORMATS = _read(
    name="parquet, ORC, Avro",
    area="data files",
    condition="the extension of data files",
    checked=("paimon.readable.file_format",),
)
OTHER_FILE_FORMATS = _refused(
    name="csv, json, lance, vortex, ...",
    area="data files",
    condition="the extension of data files",
    checked=("paimon.readable.file_format",),
    message=_needed("files of the format {format}", "the data file {file}"),
)
STORAGES = _read(
    name="local disk, and all file systems of fsspec; tested on an S3 API (`pip install s3fs`)",
    area="storages",
    condition="the location",
    checked=("storage",),
)
EXPIRY = _read(
    name="the files that expiring versions would delete",
    area="retention",
    condition="every table",
    checked=("paimon.maintenance.retention",),
)
EXPIRY_OVER_GAPS = _refused(
    name="expiry of a range in which a snapshot is missing",
    area="retention",
    condition="the listing of snapshots",
    checked=("paimon.maintenance.retention._check_whole",),
    message=(
        "What expiring versions {first} to {last} would delete is unknown: snapshot {missing} is missing, and "
        "Paimon's expiry stops at a gap. Repair the table, or keep more versions."
    ),
)
FEATURES: tuple[Feature, ...] = (
    FORMAT_VERSIONS,
    OTHER_SNAPSHOT_FORMATS,
    OTHER_MANIFEST_FORMATS,
    OTHER_FILE_INDEXES,
    TABLE_TYPES,
    METADATA,
    ENTRY_KINDS,
    REMOVED_INDEXES,
    TIMESTAMPS_OUT_OF_RANGE,
    BINARY_PARTITION_FOLDERS,
    TABLE_KINDS,
    DELETION_VECTORS,
    BUCKETS,
    COMBINED_BRANCHES,
    CHAIN_TABLES,
    POSTPONE_MERGE_ON_READ,
    CLUSTERING_OVERRIDE,
    SNAPSHOT_ORDERING,
    MAP_LAYOUTS,
    LARGE_DELETION_VECTORS,
    DISABLED_VECTORS,
    VERSIONS_BEFORE_VECTORS,
    UNDECLARED_POSTPONED_BUCKETS,
    MERGE_ENGINES,
    FIRST_ROW_BY_SEQUENCE,
    ABSENT_SEQUENCE_FIELDS,
    NESTED_SEQUENCE_FIELDS,
    REMOVE_WITH_GROUPS,
    REMOVE_BY_GROUP,
    FUNCTIONS_OUTSIDE_GROUPS,
    GROUP_COLUMNS,
    INVALID_REMOVE_FIELDS,
    REMOVE_WITH_IGNORED_RETRACTS,
    INVALID_COUNT_LIMITS,
    AGGREGATE_FUNCTIONS,
    BLANK_STRINGS,
    OTHER_THETA_SKETCHES,
    COLLECT_RETRACTS,
    NULLS_AMONG_DISTINCT_ROWS,
    AMBIGUOUS_NESTED_ROWS,
    OVERFLOWING_SUMS,
    EMPTY_BRANCH,
    ABSENT_BRANCH,
    EXPIRED_VERSION_WITH_BRANCH,
    AMBIGUOUS_BRANCH_VERSION,
    OTHER_BRANCH_COLUMNS,
    HIDDEN_BRANCH_PARTITIONS,
    FALLBACK_BRANCH_CHANGES,
    PRIMARY_BRANCH_CHANGES,
    DATA_EVOLUTION,
    BLOBS,
    BLOBS_OVER_LIMIT,
    EVOLUTION_WITH_KEYS,
    EVOLUTION_WITH_VECTORS,
    PARTIAL_FILES,
    BLOB_DESCRIPTORS,
    BLOB_VIEWS,
    BLOB_COLUMNS,
    BLOB_FILES,
    BLOBS_IN_OTHER_FILES,
    TYPES,
    SCHEMA_EVOLUTION,
    CHARS,
    VECTOR_COLUMNS,
    SPATIAL_TYPES,
    UNKNOWN_TYPES,
    SHREDDED_VARIANTS,
    CASTS,
    CASTS_OF_VALUES,
    CHANGELOGS,
    INCREMENTAL,
    CHANGES_OF_EVOLUTION,
    CHANGE_COLUMN_CONFLICT,
    UPDATES_WITH_REMOVALS,
    CHANGES_OF_POSTPONED_BUCKETS,
    CHANGELOG_OF_LEVEL_0,
    DIFFERENCE_OF_POSTPONED_BUCKETS,
    DIFFERENCE_OF_REMOVED_FILES,
    DIFFERENCE_OF_BUCKET_COUNTS,
    DIFFERENCE_OF_OLDER_ROWS,
    COLUMNS_OF_TWO_BRANCHES,
    AUDIT_COLUMN_CONFLICT,
    AUDIT_SEQUENCE_NUMBERS,
    FILE_FORMATS,
    OTHER_FILE_FORMATS,
    STORAGES,
    EXPIRY,
    EXPIRY_OVER_GAPS,
    *AVRO,
    *SHARED,
)
"""All features, in the order of the guide."""
