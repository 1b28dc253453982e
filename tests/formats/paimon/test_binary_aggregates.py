"""Unions of bitmaps and sketches.

The bytes that Java writes are compared in test_read_tables (aggregates_bitmaps, aggregates_sketches).
"""

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.arrow import roaring
from snapshot_explorer.errors import MissingDependencyError, UnsupportedFeatureError
from tests.inner.arrow import CorruptBytesError
from tests.inner.paimon import BitmapContainer, aggregates
from tests.inner.paimon import bitmaps_parse as parse
from tests.inner.paimon import bitmaps_serialize as serialize
from tests.inner.paimon import bitmaps_union as union

RANGES = st.tuples(st.integers(0, 2 << 16), st.sampled_from([1, 2, 3, 4, 50, 4_200]), st.sampled_from([1, 1, 2]))
SETS = st.lists(RANGES, max_size=4).map(
    lambda ranges: {number for start, count, step in ranges for number in range(start, start + count * step, step)}
)


def bitmap(numbers, *, runs):
    made = {}
    for number in sorted(numbers):
        made.setdefault(number >> 16, []).append(number & 0xFFFF)
    return {key: BitmapContainer(numbers=np.array(low, np.int64), is_run=runs) for key, low in made.items()}


@settings(deadline=None, max_examples=50)
@given(SETS, SETS, st.booleans(), st.booleans())
def test_a_union_has_the_numbers_of_both_in_no_more_bytes_than_without_runs(left, right, left_runs, right_runs):
    both = [parse(serialize(bitmap(side, runs=runs))) for side, runs in ((left, left_runs), (right, right_runs))]

    content = serialize(union(*both))

    numbers, end = roaring.decode(content, 0, 1 << 32)
    assert numbers.tolist() == sorted(left | right)
    assert end == len(content)
    assert len(content) <= len(serialize(bitmap(left | right, runs=False)))


def test_a_container_of_three_in_a_row_keeps_the_form_that_it_came_in():
    plain, runs = (bitmap({1, 2, 3}, runs=runs) for runs in (False, True))
    other = bitmap({1 << 16}, runs=False)

    assert serialize(union(plain, other))[:2] == b"\x3a\x30"
    assert serialize(union(runs, other))[:2] == b"\x3b\x30"


def test_the_bytes_are_those_of_the_format():
    content = serialize(union(bitmap({1}, runs=False), bitmap({2, 5}, runs=False)))

    assert content.hex() == "3a30000001000000" + "00000200" + "10000000" + "010002000500"


def fold(make, values):
    made = make(pa.array(values, pa.binary()))
    value = made.items[0]
    for item in made.items[1:]:
        value = made.add(value, item)
    return made.result([value]).to_pylist()[0]


def test_a_value_that_nothing_was_added_to_is_left_as_it_is():
    longer = serialize(bitmap({1}, runs=True))

    assert fold(aggregates.bitmap, [None, longer, None]) == longer
    assert fold(aggregates.bitmap, [longer, longer]) == serialize(bitmap({1}, runs=False))


def test_a_wide_bitmap_that_nothing_was_added_to_is_left_as_it_is():
    empty = b"\x00"

    assert fold(aggregates.bitmap_64, [None, b"not looked at", None]) == b"not looked at"
    assert fold(aggregates.bitmap_64, [None, None]) is None
    assert fold(aggregates.bitmap_64, [empty + b"more", empty, empty]) == empty


@pytest.mark.parametrize("content", [b"", b"\x3a\x30", b"no bitmap"])
def test_bytes_that_are_not_a_bitmap_are_refused(content):
    with pytest.raises(CorruptBytesError):
        fold(aggregates.bitmap, [content, serialize({})])
    with pytest.raises(CorruptBytesError):
        fold(aggregates.bitmap_64, [content, b"\x00"])
    with pytest.raises(CorruptBytesError):
        fold(aggregates.bitmap_64, [b"\x00", content])


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch"])
def test_without_its_package_a_sketch_is_refused_with_the_command_that_installs_it(function, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)

    with pytest.raises(MissingDependencyError, match=r"pip install snapshot-explorer\[sketches\]"):
        getattr(aggregates, function)(pa.array([b""], pa.binary()))


def test_bytes_that_are_not_a_sketch_are_refused():
    pytest.importorskip("datasketches")

    with pytest.raises(CorruptBytesError, match="a sketch that cannot be read"):
        fold(aggregates.hll_sketch, [b"no sketch at all", b"nor is this"])
    with pytest.raises(CorruptBytesError, match="a sketch that cannot be read"):
        fold(aggregates.theta_sketch, [bytes.fromhex("02030300001acc93"), bytes.fromhex("02030300001acc93")])
    with pytest.raises(
        UnsupportedFeatureError, match="contains bytes that begin with c303020c0a00cc93, which is not a compact sketch"
    ):
        fold(aggregates.theta_sketch, [bytes.fromhex("c303020c0a00cc93"), b""])


def test_the_union_of_small_theta_sketches_is_as_java_writes_it():
    pytest.importorskip("datasketches")
    empty = bytes.fromhex("01030300001e0000")
    single = bytes.fromhex("01030300003acc9377e563eea5191006")

    assert fold(aggregates.theta_sketch, [empty, empty]) == empty
    assert fold(aggregates.theta_sketch, [empty, single]) == single
