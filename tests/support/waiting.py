"""Assertions about a page in a browser that wait until they hold: a page draws when it has time, and not when a click
or a key is done."""

from time import monotonic

SECONDS = 60
"""How long something may take to appear on a loaded machine."""


def expect(part):
    """Return Playwright's assertions about a part of a page, each of which waits; only a browser's tests have it."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=SECONDS * 1000)
    return sync_api.expect(part)


def settled(page, read, expected):
    """Return what is read of a page once it is what is expected, or what it is after the time that it may take."""
    until = monotonic() + SECONDS
    while (found := read()) != expected and monotonic() < until:
        page.wait_for_timeout(50)
    return found
