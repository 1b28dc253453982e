"""Numbers in place of maps: equal where the maps are, whatever keys they have."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core import frames
from tests.inner.arrow import codes_of_maps, distinct_maps

TEXTS = st.sampled_from(["", "a", "b", "null"])
MAPS = st.one_of(
    st.lists(st.dictionaries(TEXTS, st.none() | TEXTS, max_size=3).map(lambda one: list(one.items()))),
    st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS).map(lambda two: list(zip("pq", two, strict=True)))),
)


@given(MAPS, st.integers(0, 3))
def test_maps_have_one_number_where_they_are_equal(maps, skipped):
    column = pa.array(maps, frames.PARTITION)[skipped:]
    values = column.to_pylist()

    codes = codes_of_maps(column)

    expected = [[values.index(other) for other in values].index(values.index(one)) for one in values]
    assert np.unique(codes, return_index=True)[0].size == len({repr(one) for one in values})
    assert [codes.tolist().index(code) for code in codes.tolist()] == expected


@given(MAPS)
def test_distinct_maps_and_places_give_the_column_again(maps):
    distinct, places = distinct_maps(pa.array(maps, frames.PARTITION))

    assert distinct.take(pa.array(places)).to_pylist() == maps
    assert len(distinct) == len({repr(one) for one in maps})
