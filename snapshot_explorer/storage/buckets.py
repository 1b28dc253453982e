"""Signed requests to a bucket of S3 or Google, or to a container of Azure, repeated after transient errors."""

import re
import socket
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import quote

from snapshot_explorer.storage.bounded_answers import Part, check_unchanged, match_header, part_of
from snapshot_explorer.storage.failures import ReplacedFileError, UnexpectedResponseError
from snapshot_explorer.storage.origins import Origin, Response
from snapshot_explorer.storage.retries import Attempts
from snapshot_explorer.storage.signatures import Message, Sign
from snapshot_explorer.storage.store_errors import UnreachableStoreError, answer_error

_SUCCESS = range(200, 300)
_PARTIAL, _CHANGED = 206, 412
_NOTHING: Mapping[str, str] = MappingProxyType({})
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_A_PAGE = "the storage answered with a page instead of the file"
_ANOTHER_PART = "the storage answered with another part of the file than requested"


class Bucket:
    """A bucket or container. Safe to use from several threads."""

    def __init__(
        self,
        origin: Origin,
        path: str,
        sign: Sign,
        *,
        tries: int,
        query: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Request nothing yet.

        Args:
            path: Its path on the server; empty if its name is in the host.
            tries: The requests before `Storage` starts an attempt of its own.
            query: The parameters of every request.
            headers: The headers of every request, with names in lower case.
        """
        self._origin, self._path, self._sign = origin, origin.path + path, sign
        self._query, self._headers = query, headers
        self._tries = tries

    def answer(self, query: Mapping[str, str]) -> bytes:
        """Return the content of the answer to a request for the bucket itself."""
        return bytes(self._request("GET", self._path, query=query).content)

    def read(self, key: str, *, most_bytes: int) -> bytes | bytearray:
        """Return an object. Raises OversizedAnswerError if it has more bytes than allowed."""
        response = self._request("GET", self._path_of(key), most_bytes=most_bytes)
        _check_object(response)
        if response.status == _PARTIAL:
            raise UnexpectedResponseError(_ANOTHER_PART)
        return response.content

    def read_range(self, key: str, start: int, end: int, etag: str | None = None) -> Part:
        """Return a part of an object; all bytes of a shorter object, if the part starts at its beginning.

        Args:
            etag: The ETag of the object when another part of it was read.
        """
        headers = {"range": f"bytes={start}-{end - 1}", **{n.lower(): v for n, v in match_header(etag).items()}}
        response = self._request("GET", self._path_of(key), headers=headers, most_bytes=end - start)
        _check_object(response)
        _check_range(response, start, end)
        current_etag = response.headers.get("etag")
        check_unchanged(current_etag, etag)
        content = response.content
        return Part(content if not start and len(content) < end else part_of(content, start, end), current_etag)

    def size(self, key: str) -> int:
        """Return the size of an object."""
        response = self._request("HEAD", self._path_of(key))
        _check_object(response)
        length = response.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise UnexpectedResponseError("the storage answered without the size of the file")
        return int(length)

    def _path_of(self, key: str) -> str:
        return f"{self._path}/{quote(key, safe='/-_.~', errors='surrogateescape')}"

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
        most_bytes: int | None = None,
    ) -> Response:
        message = Message(method, self._origin.host, path, {**self._query, **query}, {**self._headers, **headers})
        attempts = Attempts(self._tries)
        while True:
            try:
                return self._answer(message, most_bytes)
            except Exception as error:
                # A slow request would be slow again: only `Storage` retries it.
                if isinstance(error, TimeoutError) or not attempts.wait(error):
                    raise

    def _answer(self, message: Message, most_bytes: int | None) -> Response:
        try:
            response = self._origin.get(
                message.target, self._sign(message), method=message.method, most_bytes=most_bytes
            )
        except (ConnectionRefusedError, socket.gaierror) as error:
            reason = "its name is unknown" if isinstance(error, socket.gaierror) else "it refuses connections"
            raise UnreachableStoreError(f"Could not connect to the endpoint: {reason}") from error
        if response.status in _SUCCESS:
            return response
        if response.status == _CHANGED and "if-match" in message.headers:
            raise ReplacedFileError
        raise answer_error(response, self._origin.host)


def _check_object(response: Response) -> None:
    """Raise UnexpectedResponseError for an answer that no object store gives to a request for an object."""
    if not response.headers.get("etag") or response.headers.get("content-type", "").lower().startswith("text/html"):
        raise UnexpectedResponseError(_A_PAGE)


def _check_range(response: Response, start: int, end: int) -> None:
    if response.status != _PARTIAL:
        # A server may answer a range that covers the file with the whole file.
        if start or len(response.content) > end:
            raise UnexpectedResponseError(_ANOTHER_PART)
        return
    match = _RANGE.fullmatch(response.headers.get("content-range", ""))
    if match is None or int(match[1]) != start or int(match[2]) + 1 - start != len(response.content):
        raise UnexpectedResponseError(_ANOTHER_PART)
