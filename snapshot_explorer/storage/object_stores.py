"""S3, Azure and Google through obstore, whose client is ready in milliseconds. `store_listings` lists for it.

`object_store_clients` decides where that is certain to read as fsspec's packages would.
"""

import builtins  # `list` is a method here
import os
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.storage.failures import UnexpectedResponseError
from snapshot_explorer.storage.files import RangedFiles
from snapshot_explorer.storage.listings import Entry, Page, Pages, entries, has_object, tree
from snapshot_explorer.storage.location import Location, shortened
from snapshot_explorer.storage.object_store_clients import PROCESSES, Settings, bucket_and_key
from snapshot_explorer.storage.store_errors import ObjectStoreError, UnreachableStoreError, status_error

A = TypeVar("A")

_REQUESTS = 64
"""Concurrent requests. A thread that waits for one needs no processor."""
_STATUS = re.compile(r"status code: (\d{3})")
_NOT_A_STORE = ("non-partial", "content-range", "etag", "last-modified", "content-length")
"""Parts of obstore's messages for answers that no object store sends."""
_DENIED_ERRORS = ("PermissionDeniedError", "UnauthenticatedError")
"""Names of errors of obstore that mean denied access, where it sent no request."""


class ObjectStoreFiles(RangedFiles):
    """Buckets, read-only. An address is `bucket/key`, as in fsspec; every character of it is literal."""

    workers = _REQUESTS
    lists_files_as_folders = True

    def __init__(self, connection: Settings) -> None:
        """Connect to nothing yet."""
        PROCESSES.add(os.getpid())
        self._connection = connection
        self._stores: dict[str, Any] = {}
        self._listings: dict[str, Pages] = {}
        # obstore does not notice an interrupt. The main thread waits for another one instead, which it can leave.
        self._waiting = ThreadPoolExecutor(8, "snapshot-explorer-store")

    @property
    def endpoint(self) -> str:
        """The endpoint and region of S3; empty for other stores."""
        return self._connection.endpoint

    def base(self, location: Location) -> str:
        """Return bucket and key."""
        address = bucket_and_key(location)
        if _key(address).startswith("/"):
            raise _unreadable_name(address)  # obstore would read another object, whose key lacks the slash
        return address

    def read(self, address: str, end: int | None = None) -> bytes:
        """Return a file's bytes, or those before an end, in one request."""
        return bytes(self.fetched(address, end))

    def fetched(self, address: str, end: int | None = None) -> pa.Buffer:
        """Return a file's bytes, or those before an end, in one request."""
        return self._get(address, {} if end is None else {"range": (0, end)})

    def read_range(self, address: str, start: int, end: int) -> bytes:
        """Return a part of a file, in one request."""
        content = bytes(self._get(address, {"range": (start, end)}))
        if len(content) != end - start:
            raise UnexpectedResponseError(f"the storage answered with {len(content):,} of {end - start:,} bytes")
        return content

    def _get(self, address: str, options: Mapping[str, Any]) -> pa.Buffer:
        answer = self._request(address, lambda store, key: _checked(store.get(key, options=options)).bytes())
        return pa.py_buffer(answer)

    def size(self, address: str) -> int | None:
        """Return the size of a file."""
        head = {"head": True}
        return self._request(address, lambda store, key: int(_checked(store.get(key, options=head)).meta["size"]))

    def is_file(self, address: str) -> bool:
        """Return whether the object exists, by a listing: a gateway may also answer 404 to a request for one object."""
        return self._listed(address, has_object)

    def list(self, address: str) -> list[Entry]:
        """Return the entries of a folder."""
        return self._listed(address, entries)

    def names(self, address: str) -> builtins.list[Entry]:
        """Return the entries of a folder."""
        return self.list(address)

    def tree(self, address: str) -> dict[str, int | None] | None:
        """Return the size of each file below a folder."""
        return self._listed(address, tree)

    def _listed(self, address: str, read: Callable[[Pages, str], A]) -> A:
        bucket = address.partition("/")[0]
        if bucket not in self._listings:
            self._listings[bucket] = self._connection.listings(bucket)
        pages = self._listings[bucket]

        def counted(prefix: str, *, delimiter: str, token: str | None) -> Page:
            self.requests += 1
            return pages(prefix, delimiter=delimiter, token=token)

        return read(counted, _key(address))

    def _request(self, address: str, request: Callable[[Any, str], A]) -> A:
        work = partial(self._translated, address, request)
        is_main = threading.current_thread() is threading.main_thread()
        return self._waiting.submit(work).result() if is_main else work()

    def _translated(self, address: str, request: Callable[[Any, str], A]) -> A:
        self.requests += 1
        try:
            return request(self._store(address.partition("/")[0]), _key(address))
        except (UnexpectedResponseError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - obstore raises several, whose texts have the request and the answer
            failure = _translated(error, address)
        raise failure

    def _store(self, bucket: str) -> Any:
        if bucket not in self._stores:
            self._stores[bucket] = self._connection.create(bucket)
        return self._stores[bucket]


def _key(address: str) -> str:
    return address.partition("/")[2]


def _checked(answer: Any) -> Any:
    """Return the answer to a request for a file; raise UnexpectedResponseError for a page in its place."""
    content_type = str(answer.attributes.get("Content-Type") or "").lower()
    if not answer.meta["e_tag"] or content_type.startswith("text/html"):
        raise UnexpectedResponseError("the storage answered with a page instead of the file")
    return answer


def _translated(error: Exception, address: str) -> Exception:
    """Return an error of Python's for one of obstore, without the request and without the rest of the answer."""
    whole = str(error)
    text = whole.partition("\n")[0]
    if isinstance(error, UnicodeError) or (isinstance(error, ValueError) and "parse path" in text):
        return _unreadable_name(address)
    if status := _STATUS.search(text):
        return status_error(int(status[1]), whole)
    if "TooManyRedirects" in whole:
        return ObjectStoreError("too many redirects", error_code="TooManyRedirects")
    for sign, reason in (("dns error", "its name is unknown"), ("ConnectionRefused", "it refuses connections")):
        if sign in whole:
            return UnreachableStoreError(f"Could not connect to the endpoint: {reason}")
    if "kind: Timeout" in whole or "TimedOut" in whole:
        return TimeoutError("the storage did not answer in time")
    if "HTTP error" in text:
        return ConnectionError("the connection to the storage broke")
    if any(part in text.lower() for part in _NOT_A_STORE):
        return UnexpectedResponseError("the storage did not answer with the part of the file that was requested")
    name = type(error).__name__
    return PermissionError(name) if name in _DENIED_ERRORS else ObjectStoreError(name)


def _unreadable_name(address: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"obstore cannot read the name {shortened(address)!r}: it does not accept it. Copy the table to a local folder "
        "to read it."
    )
