import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.arrow import values_of

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.none() | st.text("ab", max_size=2)), max_size=4)


@given(maps=st.lists(st.none() | PAIRS, max_size=8), key=st.integers(0, 4), cut=st.integers(0, 3))
def test_values_are_those_that_arrow_looks_up(maps, key, cut):
    array = pa.array(maps, pa.map_(pa.int32(), pa.string())).slice(cut)

    for last in (False, True):
        expected = pc.map_lookup(array, pa.scalar(key, pa.int32()), "last" if last else "first")
        assert values_of(array, key, last=last).to_pylist() == expected.to_pylist()
        assert values_of(pa.chunked_array([array, array]), key, last=last).to_pylist() == 2 * expected.to_pylist()
