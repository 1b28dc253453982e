from tests.inner.arrow import distinct_names


def test_each_column_has_a_name_of_its_own_also_where_one_looks_like_a_number():
    assert distinct_names([]) == []
    assert distinct_names(["n", "m", "n"]) == ["n", "m", "n (3)"]
    assert distinct_names(["n", "n", "n (2)"]) == ["n", "n (3)", "n (2)"]
    assert distinct_names(["n", "n (3)", "n", "n"]) == ["n", "n (3)", "n (4)", "n (5)"]
