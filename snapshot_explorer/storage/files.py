"""How bytes and listings come from the local disk and from fsspec's file systems. Nothing here writes."""

import builtins  # `list` is a method here
import codecs
import inspect
import io
import os
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.storage import s3
from snapshot_explorer.storage.failures import NotTheFileError
from snapshot_explorer.storage.location import LOCAL, QUOTED, Location, shortened
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

A = TypeVar("A")

WORKERS = 32
"""How many requests are made at once to a storage that is not this machine's own."""
_WHOLE = 1 << 20
"""A remote file up to this size is fetched whole when opened: the round trip costs more than the bytes."""
_AHEAD = 1 << 16
"""How many bytes past those asked for are fetched along, for readers that take small steps (ORC, Avro)."""
_MODIFIED = ("LastModified", "last_modified", "mtime", "updated", "modified")
"""How file systems call the time of the last write. A time of creation is another thing."""
_PAGE_BEGINS = frozenset({b"<", b" ", b"\n", b"\r", b"\t", codecs.BOM_UTF8[:1]})
_PAGE_HEAD = 256
_READ_ONLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Entry(NamedTuple):
    """A file or folder of a listing. A tuple: of a long log they are many, and a record takes longer."""

    name: str
    """Its name in the folder."""
    is_folder: bool
    """Whether it is a folder."""
    size_bytes: int | None
    """Size of a file; null for a folder."""
    modified: datetime | None
    """When it was last written, aware, UTC; null where the storage does not say."""


class Files(Protocol):
    """What `Storage` needs of a storage. Addresses are the storage's own; foreign errors are let through."""

    workers: int
    """How many requests may be made at once; 1 where threads cost more than they give."""

    @property
    def endpoint(self) -> str:
        """Where requests go, for messages; empty where the location says it all."""
        ...

    def base(self, location: Location) -> str:
        """Return the address that a location has on this storage."""
        ...

    def read(self, address: str) -> bytes:
        """Return a file's bytes."""
        ...

    def list(self, address: str) -> list[Entry]:
        """Return what is in a folder, in any order. NotADirectoryError if it is a file."""
        ...

    def folders(self, address: str) -> builtins.list[str]:
        """Return the names of the folders in a folder, in any order. NotADirectoryError if it is a file."""
        ...

    def is_file(self, address: str) -> bool:
        """Return whether a file is there; FileNotFoundError is as good as False."""
        ...

    def open(self, address: str, size_bytes: int | None) -> pa.NativeFile | io.BufferedIOBase:
        """Return a file opened for random access; of a Python object the reads may raise foreign errors."""
        ...


class LocalFiles:
    """The local disk, asked directly: fsspec's layer costs more than the reading of a small file."""

    workers = 1  # measured: two threads take twice as long as none to read 10,000 small files
    endpoint = ""

    def base(self, location: Location) -> str:
        """Return the absolute path."""
        return location.address

    def read(self, address: str) -> bytes:
        """Return a file's bytes; of a pipe or device none, it could be endless."""
        # Opened without blocking, so that a pipe that metadata names cannot hang us before its type is known.
        handle = os.open(address, _READ_ONLY)
        try:
            size = _regular(os.fstat(handle), address).st_size
            content = os.read(handle, size + 1)
            if len(content) == size:
                return content
            # More than the system reads at once (2 GiB), or a writer is at it.
            parts = [content]
            while part := os.read(handle, max(size, _WHOLE)):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(handle)

    def list(self, address: str) -> list[Entry]:
        """Return what is in a folder, links followed; links to nowhere are left out."""
        entries = self._listed(address, _local_entry)
        return [entry for entry in entries if entry is not None]

    def folders(self, address: str) -> builtins.list[str]:
        """Return the names of the folders in a folder, links followed. No entry's status is asked for but a link's."""
        return [name for name, is_folder in self._listed(address, lambda item: (item.name, item.is_dir())) if is_folder]

    def _listed(self, address: str, told: Callable[[os.DirEntry[str]], A]) -> builtins.list[A]:
        try:
            with os.scandir(address) as found:
                return [told(item) for item in found]
        except NotADirectoryError as error:
            if self.is_file(address):
                raise NotADirectoryError(f"{address} is a file, not a folder") from error
            raise

    def is_file(self, address: str) -> bool:
        """Return whether a file is there."""
        return stat.S_ISREG(_status(address).st_mode)

    def open(self, address: str, size_bytes: int | None) -> pa.NativeFile:  # noqa: ARG002 - the disk knows the size
        """Return a file opened for random access."""
        _regular(_status(address), address)
        # No memory map: a file that a writer cuts short under a map kills the process.
        return pa.OSFile(address, mode="r")


def file_names(address: str, most: int) -> list[str]:
    """Return the names of the files in a folder of the local disk, of the first entries of it. Links are left out."""
    with os.scandir(address) as found:
        return [item.name for item in islice(found, most) if item.is_file(follow_symlinks=False)]


def _status(address: str) -> os.stat_result:
    return os.stat(address)  # noqa: PTH116 - a Path costs more than the question


def _regular(status: os.stat_result, address: str) -> os.stat_result:
    if stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{address} is a folder, not a file")
    raise OSError(f"{address} is a device or a pipe, not a file")


def _local_entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        is_folder, status = item.is_dir(), item.stat()
    except OSError:
        if item.is_symlink():
            return None  # to nowhere, or in a circle
        if not os.path.lexists(item.path):
            return None  # removed meanwhile
        raise
    try:
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        modified = None
    return Entry(item.name, is_folder, None if is_folder else status.st_size, modified)


class RemoteFiles:
    """A file system of fsspec, used through its reading calls only, without its cache of listings or its globs."""

    workers = WORKERS

    def __init__(self, root: Location, options: Mapping[str, Any]) -> None:
        """Make the file system; some protocols connect here."""
        import fsspec  # noqa: PLC0415 - local tables do without it, and it takes long to import
        from fsspec.dircache import DirCache  # noqa: PLC0415 - as above

        kind = fsspec.get_filesystem_class(root.protocol)
        self._protocol = root.protocol
        # As fsspec's url_to_fs does, which would take a `::` in a name for a chain. Of an S3 URL, s3fs takes nothing
        # but an object's version, which is no concern of a folder's.
        named = {} if root.protocol == "s3" else kind._get_kwargs_from_urls(root.address)  # noqa: SLF001 - see above
        # An instance of our own: fsspec would share one, with its cache of listings, across the process.
        self._fs = kind(**{**named, **_settings(root.protocol, options), "skip_instance_cache": True})
        # A live writer's commits must be seen. Not every protocol takes `use_listings_cache`; all have this.
        self._fs.dircache = DirCache(use_listings_cache=False)
        whole = getattr(self._fs, "_cat_file", self._fs.cat_file)
        if root.protocol == "s3":
            s3.prepare(self._fs)
        # Otherwise s3fs asks for a file's size before it reads the file.
        self._at_once = {"max_concurrency": 1} if "max_concurrency" in inspect.signature(whole).parameters else {}

    @property
    def endpoint(self) -> str:
        """Where requests go: of S3 the endpoint and the region."""
        return s3.endpoint(self._fs) if self._protocol == "s3" else ""

    def base(self, location: Location) -> str:
        """Return the address as the file system writes it."""
        return str(self._fs._strip_protocol(location.address))  # noqa: SLF001 - there is no other way to ask

    def read(self, address: str) -> bytes:
        """Return a file's bytes, in one request."""
        content = bytes(self._fs.cat_file(self._literal(address), **self._at_once))
        if content[:1] in _PAGE_BEGINS and self._protocol != "memory":
            _refuse_page(content)
        return content

    def list(self, address: str) -> list[Entry]:
        """Return what is in a folder."""
        self._literal(address)
        self._fs.invalidate_cache(address)
        found = self._fs.ls(address, detail=True)
        own = address.strip("/")
        # Asked for a file, fsspec lists the file. A name that ends with `/` is an object that stands for a folder.
        if any(
            item["name"].strip("/") == own and item["type"] == "file" and item["name"][-1:] != "/" for item in found
        ):
            raise NotADirectoryError(f"{address} is a file, not a folder")
        return [self._entry(item) for item in found if item["name"].strip("/") != own]

    def folders(self, address: str) -> builtins.list[str]:
        """Return the names of the folders in a folder."""
        return [entry.name for entry in self.list(address) if entry.is_folder]

    def is_file(self, address: str) -> bool:
        """Return whether a file is there."""
        return bool(self._fs.info(self._literal(address))["type"] == "file")

    def open(self, address: str, size_bytes: int | None) -> pa.NativeFile | io.BufferedIOBase:
        """Return a small file's bytes, or a large file that fetches ranges."""
        # Handles of memory:// share one position.
        if self._protocol == "memory" or (size_bytes is not None and size_bytes <= _WHOLE):
            content = self.read(address)
            if size_bytes is not None and len(content) != size_bytes:
                self._refuse_part(address, len(content))
            return pa.BufferReader(content)
        known = {"size": size_bytes} if self._protocol == "s3" and size_bytes is not None else {}
        handle: io.BufferedIOBase = self._fs.open(
            self._literal(address), "rb", block_size=_AHEAD, cache_type="readahead", **known
        )
        size = getattr(handle, "size", None)
        if size is not None and size <= _WHOLE:
            with handle:
                return pa.BufferReader(handle.read())
        return handle

    def _refuse_part(self, address: str, size: int) -> None:
        """Raise NotTheFileError if a file is of another size than what was read of it. One request.

        Metadata may be wrong about the size of a file, so that it alone proves nothing.
        """
        there = self._fs.info(address).get("size")
        if isinstance(there, int) and there != size:
            raise NotTheFileError(f"the storage answered with {size:,} of {there:,} bytes")

    def _literal(self, address: str) -> str:
        """Return the address if the file system takes every character of it as it stands."""
        taken = self._fs._strip_protocol(address) == address  # noqa: SLF001 - there is no other way to ask
        if not taken or (self._protocol == "s3" and "?versionId=" in address):
            raise UnsupportedFeatureError(
                f"{self._protocol}:// cannot be asked for the name {shortened(address)!r}: "
                "its library would take it for another one. Copy the table to a local folder to read it."
            )
        return address

    def _entry(self, item: Mapping[str, Any]) -> Entry:
        name = str(item["name"]).rstrip("/").rsplit("/", 1)[-1]
        is_folder = item["type"] == "directory"
        return Entry(
            name=unquote(name) if self._protocol in QUOTED else name,
            is_folder=is_folder,
            size_bytes=None if is_folder else item.get("size"),
            modified=next((_time(item[key]) for key in _MODIFIED if item.get(key)), None),
        )


class Ranges(io.RawIOBase):
    """An open file whose reads go through a function of ours, for pyarrow."""

    def __init__(self, handle: io.BufferedIOBase, ask: Callable[[Callable[[Any], Any], Any], Any]) -> None:
        """Wrap an open file; closing this closes it.

        Args:
            handle: The file.
            ask: Calls a function with an argument, a second time where that may help, and translates its errors.
        """
        self._handle = handle
        self._ask = ask

    def read(self, size: int = -1, /) -> bytes:
        """Return up to so many bytes from where the file stands, all that are left for -1."""
        place = self._handle.tell()
        content: bytes = self._ask(lambda asked: self._read_at(place, asked), size)
        log.debug("read %d bytes at %d", len(content), place)
        return content

    def _read_at(self, place: int, size: int) -> bytes:
        """Return bytes from a place, also where an earlier try has left the file somewhere else."""
        if self._handle.tell() != place:
            self._handle.seek(place)
        content = self._handle.read(size)
        end = getattr(self._handle, "size", None)
        if isinstance(end, int):
            wanted = max(end - place, 0) if size < 0 else min(size, max(end - place, 0))
            if len(content) != wanted:
                self._handle.seek(place)
                raise NotTheFileError(f"the storage answered with {len(content):,} of {wanted:,} bytes")
        return content

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to another place."""
        place: int = self._ask(lambda asked: self._handle.seek(asked, whence), offset)
        return place

    def tell(self) -> int:
        """Return where the file stands."""
        return self._handle.tell()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._ask(lambda handle: handle.close(), self._handle)
        super().close()


def _refuse_page(content: bytes) -> None:
    """Raise NotTheFileError for an HTML page: no file of a table begins like one."""
    if content[:_PAGE_HEAD].removeprefix(codecs.BOM_UTF8).lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise NotTheFileError("the storage answered with an HTML page instead of the file")


def _settings(protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for fsspec: the user's, and as many connections as there are requests at once."""
    if protocol != "s3":
        return dict(options)
    given = options.get("config_kwargs") or {}
    return {**options, "config_kwargs": {"max_pool_connections": WORKERS, "retries": s3.RETRIES, **given}}


def _time(value: object) -> datetime | None:
    """Return a storage's time as aware UTC; None if it is in no form that is known."""
    try:
        if isinstance(value, (float, int)):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(found, datetime):
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def connect(root: Location, options: Mapping[str, Any]) -> Files:
    """Return the files of a location's storage."""
    return LocalFiles() if root.protocol == LOCAL else RemoteFiles(root, options)
