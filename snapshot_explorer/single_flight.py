"""Values that are made once: whoever asks for one that is being made waits for it; what is there never waits."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from snapshot_explorer.errors import SnapshotExplorerError

T = TypeVar("T")


class SingleFlight:
    """Keeps values by key. Thread-safe: no lock is held while a value is made, so that values kept never wait.

    Threads that ask for a key at once share one call, and its SnapshotExplorerError. After any other failure, such as
    the cancellation of the thread that was first, those that wait make the value themselves.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._lock = threading.Lock()
        self._kept: dict[str, Any] | None = {}
        self._pending: dict[str, Future[Any]] = {}

    def get(self, key: str, make: Callable[[], T]) -> T:
        """Return the value of a key, made by `make` if it is not kept.

        Raises: what `make` raises; then nothing is kept.
        """
        while True:
            with self._lock:
                if self._kept is not None and key in self._kept:
                    kept: T = self._kept[key]
                    return kept
                pending = self._pending.get(key)
                if pending is None:
                    mine = self._pending[key] = Future[Any]()
                    break
            try:
                shared: T = pending.result()
            except SnapshotExplorerError:
                raise
            except BaseException:
                if not pending.done():
                    raise  # this thread was interrupted
            else:
                return shared
        return self._made(key, make, mine)

    def _made(self, key: str, make: Callable[[], T], mine: "Future[Any]") -> T:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            if self._kept is not None:
                self._kept[key] = value
        mine.set_result(value)
        return value

    def peek(self, key: str) -> Any:
        """Return the value that is kept for a key, None without one. Never waits."""
        kept = self._kept
        return None if kept is None else kept.get(key)

    def forget(self, key: str) -> None:
        """Drop the value of a key: it is made anew when it is asked for again."""
        with self._lock:
            if self._kept is not None:
                self._kept.pop(key, None)

    def keep_nothing(self) -> None:
        """Drop what is kept, and keep nothing from now on; threads that ask at once still share."""
        with self._lock:
            self._kept = None
