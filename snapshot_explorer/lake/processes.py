"""Work on many tables in several processes: Python computes in one thread of a process at a time."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import weakref
from contextlib import suppress
from logging.handlers import QueueHandler
from queue import SimpleQueue
from threading import Lock, RLock, Thread, Timer
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from snapshot_explorer.core.progress import step
from snapshot_explorer.formats import formats_by_name
from snapshot_explorer.lake.tables import LakeTable
from snapshot_explorer.lake.threads import WORKERS, concurrently
from snapshot_explorer.storage import pickled_with_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapshot_explorer.core.errors import SnapshotExplorerError
    from snapshot_explorer.storage import Storage

A = TypeVar("A")

MIN_TABLES = 100
"""Fewer tables are read before a process has started."""
_MOST_PROCESSES = 4
"""Each needs about 200 MiB."""
_MOST_UNTURNED = 64
"""The number of tables from which one request at a time for each keeps the storage busy."""
_CODE = (
    "import gc, pickle, sys; gc.disable(); sys.path[:] = pickle.load(sys.stdin.buffer); from {0} import serve; serve()"
)
"""The code that a process runs. It imports neither the caller's `__main__` nor anything from the current folder."""
_PACKAGE = __name__.partition(".")[0]
_IDLE_SECONDS = 60
"""How long a process waits for its task."""


class ReaderProcesses:
    """Processes that read tables. They can import the package, which takes a second, while the caller lists folders."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        self._lock = RLock()
        weakref.finalize(self, _stop, self._started)

    @property
    def count(self) -> int:
        """Return how many processes are started: one per processor, at most 4; 0 where only one could be."""
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(processors, _MOST_PROCESSES) if processors > 1 and sys.executable else 0

    def start_for(self, folders: int) -> None:
        """Start `count` processes if that many folders may contain enough tables for them."""
        if folders >= MIN_TABLES:
            self.start()

    def start(self) -> None:
        """Start `count` processes, unless they have been started."""
        with self._lock:
            for _ in range(0 if self._started else self.count):
                process = subprocess.Popen(  # noqa: S603 - this interpreter, and the code above
                    [sys.executable, "-I", "-c", _CODE.format(__name__)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._started.append(process)
                with suppress(OSError):  # it has ended
                    pipe = cast("IO[bytes]", process.stdin)
                    pipe.write(pickle.dumps(sys.path))
                    pipe.flush()

    def take(self) -> list[subprocess.Popen[bytes]]:
        """Return started processes, which the caller stops. They are started anew if one has ended."""
        with self._lock:
            if any(process.poll() is not None for process in self._started):
                _stop(self._started)
            self.start()
            taken = [*self._started]
            self._started.clear()
        return taken


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        with suppress(OSError), process:  # closes the pipes, and waits
            process.kill()
    processes.clear()


def each_table(
    tables: Sequence[LakeTable],
    work: Callable[[LakeTable, Lock | None], A],
    *,
    what: str,
    processes: ReaderProcesses,
) -> Iterator[tuple[LakeTable, A | SnapshotExplorerError]]:
    """Yield each table with the result of some work on it, or its error, as soon as it is there.

    Many tables that no process has opened yet are read by as many processes as there are processors, at most 4. Threads
    of this process read tables in catalogs, and all tables that the other processes do not return.

    Args:
        work: Picklable, like its results. It is called with a table, and with a lock that a thread acquires to compute
            if there are many threads: threads that compete for the interpreter would cost more than they compute.
        what: A short description of the work, for the progress.
        processes: Started or not. They do no other work afterwards.
    """
    rest = {table.name: table for table in tables}
    moved = [table for table in tables if table.is_portable] if len(tables) >= MIN_TABLES else []
    with step(what, total=len(tables)) as reading:
        for name, result in _from_processes(moved, work, processes):
            reading.advance()
            yield rest.pop(name), result
        turns = Lock() if len(rest) >= _MOST_UNTURNED else None
        for table, outcome in concurrently([*rest.values()], lambda table: work(table, turns), what=what):
            reading.advance()
            yield table, outcome


def _from_processes(
    tables: Sequence[LakeTable], work: Callable[..., A], processes: ReaderProcesses
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each table that other processes return, with the result of the work on it."""
    count = processes.count
    if len(tables) < MIN_TABLES or not count:
        return
    level = logging.getLogger(_PACKAGE).getEffectiveLevel()
    formats = formats_by_name()
    # Tables with few requests come last: at the end, only the consecutive requests of a single table take time.
    in_order = sorted(tables, key=lambda table: formats[str(table.format)].commits_are_in_one_file)
    locations = [(table.name, table.folder) for table in in_order]
    try:
        tasks = [
            pickled_with_options((work, locations[number::count], WORKERS // count, level)) for number in range(count)
        ]
    except (pickle.PicklingError, TypeError, AttributeError):
        return  # an object in the storage options that only this process has
    results: SimpleQueue[Any] = SimpleQueue()
    taken = processes.take()
    try:
        for process, task in zip(taken, tasks, strict=True):
            Thread(target=_receive, args=(process, task, results), daemon=True).start()
        missing = len(tables)
        while count and missing:  # not until the processes have ended, which takes them a while
            result = results.get()
            if result is None:
                count -= 1
            elif not isinstance(result, logging.LogRecord):
                missing -= 1
                yield result
            elif (logger := logging.getLogger(result.name)).isEnabledFor(result.levelno):
                logger.handle(result)
    finally:
        for process in taken:
            process.kill()
            process.wait()


def _receive(process: subprocess.Popen[bytes], task: bytes, results: SimpleQueue[Any]) -> None:
    """Send a process its task, which contains secrets, over a pipe; pass on its results, and None at the end."""
    try:
        with cast("IO[bytes]", process.stdout) as answers:
            with cast("IO[bytes]", process.stdin) as pipe:
                pipe.write(task)
            while True:
                results.put(pickle.load(answers))  # noqa: S301 - from the process that this one started
    except (EOFError, OSError, pickle.UnpicklingError):
        pass  # threads read the tables that the process did not return
    finally:
        results.put(None)


class _Results(SimpleQueue[Any]):
    """Sends results and log records to the process that started this one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._file = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # the output of a library is not a result

    def put_nowait(self, item: object) -> None:
        """Send an object."""
        with self._lock:
            pickle.dump(item, self._file)
            self._file.flush()


def serve() -> None:
    """Run the task from standard input. Runs in a process of its own."""
    results = _Results()
    waiting = Timer(_IDLE_SECONDS, os._exit, (0,))  # nobody may ever send one
    waiting.start()
    work, locations, threads, level = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this
    waiting.cancel()
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
