"""Work off the main thread: the newest of a place wins, what nobody wants ends, nothing is left."""

import asyncio
import re
import threading
import time

import pytest

from snapshot_explorer.core import progress
from snapshot_explorer.errors import CorruptTableError
from tests.inner.jupyter import THREADS, Job, Timer, Work, running_loop
from tests.support.loops import in_a_thread, on_a_loop

PATIENCE = 60
"""Seconds for what takes milliseconds on a machine that has nothing else to do."""


@pytest.fixture
def work():
    made = Work()
    yield made
    made.close()


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]


def gone():
    """Return whether the threads end within a while."""
    until = time.monotonic() + PATIENCE
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    return not threads()


def job(run, heard, **more):
    return Job(
        run=run,
        done=lambda result: heard.append(("done", result, threading.current_thread().name)),
        failed=lambda said: heard.append(("failed", said)),
        **more,
    )


def test_a_result_comes_back_on_the_thread_that_waits(work):
    heard = []

    work.start("place", job(lambda: threading.current_thread().name, heard))

    assert work.wait(PATIENCE)
    assert heard == [("done", f"{THREADS}-place", threading.current_thread().name)]
    assert gone()


def test_the_newest_job_of_a_place_wins(work):
    heard, gate = [], threading.Event()

    work.start("place", job(lambda: gate.wait(PATIENCE) and "old", heard))
    work.start("place", job(lambda: "passed over", heard))
    work.start("place", job(lambda: "new", heard))
    gate.set()

    assert work.wait(PATIENCE)
    assert [one[1] for one in heard] == ["new"]


def test_places_do_not_wait_for_each_other(work):
    heard, gate = [], threading.Event()
    work.start("slow", job(lambda: gate.wait(PATIENCE), heard))
    work.start("quick", job(lambda: 1, heard))

    until = time.monotonic() + PATIENCE
    while not heard and time.monotonic() < until:
        work.wait(0.05)

    assert [one[1] for one in heard] == [1]
    gate.set()
    assert gone()


def test_many_clicks_leave_one_thread(work):
    gate, before = threading.Event(), set(threads())  # those of an earlier test may still be ending
    for _ in range(50):
        work.start("place", job(lambda: gate.wait(PATIENCE), []))

    assert len(set(threads()) - before) == 1
    gate.set()


def test_our_errors_are_reported_in_one_line(work):
    heard = []

    def fail():
        raise CorruptTableError("Snapshot 3 was asked for.\nIt is damaged \N{RIGHT-TO-LEFT OVERRIDE}.")

    work.start("place", job(fail, heard))

    assert work.wait(PATIENCE)
    assert heard == [("failed", "Snapshot 3 was asked for.\\nIt is damaged \\u202e.")]


def test_errors_of_others_are_reported_with_their_kind(work):
    heard = []

    work.start("place", job(lambda: 1 / 0, heard))

    assert work.wait(PATIENCE)
    assert heard == [("failed", "ZeroDivisionError: division by zero")]


def test_what_is_cancelled_is_never_heard_of(work):
    heard, gate = [], threading.Event()
    work.start("place", job(lambda: gate.wait(PATIENCE), heard))

    assert work.is_busy("place")
    assert work.cancel("place")
    gate.set()

    assert work.wait(PATIENCE)
    assert not work.is_busy("place")
    assert gone()
    assert heard == []


def test_work_that_tells_how_far_it_is_ends_when_it_is_cancelled(work, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    begun, counted = threading.Event(), []

    def count():
        with progress.step("Counting", total=1_000_000) as counting:
            for number in range(1_000_000):
                counting.advance()
                counted.append(number)
                begun.set()

    work.start("place", job(count, [], shown=counted.append))
    begun.wait(PATIENCE)
    work.cancel("place")

    assert gone()
    assert len(counted) < 1_000_000


def test_how_far_work_has_come_is_reported(work, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    shown = []

    def count():
        with progress.step("Counting sheep", total=2) as counting:
            counting.advance()

    work.start("place", job(count, [], shown=shown.append))

    assert work.wait(PATIENCE)
    assert [re.sub(r"\d+ s$", "N s", text) for text in shown] == ["Counting sheep: 1 of 2, N s"]


def test_waiting_too_long_is_reported(work):
    gate = threading.Event()
    work.start("place", job(lambda: gate.wait(PATIENCE), []))

    assert not work.wait(0.05)
    gate.set()


def test_after_closing_nothing_runs_and_no_thread_is_left(work):
    heard, gate = [], threading.Event()
    work.start("place", job(lambda: gate.wait(PATIENCE), heard))

    work.close()
    work.start("place", job(lambda: 1, heard))
    gate.set()

    assert work.wait(1)
    assert gone()
    assert heard == []


def test_on_a_loop_results_come_without_waiting_and_the_loop_is_free(work):
    heard, turned = [], threading.Event()

    async def main():
        work.start("place", job(lambda: turned.wait(PATIENCE) and "turned", heard, loop=running_loop()))
        for _ in range(5):
            await asyncio.sleep(0)
        turned.set()
        while not heard:  # noqa: ASYNC110 - what is heard of is no event
            await asyncio.sleep(0.01)

    on_a_loop(asyncio.wait_for(main(), PATIENCE))

    assert [one[1] for one in heard] == ["turned"]


def test_a_ticker_calls_until_it_is_stopped():
    called = []

    async def main():
        ticker = Timer(lambda: called.append(1), repeats=True)
        ticker.start(0.01)
        while len(called) < 3:  # noqa: ASYNC110 - a ticker sets no event
            await asyncio.sleep(0.01)
        assert ticker.is_running
        ticker.stop()
        before = len(called)
        await asyncio.sleep(0.1)
        return before, ticker.is_running

    before, is_running = on_a_loop(asyncio.wait_for(main(), PATIENCE))

    assert len(called) == before
    assert not is_running


def test_without_a_loop_a_ticker_does_nothing():
    ticker = Timer(lambda: None, repeats=True)

    in_a_thread(ticker.start, 0.01)

    assert not ticker.is_running
