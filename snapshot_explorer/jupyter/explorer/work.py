"""Work on other threads, whose results are delivered on the loop that started it, so that the kernel stays free."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.progress import Progress, listen
from snapshot_explorer.core.safe_text import sanitize

THREADS = "snapshot-explorer-work"
"""The prefix of the threads' names."""


class _CancelledError(Exception):
    """Ends cancelled work; never raised to callers."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs here, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and its result."""

    run: Callable[[], Any]
    """Does the work, on a thread of its own."""
    done: Callable[[Any], None]
    """Receives the result, on the loop that started the job."""
    failed: Callable[[str], None]
    """Receives the error message, on the loop that started the job."""
    shown: Callable[[str], None] = lambda _: None
    """Receives the progress as text, on the loop that started the job."""
    stop: Event = field(default_factory=Event)
    """Set when the job is cancelled."""
    loop: asyncio.AbstractEventLoop | None = field(default_factory=running_loop)
    """The event loop that was running when the job was created."""


class Work:
    """Runs the newest job of each place, a thread to a place; an older one is stopped and dropped.

    A stopped job ends when it reports progress (see `progress`); otherwise its result is dropped. Without a
    loop, as in scripts, `wait` delivers.
    """

    def __init__(self) -> None:
        """Start no thread yet."""
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, Thread] = {}
        self._changed = Condition()
        self._finished: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_closed = False

    def start(self, place: str, job: Job) -> None:
        """Run a job, replacing the current job of the place; after `close`, runs nothing."""
        with self._changed:
            self._forget(place)
            if self._is_closed:
                return
            self._jobs[place] = job
            if place not in self._threads:
                thread = Thread(target=self._serve, args=(place,), name=f"{THREADS}-{place}", daemon=True)
                self._threads[place] = thread
                thread.start()

    def cancel(self, place: str) -> bool:
        """Stop the job of a place and drop its result; return whether there was one."""
        with self._changed:
            return self._forget(place)

    def is_busy(self, place: str) -> bool:
        """Return whether the place waits for a result."""
        with self._changed:
            return place in self._jobs

    def wait(self, seconds: float = 60, *, but_for: Collection[str] = ()) -> bool:
        """Wait until no job runs and all results are delivered; return False on a timeout.

        Args:
            seconds: The longest time to wait.
            but_for: Places whose jobs are not waited for.
        """
        until = monotonic() + seconds
        while True:
            self._deliver()
            with self._changed:
                if self._jobs.keys() <= {*but_for}:
                    return True
                left = until - monotonic()
                if left <= 0:
                    return False
                if self._finished.empty():
                    self._changed.wait(min(left, 0.5))

    def close(self) -> None:
        """Stop all jobs and drop their results; each thread ends after its current step."""
        with self._changed:
            self._is_closed = True
            for place in list(self._jobs):
                self._forget(place)

    def _forget(self, place: str) -> bool:
        job = self._jobs.pop(place, None)
        if job is None:
            return False
        job.stop.set()
        self._changed.notify_all()
        return True

    def _serve(self, place: str) -> None:
        """Run the newest job of the place, until there is none."""
        last: Job | None = None
        while True:
            with self._changed:
                job = self._jobs.get(place)
                if job is None or job is last:
                    del self._threads[place]
                    return
            last = job
            self._run(place, job)

    def _run(self, place: str, job: Job) -> None:
        listen(_Watch(self, job))
        try:
            result = job.run()
        except _CancelledError:
            return
        except Exception as error:  # noqa: BLE001 - a widget shows the error in place of the result
            self._finish(place, job, job.failed, failure_text(error))
        else:
            self._finish(place, job, job.done, result)

    def _finish(self, place: str, job: Job, take: Callable[[Any], None], result: object) -> None:
        def deliver() -> None:
            with self._changed:
                if self._jobs.get(place) is not job:
                    return
                del self._jobs[place]
            take(result)

        self.hand_over(job, deliver)

    def hand_over(self, job: Job, deliver: Callable[[], None]) -> None:
        """Run a function on the loop that started the job, or in the thread that waits."""
        self._finished.put(deliver)
        with self._changed:
            self._changed.notify_all()
        if job.loop is not None:
            try:
                job.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                return  # the loop has ended: a waiting thread delivers

    def _deliver(self) -> None:
        while True:
            try:
                deliver = self._finished.get_nowait()
            except Empty:
                return
            if not self._is_closed:
                deliver()


class _Watch:
    """Receives the progress of a job: shows it, and ends a cancelled job."""

    def __init__(self, work: Work, job: Job) -> None:
        self._work, self._job = work, job

    def show(self, progress: Progress) -> None:
        """Show the progress, or end the job."""
        if self._job.stop.is_set():
            raise _CancelledError
        text = str(progress)
        self._work.hand_over(self._job, lambda: None if self._job.stop.is_set() else self._job.shown(text))

    def clear(self) -> None:
        """Show nothing: the result or an error follows."""


def failure_text(error: Exception) -> str:
    """Return the message of an error on one line; of an error that is not ours, its type too."""
    line = sanitize(" ".join(str(error).split()))
    return line if isinstance(error, SnapshotExplorerError) else f"{type(error).__name__}: {line}"
