"""Responses of servers within limits of size and time, so that no server controls the memory or time of a request."""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from snapshot_explorer.storage.failures import (
    OversizedAnswerError,
    ReplacedFileError,
    SlowAnswerError,
    UnexpectedResponseError,
)

if TYPE_CHECKING:
    import asyncio

READ_SECONDS = 60.0
"""Seconds in which an answer must begin."""
GRACE_SECONDS = 15.0
"""Seconds in which the next bytes must arrive. After the first byte, an answer may take this long plus the time of its
bytes at the minimum speed."""
MIN_BYTES_PER_SECOND = 8 * 2**10
"""The minimum speed of an answer. 64 requests of 16 MiB at a time then need a connection of 4 Mbit/s."""
MOST_UNKNOWN_BYTES = 2**30
"""The maximum number of bytes of a file that is fetched whole because its storage does not report a size."""
ERROR_BYTES = 2**16
"""Bytes of an error that are read: its code comes first."""
_CALL_SECONDS = 60.0
"""Seconds for a request of a client that reads its answers itself: listings, and sizes of files."""
_CHUNK_BYTES = 2**18


class Part(NamedTuple):
    """A part of a file, or all of it."""

    content: bytes | bytearray
    etag: str | None
    """The identity of the file's content: its ETag or its generation; None if unknown."""


class Pace:
    """The time that is left for the next bytes of an answer."""

    def __init__(self, read_seconds: float = READ_SECONDS) -> None:
        """Begin to wait.

        Args:
            read_seconds: The time in which the answer must begin, and the next bytes must arrive.
        """
        self._read_seconds = read_seconds
        self._began: float | None = None
        self.received = 0

    def seconds_left(self) -> float:
        """Return the time in which the next bytes must arrive.

        Raises:
            SlowAnswerError: No time is left.
        """
        if self._began is None:
            return self._read_seconds
        left = self._began + seconds_for(self.received) - time.monotonic()
        if left <= 0:
            raise SlowAnswerError(self.received)
        return min(left, GRACE_SECONDS, self._read_seconds)

    def count(self, size_bytes: int) -> None:
        """Count bytes that have arrived."""
        if self._began is None:
            self._began = time.monotonic()
        self.received += size_bytes


def call(filesystem: Any, function: Callable[..., Awaitable[Any]], *args: Any, is_limited: bool = False) -> Any:
    """Return the result of a coroutine of an fsspec file system.

    Args:
        is_limited: Whether the coroutine limits its own time.
    """
    from fsspec.asyn import sync  # noqa: PLC0415 - local tables do without it, and it takes long to import

    return sync(filesystem.loop, function, *args, timeout=None if is_limited else _CALL_SECONDS)


def seconds_for(size_bytes: int) -> float:
    """Return the maximum time of that many bytes, from the first byte on."""
    return GRACE_SECONDS + size_bytes / MIN_BYTES_PER_SECOND


def until_first_byte() -> "asyncio.Timeout":
    """Return the timeout for the beginning of an answer, for `async with`."""
    import asyncio  # noqa: PLC0415 - local tables do without it

    return asyncio.timeout(READ_SECONDS)


async def collect(read: Callable[[int], Awaitable[bytes]], length: int | None, most_bytes: int) -> bytearray:
    """Return the content of a stream of an asyncio client.

    Args:
        read: Returns the next bytes, at most that many; none at the end.
        length: The length that the server announced.
        most_bytes: The maximum number of bytes.

    Raises:
        OversizedAnswerError: The content has more bytes.
        SlowAnswerError: The content arrives below the minimum speed.
    """
    import asyncio  # noqa: PLC0415 - as above

    if length is not None and length > most_bytes:
        raise OversizedAnswerError(length, most_bytes)
    pace = Pace()
    content = bytearray()
    while True:
        try:
            async with asyncio.timeout(pace.seconds_left()):
                chunk = await read(_CHUNK_BYTES)
        except TimeoutError as error:
            raise SlowAnswerError(pace.received) from error
        if not chunk:
            return content
        content += chunk
        pace.count(len(chunk))
        if len(content) > most_bytes:
            raise OversizedAnswerError(len(content), most_bytes)


def check_unchanged(found: str | None, expected: str | None) -> None:
    """Raise ReplacedFileError if a part of a file belongs to another content than an earlier part."""
    if expected is not None and found is not None and found != expected:
        raise ReplacedFileError


def match_header(etag: str | None) -> dict[str, str]:
    """Return the header with which a server answers only if a file is unchanged. Weak ETags never match."""
    return {"If-Match": etag} if etag is not None and etag.startswith('"') else {}


def complete_content(content: bytes, listed_bytes: int | None) -> bytes:
    """Return the bytes of a file, of which a listing shows the size; None if it does not.

    Raises:
        UnexpectedResponseError: The answer is shorter.
    """
    if listed_bytes is not None and len(content) < listed_bytes:
        raise UnexpectedResponseError(f"the storage answered with {len(content):,} of {listed_bytes:,} bytes")
    return content


def part_of(content: bytes | bytearray, start: int, end: int) -> bytes | bytearray:
    """Return a part of a file from an answer to a request for it.

    Raises:
        UnexpectedResponseError: The answer has another length.
    """
    if len(content) > end - start and len(content) >= end:
        return content[start:end]  # a web server without ranges: it answers with the whole file
    if len(content) != end - start:
        raise UnexpectedResponseError(f"the storage answered with {len(content):,} of {end - start:,} bytes")
    return content
