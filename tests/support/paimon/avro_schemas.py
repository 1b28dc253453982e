"""Avro schemas of Paimon's metadata files, as its writers have them."""

from tests.support.avro import array, record

STATS = record("stats", _MIN_VALUES="bytes", _MAX_VALUES="bytes", _NULL_COUNTS=["null", array(["null", "long"])])
MANIFEST_LIST = record(
    "record",
    _VERSION="int",
    _FILE_NAME="string",
    _FILE_SIZE="long",
    _NUM_ADDED_FILES="long",
    _NUM_DELETED_FILES="long",
    _PARTITION_STATS=STATS,
    _SCHEMA_ID="long",
)
_FILE = record(
    "record__FILE",
    _FILE_NAME="string",
    _FILE_SIZE="long",
    _ROW_COUNT="long",
    _MIN_KEY="bytes",
    _MAX_KEY="bytes",
    _KEY_STATS=STATS,
    _VALUE_STATS="stats",
    _MIN_SEQUENCE_NUMBER="long",
    _MAX_SEQUENCE_NUMBER="long",
    _SCHEMA_ID="long",
    _LEVEL="int",
    _EXTRA_FILES=array("string"),
    _FIRST_ROW_ID=["null", "long"],
)
MANIFEST = record(
    "record", _VERSION="int", _KIND="int", _PARTITION="bytes", _BUCKET="int", _TOTAL_BUCKETS="int", _FILE=_FILE
)
RANGE = record("range", f0="string", f1="int", f2="int", _CARDINALITY=["null", "long"])
INDEX = record(
    "record",
    _VERSION="int",
    _KIND="int",
    _PARTITION="bytes",
    _BUCKET="int",
    _INDEX_TYPE="string",
    _FILE_NAME="string",
    _FILE_SIZE="long",
    _ROW_COUNT="long",
    _DELETIONS_VECTORS_RANGES=["null", array(["null", RANGE])],
)
NEWER_FIELDS = [
    {"name": name, "type": ["null", kind], "default": None}
    for name, kind in {
        "_CREATION_TIME": {"type": "long", "logicalType": "timestamp-millis"},
        "_DELETE_ROW_COUNT": "long",
        "_EMBEDDED_FILE_INDEX": "bytes",
        "_FILE_SOURCE": "int",
        "_VALUE_STATS_COLS": array("string"),
        "_EXTERNAL_PATH": "string",
        "_FIRST_ROW_ID": "long",
        "_WRITE_COLS": array("string"),
    }.items()
]
"""What a file's record has since Paimon 0.4, in the order in which it came."""


def newest_manifest():
    """Return the schema of a manifest as Paimon 1.4 writes it."""
    *others, file = MANIFEST["fields"]
    record = {**file["type"], "fields": [*file["type"]["fields"], *NEWER_FIELDS]}
    return {**MANIFEST, "fields": [*others, {**file, "type": record}]}
