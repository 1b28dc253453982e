"""Data files and delete files of one version, written by pyarrow and fastavro, with the metadata that a scan gets."""

import struct
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.engines import local
from snapshot_explorer.storage import Storage
from tests.inner.engines import parse_condition, scan_of
from tests.inner.formats import NativeFiles
from tests.inner.iceberg import (
    LIVE,
    METADATA_COLUMNS,
    STATISTICS,
    IcebergLiveFiles,
    RowReader,
    VersionMetadata,
    arrow_schema,
    metadata_schema,
    parse_schema,
    planning,
)
from tests.support import vector_bytes

RECORDED = "s3://lake/db/t/"
"""Where the table's files are by its metadata: not where they are."""


def field(number, name, kind, required=False, **more):  # noqa: FBT002 - as in a schema
    """A column of a schema, as JSON."""
    return {"id": number, "name": name, "required": required, "type": kind, **more}


def struct_type(*fields):
    """A struct type, as JSON."""
    return {"type": "struct", "fields": list(fields)}


def schema_of(*fields, number=0):
    """A schema, as JSON."""
    return {"type": "struct", "schema-id": number, "fields": list(fields)}


class _Tuples:
    """Partition tuples that were all found before."""

    def __init__(self, partitions):
        self.specs, self._partitions = partitions.keys(), partitions

    def arrays(self, starts):
        return {spec_id: tuples.slice(starts.get(spec_id, 0)) for spec_id, tuples in self._partitions.items()}


class Version:
    """One version of a table in a folder."""

    def __init__(self, folder, *fields, format_version=2, schemas=(), specs=None, properties=None):
        """Start without files; `schemas` are former ones."""
        self.folder = Path(folder)
        self.schema = schema_of(*fields, number=len(schemas))
        self.schemas = {one["schema-id"]: one for one in (*schemas, self.schema)}
        self.specs = specs or {0: {"spec-id": 0, "fields": []}}
        self.properties = properties or {}
        self.format_version = format_version
        self.data_files, self.delete_files = [], []
        self.tuples = {}

    def data(self, name, rows, *, number=1, schema=None, partition=(0, ()), **more):
        """Add a data file of these columns; returns its recorded path."""
        schema = schema or self.schema
        self.write(name, table_of(schema, rows), schema, with_ids=more.pop("with_ids", True))
        count = len(next(iter(rows.values())))
        self.data_files.append(self.entry(name, 0, count, number, partition, **more))
        return RECORDED + name

    def position_deletes(self, name, positions, *, number=1, partition=(0, ()), **more):
        """Add a file of position deletes: pairs of path and position."""
        columns = [field(2147483546, "file_path", "string"), field(2147483545, "pos", "long")]
        rows = {"file_path": [path for path, _ in positions], "pos": [position for _, position in positions]}
        self.write(name, table_of(schema_of(*columns), rows), schema_of(*columns))
        self.delete_files.append(self.entry(name, 1, len(positions), number, partition, **more))

    def equality_deletes(self, name, rows, *, number=2, schema=None, partition=(0, ()), ids=None):
        """Add a file of equality deletes with these columns, which are all compared unless ids are given."""
        schema = schema or self.schema
        self.write(name, table_of(schema, rows), schema)
        ids = ids or [one["id"] for one in schema["fields"] if one["name"] in rows]
        count = len(next(iter(rows.values())))
        self.delete_files.append(self.entry(name, 2, count, number, partition, equality_ids=ids))

    def vector(self, name, path, positions, *, number=2, partition=(0, ()), content=None, **more):
        """Add a deletion vector, in a file of its own behind some other bytes."""
        body = vector_bytes.of(positions)
        bitmap = struct.pack("<QI", 1, 0) + body
        blob = content or vector_bytes.vector(bytes.fromhex("d1d33964") + bitmap)
        (self.folder / name).write_bytes(b"PFA1" + blob)
        entry = self.entry(name, 1, len(positions), number, partition, referenced_data_file=path)
        entry |= {"file_format": "puffin", "content_offset": 4, "content_size_bytes": len(blob)}
        self.delete_files.append(entry | more)

    def write(self, name, table, schema, *, with_ids=True):
        """Write a parquet or Avro file."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".avro"):
            write_avro(self.folder / name, table, schema)
        else:
            fields = [with_id(one, schema) if with_ids else one for one in table.schema]
            pq.write_table(table.cast(pa.schema(fields)), self.folder / name)

    def entry(self, name, content, count, number, partition, **more):
        """A live entry."""
        spec_id, values = partition
        tuples = self.tuples.setdefault(spec_id, [])
        if values not in tuples:
            tuples.append(values)
        empty = dict.fromkeys((*LIVE.names, *STATISTICS.names))
        return empty | {
            "path": RECORDED + name,
            "location": name,
            "file_format": name.rpartition(".")[2],
            "content": content,
            "spec_id": spec_id,
            "partition": tuples.index(values),
            "record_count": count,
            "has_confirmed_rows": True,
            "size_bytes": (self.folder / name).stat().st_size,
            "snapshot_id": 1,
            "sequence_number": number,
            "file_sequence_number": number,
            **more,
        }

    def metadata(self):
        """What a scan gets."""
        live, tuples = self.live(), _Tuples(self.live().partitions)
        return VersionMetadata(
            storage=Storage(self.folder),
            format_version=self.format_version,
            schema=self.schema,
            schemas=self.schemas,
            specs=self.specs,
            current_schema=self.schema,
            properties=self.properties,
            live=lambda names, select: replace(live, data=select(live.data.select([*LIVE.names, *names]), tuples)),
        )

    def live(self):
        """The live files."""
        wanted = pa.schema([*LIVE, *STATISTICS])
        partitions = {}
        for spec_id, tuples in self.tuples.items():
            ids = [str(one["field-id"]) for one in self.specs[spec_id]["fields"]]
            arrays = [pa.array([values[place] for values in tuples]) for place in range(len(ids))]
            whole = (
                pa.StructArray.from_arrays(arrays, names=ids) if ids else pa.array([{}] * len(tuples), pa.struct([]))
            )
            partitions[spec_id] = whole
        return IcebergLiveFiles(
            data=pa.Table.from_pylist(self.data_files, wanted),
            deletes=pa.Table.from_pylist(self.delete_files, wanted),
            partitions=partitions,
        )

    def plan(self, where=None):
        """The plan of reading the rows that match a condition."""
        schema = arrow_schema(parse_schema(self.schema))
        return planning.plan(self.metadata(), None if where is None else parse_condition(where, schema))

    def rows(self, *columns, where=None):
        """The rows as dictionaries, of these columns or all of the schema."""
        schema = arrow_schema(parse_schema(self.schema))
        hidden = [one.name for one in METADATA_COLUMNS if one.name in columns]
        whole = pa.schema([*schema, *metadata_schema(hidden, has_row_ids=self.format_version >= 3)])
        scan = scan_of(whole, list(columns) or schema.names, where)
        return local.to_arrow(Reader(self.folder), self.plan(where).splits, scan).to_pylist()


class Reader:
    """Just what the engine needs of a version of a table."""

    native_files = NativeFiles()

    def __init__(self, folder):
        self.storage = Storage(folder)
        self.read = RowReader(self.storage).read

    def split_by_file(self, split):
        return (split,)


def table_of(schema, rows):
    """The rows as a table of the Arrow types of the schema's columns."""
    wanted = arrow_schema(parse_schema(schema))
    return pa.table({name: pa.array(values, wanted.field(name).type) for name, values in rows.items()})


def with_id(one, schema):
    """An Arrow field with the ids of a schema's column and of the fields in it."""
    return _with_id(one, next(column for column in schema["fields"] if column["name"] == one.name))


def _with_id(one, column):
    kind = column["type"]
    arrow = one.type
    if isinstance(kind, dict) and kind["type"] == "struct":
        arrow = pa.struct([_with_id(child, part) for child, part in zip(one.type, kind["fields"], strict=True)])
    elif isinstance(kind, dict) and kind["type"] == "list":
        arrow = pa.list_(_with_id(one.type.value_field, {"id": kind["element-id"], "type": kind["element"]}))
    elif isinstance(kind, dict) and kind["type"] == "map":
        key = _with_id(one.type.key_field, {"id": kind["key-id"], "type": kind["key"]})
        key = key.with_nullable(False)  # noqa: FBT003 - pyarrow's
        arrow = pa.map_(key, _with_id(one.type.item_field, {"id": kind["value-id"], "type": kind["value"]}))
    return pa.field(one.name, arrow, metadata={"PARQUET:field_id": str(column["id"])})


def write_avro(path, table, schema):
    """Write an Avro file as Iceberg writes it: with ids, and decimals as fixed."""
    columns = [one for one in schema["fields"] if one["name"] in table.column_names]
    with path.open("wb") as target:
        rows = [_avro_value(row, {"type": "struct", "fields": columns}) for row in table.to_pylist()]
        fastavro.writer(target, _avro_record(columns, "table"), rows, codec="deflate")


def _avro_record(fields, name):
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": one["name"], "type": _avro_type(one["type"], one["required"], one["id"]), "field-id": one["id"]}
            for one in fields
        ],
    }


def _avro_type(kind, required, number):
    if isinstance(kind, str):
        result = _avro_atom(kind)
    elif kind["type"] == "struct":
        result = _avro_record(kind["fields"], f"r{number}")
    elif kind["type"] == "list":
        items = _avro_type(kind["element"], kind["element-required"], kind["element-id"])
        result = {"type": "array", "items": items, "element-id": kind["element-id"]}
    else:
        values = _avro_type(kind["value"], kind["value-required"], kind["value-id"])
        result = {"type": "map", "values": values, "key-id": kind["key-id"], "value-id": kind["value-id"]}
    return result if required else ["null", result]


def _avro_value(value, kind):
    if value is None or isinstance(kind, str):
        return value
    if kind["type"] == "struct":
        return {one["name"]: _avro_value(value[one["name"]], one["type"]) for one in kind["fields"]}
    if kind["type"] == "list":
        return [_avro_value(item, kind["element"]) for item in value]
    return {key: _avro_value(item, kind["value"]) for key, item in value}


def _avro_atom(kind):
    if kind.startswith(("geometry", "geography")):
        return "bytes"
    if not kind.startswith("decimal"):
        return kind
    precision, scale = map(int, kind[8:-1].split(","))
    size = next(size for size in range(1, 17) if 10**precision <= 2 ** (8 * size - 1))
    name = f"decimal_{precision}_{scale}"
    fixed = {"type": "fixed", "name": name, "size": size}
    return fixed | {"logicalType": "decimal", "precision": precision, "scale": scale}
