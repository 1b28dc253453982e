"""Functions over all keys at once, against the same functions from one value to the next."""

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.paimon import (
    ADD,
    ADD_EARLIER,
    CLEAR,
    RETRACT,
    SET,
    SKIP,
    ColumnSteps,
    Function,
    KeyGroups,
    fold_column,
)

FLOATS = st.none() | st.sampled_from([0.0, -0.0, 0.1, 1e30, -1e30, 1e308, math.inf, math.nan, 3.0])
TEXTS = st.none() | st.sampled_from(["a", "b", "", " ", "a,b"])
LISTS = st.none() | st.lists(st.none() | st.integers(0, 3), max_size=3)
MAPS = st.none() | st.dictionaries(st.sampled_from("pqr"), st.none() | st.integers(0, 9), max_size=3)
WHOLES = st.none() | st.integers(-(10**25), 10**25)
ALL, ADDS = (SKIP, SET, CLEAR, ADD, ADD_EARLIER, RETRACT), (SKIP, ADD)


def keys_of(values, actions):
    row = st.tuples(values, st.sampled_from(actions))
    return st.lists(st.tuples(st.booleans(), st.lists(row, min_size=1, max_size=5)), max_size=6)


def folded(keys, function, kind):
    """Fold rows by key, as columns."""
    rows = [row for _, group in keys for row in group]
    groups = np.repeat(np.arange(len(keys)), [len(group) for _, group in keys]).astype(np.int64)
    values = pa.chunked_array([pa.array([value for value, _ in rows], kind)], kind)
    crowd = KeyGroups(row_numbers=np.arange(len(rows)), groups=groups, kinds=np.zeros(len(rows), np.int8))
    steps = ColumnSteps(
        actions=np.array([action for _, action in rows], np.int8),
        function=function,
        begins=np.array([begins for begins, _ in keys], bool),
    )
    made = fold_column(values, crowd, steps)
    made.validate(full=True)
    return made.to_pylist()


def one_by_one(keys, add, retract=None, earlier=None):
    """Fold rows by key, one after another."""
    found = []
    for begins, group in keys:
        value = group[0][0] if begins else None
        for item, action in group:
            match action:
                case 1:
                    value = item
                case 2:
                    value = None
                case 3:
                    value = add(value, item)
                case 4:
                    value = (earlier or (lambda value, item: add(item, value)))(value, item)
                case 5:
                    value = retract(value, item)
        found.append(value)
    return found


def null_skip(operation):
    return lambda value, item: operation(value, item) if None not in (value, item) else item if value is None else value


def bits(values, form):
    return [None if value is None else "nan" if math.isnan(value) else struct.pack(form, value) for value in values]


@settings(deadline=None, max_examples=150)
@given(keys_of(FLOATS, ALL), st.sampled_from([(pa.float64(), np.float64, "<d"), (pa.float32(), np.float32, "<f")]))
def test_floats_are_added_and_multiplied_in_the_order_of_the_rows(keys, width):
    kind, make, form = width
    with np.errstate(all="ignore"):
        typed = [
            (begins, [(None if value is None else make(value), action) for value, action in group])
            for begins, group in keys
        ]
        sums = one_by_one(
            typed,
            null_skip(lambda value, item: value + item),
            lambda value, item: value if item is None else -item if value is None else value - item,
        )
        products = one_by_one(
            typed,
            null_skip(lambda value, item: value * item),
            lambda value, item: value if None in (value, item) else value / item,
        )

    assert bits(folded(typed, Function(name="sum"), kind), form) == bits(sums, form)
    assert bits(folded(typed, Function(name="product"), kind), form) == bits(products, form)


@settings(deadline=None)
@given(keys_of(WHOLES, (SKIP, ADD, ADD_EARLIER, RETRACT)))
def test_sums_of_wide_decimals_are_exact(keys):
    from decimal import Decimal

    typed = [(begins, [(None if v is None else Decimal(v), action) for v, action in group]) for begins, group in keys]
    expected = one_by_one(
        typed,
        null_skip(lambda value, item: value + item),
        lambda value, item: value if item is None else -item if value is None else value - item,
    )

    assert folded(typed, Function(name="sum"), pa.decimal128(30, 0)) == expected


@settings(deadline=None)
@given(keys_of(st.none() | st.sampled_from(["a", "b", "a;b", "ü"]), ADDS))
def test_texts_are_joined(keys):
    expected = one_by_one(keys, null_skip(lambda value, item: f"{value};{item}"))

    assert folded(keys, Function(name="listagg", delimiter=";"), pa.string()) == expected


@settings(deadline=None)
@given(keys_of(LISTS, (SKIP, ADD, ADD_EARLIER)), st.booleans())
def test_lists_are_joined_and_of_equal_elements_the_first_stays(keys, distinct):
    def add(value, item):
        if value is None and item is None:
            return None
        both = [*(value or ()), *(item or ())]
        return list(dict.fromkeys(both)) if distinct else both

    found = folded(keys, Function(name="collect", distinct=distinct), pa.list_(pa.int32()))

    assert found == one_by_one(keys, add, earlier=add)


@settings(deadline=None)
@given(
    keys_of(
        st.none() | st.lists(st.none() | st.fixed_dictionaries({"v": st.integers(0, 2), "l": LISTS}), max_size=3),
        (SKIP, ADD, ADD_EARLIER),
    )
)
def test_lists_of_rows_are_joined(keys):
    kind = pa.list_(pa.struct({"v": pa.int32(), "l": pa.list_(pa.int32())}))

    found = folded(keys, Function(name="collect"), kind)

    joined = null_skip(lambda value, item: value + item)
    assert found == one_by_one(keys, joined, earlier=joined)


def test_rows_taken_back_from_joined_lists_are_refused():
    kind = pa.list_(pa.struct({"v": pa.int32()}))
    keys = [(False, [([{"v": 1}], ADD), ([{"v": 1}], RETRACT)])]

    with pytest.raises(UnsupportedFeatureError, match="collect has retracts of elements of type struct<v: int32>"):
        folded(keys, Function(name="collect"), kind)
    assert folded([(False, [([{"v": 1}], ADD), ([], RETRACT)])], Function(name="collect"), kind) == [[{"v": 1}]]


@settings(deadline=None)
@given(keys_of(MAPS, ADDS))
def test_maps_are_joined_and_of_equal_keys_the_last_stays(keys):
    expected = one_by_one(keys, null_skip(lambda value, item: {**value, **item}))
    rows = [(begins, [(None if v is None else list(v.items()), act) for v, act in group]) for begins, group in keys]

    found = folded(rows, Function(name="merge_map"), pa.map_(pa.string(), pa.int32()))

    assert found == [None if value is None else list(value.items()) for value in expected]


def test_a_key_of_very_many_rows_does_not_go_round_after_round():
    keys = [(False, [(1.0, ADD)] * 5_000), (False, [(0.5, ADD)])]

    assert folded(keys, Function(name="sum"), pa.float64()) == [5_000.0, 0.5]


TABLE = pa.list_(pa.struct([("id", pa.int32()), ("v", pa.string()), ("at", pa.int32())]))


def table(*rows):
    return [None if row is None else dict(zip(("id", "v", "at"), row, strict=True)) for row in rows]


def nested(values, **options):
    made = folded([(False, [(value, ADD) for value in values])], Function(name="nested_update", **options), TABLE)[0]
    return sorted(((row["id"], row["v"], row["at"]) for row in made), key=str)


def test_of_nested_rows_of_one_key_the_one_with_the_greater_sequence_stays():
    values = [table((1, "a", 5), (2, "b", None)), table((1, "old", 4), (2, "new", 0)), table((1, "same", 5))]

    found = nested(values, nested_key=("id",), nested_sequence=("at",))

    assert found == [(1, "same", 5), (2, "new", 0)]


def test_nested_rows_with_a_null_in_their_key_are_merged_ignored_or_refused():
    from tests.inner.arrow import CorruptBytesError

    values = [table((1, "a", 0)), table((None, "b", 0), None), table((None, "c", 0))]

    assert nested(values, nested_key=("id",)) == [(1, "a", 0), (None, "c", 0)]
    assert nested(values, nested_key=("id",), null_keys="ignore") == [(1, "a", 0)]
    with pytest.raises(
        CorruptBytesError, match="a null in their key, which the option nested-key-null-strategy forbids"
    ):
        nested(values, nested_key=("id",), null_keys="error")


def test_no_more_nested_rows_than_the_limit_are_added():
    values = [table((1, "a", 0)), table((2, "b", 0), None, (3, "c", 0), (4, "d", 0)), table((5, "e", 0))]

    assert nested(values, count_limit=3) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]
    assert nested(values, count_limit=3, nested_key=("id",)) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]


def test_where_releases_differ_over_the_limit_of_nested_rows_it_is_refused():
    from snapshot_explorer.errors import UnsupportedFeatureError

    with pytest.raises(UnsupportedFeatureError, match="more rows than its option count-limit allows"):
        nested([table((1, "a", 0)), table((1, "b", 0))], count_limit=1, nested_key=("id",))
    with pytest.raises(UnsupportedFeatureError, match="or more than 1 rows in its first value"):
        nested([table((1, "a", 0), (2, "b", 0))], count_limit=1)
