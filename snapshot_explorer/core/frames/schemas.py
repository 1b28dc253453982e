"""The Arrow schema of every metadata frame.

A column's metadata contains `meaning` and, for counts and sizes, `unit` (`files`, `rows`, `bytes`). Unknown is
null, never 0 or "". Null means `not checked` where `words` is `checked` or `readable`, and is drawn so. Text is never
shortened in plain text where there is `whole`; where there is `prose`, it is sentences that are wrapped. Where there is
`value`, it is a value of the table's rows, which is not changed even if it is a URL with a secret.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

UTC_MILLIS = pa.timestamp("ms", tz="UTC")
PARTITION = pa.map_(pa.string(), pa.string())
_MANY = (pa.Array, pa.ChunkedArray, list)
"""Types of the values of a column; others are one value."""


def _column(  # noqa: PLR0913 - the properties of a column
    name: str,
    dtype: pa.DataType,
    meaning: str,
    unit: str | None = None,
    words: str | None = None,
    *,
    is_whole: bool = False,
    is_prose: bool = False,
    is_value: bool = False,
) -> pa.Field:
    metadata = {"meaning": meaning} | ({"unit": unit} if unit else {}) | ({"words": words} if words else {})
    metadata |= ({"whole": "yes"} if is_whole else {}) | ({"prose": "yes"} if is_prose else {})
    metadata |= {"value": "yes"} if is_value else {}
    return pa.field(name, dtype, metadata=metadata)


COMMITS = pa.schema(
    [
        _column("version", pa.int64(), "Paimon snapshot id, Delta version, Iceberg sequence number, Hudi instant"),
        _column("committed_at", UTC_MILLIS, "when it was committed, as the format records it"),
        _column(
            "readable",
            pa.string(),
            "whether the version can be loaded: yes, metadata (but no rows), no; null if not checked",
            words="readable",
        ),
        _column("kind", pa.string(), "the kind of commit, common to all formats"),
        _column("operation", pa.string(), "the operation, in the writer's own words"),
        _column("user", pa.string(), "the recorded user"),
        _column("identifier", pa.string(), "the writer's identifier of the commit"),
        _column("schema_id", pa.int64(), "the schema after the commit"),
        _column("added_files", pa.int64(), "data files added", "files"),
        _column("removed_files", pa.int64(), "data files removed", "files"),
        _column("added_rows", pa.int64(), "rows in the added files", "rows"),
        _column("removed_rows", pa.int64(), "rows in the removed files, and those deleted by vectors", "rows"),
        _column("added_bytes", pa.int64(), "size of the added files", "bytes"),
        _column("removed_bytes", pa.int64(), "size of the removed files", "bytes"),
        _column("rows_inserted", pa.int64(), "rows that the commit inserted; null if not counted", "rows"),
        _column("rows_updated", pa.int64(), "rows that the commit updated; null if not counted", "rows"),
        _column("rows_deleted", pa.int64(), "rows that the commit deleted; null if not counted", "rows"),
        _column("rows_rewritten", pa.int64(), "unchanged rows that moved to other files; null if not counted", "rows"),
        _column(
            "rows_source",
            pa.string(),
            "where these four counts are from: writer (recorded), metadata (proven by the files), rows (read and "
            "compared); if not counted: net (the net change is added_rows less removed_rows), contradicted (the "
            "writer's counts and the files disagree), or null",
        ),
        _column("total_rows", pa.int64(), "rows in all live files, less those deleted by vectors", "rows"),
        _column("watermark", UTC_MILLIS, "event-time watermark"),
        _column("tags", pa.list_(pa.string()), "tags on the version"),
        _column("details", pa.string(), "what the format stored about the commit, except its files, as JSON"),
    ]
)
"""`readable` is null unless a needed file is known to be missing: data files are not looked for by default.

- Paimon: `no` if the commit's delta manifest list or manifests are missing.
- Delta: `no` if the log does not lead to the version; `metadata` if a file is missing that it needs and that a commit
  removed since.
- Iceberg: `no` if the manifest list is missing, on the local disk.

`Table.verify` looks for every data file and for the metadata that READABILITY lists. Afterwards COMMITS of the
same `Table` has its last result for these commits in place of null, `yes` included; a version that it did not cover
keeps the value above.

Row counts are of files, less the rows that deletion vectors delete: a commit that deletes with vectors has
`removed_rows`. If the writer did not record the number of these rows, or an Iceberg version has position deletes, the
affected counts are null. For Hudi, counts of rows that log files may change are null. Rows that readers merge by their
primary key or join from several files (Paimon), and rows that equality deletes remove (Iceberg), are counted: the field
of `total_rows` is ROWS_IN_FILES then, whose heading says so.

`rows_inserted`, `rows_updated` and `rows_deleted` are of the rows of the table, not of its files: all three are known,
or none is. An updated row is one that the statement wrote anew, with other values or the same. `rows_rewritten` counts
rows that moved from removed to added files without a change; it may be null alone. See `formats.row_counts`."""

ROWS_IN_FILES = COMMITS.field("total_rows").with_metadata(
    {**COMMITS.field("total_rows").metadata, "heading": "rows in files"}
)
"""`total_rows` of COMMITS where readers may return other rows: they merge those with one key, for example."""

MANIFESTS = pa.schema(
    [
        _column("version", pa.int64(), "the version whose manifest lists contain the manifest"),
        _column("list", pa.string(), "base, delta, changelog or index"),
        _column("list_path", pa.string(), "the manifest list file; null for the index"),
        _column("position", pa.int64(), "position in its list, from 0"),
        _column("path", pa.string(), "the manifest file"),
        _column("size_bytes", pa.int64(), "size of the manifest file", "bytes"),
        _column("added_files", pa.int64(), "ADD entries", "files"),
        _column("removed_files", pa.int64(), "DELETE entries", "files"),
        _column("schema_id", pa.int64(), "the newest schema of its entries"),
        _column("partition_min", PARTITION, "minimum per partition column"),
        _column("partition_max", PARTITION, "maximum per partition column"),
    ]
)

_GROUP = [
    _column("partition", PARTITION, "partition column to value as text; empty without partitions"),
    _column("bucket", pa.int32(), "bucket; null where the format has none"),
]
_SIZES = [
    _column("files", pa.int64(), "data files", "files"),
    _column("rows", pa.int64(), "rows in the files, before merges and deletes", "rows"),
    _column("size_bytes", pa.int64(), "size of the files", "bytes"),
]
_FILE = [
    _column("path", pa.string(), "the data file, relative to the table's root or absolute"),
    *_GROUP,
    _column("level", pa.int32(), "level of the merge tree; null if the format has none"),
    _column("rows", pa.int64(), "rows in the file, before merges and deletes", "rows"),
    _column("size_bytes", pa.int64(), "size of the file", "bytes"),
    _column("schema_id", pa.int64(), "the schema of the file's writer"),
    _column("deletion_vector", pa.string(), "the location of its deletion vector; null if it has none"),
    _column("deleted_rows", pa.int64(), "rows that its deletion vector removes", "rows"),
    _column("data_change", pa.bool_(), "false if the file only rearranges rows; null if unknown"),
]

CHANGES = pa.schema(
    [
        _column("version", pa.int64(), "the commit that made the change"),
        _column("change", pa.string(), "add or remove"),
        _column("list", pa.string(), "delta, or changelog for files of row changes"),
        *_FILE,
    ]
)

FILES = pa.schema([*_FILE, _column("added_version", pa.int64(), "the version that added it; null if unknown")])

LIFETIMES = pa.schema(
    [
        *(field for field in _FILE if field.name not in ("deletion_vector", "deleted_rows")),
        _column(
            "deletion_vector",
            pa.string(),
            "the location of its deletion vector at `first_version`; null if it had none",
        ),
        _column("deleted_rows", pa.int64(), "rows that this deletion vector removed", "rows"),
        _column("added_version", pa.int64(), "the version that added it; null if unknown"),
        _column("added_at", UTC_MILLIS, "the commit time of that version; null if unknown"),
        _column("first_version", pa.int64(), "the first known version with the file: added_version or later"),
        _column("removed_version", pa.int64(), "the first known version without the file; null while live"),
        _column(
            "removed_at",
            UTC_MILLIS,
            "the commit time of that version; null while live, or if a version before it that is missing or unreadable "
            "may have removed the file",
        ),
    ]
)

ENTRIES = pa.schema(
    [
        _column("change", pa.string(), "add or remove"),
        *_FILE,
    ]
)

COMPARED_MANIFESTS = pa.schema(
    [
        _column(
            "status",
            pa.string(),
            "carried over, added, removed, merged away, rewritten or left behind; null if unknown",
        ),
        _column(
            "list_a", pa.string(), "the list of A that contains it: base, delta, changelog, index; null if none does"
        ),
        _column("list_b", pa.string(), "the list of B that contains it; null if none does"),
        *(field for field in MANIFESTS if field.name not in ("version", "list", "list_path", "position")),
    ]
)

COMPARED_FILES = pa.schema(
    [
        _column("change", pa.string(), "added, removed, moved (to another level) or deletions (of rows)"),
        _column("data_change", pa.bool_(), "false if a commit only rearranged rows; null if unknown"),
        _column("version", pa.int64(), "the version of the change; null if unknown"),
        *_FILE[:7],
        _column("level_before", pa.int32(), "the level in A, for a file in both"),
        _column("deleted_rows", pa.int64(), "rows that its deletion vector removes", "rows"),
        _column("deleted_rows_before", pa.int64(), "rows that its vector removed in A, for a file in both", "rows"),
    ]
)

COMPARED_PARTITIONS = pa.schema(
    [
        *_GROUP,
        _column("removed_files", pa.int64(), "data files only in A", "files"),
        _column("added_files", pa.int64(), "data files only in B", "files"),
        _column("removed_rows", pa.int64(), "rows in the removed files, before merges and deletes", "rows"),
        _column("added_rows", pa.int64(), "rows in the added files, before merges and deletes", "rows"),
        _column("net_rows", pa.int64(), "added minus removed rows", "rows"),
        _column(
            "deleted_rows", pa.int64(), "additional rows that deletion vectors of shared files remove in B", "rows"
        ),
        _column("net_bytes", pa.int64(), "size of added minus size of removed files", "bytes"),
        _column("shared_files", pa.int64(), "data files in both", "files"),
    ]
)

COMPARED_SCHEMAS = pa.schema(
    [
        _column("change", pa.string(), "added, dropped, renamed, widened, narrowed, retyped, reordered, ..."),
        _column("id", pa.int64(), "the column's field id; null if the format has none, and for keys"),
        _column("column", pa.string(), "the column's name in B, or in A if it was dropped; null for keys and order"),
        _column("before", pa.string(), "its definition in A"),
        _column("after", pa.string(), "its definition in B"),
    ]
)

COMPARED_PROPERTIES = pa.schema(
    [
        _column("change", pa.string(), "added, removed or changed"),
        _column("property", pa.string(), "the property's name"),
        _column("before", pa.string(), "its value in A"),
        _column("after", pa.string(), "its value in B"),
    ]
)

COMPARED = pa.schema(
    [
        _column(
            "part",
            pa.string(),
            "in A, removed, added, shared, in B; and files that commits only rearranged: null if commits are unknown",
        ),
        *_SIZES,
    ]
)

SKIPPED = pa.schema([*_GROUP, *_SIZES, _column("skipped", pa.string(), "why the files are not read; null if they are")])

PLAN = SKIPPED.insert(
    2, _column("raw", pa.bool_(), "whether rows need no merge and no deletion vector; null if not read")
)

HEALTH_FINDINGS = pa.schema(
    [
        _column("state", pa.string(), "act, watch, ok; unknown if the metadata does not contain the number"),
        _column("finding", pa.string(), "the name of the finding"),
        _column("value", pa.float64(), "the measured number; null if unknown"),
        _column("watch_from", pa.float64(), "the threshold to watch"),
        _column("act_from", pa.float64(), "the threshold to act; null if there is none"),
        _column("found", pa.string(), "the number in words"),
        _column("threshold", pa.string(), "the thresholds in words, and their source"),
        _column("meaning", pa.string(), "the consequence"),
        _column("advice", pa.string(), "the recommended action, with the engine's own command"),
    ]
)

_SMALL = [
    _column("small_files", pa.int64(), "files below the small size, if a partition and bucket has several", "files"),
    _column("mergeable_files", pa.int64(), "files saved by merging these to the target size", "files"),
]
_DELETED = [
    _column("vector_files", pa.int64(), "files with a deletion vector; null if unknown", "files"),
    _column("deleted_rows", pa.int64(), "rows that deletion vectors remove; null if unknown", "rows"),
]

HEALTH_PARTITIONS = pa.schema(
    [
        *_GROUP,
        *_SIZES,
        _column("min_bytes", pa.int64(), "size of the smallest file", "bytes"),
        _column("median_bytes", pa.int64(), "median size of a file", "bytes"),
        _column("max_bytes", pa.int64(), "size of the largest file", "bytes"),
        *_SMALL,
        _column("share", pa.float64(), "fraction of the bytes of the table"),
        _column("skew", pa.float64(), "its bytes divided by the median of all partitions and buckets"),
        _column(
            "sorted_runs", pa.int64(), "sorted runs: level-0 files, and higher levels with files; null without keys"
        ),
        *_DELETED,
        _column("deleted_ratio", pa.float64(), "fraction of its rows that deletion vectors remove"),
        _column("delete_records", pa.int64(), "rows in its files that delete others; null if unknown", "rows"),
        _column("delete_ratio", pa.float64(), "fraction of its rows that delete others"),
    ]
)

HEALTH_LEVELS = pa.schema(
    [
        _column("level", pa.int32(), "level of the merge tree; 0 contains the newest files"),
        *_SIZES,
        _column("share", pa.float64(), "fraction of the bytes of the table"),
        _column("buckets", pa.int64(), "partitions and buckets with files of the level"),
    ]
)

HEALTH_HISTORY = pa.schema(
    [
        _column("version", pa.int64(), "the version"),
        COMMITS.field("committed_at"),
        *_SIZES,
        _column("mean_bytes", pa.int64(), "mean size of a file", "bytes"),
        _column("median_bytes", pa.int64(), "median size of a file", "bytes"),
        *_SMALL,
        _column("groups", pa.int64(), "partitions and buckets that have files"),
        _column("level0_files", pa.int64(), "files of level 0; null if the format has no levels", "files"),
        _column("most_sorted_runs", pa.int64(), "the maximum of sorted runs in a bucket; null without keys"),
        *_DELETED,
    ]
)


RETAINED = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at")),
        _column(
            "outcome", pa.string(), "kept, lost (can be loaded now, but not afterwards), or gone (cannot be loaded now)"
        ),
        _column("because", pa.string(), "the reason", is_prose=True),
    ]
)

FREED = pa.schema(
    [
        _column(
            "what",
            pa.string(),
            "data, changelog, change data, deletes, deletion vector, or untracked (by the log); of metadata files "
            "commit, checkpoint, checksum, manifest list, manifest, statistics, snapshot or index",
        ),
        _column("path", pa.string(), "the file, relative to the table's root or absolute"),
        _column("partition", PARTITION, "partition column to value as text; null if unknown"),
        _column("size_bytes", pa.int64(), "size of the file", "bytes"),
        _column("removed_version", pa.int64(), "the first version without it; null if unknown"),
    ]
)

HOLDERS = pa.schema(
    [
        _column("holder", pa.string(), "kept versions, tag, consumer, or branch (which keeps no files: see `note`)"),
        _column("name", pa.string(), "the tag, consumer or branch; null for the kept versions"),
        _column("version", pa.int64(), "the version of the holder; null if it has none"),
        _column("files", pa.int64(), "data files that it keeps, without those of the newest version", "files"),
        _column("size_bytes", pa.int64(), "size of these files", "bytes"),
        _column(
            "exclusive_files",
            pa.int64(),
            "files that nothing else keeps: without the holder they would be deleted",
            "files",
        ),
        _column("exclusive_bytes", pa.int64(), "size of these files", "bytes"),
        _column("note", pa.string(), "a remark; null if there is none", is_prose=True),
    ]
)

USAGE = pa.schema(
    [
        _column(
            "group",
            pa.string(),
            "what the files are counted by: a holder, operation (else the kind), user, day (UTC), "
            "partition or size class; for versions their tags; null if unknown",
        ),
        _column("version", pa.int64(), "the version; null if the group is not one"),
        _column("committed_at", UTC_MILLIS, "the commit time of the version; null if unknown"),
        _column("files", pa.int64(), "data files, each counted once", "files"),
        _column("size_bytes", pa.int64(), "size of these files; null if one is unknown", "bytes"),
        _column("live_files", pa.int64(), "files of these that the newest version has", "files"),
        _column("live_bytes", pa.int64(), "size of these files", "bytes"),
        _column("held_files", pa.int64(), "files of these that the newest version does not have", "files"),
        _column("held_bytes", pa.int64(), "size of these files", "bytes"),
        _column(
            "exclusive_files",
            pa.int64(),
            "files that nothing else holds: without the group they could be deleted; null if unknown, or if the group "
            "cannot be removed",
            "files",
        ),
        _column("exclusive_bytes", pa.int64(), "size of these files", "bytes"),
    ]
)

USAGE_BY_COLUMN = pa.schema(
    [
        _column("column", pa.string(), "the column, or its name in files alone; null for other bytes", is_whole=True),
        _column(
            "what",
            pa.string(),
            "column; only in files (a dropped column, or one of the format, or of unknown identity); rest of the files "
            "(footers and indexes); or not checked (files without a footer, or that could not be read)",
        ),
        _column("files", pa.int64(), "live data files that contain some", "files"),
        _column("size_bytes", pa.int64(), "compressed size in these files; null if a size is unknown", "bytes"),
    ]
)

USAGE_OVER_TIME = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at", "kind", "operation")),
        _column("files", pa.int64(), "data files that versions up to this one have, each counted once", "files"),
        _column("size_bytes", pa.int64(), "size of these files; null if one is unknown", "bytes"),
        _column("live_files", pa.int64(), "files of these that the version has", "files"),
        _column("live_bytes", pa.int64(), "size of these files", "bytes"),
        _column("held_files", pa.int64(), "files of these that only earlier versions have, which still exist", "files"),
        _column("held_bytes", pa.int64(), "size of these files", "bytes"),
        _column("added_bytes", pa.int64(), "size of the files that the commit added", "bytes"),
        _column(
            "rewritten_bytes",
            pa.int64(),
            "of these, bytes of a commit that changes no rows, such as a compaction; otherwise 0",
            "bytes",
        ),
        _column(
            "write_amplification",
            pa.float64(),
            "bytes added up to here for each byte added by commits that may change rows; null if unknown",
        ),
        _column(
            "removed_bytes",
            pa.int64(),
            "size of the files that the commit removed: the gain of a compaction is what exceeds added_bytes",
            "bytes",
        ),
        _column(
            "read_files",
            pa.int64(),
            "live files that metadata does not rule out for the conditions of where, each counted once for each "
            "condition; null without conditions",
            "files",
        ),
        _column("read_bytes", pa.int64(), "size of these files; null if one is unknown", "bytes"),
    ]
)

READABILITY = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at", "readable")),
        _column("reason", pa.string(), "why it cannot be loaded, or a condition; null if there is none", is_prose=True),
        _column("files", pa.int64(), "data files of the version; null if unknown", "files"),
        _column("missing_files", pa.int64(), "data files that do not exist; null if not checked", "files", "checked"),
        _column("missing_bytes", pa.int64(), "size of the missing files; null if not checked", "bytes", "checked"),
    ]
)
"""The files that are looked for, in addition to data files and deletion vectors or the files that contain them.
Recorded sizes are compared:

- Paimon: schemas, base and delta manifest lists, which are read, every manifest in them, and index manifests.
- Delta: the checkpoints and commits of the log.
- Iceberg: manifest lists, which are read, every manifest in them, and delete files.

`readable` is null for versions with files on another storage or a fallback branch, and where the size of a manifest of
Iceberg differs, which some writers record wrongly."""

FOUND_TABLES = pa.schema(
    [
        _column("name", pa.string(), "the table's folder, below the folder that was searched", is_whole=True),
        _column("format", pa.string(), "the name of its format; null if the folder could not be listed"),
        _column("version", pa.int64(), "the newest version; null without commits"),
        _column("committed_at", UTC_MILLIS, "when that version was committed"),
        _column("files", pa.int64(), "live data files of that version; null if not checked", "files", "checked"),
        _column("size_bytes", pa.int64(), "size of these files; null if not checked", "bytes", "checked"),
        _column("path", pa.string(), "the path for `open_table`"),
        _column(
            "problem",
            pa.string(),
            "why the table cannot be opened, or the folder not listed; null otherwise",
            is_prose=True,
        ),
    ]
)

BISECTED = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at")),
        _column("holds", pa.bool_(), "whether the condition holds; null where the version cannot be read"),
        _column("note", pa.string(), "why it cannot be read, or lacks a column; null otherwise", is_prose=True),
    ]
)

PROFILE = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at")),
        _column("column", pa.string(), "the column, as the last of the versions names it"),
        _column("rows", pa.int64(), "rows at the version; null if unknown", "rows"),
        _column("null_count", pa.int64(), "nulls in the column; null if unknown", "rows"),
        _column("null_rate", pa.float64(), "nulls by rows, to 6 digits"),
        _column("min", pa.string(), "the minimum as text, ignoring NaN; null if unknown", is_value=True),
        _column("max", pa.string(), "the maximum as text, ignoring NaN; null if unknown", is_value=True),
        _column("bounds", pa.string(), "which of these are bounds, and why; null where all are exact", is_prose=True),
    ]
)

TAGS = pa.schema(
    [_column("tag", pa.string(), "the tag"), *(COMMITS.field(name) for name in ("version", "committed_at"))]
)

BRANCHES = pa.schema(
    [
        _column("branch", pa.string(), "the branch"),
        _column("forked_version", pa.int64(), "the version of this history at which it starts; null if unknown"),
        _column("newest_version", pa.int64(), "its newest version, in its own numbering; null if it was not read"),
    ]
)

ANOMALIES = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at", "kind", "operation")),
        _column("measure", pa.string(), "rows, files, size_bytes, null_rate, min, max, or duplicates"),
        _column("column", pa.string(), "the column; null for numbers of the table"),
        _column("before", pa.string(), "the value at the version before", is_value=True),
        _column("value", pa.string(), "the value at the version", is_value=True),
        _column("rule", pa.string(), "what jumps, and the usual change, in words", is_prose=True),
    ]
)

BLAME = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at", "kind", "operation", "user")),
        _column(
            "change",
            pa.string(),
            "insert, update or delete, and at which versions where it is uncertain; or since when a row is present",
        ),
        _column("changed_columns", pa.list_(pa.string()), "the columns that an update changed; null otherwise"),
    ]
)
"""The columns of a blame; behind them come `before` and `after`, structs with the columns of the rows."""


ROW_HISTORY = pa.schema(
    [
        _column("_from_version", pa.int64(), "the first known version that has the row"),
        _column(
            "_to_version", pa.int64(), "the first known version after that without the row; null while it is there"
        ),
        _column(
            "_from_time",
            UTC_MILLIS,
            "the commit time of `_from_version`; null if an earlier version that is unknown may have had the row",
        ),
        _column(
            "_to_time",
            UTC_MILLIS,
            "the commit time of `_to_version`; null while the row is there, or if a version before it that is missing "
            "or unreadable may have removed the row",
        ),
    ]
)
"""The columns of a row history behind the columns of the rows; with more underscores if the table has the names."""


TRACED_VERSIONS = pa.schema(
    [
        _column(
            "branch", pa.string(), "the branch, or snapshot, in whose history it is; null in a format without branches"
        ),
        *(COMMITS.field(name) for name in ("version", "committed_at")),
        _column("rows", pa.int64(), "matching rows that reading the version returns; null if unknown", words="checked"),
        _column(
            "stored_rows",
            pa.int64(),
            "matching rows in its data files, including deleted ones; null if unknown",
            words="checked",
        ),
        _column("refs", pa.list_(pa.string()), "the tags and branches that name the version"),
        _column("reason", pa.string(), "why numbers are unknown"),
        _column("outcome", pa.string(), "kept or lost at the next clean-up by the table's settings; null if unknown"),
        _column("because", pa.string(), "the reason for the outcome"),
    ]
)

TRACED_FILES = pa.schema(
    [
        _column("path", pa.string(), "the data file, relative to the table's root or absolute"),
        _column("evidence", pa.string(), "read, metadata (it was not opened), missing, or unreadable"),
        _column(
            "stored_rows",
            pa.int64(),
            "matching rows in the file, including deleted ones; null if unknown",
            words="checked",
        ),
        _column(
            "bounds_name_value",
            pa.bool_(),
            "whether its statistics name the value; null if not checked",
            words="checked",
        ),
        _column("reason", pa.string(), "why the number is unknown"),
    ]
)

_CLEAN_UP = (
    _column("outcome", pa.string(), "removed or kept by the next clean-up by the table's settings; null if unknown"),
    _column("because", pa.string(), "the reason for the outcome"),
)

TRACED_CHANGELOGS = pa.schema(
    [
        TRACED_VERSIONS.field("branch"),
        _column("version", pa.int64(), "the version whose commit wrote the file"),
        _column("path", pa.string(), "the file of row changes, relative to the table's root or absolute"),
        _column(
            "rows",
            pa.int64(),
            "matching rows that reading its changes returns, before or after a change; null if unknown",
            words="checked",
        ),
        _column("reason", pa.string(), "why the number is unknown"),
        *_CLEAN_UP,
    ]
)

TRACED_METADATA = pa.schema(
    [
        TRACED_VERSIONS.field("branch"),
        _column("path", pa.string(), "the metadata file, relative to the table's root or absolute"),
        _column("what", pa.string(), "commit, checkpoint or manifest"),
        _column(
            "columns", pa.list_(pa.string()), "the columns of the condition whose recorded minimum or maximum matches"
        ),
        _column("first_version", pa.int64(), "the first version that needs it"),
        _column("last_version", pa.int64(), "the last version that needs it"),
        _column("since", UTC_MILLIS, "when the first version was committed; null if unknown"),
        _column("reason", pa.string(), "why it could not be examined; then `columns` is null"),
        *_CLEAN_UP,
    ]
)


CHECKED = pa.schema(
    [
        _column("table", pa.string(), "the name of the table"),
        _column("rule", pa.string(), "the name of the rule, or its condition"),
        _column("state", pa.string(), "passed or failed; null if it could not be evaluated", words="checked"),
        _column("found", pa.string(), "what was found, or why it could not be evaluated"),
        _column("version", pa.int64(), "the newest version that it is about"),
    ]
)

VERIFIED = pa.schema(
    [
        _column("path", pa.string(), "the data file, relative to the table's root or absolute"),
        _column("size_bytes", pa.int64(), "the recorded size", "bytes"),
        _column("rows", pa.int64(), "the recorded rows"),
        _column(
            "state",
            pa.string(),
            "ok, missing, resized, rows differ, or unreadable; null if not checked",
            words="checked",
        ),
        _column("reason", pa.string(), "what differs, or why it was not checked"),
    ]
)


_COMMIT_COUNTS = [
    COMMITS.field(name)
    for name in ("added_files", "removed_files", "added_rows", "removed_rows", "added_bytes", "removed_bytes")
]
_ROW_COUNTS = [COMMITS.field(f"rows_{name}") for name in ("inserted", "updated", "deleted")]

LAKE_OVERVIEW = pa.schema(
    [
        _column("name", pa.string(), "the table: its path below the folder, or its name in the catalog", is_whole=True),
        _column("state", pa.string(), "act, watch or ok; unknown where too few commits are known for a rhythm"),
        _column("format", pa.string(), "the name of its format; null if it could not be opened"),
        _column("version", pa.int64(), "the newest version; null without commits"),
        _column("committed_at", UTC_MILLIS, "when that version was committed"),
        _column("age_seconds", pa.int64(), "the time since the newest commit that changed data"),
        _column("rhythm", pa.string(), "late, on time, busy, or unknown"),
        _column("usual_seconds", pa.int64(), "the median time between recent commits; null if unknown"),
        _column("late_after_seconds", pa.int64(), "the age from which the table is late; null if unknown"),
        _column("commits", pa.int64(), "commits since the time in the title; null if there are more than were read"),
        *_ROW_COUNTS,
        _column("added_rows", pa.int64(), "rows in added files, without maintenance; null if unknown", "rows"),
        _column("removed_rows", pa.int64(), "rows in removed files, without maintenance; null if unknown", "rows"),
        _column("added_bytes", pa.int64(), "size of the files that they added", "bytes"),
        _column("removed_bytes", pa.int64(), "size of the files that they removed", "bytes"),
        _column(
            "total_rows", pa.int64(), "rows of the newest version, as COMMITS counts them; null if unknown", "rows"
        ),
        _column(
            "recent_rows",
            pa.list_(pa.int64()),
            "rows that each recent commit inserted, or added if not counted, oldest first",
        ),
        _column("schema_changes", pa.int64(), "commits since then that changed the schema; null if unknown"),
        _column("anomalies", pa.list_(pa.string()), "numbers that jump since then, and repeated appends, in words"),
        _column(
            "unreadable",
            pa.int64(),
            "recent versions that cannot be loaded; null if not checked",
            "versions",
            words="checked",
        ),
        _column("health", pa.string(), "act, watch, ok or unknown; null if not checked", words="checked"),
        _column(
            "note", pa.string(), "what the numbers leave out, and what is uncertain about the table; null if nothing"
        ),
        _column("problem", pa.string(), "why the table cannot be read; null otherwise"),
        _column("path", pa.string(), "the path for `open_table`", is_whole=True),
    ]
)

LAKE_COMMITS = pa.schema(
    [
        COMMITS.field("committed_at"),
        _column("table", pa.string(), "the table"),
        *(COMMITS.field(name) for name in ("version", "kind", "operation", "user")),
        *_COMMIT_COUNTS,
        *_ROW_COUNTS,
        *(
            COMMITS.field(name)
            for name in ("rows_rewritten", "rows_source", "total_rows", "schema_id", "readable", "details")
        ),
    ]
)

LAKE_SUMMARY = pa.schema(
    [
        _column("commits", pa.int64(), "commits"),
        _column("tables", pa.int64(), "tables with these commits"),
        _column("first_at", UTC_MILLIS, "the time of the first one"),
        _column("last_at", UTC_MILLIS, "the time of the last one"),
        _column("added_rows", pa.int64(), "rows that they added; null if a commit does not record it", "rows"),
        _column("removed_rows", pa.int64(), "rows that they removed; null if a commit does not record it", "rows"),
        _column("added_bytes", pa.int64(), "size of the files that they added", "bytes"),
        _column("removed_bytes", pa.int64(), "size of the files that they removed", "bytes"),
    ]
)
"""The numbers of `LakeChanges.by`, behind a column for the table, the user or the hour."""

LAKE_VERSIONS = pa.schema(
    [
        _column("name", pa.string(), "the table", is_whole=True),
        _column("format", pa.string(), "the name of its format; null if it could not be opened"),
        _column("version", pa.int64(), "the version that was current; null if there was none"),
        _column("committed_at", UTC_MILLIS, "when it was committed"),
        _column("note", pa.string(), "ties, commits within a minute after the time, or why there is no version"),
        _column("problem", pa.string(), "why the table could not be read; null otherwise"),
        _column("path", pa.string(), "the path for `open_table`", is_whole=True),
    ]
)

LAKE_DIFF = pa.schema(
    [
        _column("name", pa.string(), "the table", is_whole=True),
        _column(
            "change",
            pa.string(),
            "same, changed, only in A or B; counts equal or differ, if rows of two tables are unread; null if unknown",
        ),
        _column("version_a", pa.int64(), "the version in A; null if there is none"),
        _column("version_b", pa.int64(), "the version in B; null if there is none"),
        _column("schema_changes", pa.list_(pa.string()), "how the columns differ, in words; null if not compared"),
        _column("files_a", pa.int64(), "data files in A", "files"),
        _column("files_b", pa.int64(), "data files in B", "files"),
        _column("shared_files", pa.int64(), "data files in both; null for two different tables", "files"),
        _column("rows_a", pa.int64(), "rows in the files in A, before merges and deletes; null if unknown", "rows"),
        _column("rows_b", pa.int64(), "rows in the files in B, before merges and deletes; null if unknown", "rows"),
        _column("bytes_a", pa.int64(), "size of the files in A", "bytes"),
        _column("bytes_b", pa.int64(), "size of the files in B", "bytes"),
        _column("inserted", pa.int64(), "rows only in B; null if rows were not compared", "rows", words="checked"),
        _column("deleted", pa.int64(), "rows only in A; null if rows were not compared", "rows", words="checked"),
        _column("updated", pa.int64(), "rows of equal keys that differ; null if not compared", "rows", words="checked"),
        _column("problem", pa.string(), "why the tables could not be compared; null otherwise"),
    ]
)

LAKE_USAGE = pa.schema(
    [
        _column("name", pa.string(), "the table", is_whole=True),
        _column("version", pa.int64(), "the newest version; null if the table has none, or if it could not be read"),
        *(
            USAGE.field(name)
            for name in ("files", "size_bytes", "live_files", "live_bytes", "held_files", "held_bytes")
        ),
        _column("unread", pa.string(), "what could not be read and may hold more files; null if nothing"),
        _column("problem", pa.string(), "why the table could not be read; null otherwise"),
    ]
)

LAKE_TRACE = pa.schema(
    [
        _column("name", pa.string(), "the table", is_whole=True),
        _column(
            "outcome",
            pa.string(),
            "found, absent (all was examined, and nothing has a matching row), no column (no version ever had it) or "
            "unknown",
        ),
        _column("condition", pa.string(), "the condition, with the names of this table; null without such columns"),
        _column("versions", pa.int64(), "versions that return matching rows; null if not examined", words="checked"),
        _column("stored_files", pa.int64(), "data files that store some, also deleted ones", "files", words="checked"),
        _column(
            "unnamed_files", pa.int64(), "files with some that no version names; null if not examined", words="checked"
        ),
        _column(
            "shares_with", pa.list_(pa.string()), "tables whose files with matching rows this one names; null without"
        ),
        _column("holds", pa.string(), "what keeps the rows from being removed; null without rows"),
        _column("open_questions", pa.string(), "what could not be examined, in sentences; null if nothing"),
        _column("newest_version", pa.int64(), "the newest version that was examined"),
        _column("digest", pa.string(), "SHA-256 of the evidence, as `Trace.digest`; null if not examined"),
        _column("format", pa.string(), "the name of its format; null if it could not be opened"),
        _column("path", pa.string(), "the path for `open_table`", is_whole=True),
    ]
)

LAKE_TRACED_FILES = pa.schema(
    [
        _column("name", pa.string(), "the table", is_whole=True),
        _column("path", pa.string(), "the file, relative to the table's root", is_whole=True),
        _column("rows", pa.int64(), "matching rows; null if the file could not be searched", words="checked"),
        _column("reason", pa.string(), "why it could not be searched; null otherwise"),
    ]
)

CERTIFICATE_CHECK = pa.schema(
    [
        LAKE_TRACE.field("name"),
        _column("outcome", pa.string(), "the outcome in the certificate; null for a table that is not in it"),
        _column("outcome_now", pa.string(), "the outcome now; null for a table that is gone"),
        _column(
            "holds", pa.bool_(), "whether rows are there now as then, or not there as then; null if one is unknown"
        ),
        _column("change", pa.string(), "what happened to the table since, in words; null if it cannot be read now"),
        _column("version", pa.int64(), "the newest version in the certificate"),
        _column("version_now", pa.int64(), "the newest version now"),
    ]
)

ORPHANS = pa.schema(
    [
        _column("path", pa.string(), "the file, relative to the table's root", is_whole=True),
        _column(
            "is_orphan",
            pa.bool_(),
            "true if no version, tag or branch names it; null where metadata that may name it was not read",
            words="checked",
        ),
        _column(
            "kind",
            pa.string(),
            "data, deletes, deletion vector, index, change data, manifest, metadata, statistics, temporary or other, "
            "by its name",
        ),
        _column("size_bytes", pa.int64(), "size of the file", "bytes"),
        _column("modified", UTC_MILLIS, "when it was written, by the storage"),
        _column(
            "clean_up",
            pa.string(),
            "what the engine's own clean-up would do by its defaults: deleted, kept (for its age) or ignored; null if "
            "unknown",
        ),
        _column("reason", pa.string(), "the reason for that, or why it is not certain that the file is orphaned"),
    ]
)


PLANNED_PARTITIONS = pa.schema(
    [
        _column("partition", PARTITION, "partition column to value as text"),
        _column("files_a", pa.int64(), "data files of A to read", "files"),
        _column("rows_a", pa.int64(), "rows in them; null if the metadata does not count them", "rows"),
        _column("files_b", pa.int64(), "data files of B to read", "files"),
        _column("rows_b", pa.int64(), "rows in them, likewise", "rows"),
        _column("shared_files", pa.int64(), "data files that both have, which are not read", "files"),
        _column(
            "proof",
            pa.string(),
            "equal (only files that both have) or different (in the number of rows); null if rows must be read",
            words="checked",
        ),
    ]
)

TWINS = pa.schema(
    [
        *(COMMITS.field(name) for name in ("version", "committed_at")),
        _column("files", pa.int64(), "data files of the version", "files"),
        _column(
            "twin_version", pa.int64(), "the version of the other table that names the same data files; null if none"
        ),
        _column("twin_committed_at", UTC_MILLIS, "when that was committed"),
        _column("twin_files", pa.int64(), "data files of that version", "files"),
        _column("delay_seconds", pa.float64(), "seconds from the one commit to the other; null without a twin"),
    ]
)


def table_of(schema: pa.Schema, columns: Mapping[str, object]) -> pa.Table:
    """Return a table. Columns that are left out are null, and single values are repeated.

    Args:
        columns: Arrays, lists or single values by name; at least one array or list, which has as many values as rows.
    """
    rows = next(len(values) for values in columns.values() if isinstance(values, _MANY))
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            values = pa.nulls(rows, field.type)
        elif not isinstance(values, _MANY):
            values = pa.repeat(pa.scalar(values, field.type), rows)
        arrays.append(values)
    return pa.table(arrays, schema=schema)


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return a table without rows. `Schema.empty_table` would import pandas, which takes longer than opening."""
    return pa.Table.from_batches([], schema=schema)


def with_rows_in_files(commits: pa.Table) -> pa.Table:
    """Return COMMITS whose `total_rows` is ROWS_IN_FILES."""
    return commits.set_column(commits.schema.get_field_index("total_rows"), ROWS_IN_FILES, commits["total_rows"])


def has_rows_in_files(commits: pa.Table) -> bool:
    """Return whether `total_rows` of COMMITS is ROWS_IN_FILES."""
    return bool(ROWS_IN_FILES.equals(commits.schema.field("total_rows"), check_metadata=True))


def concat_commits(parts: Sequence[pa.Table]) -> pa.Table:
    """Return parts of COMMITS as one table. Its `total_rows` is ROWS_IN_FILES if any part has rows in files."""
    commits = pa.concat_tables([no_rows(COMMITS), *parts])
    return with_rows_in_files(commits) if any(map(has_rows_in_files, parts)) else commits
