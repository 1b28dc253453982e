"""File systems for tests: one that counts what it is asked, one that refuses every write, one that fails as told.

Each function makes a class of its own, so that what one test counts no other test adds to.
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

TASKS = Path("/proc/self/task")
TURN_SECONDS, IDLE_TURNS = 0.01, 4
"""How long a turn is, and how many in a row in which no thread wants to run complete a round."""
MOST_TURNS = 6_000 if TASKS.exists() else 15
"""The turns that complete a round whatever runs: they end a hang, and a round where nobody says which threads run."""
WRITES = (
    "_rm",
    "chmod",
    "copy",
    "cp",
    "cp_file",
    "delete",
    "end_transaction",
    "link",
    "makedir",
    "makedirs",
    "mkdir",
    "mkdirs",
    "move",
    "mv",
    "pipe",
    "pipe_file",
    "put",
    "put_file",
    "rename",
    "rm",
    "rm_file",
    "rmdir",
    "start_transaction",
    "symlink",
    "touch",
    "upload",
    "write_bytes",
    "write_text",
)
"""The calls of fsspec that change something."""


class WriteAttempted(BaseException):
    """A write was tried. No handler of the library may catch it."""


@dataclass(frozen=True)
class Request:
    kind: str
    """list, info or get."""
    path: str
    bytes: int = 0


class Gate:
    """Holds requests back until all threads of the process wait; then it lets all of them pass.

    So a thread that a busy machine does not run yet makes its request in the same round.
    """

    def __init__(self):
        self.changed, self.passed, self.newest = threading.Condition(), 0, None

    def wait(self):
        """Return when the requests pass: True to one of them."""
        with self.changed:
            self.newest = me = object()
            before, idle = self.passed, 0
            for _ in range(MOST_TURNS):
                idle = idle + 1 if _only_this_thread_runs() else 0
                # A thread that was waiting for this lock makes its request now.
                if self.changed.wait_for(lambda: self.passed != before or self.newest is not me, TURN_SECONDS):
                    self.changed.wait_for(lambda: self.passed != before)
                    return False
                if idle == IDLE_TURNS:
                    break
            self.passed += 1
            self.changed.notify_all()
            return True


def _only_this_thread_runs():
    """Return whether no other thread of the process runs, or waits for a processor or a disk; False if unknown."""
    states = []
    for task in TASKS.glob("*/stat"):
        with suppress(OSError):  # the thread has ended
            states.append(task.read_text().rpartition(")")[2].split()[0])
    return sum(state in "RD" for state in states) == 1


class Requests(list):
    """The requests so far. What was asked for ahead, and nobody waited for, counts before they are cleared."""

    def clear(self):
        idle = 0
        for _ in range(MOST_TURNS):
            idle = idle + 1 if _only_this_thread_runs() else 0
            if idle == IDLE_TURNS:
                break
            time.sleep(TURN_SECONDS / 10)
        super().clear()


class CountedFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start=start, end=end)


def counting(protocol="counted", *, latency=0.0, in_rounds=False):
    """Return a file system class over memory:// whose `requests` says what was asked, as an object store counts it.

    With `in_rounds` it answers only when no further request comes for a while, all at once. So `rounds`
    counts requests of which each needs the answer of the one before, whatever the machine does besides.
    """

    class CountingFileSystem(AbstractFileSystem):
        requests: ClassVar[list[Request]] = Requests()
        rounds = 0 if in_rounds else None
        """How often answers were waited for; None without `in_rounds`, where that depends on when threads run."""
        gate = Gate() if in_rounds else None
        at_once = 0
        most_at_once = 0
        bytes_at_once = 0
        most_bytes_at_once = 0
        lock = threading.Lock()

        def record_request(self, kind, path, content=b""):
            kept = type(self)
            with kept.lock:
                kept.requests.append(Request(kind, path.strip("/"), len(content)))
                kept.at_once += 1
                kept.bytes_at_once += len(content)
                kept.most_at_once = max(kept.most_at_once, kept.at_once)
                kept.most_bytes_at_once = max(kept.most_bytes_at_once, kept.bytes_at_once)
            is_last = kept.gate is not None and kept.gate.wait()
            time.sleep(latency)
            with kept.lock:
                if is_last:
                    kept.rounds += 1
                kept.at_once -= 1
                kept.bytes_at_once -= len(content)

        @property
        def memory(self):
            return fsspec.filesystem("memory")

        def ls(self, path, detail=True, **_):  # noqa: FBT002 - fsspec's
            self.record_request("list", path)
            return self.memory.ls(path, detail=detail)

        def info(self, path, **_):
            self.record_request("info", path)
            found = self.memory.info(path)
            return {"name": path, "size": found["size"], "type": found["type"]}

        def cat_file(self, path, start=None, end=None, **_):
            try:
                content = self.memory.cat_file(path, start=start, end=end)
            except FileNotFoundError:
                self.record_request("get", path)
                raise
            self.record_request("get", path, content)
            return content

        def _open(self, path, mode="rb", block_size=None, cache_options=None, **kwargs):
            assert mode == "rb"
            return CountedFile(self, path, mode, block_size, cache_options=cache_options, **kwargs)

    CountingFileSystem.protocol = protocol
    CountingFileSystem.root_marker = ""
    return CountingFileSystem


def read_only(protocol="readonly"):
    """Return a file system class over the local disk that raises WriteAttempted for whatever may change it."""

    def refuse(self, *args, **kwargs):
        raise WriteAttempted(f"a write to {args!r} was tried")

    class ReadOnlyFileSystem(LocalFileSystem):
        @classmethod
        def _strip_protocol(cls, path):  # which older ones do for file:// only
            return super()._strip_protocol(path.removeprefix(f"{protocol}://"))

        def _open(self, path, mode="rb", **kwargs):
            return super()._open(path, mode, **kwargs) if mode == "rb" else refuse(self, path)

    for name in WRITES:
        setattr(ReadOnlyFileSystem, name, refuse)
    ReadOnlyFileSystem.protocol = protocol
    return ReadOnlyFileSystem


def failing(error, *, gone=False, protocol="failing"):
    """Return a file system class that raises an error for everything; `info` says not found if the file is `gone`."""

    class FailingFileSystem(AbstractFileSystem):
        asked: ClassVar[list[str]] = []

        def _fail(self, path, **_):
            type(self).asked.append(path)
            raise error

        def ls(self, path, detail=True, **_):  # noqa: FBT002 - fsspec's
            self._fail(path)

        def cat_file(self, path, **_):
            self._fail(path)

        def _open(self, path, *args, **_):
            self._fail(path)

        def info(self, path, **_):
            if gone:
                raise FileNotFoundError(path)
            self._fail(path)

    FailingFileSystem.protocol = protocol
    return FailingFileSystem
