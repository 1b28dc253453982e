"""Follow a table: poll it on the kernel's loop, and show an error where that fails."""

import asyncio
from collections.abc import Callable

from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.reading import Log, read_log
from snapshot_explorer.jupyter.explorer.state import ExplorerState
from snapshot_explorer.jupyter.explorer.work import running_loop
from snapshot_explorer.table import Snapshot, Table


class Timer:
    """Calls a function once after some seconds, or at an interval. Without a loop, as in a script, it never calls."""

    _handle: asyncio.TimerHandle | None = None

    def __init__(self, act: Callable[[], None], *, repeats: bool = False) -> None:
        """Start nothing.

        Args:
            act: The function to call, on the loop that `start` was called on.
            repeats: Whether to call it again and again.
        """
        self._act, self._repeats = act, repeats

    @property
    def is_running(self) -> bool:
        """Return whether it will call."""
        return self._handle is not None

    def start(self, seconds: float) -> None:
        """Call after so many seconds; a call that is to come is dropped."""
        self.stop()
        loop = running_loop()
        self._handle = None if loop is None else loop.call_later(seconds, self._call, seconds)

    def stop(self) -> None:
        """Stop calling."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def _call(self, seconds: float) -> None:
        self._handle = None
        if self._repeats:
            self.start(seconds)
        self._act()


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
