"""Requests to one HTTP server: no redirects, bounded answers, a minimum speed, and connections that are kept open.

A client of another library would follow redirects with the credentials, or take as much memory as a server claims.
"""

import base64
import os
import re
import select
import socket
import ssl
import struct
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from snapshot_explorer.storage.bounded_answers import ERROR_BYTES, Pace
from snapshot_explorer.storage.failures import OversizedAnswerError, SlowAnswerError, UnexpectedResponseError

_MOST_BYTES = 64 * 2**20
"""The largest answer where a request does not say otherwise: a page of 5,000 of the longest keys of Azure."""
_HEAD_BYTES = 2**16
_CHUNK_BYTES = 2**16
_WAITS_IN_SYSTEM = sys.platform == "linux"
"""Whether the system's time limit holds for all that one call receives: others count from each packet."""
_WAITED_BYTES = 2**22
_IDLE_SECONDS = 30.0
"""Seconds after which a connection is not used again: a router in between may have forgotten it."""
_MOST_IDLE = 64
_PORTS = {"http": 80, "https": 443}
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5]\d\d)(?: [^\r\n]*)?")
_LENGTH = re.compile(r"[0-9]{1,19}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_NO_CONTENT = (204, 304)
_OK = range(200, 300)
_CONTINUE = range(100, 200)


class Response(NamedTuple):
    """An answer, whatever its status."""

    status: int
    content: bytes | bytearray
    """The content; of an error the first 64 KiB."""
    headers: Mapping[str, str]
    """The headers, by their names in lower case."""


class Origin:
    """A server. Safe to use from several threads; each request has a connection to itself."""

    def __init__(self, url: str, *, connect_seconds: float, read_seconds: float) -> None:
        """Connect to nothing yet.

        Args:
            url: The server's address; a path in it is that of all requests.
            connect_seconds: The time in which a connection must be there.
            read_seconds: The time in which an answer must begin, and the next bytes must come.
        """
        address = urlsplit(url)
        self.path = address.path.rstrip("/")
        """What the paths of all requests begin with."""
        self.host = address.netloc
        """Host and port, as the header `Host` has them."""
        self._address = address
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._proxy = _proxy_of(address)
        self._tls: ssl.SSLContext | None = None
        self._idle: deque[tuple[float, socket.socket]] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def get(
        self, target: str, headers: Mapping[str, str], *, method: str = "GET", most_bytes: int | None = None
    ) -> Response:
        """Return the answer to a request for a path with its query, whatever its status.

        Args:
            most_bytes: The largest answer that is read; by default enough for any listing.

        Raises:
            OversizedAnswerError: It has more bytes than allowed. They were not read.
            UnexpectedResponseError: It is not an answer of HTTP.
            SlowAnswerError: It comes below the minimum speed.
            OSError: Other errors of the connection.
        """
        request = self._request(method, target, headers)
        most_bytes = _MOST_BYTES if most_bytes is None else most_bytes
        while (connection := self._kept()) is not None:
            try:
                return self._answer(connection, request, method, most_bytes)
            except _UnansweredError:
                continue  # a server may close a connection that was kept open when the next request is sent over it
        try:
            return self._answer(self._connected(), request, method, most_bytes)
        except _UnansweredError as error:
            raise ConnectionResetError("the storage closed the connection without an answer") from error

    def _request(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        is_proxied = self._proxy is not None and self._address.scheme == "http"
        address = f"http://{self.host}{target}" if is_proxied else target
        given = {"Host": self.host, "Accept": "*/*", **headers, **(_login(self._proxy) if is_proxied else {})}
        lines = [f"{method} {address} HTTP/1.1", *(f"{name}: {value}" for name, value in _once(given).items())]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a line break in a header")
        return "\r\n".join([*lines, "", ""]).encode("utf-8")

    def _kept(self) -> socket.socket | None:
        """Return a connection that was used before and is still open, as far as is known."""
        while self._idle:
            try:
                since, connection = self._idle.pop()
            except IndexError:  # taken by another thread
                return None
            # What came without a request would be taken for the answer to the next one.
            if time.monotonic() - since < _IDLE_SECONDS and not _has_something(connection):
                return connection
            connection.close()
        return None

    def _answer(self, connection: socket.socket, request: bytes, method: str, most_bytes: int) -> Response:
        is_reusable = False
        try:
            incoming = _Incoming(connection, self._read_seconds)
            try:
                connection.settimeout(self._read_seconds)
                connection.sendall(request)
                head = incoming.head()
            except (ConnectionError, ssl.SSLError) as error:
                if incoming.has_begun:
                    raise
                raise _UnansweredError from error
            response, is_reusable = _read_answer(head, incoming, method, most_bytes)
        finally:
            if is_reusable and len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
            else:
                connection.close()
        return response

    def _connected(self) -> socket.socket:
        near = self._proxy or self._address
        address = (near.hostname or "", near.port or _PORTS[near.scheme])
        connection = socket.create_connection(address, self._connect_seconds)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._address.scheme == "https":
                if self._proxy is not None:
                    self._open_tunnel(connection, self._proxy)
                return self._context().wrap_socket(connection, server_hostname=self._address.hostname)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_tunnel(self, connection: socket.socket, proxy: SplitResult) -> None:
        target = f"{self._address.hostname}:{self._address.port or _PORTS['https']}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        lines += [f"{name}: {value}" for name, value in _login(proxy).items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        status, _ = _Incoming(connection, self._connect_seconds).head()
        if status not in _OK:
            raise ConnectionError(f"the proxy of the network answered with status {status}")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            context = ssl.create_default_context()
            paths = ssl.get_default_verify_paths()
            has_own = any(path and Path(path).exists() for path in (paths.cafile, paths.capath))
            if not has_own and find_spec("certifi") is not None:
                import certifi  # noqa: PLC0415 - Python for macOS has no certificates of its own

                context.load_verify_locations(certifi.where())
            self._tls = context
        return self._tls


class _UnansweredError(Exception):
    """The connection was closed before the first byte of an answer."""


class _Incoming:
    """What a connection receives in answer to one request, at no less than the minimum speed."""

    def __init__(self, connection: socket.socket, read_seconds: float) -> None:
        self._connection = connection
        self._pace = Pace(read_seconds)
        self._buffer = b""

    def head(self) -> tuple[int, dict[str, str]]:
        """Return the status and the headers."""
        while True:
            while (end := self._buffer.find(b"\r\n\r\n")) < 0:
                if len(self._buffer) > _HEAD_BYTES:
                    raise UnexpectedResponseError("the storage did not answer with HTTP: its headers are too long")
                self._buffer += self._some()
            text = self._buffer[:end].decode("latin-1")
            self._buffer = self._buffer[end + 4 :]
            status, headers = _parsed_head(text)
            if status not in _CONTINUE:
                return status, headers

    def exactly(self, size: int) -> bytes | bytearray:
        """Return the next bytes."""
        if size <= len(self._buffer):
            content, self._buffer = self._buffer[:size], self._buffer[size:]
            return content
        result = bytearray(size)
        view = memoryview(result)
        at = len(self._buffer)
        view[:at] = self._buffer
        self._buffer = b""
        while at < size:
            at += self._into(view[at:])
        return result

    def line(self) -> bytes:
        """Return the next line, without its end."""
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _HEAD_BYTES:
                raise UnexpectedResponseError("the storage did not answer with HTTP: a line is too long")
            self._buffer += self._some()
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def rest(self, most: int) -> tuple[bytes, bool]:
        """Return what comes until the connection is closed, and whether that is all; at least one byte more if not."""
        content = bytearray(self._buffer)
        while len(content) <= most:
            try:
                content += self._some()
            except _ClosedError:
                return bytes(content), True
        return bytes(content), False

    @property
    def has_begun(self) -> bool:
        """Whether a byte of the answer has come."""
        return self._pace.received > 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was received beyond the answer."""
        return not self._buffer

    def _some(self) -> bytes:
        chunk = bytearray(_CHUNK_BYTES)
        return bytes(memoryview(chunk)[: self._into(memoryview(chunk))])

    def _into(self, view: memoryview) -> int:
        try:
            size = _receive(self._connection, view, self._pace.seconds_left())
        except TimeoutError as error:
            if not self.has_begun:
                raise
            raise SlowAnswerError(self._pace.received) from error
        if not size:
            raise _ClosedError("the storage closed the connection before the end of its answer")
        self._pace.count(size)
        return size


def _has_something(connection: socket.socket) -> bool:
    """Return whether a connection has bytes to read, or was closed."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _receive(connection: socket.socket, view: memoryview, seconds: float) -> int:
    """Receive into memory, and return how many bytes have come, within a time. Raises TimeoutError if none have."""
    if not _WAITS_IN_SYSTEM or isinstance(connection, ssl.SSLSocket) or len(view) <= _CHUNK_BYTES:
        connection.settimeout(seconds)
        return connection.recv_into(view)
    # One call for many packets: each one that returns to Python waits for its turn among the other threads.
    connection.settimeout(None)
    whole, rest = divmod(seconds, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(whole), int(rest * 1e6) + 1))
    try:
        return connection.recv_into(view[:_WAITED_BYTES], 0, socket.MSG_WAITALL)
    except BlockingIOError as error:
        raise TimeoutError("timed out") from error


class _ClosedError(ConnectionResetError):
    """The server closed the connection."""


def _parsed_head(text: str) -> tuple[int, dict[str, str]]:
    first, *lines = text.split("\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise UnexpectedResponseError("the storage did not answer with HTTP")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or (name == "content-length" and headers.get(name, value.strip()) != value.strip()):
            raise UnexpectedResponseError("the storage did not answer with HTTP: its headers contradict each other")
        headers[name] = value.strip()
    return int(status[1]), headers


def _read_answer(
    head: tuple[int, dict[str, str]], incoming: _Incoming, method: str, most_bytes: int
) -> tuple[Response, bool]:
    """Return an answer, and whether its connection can be used again."""
    status, headers = head
    is_success = status in _OK
    most = most_bytes if is_success else min(most_bytes, ERROR_BYTES)
    is_whole = True
    content: bytes | bytearray = b""
    length = headers.get("content-length")
    if method == "HEAD" or status in _NO_CONTENT:
        is_closing = False
    elif "transfer-encoding" in headers:
        is_closing = False
        if headers["transfer-encoding"].lower() != "chunked":
            raise UnexpectedResponseError("the storage answered in a transfer encoding that is not read")
        content, is_whole = _chunks(incoming, most)
    elif length is not None:
        is_closing = False
        if not _LENGTH.fullmatch(length):
            raise UnexpectedResponseError("the storage did not answer with HTTP: its length is not a number")
        is_whole = int(length) <= most
        if is_success and not is_whole:
            raise OversizedAnswerError(int(length), most)
        content = incoming.exactly(min(int(length), most))
    else:
        is_closing = True
        content, is_whole = incoming.rest(most)
    if is_success and not is_whole:
        raise OversizedAnswerError(len(content), most)
    is_kept = headers.get("connection", "").lower() != "close"
    return Response(status, content, headers), is_whole and not is_closing and is_kept and incoming.is_empty


def _chunks(incoming: _Incoming, most: int) -> tuple[bytes, bool]:
    """Return a content in chunks, and whether it is whole; more than the most bytes if not."""
    content = bytearray()
    while True:
        size = _CHUNK_SIZE.fullmatch(incoming.line())
        if size is None:
            raise UnexpectedResponseError("the storage did not answer with HTTP: a chunk has no length")
        length = int(size[1], 16)
        if not length:
            break
        content += incoming.exactly(min(length, most + 1 - len(content)))
        if len(content) > most:
            return bytes(content), False
        if incoming.exactly(2) != b"\r\n":
            raise UnexpectedResponseError("the storage did not answer with HTTP: a chunk has another length")
    while incoming.line():
        pass  # headers after the content
    return bytes(content), True


def _once(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without those that have the same name in another case; the last one counts."""
    names = {name.lower(): name for name in headers}
    return {name: headers[name] for name in names.values()}


def _proxy_of(address: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment sets for a server; None for none."""
    text = _proxy_text(address)
    if text is None:
        return None
    return urlsplit(text if "://" in text else f"http://{text}")


def is_reachable(url: str) -> bool:
    """Return whether an `Origin` can be made of a URL: it is one of HTTP, behind no proxy of another kind."""
    try:
        address = urlsplit(url)
        has_host = address.scheme in _PORTS and bool(address.hostname) and address.port != 0
    except ValueError:
        return False
    proxy = _proxy_text(address)
    return has_host and (proxy is None or "://" not in proxy or proxy.lower().startswith("http://"))


def _proxy_text(address: SplitResult) -> str | None:
    """Return the address of the proxy that the environment or the system sets for a server; None for none."""
    if sys.platform.startswith("linux") and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - few have proxies, and it takes time to load

    proxies = getproxies()
    text = proxies.get(address.scheme) or proxies.get("all")
    return text if text and not proxy_bypass(address.netloc) else None


def _login(proxy: SplitResult | None) -> dict[str, str]:
    if proxy is None or proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _close_all(connections: deque[tuple[float, socket.socket]]) -> None:
    while connections:
        connections.pop()[1].close()
