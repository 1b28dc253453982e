"""The features of Paimon tables: what is read, and what is refused by name."""

from functools import partial

from snapshot_explorer.formats.features import AVRO, SHARED, Feature

_read = partial(Feature, status="read", since="0.1.0")
_refused = partial(Feature, status="refused", since="0.1.0")


def _needed(need: str, where: str = "{where}") -> str:
    """Return the message that says what rows need, and where that was found."""
    return (
        f"The rows of version {{version}} need {need} ({where}), which is not read yet. Its history, schema, manifests "
        "and files can be looked at; read the rows with Paimon's own engines."
    )


FORMAT_VERSIONS = _read(
    name="of Paimon 0.3 and newer; tested on tables that 0.7, 0.8, 0.9 and 1.4 wrote",
    area="versions",
    condition="the version in each snapshot",
    checked=("paimon.metadata.contents._check_readable",),
)
OTHER_SNAPSHOT_FORMATS = _refused(
    name="snapshots of Paimon before 0.3, or of a later format",
    area="versions",
    condition="the version in a snapshot",
    checked=("paimon.metadata.contents._check_readable",),
    message=(
        "{path} is of format version {version}; versions {oldest} and {newest}, of Paimon 0.3 and newer, are read."
    ),
)
OTHER_MANIFEST_FORMATS = _refused(
    name="manifests of another version than 2",
    area="versions",
    condition="_VERSION in the rows of a manifest or manifest list",
    checked=("paimon.metadata.manifests._check_version",),
    message=("A {what} of the table is of version {version}; version {newest}, of Paimon 0.3 and newer, is read."),
)
OTHER_FILE_INDEXES = _refused(
    name="file indexes of another version than 1 in the system table of them",
    area="versions",
    condition="the head of a file index",
    checked=("paimon.system_tables.file_indexes._head",),
    message=(
        "The file index {path} is of version {version}; version {newest} is read. The other system tables do "
        "not need it."
    ),
)
TABLE_TYPES = _refused(
    name="tables of other types than `table` and `materialized-table`",
    area="versions",
    condition="the option type",
    checked=("paimon.metadata.schema.Schemas.newest",),
    message=(
        "{root} is a {type}, which Paimon's own readers treat apart; it is not read. Read are tables of the "
        "types table and materialized-table."
    ),
)
METADATA = _read(
    name=(
        "all of it: snapshots, hints, tags, branches, long-lived changelogs, schemas, manifests in Avro, ORC "
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
    message=("A manifest among {path} has an entry that is neither ADD nor DELETE; no file has been read."),
)
REMOVED_INDEXES = _refused(
    name="index manifests that remove files",
    area="metadata",
    condition="_KIND in the rows of an index manifest",
    checked=("paimon.metadata.manifests.read_indexes",),
    message="{path} removes an index file, which only streaming readers expect.",
)
DISTANT_TIMES = _refused(
    name="timestamps too far from 1970 for 64 bits, in partitions and keys",
    area="metadata",
    condition="a value in a manifest",
    checked=("paimon.metadata.binary_row._timestamps",),
    message=("A {type}({precision}) of the table lies too far from 1970 for 64 bits of {unit}seconds; it is not read."),
)
BINARY_PARTITION_FOLDERS = _refused(
    name="folders of partitions by bytes",
    area="metadata",
    condition="a partition column is BINARY, VARBINARY or nested, and the text of its folders is needed",
    checked=("paimon.metadata.partitions._refused",),
    message="Folders of partitions by a {type} column cannot be named; it is not read.",
)
TABLES_OF_ROWS = _read(
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
    name="every kind of bucket",
    area="rows",
    condition="the option bucket",
    checked=("paimon.scan.visibility",),
)
BRANCHES_TOGETHER = _read(
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
    name="rows of postponed buckets",
    area="rows",
    condition="the option is true",
    checked=("paimon.readable.check_table",),
    message=_needed("rows of postponed buckets", "the option {option}={value}"),
)
CLUSTERING_OVERRIDE = _refused(
    keyword="pk-clustering-override",
    name="files clustered by other columns than the key",
    area="rows",
    condition="the option is true",
    checked=("paimon.readable.check_table",),
    message=_needed("files clustered by other columns than the key", "the option {option}={value}"),
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
    name="maps in a layout of their own",
    area="rows",
    condition="an option fields.*.map.storage-layout",
    checked=("paimon.readable.check_table",),
    message=_needed("maps in a layout of their own", "the option {option}={value}"),
)
GREAT_DELETION_VECTORS = _refused(
    name="deletion vectors of files with more than 2,147,483,648 rows",
    area="rows",
    condition="the row count of a data file with a deletion vector",
    checked=("paimon.files.deletion_vectors.positions",),
    message="A deletion vector in {path} is for a file of {rows} rows; up to {most} are read.",
)
VECTORS_TURNED_OFF = _refused(
    name="deletion vectors that the newest options turn off",
    area="rows",
    condition="an append table with deletion vectors, whose option deletion-vectors.enabled is off",
    checked=("paimon.scan.visibility.in_force",),
    message=_needed("deletion vectors that the newest options turn off"),
)
VECTORS_TURNED_ON = _refused(
    name="unmerged versions before deletion vectors were turned on",
    area="rows",
    condition="files on several levels, or on level 0, of a version older than deletion-vectors.enabled",
    checked=("paimon.scan.visibility._check_switched",),
    message=_needed(
        ("a merge, but were written before deletion vectors were turned on, so that Paimon merges them no more"),
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
    name="merge engines that are not known",
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
    message=_needed("a first row by sequence fields", "the options merge-engine and sequence.field"),
)
ABSENT_SEQUENCE_FIELDS = _refused(
    name="sequence fields that the schema lacks",
    area="merging",
    condition="the option sequence.field, or of a sequence group",
    checked=("paimon.merge.rules._check_order",),
    message=_needed("the sequence field {name!r}, which its schema lacks"),
)
NESTED_ORDER = _refused(
    name="sequence fields of nested types",
    area="merging",
    condition="the option sequence.field, or of a sequence group",
    checked=("paimon.merge.rules._check_order",),
    message=_needed("an order by nested values"),
)
REMOVE_BESIDE_GROUPS = _refused(
    name="partial-update that removes records on delete, with sequence groups or ignored deletes",
    area="merging",
    condition="the options partial-update.remove-record-on-delete, ignore-delete and sequence groups",
    checked=("paimon.merge.rules._partial_update",),
    message=_needed("a removal of records beside sequence groups or ignored deletes", "the option {option}"),
)
REMOVE_BY_GROUP = _refused(
    name="partial-update that removes records by sequence group, with ignored deletes",
    area="merging",
    condition="the options partial-update.remove-record-on-sequence-group and ignore-delete",
    checked=("paimon.merge.rules._partial_update",),
    message=_needed("a removal of records beside ignored deletes", "the option {option}"),
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
    name="sequence groups with a column twice, in the key or not there",
    area="merging",
    condition="an option fields.*.sequence-group",
    checked=("paimon.merge.rules._groups",),
    message=_needed("the column {column!r} in a sequence group, twice, in the key or not there", "{option}"),
)
GROUPS_TO_REMOVE_BY = _refused(
    name="sequence fields to remove by that are in no group",
    area="merging",
    condition="the option partial-update.remove-record-on-sequence-group",
    checked=("paimon.merge.rules._groups",),
    message=_needed("the sequence field {name!r}, which is in no group", "the option {option}"),
)
REMOVE_BESIDE_RETRACTS = _refused(
    name="aggregation that removes records on delete, with ignored retracts",
    area="merging",
    condition="the options aggregation.remove-record-on-delete and fields.*.ignore-retract",
    checked=("paimon.merge.rules._aggregation",),
    message=_needed("a removal of records beside ignored retracts", "the option fields.{column}.ignore-retract"),
)
COUNT_LIMITS = _refused(
    name="limits of nested_update that are no positive number",
    area="merging",
    condition="an option fields.*.count-limit",
    checked=("paimon.merge.rules._limit",),
    message=_needed("a limit of {limit!r} rows", "the option fields.{column}.count-limit={limit}"),
)
AGGREGATE_FUNCTIONS = _refused(
    name="aggregate functions that are not known, or not for the column's type",
    area="merging",
    condition="an option fields.*.aggregate-function",
    checked=("paimon.merge.rules.check_function",),
    message=_needed(
        "the aggregate function {function} of the column {column!r} of type {type}",
        "the option fields.{column}.aggregate-function={function}",
    ),
)
BLANK_TEXTS = _refused(
    name="listagg over blank texts",
    area="merging",
    condition="a value of a column with the function listagg",
    checked=("paimon.merge.aggregates.texts.result",),
    message=(
        "A column of the aggregate function listagg holds blank texts, which Paimon's releases from 2.0 on "
        "pass over and those before do not. Leave the column out, or read it with Paimon's own engines."
    ),
)
OTHER_THETA_SKETCHES = _refused(
    name="theta sketches that are not compact",
    area="merging",
    condition="a value of a column with the function theta_sketch",
    checked=("paimon.merge.binary_aggregates.theta_sketch.union",),
    message=(
        "A column of the aggregate function theta_sketch holds bytes that begin with {bytes}: no sketch of "
        "the compact form. Leave the column out, or read it with Paimon's own engines."
    ),
)
RETRACTED_COLLECTIONS = _refused(
    name="collect that takes back nested elements or bytes",
    area="merging",
    condition="a retraction in a column with the function collect",
    checked=("paimon.merge.nested_aggregates.collect.retract",),
    message=(
        "A column of the aggregate function collect has elements of type {type} taken back, which Paimon's "
        "own readers compare in different ways, or fail on. Leave the column out."
    ),
)
NULLS_AMONG_DISTINCT_ROWS = _refused(
    name="collect of distinct rows with null among them",
    area="merging",
    condition="a value of a column with the function collect and the option distinct",
    checked=("paimon.merge.nested_aggregates._distinct.add",),
    message=(
        "A column whose distinct rows are collected holds null among them, on which Paimon itself fails. "
        "Leave the column out."
    ),
)
DIFFERING_NESTED_ROWS = _refused(
    name="nested rows that Paimon's releases treat in different ways",
    area="merging",
    condition=(
        "nulls, repeated keys or rows over the limit in a column with the function nested_update or "
        "nested_partial_update"
    ),
    checked=("paimon.merge.nested_aggregates._differing",),
    message=(
        "A column of nested rows holds {what}, which Paimon's releases treat in different ways. Leave the "
        "column out, or read it with Paimon's own engines."
    ),
)
OVERFLOWING_SUMS = _refused(
    name="sums with more digits than their type",
    area="merging",
    condition="the merged values of a DECIMAL column with the function sum or product",
    checked=("paimon.merge.number_aggregates._Numbers.result",),
    message=(
        "The sum of a key has more digits than its type {type}, which Paimon's engines show in different "
        "ways. Leave the column out, or read it with Paimon's own engines."
    ),
)
EMPTY_BRANCH = _refused(
    name="a branch without versions beside one that has some",
    area="branches",
    condition="the options scan.fallback-branch and scan.primary-branch",
    checked=("paimon.fallback.check_empty",),
    message=(
        "{root} has no version here, but is read together with the branch {branch!r} ({option}), which has "
        "some. Open that branch."
    ),
)
ABSENT_BRANCH = _refused(
    name="a fallback or primary branch that is not there",
    area="branches",
    condition="the options scan.fallback-branch and scan.primary-branch",
    checked=("paimon.fallback._open_branch",),
    message=_needed("the branch {branch!r}, which is not there", "{option}"),
)
EXPIRED_BESIDE_BRANCH = _refused(
    name="expired versions of tags beside a branch",
    area="branches",
    condition="only a tag holds the version",
    checked=("paimon.fallback.fallback_version",),
    message=_needed("a branch beside a version that has expired and only a tag holds", "{option}"),
)
UNCERTAIN_BRANCH_VERSION = _refused(
    name="older versions where that of the other branch is not certain",
    area="branches",
    condition="the other branch's versions are out of order, have one time, or have expired",
    checked=("paimon.fallback.fallback_version",),
    message=_needed("a branch beside it as it was then", "{option}, {reason}"),
)
OTHER_BRANCH_COLUMNS = _refused(
    name="branches of other columns or partition keys",
    area="branches",
    condition="the schemas of both branches",
    checked=("paimon.fallback.check_same_columns",),
    message=_needed("a branch of other columns{what}", "{option}"),
)
HIDDEN_BRANCH_PARTITIONS = _refused(
    name="partitions of a branch beside ones whose files wait for a compaction",
    area="branches",
    condition="all files of a partition of the first branch are hidden",
    checked=("paimon.fallback.joined",),
    message=_needed("partitions of a branch beside ones whose files wait for a compaction", "{option}"),
)
FALLBACK_BRANCH_CHANGES = _refused(
    name="changes of tables with a fallback branch",
    area="changes",
    condition="the option scan.fallback-branch is set",
    checked=("paimon.readable.check_table",),
    message=_needed("partitions read from a fallback branch", "the option {option}={value}"),
)
PRIMARY_BRANCH_CHANGES = _refused(
    name="changes of tables with a primary branch",
    area="changes",
    condition="the option scan.primary-branch is set",
    checked=("paimon.readable.check_table",),
    message=_needed("partitions read from a primary branch", "the option {option}={value}"),
)
DATA_EVOLUTION = _read(
    name="data evolution, row ids",
    area="wide rows",
    condition="the options data-evolution.enabled and row-tracking.enabled",
    checked=("paimon.files.column_groups",),
)
BLOBS = _read(
    name='blobs, up to 256 MiB at once, or their descriptors (`columns=["b$descriptor"]`)',
    area="wide rows",
    condition="a column of type BLOB",
    checked=("paimon.files.blobs",),
)
GREAT_BLOBS = _refused(
    name="more than 256 MiB of blobs at once",
    area="wide rows",
    condition="the blobs of the rows asked for",
    checked=("paimon.files.blobs.check_limit",),
    message=(
        "The blob columns asked for hold {total:,} bytes, and at most {most:,} are loaded at once. Leave them"
        " out with columns=[...], or read fewer partitions with a condition on the partition columns."
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
    name="data evolution with deletion vectors",
    area="wide rows",
    condition="a deletion vector of a file that shares its rows with others",
    checked=("paimon.scan.planning._evolving_splits",),
    message=_needed("deletion vectors of rows that are spread over several files", "the data file {file}"),
)
PARTIAL_FILES = _refused(
    name="files of some columns outside of data evolution",
    area="wide rows",
    condition="the write columns of a file",
    checked=("paimon.readable.check_write_columns",),
    message=_needed(
        "data evolution, which spreads a row over several files",
        "the data file {file}, which is without the column {column!r}",
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
    name="blobs outside of data evolution",
    area="wide rows",
    condition="a column of type BLOB without the option data-evolution.enabled, or a BLOB in another type",
    checked=("paimon.readable.check_table",),
    message=_needed("blob columns", "the column {column!r} of type {type}"),
)
BLOB_FILES = _refused(
    name="blob files outside of data evolution",
    area="wide rows",
    condition="a blob file without row ids",
    checked=("paimon.scan.planning._check_file",),
    message=_needed("blob files without data evolution", "the data file {file}"),
)
BLOBS_IN_OTHER_FILES = _refused(
    name="blobs that are not in blob files",
    area="wide rows",
    condition="a file of another format holds a BLOB column",
    checked=("paimon.readable.check_no_blobs",),
    message=_needed("blobs that are not in blob files", "the column {column!r} of the data file {file}"),
)
TYPES = _read(
    name="all but those beside",
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
    name=(
        "CHAR as Paimon's core gives it: without the blanks that ORC files put behind it, where Paimon's "
        "Spark connector fills up any"
    ),
    area="types",
    condition="a column of type CHAR",
    checked=("paimon.files.data_files",),
)
VECTOR_COLUMNS = _refused(
    keyword="VECTOR",
    name="vectors",
    area="types",
    condition="a column of type VECTOR, or one in another type",
    checked=("paimon.readable.check_table",),
    message=_needed("vector columns", "the column {column!r} of type {type}"),
)
SPATIAL_TYPES = _refused(
    name="spatial columns",
    area="types",
    condition="a column of type GEOMETRY or GEOGRAPHY",
    checked=("paimon.metadata.data_types._TypeText._atomic",),
    message="Columns of type {type} are not read.",
)
UNKNOWN_TYPES = _refused(
    name="types that are not known",
    area="types",
    condition="a column of another type than Paimon's",
    checked=("paimon.metadata.data_types._TypeText._atomic",),
    message="Columns of type {type} are not known.",
)
SHREDDED_VARIANTS = _refused(
    name="shredded variants",
    area="types",
    condition="a VARIANT column of a file has other fields than value and metadata",
    checked=("paimon.files.data_files._conform_struct",),
    message="Shredded VARIANT columns ({fields}) are not read.",
)
CASTS = _refused(
    name="casts that Paimon has and this has not",
    area="types",
    condition="a column's type was changed, and files have the old one",
    checked=("paimon.files.evolution._check",),
    message=(
        "The column {column!r} was changed from {before} to {after}; files written before are not cast so "
        "here. The table's history and files, and versions before the change, can still be read."
    ),
)
CASTS_OF_VALUES = _refused(
    name="values that have no proven cast",
    area="types",
    condition="a value in a file of the old type",
    checked=("paimon.files.evolution.evolve",),
    message=(
        "The column {column!r} of the data file {path} cannot be read under the schema asked for: {reason}. "
        "Leave the column out with columns=[...], or read a version before its type was changed."
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
    name="those of data evolution",
    area="changes",
    condition="the option data-evolution.enabled",
    checked=("paimon.changes.incremental._check_schema",),
    message=_needed("changes of rows that are spread over several files", "the option data-evolution.enabled=true"),
)
TAKEN_CHANGE_COLUMN = _refused(
    name="changes of a table with a column `rowkind`",
    area="changes",
    condition="the schema",
    checked=("paimon.changes.incremental._check_schema",),
    message=(
        "The table has a column {column!r}, which is the name of the column with the kind of a change. Its row "
        "changes are not read; file_changes() returns the files."
    ),
)
UPDATES_WITH_REMOVALS = _refused(
    name="commits that remove files, as an UPDATE of Paimon 0.9",
    area="changes",
    condition="DELETE entries in an APPEND commit",
    checked=("paimon.changes.incremental._checked",),
    message=(
        "Version {version} is an {kind} that removes files, as Paimon 0.9 records an UPDATE. Its files do not show"
        " which rows changed, and Paimon does not read it either. Leave it out of the range, or compare to_arrow()"
        " of both versions."
    ),
)
CHANGES_OF_POSTPONED_BUCKETS = _refused(
    name="those of postponed buckets",
    area="changes",
    condition="the option bucket=-2",
    checked=("paimon.changes.incremental._checked",),
    message="Version {version} wrote to postponed buckets (bucket=-2), whose changes are not read.",
)
CHANGELOG_OF_LEVEL_0 = _refused(
    name="changelogs of level 0 with deletion vectors or first-row",
    area="changes",
    condition="the level of changelog files",
    checked=("paimon.changes.incremental._checked",),
    message=(
        "The changelog of version {version} has files of level 0, which Paimon skips in tables with deletion "
        "vectors or merge-engine=first-row; it is not read."
    ),
)
DIFFERENCE_OF_POSTPONED_BUCKETS = _refused(
    name="`diff` of postponed buckets",
    area="changes",
    condition="files of a bucket below 0",
    checked=("paimon.changes.incremental._batch_state",),
    message=_needed("the difference of postponed buckets", "a bucket below 0"),
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
        "A partition's number of buckets changed from {before} to {after} between the versions, so that their"
        " keys cannot be matched. Compare to_arrow() of both versions."
    ),
)
DIFFERENCE_OF_OLDER_ROWS = _refused(
    name="`diff` of keys whose later row is not the newer one by sequence",
    area="changes",
    condition="sequence numbers and sequence fields of both versions",
    checked=("paimon.changes.events._check_order",),
    message=(
        "Rows changed between the versions whose later row does not have the greater sequence number (in {path} or"
        " another file of its bucket), as after an overwrite. Whether Paimon returns these rows as changed is "
        "undefined. Use mode='delta', or compare to_arrow() of both versions."
    ),
)
TAKEN_AUDIT_COLUMN = _refused(
    name="`audit_log` and `binlog` of a table with a column `rowkind`",
    area="changes",
    condition="the schema",
    checked=("paimon.system_tables.row_tables._columns",),
    message=(
        "The table has a column of its own called {column!r}, which is what {table} calls the kind of an "
        "event; {table} is not read. to_arrow() gives the rows."
    ),
)
AUDIT_NUMBERS = _refused(
    name="`audit_log` with sequence numbers of a table without a primary key",
    area="changes",
    condition="the option table-read.sequence-number.enabled",
    checked=("paimon.system_tables.row_tables._columns",),
    message=(
        "The option {option} asks for sequence numbers in {table}, which rows without a primary key have not;"
        " {table} is not read. to_arrow() gives the rows."
    ),
)
FILE_FORMATS = _read(
    name="parquet, ORC, Avro",
    area="data files",
    condition="the names of data files",
    checked=("paimon.readable.file_format",),
)
OTHER_FILE_FORMATS = _refused(
    name="csv, json, lance, vortex, ...",
    area="data files",
    condition="the names of data files",
    checked=("paimon.readable.file_format",),
    message=_needed("files of the format {format}", "the data file {file}"),
)
STORAGES = _read(
    name="local disk, and whatever fsspec opens; tested on a real S3 API (`pip install s3fs`)",
    area="storages",
    condition="the location",
    checked=("storage",),
)
EXPIRY = _read(
    name="what expiring versions would free",
    area="retention",
    condition="every table",
    checked=("paimon.maintenance.retention",),
)
EXPIRY_OVER_GAPS = _refused(
    name="that of versions with a snapshot missing among them",
    area="retention",
    condition="the listing of snapshots",
    checked=("paimon.maintenance.retention._check_whole",),
    message=(
        "What expiring versions {first} to {last} frees is unknown: snapshot {missing} is missing, and Paimon's "
        "expiry stops at a gap. Repair the table, or keep more versions."
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
    DISTANT_TIMES,
    BINARY_PARTITION_FOLDERS,
    TABLES_OF_ROWS,
    DELETION_VECTORS,
    BUCKETS,
    BRANCHES_TOGETHER,
    CHAIN_TABLES,
    POSTPONE_MERGE_ON_READ,
    CLUSTERING_OVERRIDE,
    SNAPSHOT_ORDERING,
    MAP_LAYOUTS,
    GREAT_DELETION_VECTORS,
    VECTORS_TURNED_OFF,
    VECTORS_TURNED_ON,
    UNDECLARED_POSTPONED_BUCKETS,
    MERGE_ENGINES,
    FIRST_ROW_BY_SEQUENCE,
    ABSENT_SEQUENCE_FIELDS,
    NESTED_ORDER,
    REMOVE_BESIDE_GROUPS,
    REMOVE_BY_GROUP,
    FUNCTIONS_OUTSIDE_GROUPS,
    GROUP_COLUMNS,
    GROUPS_TO_REMOVE_BY,
    REMOVE_BESIDE_RETRACTS,
    COUNT_LIMITS,
    AGGREGATE_FUNCTIONS,
    BLANK_TEXTS,
    OTHER_THETA_SKETCHES,
    RETRACTED_COLLECTIONS,
    NULLS_AMONG_DISTINCT_ROWS,
    DIFFERING_NESTED_ROWS,
    OVERFLOWING_SUMS,
    EMPTY_BRANCH,
    ABSENT_BRANCH,
    EXPIRED_BESIDE_BRANCH,
    UNCERTAIN_BRANCH_VERSION,
    OTHER_BRANCH_COLUMNS,
    HIDDEN_BRANCH_PARTITIONS,
    FALLBACK_BRANCH_CHANGES,
    PRIMARY_BRANCH_CHANGES,
    DATA_EVOLUTION,
    BLOBS,
    GREAT_BLOBS,
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
    TAKEN_CHANGE_COLUMN,
    UPDATES_WITH_REMOVALS,
    CHANGES_OF_POSTPONED_BUCKETS,
    CHANGELOG_OF_LEVEL_0,
    DIFFERENCE_OF_POSTPONED_BUCKETS,
    DIFFERENCE_OF_REMOVED_FILES,
    DIFFERENCE_OF_BUCKET_COUNTS,
    DIFFERENCE_OF_OLDER_ROWS,
    TAKEN_AUDIT_COLUMN,
    AUDIT_NUMBERS,
    FILE_FORMATS,
    OTHER_FILE_FORMATS,
    STORAGES,
    EXPIRY,
    EXPIRY_OVER_GAPS,
    *AVRO,
    *SHARED,
)
"""All of them, in the order of README."""
