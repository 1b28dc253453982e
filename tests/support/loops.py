"""Event loops for tests: each in a thread of its own, as Playwright keeps one running in the main thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def in_a_thread(function, *arguments):
    """Return what a function returns in a thread without a running loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


def on_a_loop(coroutine):
    """Return what a coroutine returns on a loop of its own."""
    return in_a_thread(asyncio.run, coroutine)
