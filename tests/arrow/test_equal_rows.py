import pyarrow as pa

from tests.inner.arrow import equal_rows


def test_rows_are_equal_if_all_their_values_are():
    left = pa.table({"path": ["a", "b", "c", "d"], "size": [1, None, None, 4], "texts": [["x"], None, ["y"], ["z"]]})
    right = pa.table({"path": ["d", "c", "b", "e"], "size": [5, None, None, 1], "texts": [["z"], ["n"], None, ["x"]]})

    lefts, rights = equal_rows(left, right, "path")

    assert lefts.tolist() == [False, True, False, False]
    assert rights.tolist() == [False, False, True, False]


def test_a_key_that_occurs_twice_makes_no_rows_equal():
    table = pa.table({"path": ["a", "a", "b"]})

    lefts, rights = equal_rows(table, table, "path")

    assert not lefts.any()
    assert not rights.any()
