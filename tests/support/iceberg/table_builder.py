"""Writes small Iceberg tables for the tests that need a shape which no real table at hand has.

What rows mean is judged by tables that Iceberg wrote (tests/data); this builder serves histories of any length,
metadata that lies, and files that are cut short.
"""

import copy
import io
import json
import uuid
from datetime import UTC, datetime, timedelta

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

FIRST = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
EXISTING, ADDED, DELETED = 0, 1, 2
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}


def _optional(number, name, kind):
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _required(number, name, kind):
    return {"name": name, "type": kind, "field-id": number}


def _counts(number, name, key, value, kind):
    pair = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_required(key, "key", "int"), _required(value, "value", kind)],
    }
    return _optional(number, name, {"type": "array", "items": pair, "logicalType": "map"})


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
}
MANIFEST_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
        _required(517, "content", "int"),
        _required(515, "sequence_number", "long"),
        _required(516, "min_sequence_number", "long"),
        _required(503, "added_snapshot_id", "long"),
        _required(504, "added_files_count", "int"),
        _required(505, "existing_files_count", "int"),
        _required(506, "deleted_files_count", "int"),
        _required(512, "added_rows_count", "long"),
        _required(513, "existing_rows_count", "long"),
        _required(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}),
        _optional(519, "key_metadata", "bytes"),
        _optional(520, "first_row_id", "long"),
    ],
}


def manifest_schema(*partition_fields):
    """Return the Avro schema of manifests; partition fields are Avro fields."""
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": [
            _required(134, "content", "int"),
            _required(100, "file_path", "string"),
            _required(101, "file_format", "string"),
            _required(102, "partition", {"type": "record", "name": "r102", "fields": list(partition_fields)}),
            _required(103, "record_count", "long"),
            _required(104, "file_size_in_bytes", "long"),
            _counts(108, "column_sizes", 117, 118, "long"),
            _counts(109, "value_counts", 119, 120, "long"),
            _counts(110, "null_value_counts", 121, 122, "long"),
            _counts(137, "nan_value_counts", 138, 139, "long"),
            _counts(125, "lower_bounds", 126, 127, "bytes"),
            _counts(128, "upper_bounds", 129, 130, "bytes"),
            _optional(131, "key_metadata", "bytes"),
            _optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
            _optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}),
            _optional(140, "sort_order_id", "int"),
            _optional(142, "first_row_id", "long"),
            _optional(143, "referenced_data_file", "string"),
            _optional(144, "content_offset", "long"),
            _optional(145, "content_size_in_bytes", "long"),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _required(0, "status", "int"),
            _optional(1, "snapshot_id", "long"),
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
            _required(2, "data_file", data_file),
        ],
    }


def avro(schema, records, codec="deflate"):
    """Return an Avro file."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(copy.deepcopy(schema)), records, codec=codec)
    return out.getvalue()


def _field_ids(*fields):
    return pa.schema(
        [pa.field(name, kind, metadata={"PARQUET:field_id": str(number)}) for name, kind, number in fields]
    )


class IcebergTable:
    """A table (id long, name string) without partitions, grown commit by commit, by the rules of Iceberg's writers.

    `location` is what the metadata records; the files are at `root`.
    """

    def __init__(self, filesystem, root, *, version=2, location=None, hints=True, properties=None):
        self.filesystem, self.root, self.version, self.hints = filesystem, root, version, hints
        self.location = f"memory://{root}" if location is None else location
        self.metadata_number = 0
        self.sequence = self.commits = 0
        self.ids = iter(range(1_000_001, 10**9))
        self.manifests = {}
        """The manifest list of each snapshot: its records."""
        self.entries = {}
        """The entries of each manifest."""
        self.metadata = {
            "format-version": version,
            "table-uuid": str(uuid.UUID(int=7)),
            "location": self.location,
            "last-sequence-number": 0,
            "last-updated-ms": 0,
            "last-column-id": 2,
            "current-schema-id": 0,
            "schemas": [SCHEMA],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": properties or {},
            "current-snapshot-id": -1,
            "refs": {},
            "snapshots": [],
            "snapshot-log": [],
            "metadata-log": [],
            "statistics": [],
        }

    def write(self, path, content):
        """Write a file below the root."""
        self.filesystem.pipe_file(f"{self.root}/{path}", content)
        return len(content)

    def path(self, name):
        """Return the recorded path of a file."""
        return f"{self.location}/{name}"

    def data_file(self, name, rows):
        """Write a data file; return its record in a manifest."""
        out = io.BytesIO()
        schema = _field_ids(("id", pa.int64(), 1), ("name", pa.string(), 2))
        ids, names = zip(*rows, strict=True) if rows else ((), ())
        pq.write_table(pa.table([pa.array(ids, pa.int64()), pa.array(names, pa.string())], schema=schema), out)
        size = self.write(f"data/{name}", out.getvalue())
        return {
            "content": 0,
            "file_path": self.path(f"data/{name}"),
            "file_format": "PARQUET",
            "partition": {},
            "record_count": len(rows),
            "file_size_in_bytes": size,
        }

    def commit(self, rows, *, removed=(), operation="append", branch="main", millis=None, parent=True, **summary):
        """Add a data file of rows and remove others by name. Return the snapshot's id."""
        self.sequence += 1
        self.commits += 1
        snapshot_id = next(self.ids)
        head = self.metadata["refs"].get(branch, {}).get("snapshot-id") if parent else None
        added = [self.data_file(f"data-{self.commits}.parquet", rows)] if rows is not None else []
        carried, rewritten, gone = self._without(self.manifests.get(head, []), removed)
        records = [self.manifest(snapshot_id, [entry(ADDED, one) for one in added])] if added else []
        records += [self.manifest(snapshot_id, entries) for entries in rewritten]
        self.manifests[snapshot_id] = records + carried
        counts = {
            "added-data-files": len(added),
            "added-records": sum(one["record_count"] for one in added),
            "added-files-size": sum(one["file_size_in_bytes"] for one in added),
            "deleted-data-files": len(gone),
            "deleted-records": sum(one["record_count"] for one in gone),
            "removed-files-size": sum(one["file_size_in_bytes"] for one in gone),
            "total-records": sum(
                one["added_rows_count"] + one["existing_rows_count"] for one in records + carried if one["content"] == 0
            ),
        }
        texts = {name: str(count) for name, count in counts.items() if count or name == "total-records"}
        self.add_snapshot(
            snapshot_id, head, {"operation": operation} | texts | summary, branch=branch, millis=self._millis(millis)
        )
        return snapshot_id

    def delete(self, name, positions):
        """Delete rows of a data file by their positions, in a delete file. Return the snapshot's id."""
        rows = pa.table(
            [pa.array([self.path(f"data/{name}")] * len(positions)), pa.array(positions, pa.int64())],
            schema=_field_ids(("file_path", pa.string(), 2147483546), ("pos", pa.int64(), 2147483545)),
        )
        return self._delete(rows, content=1)

    def delete_ids(self, ids):
        """Delete the rows of all earlier data files that have one of these ids, by an equality delete file."""
        rows = pa.table([pa.array(ids, pa.int64())], schema=_field_ids(("id", pa.int64(), 1)))
        return self._delete(rows, content=2, equality_ids=[1])

    def _delete(self, rows, **facts):
        self.sequence += 1
        self.commits += 1
        snapshot_id = next(self.ids)
        head = self.metadata["refs"]["main"]["snapshot-id"]
        out = io.BytesIO()
        pq.write_table(rows, out)
        name = f"data/deletes-{self.commits}.parquet"
        deletes = {
            "file_path": self.path(name),
            "file_format": "PARQUET",
            "partition": {},
            "record_count": len(rows),
            "file_size_in_bytes": self.write(name, out.getvalue()),
        } | facts
        record = self.manifest(snapshot_id, [entry(ADDED, deletes)], content=1)
        self.manifests[snapshot_id] = [record, *self.manifests[head]]
        summary = {"operation": "delete", "added-delete-files": "1"}
        self.add_snapshot(snapshot_id, head, summary, millis=self._millis(None))
        return snapshot_id

    def _millis(self, millis):
        if millis is not None:
            return millis
        return int((FIRST + timedelta(minutes=self.sequence - 1)).timestamp() * 1000)

    def _without(self, records, removed):
        """Return the manifests that are carried over, the entries of those to rewrite, and the removed files."""
        gone_paths = {self.path(f"data/{name}") for name in removed}
        carried, rewritten, gone = [], [], []
        for record in records:
            live = [one for one in self.entries[record["manifest_path"]] if one["status"] != DELETED]
            if not any(one["data_file"]["file_path"] in gone_paths for one in live):
                carried.append(record)
                continue
            entries = []
            for one in live:
                is_gone = one["data_file"]["file_path"] in gone_paths
                numbers = {
                    name: record["sequence_number"] if one.get(name) is None else one[name]
                    for name in ("sequence_number", "file_sequence_number")
                }
                owner = None if is_gone else one.get("snapshot_id") or record["added_snapshot_id"]
                entries.append(entry(DELETED if is_gone else EXISTING, one["data_file"], snapshot_id=owner, **numbers))
                gone += [one["data_file"]] if is_gone else []
            rewritten.append(entries)
        return carried, rewritten, gone

    def manifest(self, snapshot_id, entries, *, content=0, schema=None, spec_id=0, codec="deflate"):
        """Write a manifest; return its record in a manifest list."""
        name = f"metadata/{uuid.UUID(int=snapshot_id)}-m{len(self.entries)}.avro"
        length = self.write(name, avro(schema or manifest_schema(), entries, codec))
        self.entries[self.path(name)] = entries
        of = {status: [one for one in entries if one["status"] == status] for status in (EXISTING, ADDED, DELETED)}
        rows = {status: sum(one["data_file"]["record_count"] for one in some) for status, some in of.items()}
        return {
            "manifest_path": self.path(name),
            "manifest_length": length,
            "partition_spec_id": spec_id,
            "content": content,
            "sequence_number": self.sequence,
            "min_sequence_number": min(
                [one["sequence_number"] or self.sequence for one in entries if one["status"] != DELETED],
                default=self.sequence,
            ),
            "added_snapshot_id": snapshot_id,
            "added_files_count": len(of[ADDED]),
            "existing_files_count": len(of[EXISTING]),
            "deleted_files_count": len(of[DELETED]),
            "added_rows_count": rows[ADDED],
            "existing_rows_count": rows[EXISTING],
            "deleted_rows_count": rows[DELETED],
            "partitions": [],
            "key_metadata": None,
            "first_row_id": None,
        }

    def add_snapshot(self, snapshot_id, parent, summary, *, branch="main", millis, **more):
        """Write the manifest list of a snapshot and the next metadata file."""
        name = f"metadata/snap-{snapshot_id}-1.avro"
        self.write(name, avro(MANIFEST_LIST, self.manifests[snapshot_id]))
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": self.sequence,
            "timestamp-ms": millis,
            "summary": summary,
            "manifest-list": self.path(name),
            "schema-id": 0,
        } | more
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        if self.version == 1:
            del snapshot["sequence-number"]
        self.metadata["snapshots"].append(snapshot)
        self.metadata["last-sequence-number"] = self.sequence
        if branch is not None:
            self.metadata["refs"][branch] = {"snapshot-id": snapshot_id, "type": "branch"}
        if branch == "main":
            self.metadata["current-snapshot-id"] = snapshot_id
            self.metadata["snapshot-log"].append({"timestamp-ms": millis, "snapshot-id": snapshot_id})
        self.write_metadata(millis)

    def tag(self, name, snapshot_id):
        """Tag a snapshot."""
        self.metadata["refs"][name] = {"snapshot-id": snapshot_id, "type": "tag"}
        self.write_metadata()

    def expire(self, sequence_number):
        """Forget the snapshots before a sequence number."""
        self.metadata["snapshots"] = [
            one for one in self.metadata["snapshots"] if one["sequence-number"] >= sequence_number
        ]
        kept = {one["snapshot-id"] for one in self.metadata["snapshots"]}
        self.metadata["snapshot-log"] = [one for one in self.metadata["snapshot-log"] if one["snapshot-id"] in kept]
        self.write_metadata()

    def rollback(self, snapshot_id, millis):
        """Make an earlier snapshot the current one of main."""
        self.metadata["refs"]["main"] = {"snapshot-id": snapshot_id, "type": "branch"}
        self.metadata["current-snapshot-id"] = snapshot_id
        self.metadata["snapshot-log"].append({"timestamp-ms": millis, "snapshot-id": snapshot_id})
        self.write_metadata(millis)

    def write_metadata(self, millis=None, **changed):
        """Write the next metadata file, and the hint."""
        before = self.metadata["last-updated-ms"]
        if self.metadata_number:
            file = self.path(f"metadata/v{self.metadata_number}.metadata.json")
            self.metadata["metadata-log"].append({"timestamp-ms": before, "metadata-file": file})
        self.metadata_number += 1
        self.metadata["last-updated-ms"] = before + 1 if millis is None else millis
        content = json.dumps(self.metadata | changed).encode()
        self.write(f"metadata/v{self.metadata_number}.metadata.json", content)
        if self.hints:
            self.write("metadata/version-hint.text", str(self.metadata_number).encode())


def entry(status, data_file, snapshot_id=None, sequence_number=None, file_sequence_number=None):
    return {
        "status": status,
        "snapshot_id": snapshot_id,
        "sequence_number": sequence_number,
        "file_sequence_number": file_sequence_number,
        "data_file": data_file,
    }
