"""How two schemas, or two sets of properties, differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.analysis import compare_properties, compare_schemas
from tests.inner.core import Column, TableSchema


def column(number, name, kind="INT", *, nullable=True, comment=None):
    return Column(id=number, name=name, type=kind, nullable=nullable, comment=comment)


def schema(*columns, keys=(), partitions=()):
    return TableSchema(id=0, columns=columns, primary_keys=tuple(keys), partition_keys=tuple(partitions))


def reported(a, b):
    return [tuple(row.values()) for row in compare_schemas(a, b).to_pylist()]


A, B, C = column(0, "a"), column(1, "b"), column(2, "c")


def test_columns_are_followed_by_their_field_ids():
    before = schema(column(0, "id", "BIGINT NOT NULL", nullable=False), column(1, "old"), column(2, "gone", "DATE"))
    after = schema(column(0, "id", "BIGINT NOT NULL", nullable=False), column(1, "new"), column(3, "gone", "STRING"))

    assert reported(before, after) == [
        ("dropped", 2, "gone", "DATE", None),
        ("renamed", 1, "new", "old", "new"),
        ("added", 3, "gone", None, "STRING"),
    ]


def test_without_field_ids_columns_are_followed_by_their_names():
    before, after = schema(column(None, "a"), column(None, "b")), schema(column(None, "a", "long"), column(None, "c"))

    assert [row[:3] for row in reported(before, after)] == [
        ("dropped", None, "b"),
        ("widened", None, "a"),
        ("added", None, "c"),
    ]


def test_columns_that_only_got_ids_are_the_same_columns():
    before = schema(column(None, "id"), column(None, "method"))
    after = schema(column(1, "id"), column(2, "channel"))

    assert reported(before, after) == [
        ("dropped", None, "method", "INT", None),
        ("added", None, "channel", None, "INT"),
    ]
    assert reported(before, schema(column(1, "id"), column(2, "method"))) == []


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("INT", "BIGINT", "widened"),
        ("integer", "long", "widened"),
        ("BIGINT", "INT", "narrowed"),
        ("FLOAT", "DOUBLE", "widened"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", "widened"),
        ("decimal(10,2)", "decimal(12,4)", "widened"),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)", "retyped"),
        ("VARCHAR(10)", "VARCHAR(20)", "widened"),
        ("VARCHAR(10)", "STRING", "widened"),
        ("STRING", "VARCHAR(10)", "narrowed"),
        ("CHAR(5)", "VARCHAR(3)", "retyped"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "widened"),
        ("TIMESTAMP(6)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "retyped"),
        ("INT", "STRING", "retyped"),
        ("BIGINT", "FLOAT", "retyped"),
        ("ARRAY<INT>", "ARRAY<BIGINT>", "retyped"),
        ("ROW<x INT>", "ROW<x INT, y INT>", "retyped"),
    ],
)
def test_a_type_is_widened_where_every_value_fits(before, after, change):
    assert reported(schema(column(0, "a", before)), schema(column(0, "a", after))) == [(change, 0, "a", before, after)]


def test_not_null_is_shown_once_though_some_formats_write_it_in_the_type():
    before, after = column(0, "a", "INT NOT NULL", nullable=False), column(0, "a", "INT")

    assert reported(schema(before), schema(after)) == [("nullable", 0, "a", "not null", "nullable")]
    assert reported(schema(after), schema(before)) == [("not null", 0, "a", "nullable", "not null")]


def test_comments_are_compared():
    assert reported(schema(column(0, "a")), schema(column(0, "a", comment="euros"))) == [
        ("comment", 0, "a", None, "euros")
    ]


def test_the_order_of_the_columns_that_both_have_is_compared():
    assert reported(schema(A, B, C), schema(C, A)) == [
        ("dropped", 1, "b", "INT", None),
        ("reordered", None, None, "a, c", "c, a"),
    ]
    assert reported(schema(A, C), schema(A, B, C)) == [("added", 1, "b", None, "INT")]


def test_keys_are_compared_and_a_renamed_key_is_the_same_key():
    renamed = column(0, "z")

    assert reported(schema(A, B, keys=["a"]), schema(A, B, keys=["a", "b"], partitions=["b"])) == [
        ("primary key", None, None, "a", "a, b"),
        ("partition key", None, None, None, "b"),
    ]
    assert reported(schema(A, keys=["a"]), schema(renamed, keys=["z"])) == [("renamed", 0, "z", "a", "z")]


def test_properties_are_added_removed_and_changed():
    before, after = {"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"}

    assert [tuple(row.values()) for row in compare_properties(before, after).to_pylist()] == [
        ("removed", "a", "1", None),
        ("changed", "c", "3", "4"),
        ("added", "d", None, "5"),
    ]


COLUMNS = st.builds(
    Column,
    id=st.integers(0, 5),
    name=st.sampled_from("abcdef"),
    type=st.sampled_from(["INT", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(7, 2)", "STRING", "CHAR(3)", "ROW<x INT>", "?"]),
    nullable=st.booleans(),
    comment=st.sampled_from([None, "x"]),
)
SCHEMAS = st.lists(COLUMNS, max_size=5, unique_by=(lambda one: one.id, lambda one: one.name)).map(
    lambda columns: schema(*columns, keys=[column.name for column in columns[:1]])
)
TURNED = {
    "added": "dropped",
    "dropped": "added",
    "widened": "narrowed",
    "narrowed": "widened",
    "nullable": "not null",
    "not null": "nullable",
}


@given(SCHEMAS, SCHEMAS)
def test_changes_of_a_schema_turned_round_are_the_changes_the_other_way(a, b):
    names = {one.id: (one.name, other.name) for one in a.columns for other in b.columns if one.id == other.id}

    def turned(change, number, name, before, after):
        other = names[number][0] if number in names else name
        return TURNED.get(change, change), number, other, after, before

    keys = {"primary key"}  # spelled with the names of either side
    there = {row for row in reported(a, b) if row[0] not in keys | {"reordered"}}
    back = {turned(*row) for row in reported(b, a) if row[0] not in keys | {"reordered"}}

    assert {(row[0], row[1], *row[3:]) for row in there} == {(row[0], row[1], *row[3:]) for row in back}
    assert ("reordered" in {row[0] for row in reported(a, b)}) == ("reordered" in {row[0] for row in reported(b, a)})
    assert reported(a, a) == []
