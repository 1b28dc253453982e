"""Bin packing: items put together in their order, up to a target weight."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def pack(items: Iterable[T], weight: Callable[[T], int], *, target: int) -> Iterator[list[T]]:
    """Yield bins: lists of consecutive items whose weights sum to at most `target`.

    No bin is empty. An item that is heavier than the target has a bin of its own. Order is kept, so that no bin takes
    up an item that comes after one in a later bin (pyiceberg's `ListPacker` with a lookback of 1).

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
