"""Work on many tables at the same time, in threads: other processes would start up longer than they save."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapshot_explorer.lake.tables import LakeTable

A = TypeVar("A")
B = TypeVar("B")

_WORKERS = 256
"""Tables that are read at the same time: nearly all of the time is spent waiting for storage."""
_MOST_UNTURNED = 64
"""The number of tables from which one request at a time for each keeps the storage busy."""


def each_table(
    tables: Sequence[LakeTable], work: Callable[[LakeTable, Lock | None], A], *, what: str
) -> Iterator[tuple[LakeTable, A | SnapshotExplorerError]]:
    """Yield each table with the result of some work on it, or its error, as soon as it is there.

    Args:
        work: Called with a table, and with a lock that a thread acquires to compute if there are many threads: threads
            that compete for the interpreter would cost more than they compute.
        what: A short description of the work, for the progress.
    """
    turns = Lock() if len(tables) >= _MOST_UNTURNED else None
    return concurrently(tables, lambda table: work(table, turns), what=what)


def concurrently(
    items: Sequence[A], work: Callable[[A], B], *, what: str
) -> Iterator[tuple[A, B | SnapshotExplorerError]]:
    """Yield each item with the result of some work on it, or its error, as soon as it is there; see `Lake.each`."""
    with ThreadPoolExecutor(_WORKERS, "snapshot-lake") as pool, step(what, total=len(items)) as reading:
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
