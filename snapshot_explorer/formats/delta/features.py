"""The features of Delta tables: those that are read, and those that are refused by name.

Source: delta PROTOCOL.md, "Table Features", "Requirements for Readers".
"""

from functools import partial

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.features import (
    COLLATIONS,
    COLUMN_TYPES,
    ROW_CHANGES,
    SHARED,
    SHREDDING,
    declare_refused,
    declare_supported,
    features_in,
)

_ADVICE = "Its history, schema and files can still be read; read the rows with Delta's own engines."

_read_feature = partial(declare_supported, condition="the protocol lists it in readerFeatures", area="reader features")
_refused_feature = partial(
    declare_refused,
    condition="the protocol lists it in readerFeatures",
    area="reader features",
    message=(
        "Unsupported Delta read feature: the table requires reader features that are not supported: {named}. " + _ADVICE
    ),
)

READER_VERSIONS = declare_supported("reader versions 1 to 3", "minReaderVersion of the protocol", area="versions")
OTHER_READER_VERSIONS = declare_refused(
    "newer reader versions",
    "minReaderVersion of the protocol is not 1, 2 or 3",
    area="versions",
    message="Unsupported Delta protocol version: the table requires reader version {version} and writer version "
    "{writer}; reader versions 1, 2 and 3 are supported. " + _ADVICE,
)

_WKB = "as WKB"

READER_FEATURES = (
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
    _read_feature(keyword="geospatial", name="columns of type geometry and geography", note=_WKB),
    _read_feature(keyword="geospatial-dev", name="geometry and geography before their release", note=_WKB),
    _refused_feature(keyword="redirectReaderWriter-preview", name="the table has moved to another location"),
    _refused_feature(keyword="adaptiveMetadata-preview", name="the list of files is not in the log"),
)
"The known reader features, by their name in the protocol."

OTHER_READER_FEATURES = _refused_feature(name="any other reader feature")

LOG = declare_supported(
    "the log: commits, checkpoints of every form, sidecars, checksums", "every table", area="metadata"
)
HISTORY = declare_supported("`history` and `detail` as DESCRIBE shows them", "every table", area="metadata")
ACTIONS_BESIDE_FILES = declare_supported("domains, transactions", "domainMetadata and txn actions", area="metadata")
STAGED_COMMITS = declare_refused(
    "staged commits, which only the catalog or the coordinator can confirm",
    "the table has catalogManaged or coordinatedCommits, and staged commits after the newest published one",
    area="metadata",
    message="{root} has the feature {feature}: its catalog or commit coordinator decides what was committed. {folder} "
    "contains commits from version {staged} on that are not published, so the newest version is unknown without it. "
    "Publish them with Delta's own engine, then open the table again.",
)

CLUSTERING = declare_supported(
    "liquid clustering", "the writer feature clustering, which does not concern readers", area="rows"
)
ROW_TRACKING = declare_supported(
    "row tracking (`_row_id`, `_row_commit_version`)", "the table property delta.enableRowTracking", area="rows"
)
PATHS = declare_supported("escaped and absolute paths", "add actions with such paths", area="rows")
COLUMN_MAPPING_MODES = declare_refused(
    "column mapping modes other than none, name and id",
    "the table property delta.columnMapping.mode has another value",
    area="rows",
    message="The table has the column mapping mode {mode!r} (delta.columnMapping.mode); none, name and id are "
    "supported. Read it with a newer version of this package.",
)
OTHER_DELETION_VECTORS = declare_refused(
    "deletion vectors that are stored neither inline nor in a file",
    "an add action has a deletion vector whose storageType is not u, p or i",
    area="rows",
    message="The deletion vector of {path} has the unknown storage type {storage_type!r}. Read the rows with Delta's "
    "own engines.",
)
LARGE_DELETION_VECTORS = declare_refused(
    "deletion vectors of more than 256 MiB",
    "the size of a deletion vector in an add action",
    area="rows",
    message="The deletion vector of {path} has {size:,} bytes; the limit is {limit:,}. Read the rows with Delta's own "
    "engines.",
)
OLD_CALENDARS = declare_refused(
    "timestamps before 1900 in the hybrid calendar of old versions of Spark",
    "the footer of a parquet file says so, and its zone is not UTC",
    area="rows",
    message="it contains timestamps before 1900 in the hybrid calendar and local time of old versions of Spark{zone}, "
    "which are not supported",
)

UNKNOWN_TYPES = declare_refused(
    "column types that are not in the protocol",
    "the schema has such a column",
    area="types",
    message="The column {column!r} has the type {type}, which is not supported. " + _ADVICE,
)
UNREAD_TYPES = declare_refused(
    "types without an Arrow equivalent",
    "the schema has such a column",
    area="types",
    message="Columns of type {type} are not supported. The table's history, schema and files can still be read.",
)
TYPE_CHANGES = declare_refused(
    "type changes that Delta does not allow",
    "the field's delta.typeChanges",
    area="types",
    message=(
        "The column {column!r} was changed from {before} to {after}; reading older files with this change is not "
        "supported. "
    )
    + _ADVICE,
)
PARTITION_TYPES = declare_refused(
    "partition columns of nested and spatial types",
    "a partition column is an array, a map, a struct, a variant, a geometry or a geography",
    area="types",
    message="Partition columns of type {type} are not supported.",
)

PARQUET = declare_supported("parquet", "the provider in the table's metadata", area="data files")
OTHER_FILE_FORMATS = declare_refused(
    "data files that are not parquet",
    "the provider in the table's metadata",
    area="data files",
    message="The table's data files have the format {provider!r}, not parquet. " + _ADVICE,
)

CHANGES = declare_supported(
    "change data files where they exist, otherwise changes from added and removed files and deletion vectors",
    'mode="auto"',
    area="changes",
)
CHANGE_DATA_FEED = declare_supported(
    '`mode="changelog"` as `readChangeFeed`', "the table property delta.enableChangeDataFeed", area="changes"
)
DIFFERENCE = declare_refused(
    '`mode="diff"`',
    "every table, as Delta has no primary keys",
    area="changes",
    message=Message(
        Hint("", {"mode": "diff"}),
        " needs a primary key, and Delta tables have none. Use ",
        Hint("", {"mode": "auto"}),
        " for the changes of each commit, or compare two versions with ",
        Hint("table.diff_rows", {"a": ..., "b": ...}),
        ".",
    ),
)
CHANGES_ACROSS_SCHEMAS = declare_refused(
    "a range in which columns were dropped, renamed or changed their type",
    "the schemas of the range",
    area="changes",
    message=Message(
        "The changes from version {version} on cannot be read with the schema of version {reading} "
        "(DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE): {what}. Start after that change; ",
        Hint("snapshot.changelog"),
        " reads one version with its own schema.",
    ),
)
CHANGES_ACROSS_PARTITIONS = declare_refused(
    "a range in which the partition columns were changed",
    "a file of the range has other partition values than the schema",
    area="changes",
    message="Version {version} changes the file {path}, which was written with other partition columns ({columns}). "
    "Its rows cannot be read with the current ones. Leave the version out of the range.",
)

TIME_TRAVEL = declare_supported(
    "by version and by time, with Delta's adjusted commit times or in-commit timestamps",
    "every table",
    area="time travel",
)
VACUUM = declare_supported("the files that VACUUM would delete", "every table", area="retention")
VACUUM_WITHOUT_TIMES = declare_refused(
    "VACUUM on a storage without modification times",
    "the storage's listing",
    area="retention",
    message="The effect of VACUUM is unknown: the storage reports no modification time for {path}. Run VACUUM with "
    "DRY RUN.",
)
CLEANED_VERSIONS = declare_refused(
    "versions whose log was cleaned up: they are in the history with `readable` false",
    "the version cannot be reconstructed from a checkpoint and commits",
    area="time travel",
)

FEATURES = (*features_in(globals()), *READER_FEATURES, *ROW_CHANGES, *COLUMN_TYPES, *SHREDDING, *COLLATIONS, *SHARED)
