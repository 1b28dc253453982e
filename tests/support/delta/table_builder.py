"""Builders of small but real Delta tables, on any fsspec store or on the local disk.

`DeltaTable` grows a table commit by commit and writes what other engines write beside it: checkpoints of each form,
sidecars, hints, checksum files, compactions, deletion vectors. It replays its own log with a plain dict, so that
checkpoints do not depend on the code under test.
"""

import io
import json
import os
import struct
import uuid
import zlib
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

BASE_MILLIS = 1_767_225_600_000
"""2026-01-01: commit v is made v minutes later unless another time is given."""

FIELDS = (("id", "long"), ("name", "string"))
"""The columns of a table without other columns: Delta's names of types."""

_TYPES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
ACTIONS = {
    "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
    "add": pa.struct(
        {
            "path": pa.string(),
            "partitionValues": TEXTS,
            "size": pa.int64(),
            "modificationTime": pa.int64(),
            "dataChange": pa.bool_(),
            "tags": TEXTS,
            "deletionVector": VECTOR,
            "baseRowId": pa.int64(),
            "defaultRowCommitVersion": pa.int64(),
            "clusteringProvider": pa.string(),
            "stats": pa.string(),
        }
    ),
    "remove": pa.struct(
        {
            "path": pa.string(),
            "deletionTimestamp": pa.int64(),
            "dataChange": pa.bool_(),
            "extendedFileMetadata": pa.bool_(),
            "partitionValues": TEXTS,
            "size": pa.int64(),
            "deletionVector": VECTOR,
        }
    ),
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "name": pa.string(),
            "description": pa.string(),
            "format": pa.struct({"provider": pa.string(), "options": TEXTS}),
            "schemaString": pa.string(),
            "partitionColumns": pa.list_(pa.string()),
            "configuration": TEXTS,
            "createdTime": pa.int64(),
        }
    ),
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": pa.list_(pa.string()),
            "writerFeatures": pa.list_(pa.string()),
        }
    ),
    "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
    "checkpointMetadata": pa.struct({"version": pa.int64(), "tags": TEXTS}),
    "sidecar": pa.struct(
        {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64(), "tags": TEXTS}
    ),
}
"""The columns of a checkpoint, as Spark writes them."""


def schema_json(fields=FIELDS):
    """Return the JSON text of a schema; a field is (name, type) or (name, type, metadata), a type text or a dict."""
    return json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": (metadata or [{}])[0]}
                for name, kind, *metadata in fields
            ],
        }
    )


def protocol(reader=1, writer=2, *, features=None, writer_features=None):
    """Return a protocol action; with `features` version 3 and 7, as these are reader features."""
    if features is None:
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    names = list(features)
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": names,
            "writerFeatures": [*names, *(writer_features or ())],
        }
    }


def metadata(fields=FIELDS, *, partition_by=(), configuration=None, id="table-0", **more):  # noqa: A002 - Delta's name
    return {
        "metaData": {
            "id": id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": fields if fields is None or isinstance(fields, str) else schema_json(fields),
            "partitionColumns": list(partition_by),
            "configuration": configuration or {},
            "createdTime": BASE_MILLIS,
        }
        | more
    }


_UNMEASURED = (500, 300)
"""Sizes of files that a test names and does not write: of data files and of change data."""


def add(path, *, partition=None, size=_UNMEASURED[0], rows=None, stats=None, vector=None, data_change=True, **more):
    """Return an add action; `path` is written as it is, so escape it as a writer does."""
    if stats is None and rows is not None:
        stats = {"numRecords": rows}
    content = {
        "path": path,
        "partitionValues": partition or {},
        "size": size,
        "modificationTime": BASE_MILLIS,
        "dataChange": data_change,
    }
    if stats is not None:
        content["stats"] = stats if isinstance(stats, str) else json.dumps(stats)
    if vector is not None:
        content["deletionVector"] = vector
    return {"add": content | more}


def remove(path, *, partition=None, size=None, vector=None, data_change=True, millis=BASE_MILLIS, **more):
    content = {"path": path, "deletionTimestamp": millis, "dataChange": data_change}
    if size is not None:
        content |= {"extendedFileMetadata": True, "partitionValues": partition or {}, "size": size}
    if vector is not None:
        content["deletionVector"] = vector
    return {"remove": content | more}


def cdc(path, *, partition=None, size=_UNMEASURED[1]):
    return {"cdc": {"path": path, "partitionValues": partition or {}, "size": size, "dataChange": False}}


def txn(app, version, updated=None):
    return {"txn": {"appId": app, "version": version} | ({} if updated is None else {"lastUpdated": updated})}


def domain(name, configuration="{}", *, removed=False):
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def lines(*actions):
    """Return the bytes of a commit."""
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def commit_name(version):
    return f"_delta_log/{version:020d}.json"


# Deletion vectors, by raw bytes: delta PROTOCOL.md, "Deletion Vector Format"; RoaringFormatSpec.

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_ARRAY, _MAGIC = 12346, 1681511377


def z85(content):
    """Return bytes as Z85 text, padded with zero bytes as Java's writer does."""
    padded = content + bytes(-len(content) % 4)
    out = []
    for start in range(0, len(padded), 4):
        number = int.from_bytes(padded[start : start + 4], "big")
        digits = []
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits.append(_Z85[digit])
        out += digits[::-1]
    return "".join(out)


def bitmap(positions):
    """Return the portable 64-bit roaring bitmap of row positions, with array and bitmap containers."""
    buckets = {}
    for position in sorted(set(positions)):
        buckets.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    parts = [struct.pack("<iq", _MAGIC, len(buckets))]
    for key, values in buckets.items():
        parts += [struct.pack("<I", key), _roaring32(values)]
    return b"".join(parts)


def _roaring32(values):
    containers = {}
    for value in values:
        containers.setdefault(value >> 16, []).append(value & 0xFFFF)
    head = struct.pack("<II", _ARRAY, len(containers))
    head += b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers.items())
    bodies = [_container(low) for low in containers.values()]
    start = len(head) + 4 * len(bodies)
    offsets = b""
    for body in bodies:
        offsets += struct.pack("<I", start)
        start += len(body)
    return head + offsets + b"".join(bodies)


def _container(values):
    if len(values) <= 4096:
        return struct.pack(f"<{len(values)}H", *values)
    words = bytearray(8192)
    for value in values:
        words[value >> 3] |= 1 << (value & 7)
    return bytes(words)


def inline_vector(positions):
    """Return the descriptor of a deletion vector that is in the log itself."""
    content = bitmap(positions)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(content),
        "sizeInBytes": len(content),
        "cardinality": len(set(positions)),
    }


def vector_file(*vectors):
    """Return the bytes of a deletion vector file with these sets of positions, and where each one begins."""
    out, offsets = bytearray(b"\x01"), []
    for positions in vectors:
        content = bitmap(positions)
        offsets.append(len(out))
        out += struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    return bytes(out), offsets


class DeltaTable:
    """A Delta table that grows commit by commit; `log` holds each version's actions as written.

    Args:
        filesystem: A file system of fsspec, or None for the local disk.
        root: The table's folder there.
        fields: The columns, as `schema_json` takes them.
        partition_by: Names of partition columns.
        configuration: The table's properties.
        first: The actions of version 0; by default a protocol and the metadata. None commits nothing.
    """

    def __init__(
        self,
        filesystem,
        root,
        *,
        fields=FIELDS,
        partition_by=(),
        configuration=None,
        first=(),
        features=None,
    ):
        self.filesystem, self.root = filesystem, str(root)
        self.fields, self.partition_by = fields, tuple(partition_by)
        self.log = {}
        self.sizes = {}
        self.vectors = {}
        self.version = -1
        if first is not None:
            opening = protocol() if features is None else protocol(features=features)
            table_metadata = metadata(fields, partition_by=partition_by, configuration=configuration)
            self.commit(*(first or (opening, table_metadata)), operation="CREATE TABLE")

    def as_written(self, content):
        """Return a parquet file as the writer of the table would write it."""
        return content

    @property
    def url(self):
        """The root as a path for `open_table`."""
        if self.filesystem is None:
            return self.root
        name = self.filesystem.protocol
        return f"{name if isinstance(name, str) else name[0]}://{self.root}"

    def write(self, path, content, *, millis=None):
        """Write a file, path relative to the root and not escaped; on the local disk its time can be set."""
        self.sizes[path] = len(content)
        if self.filesystem is not None:
            self.filesystem.pipe_file(f"{self.root}/{path}", content)
            return
        target = Path(self.root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # As writers do: a file is there whole or not at all.
        unfinished = target.with_name(f".{target.name}.tmp")
        unfinished.write_bytes(content)
        if millis is not None:
            os.utime(unfinished, ns=(millis * 1_000_000,) * 2)
        unfinished.replace(target)

    def read(self, path):
        if self.filesystem is not None:
            return self.filesystem.cat_file(f"{self.root}/{path}")
        return (Path(self.root) / path).read_bytes()

    def remove_file(self, path):
        if self.filesystem is not None:
            self.filesystem.rm_file(f"{self.root}/{path}")
        else:
            (Path(self.root) / path).unlink()

    def commit(self, *actions, version=None, operation="WRITE", millis=None, info=None):
        """Write the actions as the next commit, behind a commitInfo (none with info=False), and return its version."""
        self.version = self.version + 1 if version is None else version
        millis = BASE_MILLIS + self.version * 60_000 if millis is None else millis
        commit_info = {"timestamp": millis, "operation": operation, "operationParameters": {}} | (info or {})
        written = [*([] if info is False else [{"commitInfo": commit_info}]), *actions]
        for action in written:
            self._measure(action)
        self.log[self.version] = written
        self.write(commit_name(self.version), lines(*written), millis=millis)
        return self.version

    def _measure(self, action):
        """Set the size of a file action whose caller left it out to that of its file, where there is one."""
        for body in (action.get(kind) for kind in ("add", "cdc")):
            path = unquote(body["path"]) if body else None
            if path and body["size"] in _UNMEASURED:
                body["size"] = self._size(path) or body["size"]

    def _size(self, path):
        """Return the size of a file that was written here, or beside this builder on the local disk, or None."""
        beside = Path(self.root) / path
        if path in self.sizes or self.filesystem is not None or not beside.is_file():
            return self.sizes.get(path)
        return beside.stat().st_size

    def data(self, name, rows, *, partition=None, schema=None, **options):
        """Write rows (dicts, or tuples in the order of the data columns) as a parquet file; return its add action.

        `name` is the path on disk; the action holds it escaped as Delta escapes it.
        """
        names = [field[0] for field in self.fields if field[0] not in self.partition_by]
        kinds = {field[0]: field[1] for field in self.fields}
        schema = schema or pa.schema([pa.field(one, _TYPES[kinds[one]]) for one in names])
        dicts = [row if isinstance(row, dict) else dict(zip(names, row, strict=True)) for row in rows]
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(dicts, schema)
        out = io.BytesIO()
        pq.write_table(table, out, **{key: options.pop(key) for key in ("row_group_size",) if key in options})
        content = self.as_written(out.getvalue())
        self.write(name, content)
        return add(
            quote(name, safe="/=!'()*~:@&$,;+"),
            partition=partition,
            size=len(content),
            rows=options.pop("count", table.num_rows),
            **options,
        )

    def append(self, rows, *, name=None, partition=None, operation="WRITE", millis=None, **options):
        """Write rows as one new file in a commit of its own, and return the version."""
        name = name or f"part-{self.version + 1:05d}-{uuid.uuid4()}.parquet"
        return self.commit(self.data(name, rows, partition=partition, **options), operation=operation, millis=millis)

    def vector(self, positions, *, name=None, absolute=None):
        """Write a deletion vector file with one vector, and return its descriptor: relative, or absolute."""
        unique = uuid.UUID(name) if name else uuid.uuid4()
        content, (offset,) = vector_file(positions)
        self.write(f"deletion_vector_{unique}.bin", content)
        size = len(bitmap(positions))
        where = f"{absolute}/deletion_vector_{unique}.bin" if absolute else z85(unique.bytes)
        return {
            "storageType": "p" if absolute else "u",
            "pathOrInlineDv": where,
            "offset": offset,
            "sizeInBytes": size,
            "cardinality": len(set(positions)),
        }

    def state(self, version=None):
        """Return the actions that are in force at a version, by a plain replay: the oracle of checkpoints."""
        found, tombstones = {}, {}
        for number in sorted(one for one in self.log if version is None or one <= version):
            for content in _contents(self.log[number], "remove"):
                found.pop(("add", *_key(content)), None)
                tombstones[_key(content)] = {"remove": content}
            for content in _contents(self.log[number], "add"):
                tombstones.pop(_key(content), None)
                found["add", *_key(content)] = {"add": content | {"dataChange": False}}
            for kind, name in (("protocol", None), ("metaData", None), ("txn", "appId"), ("domainMetadata", "domain")):
                for content in _contents(self.log[number], kind):
                    found[kind, content.get(name)] = {kind: content}
                    if content.get("removed"):
                        del found[kind, content.get(name)]
        return [*found.values(), *tombstones.values()]

    def checkpoint(  # noqa: PLR0913 - a checkpoint has many forms
        self,
        version=None,
        *,
        form="classic",
        parts=2,
        sidecars=None,
        hint=True,
        actions=None,
        columns=None,
        name=None,
    ):
        """Write a checkpoint of a version and, with `hint`, _last_checkpoint; return the paths written.

        Args:
            version: The version; the newest without it.
            form: classic, multi-part, parquet or json (the two forms that a UUID names).
            parts: Of a multi-part checkpoint: how many.
            sidecars: Put the file actions into so many sidecar files (classic, parquet and json forms).
            hint: Write _last_checkpoint too.
            actions: Write these instead of the state.
            columns: Replaces or adds columns of the parquet schema: action to Arrow type, None leaves it out.
            name: The UUID in the name of the parquet and json forms.
        """
        version = self.version if version is None else version
        actions = list(self.state(version) if actions is None else actions)
        prefix = f"_delta_log/{version:020d}.checkpoint"
        paths = []
        if form in ("parquet", "json") or sidecars is not None:
            actions.insert(0, {"checkpointMetadata": {"version": version, "tags": {}}})
        if sidecars is not None:
            files = [action for action in actions if "add" in action or "remove" in action]
            actions = [action for action in actions if action not in files]
            for number in range(sidecars):
                side = f"{version:020d}.checkpoint.{number + 1:010d}.{sidecars:010d}.{uuid.uuid4()}.parquet"
                content = self.as_written(_parquet(files[number::sidecars], {**(columns or {}), **_ONLY_FILES}))
                self.write(f"_delta_log/_sidecars/{side}", content)
                paths.append(f"_delta_log/_sidecars/{side}")
                actions.append(
                    {"sidecar": {"path": side, "sizeInBytes": len(content), "modificationTime": BASE_MILLIS}}
                )
        if form == "multi-part":
            for number in range(parts):
                path = f"{prefix}.{number + 1:010d}.{parts:010d}.parquet"
                self.write(path, self.as_written(_parquet(actions[number::parts], columns)))
                paths.append(path)
        else:
            unique = name or str(uuid.uuid4())
            path = {"classic": f"{prefix}.parquet"}.get(form, f"{prefix}.{unique}.{form}")
            self.write(path, lines(*actions) if form == "json" else self.as_written(_parquet(actions, columns)))
            paths.append(path)
        if hint:
            more = {"parts": parts} if form == "multi-part" else {}
            self.hint(version, size=len(actions), **more)
        return paths

    def hint(self, version, **fields):
        self.write("_delta_log/_last_checkpoint", json.dumps({"version": version} | fields).encode())

    def checksum(self, version=None, **fields):
        """Write the checksum file of a version; `fields` replace what it says."""
        version = self.version if version is None else version
        state = self.state(version)
        adds = [action["add"] for action in state if "add" in action]
        checksum = {
            "tableSizeBytes": sum(one["size"] for one in adds),
            "numFiles": len(adds),
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": next((action["metaData"] for action in state if "metaData" in action), None),
            "protocol": next((action["protocol"] for action in state if "protocol" in action), None),
        }
        self.write(f"_delta_log/{version:020d}.crc", json.dumps(checksum | fields).encode())

    def compaction(self, first, last):
        """Write the log compaction of a range of commits."""
        kept = {}
        for number in range(first, last + 1):
            for action in sorted(self.log[number], key=lambda one: "add" in one):
                (kind, content), *_ = action.items()
                if kind in ("add", "remove"):
                    kept["file", *_key(content)] = action
                elif kind not in ("commitInfo", "cdc"):
                    kept[kind, content.get("appId"), content.get("domain")] = action
        self.write(f"_delta_log/{first:020d}.{last:020d}.compacted.json", lines(*kept.values()))

    def clean(self, before):
        """Remove the commits below a version, as log cleanup does."""
        for number in range(before):
            self.remove_file(commit_name(number))

    def committed_at(self, version):
        """Return the time that `commit` gives a version by default."""
        return datetime.fromtimestamp((BASE_MILLIS + version * 60_000) / 1000, UTC)


_ONLY_FILES = dict.fromkeys(("txn", "metaData", "protocol", "domainMetadata", "checkpointMetadata", "sidecar"), None)


def _contents(actions, kind):
    return [action[kind] for action in actions if kind in action]


def _key(content):
    vector = content.get("deletionVector")
    if vector is None:
        return content["path"], None
    offset = f"@{vector['offset']}" if vector.get("offset") is not None else ""
    return content["path"], vector["storageType"] + vector["pathOrInlineDv"] + offset


def _parquet(actions, columns=None):
    kinds = {name: kind for name, kind in (ACTIONS | (columns or {})).items() if kind is not None}
    rows = [{name: as_arrow(action.get(name), kind) for name, kind in kinds.items()} for action in actions]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))), out, row_group_size=1000)
    return out.getvalue()


def as_arrow(value, kind):
    """Return what from_pylist takes: a dict for a struct, pairs for a map."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {field.name: as_arrow(value.get(field.name), field.type) for field in kind}
    return value
