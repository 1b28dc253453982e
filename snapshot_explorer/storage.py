"""Read-only files below one root, over fsspec: many small files at once, errors translated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file or folder of a listing."""

    name: str
    """Its name in the folder."""
    is_folder: bool
    """Whether it is a folder."""
    size_bytes: int | None
    """Size of a file; null for a folder."""
    modified: datetime | None
    """When it was last written, aware, UTC; null where the storage does not say."""


class Storage:
    """A table's folder. There is no way to write through it. Safe to use from several threads.

    Paths are relative to the root, with `/`; they may not leave it. Picklable: executors open their own.
    """

    root: str
    """The root as it may be shown: no user, password or query in it."""

    def __init__(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        """Bind to a folder. Reads nothing."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Return a file's bytes, in one request.

        Raises:
            MissingFileError: The file is not there.
            StorageError: The storage refused or did not answer.
        """
        raise NotImplementedError

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return the files' bytes in the order asked for, read concurrently, a request each.

        Raises:
            MissingFileError: One is not there; the first in order is named.
        """
        raise NotImplementedError

    def read_present(self, paths: Sequence[str]) -> list[bytes | None]:
        """Return the files' bytes like `read_many`, with None for a file that is not there."""
        raise NotImplementedError

    def list(self, folder: str) -> list[Entry]:
        """Return what is in a folder, sorted by name; empty if there is no such folder. One listing."""
        raise NotImplementedError

    def list_many(self, folders: Sequence[str]) -> list[list[Entry]]:
        """Return several listings in the order asked for, made concurrently."""
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        """Return whether there is a file of that path. One request."""
        raise NotImplementedError

    def open(self, path: str) -> pa.NativeFile:
        """Return a data file opened for random access; only the ranges asked for are read.

        Raises: as `read`.
        """
        raise NotImplementedError

    def resolve_external(self, location: str) -> str:
        """Return the path for `read` and `open` of a full location that the table's metadata names.

        Raises:
            UnsupportedFeatureError: The location is on another storage than the table: it is not followed.
        """
        raise NotImplementedError
