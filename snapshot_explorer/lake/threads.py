"""Work on many tables at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

A = TypeVar("A")
B = TypeVar("B")

WORKERS = 256
"""Tables that are read at the same time: nearly all of the time is spent waiting for storage."""


def concurrently(
    items: Sequence[A], work: Callable[[A], B], *, what: str, threads: int = WORKERS
) -> Iterator[tuple[A, B | SnapshotExplorerError]]:
    """Yield each item with the result of some work on it, or its error, as soon as it is there; see `Lake.each`."""
    with ThreadPoolExecutor(threads, "snapshot-lake") as pool, step(what, total=len(items)) as reading:
        futures = {pool.submit(work, item): item for item in items}
        try:
            for future in as_completed(futures):
                reading.advance()
                yield futures[future], _outcome(future.result)
        finally:
            for future in futures:
                future.cancel()


def _outcome(result: Callable[[], B]) -> B | SnapshotExplorerError:
    try:
        return result()
    except SnapshotExplorerError as error:
        return error
