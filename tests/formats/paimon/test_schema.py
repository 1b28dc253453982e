"""Schema files and types."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.paimon import arrow_field, arrow_type, parse_schema, parse_type, table_schema, type_text

DOCUMENTED = {
    "version": 3,
    "id": 1,
    "fields": [
        {"id": 0, "name": "pt", "type": "STRING NOT NULL"},
        {"id": 1, "name": "k", "type": "INT", "description": "key"},
        {"id": 4, "name": "tags", "type": {"type": "ARRAY", "element": "STRING"}},
        {"id": 5, "name": "attrs", "type": {"type": "MAP NOT NULL", "key": "STRING NOT NULL", "value": "BIGINT"}},
        {
            "id": 6,
            "name": "addr",
            "type": {"type": "ROW", "fields": [{"id": 7, "name": "city", "type": "STRING"}]},
        },
    ],
    "highestFieldId": 7,
    "partitionKeys": ["pt"],
    "primaryKeys": ["pt", "k"],
    "options": {"bucket": "2", "file.format": "orc"},
    "comment": "what it is",
    "timeMillis": 1_767_225_600_000,
}


def parse(raw):
    return parse_schema(json.dumps(raw).encode(), "schema/schema-1")


def test_the_schema_of_the_documentation():
    schema = parse(DOCUMENTED)

    shown = table_schema(schema)
    assert [(column.id, column.name, column.type, column.nullable) for column in shown.columns] == [
        (0, "pt", "STRING", False),
        (1, "k", "INT", False),
        (4, "tags", "ARRAY<STRING>", True),
        (5, "attrs", "MAP<STRING NOT NULL, BIGINT>", False),
        (6, "addr", "ROW<city STRING>", True),
    ]
    assert shown.columns[1].comment == "key"
    assert (shown.partition_keys, shown.primary_keys) == (("pt",), ("pt", "k"))
    assert schema.trimmed_primary_keys == ("k",)
    assert (schema.options, schema.comment) == ({"bucket": "2", "file.format": "orc"}, "what it is")


@pytest.mark.parametrize(
    ("version", "options"),
    [(None, {"bucket": "1", "file.format": "orc"}), (2, {"file.format": "orc"}), (3, {})],
)
def test_older_versions_had_other_defaults(version, options):
    raw = DOCUMENTED | {"options": {}}
    raw = {name: value for name, value in raw.items() if name != "version"} | ({"version": version} if version else {})

    assert parse(raw).options == options


@pytest.mark.parametrize(
    ("text", "shown", "arrow"),
    [
        ("BOOLEAN", "BOOLEAN", pa.bool_()),
        ("INTEGER", "INT", pa.int32()),
        ("double precision", "DOUBLE", pa.float64()),
        ("DECIMAL", "DECIMAL(10, 0)", pa.decimal128(10, 0)),
        ("NUMERIC(5,2)", "DECIMAL(5, 2)", pa.decimal128(5, 2)),
        ("CHAR", "CHAR(1)", pa.string()),
        ("VARCHAR(2147483647)", "STRING", pa.string()),
        ("BYTES", "BYTES", pa.binary()),
        ("TIME", "TIME(0)", pa.time32("ms")),
        ("TIMESTAMP", "TIMESTAMP(6)", pa.timestamp("us")),
        ("TIMESTAMP(3)", "TIMESTAMP(3)", pa.timestamp("ms")),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(9)", pa.timestamp("ns", "UTC")),
        ("TIMESTAMP(0) WITHOUT TIME ZONE", "TIMESTAMP(0)", pa.timestamp("ms")),
        ("INT ARRAY", "ARRAY<INT>", pa.list_(pa.field("element", pa.int32()))),
        ("MAP<STRING, ARRAY<INT NOT NULL>>", "MAP<STRING, ARRAY<INT NOT NULL>>", None),
        ("VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 3>", pa.list_(pa.field("element", pa.float32()), 3)),
        ("ROW<`a b` INT, c STRING NOT NULL>", "ROW<a b INT, c STRING NOT NULL>", None),
        ("INT MULTISET", "MULTISET<INT>", pa.map_(pa.int32(), pa.int32())),
    ],
)
def test_types_are_read_and_shown(text, shown, arrow):
    kind = parse_type(text)

    assert type_text(kind) == shown
    assert arrow is None or arrow_type(kind) == arrow
    assert arrow_type(kind) is not None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"type": "MAP<STRING NOT NULL, BIGINT>", "key": "STRING NOT NULL", "value": "BIGINT"},
            "MAP<STRING NOT NULL, BIGINT>",
        ),
        (
            {"type": "MAP<STRING, BIGINT NOT NULL> NOT NULL", "key": "STRING", "value": "BIGINT NOT NULL"},
            "MAP<STRING, BIGINT NOT NULL>",
        ),
        (
            {
                "type": "map<INT NOT NULL, ARRAY<INT>>",
                "key": "INT NOT NULL",
                "value": {"type": "ARRAY<INT>", "element": "INT"},
            },
            "MAP<INT NOT NULL, ARRAY<INT>>",
        ),
        (
            {"type": "ARRAY<MAP<INT, INT>>", "element": {"type": "MAP<INT, INT>", "key": "INT", "value": "INT"}},
            "ARRAY<MAP<INT, INT>>",
        ),
        ({"type": "MULTISET<STRING NOT NULL>", "element": "STRING NOT NULL"}, "MULTISET<STRING NOT NULL>"),
        (
            {"type": "ROW<`a` INT NOT NULL>", "fields": [{"id": 1, "name": "a", "type": "INT NOT NULL"}]},
            "ROW<a INT NOT NULL>",
        ),
    ],
)
def test_a_word_that_repeats_the_parts_of_a_type_as_pypaimon_2_0_does_is_read(raw, expected):
    parsed = parse_type(raw)

    assert type_text(parsed) == expected
    assert parsed.nullable == (not raw["type"].endswith("> NOT NULL"))


@pytest.mark.parametrize("text", ["GEOMETRY(4326)", "SOMETHING", "TIMESTAMP WITH TIME ZONE"])
def test_types_that_are_not_read_are_refused_by_name(text):
    with pytest.raises(UnsupportedFeatureError, match=text.replace("(", r"\(").replace(")", r"\)")):
        parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INT INT",
        "ARRAY<",
        "MAP<INT>",
        "DECIMAL(39, 2)",
        "DECIMAL(0)",
        "DECIMAL(5, 6)",
        "TIMESTAMP(10)",
        "VECTOR<INT, 0>",
        "INT;",
    ],
)
def test_what_is_not_a_type_is_broken(text):
    raw = DOCUMENTED | {"fields": [{"id": 0, "name": "x", "type": text}]}

    with pytest.raises(CorruptTableError, match="schema/schema-1 is not a readable Paimon schema"):
        parse(raw)


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"fields": None},
        {"fields": [{"id": 0, "name": "x"}]},
        {"fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "x", "type": "INT"}]},
        {"fields": [{"id": 2**63, "name": "x", "type": "INT"}]},
        {"fields": [{"id": 1e300, "name": "x", "type": "INT"}]},
        {"options": ["a"]},
        {"fields": [{"id": 0, "name": "x", "type": {"type": "VECTOR", "element": "INT", "length": -1}}]},
        {"fields": {}},
        {"fields": {"id": 0, "name": "x", "type": "INT"}},
        {"fields": "INT"},
        {"fields": [{"id": 2**31, "name": "x", "type": "INT"}]},
        {"fields": [{"id": True, "name": "x", "type": "INT"}]},
        {"fields": [{"id": 0, "name": None, "type": "INT"}]},
        {"fields": [{"id": 0, "name": "x", "type": "INT", "description": ["a"]}]},
        {"fields": [{"id": 0, "name": "x", "type": {"type": "ROW", "fields": {}}}]},
        {"fields": [[]]},
        {"id": 2**63},
        {"id": "1"},
        {"id": 1.5},
        {"version": "x"},
        {"version": []},
        {"primaryKeys": "pt"},
        {"primaryKeys": {"pt": 1}},
        {"primaryKeys": [["pt"]]},
        {"partitionKeys": 1},
        {"partitionKeys": [None]},
        {"comment": ["x"]},
    ],
)
def test_an_invalid_schema_is_broken(change):
    with pytest.raises(
        CorruptTableError, match="schema/schema-1 is not a readable Paimon schema.*compare it with a copy"
    ):
        parse(DOCUMENTED | change)


def test_a_schema_cut_anywhere_is_broken():
    content = json.dumps(DOCUMENTED).encode()

    for size in range(len(content)):
        with pytest.raises(CorruptTableError, match="schema/schema-1 is not a readable Paimon schema"):
            parse_schema(content[:size], "schema/schema-1")


@settings(deadline=None)
@given(st.data())
def test_damaged_schemas_give_our_error_or_a_schema(data):
    content = bytearray(json.dumps(DOCUMENTED).encode())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        content[place] = data.draw(st.sampled_from(b'"{}[],:0123456789ANULOTD<>() '))

    try:
        schema = parse_schema(bytes(content), "schema/schema-1")
    except (CorruptTableError, UnsupportedFeatureError):
        return
    assert [arrow_field(field).name for field in schema.fields] == [field.name for field in schema.fields]


def test_a_column_that_is_not_there_is_broken():
    with pytest.raises(
        CorruptTableError, match="schema/schema-1 has no column 'nope', which the table's metadata references"
    ):
        parse(DOCUMENTED).field("nope")
