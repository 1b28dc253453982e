"""S3, Azure and Google through obstore, whose client is ready in milliseconds.

`object_store_clients` decides where that is certain to read as fsspec's packages would.
"""

import builtins  # `list` is a method here
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.storage.failures import MissingBucketError, UnexpectedResponseError
from snapshot_explorer.storage.files import Entry, RangedFiles, RemoteFiles
from snapshot_explorer.storage.location import Location, shortened
from snapshot_explorer.storage.object_store_clients import PROCESSES, Settings, bucket_and_key

A = TypeVar("A")

_REQUESTS = 64
"""Concurrent requests. A thread that waits for one needs no processor."""
_MOST_LISTINGS = 16
"""Folders whose last listing is remembered."""
_PAGE = 1000
"""The most entries in one response to a listing."""
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_NOT_A_STORE = ("list response", "non-partial", "content-range", "etag", "last-modified", "content-length")
"""Parts of obstore's messages for answers that no object store sends."""
_DENIED = (401, 403)
_DENIED_ERRORS = ("PermissionDeniedError", "UnauthenticatedError")
"""Names of errors of obstore that mean denied access, where it sent no request."""
_MISSING = 404
_MISSING_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})


class ObjectStoreError(OSError):
    """The store answered with an error."""

    def __init__(self, text: str, status: int | None = None, error_code: str = "") -> None:
        """Keep the HTTP status and the store's own code, such as SlowDown, beside the text."""
        super().__init__(text)
        self.status = status
        self.error_code = error_code


class UnreachableStoreError(ConnectionError):
    """The endpoint does not answer. obstore has already retried."""


class _Listing(NamedTuple):
    ended: float
    folders: frozenset[str]
    """Paths below the bucket."""
    files: frozenset[str]


def _listing_of(listed: Any) -> _Listing:
    files = frozenset(item["path"] for item in listed["objects"])
    return _Listing(time.monotonic(), frozenset(listed["common_prefixes"]), files)


def _is_listed(listing: "Future[_Listing]") -> bool:
    return listing.done() and listing.exception() is None


class ObjectStoreFiles(RangedFiles):
    """Buckets, read-only. An address is `bucket/key`, as in fsspec; every character of it is literal."""

    workers = _REQUESTS

    def __init__(self, connection: Settings, other: Callable[[], RemoteFiles]) -> None:
        """Connect to nothing yet.

        Args:
            other: Creates the file system that lists what obstore cannot list.
        """
        PROCESSES.add(os.getpid())
        self._connection = connection
        self._create_other = other
        self._stores: dict[str, Any] = {}
        self._listings: dict[str, Future[_Listing]] = {}
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
        """Return True for a file that exists; otherwise FileNotFoundError is raised."""
        return self.size(address) is not None

    def list(self, address: str) -> list[Entry]:
        """Return the entries of a folder."""
        began, above = time.monotonic(), address.rpartition("/")[0]
        known = self._listings.get(above)
        if known is not None and _is_listed(known) and _key(address) not in known.result().folders:
            # Most likely it is still missing, which the listing of the folder above has to prove.
            self._waiting.submit(self._listed, above)
        listed = self._listed(address)
        start = len(_key(address)) + 1 if _key(address) else 0
        folders = [_entry(path[start:], None) for path in listed["common_prefixes"]]
        # The name of an object that represents the folder is that of the folder.
        files = [_entry(item["path"][start:], item) for item in listed["objects"] if len(item["path"]) > start]
        if not folders and not listed["objects"]:
            return self._nothing_listed(address, began)
        if len(folders) + len(files) >= _PAGE - 1 and not self._is_complete(
            address, {entry.name for entry in (*folders, *files)}
        ):
            return self._other.list(address)
        return folders + files

    def names(self, address: str) -> builtins.list[Entry]:
        """Return the entries of a folder."""
        return self.list(address)

    def tree(self, address: str) -> dict[str, int | None] | None:
        """Return the size of each file below a folder."""
        request = self._request(address, lambda store, key: store.list(key or None, chunk_size=_PAGE).collect())
        start = len(_key(address)) + 1 if _key(address) else 0
        files = {item["path"][start:]: item["size"] for item in request if len(item["path"]) > start}
        is_doubtful = not request or len(request) >= _PAGE
        if is_doubtful and not self._is_complete(address, {path.partition("/")[0] for path in files}, files):
            return self._other.tree(address)
        return files

    def _listed(self, address: str) -> Any:
        listing = self._listings[address] = Future()
        for old in list(self._listings)[:-_MOST_LISTINGS]:
            self._listings.pop(old, None)
        try:
            listed = self._request(address, lambda store, key: store.list_with_delimiter(key or None))
        except FileNotFoundError as error:
            # An empty listing is not an error; a missing bucket is.
            listing.set_exception(MissingBucketError(str(error)))
            raise MissingBucketError(str(error)) from error
        except BaseException as error:
            listing.set_exception(error)
            raise
        listing.set_result(_listing_of(listed))
        return listed

    def _above(self, address: str, began: float) -> "_Listing":
        """Return what a folder contains, from a listing that ended after a time."""
        known = self._listings.get(address)
        if known is not None and (not known.done() or (_is_listed(known) and known.result().ended >= began)):
            return known.result()
        return _listing_of(self._listed(address))

    def _nothing_listed(self, address: str, began: float) -> builtins.list[Entry]:
        """Return no entries, once it is certain that there are none; raise NotADirectoryError for a file.

        obstore also returns an empty listing where a proxy answers with a page of its own. So the folder above has to
        be listed, and to lack this folder.
        """
        above, slash, _ = address.rpartition("/")
        try:
            parent = self._above(above, began) if slash else None
        except PermissionError:
            parent = None  # the keys may only be valid for this folder
        if not parent or not (parent.files or parent.folders):
            return self._other.list(address)
        if _key(address) in parent.folders:
            raise UnexpectedResponseError("the storage did not answer with a listing")
        if _key(address) in parent.files:
            raise NotADirectoryError(f"{address} is a file, not a folder")
        return []

    def _is_complete(self, address: str, names: Iterable[str], files: Iterable[str] = ()) -> bool:
        """Return whether a listing of several responses has all of them. One request.

        A page of a proxy in the place of the last response would end it early. So what comes after the last name but
        one is listed, which cannot be empty.
        """
        known = set(names)
        order = sorted(path.encode() for path in files or known)
        if len(order) < 2:  # noqa: PLR2004 - a name before the last one
            return False
        prefix = f"{_key(address)}/" if _key(address) else ""
        offset = prefix + order[-2].decode()
        rest: Any = self._request(
            address, lambda store, key: next(iter(store.list(key or None, offset=offset, chunk_size=_PAGE)), [])
        )
        paths = [item["path"][len(prefix) :] for item in rest]
        is_known = set(paths) <= set(files) if files else {path.partition("/")[0] for path in paths} <= known
        return 0 < len(paths) < _PAGE and is_known

    @property
    def _other(self) -> RemoteFiles:
        # Created anew, because it is rare. fsspec raises its own errors.
        return self._create_other()

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


def _entry(name: str, item: Mapping[str, Any] | None) -> Entry:
    modified = None if item is None else item["last_modified"].astimezone(UTC)
    return Entry(
        name=name, is_folder=item is None, size_bytes=None if item is None else item["size"], modified=modified
    )


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
    if isinstance(error, ValueError) and "parse path" in text:
        return _unreadable_name(address)
    if status := _STATUS.search(text):
        return _status_error(int(status[1]), whole)
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
        answer = "a listing" if "list response" in text else "the part of the file that was requested"
        return UnexpectedResponseError(f"the storage did not answer with {answer}")
    name = type(error).__name__
    return PermissionError(name) if name in _DENIED_ERRORS else ObjectStoreError(name)


def _unreadable_name(address: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"obstore cannot read the name {shortened(address)!r}: it does not accept it. Copy the table to a local folder "
        "to read it."
    )


def _status_error(status: int, text: str) -> Exception:
    code, message = (match[1] if (match := pattern.search(text)) else "" for pattern in (_CODE, _MESSAGE))
    said = f"{code or f'status {status}'}: {message}".rstrip(": ")
    if code in _MISSING_BUCKET:
        return MissingBucketError(said)
    if status == _MISSING:
        return FileNotFoundError(said)
    if status in _DENIED:
        return PermissionError(said)
    return ObjectStoreError(said, status, code)
