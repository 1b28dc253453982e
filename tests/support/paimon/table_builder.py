"""Writes small Paimon tables for the tests that need a shape which no real table at hand has.

What rows mean is judged by tables that Paimon wrote (tests/data); this builder serves histories of any length, hints
that lie, and files that are cut short.
"""

import copy
import io
import json
import struct

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.paimon.avro_schemas import INDEX, MANIFEST, MANIFEST_LIST

LONG_MAX = 2**63 - 1


def binary_row(*values):
    """Return a serialized BinaryRow of ints (INT or BIGINT) and texts (STRING); None is null."""
    arity = len(values)
    bits, slots, variable = bytearray((arity + 71) // 64 * 8), b"", b""
    start = len(bits) + 8 * arity
    for position, value in enumerate(values):
        if value is None:
            bits[(position + 8) // 8] |= 1 << (position + 8) % 8
            slots += bytes(8)
        elif isinstance(value, int):
            slots += struct.pack("<q", value)
        elif len(raw := value.encode()) <= 7:
            slots += raw.ljust(7, b"\0") + bytes([0x80 | len(raw)])
        else:
            slots += struct.pack("<ii", len(raw), start + len(variable))
            variable += raw.ljust(-(-len(raw) // 8) * 8, b"\0")
    return struct.pack(">i", arity) + bytes(bits) + slots + variable


UNKNOWN = {"_MIN_VALUES": binary_row(None, None), "_MAX_VALUES": binary_row(None, None), "_NULL_COUNTS": None}
"""Statistics of two columns that say nothing."""


def avro(schema, records, codec="deflate"):
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records, codec=codec)
    return out.getvalue()


class PaimonTable:
    """An append table (id BIGINT, name STRING), grown commit by commit.

    With `statistics`, entries say the least and greatest id and name and how many are null. With `by_name` the table is
    partitioned by name: the rows of a commit have one, and manifests say which they have.
    """

    def __init__(self, filesystem, root, *, options=None, hints=True, statistics=False, by_name=False):
        self.filesystem, self.root, self.hints, self.statistics = filesystem, root, hints, statistics
        self.by_name = by_name
        self.names = {}
        self.sizes = {}
        self.known = {}
        self.own = self.suffix = ""
        self.file_ending = "parquet"
        self.snapshots = 0
        self.base = []
        self.live = {}
        self.first_row_ids = {}
        self.write(
            "schema/schema-0",
            json.dumps(
                {
                    "version": 3,
                    "id": 0,
                    "fields": [
                        {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
                        {"id": 1, "name": "name", "type": "STRING"},
                    ],
                    "highestFieldId": 1,
                    "partitionKeys": ["name"] if by_name else [],
                    "primaryKeys": [],
                    "options": {"bucket": "-1", "file.format": "parquet"} | (options or {}),
                    "timeMillis": 0,
                }
            ).encode(),
        )

    def write(self, path, content):
        self.sizes[path.rpartition("/")[2]] = len(content)
        self.filesystem.pipe_file(f"{self.root}/{path}", content)

    def remove(self, path):
        self.filesystem.rm_file(f"{self.root}/{path}")

    def commit(
        self, rows=((1, "a"),), *, removed=(), kind="APPEND", millis=None, content=None, first_row_id=None, **fields
    ):
        """Add one file with these rows, or this content, remove files by name, and return the new snapshot's id."""
        self.snapshots += 1
        number = self.snapshots
        entries = [self.file_entry(1, name, self.live.pop(name)) for name in removed]
        if rows:
            name = f"data-{number}{self.suffix}.{self.file_ending}"
            self.live[name] = len(rows)
            self.known[name] = self.statistics_of(rows)
            self.names[name] = rows[0][1]
            self.first_row_ids[name] = first_row_id
            folder = f"name={rows[0][1] or '__DEFAULT_PARTITION__'}/" if self.by_name else ""
            self.write(f"{folder}bucket-0/{name}", content or self.parquet(rows))
            entries.append(self.file_entry(0, name, len(rows)))
        delta = self.manifest_record(f"manifest-{number}{self.suffix}", entries)
        lists = f"manifest-list-{number}{self.suffix}"
        self.write(f"manifest/{lists}-0", avro(MANIFEST_LIST, self.base))
        self.write(f"manifest/{lists}-1", avro(MANIFEST_LIST, [delta]))
        self.base = [*self.base, delta]
        snapshot = {
            "version": 3,
            "id": number,
            "schemaId": 0,
            "baseManifestList": f"{lists}-0",
            "deltaManifestList": f"{lists}-1",
            "changelogManifestList": None,
            "commitUser": "tests",
            "commitIdentifier": LONG_MAX,
            "commitKind": kind,
            "timeMillis": 1_767_225_600_000 + number * 60_000 if millis is None else millis,
            "totalRecordCount": sum(self.live.values()),
            "deltaRecordCount": sum(entry["_FILE"]["_ROW_COUNT"] * (1 - 2 * entry["_KIND"]) for entry in entries),
        }
        self.write(f"{self.own}snapshot/snapshot-{number}", json.dumps(snapshot | fields).encode())
        if self.hints:
            self.write(f"{self.own}snapshot/LATEST", str(number).encode())
            if number == 1:
                self.write("snapshot/EARLIEST", b"1")
        return number

    def take(self, step, number, kind):
        """Take a step of a random history: a commit that removes files, `merge`, `tag`, or `expire`."""
        match step:
            case "commit":
                self.commit(removed=list(self.live)[:number], kind=kind)
            case "merge":
                self.merge_manifests()
            case "tag":
                self.tag(f"t{self.snapshots}", self.snapshots)
            case "expire":
                self.expire(max(1, self.snapshots - number))

    def index(self, name, vectors, kind="DELETION_VECTORS", file="index-0"):
        """Write an index manifest with vectors: how many rows are deleted by data file. Return the snapshot's field."""
        ranges = [
            {"f0": data, "f1": at, "f2": 24, "_CARDINALITY": rows} for at, (data, rows) in enumerate(vectors.items(), 1)
        ]
        row = {
            "_VERSION": 1,
            "_KIND": 0,
            "_PARTITION": binary_row(),
            "_BUCKET": 0,
            "_INDEX_TYPE": kind,
            "_FILE_NAME": file,
            "_FILE_SIZE": 99,
            "_ROW_COUNT": 2,
            "_DELETIONS_VECTORS_RANGES": ranges if kind == "DELETION_VECTORS" else None,
        }
        self.write(f"manifest/{name}", avro(INDEX, [row] if vectors else []))
        return {"indexManifest": name}

    def merge_manifests(self):
        """Write the base as one manifest from the next commit on, as Paimon's writers do now and then."""
        entries = [self.file_entry(0, name, rows) for name, rows in self.live.items()]
        self.base = [self.manifest_record(f"manifest-merged-{self.snapshots}", entries)]

    def tag(self, name, number):
        self.write(f"tag/tag-{name}", self.filesystem.cat_file(f"{self.root}/snapshot/snapshot-{number}"))

    def fork(self, branch, number):
        """Make a branch that begins with a copy of a version of appends, and return it: a table to commit to."""
        other = copy.copy(self)
        other.own, other.suffix = f"branch/branch-{branch}/", f"-{branch}"
        other.snapshots, other.base = number, self.base[:number]
        other.live = {name: self.live[name] for name in list(self.live)[:number]}
        for path in ("schema/schema-0", f"snapshot/snapshot-{number}"):
            self.write(f"{other.own}{path}", self.filesystem.cat_file(f"{self.root}/{path}"))
        return other

    def expire(self, before):
        """Remove the snapshot files below a version; the data stays."""
        for number in range(1, before):
            if self.filesystem.exists(f"{self.root}/snapshot/snapshot-{number}"):
                self.remove(f"snapshot/snapshot-{number}")
        self.write("snapshot/EARLIEST", str(before).encode())

    def rollback(self, to):
        """Go back to a version as `rollback_to` does: first the hint, then the snapshots from the newest on."""
        self.write("snapshot/LATEST", str(to).encode())
        for number in range(self.snapshots, to, -1):
            self.remove(f"snapshot/snapshot-{number}")
            self.live.pop(f"data-{number}.parquet", None)
        self.snapshots, self.base = to, self.base[:to]

    def manifest_record(self, name, entries):
        content = avro(MANIFEST, entries)
        self.write(f"manifest/{name}", content)
        return {
            "_VERSION": 2,
            "_FILE_NAME": name,
            "_FILE_SIZE": len(content),
            "_NUM_ADDED_FILES": sum(entry["_KIND"] == 0 for entry in entries),
            "_NUM_DELETED_FILES": sum(entry["_KIND"] == 1 for entry in entries),
            "_PARTITION_STATS": self._partitions([self.names.get(entry["_FILE"]["_FILE_NAME"]) for entry in entries]),
            "_SCHEMA_ID": 0,
        }

    def _partitions(self, names):
        if not self.by_name:
            return {"_MIN_VALUES": binary_row(), "_MAX_VALUES": binary_row(), "_NULL_COUNTS": []}
        known = [name for name in names if name is not None]
        return {
            "_MIN_VALUES": binary_row(min(known, default=None)),
            "_MAX_VALUES": binary_row(max(known, default=None)),
            "_NULL_COUNTS": [len(names) - len(known)],
        }

    def file_entry(self, kind, name, rows):
        empty = {"_MIN_VALUES": binary_row(), "_MAX_VALUES": binary_row(), "_NULL_COUNTS": []}
        return {
            "_VERSION": 2,
            "_KIND": kind,
            "_PARTITION": binary_row(self.names[name]) if self.by_name else binary_row(),
            "_BUCKET": 0,
            "_TOTAL_BUCKETS": -1,
            "_FILE": {
                "_FILE_NAME": name,
                "_FILE_SIZE": self.sizes.get(name, 500),
                "_ROW_COUNT": rows,
                "_MIN_KEY": binary_row(),
                "_MAX_KEY": binary_row(),
                "_KEY_STATS": empty,
                "_VALUE_STATS": self.known.get(name, UNKNOWN),
                "_MIN_SEQUENCE_NUMBER": 0,
                "_MAX_SEQUENCE_NUMBER": rows - 1,
                "_SCHEMA_ID": 0,
                "_LEVEL": 0,
                "_EXTRA_FILES": [],
                "_FIRST_ROW_ID": self.first_row_ids.get(name),
            },
        }

    def statistics_of(self, rows):
        if not self.statistics:
            return UNKNOWN
        columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
        return {
            "_MIN_VALUES": binary_row(*(min(column, default=None) for column in columns)),
            "_MAX_VALUES": binary_row(*(max(column, default=None) for column in columns)),
            "_NULL_COUNTS": [len(rows) - len(column) for column in columns],
        }

    def parquet(self, rows):
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        out = io.BytesIO()
        pq.write_table(table, out)
        return out.getvalue()


def five_commits(filesystem, root):
    """Return a table of three appends, an overwrite of the first file, and a compaction of the rest."""
    table = PaimonTable(filesystem, root)
    table.commit([(1, "a")])
    table.commit([(2, "b"), (3, "c")])
    table.commit([(4, "d")])
    table.commit([(1, "A")], removed=["data-1.parquet"], kind="OVERWRITE")
    table.commit([(2, "b"), (3, "c"), (4, "d")], removed=["data-2.parquet", "data-3.parquet"], kind="COMPACT")
    return table
