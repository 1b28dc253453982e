"""Something that happens every now and then on the kernel's loop, until it is stopped."""

import asyncio
from collections.abc import Callable

from snapshot_explorer.jupyter.explorer.work import running_loop


class Ticker:
    """Calls a function every so many seconds while it runs. Without a loop, as in a script, it never calls."""

    def __init__(self, act: Callable[[], None]) -> None:
        """Start nothing.

        Args:
            act: What to call, on the loop that `start` was called on.
        """
        self._act = act
        self._handle: asyncio.TimerHandle | None = None
        self._seconds = 0.0

    @property
    def is_running(self) -> bool:
        """Return whether it will call again."""
        return self._handle is not None

    def start(self, seconds: float) -> None:
        """Call from now on every so many seconds."""
        self.stop()
        self._seconds = seconds
        self._schedule(running_loop())

    def stop(self) -> None:
        """Call no more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def _schedule(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._handle = None if loop is None else loop.call_later(self._seconds, self._tick)

    def _tick(self) -> None:
        self._schedule(running_loop())
        self._act()
