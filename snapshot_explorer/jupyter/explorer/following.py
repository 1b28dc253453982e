"""Follow a table: poll it on the kernel's loop, and show an error where that fails."""

import asyncio
from collections.abc import Callable

from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.reading import Log, read_log
from snapshot_explorer.jupyter.explorer.state import ExplorerState
from snapshot_explorer.jupyter.explorer.work import running_loop
from snapshot_explorer.table import Snapshot, Table


class Ticker:
    """Calls a function at an interval while it runs. Without a loop, as in a script, it never calls."""

    def __init__(self, act: Callable[[], None]) -> None:
        """Start nothing.

        Args:
            act: The function to call, on the loop that `start` was called on.
        """
        self._act = act
        self._handle: asyncio.TimerHandle | None = None
        self._seconds = 0.0

    @property
    def is_running(self) -> bool:
        """Return whether it will call again."""
        return self._handle is not None

    def start(self, seconds: float) -> None:
        """Start to call at this interval in seconds."""
        self.stop()
        self._seconds = seconds
        self._schedule(running_loop())

    def stop(self) -> None:
        """Stop calling."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def _schedule(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._handle = None if loop is None else loop.call_later(self._seconds, self._tick)

    def _tick(self) -> None:
        self._schedule(running_loop())
        self._act()


class Debounce:
    """Calls a function once, some seconds after the last start. Without a loop, as in a script, it never calls."""

    def __init__(self, act: Callable[[], None], seconds: float) -> None:
        """Start nothing.

        Args:
            act: The function to call, on the loop that `start` was called on.
            seconds: How long to wait.
        """
        self._act, self._seconds = act, seconds
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Call after the delay, which starts again."""
        self.stop()
        loop = running_loop()
        self._handle = None if loop is None else loop.call_later(self._seconds, self._act)

    def stop(self) -> None:
        """Cancel the call."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()


def poll(table: Table, before: Log | None, known: Snapshot | None) -> tuple[Snapshot, Log | None]:
    """Return the table's newest snapshot, and its log if it has changed since.

    Args:
        table: The table.
        before: The log as it was read before.
        known: The newest snapshot then.
    """
    table.update(staleness_acceptable=True)
    failed = history_of(table).management.last_background_error
    if failed is not None:
        raise failed
    current = table.current
    return current, None if before is not None and current is known else read_log(table, before)


class FollowErrors:
    """Shows in the explorer's note why the table cannot be followed, until a poll succeeds."""

    def __init__(self, state: ExplorerState) -> None:
        """Show nothing yet."""
        self._state = state
        self._sentence = ""

    def show(self, sentence: str) -> None:
        """Show an error message; the rest of the explorer remains."""
        self._sentence = self._state.note = sentence

    def clear(self) -> bool:
        """Clear the message, and return whether there was one. Another note stays."""
        shown, self._sentence = self._sentence, ""
        if shown and self._state.note == shown:
            self._state.note = ""
        return bool(shown)
