"""A cache that computes each value once: concurrent callers share one computation. And `cached_property`.

Until Python 3.12, `functools.cached_property` holds one lock for all objects of a class while it computes. A property
that reads storage then lets tables wait for each other, and threads that take turns can deadlock.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from snapshot_explorer.core.errors import SnapshotExplorerError

T = TypeVar("T")

if TYPE_CHECKING:
    from functools import cached_property as cached_property  # noqa: PLC0414 - for other modules
else:

    class cached_property(Generic[T]):  # noqa: N801 - the name in functools
        """A property that is computed once per object, without a lock: two threads may both compute it."""

        def __init__(self, function: Callable[[Any], T]) -> None:
            """Store the function of the property."""
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Return the value, which the object keeps under the name of the property."""
            if instance is None:
                return self
            return vars(instance).setdefault(self._name, self._function(instance))


class SingleFlight:
    """Caches values by key. Thread-safe: no lock is held during a computation, so cached values never wait.

    Threads that request a key at the same time share one call, and its SnapshotExplorerError. After any other failure,
    such as a cancellation of the first thread, the waiting threads compute the value themselves.
    """

    def __init__(self, most: int | None = None) -> None:
        """Create a cache without values. With `most`, it drops the oldest where there are more."""
        self._lock = threading.Lock()
        self._most = most
        self._values: dict[Hashable, Any] | None = {}
        self._pending: dict[Hashable, Future[Any]] = {}

    def __reduce__(self) -> tuple[type["SingleFlight"], tuple[int | None]]:
        return SingleFlight, (self._most,)  # values stay in the process

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, computed by `make` if it is not cached.

        Raises the errors of `make`; nothing is cached then.
        """
        own: Future[Any] | None = None
        try:
            while True:
                with self._lock:
                    if self._values is not None and key in self._values:
                        value: T = self._values[key]
                        return value
                    pending = self._pending.get(key)
                    if pending is None:
                        own = self._pending[key] = Future[Any]()
                        break
                if _is_shared(pending):
                    shared: T = pending.result()
                    return shared
            value = make()
            with self._lock:
                if self._pending.get(key) is own:  # else forgotten meanwhile: the value may be outdated
                    self._keep(key, value)
                    del self._pending[key]
            own.set_result(value)
        except BaseException as error:
            # An interrupt may come anywhere above: others would wait forever for a computation that has stopped.
            if own is not None and not own.done():
                with self._lock:
                    if self._pending.get(key) is own:
                        del self._pending[key]
                own.set_exception(error)
            raise
        return value

    def _keep(self, key: Hashable, value: object) -> None:
        if self._values is not None:
            self._values[key] = value
            if self._most is not None and len(self._values) > self._most:
                del self._values[next(iter(self._values))]

    def peek(self, key: Hashable) -> Any:
        """Return the cached value of a key, None without one. Never waits."""
        values = self._values
        return None if values is None else values.get(key)

    def keys(self) -> list[Any]:
        """Return the keys of the cached values, the oldest first."""
        with self._lock:
            return list(self._values or ())

    def forget(self, key: Hashable) -> None:
        """Drop the value of a key; the next call computes it again."""
        with self._lock:
            if self._values is not None:
                self._values.pop(key, None)

    def forget_all(self) -> None:
        """Drop all values, and values that are being computed, which only their callers get."""
        with self._lock:
            if self._values is not None:
                self._values.clear()
            self._pending.clear()

    def keep_nothing(self) -> None:
        """Drop all values and stop caching; concurrent callers still share a computation."""
        with self._lock:
            self._values = None


def _is_shared(pending: "Future[Any]") -> bool:
    """Wait for another thread's computation; return whether its value, or its SnapshotExplorerError, is shared."""
    try:
        pending.result()
    except SnapshotExplorerError:
        return True
    except BaseException:
        if not pending.done():
            raise  # this thread was interrupted
        return False
    return True
