"""Splits and their files in a memory store, for tests of reading."""

import io
import struct
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from snapshot_explorer.storage import Storage
from tests.inner.core import DEFAULT
from tests.inner.paimon import PaimonField, PaimonFiles, PaimonSchema, parse_type, partitions_of, planning, read

STATS = pa.list_(pa.int64())
ENTRY = {
    "kind": pa.int8(),
    "partition": pa.binary(),
    "bucket": pa.int32(),
    "total_buckets": pa.int32(),
    "file_name": pa.string(),
    "size_bytes": pa.int64(),
    "rows": pa.int64(),
    "min_key": pa.binary(),
    "max_key": pa.binary(),
    "key_min": pa.binary(),
    "key_max": pa.binary(),
    "key_null_counts": STATS,
    "value_min": pa.binary(),
    "value_max": pa.binary(),
    "value_null_counts": STATS,
    "value_stats_columns": pa.list_(pa.string()),
    "min_sequence": pa.int64(),
    "max_sequence": pa.int64(),
    "schema_id": pa.int64(),
    "level": pa.int32(),
    "extra_files": pa.list_(pa.string()),
    "created_at": pa.timestamp("ms"),
    "deleted_rows": pa.int64(),
    "embedded_index": pa.binary(),
    "source": pa.int8(),
    "external_path": pa.string(),
    "first_row_id": pa.int64(),
    "write_columns": pa.list_(pa.string()),
}


def int_row(*values):
    """A serialized BinaryRow of INT fields."""
    return struct.pack(">i", len(values)) + bytes(8) + b"".join(struct.pack("<iI", value, 0) for value in values)


def text_row(value):
    """A serialized BinaryRow of one short STRING."""
    data = value.encode()
    return struct.pack(">i", 1) + bytes(8) + data.ljust(7, b"\0") + bytes([0x80 | len(data)])


def schema(fields, *, keys=(), partitions=(), number=0, options=None):
    """A schema of (name, type) pairs, ids by position, or of (id, name, type)."""
    spelled = [item if len(item) == 3 else (index, *item) for index, item in enumerate(fields)]
    return PaimonSchema(
        id=number,
        fields=tuple(PaimonField(id=number, name=name, type=parse_type(kind)) for number, name, kind in spelled),
        partition_keys=tuple(partitions),
        primary_keys=tuple(keys),
        options=options or {},
        comment=None,
    )


def entry(name, rows=1, **values):
    return {
        "kind": 0,
        "partition": int_row(),
        "bucket": 0,
        "total_buckets": 1,
        "file_name": name,
        "size_bytes": 1000,
        "rows": rows,
        "min_key": int_row(),
        "max_key": int_row(),
        "min_sequence": 0,
        "max_sequence": 0,
        "schema_id": 0,
        "level": 0,
        "deleted_rows": 0,
        **values,
    }


def files_of(version_schema, entries, *, options=None, file_schemas=None):
    table = pa.Table.from_pylist(entries, pa.schema(list(ENTRY.items())))
    return PaimonFiles(
        entries=table,
        partitions=partitions_of(table.column("partition"), version_schema),
        schema=version_schema,
        file_schemas=file_schemas or {version_schema.id: version_schema},
        options=options or {},
        storage=Storage("memory://splits"),
    )


def plan(files, *, vectors=None, folder="bucket-0/"):
    """Return the splits of files, and which of the files are skipped."""
    return planning.splits(
        files, vectors or {}, lambda chosen: [f"{folder}{name}" for name in chosen.entries["file_name"].to_pylist()], 7
    )


def splits(version_schema, entries, *, options=None, vectors=None, file_schemas=None, folder="bucket-0/"):
    files = files_of(version_schema, entries, options=options, file_schemas=file_schemas)
    return plan(files, vectors=vectors, folder=folder)[0]


def parquet(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def orc_file(table, **options):
    out = io.BytesIO()
    orc.write_table(table, out, **options)
    return out.getvalue()


class Files:
    """Files by path, opened like those of a Storage. Holds bytes only: nothing of ours is imitated."""

    limits = DEFAULT

    def __init__(self, files):
        self.files = files
        self.opened = []

    def open(self, path, *, size_bytes=None):
        self.opened.append(path)
        return pa.BufferReader(self.files[path])

    def together(self, *reads):
        return tuple(read() for read in reads)

    def warn_once(self, logger, message, *args):
        logger.warning(message, *args)

    def read_many(self, paths):
        self.opened.extend(paths)
        return [self.files[path] for path in paths]


def rows(storage, split, columns):
    return pa.Table.from_batches(list(read.read(storage, measured(split, storage), columns)))


def measured(split, storage):
    """Return a split whose files have the sizes of those in a storage, as manifests record them."""

    def sized(files):
        return tuple(file._replace(size_bytes=len(storage.files.get(file.path, b""))) for file in files)

    plan = split.detail
    groups = tuple(replace(group, files=sized(group.files), blobs=sized(group.blobs)) for group in plan.groups)
    return replace(split, detail=replace(plan, files=sized(plan.files), groups=groups))
