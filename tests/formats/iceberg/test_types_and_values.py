"""Types of schemas, and single values of metadata."""

import json
import struct
from datetime import date, time
from decimal import Decimal

import pyarrow as pa
import pytest

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.iceberg import (
    IcebergField,
    arrow_schema,
    default_value,
    parse_schema,
    parse_type,
    single_values,
    stored_values,
    table_schema,
    type_text,
)

NESTED = {
    "type": "struct",
    "schema-id": 3,
    "identifier-field-ids": [2],
    "fields": [
        {"id": 1, "name": "a", "required": True, "type": "decimal(9, 2)", "doc": "an amount"},
        {"id": 2, "name": "b", "required": False, "type": "fixed[ 4 ]"},
        {
            "id": 3,
            "name": "c",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 4,
                "element-required": False,
                "element": {
                    "type": "map",
                    "key-id": 5,
                    "key": "string",
                    "value-id": 6,
                    "value-required": True,
                    "value": {"type": "struct", "fields": [{"id": 7, "name": "d", "required": False, "type": "uuid"}]},
                },
            },
        },
    ],
}


def test_a_schema_becomes_arrow_and_the_record_that_all_formats_share():
    schema = parse_schema(NESTED)

    assert arrow_schema(schema).field("a") == pa.field("a", pa.decimal128(9, 2), nullable=False)
    assert arrow_schema(schema).field("b").type == pa.binary(4)
    shared = table_schema(schema, partition_ids=[1, 99])
    assert (shared.id, shared.partition_keys, shared.primary_keys) == (3, ("a",), ("b",))
    assert [column.type for column in shared.columns] == [
        "decimal(9,2)",
        "fixed[4]",
        "list<map<string,struct<d:uuid>>>",
    ]


def test_a_field_of_a_struct_is_found_by_its_id_and_one_in_a_list_is_not():
    inner = {"type": "struct", "fields": [{"id": 9, "name": "x", "required": False, "type": "int"}]}
    schema = parse_schema(
        {**NESTED, "fields": [*NESTED["fields"], {"id": 8, "name": "s", "required": False, "type": inner}]}
    )

    assert [field.name for field in schema.path(9)] == ["s", "x"]
    assert schema.path(7) == ()


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]},
        {"type": "struct", "fields": [{"id": "1", "name": "a", "required": True, "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "required": True, "type": "decimal(39,2)"}]},
        {"type": "struct", "fields": [{"id": 1, "name": name, "required": True, "type": "int"} for name in "ab"]},
        {"type": "struct", "fields": {}},
        {"type": "list", "fields": []},
    ],
)
def test_a_schema_that_contradicts_the_format_is_refused(broken):
    with pytest.raises(CorruptTableError, match="schema in the table's metadata file is not readable"):
        parse_schema(broken)


@pytest.mark.parametrize("text", ["geometry()", "geography(OGC:CRS84, flat)", "interval"])
def test_a_type_that_is_not_read_is_named(text):
    schema = parse_schema({"fields": [{"id": 1, "name": "a", "required": False, "type": text}]})

    assert type_text(schema.fields[0].type) == text
    with pytest.raises(UnsupportedFeatureError, match=text.partition("(")[0]):
        arrow_schema(schema)


@pytest.mark.parametrize(
    ("text", "stored", "expected"),
    [
        ("boolean", b"\1", True),
        ("int", struct.pack("<i", -5), -5),
        ("long", struct.pack("<q", -5), -5),
        ("long", struct.pack("<i", -5), -5),
        ("double", struct.pack("<f", 1.5), 1.5),
        ("date", struct.pack("<i", 19_000), date(2022, 1, 8)),
        ("time", struct.pack("<q", 1_000_001), time(0, 0, 1, 1)),
        ("decimal(38,2)", b"\xff", Decimal("-0.01")),
        ("decimal(9,2)", b"\x00\x80", Decimal("1.28")),
        ("decimal(3,1)", b"\x7f\xff", None),
        ("decimal(3,1)", b"", None),
        ("string", "é".encode(), "é"),
        ("string", b"\xff", None),
        ("uuid", bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("fixed[2]", b"ab", b"ab"),
        ("fixed[2]", b"abc", None),
        ("int", b"abc", None),
        ("binary", b"abc", b"abc"),
    ],
)
def test_a_binary_single_value_is_decoded_by_its_type_and_length(text, stored, expected):
    values = pa.array([None, b"", stored, None], pa.binary())

    assert single_values(values, parse_type(text))[2].as_py() == expected


def test_a_day_of_a_column_that_became_a_timestamp_is_its_midnight():
    found = single_values(pa.array([struct.pack("<i", 1)], pa.binary()), parse_type("timestamp"))

    assert found.cast(pa.int64()).to_pylist() == [86_400_000_000]


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("decimal(9,2)", "14.20", Decimal("14.20")),
        ("date", "2017-11-16", date(2017, 11, 16)),
        ("time", "22:31:08.123456", time(22, 31, 8, 123456)),
        ("uuid", "F79C3E09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("fixed[2]", "00ff", b"\x00\xff"),
        ("boolean", False, False),
    ],
)
def test_a_default_is_decoded_by_its_type(text, default, expected):
    field = IcebergField(id=1, name="a", type=parse_type(text))

    assert default_value(field, json.dumps(default)).as_py() == expected


@pytest.mark.parametrize(
    ("text", "default", "nanos"),
    [
        ("timestamp", "1969-12-31T23:59:59.999999", -1_000),
        ("timestamptz", "1970-01-01T01:00:00+01:00", 0),
        ("timestamp_ns", "1969-12-31T23:59:59.999999999", -1),
        ("timestamptz_ns", "1970-01-01T00:00:00.000000001+00:00", 1),
    ],
)
def test_a_default_timestamp_keeps_every_digit(text, default, nanos):
    found = default_value(IcebergField(id=1, name="a", type=parse_type(text)), json.dumps(default))

    assert found.value * (1 if text.endswith("_ns") else 1_000) == nanos


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("int", "5"),
        ("decimal(9,2)", "1.234"),
        ("timestamp", "1970-01-01T00:00:00+00:00"),
        ("fixed[2]", "00"),
        ("int", 2**40),
    ],
)
def test_a_default_of_another_type_is_refused(text, default):
    with pytest.raises(CorruptTableError, match="The default of the column 'a'"):
        default_value(IcebergField(id=1, name="a", type=parse_type(text)), json.dumps(default))


def test_partition_values_take_the_type_of_their_field():
    days = stored_values(pa.array([1, None]), parse_type("date"))
    cents = stored_values(pa.array([b"\x80"], pa.binary()), parse_type("decimal(9,2)"))

    assert days.to_pylist() == [date(1970, 1, 2), None]
    assert cents.to_pylist() == [Decimal("-1.28")]


def test_a_partition_value_of_another_type_is_refused():
    with pytest.raises(CorruptTableError, match="partition values of int64 where the schema has int"):
        stored_values(pa.array([2**40]), parse_type("int"))
