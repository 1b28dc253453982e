"""The features of Hudi tables: those that are read, and those that are refused by name.

Source: hudi specification, "Table Versions"; hudi release notes.
"""

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.features import AVRO, SHARED, declare_refused, declare_supported, features_in

_ADVICE = "Its history and files can still be read; read the rows with Hudi's own engines."

TABLE_VERSIONS = declare_supported(
    name="table versions 1 to 9",
    area="versions",
    condition="hoodie.table.version",
)
OTHER_TABLE_VERSIONS = declare_refused(
    name="other table versions",
    area="versions",
    condition="hoodie.table.version is 0, or greater than 9",
    message="{root} has the Hudi table version {version}; 1 to 9 are supported. Open it with Hudi's own engines, "
    "which upgrade tables of version 0.",
)
OTHER_LAYOUTS = declare_refused(
    name="other timeline layouts",
    area="versions",
    condition="hoodie.timeline.layout.version is not 1 or 2",
    message="{root} has the timeline layout {layout}; 1 and 2 are supported. Open it with Hudi's own engines.",
)
OTHER_METADATA_FORMATS = declare_refused(
    name="timelines of other formats",
    area="versions",
    condition="hoodie.table.format is not native",
    message="{root} keeps its timeline in the format {format!r} (hoodie.table.format); only Hudi's own is supported. "
    "Open it with the engine that wrote it.",
)
METADATA_TABLES = declare_refused(
    name="metadata tables",
    area="versions",
    condition="the folder .hoodie/metadata of a table is opened",
    message="{root} is the metadata table of a Hudi table, which is not supported. Open the table that it belongs to.",
)
TIMELINES = declare_supported(
    name="timeline layouts 1 and 2, with their archives",
    area="versions",
    condition="hoodie.timeline.layout.version",
)
ZONES = declare_supported(
    name="times in UTC, and those of writers in other zones as their clocks showed them: their zones are not recorded",
    area="versions",
    keyword="hoodie.table.timeline.timezone",
    condition="hoodie.table.timeline.timezone is LOCAL, or not set",
)

COPY_ON_WRITE = declare_supported(
    name="copy-on-write tables",
    area="rows",
    condition="hoodie.table.type=COPY_ON_WRITE",
)
MERGE_ON_READ = declare_supported(
    name="merge-on-read tables: log files with Avro and parquet blocks, deletes, rollbacks and log compaction",
    area="rows",
    condition="hoodie.table.type=MERGE_ON_READ",
)
MERGE_MODES = declare_supported(
    name="commit-time and event-time ordering, partial updates",
    area="rows",
    condition="hoodie.record.merge.mode, hoodie.table.partial.update.mode",
)
CUSTOM_MERGES = declare_refused(
    name="custom payload classes and record mergers",
    area="rows",
    condition="a file slice has log files, and their records are merged by a class that is not known",
    message=(
        "The log files of the table are merged by {merger!r}, a class of the writer that is not supported. " + _ADVICE
    ),
)
PARTIAL_UPDATE_MODES = declare_refused(
    name="other partial update modes",
    area="rows",
    keyword="hoodie.table.partial.update.mode",
    condition="a file slice has log files, and the mode is not IGNORE_DEFAULTS or FILL_UNAVAILABLE",
    message="The log files of the table need the partial update mode {mode!r}, which is not supported. " + _ADVICE,
)
SCHEMA_ON_READ = declare_refused(
    name="schema on read",
    area="rows",
    keyword="hoodie.schema.on.read.enable",
    condition="a commit up to the version records latest_schema",
    message=(
        "Columns of the table were changed by schema on read before version {version}, which finds them by ids. This "
        "is not supported: a renamed column would become null. " + _ADVICE
    ),
)
BOOTSTRAPPED_FILES = declare_refused(
    name="bootstrapped files without their rows",
    area="rows",
    keyword="METADATA_ONLY",
    condition="a file slice begins at the instant 00000000000001, and hoodie.bootstrap.base.path is set",
    message=(
        "The file {path} has only the keys of rows whose columns are in files outside of the table "
        "(hoodie.bootstrap.base.path), which are not read. " + _ADVICE
    ),
)
OTHER_BASE_FILES = declare_refused(
    name="base files other than parquet and ORC",
    area="data files",
    keyword="hoodie.table.base.file.format",
    condition="a base file is of the format HFile or Lance",
    message="The base file {path} is not a parquet or ORC file, which is not supported. " + _ADVICE,
)
DROPPED_PARTITION_COLUMNS = declare_refused(
    name="dropped partition columns that paths do not contain",
    area="rows",
    keyword="hoodie.datasource.write.drop.partition.columns",
    condition="partition columns are not in the files, and are formatted times, or their paths have other levels",
    message=(
        "The partition columns {columns} are not in the data files (hoodie.datasource.write.drop.partition.columns), "
        "and the path {path!r} does not contain their values. " + _ADVICE
    ),
)
UNIONS = declare_refused(
    name="columns of several types",
    area="types",
    condition="a column of the Avro schema is a union of several types",
    message="A column has one of the types {types}, which is not supported. " + _ADVICE,
)
VECTORS = declare_supported(
    name="vectors, as lists of a fixed length",
    area="types",
    condition="a column of the Avro schema has the logical type vector",
)
UNREAD_TYPES = declare_refused(
    name="variants, blobs, and vectors of more than 1,048,576 items",
    area="types",
    condition="a column of the Avro schema has the logical type variant, vector or blob",
    message="A column has the type {type!r}, which is not supported. " + _ADVICE,
)
TYPE_CHANGES = declare_refused(
    name="numbers with a fraction that became text, and other changes of types",
    area="types",
    condition="the type of a column in a file cannot be read as the table's without loss",
    message="values of the type {stored} are not read as {type}",
)
OTHER_BLOCKS = declare_refused(
    name="blocks of log files other than Avro, parquet, deletes and commands",
    area="data files",
    condition="a log file has a block of HFile or of an unknown type",
    message="The log file {path} has a block of type {type}, which is not supported. " + _ADVICE,
)
OTHER_AVRO_BLOCKS = declare_refused(
    name="Avro blocks of other versions",
    area="data files",
    condition="an Avro block of a log file has a version other than 1 to 3",
    message="The log file {path} has an Avro block of version {version}, which is not supported. " + _ADVICE,
)
OLD_DELETE_BLOCKS = declare_refused(
    name="delete blocks of version 2",
    area="data files",
    condition="a delete block has the version 2, with keys and ordering values in Java serialization",
    message=(
        "The log file {path} has a delete block of version {version}, whose ordering values are serialized by Java, "
        "which is not supported. Compact the table with a newer Hudi. " + _ADVICE
    ),
)
DELETES_OF_COMPUTED_KEYS = declare_refused(
    name="delete blocks where keys are not stored and not plain",
    area="rows",
    keyword="hoodie.populate.meta.fields",
    condition="keys are not stored, a log file has a delete block, and a key column is not a number or text",
    message=(
        "Records of the table have no stored keys (hoodie.populate.meta.fields=false), and the text of the key "
        "{columns} in delete blocks is not known. " + _ADVICE
    ),
)
ROW_CHANGES = declare_supported(
    name="rows that commits changed, and differences between the rows of two versions",
    area="row changes",
    condition="mode='auto', mode='delta' or mode='diff'",
)
CHANGE_DATA = declare_supported(
    name="recorded change data in all logging modes",
    area="row changes",
    keyword="hoodie.table.cdc.enabled",
    condition="mode='auto' or mode='changelog'",
)
CHANGE_COLUMN_CONFLICT = declare_refused(
    name="row changes of tables that have a column rowkind",
    area="row changes",
    condition="a column is called rowkind",
    message=Message(
        "The table has a column rowkind, which is also the column for the kind of a change. Use ",
        Hint("table.diff_rows", {"a": ..., "b": ...}),
        ".",
    ),
)
CLEANING = declare_supported(
    name="the files that the cleaner would delete, by commits, hours or file versions; savepoints keep theirs",
    area="retention",
    condition="every table",
)
SAVEPOINTS = declare_supported(name="savepoints as tags", area="versions", condition="a completed savepoint")

FEATURES = (*features_in(globals()), *AVRO, *SHARED)
"""All features, in the order of the guide."""
