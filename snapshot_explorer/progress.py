"""How far long work has come: the rooms say it, and whoever listens shows it.

Work says `with step("Reading commits", total=100) as reading:` and `reading.advance(10)`. While nobody listens that
costs next to nothing, and it shows nothing. Who listens is told from a second on, a few times a second, and when the
work has ended, however it ended. Only the thread, or the asynchronous task, that began to listen is listened to: what
a background thread does shows no bar; a step that it was given may be advanced from any thread.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Protocol, TextIO

_PATIENCE = 1.0
"""Seconds before anything is shown: most work is done by then."""
_EVERY = 0.25
"""Seconds between two showings."""
_WIDTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far work has come."""

    what: str
    """What is done, such as `Reading commits`; nothing of a table's is in it."""
    done: int
    """How much of it has been done."""
    total: int | None
    """How much there is to do; None if that is not known."""
    seconds: float
    """How long it has taken."""

    @property
    def share(self) -> float | None:
        """Return which part is done, from 0 to 1; None if the total is not known."""
        return min(1.0, self.done / self.total) if self.total else None

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.what}: {self.done:,}{of}, {self.seconds:.0f} s"


class Listener(Protocol):
    """Shows progress."""

    def show(self, progress: Progress) -> None:
        """Show how far the work has come."""

    def clear(self) -> None:
        """Take away what was shown; it was shown at least once."""


_LISTENER: ContextVar[Listener | None] = ContextVar("snapshot_explorer_progress", default=None)


class Step:
    """Work that says how far it has come. Safe to advance from several threads."""

    __slots__ = ("_began", "_done", "_due", "_listener", "_lock", "_shown", "_total", "_what")

    def __init__(self, what: str, total: int | None, listener: Listener | None) -> None:
        """Begin; `step` is the way to get one."""
        self._what = what
        self._total = total
        self._listener = listener
        self._lock = Lock()
        self._began = monotonic()
        self._due = self._began + _PATIENCE
        self._done = 0
        self._shown = False

    def advance(self, count: int = 1) -> None:
        """Say that so much more is done."""
        if self._listener is None:
            return
        with self._lock:
            self._done += count
            now = monotonic()
            if now >= self._due and self._listener is not None:
                self._due = now + _EVERY
                # Before it is shown: an interrupt while it is must clear it too.
                self._shown = True
                self._listener.show(
                    Progress(what=self._what, done=self._done, total=self._total, seconds=now - self._began)
                )

    def end(self) -> None:
        """Show nothing any more."""
        with self._lock:
            listener, self._listener = self._listener, None
            if listener is not None and self._shown:
                listener.clear()


@contextmanager
def step(what: str, total: int | None = None) -> Iterator[Step]:
    """Give a step to advance while the work is done. Steps within steps say nothing: one bar is enough.

    Args:
        what: What is done, in a few words; nothing that a table says of itself.
        total: How much there is to do, if that is known.
    """
    listener = _LISTENER.get()
    begun = Step(what, total, listener)
    if listener is None:
        yield begun
        return
    _LISTENER.set(None)
    try:
        yield begun
    finally:
        _LISTENER.set(listener)
        begun.end()


def listen(listener: Listener | None) -> None:
    """Have the steps of this thread, or task, shown from now on; None ends that."""
    _LISTENER.set(listener)


@contextmanager
def show_progress(stream: TextIO | None = None) -> Iterator[None]:
    """Show how far long work has come, in one line on standard error that goes away when the work is done.

    Nothing is shown where standard error is no terminal. In notebooks `%load_ext snapshot_explorer` shows it already.

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
    """Return whether a stream is a terminal; without a console there is none."""
    return stream is not None and stream.isatty()


class TerminalLine:
    """Shows progress in a line of a terminal that is written again and again."""

    def __init__(self, stream: TextIO) -> None:
        """Write to a stream."""
        self._stream = stream
        self._width = 0

    def show(self, progress: Progress) -> None:
        """Write the line anew."""
        share = progress.share
        filled = 0 if share is None else int(share * _WIDTH)
        bar = "" if share is None else f"[{'#' * filled}{'.' * (_WIDTH - filled)}] "
        line = f"{bar}{progress}"
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def clear(self) -> None:
        """Wipe the line out."""
        self._write("\r" + " " * self._width + "\r")
        self._width = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
