"""Bin packing: consecutive items are combined up to a target weight."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def bins(
    weights: npt.NDArray[np.int64], *, target: int, starts: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Return the start of each bin that `pack` would return for items with these weights, then the number of items.

    Args:
        starts: The starts of runs of items, ascending. No bin combines items of different runs.
    """
    sums = np.concatenate([[0], np.cumsum(weights)])
    bounds: list[int] = []
    edges = [0, *(() if starts is None else starts.tolist()), len(weights)]
    for begin, end in pairwise(edges):
        bound = begin
        while bound < end:
            bounds.append(bound)
            if end - bound > 1:
                fitting = int(np.searchsorted(sums, sums[bound] + target, side="right")) - 1
                bound = min(max(fitting, bound + 1), end)
            else:
                bound = end
    return np.array([*bounds, len(weights)])


def pack(items: Iterable[T], weight: Callable[[T], int], *, target: int) -> Iterator[list[T]]:
    """Yield bins: lists of consecutive items whose weights sum to at most `target`.

    No bin is empty. An item that is heavier than the target has its own bin. The order is kept, as in pyiceberg's
    `ListPacker` with a lookback of 1.
    """
    result: list[T] = []
    held = 0
    for item in items:
        cost = weight(item)
        if result and held + cost > target:
            yield result
            result, held = [], 0
        result.append(item)
        held += cost
    if result:
        yield result
