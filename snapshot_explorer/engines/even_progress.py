"""Threads that read several versions side by side, none far ahead of another."""

from threading import Condition, Event, get_ident

_WAKING_SECONDS = 0.1
"""How often a thread that waits looks whether it should stop."""


class EvenProgress:
    """How far threads have read. A thread that is far ahead waits for the others."""

    def __init__(self, distance: float, stop: Event) -> None:
        """Begin without threads.

        Args:
            distance: How far ahead of the last thread others read.
            stop: Ends all waiting.
        """
        self._distance, self._stop = distance, stop
        self._positions: dict[int, float] = {}
        self._changed = Condition()

    def __enter__(self) -> None:
        """Begin to read in this thread."""

    def __exit__(self, *_: object) -> None:
        """End reading: other threads no longer wait for this one."""
        with self._changed:
            self._positions.pop(get_ident(), None)
            self._changed.notify_all()

    def wait_for_others(self, position: float) -> None:
        """Wait while this thread has read too far. The last one never waits."""
        with self._changed:
            self._positions[get_ident()] = position
            self._changed.notify_all()
            while position > min(self._positions.values()) + self._distance and not self._stop.is_set():
                self._changed.wait(_WAKING_SECONDS)
