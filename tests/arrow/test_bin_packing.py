from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.arrow import bins, pack


def _packed(weights: list[int], target: int) -> list[list[int]]:
    return list(pack(weights, lambda weight: weight, target=target))


def test_bins_hold_up_to_the_target():
    assert _packed([4, 6, 1, 9, 1], 10) == [[4, 6], [1, 9], [1]]


def test_an_item_above_the_target_has_a_bin_of_its_own():
    assert _packed([1, 20, 1], 10) == [[1], [20], [1]]


def test_no_items_make_no_bins():
    assert _packed([], 10) == []


def test_items_without_weight_fill_no_bin():
    assert _packed([0, 10, 0, 0, 10], 10) == [[0, 10, 0, 0], [10]]


@given(weights=st.lists(st.integers(0, 50)), target=st.integers(0, 60))
def test_bins_keep_the_order_and_none_could_take_the_next_item(weights, target):
    packed = _packed(weights, target)

    assert [weight for found in packed for weight in found] == weights
    assert all(sum(found) <= target or len(found) == 1 for found in packed)
    assert all(sum(found) + following[0] > target for found, following in pairwise(packed))
    bounds = bins(np.array(weights, np.int64), target=target).tolist()
    assert [weights[begin:end] for begin, end in pairwise(bounds)] == packed


@given(runs=st.lists(st.lists(st.integers(0, 50), min_size=1)), target=st.integers(0, 60))
def test_runs_of_items_are_packed_each_by_itself(runs, target):
    weights = [weight for run in runs for weight in run]
    starts = np.cumsum([0, *map(len, runs)])[:-1].astype(np.int64)

    bounds = bins(np.array(weights, np.int64), target=target, starts=starts).tolist()

    expected = [found for run in runs for found in _packed(run, target)]
    assert [weights[begin:end] for begin, end in pairwise(bounds)] == expected
