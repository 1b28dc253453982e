"""A large remote file for pyarrow's readers, whose ranges are fetched before they are read, many at a time."""

import io
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import pyarrow as pa

Range = tuple[int, int]
"""The start and end of a part of a file."""

TAIL_BYTES = 1 << 17
"""Bytes at the end of a file that come with its first request: most footers."""
_READ_AHEAD = 1 << 16
"""Bytes that a read fetches at least, for readers that read in small steps (ORC, Avro)."""
_GAP = 1 << 16
"""Ranges with up to this many bytes between them are fetched in one request."""
_MOST_BYTES = 1 << 24
"""Larger ranges are fetched in several requests at the same time."""


class ByteBudget:
    """A budget of bytes that may be fetched ahead. Safe to use from several threads; never blocks."""

    def __init__(self, size_bytes: int) -> None:
        """Start with all bytes free."""
        self._free = size_bytes
        self._lock = Lock()

    def take(self, size_bytes: int) -> bool:
        """Take bytes, and return True, if that many are free."""
        with self._lock:
            if size_bytes > self._free:
                return False
            self._free -= size_bytes
            return True

    def put_back(self, size_bytes: int) -> None:
        """Return bytes that were taken."""
        with self._lock:
            self._free += size_bytes


class _Bytes(io.RawIOBase):
    """The bytes of a remote file: its tail, ranges that were fetched beforehand, and the range that was read last."""

    def __init__(self, size: int, tail: bytes, fetch: Callable[[Range], bytes]) -> None:
        self.size = size
        self._fetch = fetch
        self._position = 0
        self._tail = (size - len(tail), size), tail
        self._last: tuple[Range, bytes] = ((0, 0), b"")
        self.loaded: dict[Range, Future[bytes]] = {}

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes from the current position; all remaining bytes for -1."""
        start = self._position
        end = self.size if size < 0 else min(start + size, self.size)
        content = self._bytes(start, end) if end > start else b""
        self._position = start + len(content)
        return content

    def _bytes(self, start: int, end: int) -> bytes:
        for (first, last), content in (self._tail, self._last):
            if first <= start and end <= last:
                return content[start - first : end - first]
        parts = []
        at = start
        for (first, last), future in self.loaded.items():  # in the order of the file
            if first <= at < last:
                parts.append(future.result()[at - first : end - first])
                at += len(parts[-1])
                if at == end:
                    return parts[0] if len(parts) == 1 else b"".join(parts)
        rest = (at, min(max(end, at + _READ_AHEAD), self.size))
        content = self._fetch(rest)
        self._last = rest, content
        return b"".join([*parts, content[: end - at]])

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._position = max(offset + {0: 0, 1: self._position, 2: self.size}[whence], 0)
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class SmallRemoteFile(pa.BufferReader):  # type: ignore[misc]  # pyarrow has no types
    """A remote file that was fetched whole."""


class RemoteFile(pa.PythonFile):  # type: ignore[misc]  # pyarrow has no types
    """A large remote file, open for random access. For one reader, which decodes the ranges that are loaded."""

    @classmethod
    def of(
        cls, size: int, tail: bytes, fetch: Callable[[Range], bytes], pool: ThreadPoolExecutor, budget: ByteBudget
    ) -> "RemoteFile":
        """Return a file.

        Args:
            tail: Its last bytes.
            fetch: Returns a range in one request.
        """
        content = _Bytes(size, tail, fetch)
        opened = cls(content, mode="r")
        opened._content, opened._fetch = content, fetch
        opened._pool, opened._budget, opened._taken = pool, budget, {}
        return opened

    def load(self, ranges: Iterable[Range], ahead: Iterable[Range] = ()) -> None:
        """Fetch ranges that will be read now, and begin to fetch others if the budget allows. Drops all others.

        Returns when the ranges to read now are loaded.
        """
        requests, later = _requests(ranges), _requests(ahead)
        before = self._content.loaded
        for request in before.keys() - {*requests, *later}:
            self._drop(request, before[request])
        kept = {request: before[request] for request in (*requests, *later) if request in before}
        for request in requests:
            if request not in kept:
                kept[request] = self._pool.submit(self._fetch, request)
        for request in later:
            if request not in kept and self._budget.take(request[1] - request[0]):
                self._taken[request] = request[1] - request[0]
                kept[request] = self._pool.submit(self._fetch, request)
        self._content.loaded = dict(sorted(kept.items()))
        for request in requests:
            kept[request].result()
            self._budget.put_back(self._taken.pop(request, 0))

    def _drop(self, request: Range, future: "Future[bytes]") -> None:
        future.cancel()
        self._budget.put_back(self._taken.pop(request, 0))

    def close(self) -> None:
        """Close the file, and drop what was fetched."""
        for request, future in self._content.loaded.items():
            self._drop(request, future)
        self._content.loaded = {}
        super().close()


def load_of(source: pa.NativeFile) -> Callable[..., None] | None:
    """Return a function that fetches ranges of an open file before they are read; None if it is in memory or local."""
    return source.load if isinstance(source, RemoteFile) else None


def is_remote(source: pa.NativeFile) -> bool:
    """Return whether an open file is from remote storage: many threads fetch such files at the same time."""
    return isinstance(source, RemoteFile | SmallRemoteFile)


def _requests(ranges: Iterable[Range]) -> Sequence[Range]:
    """Return ranges to request: ranges near each other combined, large ranges in parts."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1] + _GAP:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif end > start:
            joined.append((start, end))
    return [(at, min(at + _MOST_BYTES, end)) for start, end in joined for at in range(start, end, _MOST_BYTES)]
