"""Progress of long work: packages report it, and a listener shows it.

Code reports with `with step("Reading commits", total=100) as reading:` and `reading.advance(10)`. Without a listener
this costs almost nothing. A listener is called after the first second, a few times per second, and when the work ends,
also by an error. A listener belongs to one thread or asynchronous task: work of background threads shows no bar, but
any thread may advance an existing step.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Protocol, TextIO

PATIENCE = 1.0
"""Seconds before the first update: most work is done by then."""
EVERY = 0.25
"""Seconds between two updates."""
_BAR_WIDTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of one piece of work."""

    title: str
    """The work, such as `Reading commits`; contains no text from a table."""
    done: int
    total: int | None
    """The units in all; None if unknown."""
    seconds: float
    """The time since the start."""

    @property
    def share(self) -> float | None:
        """Return the completed fraction, from 0 to 1; None if the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.title}: {self.done:,}{of}, {self.seconds:.0f} s"


class Listener(Protocol):
    """Shows progress."""

    def show(self, progress: Progress) -> None:
        """Show the progress."""

    def clear(self) -> None:
        """Remove the display; `show` was called at least once."""


_LISTENER: ContextVar[Listener | None] = ContextVar("snapshot_explorer_progress", default=None)


class StoppedError(Exception):
    """Ends work whose result nothing waits for any more."""


_CHECK_STOP: ContextVar[Callable[[], None] | None] = ContextVar("snapshot_explorer_stop", default=None)


def stop_with(check: Callable[[], None] | None) -> None:
    """Let a function of this thread end its long work by raising `StoppedError`; None lets nothing end it."""
    _CHECK_STOP.set(check)


def stop_check() -> Callable[[], None] | None:
    """Return the function that ends long work of this thread; None without one."""
    return _CHECK_STOP.get()


class Step:
    """Work that reports its progress. Can be advanced from several threads."""

    __slots__ = ("_began", "_done", "_due", "_listener", "_lock", "_shown", "_title", "_total")

    def __init__(self, title: str, total: int | None, listener: Listener | None) -> None:
        """Start; create one with `step`."""
        self._title = title
        self._total = total
        self._listener = listener
        self._lock = Lock()
        self._began = monotonic()
        self._due = self._began + PATIENCE
        self._done = 0
        self._shown = False

    def advance(self, count: int = 1) -> None:
        """Add to the units done."""
        if self._listener is None:
            return
        with self._lock:
            self._done += count
            now = monotonic()
            if now >= self._due and self._listener is not None:
                self._due = now + EVERY
                # Set before it is shown, so that an interrupt during `show` clears it too.
                self._shown = True
                self._listener.show(
                    Progress(title=self._title, done=self._done, total=self._total, seconds=now - self._began)
                )

    def end(self) -> None:
        """Stop showing progress."""
        with self._lock:
            listener, self._listener = self._listener, None
            if listener is not None and self._shown:
                listener.clear()


@contextmanager
def step(title: str, total: int | None = None) -> Iterator[Step]:
    """Yield a step to advance during the work. Nested steps show nothing: one bar is enough.

    Args:
        title: The work, in a few words, without text from a table.
        total: The units in all, if known.
    """
    listener = _LISTENER.get()
    started = Step(title, total, listener)
    if listener is None:
        yield started
        return
    _LISTENER.set(None)
    try:
        yield started
    finally:
        _LISTENER.set(listener)
        started.end()


def listen(listener: Listener | None) -> None:
    """Show the steps of this thread or task with a listener; None stops that."""
    _LISTENER.set(listener)


@contextmanager
def show_progress(stream: TextIO | None = None) -> Iterator[None]:
    """Show the progress of long work in one line on standard error, which is removed when the work is done.

    Shows nothing if standard error is not a terminal. In notebooks `%load_ext snapshot_explorer` shows it already.

        with show_progress():
            orders.lifetimes()

    Args:
        stream: Where to write instead of standard error, terminal or not.
    """
    before = _LISTENER.get()
    shown = stream is not None or is_terminal(sys.stderr)
    _LISTENER.set(TerminalLine(stream or sys.stderr) if shown else None)
    try:
        yield
    finally:
        _LISTENER.set(before)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; False for None."""
    return stream is not None and stream.isatty()


class TerminalLine:
    """Shows progress in one line of a terminal, which it overwrites."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = 0

    def show(self, progress: Progress) -> None:
        """Overwrite the line."""
        share = progress.share
        filled = 0 if share is None else int(share * _BAR_WIDTH)
        bar = "" if share is None else f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] "
        line = f"{bar}{progress}"
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def clear(self) -> None:
        """Clear the line."""
        self._write("\r" + " " * self._width + "\r")
        self._width = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
