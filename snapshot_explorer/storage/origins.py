"""Requests to one HTTP server: no redirects, bounded answers, a minimum speed, and connections that are kept open.

A client of another library would follow redirects with the credentials, or take as much memory as a server claims.
"""

import base64
import http.client
import io
import os
import re
import select
import socket
import ssl
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping
from email.errors import MissingHeaderBodySeparatorDefect
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from snapshot_explorer.storage.bounded_answers import ERROR_BYTES, Pace
from snapshot_explorer.storage.failures import OversizedAnswerError, SlowAnswerError, UnexpectedResponseError

_MOST_BYTES = 64 * 2**20
"""The default limit on an answer: a page with 5,000 of Azure's longest keys."""
_HEAD_BYTES = 2**17
"""The maximum number of bytes of the status and headers, and of the framing of the content."""
_CHUNK_BYTES = 2**18
_IDLE_SECONDS = 30.0
"""Seconds after which a connection is not used again: a router in between may have forgotten it."""
_MOST_IDLE = 64
_PORTS = {"http": 80, "https": 443}
_LENGTH = re.compile(r"[0-9]{1,19}")
_OK = range(200, 300)
_STATUSES = range(100, 600)
_NO_HTTP = "the storage did not answer with HTTP"


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
            url: The server's address; its path, if any, is used for all requests.
            connect_seconds: The time in which a connection must be established.
            read_seconds: The time in which an answer must begin, and the next bytes must arrive.
        """
        address = urlsplit(url)
        self.path = address.path.rstrip("/")
        """The prefix of the paths of all requests."""
        self.host = address.netloc
        """Host and port, for the header `Host`."""
        self._address = address
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._proxy = _proxy_of(address)
        self._tls: ssl.SSLContext | None = None
        self._idle: deque[tuple[float, http.client.HTTPConnection]] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def get(
        self, target: str, headers: Mapping[str, str], *, method: str = "GET", most_bytes: int | None = None
    ) -> Response:
        """Return the answer to a request for a path with its query, whatever its status.

        Args:
            headers: The headers of the request, in lower case. `host` is added if it is missing.
            most_bytes: The largest answer that is read; by default enough for any listing.

        Raises:
            OversizedAnswerError: The answer has more bytes than allowed. They were not read.
            UnexpectedResponseError: The answer is not HTTP.
            SlowAnswerError: The answer arrives below the minimum speed.
            OSError: Other errors of the connection.
        """
        most_bytes = _MOST_BYTES if most_bytes is None else most_bytes
        while (connection := self._idle_connection()) is not None:
            try:
                return self._answer(connection, method, target, headers, most_bytes)
            except _UnansweredError:
                continue  # a server may close a connection that was kept open when the next request is sent over it
        try:
            return self._answer(self._connected(), method, target, headers, most_bytes)
        except _UnansweredError as error:
            raise ConnectionResetError("the storage closed the connection without an answer") from error

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        """Return a connection that was used before and is probably still open."""
        while self._idle:
            try:
                since, connection = self._idle.pop()
            except IndexError:  # taken by another thread
                return None
            # Bytes that arrived without a request would be read as the answer to the next one.
            if time.monotonic() - since < _IDLE_SECONDS and not _has_something(connection.sock):
                return connection
            connection.close()
        return None

    def _answer(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        most_bytes: int,
    ) -> Response:
        is_reusable = False
        try:
            self._send(connection, method, target, headers)
            response, is_reusable = _receive(connection, most_bytes)
        finally:
            if is_reusable and len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
            else:
                connection.close()
        return response

    def _send(
        self, connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str]
    ) -> None:
        is_proxied = self._proxy is not None and self._address.scheme == "http"
        address = f"http://{self.host}{target}" if is_proxied else target
        own = {"host": self.host, "accept": "*/*", **headers, **(_login(self._proxy) if is_proxied else {})}
        connection.sock.settimeout(self._read_seconds)
        try:
            connection.request(method, address, headers=own)
        except (ConnectionError, ssl.SSLError) as error:
            raise _UnansweredError from error

    def _connected(self) -> http.client.HTTPConnection:
        near = self._proxy or self._address
        host, port = near.hostname or "", near.port or _PORTS[near.scheme]
        connection: http.client.HTTPConnection
        if self._address.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=self._connect_seconds, context=self._context())
            if self._proxy is not None:
                own_port = self._address.port or _PORTS["https"]
                connection.set_tunnel(self._address.hostname or "", own_port, _login(self._proxy))
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._connect_seconds)
        make_answer: Any = partial(_Answer, read_seconds=self._read_seconds)
        connection.response_class = make_answer
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

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
    """The connection was closed before the headers of an answer arrived."""


class _Incoming(io.RawIOBase):
    """The bytes that a connection receives in answer to one request, at the minimum speed or faster."""

    def __init__(self, connection: socket.socket, source: io.RawIOBase, read_seconds: float) -> None:
        """Begin to wait.

        Args:
            source: The file of the connection: it stays open as long as this.
        """
        self._connection, self._source = connection, source
        self._pace = Pace(read_seconds)
        self.most_bytes = _HEAD_BYTES
        """The maximum number of bytes in all."""
        self.has_end = True
        """Whether the answer declares its length; a connection that closes earlier is an error."""
        self.is_over = False
        """Whether the answer is complete."""

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any, /) -> int | None:
        if self.is_over:
            return None
        if self._pace.received > self.most_bytes:
            raise UnexpectedResponseError(f"{_NO_HTTP}: there is more around the content than belongs there")
        self._connection.settimeout(self._pace.seconds_left())
        try:
            size = self._source.readinto(view)
        except TimeoutError as error:
            if not self._pace.received:
                raise
            raise SlowAnswerError(self._pace.received) from error
        if size:
            self._pace.count(size)
        elif self.has_end:
            raise ConnectionResetError("the storage closed the connection before the end of its answer")
        return size

    def allow(self, size_bytes: int) -> None:
        """Allow a content of a size, and the bytes of its framing."""
        self.most_bytes = self._pace.received + 2 * size_bytes + _HEAD_BYTES

    def close(self) -> None:
        self._source.close()
        super().close()


class _Buffer(io.BufferedReader):
    """The bytes of an answer. When closed, it records whether more bytes arrived than belong to the answer."""

    raw: _Incoming
    has_more = False

    def close(self) -> None:
        if not self.closed:
            self.raw.is_over = True
            self.has_more = bool(self.peek(1))
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer that arrives at the minimum speed or faster."""

    def __init__(self, sock: socket.socket, *args: Any, read_seconds: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        source: Any = self.fp.detach()
        self.incoming = _Incoming(sock, source, read_seconds)
        self.fp = self.buffer = _Buffer(self.incoming)


def _receive(connection: http.client.HTTPConnection, most_bytes: int) -> tuple[Response, bool]:
    """Return the answer to the request that was sent, and whether its connection can be used again."""
    try:
        try:
            answer: Any = connection.getresponse()
        except (ConnectionError, ssl.SSLError) as error:
            raise _UnansweredError from error
        with answer:
            _check_head(answer)
            content, is_whole = _content(answer, most_bytes)
    except (http.client.HTTPException, ValueError) as error:
        raise UnexpectedResponseError(_NO_HTTP) from error
    headers = {name.lower(): value.strip() for name, value in answer.headers.items()}
    return Response(answer.status, content, headers), is_whole and not (answer.will_close or answer.buffer.has_more)


def _check_head(answer: _Answer) -> None:
    """Raise UnexpectedResponseError for headers that `http.client` accepts although they contradict each other."""
    headers = answer.headers
    lengths = {text.strip() for text in headers.get_all("content-length", [])}
    codings = [text.strip().lower() for text in headers.get_all("transfer-encoding", [])]
    has_length = all(map(_LENGTH.fullmatch, lengths)) and len(lengths) <= 1
    is_cut = any(isinstance(defect, MissingHeaderBodySeparatorDefect) for defect in headers.defects)
    if answer.status not in _STATUSES or is_cut or not has_length or codings not in ([], ["chunked"]):
        raise UnexpectedResponseError(f"{_NO_HTTP}: its headers contradict each other")


def _content(answer: _Answer, most_bytes: int) -> tuple[bytes | bytearray, bool]:
    """Return the content of an answer, and whether it is whole. Only the start of an error is read."""
    is_success = answer.status in _OK
    most = most_bytes if is_success else min(most_bytes, ERROR_BYTES)
    length = answer.length
    if is_success and length is not None and length > most:
        raise OversizedAnswerError(length, most)
    answer.incoming.allow(most)
    if length is not None:
        content = bytearray(min(length, most))
        view = memoryview(content)
        while view:
            view = view[answer.readinto(view) :]
        return content, length <= most
    answer.incoming.has_end = answer.chunked
    content = bytearray()
    while len(content) <= most and (part := answer.read(min(_CHUNK_BYTES, most + 1 - len(content)))):
        content += part
    if is_success and len(content) > most:
        raise OversizedAnswerError(len(content), most)
    return content, len(content) <= most


def _has_something(connection: socket.socket) -> bool:
    """Return whether a connection has bytes to read, or was closed."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _proxy_of(address: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment sets for a server; None without one."""
    text = _proxy_text(address)
    if text is None:
        return None
    return urlsplit(text if "://" in text else f"http://{text}")


def is_reachable(url: str) -> bool:
    """Return whether an `Origin` supports a URL: it must be HTTP or HTTPS, and not behind another kind of proxy."""
    try:
        address = urlsplit(url)
        has_host = address.scheme in _PORTS and bool(address.hostname) and address.port != 0
    except ValueError:
        return False
    proxy = _proxy_text(address)
    return has_host and (proxy is None or "://" not in proxy or proxy.lower().startswith("http://"))


def _proxy_text(address: SplitResult) -> str | None:
    """Return the address of the proxy that the environment or the system sets for a server; None without one."""
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


def _close_all(connections: deque[tuple[float, http.client.HTTPConnection]]) -> None:
    while connections:
        connections.pop()[1].close()
