"""Avro schemas of Paimon's metadata files, as its writers have them."""

STATS = {
    "type": "record",
    "name": "stats",
    "fields": [
        {"name": "_MIN_VALUES", "type": "bytes"},
        {"name": "_MAX_VALUES", "type": "bytes"},
        {"name": "_NULL_COUNTS", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
    ],
}
MANIFEST_LIST = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_NUM_ADDED_FILES", "type": "long"},
        {"name": "_NUM_DELETED_FILES", "type": "long"},
        {"name": "_PARTITION_STATS", "type": STATS},
        {"name": "_SCHEMA_ID", "type": "long"},
    ],
}
MANIFEST = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_TOTAL_BUCKETS", "type": "int"},
        {
            "name": "_FILE",
            "type": {
                "type": "record",
                "name": "record__FILE",
                "fields": [
                    {"name": "_FILE_NAME", "type": "string"},
                    {"name": "_FILE_SIZE", "type": "long"},
                    {"name": "_ROW_COUNT", "type": "long"},
                    {"name": "_MIN_KEY", "type": "bytes"},
                    {"name": "_MAX_KEY", "type": "bytes"},
                    {"name": "_KEY_STATS", "type": STATS},
                    {"name": "_VALUE_STATS", "type": "stats"},
                    {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
                    {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
                    {"name": "_SCHEMA_ID", "type": "long"},
                    {"name": "_LEVEL", "type": "int"},
                    {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
                ],
            },
        },
    ],
}
RANGE = {
    "type": "record",
    "name": "range",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        {"name": "_CARDINALITY", "type": ["null", "long"]},
    ],
}
INDEX = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {"name": "_DELETIONS_VECTORS_RANGES", "type": ["null", {"type": "array", "items": ["null", RANGE]}]},
    ],
}
NEWER_FIELDS = [
    {"name": name, "type": ["null", kind], "default": None}
    for name, kind in {
        "_CREATION_TIME": {"type": "long", "logicalType": "timestamp-millis"},
        "_DELETE_ROW_COUNT": "long",
        "_EMBEDDED_FILE_INDEX": "bytes",
        "_FILE_SOURCE": "int",
        "_VALUE_STATS_COLS": {"type": "array", "items": "string"},
        "_EXTERNAL_PATH": "string",
        "_FIRST_ROW_ID": "long",
        "_WRITE_COLS": {"type": "array", "items": "string"},
    }.items()
]
"""What a file's record has since Paimon 0.4, in the order in which it came."""


def newest_manifest():
    """Return the schema of a manifest as Paimon 1.4 writes it."""
    *others, file = MANIFEST["fields"]
    record = {**file["type"], "fields": [*file["type"]["fields"], *NEWER_FIELDS]}
    return {**MANIFEST, "fields": [*others, {**file, "type": record}]}
