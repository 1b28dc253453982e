"""GET requests to one HTTP server, for listings: bounded, without redirects, over connections that are kept open."""

import base64
import http.client
import ssl
import time
import weakref
from collections import deque
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from snapshot_explorer.storage.failures import UnexpectedResponseError

_MOST_BYTES = 32 * 2**20
"""The largest answer: a page of Azure with 5,000 of the longest names, every letter of them escaped."""
_MIN_BYTES_PER_SECOND = 1024
"""The slowest answer, once the time in which the next bytes must come is over."""
_CHUNK_BYTES = 1 << 16
_PORTS = {"http": 80, "https": 443}


class Response(NamedTuple):
    """An answer."""

    status: int
    content: bytes


class Origin:
    """A server. Safe to use from several threads; each request has a connection of its own."""

    def __init__(self, url: str, *, connect_seconds: float, read_seconds: float) -> None:
        """Connect to nothing yet.

        Args:
            url: The server's address; a path in it is that of all requests.
            read_seconds: The time in which the next bytes must come.
        """
        address = urlsplit(url)
        self.path = address.path.rstrip("/")
        """What the paths of all requests begin with."""
        self.host = address.netloc
        """Host and port, as the header `Host` has them."""
        self._address = address
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._tls: ssl.SSLContext | None = None
        weakref.finalize(self, _close, self._idle)

    def get(self, target: str, headers: Mapping[str, str]) -> Response:
        """Return the answer to a request for a path with its query, whatever its status.

        Raises:
            UnexpectedResponseError: It is not an answer of HTTP, or is longer than any listing.
            TimeoutError: It comes too slowly.
            OSError: Other errors of the connection.
        """
        try:
            while True:
                try:
                    connection, is_reused = self._idle.pop(), True
                except IndexError:
                    connection, is_reused = self._connected(), False
                try:
                    return self._answer(connection, target, headers)
                except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    # A server may close a connection that was kept open when the next request is sent over it.
                    if not is_reused:
                        raise
        except http.client.IncompleteRead as error:
            raise ConnectionResetError("the storage closed the connection before the end of its answer") from error
        except http.client.HTTPException as error:
            if isinstance(error, OSError):
                raise
            raise UnexpectedResponseError(f"the storage did not answer with HTTP: {type(error).__name__}") from error

    def _answer(self, connection: http.client.HTTPConnection, target: str, headers: Mapping[str, str]) -> Response:
        is_whole = False
        try:
            connection.request("GET", self._target(target), headers={**headers, **self._proxy_headers("http")})
            with connection.getresponse() as response:
                result = Response(response.status, self._content(response))
                is_whole = not response.will_close
        finally:
            if is_whole:
                self._idle.append(connection)
            else:
                connection.close()
        return result

    def _content(self, response: http.client.HTTPResponse) -> bytes:
        content = bytearray()
        began = time.monotonic()
        while part := response.read1(_CHUNK_BYTES):
            content += part
            seconds = time.monotonic() - began
            if len(content) > _MOST_BYTES:
                raise UnexpectedResponseError("the answer of the storage is longer than any listing")
            if seconds > self._read_seconds and len(content) < seconds * _MIN_BYTES_PER_SECOND:
                raise TimeoutError("the storage sends less than 1 KiB a second")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return bytes(content)

    def _connected(self) -> http.client.HTTPConnection:
        proxy = self._proxy
        near = proxy or self._address
        host, port = near.hostname or "", near.port or _PORTS[near.scheme]
        connection: http.client.HTTPConnection
        if self._address.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=self._connect_seconds, context=self._context())
            if proxy is not None:
                headers = self._proxy_headers("https")
                connection.set_tunnel(self._address.hostname or "", self._address.port, headers)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._connect_seconds)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        connection.sock.settimeout(self._read_seconds)
        return connection

    @property
    def _proxy(self) -> SplitResult | None:
        """The proxy that the environment sets for the server; None for none."""
        proxies = getproxies()
        text = proxies.get(self._address.scheme) or proxies.get("all")
        if not text or proxy_bypass(self.host):
            return None
        proxy = urlsplit(text if "://" in text else f"http://{text}")
        return proxy if proxy.scheme == "http" else None

    def _proxy_headers(self, scheme: str) -> dict[str, str]:
        proxy = self._proxy if self._address.scheme == scheme else None
        if proxy is None or proxy.username is None:
            return {}
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def _target(self, target: str) -> str:
        is_proxied = self._address.scheme == "http" and self._proxy is not None
        return f"http://{self.host}{target}" if is_proxied else target

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            paths = ssl.get_default_verify_paths()
            has_own = any(path and Path(path).exists() for path in (paths.cafile, paths.capath))
            if not has_own and find_spec("certifi") is not None:
                import certifi  # noqa: PLC0415 - Python for macOS has no certificates of its own

                self._tls.load_verify_locations(certifi.where())
        return self._tls


def _close(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
