"""S3, Azure and Google with this package's own requests: a client that starts in milliseconds and follows no redirect.

`object_store_clients` decides when it is certain to read the same as fsspec's packages.
"""

import builtins  # `list` is a method here
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from snapshot_explorer.storage.bounded_answers import Part
from snapshot_explorer.storage.files import RangedFiles
from snapshot_explorer.storage.listings import Entry, Page, Pages, entries, has_object, tree
from snapshot_explorer.storage.location import Location
from snapshot_explorer.storage.object_store_clients import Settings, bucket_and_key

if TYPE_CHECKING:
    from snapshot_explorer.storage.buckets import Bucket

A = TypeVar("A")

_REQUESTS = 64
"""Concurrent requests. A thread that waits for one needs no processor."""


class ObjectStoreFiles(RangedFiles):
    """Buckets, read-only. An address is `bucket/key`, as in fsspec; every character of it is literal."""

    workers = _REQUESTS
    lists_files_as_folders = True

    def __init__(self, connection: Settings) -> None:
        """Connect to nothing yet."""
        self._connection = connection
        self._buckets: dict[str, tuple[Bucket, Pages]] = {}

    @property
    def endpoint(self) -> str:
        """The endpoint and region of S3; empty for other stores."""
        return self._connection.endpoint

    def base(self, location: Location) -> str:
        """Return bucket and key."""
        return bucket_and_key(location)

    def fetch(self, address: str, most_bytes: int) -> pa.Buffer:
        """Return a file's bytes, in one request."""
        return pa.py_buffer(self._bucket(address)[0].read(_key(address), most_bytes=most_bytes))

    def read_range(self, address: str, start: int, end: int, etag: str | None = None) -> Part:
        """Return a part of a file, in one request."""
        return self._bucket(address)[0].read_range(_key(address), start, end, etag)

    def size(self, address: str) -> int | None:
        """Return the size of a file."""
        return self._bucket(address)[0].size(_key(address))

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
        def read_page(prefix: str, *, delimiter: str, token: str | None) -> Page:
            return self._bucket(address)[1](prefix, delimiter=delimiter, token=token)

        return read(read_page, _key(address))

    def _bucket(self, address: str) -> "tuple[Bucket, Pages]":
        """Count a request; return the bucket of an address, and its listings."""
        self.requests += 1
        name = address.partition("/")[0]
        if name not in self._buckets:
            bucket = self._connection.bucket(name)
            self._buckets.setdefault(name, (bucket, self._connection.listings(bucket)))
        return self._buckets[name]


def _key(address: str) -> str:
    return address.partition("/")[2]
