"""Bin packing: consecutive items are combined up to a target weight."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def bins(weights: npt.NDArray[np.int64], *, target: int) -> npt.NDArray[np.int64]:
    """Return the start of each bin that `pack` would return for items with these weights, then the number of items.

    Args:
        weights: The weight of each item, 0 or more.
        target: The greatest weight of a bin of several items.
    """
    sums = np.concatenate([[0], np.cumsum(weights)])
    bounds = [0]
    while bounds[-1] < len(weights):
        end = int(np.searchsorted(sums, sums[bounds[-1]] + target, side="right")) - 1
        bounds.append(max(end, bounds[-1] + 1))
    return np.array(bounds)


def pack(items: Iterable[T], weight: Callable[[T], int], *, target: int) -> Iterator[list[T]]:
    """Yield bins: lists of consecutive items whose weights sum to at most `target`.

    No bin is empty. An item that is heavier than the target has its own bin. The order is kept, as in pyiceberg's
    `ListPacker` with a lookback of 1.

    Args:
        items: What to pack; iterated once.
        weight: The weight of an item, 0 or more.
        target: The greatest weight of a bin of several items.
    """
    found: list[T] = []
    held = 0
    for item in items:
        cost = weight(item)
        if found and held + cost > target:
            yield found
            found, held = [], 0
        found.append(item)
        held += cost
    if found:
        yield found
