"""Writes small Hudi tables for the tests that need a shape which no real table at hand has.

What rows mean is judged by tables that Hudi wrote (tests/data); this builder serves histories of any length, metadata
that lies, and files that are cut short. Times at which commits were requested are small numbers here, so that versions
are easy to read; real ones are times of 17 digits. The metadata of commits is JSON, as up to table version 7.
"""

import io
import json
import struct
from datetime import UTC, datetime, timedelta

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.avro import array, record

FIRST = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
COLUMNS = [
    {"name": "id", "type": ["null", "long"], "default": None},
    {"name": "name", "type": ["null", "string"], "default": None},
]
SCHEMA = {"type": "record", "name": "rows", "fields": COLUMNS}
META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
LOGGED = {
    "type": "record",
    "name": "logged",
    "fields": [*({"name": name, "type": ["null", "string"], "default": None} for name in META), *COLUMNS],
}
WRAPPERS = ("Boolean", "Int", "Long")
DELETES = record(
    "HoodieDeleteRecordList",
    deleteRecordList=array(
        record(
            "HoodieDeleteRecord",
            recordKey=["null", "string"],
            partitionPath=["null", "string"],
            orderingVal=["null", *(record(f"{word}Wrapper", value=word.lower()) for word in WRAPPERS)],
        )
    ),
)


def text(number):
    """Return the instant of a number."""
    return f"{number:017d}"


def completion(number):
    """Return when the commit of a number was completed: a minute after the one before."""
    return (FIRST + timedelta(minutes=number - 1)).strftime("%Y%m%d%H%M%S") + "000"


class HudiTable:
    """A table of table version 9 without partitions, whose file groups are called data-1, data-2, ..."""

    schema = None
    """The schema of the rows; None for `SCHEMA`."""

    def __init__(self, filesystem, root, *, properties=()):
        self.filesystem = filesystem
        self.root = root
        self.number = 0
        known = {
            "hoodie.table.name": "rows",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        } | dict(properties)
        self.write(".hoodie/hoodie.properties", "".join(f"{name}={value}\n" for name, value in known.items()))

    def write(self, path, content):
        """Write a file of the table."""
        full = f"{self.root}/{path}"
        self.filesystem.makedirs(full.rpartition("/")[0], exist_ok=True)
        self.filesystem.pipe_file(full, content.encode() if isinstance(content, str) else content)

    def insert(self, rows, *, replaced=(), operation="INSERT", action="commit"):
        """Commit rows as a new file group, which replaces others."""
        self.number += 1
        name, content = self.base(rows, self.number, f"data-{self.number}")
        self.write(name, content)
        self.commit([self.stat(f"data-{self.number}", name, content, rows)], replaced, operation, action)

    def log(self, group, blocks):
        """Commit a log file of a file group."""
        self.number += 1
        name, content = f".{group}_{text(self.number)}.log.1_0-0-0", b"".join(blocks)
        self.write(name, content)
        stat = self.stat(group, name, content, [None]) | {"numInserts": 0, "prevCommit": "null"}
        self.commit([stat], (), "UPSERT", "deltacommit")

    def base(self, rows, number, group):
        """Return the name and the content of a base file. The third value of a row is its key, otherwise its id."""
        name = f"{group}_0-0-0_{text(number)}.parquet"
        ids, names = ([row[place] for row in rows] for place in (0, 1))
        columns = {column: [text(number)] * len(rows) for column in META} | {
            "_hoodie_record_key": [str(row[-1] if len(row) > 2 else row[0]) for row in rows],
            "id": pa.array(ids, pa.int64()),
            "name": pa.array(names, pa.string()),
        }
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return name, sink.getvalue()

    def stat(self, group, path, content, rows):
        """Return what a commit records of a file."""
        return {
            "fileId": group,
            "path": path,
            "prevCommit": "null",
            "numWrites": len(rows),
            "numInserts": len(rows),
            "fileSizeInBytes": len(content),
        }

    def commit(self, stats, replaced=(), operation="INSERT", action="commit", *, partition=""):
        """Complete a commit."""
        metadata = {
            "partitionToWriteStats": {partition: list(stats)},
            "operationType": operation,
            "extraMetadata": {"schema": json.dumps(self.schema or SCHEMA)},
        }
        if replaced:
            metadata["partitionToReplaceFileIds"] = {partition: list(replaced)}
        name = f"{text(self.number)}_{completion(self.number)}.{action}"
        self.write(f".hoodie/timeline/{name}", json.dumps(metadata))


def block(number, content, *, type_=3, header=()):
    """Return a block of a log file of the commit of a number."""
    entries = {0: text(number), 2: json.dumps(LOGGED)} | dict(header)
    head = struct.pack(">i", len(entries))
    for key, value in entries.items():
        head += struct.pack(">ii", key, len(value.encode())) + value.encode()
    body = struct.pack(">ii", 1, type_) + head + struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    length = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", length) + body + struct.pack(">q", length + 6)


def records(number, rows, *, columns=COLUMNS, header=(), **more):
    """Return a block of records."""
    logged = LOGGED | {"fields": [*LOGGED["fields"][: len(META)], *columns]}
    content = struct.pack(">ii", 3, len(rows))
    for row in rows:
        sink = io.BytesIO()
        record = dict.fromkeys(META, text(number)) | {"_hoodie_record_key": str(row[0])}
        record |= {column["name"]: value for column, value in zip(columns, row, strict=True)}
        fastavro.schemaless_writer(sink, fastavro.parse_schema(logged), record)
        content += struct.pack(">i", len(sink.getvalue())) + sink.getvalue()
    return block(number, content, header={2: json.dumps(logged)} | dict(header), **more)


def deletes(number, keys, *, version=3, ordering=("IntWrapper", {"value": 0})):
    """Return a block of deletes."""
    sink = io.BytesIO()
    deleted = [{"recordKey": str(key), "partitionPath": "", "orderingVal": ordering} for key in keys]
    fastavro.schemaless_writer(sink, fastavro.parse_schema(DELETES), {"deleteRecordList": deleted})
    return block(number, struct.pack(">ii", version, len(sink.getvalue())) + sink.getvalue(), type_=1)
