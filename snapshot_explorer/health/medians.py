"""The k-th smallest of the values that are there at each of many moments, all moments at once."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def medians(values: Ints, first: Ints, last: Ints, count: int) -> Ints:
    """Return the median of the values that are there at each moment, rounded down between two; 0 where none is.

    A wavelet matrix over the comings and goings, in the order of time: a bit of the values' ranks after the other, and
    all moments at once, it is counted how many of those that are there have a 0, and so on which side the k-th is.
    Takes time for each bit in proportion to values and moments.

    Args:
        values: The values.
        first: For each the first moment at which it is there.
        last: For each the first moment at which it is there no more; `count` or more where there is none.
        count: How many moments there are.
    """
    if not len(values):
        return np.zeros(count, np.int64)
    distinct, ranks = np.unique(values, return_inverse=True)
    gone = last < count
    when = np.concatenate([first, last[gone]])
    order = np.argsort(when, kind="stable")
    rank = np.concatenate([ranks, ranks[gone]])[order].astype(np.int64)
    sign = np.concatenate([np.ones(len(values), np.int64), -np.ones(int(gone.sum()), np.int64)])[order]
    ends = np.searchsorted(when[order], np.arange(count), side="right").astype(np.int64)
    there = np.concatenate([[0], np.cumsum(sign)])[ends]
    places = np.concatenate([np.maximum(there - 1, 0) // 2, there // 2])
    found = _selected(rank, sign, np.concatenate([ends, ends]), places, len(distinct))
    low, high = distinct[found[:count]], distinct[np.where(there > 0, found[count:], 0)]
    return np.where(there > 0, low + (high - low) // 2, 0)


def _selected(rank: Ints, sign: Ints, ends: Ints, places: Ints, distinct: int) -> Ints:
    """Return the rank of the value at a place among those that the events up to an end leave there."""
    begins = np.zeros(len(ends), np.int64)
    places, found = places.copy(), np.zeros(len(ends), np.int64)
    for bit in reversed(range(max(1, (distinct - 1).bit_length()))):
        ones = (rank >> bit) & 1 == 1
        zeros_before = np.concatenate([[0], np.cumsum(~ones)])
        weight_before = np.concatenate([[0], np.cumsum(np.where(ones, 0, sign))])
        lower = weight_before[ends] - weight_before[begins]
        goes_up = places >= lower
        zeros = int(zeros_before[-1])
        at = [np.where(goes_up, zeros + some - zeros_before[some], zeros_before[some]) for some in (begins, ends)]
        begins, ends = at
        places = np.where(goes_up, places - lower, places)
        found = np.where(goes_up, found | (1 << bit), found)
        rearranged = np.concatenate([np.flatnonzero(~ones), np.flatnonzero(ones)])
        rank, sign = rank[rearranged], sign[rearranged]
    return np.minimum(found, distinct - 1)
