"""How long work takes, by the clock or the processor."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


def timed(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Return the seconds that work takes."""
    start = clock()
    work()
    return clock() - start


def best(work: Callable[[], object], runs: int = 5, clock: Clock = time.perf_counter) -> float:
    """Return the seconds of the best of several runs."""
    return min(timed(work, clock) for _ in range(runs))
