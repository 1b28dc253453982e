"""A temporary cache of files that no writer replaces."""

import threading
from collections.abc import Callable

from snapshot_explorer.core.single_flight import SingleFlight

_MOST_BYTES = 64 * 2**20
"""The maximum number of bytes of files that are kept in all."""


class ImmutableFiles(SingleFlight):
    """The files that were read within a block, as far as they fit."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes_left = _MOST_BYTES
        self._weighing = threading.Lock()

    def read(self, path: str, read: Callable[[], bytes]) -> bytes:
        """Return the content of a file. Only one thread reads it."""
        fits = True

        def read_and_weigh() -> bytes:
            nonlocal fits
            content = read()
            with self._weighing:
                fits = len(content) <= self._bytes_left
                self._bytes_left -= len(content) if fits else 0
            return content

        content = self.get(path, read_and_weigh)
        if not fits:
            self.forget(path)
        return content
