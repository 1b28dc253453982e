"""The features of Delta tables: those that are read, and those that are refused by name.

Source: delta PROTOCOL.md, "Table Features", "Requirements for Readers".
"""

from functools import partial

from snapshot_explorer.formats.features import COLLATIONS, SHARED, Feature

_ADVICE = "Its history, schema and files can still be read; read the rows with Delta's own engines."
_read = partial(Feature, status="read", since="0.1.0")
_refused = partial(Feature, status="refused", since="0.1.0")

_NEEDED = "the protocol lists it in readerFeatures"
_PROTOCOL = ("delta.log.readable._check_protocol",)
_read_feature = partial(_read, area="reader features", condition=_NEEDED, checked=_PROTOCOL)
_refused_feature = partial(
    _refused,
    area="reader features",
    condition=_NEEDED,
    checked=_PROTOCOL,
    message=(
        ("Unsupported Delta read feature: the table requires reader features that are not supported: {named}. ")
        + _ADVICE
    ),
)

READER_VERSIONS = _read(
    name="reader versions 1 to 3",
    area="versions",
    condition="minReaderVersion of the protocol",
    checked=_PROTOCOL,
)
OTHER_READER_VERSIONS = _refused(
    name="newer reader versions",
    area="versions",
    condition="minReaderVersion of the protocol is not 1, 2 or 3",
    checked=_PROTOCOL,
    message=(
        "Unsupported Delta protocol version: the table requires reader version {version} and writer version "
        "{writer}; reader versions 1, 2 and 3 are supported. " + _ADVICE
    ),
)

READER_FEATURES: tuple[Feature, ...] = (
    _read_feature(keyword="columnMapping", name="columns renamed and dropped without rewriting files, by name and id"),
    _read_feature(keyword="deletionVectors", name="rows deleted without rewriting files"),
    _read_feature(keyword="timestampNtz", name="timestamps without a zone"),
    _read_feature(keyword="typeWidening", name="columns whose type is wider than in old files"),
    _read_feature(keyword="typeWidening-preview", name="type widening before its release"),
    _read_feature(keyword="v2Checkpoint", name="checkpoints with sidecar files"),
    _read_feature(keyword="vacuumProtocolCheck", name="a check by VACUUM, which does not concern readers"),
    _read_feature(keyword="variantType", name="variants", note="as value and metadata"),
    _read_feature(keyword="variantType-preview", name="variants before their release", note="as value and metadata"),
    _read_feature(keyword="variantShredding", name="shredded variants", note="put together to value and metadata"),
    _read_feature(
        keyword="variantShredding-preview",
        name="shredded variants before their release",
        note="put together to value and metadata",
    ),
    _refused_feature(keyword="catalogManaged", name="a catalog decides which versions exist"),
    _refused_feature(keyword="catalogOwned-preview", name="a catalog decides which versions exist"),
    _refused_feature(keyword="geospatial", name="columns of type geometry and geography"),
    _refused_feature(keyword="geospatial-dev", name="columns of type geometry and geography"),
    _refused_feature(keyword="redirectReaderWriter-preview", name="the table has moved to another location"),
    _refused_feature(keyword="adaptiveMetadata-preview", name="the list of files is not in the log"),
)
"The known reader features, by their name in the protocol."

OTHER_READER_FEATURES = _refused_feature(name="any other reader feature")

LOG = _read(
    name="the log: commits, checkpoints of every form, sidecars, checksums",
    area="metadata",
    condition="every table",
    checked=("delta.log.log", "delta.log.checkpoints"),
)
HISTORY = _read(
    name="`history` and `detail` as DESCRIBE shows them",
    area="metadata",
    condition="every table",
    checked=("delta.history.inspections",),
)
ACTIONS_BESIDE_FILES = _read(
    name="domains, transactions",
    area="metadata",
    condition="domainMetadata and txn actions",
    checked=("delta.log.records",),
)
STAGED_COMMITS = _refused(
    name="staged commits, which only the catalog or the coordinator can confirm",
    area="metadata",
    condition="the table has catalogManaged or coordinatedCommits, and staged commits after the newest published one",
    checked=("delta.log.log.check_published",),
    message=(
        "{root} has the feature {feature}: its catalog or commit coordinator decides what was committed. {folder} "
        "contains commits from version {staged} on that are not published, so the newest version is unknown without "
        "it. Publish them with Delta's own engine, then open the table again."
    ),
)

CLUSTERING = _read(
    name="liquid clustering",
    area="rows",
    condition="the writer feature clustering, which does not concern readers",
    checked=_PROTOCOL,
)
ROW_TRACKING = _read(
    name="row tracking (`_row_id`, `_row_commit_version`)",
    area="rows",
    condition="the table property delta.enableRowTracking",
    checked=("delta.scan.row_tracking",),
)
PATHS = _read(
    name="escaped and absolute paths",
    area="rows",
    condition="add actions with such paths",
    checked=("delta.log.locations",),
)
COLUMN_MAPPING_MODES = _refused(
    name="column mapping modes other than none, name and id",
    area="rows",
    condition="the table property delta.columnMapping.mode has another value",
    checked=("delta.log.schema.mapping_mode",),
    message=(
        "The table has the column mapping mode {mode!r} (delta.columnMapping.mode); none, name and id are "
        "supported. Read it with a newer version of this package."
    ),
)
OTHER_DELETION_VECTORS = _refused(
    name="deletion vectors that are stored neither inline nor in a file",
    area="rows",
    condition="an add action has a deletion vector whose storageType is not u, p or i",
    checked=("delta.files.deletion_vectors.vector_of",),
    message=(
        "The deletion vector of {path} has the unknown storage type {kind!r}. Read the rows with Delta's own engines."
    ),
)
LARGE_DELETION_VECTORS = _refused(
    name="deletion vectors of more than 256 MiB",
    area="rows",
    condition="the size of a deletion vector in an add action",
    checked=("delta.files.deletion_vectors._check_numbers",),
    message=(
        "The deletion vector of {path} has {size:,} bytes; the limit is {most:,}. Read the rows with Delta's own "
        "engines."
    ),
)
OLD_CALENDARS = _refused(
    name="timestamps before 1900 in the hybrid calendar of old versions of Spark",
    area="rows",
    condition="the footer of a parquet file says so, and its zone is not UTC",
    checked=("delta.files.calendars.rebased",),
    message=(
        "it contains timestamps before 1900 in the hybrid calendar and local time of old versions of Spark{zone}, "
        "which are not supported"
    ),
)

UNKNOWN_TYPES = _refused(
    name="column types that are not in the protocol",
    area="types",
    condition="the schema has such a column",
    checked=("delta.log.readable.check_readable",),
    message="The column {column!r} has the type {type}, which is not supported. " + _ADVICE,
)
UNREAD_TYPES = _refused(
    name="types without an Arrow equivalent",
    area="types",
    condition="the schema has such a column",
    checked=("delta.log.data_types.arrow_type",),
    message="Columns of type {type} are not supported. The table's history, schema and files can still be read.",
)
TYPE_CHANGES = _refused(
    name="type changes that Delta does not allow",
    area="types",
    condition="the field's delta.typeChanges",
    checked=("delta.log.readable._check_changes",),
    message=(
        (
            "The column {column!r} was changed from {before} to {after}; reading older files with this change is not "
            "supported. "
        )
        + _ADVICE
    ),
)
PARTITION_TYPES = _refused(
    name="partition columns of nested types",
    area="types",
    condition="a partition column is an array, a map, a struct or a variant",
    checked=("delta.scan.partitions.typed",),
    message="Partition columns of type {type} are not supported.",
)

PARQUET = _read(
    name="parquet",
    area="data files",
    condition="the provider in the table's metadata",
    checked=("delta.log.readable.check_readable",),
)
OTHER_FILE_FORMATS = _refused(
    name="data files that are not parquet",
    area="data files",
    condition="the provider in the table's metadata",
    checked=("delta.log.readable.check_readable",),
    message="The table's data files have the format {provider!r}, not parquet. " + _ADVICE,
)
SHREDDED_FILES = _refused(
    name="variants shredded into types that variants do not have",
    area="data files",
    condition="the type of a typed_value in a parquet file",
    checked=("delta.files.columns._variant",),
    message="its variants are shredded into {found}, a type that variants do not have",
)
FILES_OF_OTHER_TYPES = _refused(
    name="file columns with a type that cannot represent the table's type",
    area="data files",
    condition="the type of a column in a parquet file's footer",
    checked=("delta.files.columns._unsupported_type", "delta.files.columns._array", "delta.files.columns._variant"),
    message="its type in the file is {found}, which is not supported for {type}",
)

CHANGES = _read(
    name=("change data files where they exist, otherwise changes from added and removed files and deletion vectors"),
    area="changes",
    condition='mode="auto"',
    checked=("delta.changes.change_data",),
)
CHANGE_DATA_FEED = _read(
    name='`mode="changelog"` as `readChangeFeed`',
    area="changes",
    condition="the table property delta.enableChangeDataFeed",
    checked=("delta.changes.change_data",),
)
DIFFERENCE = _refused(
    name='`mode="diff"`',
    area="changes",
    condition="every table, as Delta has no primary keys",
    checked=("delta.changes.change_data.ChangeData.between",),
    message=(
        "mode='diff' needs a primary key, and Delta tables have none. Use mode='auto' for the changes of each "
        "commit, or compare to_arrow() of both versions."
    ),
)
CHANGES_ACROSS_SCHEMAS = _refused(
    name="a range in which columns were dropped, renamed or changed their type",
    area="changes",
    condition="the schemas of the range",
    checked=("delta.changes.change_schema.check_schemas",),
    message=(
        "The changes from version {version} on cannot be read with the schema of version {reading} "
        "(DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE): {what}. Start after that change; changelog() of a "
        "snapshot reads one version with its own schema."
    ),
)
CHANGES_ACROSS_PARTITIONS = _refused(
    name="a range in which the partition columns were changed",
    area="changes",
    condition="a file of the range has other partition values than the schema",
    checked=("delta.changes.change_data._check_partitions",),
    message=(
        "Version {version} changes the file {path}, which was written with other partition columns ({columns}). "
        "Its rows cannot be read with the current ones. Leave the version out of the range."
    ),
)
TAKEN_CHANGE_COLUMNS = _refused(
    name="row changes of a table with a column `_change_type`",
    area="changes",
    condition="the schema has a column `_change_type` or another one of change data",
    checked=("delta.changes.change_schema.check_names",),
    message=(
        "The table has its own column {column!r}, which is also the column for the kind of a change, so its row "
        "changes are not supported. file_changes() returns the changed files."
    ),
)

TIME_TRAVEL = _read(
    name="by version and by time, with Delta's adjusted commit times or in-commit timestamps",
    area="time travel",
    condition="every table",
    checked=("delta.log.times",),
)
VACUUM = _read(
    name="the files that VACUUM would delete",
    area="retention",
    condition="every table",
    checked=("delta.maintenance.retention",),
)
VACUUM_OF_CLEANED_LOGS = _refused(
    name="VACUUM of a log that begins after the retention time",
    area="retention",
    condition="commits of the requested time were cleaned up",
    checked=("delta.maintenance.retention.Vacuum._removed",),
    message=(
        "The effect of VACUUM is unknown: the log {begins}, not {age} ago or earlier, and older removes are in a "
        "checkpoint. {advice}."
    ),
)
VACUUM_WITHOUT_TIMES = _refused(
    name="VACUUM on a storage without modification times",
    area="retention",
    condition="the storage's listing",
    checked=("delta.maintenance.retention._modified",),
    message=(
        "The effect of VACUUM is unknown: the storage reports no modification time for {path}. Run VACUUM with DRY RUN."
    ),
)
CLEANED_VERSIONS = _refused(
    name="versions whose log was cleaned up: they are in the history with `readable` false",
    area="time travel",
    condition="the version cannot be reconstructed from a checkpoint and commits",
    checked=("delta.log.log_segment",),
)

FEATURES: tuple[Feature, ...] = (
    READER_VERSIONS,
    OTHER_READER_VERSIONS,
    *READER_FEATURES,
    OTHER_READER_FEATURES,
    LOG,
    HISTORY,
    ACTIONS_BESIDE_FILES,
    STAGED_COMMITS,
    CLUSTERING,
    ROW_TRACKING,
    PATHS,
    COLUMN_MAPPING_MODES,
    OTHER_DELETION_VECTORS,
    LARGE_DELETION_VECTORS,
    OLD_CALENDARS,
    *COLLATIONS,
    UNKNOWN_TYPES,
    UNREAD_TYPES,
    TYPE_CHANGES,
    PARTITION_TYPES,
    PARQUET,
    OTHER_FILE_FORMATS,
    SHREDDED_FILES,
    FILES_OF_OTHER_TYPES,
    CHANGES,
    CHANGE_DATA_FEED,
    DIFFERENCE,
    CHANGES_ACROSS_SCHEMAS,
    CHANGES_ACROSS_PARTITIONS,
    TAKEN_CHANGE_COLUMNS,
    TIME_TRAVEL,
    VACUUM,
    VACUUM_OF_CLEANED_LOGS,
    VACUUM_WITHOUT_TIMES,
    CLEANED_VERSIONS,
    *SHARED,
)
"""All features, in the order of the guide."""
