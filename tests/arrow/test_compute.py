"""Functions return the values of whole columns, however these are cut into chunks and slices."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.arrow import compute as pc

VALUES = {pa.int32(): [1, 2], pa.bool_(): [True, False], pa.date32(): [1, 2], pa.string(): ["a", "bb"]}
FUNCTIONS = {
    "coalesce": pc.coalesce,
    "equal": pc.equal,
    "if_else": lambda left, right: pc.if_else(pc.is_valid(left), left, right),
    "if_else with null": lambda left, right: pc.if_else(pc.is_valid(right), pa.scalar(None, left.type), left),
    "fill_null": lambda left, _: pc.fill_null(left, VALUES[left.type][0]),
    "is_in": pc.is_in,
}


@st.composite
def columns(draw, dtype, rows):
    """A column of some rows: a slice of an array, or chunks that are slices."""
    values = draw(st.lists(st.none() | st.sampled_from(VALUES[dtype]), min_size=rows + 2, max_size=rows + 2))
    array = pa.array(values, dtype)
    cuts = [0, *sorted(draw(st.lists(st.integers(0, rows), max_size=2))), rows]
    offset = draw(st.integers(0, 2))
    chunks = [array.slice(offset + start, end - start) for start, end in pairwise(cuts)]
    return draw(st.sampled_from([array.slice(offset, rows), pa.chunked_array(chunks, dtype)]))


@pytest.mark.parametrize("name", FUNCTIONS)
@given(data=st.data(), dtype=st.sampled_from(list(VALUES)), rows=st.integers(1, 6))
def test_chunks_and_slices_change_no_value(name, data, dtype, rows):
    left, right = data.draw(columns(dtype, rows)), data.draw(columns(dtype, rows))
    plain = [pa.array(column.to_pylist(), dtype) for column in (left, right)]

    result = FUNCTIONS[name](left, right)

    result.validate(full=True)
    assert result.to_pylist() == FUNCTIONS[name](*plain).to_pylist()


TABLES = {
    "group_by": lambda table: table.group_by("key", use_threads=False).aggregate(
        [("value", "count"), ("value", "min"), ("value", "max"), ("value", "list")]
    ),
    "group_by several": lambda table: table.group_by(["key", "value"], use_threads=False).aggregate(
        [("value", "count")]
    ),
    "join": lambda table: table.join(
        table.group_by("key", use_threads=False).aggregate([("value", "max")]), "key", use_threads=False
    ),
    "sort_by": lambda table: table.sort_by([("key", "descending"), ("value", "ascending")]),
    "filter": lambda table: table.filter(pc.is_valid(table["value"])),
    "filter by expression": lambda table: table.filter(pc.equal(pc.field("key"), pc.field("value"))),
}
"""What this package and its users do with tables that have several columns."""


@pytest.mark.parametrize("name", TABLES)
@given(data=st.data(), dtype=st.sampled_from(list(VALUES)), rows=st.integers(1, 6))
def test_chunks_and_slices_change_no_row(name, data, dtype, rows):
    columns_of_table = [data.draw(columns(dtype, rows)) for _ in range(2)]
    table = pa.table(columns_of_table, ["key", "value"])
    plain = pa.table([pa.array(column.to_pylist(), dtype) for column in columns_of_table], ["key", "value"])

    result = TABLES[name](table)

    result.validate(full=True)
    assert sorted(map(repr, result.to_pylist())) == sorted(map(repr, TABLES[name](plain).to_pylist()))


def test_every_function_is_used_after_another_of_the_name_of_pythons_own():
    column = pa.array([1, 2])

    assert (pc.sum(column).as_py(), pc.any(pc.is_valid(column)).as_py(), pc.max(column).as_py()) == (3, True, 2)
    assert pc.add(column, column).to_pylist() == [2, 4]


def test_what_is_no_function_is_that_of_pyarrow():
    assert pc.SortOptions is pa.compute.SortOptions
    with pytest.raises(AttributeError):
        pc.no_such_function  # noqa: B018 - the attribute is what is tested
