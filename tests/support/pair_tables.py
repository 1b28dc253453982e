"""Random pairs of tables of any formats: what one has, the other mostly has too, in other types, names and orders."""

import json
import math
import random
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.delta.table_builder import DeltaTable, add
from tests.support.hudi import table_builder as hudi
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable, binary_row

FORMATS = ("delta", "paimon", "iceberg", "hudi")


@dataclass(frozen=True)
class Kind:
    """A type in which a column is stored, in Arrow and in the words of each format; None where a format lacks it."""

    arrow: pa.DataType
    delta: object
    paimon: object
    iceberg: object
    avro: object


def _nested_id(kind, number):
    return json.loads(json.dumps(kind).replace("1000", str(number * 100)).replace("1001", str(number * 100 + 1)))


def _field(name, kind):
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _decimal(precision, scale):
    text = f"decimal({precision},{scale})"
    size = next(size for size in range(1, 17) if 2 ** (8 * size - 1) - 1 >= 10**precision - 1)
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    avro = {"type": "fixed", "name": f"d{precision}_{scale}", "size": size} | logical
    return Kind(pa.decimal128(precision, scale), text, text.upper(), f"decimal({precision}, {scale})", avro)


def struct_type(kind, words, order):
    """Return a struct of a number x and a text y."""
    fields = {"x": (kind, *words), "y": (pa.string(), "string", "STRING", "string", "string")}
    named = [(name, fields[name]) for name in order]
    iceberg = [
        {"id": 1000 + place, "name": name, "required": False, "type": types[3]}
        for place, (name, types) in enumerate(named)
    ]
    return Kind(
        pa.struct([(name, types[0]) for name, types in named]),
        {"type": "struct", "fields": [_field(name, types[1]) for name, types in named]},
        {
            "type": "ROW",
            "fields": [
                {"id": 1000 + place, "name": name, "type": types[2]} for place, (name, types) in enumerate(named)
            ],
        },
        {"type": "struct", "fields": iceberg},
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": name, "type": ["null", types[4]], "default": None} for name, types in named],
        },
    )


LONG, INT = Kind(pa.int64(), "long", "BIGINT", "long", "long"), Kind(pa.int32(), "integer", "INT", "int", "int")
DOUBLE = Kind(pa.float64(), "double", "DOUBLE", "double", "double")
STRING = Kind(pa.string(), "string", "STRING", "string", "string")
_UTC = Kind(
    pa.timestamp("us", "UTC"),
    "timestamp",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamptz",
    {"type": "long", "logicalType": "timestamp-micros"},
)
_NO_ZONE = Kind(
    pa.timestamp("us"),
    "timestamp_ntz",
    "TIMESTAMP(6)",
    "timestamp",
    {"type": "long", "logicalType": "local-timestamp-micros"},
)
_ITEMS = Kind(
    pa.list_(pa.field("element", pa.float64())),
    {"type": "array", "elementType": "double", "containsNull": True},
    {"type": "ARRAY", "element": "DOUBLE"},
    {"type": "list", "element-id": 1000, "element": "double", "element-required": False},
    {"type": "array", "items": ["null", "double"]},
)
_MAP = Kind(
    pa.map_(pa.string(), pa.int64()),
    {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    {"type": "MAP", "key": "STRING", "value": "BIGINT"},
    {"type": "map", "key-id": 1000, "key": "string", "value-id": 1001, "value": "long", "value-required": False},
    {"type": "map", "values": ["null", "long"]},
)
_LONG_WORDS, _INT_WORDS = ("long", "BIGINT", "long", "long"), ("integer", "INT", "int", "int")
_MOMENTS = [None, datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)]
COLUMNS = {
    "whole": ((LONG, INT, _decimal(20, 2)), [None, 0, 1, -1, 2**31 - 1]),
    "price": ((_decimal(10, 2), _decimal(18, 4), _decimal(38, 10)), [None, Decimal("1.50"), Decimal("-0.01")]),
    "ratio": (
        (DOUBLE, Kind(pa.float32(), "float", "FLOAT", "float", "float")),
        [None, 0.0, -0.0, math.nan, math.inf, 1.5],
    ),
    "name": ((STRING, Kind(pa.binary(), "binary", "BYTES", "binary", "bytes")), [None, "", "a", "A ", "é", "<b>"]),
    "day": (
        (Kind(pa.date32(), "date", "DATE", "date", {"type": "int", "logicalType": "date"}),),
        [None, date(1, 1, 1), date(2026, 1, 2)],
    ),
    "moment": ((_UTC, _NO_ZONE), _MOMENTS),
    "flag": ((Kind(pa.bool_(), "boolean", "BOOLEAN", "boolean", "boolean"),), [None, True, False]),
    "part": (
        (struct_type(pa.int64(), _LONG_WORDS, "xy"), struct_type(pa.int32(), _INT_WORDS, "yx")),
        [None, {"x": None, "y": None}, {"x": 1, "y": "a"}, {"x": 1, "y": None}],
    ),
    "items": ((_ITEMS,), [None, [], [None], [0.0, math.nan], [-0.0, math.nan]]),
    "labels": ((_MAP,), [None, [], [("a", 1), ("b", None)], [("b", None), ("a", 1)], [("a", 2)]]),
}
"""For each column the types that it may have, and its values."""


def random_pair(seed, folder, filesystem):
    """Write two tables; return their paths and formats, the pairs of names, and whether `id` is a key of both."""
    choose = random.Random(seed)
    chosen = choose.sample(list(COLUMNS), choose.randint(1, 5))
    is_keyed = choose.random() < 0.5
    rows = [
        {"id": number if is_keyed else choose.choice([None, 1, 2])}
        | {name: choose.choice(COLUMNS[name][1]) for name in chosen}
        for number in range(choose.randint(0, 12))
    ]
    other = [dict(row) for row in rows if choose.random() < 0.85]
    for row in other:
        if choose.random() < 0.3:
            name = choose.choice(chosen)
            row[name] = choose.choice(COLUMNS[name][1])
    for _ in range(choose.randint(0, 3)):
        extra = {name: choose.choice(COLUMNS[name][1]) for name in chosen}
        other.append({"id": 100 + len(other) if is_keyed else choose.choice([None, 1, 2])} | extra)
    choose.shuffle(other)
    formats = choose.choice(FORMATS), choose.choice(FORMATS)
    renames = {name: f"{name}_new" for name in chosen if choose.random() < 0.3}
    sides = []
    for side, (kind, some) in enumerate(zip(formats, (rows, other), strict=True)):
        names = ["id", *chosen, *(["extra"] if choose.random() < 0.2 else [])]
        choose.shuffle(names)
        types = {name: choose.choice(COLUMNS.get(name, ((LONG, INT), ()))[0]) for name in names}
        shown = {name: renames.get(name, name) if side else name for name in names}
        if "extra" in shown:
            shown["extra"] = f"only_{'ab'[side]}"
        root = f"{folder}/{'ab'[side]}"
        write(
            kind,
            filesystem,
            root,
            [(shown[name], types[name]) for name in names],
            _tables(choose, some, names, types, shown),
        )
        sides.append(root)
    return sides, formats, renames, is_keyed


def _tables(choose, rows, names, types, shown):
    """Return the rows as Arrow tables, one per file."""
    cut = choose.randint(0, len(rows))
    fields = [pa.field(shown[name], types[name].arrow) for name in names]
    found = []
    for some in (rows[:cut], rows[cut:]):
        columns = [[_stored(row.get(name), types[name].arrow) for row in some] for name in names]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
        found.append(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
    return [table for table in found if len(table)]


def _stored(value, kind):
    if isinstance(value, str) and pa.types.is_binary(kind):
        return value.encode()
    if isinstance(value, datetime):
        return value if kind.tz else value.replace(tzinfo=None)
    return Decimal(value) if pa.types.is_decimal(kind) and isinstance(value, int) else value


def _parquet(table):
    out = BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def write(kind, filesystem, root, columns, tables):
    """Write a table of a format with these columns, names and `Kind`s, and one commit per Arrow table."""
    _WRITERS[kind](filesystem, root, columns, tables)


def _delta(filesystem, root, columns, tables):
    fields = [(name, kind.delta) for name, kind in columns]
    features = ["timestampNtz"] if any(kind is _NO_ZONE for _, kind in columns) else None
    table = DeltaTable(filesystem, root, fields=fields, features=features)
    for number, rows in enumerate(tables):
        table.write(f"{number}.parquet", _parquet(rows))
        table.commit(add(f"{number}.parquet", rows=len(rows)))


def _paimon(filesystem, root, columns, tables):
    table = PaimonTable(filesystem, root)
    fields = [
        {"id": place, "name": name, "type": _nested_id(kind.paimon, place + 1)}
        for place, (name, kind) in enumerate(columns)
    ]
    schema = json.loads(filesystem.cat_file(f"{root}/schema/schema-0"))
    table.write("schema/schema-0", json.dumps(schema | {"fields": fields, "highestFieldId": 9_999}).encode())
    nothing = [None] * len(columns)
    table.statistics_of = lambda rows: {
        "_MIN_VALUES": binary_row(*nothing),
        "_MAX_VALUES": binary_row(*nothing),
        "_NULL_COUNTS": nothing,
    }
    for rows in tables:
        table.commit([(None, None)] * len(rows), content=_parquet(rows))
    if not tables:
        table.commit([])


def _iceberg(filesystem, root, columns, tables):
    table = IcebergTable(filesystem, root)
    fields = [
        {"id": place, "name": name, "required": False, "type": _nested_id(kind.iceberg, place)}
        for place, (name, kind) in enumerate(columns, 1)
    ]
    table.metadata["schemas"] = [{"type": "struct", "schema-id": 0, "fields": fields}]
    table.metadata["last-column-id"] = 9_999

    def data_file(name, rows):
        numbered = pa.schema([_with_ids(field, place) for place, field in enumerate(rows.schema, 1)])
        size = table.write(f"data/{name}", _parquet(pa.Table.from_arrays(rows.columns, schema=numbered)))
        return {
            "content": 0,
            "file_path": table.path(f"data/{name}"),
            "file_format": "PARQUET",
            "partition": {},
            "record_count": len(rows),
            "file_size_in_bytes": size,
        }

    table.data_file = data_file
    for rows in tables or [None]:
        table.commit(rows)


def _with_ids(field, number):
    """Return a field with the ids that the schema has, also in its type."""

    def numbered(field, number):
        return field.with_metadata({"PARQUET:field_id": str(number)})

    kind = field.type
    inner = iter((number * 100, number * 100 + 1))
    if pa.types.is_struct(kind):
        kind = pa.struct([numbered(part, next(inner)) for part in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(numbered(kind.key_field, next(inner)), numbered(kind.item_field, next(inner)))
    elif pa.types.is_list(kind):
        kind = pa.list_(numbered(kind.value_field, next(inner)))
    return numbered(pa.field(field.name, kind), number)


def _hudi(filesystem, root, columns, tables):
    table = hudi.HudiTable(filesystem, root)
    fields = [{"name": name, "type": ["null", _named(kind.avro, name)], "default": None} for name, kind in columns]
    schema = json.dumps({"type": "record", "name": "rows", "fields": fields})
    for rows in tables or [None]:
        table.number += 1
        stats = []
        if rows is not None:
            meta = [pa.array([str(place) for place in range(len(rows))])] * len(hudi.META)
            content = _parquet(pa.Table.from_arrays([*meta, *rows.columns], names=[*hudi.META, *rows.schema.names]))
            name = f"data-{table.number}_0-0-0_{hudi.text(table.number)}.parquet"
            table.write(name, content)
            stats = [table.stat(f"data-{table.number}", name, content, rows)]
        metadata = {
            "partitionToWriteStats": {"": stats} if stats else {},
            "operationType": "INSERT",
            "extraMetadata": {"schema": schema},
        }
        instant = f"{hudi.text(table.number)}_{hudi.completion(table.number)}.commit"
        table.write(f".hoodie/timeline/{instant}", json.dumps(metadata))


def _named(kind, name):
    """Return an Avro type whose own name is unique in its schema."""
    return kind | {"name": f"{name}_type"} if isinstance(kind, dict) and "name" in kind else kind


_WRITERS = {"delta": _delta, "paimon": _paimon, "iceberg": _iceberg, "hudi": _hudi}
