"""Operations that each make a request, done by several threads at the same time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

from snapshot_explorer.core.errors import SnapshotExplorerError

A = TypeVar("A")
B = TypeVar("B")

_TOGETHER = 8
"""The maximum number of functions that `together` runs in other threads; each function makes many requests."""


def concurrently(pool: ThreadPoolExecutor, workers: int, operation: Callable[[B], A], items: Sequence[B]) -> list[A]:
    """Return the results of an operation, in the order of the items. Raises the first error in order."""
    positions: SimpleQueue[int] = SimpleQueue()
    for position in range(len(items)):
        positions.put(position)
    results: dict[int, A] = {}
    failures: dict[int, SnapshotExplorerError] = {}
    stopped = threading.Event()

    def work() -> None:
        # A worker makes many requests: a future for each would cost as much as a small response.
        while not stopped.is_set():
            try:
                position = positions.get_nowait()
            except Empty:
                return
            if any(failed < position for failed in tuple(failures)):
                return
            try:
                results[position] = operation(items[position])
            except SnapshotExplorerError as error:
                failures[position] = error

    try:
        working = [pool.submit(work) for _ in range(min(workers, len(items)))]
        for worker in working:
            worker.result()
    finally:
        stopped.set()  # after an interrupt the other workers finish their current request only
    if failures:
        raise failures[min(failures)]
    return [results[position] for position in range(len(items))]


def together(reads: Sequence[Callable[[], object]]) -> tuple[object, ...]:
    """Return the results of functions that make requests, in order; the last one runs in the calling thread."""
    if len(reads) < 2:  # noqa: PLR2004 - one needs no thread
        return tuple(read() for read in reads)
    *others, last = reads
    # Not the pool of the requests: threads that wait for requests would block the threads that make them.
    with ThreadPoolExecutor(min(len(others), _TOGETHER), "snapshot-explorer-reads") as pool:
        futures = [pool.submit(read) for read in others]
        try:
            result = last()
        except SnapshotExplorerError:
            for future in futures:
                future.result()
            raise
        return (*(future.result() for future in futures), result)
