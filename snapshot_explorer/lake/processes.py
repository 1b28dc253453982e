"""Work on many tables in several processes: Python computes in one thread of a process at a time."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from logging.handlers import QueueHandler
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from snapshot_explorer.lake.tables import LakeTable
from snapshot_explorer.lake.threads import WORKERS, concurrently
from snapshot_explorer.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapshot_explorer.errors import SnapshotExplorerError
    from snapshot_explorer.storage import Storage

A = TypeVar("A")

FEWEST = 100
"""Fewer tables are read before a process has started."""
_MOST_PROCESSES = 4
"""Each needs about 200 MiB."""
_MANY = 64
"""From so many tables on, one request of each at a time keeps the storage busy."""
_CODE = (
    "import gc, pickle, sys; gc.disable(); sys.path[:] = pickle.load(sys.stdin.buffer); from {0} import serve; serve()"
)
"""What a process runs. It imports neither the caller's `__main__` nor anything from the current folder."""
_PACKAGE = __name__.partition(".")[0]


def each_table(
    tables: Sequence[LakeTable], work: Callable[[LakeTable, Lock | None], A], *, what: str
) -> Iterator[tuple[LakeTable, A | SnapshotExplorerError]]:
    """Yield each table with the result of some work on it, or its error, as soon as it is there.

    Many tables that no process has opened yet are read by as many processes as there are processors, at most 4. Tables
    in catalogs, and all that these processes do not return, are read by threads of this one.

    Args:
        work: Picklable, as its results are. It is called with a table, and with what a thread acquires to compute
            something where there are many: threads that compete for the interpreter would cost more than they compute.
        what: The work in a few words, for the progress.
    """
    rest = {table.name: table for table in tables}
    moved = [table for table in tables if table.is_portable] if len(tables) >= FEWEST else []
    with step(what, total=len(tables)) as reading:
        for name, result in _from_processes(moved, work):
            reading.advance()
            yield rest.pop(name), result
        turns = Lock() if len(rest) >= _MANY else None
        for table, outcome in concurrently([*rest.values()], lambda table: work(table, turns), what=what):
            reading.advance()
            yield table, outcome


def _from_processes(tables: Sequence[LakeTable], work: Callable[..., A]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each table with the result of the work on it, of those that other processes return."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(processors, _MOST_PROCESSES)
    if len(tables) < FEWEST or count < 2 or not sys.executable:  # noqa: PLR2004 - one is no gain
        return
    level = logging.getLogger(_PACKAGE).getEffectiveLevel()
    locations = [(table.name, table.folder) for table in tables]
    try:
        tasks = [pickle.dumps((work, locations[number::count], WORKERS // count, level)) for number in range(count)]
    except (pickle.PicklingError, TypeError, AttributeError):
        return  # an object in the storage options that only this process has
    results: SimpleQueue[Any] = SimpleQueue()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for task in tasks:
            processes.append(
                subprocess.Popen(  # noqa: S603 - this interpreter, and the code above
                    [sys.executable, "-I", "-c", _CODE.format(__name__)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            Thread(target=_receive, args=(processes[-1], task, results), daemon=True).start()
        while count:
            result = results.get()
            if result is None:
                count -= 1
            elif not isinstance(result, logging.LogRecord):
                yield result
            elif (logger := logging.getLogger(result.name)).isEnabledFor(result.levelno):
                logger.handle(result)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _receive(process: subprocess.Popen[bytes], task: bytes, results: SimpleQueue[Any]) -> None:
    """Send a process its task, which contains secrets, over a pipe; pass on what it returns, and None at the end."""
    try:
        with cast("IO[bytes]", process.stdout) as answers:
            with cast("IO[bytes]", process.stdin) as pipe:
                pipe.write(pickle.dumps(sys.path) + task)
            while True:
                results.put(pickle.load(answers))  # noqa: S301 - from the process that this one started
    except (EOFError, OSError, pickle.UnpicklingError):
        pass  # what it did not return is read by threads
    finally:
        results.put(None)


class _Results(SimpleQueue[Any]):
    """Sends results and log records to the process that started this one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._file = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # what a library prints is no result

    def put_nowait(self, item: object) -> None:
        """Send an object."""
        with self._lock:
            pickle.dump(item, self._file)
            self._file.flush()


def serve() -> None:
    """Do the task that comes over the standard input. Runs in a process of its own."""
    results = _Results()
    work, locations, threads, level = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this
    logger = logging.getLogger(_PACKAGE)
    logger.setLevel(level)
    logger.addHandler(QueueHandler(results))
    logger.propagate = False
    turns = Lock()

    def read(location: tuple[str, tuple[Storage, str]]) -> object:
        name, folder = location
        return work(LakeTable.in_folder(name, *folder), turns)  # only the thread has the table, and frees it

    for (name, _), result in concurrently(locations, read, what="", threads=threads):
        results.put_nowait((name, result))
