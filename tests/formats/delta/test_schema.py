"""Schemas: types, mapping and the Arrow types of rows."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.delta import arrow_schema, schema_of, table_schema
from tests.support.delta.log_reader import metadata, tried
from tests.support.delta.table_builder import schema_json

NAME = "delta.columnMapping.physicalName"
ID = "delta.columnMapping.id"
VECTOR = pa.struct({"a": pa.int64()})


def struct(*fields):
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields],
    }


@pytest.mark.parametrize(
    ("kind", "wanted", "spelled"),
    [
        ("byte", pa.int8(), "byte"),
        ("short", pa.int16(), "short"),
        ("integer", pa.int32(), "integer"),
        ("long", pa.int64(), "long"),
        ("float", pa.float32(), "float"),
        ("double", pa.float64(), "double"),
        ("boolean", pa.bool_(), "boolean"),
        ("string", pa.string(), "string"),
        ("string collate UTF8_LCASE", pa.string(), "string collate UTF8_LCASE"),
        ("binary", pa.binary(), "binary"),
        ("date", pa.date32(), "date"),
        ("timestamp", pa.timestamp("us", tz="UTC"), "timestamp"),
        ("timestamp_ntz", pa.timestamp("us"), "timestamp_ntz"),
        ("void", pa.null(), "void"),
        ("null", pa.null(), "void"),
        ({"type": "udt", "class": "x.VectorUDT", "sqlType": struct(("a", "long"))}, VECTOR, "struct<a:long>"),
        ("decimal", pa.decimal128(10, 0), "decimal(10,0)"),
        ("decimal(38, 18)", pa.decimal128(38, 18), "decimal(38,18)"),
        ("variant", pa.struct({"value": pa.binary(), "metadata": pa.binary()}), "variant"),
        (
            {"type": "array", "elementType": "long", "containsNull": False},
            pa.list_(pa.field("element", pa.int64(), nullable=False)),
            "array<long>",
        ),
        (
            {"type": "map", "keyType": "string", "valueType": struct(("a", "date")), "valueContainsNull": True},
            pa.map_(pa.string(), pa.struct({"a": pa.date32()})),
            "map<string,struct<a:date>>",
        ),
    ],
)
def test_a_type_has_one_arrow_type_and_one_spelling(kind, wanted, spelled):
    table_metadata = metadata(schema_json([("a", kind)]))

    assert arrow_schema(table_metadata).field("a").type == wanted
    assert table_schema(table_metadata).columns[0].type == spelled


def test_the_schema_tells_ids_comments_and_declared_types():
    text = schema_json(
        [
            ("id", "long", {ID: 7, "comment": "the key", NAME: "col-1"}),
            ("word", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"}),
        ]
    )
    found = table_schema(metadata(text, partition_by=["word"]))

    assert (found.id, found.partition_keys, found.primary_keys) == (None, ("word",), ())
    assert [(column.id, column.type, column.comment) for column in found.columns] == [
        (7, "long", "the key"),
        (None, "varchar(10)", None),
    ]


def test_a_type_that_is_not_read_is_shown_but_has_no_arrow_type():
    table_metadata = metadata(schema_json([("shape", "geography(a, flat)")]))

    assert table_schema(table_metadata).columns[0].type == "geography(a, flat)"
    with pytest.raises(UnsupportedFeatureError, match="Columns of type geography"):
        arrow_schema(table_metadata)


def test_without_a_schema_there_are_no_columns():
    assert table_schema(metadata(None)).columns == ()
    assert arrow_schema(metadata(None)).names == []


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_columns_are_mapped_where_the_property_says_so(mode):
    table_metadata = metadata(
        schema_json([("a", "long", {NAME: "col-a", ID: 1})]), configuration={"delta.columnMapping.mode": mode}
    )

    found = schema_of(table_metadata)

    assert found.mode == mode
    assert found.fields[0].stored == ("a" if mode == "none" else "col-a")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '"long"',
        '{"type":"array","elementType":"long"}',
        '{"type":"struct"}',
        '{"type":"struct","fields":[{"name":"a"}]}',
        '{"type":"struct","fields":[{"name":1,"type":"long"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"decimal(39,0)"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"decimal(3,4)"}]}',
        '{"type":"struct","fields":[{"name":"a","type":3}]}',
        '{"type":"struct","fields":["a"]}',
        '{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"delta.columnMapping.id":"x"}}]}',
        '{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}',
    ],
)
def test_what_is_not_a_schema_is_damage(text):
    with pytest.raises(CorruptTableError, match="The schema in the table's metaData action is not readable"):
        schema_of(metadata(text))


def test_a_partition_column_must_be_in_the_schema():
    with pytest.raises(CorruptTableError, match="refers to the column 'day', which its schemaString lacks"):
        schema_of(metadata(schema_json(), partition_by=["day"]))


WHOLE = schema_json(
    [("a", struct(("b", "decimal(5,2)"), ("c", {"type": "array", "elementType": "long"}))), ("d", "date")]
)


@given(st.integers(0, len(WHOLE)))
def test_a_schema_cut_anywhere_is_read_or_refused(length):
    _, error = tried(schema_of, metadata(WHOLE[:length]))

    assert length == len(WHOLE) if error is None else "schema" in str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["long", "struct", "array", "a", "decimal(3,1)"]),
    lambda part: st.lists(part) | st.dictionaries(st.sampled_from(["type", "fields", "name", "elementType"]), part),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_schema_or_damage(found):
    _, error = tried(schema_of, metadata(json.dumps({"type": "struct", "fields": found})))

    assert error is None or "metaData" in str(error)
