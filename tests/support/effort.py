"""Bounds on what a call does, in place of seconds: steps of Python, and an alarm that only ends what hangs."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

HANGS_AFTER = 120
"""Seconds. Nothing in the tests takes nearly as long, however busy the machine is."""


@contextmanager
def at_most_steps(most: int) -> Iterator[None]:
    """Raise AssertionError inside of a block as soon as it has executed so many lines of Python in this thread."""
    done = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal done
        done += event == "line"
        if done > most:
            sys.settrace(None)
            raise AssertionError(f"more than {most:,} lines of Python were executed")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def ended_if_it_hangs() -> Iterator[None]:
    """Raise AssertionError inside of a block that does not end in `HANGS_AFTER` seconds. In the main thread only."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"did not end in {HANGS_AFTER} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
