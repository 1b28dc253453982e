"""Bytes and listings from the local disk and from fsspec's file systems. Read-only."""

import builtins  # `list` is a method here
import codecs
import errno
import inspect
import logging
import os
import re
import stat
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.storage import azure, gcs, s3, web
from snapshot_explorer.storage.bounded_answers import MOST_UNKNOWN_BYTES, Part, call, check_unchanged, part_of
from snapshot_explorer.storage.failures import OversizedAnswerError, ReplacedFileError, UnexpectedResponseError
from snapshot_explorer.storage.listings import Entry, EntryFields, Page, Pages, entries, has_object, tree
from snapshot_explorer.storage.location import QUOTED, Location, shorten
from snapshot_explorer.storage.ranges import TAIL_BYTES, Range, SmallRemoteFile

log = logger_of(__name__)

A = TypeVar("A")


WORKERS = 32
"""Concurrent requests to remote storage."""
_WHOLE_FILE_BYTES = 1 << 20
"""A remote file of up to this size is fetched whole when opened: the round trip costs more than the bytes."""
_SMALL_FILE_BYTES = 1 << 17
"""A local file of up to this size is read whole when opened."""
_LISTINGS: Mapping[str, Callable[[Any, str], Pages]] = MappingProxyType(
    {
        "s3": s3.listings,
        **dict.fromkeys(azure.PROTOCOLS, azure.listings),
        **dict.fromkeys(gcs.PROTOCOLS, gcs.listings),
    }
)
"""The listings of stores without folders, by protocol."""
_READERS: Mapping[str, Callable[..., Awaitable[Part]]] = MappingProxyType(
    {
        "s3": s3.read_part,
        **dict.fromkeys(azure.PROTOCOLS, azure.read_part),
        **dict.fromkeys(gcs.PROTOCOLS, gcs.read_part),
        **dict.fromkeys(QUOTED, web.read_part),
    }
)
"""Functions that read files within limits of size and time, by protocol."""
_SESSIONS = MappingProxyType(
    {**dict.fromkeys(gcs.PROTOCOLS, "session_kwargs"), **dict.fromkeys(QUOTED, "client_kwargs")}
)
"""The options with the arguments of aiohttp's session, by protocol."""
_WITHOUT_REQUESTS = frozenset({"zip", "tar", "libarchive", "memory"})
"""Protocols for which the size of a file costs no request."""
_MODIFIED = ("LastModified", "last_modified", "mtime", "updated", "modified")
"""Names of the last-modified time in file systems. A creation time is not used."""
_LOGGERS = ("adlfs", "azure", "gcsfs", "google")
"""Loggers of libraries that both log and raise an error."""
_SECRET_OF_URL = re.compile(r"(?<=://)[^/\s]*(?=@)|(?<=\?)\S+")
"""User and password, and the query, which may be a signature."""
_HTML_STARTS = frozenset({b"<", b" ", b"\n", b"\r", b"\t", codecs.BOM_UTF8[:1]})
_HTML_PREFIX = 256
_BLOCK_BYTES = 512
"""The unit in which systems count the space that a file takes."""
_TRIES_WHILE_WRITTEN = 3
"""The maximum number of attempts to read a local file that changes meanwhile."""
_SETTLED_NANOS = 10**9
"""The age of a folder's last change after which a later change certainly has another time."""
_READ_ONLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


_NO_TARGET = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""The disk's errors for a link without a target. After any other error, it is unknown whether the target exists."""


class Tail(NamedTuple):
    """The end of a large file whose ranges are read one by one."""

    size: int
    """The file's size."""
    content: bytes | bytearray
    """Its last bytes."""
    etag: str | None
    """The identity of its content; None if unknown."""


class Files(Protocol):
    """The operations that `Storage` needs. Addresses are the storage's own; foreign errors are raised unchanged."""

    workers: int
    """The maximum number of concurrent requests; 1 if threads cost more than they save."""
    requests: int
    """Requests so far; 0 for the local disk."""

    @property
    def lists_files_as_folders(self) -> bool:
        """Whether `list` returns nothing for a file, because keys below it might exist, too."""
        ...

    @property
    def endpoint(self) -> str:
        """The endpoint of requests, for messages; empty if the location contains it."""
        ...

    def base(self, location: Location) -> str:
        """Return the address of a location on this storage."""
        ...

    def read(self, address: str, limits: Limits, recorded_bytes: int | None = None) -> bytes:
        """Return a file's bytes.

        Args:
            recorded_bytes: The size of a data file, to which the limits for metadata do not apply; None if unknown.

        Raises: OversizedAnswerError, before it is read, for a larger file than allowed.
        """
        ...

    def list(self, address: str) -> list[Entry]:
        """Return the entries of a folder, in any order. Raises NotADirectoryError for a file, unless it may be both."""
        ...

    def names(self, address: str) -> Sequence[EntryFields]:
        """Return the entries of `list`, without sizes and times if these cost more."""
        ...

    def tree(self, address: str) -> dict[str, int | None] | None:
        """Return the size of each file below a folder, by its path in it; None if this would list each folder."""
        ...

    def is_file(self, address: str) -> bool:
        """Return whether the file exists. May raise FileNotFoundError instead of returning False."""
        ...

    def open(self, address: str, size_bytes: int | None, end: int | None) -> "pa.NativeFile | Tail":
        """Return a file opened for random access, or the end of a large one."""
        ...

    def read_range(self, address: str, start: int, end: int, etag: str | None = None) -> Part:
        """Return a part of a file, after `open` has returned a `Tail`.

        Raises ReplacedFileError if the file no longer has the ETag.
        """
        ...


class LocalFiles:
    """The local disk, without fsspec, whose overhead exceeds the cost of reading a small file."""

    workers = 1  # measured: two threads need twice the time of one to read 10,000 small files
    endpoint = ""
    requests = 0
    lists_files_as_folders = False

    def base(self, location: Location) -> str:
        """Return the absolute path."""
        return location.address

    def read(self, address: str, limits: Limits, recorded_bytes: int | None = None) -> bytes:
        """Return a file's bytes. Refuses pipes and devices, which could be endless."""
        # Opened without blocking, so that a pipe in the metadata cannot hang before its type is checked.
        handle = os.open(address, _READ_ONLY)
        try:
            return _whole_content(handle, address, limits, recorded_bytes)
        finally:
            os.close(handle)

    def list(self, address: str) -> list[Entry]:
        """Return the entries of a folder, links followed; broken links are left out."""
        return [entry for entry in map(_local_entry, self._items(address)) if entry is not None]

    def names(self, address: str) -> Sequence[EntryFields]:
        """Return the entries of a folder without sizes and times, links followed. Only links cost a stat call."""
        return [(item.name, item.is_dir(), None, None) for item in self._items(address)]

    def _items(self, address: str) -> builtins.list[os.DirEntry[str]]:
        try:
            with os.scandir(address) as items:
                return [*items]
        except NotADirectoryError as error:
            try:
                os.lstat(address)
            except (FileNotFoundError, NotADirectoryError) as missing:  # below a file there is nothing
                raise FileNotFoundError(errno.ENOENT, "no such folder", address) from missing
            raise NotADirectoryError(f"{address} is a file, not a folder") from error

    def is_file(self, address: str) -> bool:
        """Return whether the file exists."""
        try:
            return stat.S_ISREG(_status(address).st_mode)
        except FileNotFoundError:
            return False  # usual when a history checks for old files, and translating an error costs more than this

    def open(self, address: str, size_bytes: int | None, end: int | None) -> pa.NativeFile:  # noqa: ARG002 - the disk knows the size
        """Return a file opened for random access; a small one is read whole, in one system call instead of many."""
        handle = os.open(address, _READ_ONLY)
        try:
            if _regular(os.fstat(handle), address).st_size <= _SMALL_FILE_BYTES:
                return pa.BufferReader(_whole_content(handle, address))
        finally:
            os.close(handle)
        return LocalFile.of(address)

    def tree(self, address: str) -> None:  # noqa: ARG002 - remote storage uses it
        """Return None: the disk lists each folder."""
        return

    def read_range(self, address: str, start: int, end: int, etag: str | None = None) -> Part:
        """Return a part of a file."""
        raise NotImplementedError  # `open` returns no Tail


class LocalFile(pa.OSFile):  # type: ignore[misc]  # pyarrow has no types
    """A large local file, open for random access. No memory map: if a writer truncates one, the process is killed."""

    @classmethod
    def of(cls, address: str) -> "LocalFile":
        """Return a file. Closing it raises an error if it was written to since."""
        opened = cls(os.fsencode(address), mode="r")  # a name need not be UTF-8
        opened._before = _identity(os.fstat(opened.fileno()))
        opened.failure = ReplacedFileError
        return opened

    def close(self) -> None:
        """Close the file.

        Raises: the result of `failure`, if a writer has changed the file since it was opened.
        """
        is_changed = not self.closed and _identity(os.fstat(self.fileno())) != self._before
        super().close()
        if is_changed:
            raise self.failure()


class FileNames:
    """The names of the files in the local folder that was listed last. Lists it again after a change."""

    def __init__(self) -> None:
        self._last: tuple[str, int, frozenset[str]] | None = None

    def names_in(self, address: str, most: int) -> frozenset[str]:
        """Return the names of the files among the first entries of a folder. Links are left out."""
        now, changed = time.time_ns(), _status(address).st_mtime_ns
        last = self._last
        if last is not None and last[:2] == (address, changed):
            return last[2]
        with os.scandir(address) as items:
            names = frozenset([item.name for item in islice(items, most) if item.is_file(follow_symlinks=False)])
            is_whole = next(items, None) is None
        # Two changes within the resolution of the clock have the same time.
        if is_whole and now - changed > _SETTLED_NANOS:
            self._last = address, changed, names
        return names


def _whole_content(handle: int, address: str, limits: Limits = DEFAULT, recorded_bytes: int | None = None) -> bytes:
    """Return the bytes of an open file. It is read again if a writer changes it meanwhile."""
    for _ in range(_TRIES_WHILE_WRITTEN):
        before = _regular(os.fstat(handle), address)
        if before.st_size > _SMALL_FILE_BYTES:
            # The holes of a sparse file take no space, but memory when they are read.
            blocks = getattr(before, "st_blocks", None)
            stored = None if blocks is None else blocks * _BLOCK_BYTES
            _check_size(before.st_size, limits, recorded_bytes, stored)
        content = _content(handle, before.st_size)
        if _identity(os.fstat(handle)) == _identity(before):
            return content
        os.lseek(handle, 0, os.SEEK_SET)
    raise ReplacedFileError


def _check_size(size_bytes: int, limits: Limits, recorded_bytes: int | None, stored_bytes: int | None) -> None:
    limit = max(limits.most_whole_bytes(stored_bytes), recorded_bytes or 0)
    if size_bytes > limit:
        raise OversizedAnswerError(size_bytes, limit)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Return values that change when a file is written to or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _content(handle: int, size: int) -> bytes:
    content = os.read(handle, size + 1)
    if len(content) == size:
        return content
    # More than one system call reads (2 GiB), or the file is being written.
    parts = [content]
    while part := os.read(handle, max(size, _WHOLE_FILE_BYTES)):
        parts.append(part)
    return b"".join(parts)


def _status(address: str) -> os.stat_result:
    return os.stat(address)  # noqa: PTH116 - a Path costs more than the call


def local_size(address: str) -> int | None:
    """Return the size of a file on the local disk; None if it does not exist."""
    try:
        status = _status(address)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _regular(status: os.stat_result, address: str) -> os.stat_result:
    if stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{address} is a folder, not a file")
    raise OSError(f"{address} is a device or a pipe, not a file")


def _local_entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        is_folder, status = item.is_dir(), item.stat()
    except OSError as error:
        if error.errno in _NO_TARGET:
            return None  # a broken link, or a file that was removed since
        raise
    try:
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        modified = None
    # `_make` takes a third of the time of the constructor.
    return Entry._make((item.name, is_folder, None if is_folder else status.st_size, modified))


class RangedFiles(ABC):
    """Remote files that are read in ranges, each a request."""

    workers = WORKERS
    requests = 0

    @abstractmethod
    def fetch(self, address: str, most_bytes: int) -> pa.Buffer:
        """Return a file's bytes, in one request. Raises OversizedAnswerError for a larger file."""

    def read(self, address: str, limits: Limits, recorded_bytes: int | None = None) -> bytes:
        """Return a file's bytes, in one request."""
        content: bytes = self.fetch(address, max(limits.most_whole_bytes(), recorded_bytes or 0)).to_pybytes()
        return content

    @abstractmethod
    def read_range(self, address: str, start: int, end: int, etag: str | None = None) -> Part:
        """Return a part of a file, in one request; all bytes of a shorter file, if the part starts at its beginning.

        Args:
            etag: The ETag of the file when another part was read. Raises ReplacedFileError if it changed.
        """

    @abstractmethod
    def size(self, address: str) -> int | None:
        """Return the size of a file; None if the storage does not report it."""

    def open(self, address: str, size_bytes: int | None, end: int | None) -> "pa.NativeFile | Tail":
        """Return a small file's bytes, or its bytes up to the end, or the end of a large file. One request.

        Without a size and an end a request for the size comes first.
        """
        if size_bytes is None and end is not None and 0 < end <= _WHOLE_FILE_BYTES:
            part = self.read_range(address, 0, end).content
            if len(part) < end:
                self._check_complete(address, len(part))
            return SmallRemoteFile(pa.py_buffer(part))
        size = self.size(address) if size_bytes is None else size_bytes
        if size is None or size <= _WHOLE_FILE_BYTES:
            try:
                content = self.fetch(address, MOST_UNKNOWN_BYTES if size is None else _WHOLE_FILE_BYTES)
            except OversizedAnswerError:
                if size is None or (actual := self.size(address)) is None:
                    raise
                return self._tail(address, actual, is_certain=True)  # the metadata records another size
            if size is not None and content.size != size:
                self._check_complete(address, content.size)
            return SmallRemoteFile(content)
        return self._tail(address, size, is_certain=size_bytes is None)

    def _tail(self, address: str, size: int, *, is_certain: bool) -> "Tail":
        """Return the end of a file. A size in the metadata may be wrong: it is checked if the read fails."""
        start = max(size - TAIL_BYTES, 0)
        try:
            return Tail(size, *self.read_range(address, start, size))
        except Exception:  # a library may raise anything for a range that the file does not have
            actual = size if is_certain else self.size(address)
            if actual is None or actual == size:
                raise
        return self._tail(address, actual, is_certain=True)

    def _check_complete(self, address: str, size: int) -> None:
        """Raise UnexpectedResponseError if the file has another size than the bytes read. One request.

        The size in the metadata may be wrong, so it alone proves nothing.
        """
        actual = self.size(address)
        if actual is not None and actual != size:
            raise UnexpectedResponseError(f"the storage answered with {size:,} of {actual:,} bytes")


class RemoteFiles(RangedFiles):
    """A file system of fsspec, read-only, without its listings cache and its globs."""

    def __init__(self, root: Location, options: Mapping[str, Any]) -> None:
        """Create the file system; some protocols connect here."""
        import fsspec  # noqa: PLC0415 - local tables do without it, and it takes long to import
        from fsspec.dircache import DirCache  # noqa: PLC0415 - as above

        file_system = fsspec.get_filesystem_class(root.protocol)
        if root.protocol in gcs.PROTOCOLS:
            file_system = gcs.plain_file_system(file_system)
        _keep_off_stderr()
        logging.getLogger("fsspec.http").addFilter(_mask_urls)
        self._protocol = root.protocol
        # As in fsspec's url_to_fs, which would read a `::` in a name as a chain. From an S3 URL, s3fs parses only an
        # object's version, which a folder does not have.
        named = {} if root.protocol == "s3" else file_system._get_kwargs_from_urls(root.address)  # noqa: SLF001 - see above
        # A separate instance: fsspec would share one, with its listings cache, across the process.
        settings = {**named, **_settings(root.protocol, options), "skip_instance_cache": True}
        if name := _SESSIONS.get(root.protocol):
            settings = web.within_origin(settings, name)
        self._fs = gcs.connect(file_system, settings) if root.protocol in gcs.PROTOCOLS else file_system(**settings)
        # New commits must be listed. Not every protocol accepts `use_listings_cache`; all have `dircache`.
        self._fs.dircache = DirCache(use_listings_cache=False)
        whole = getattr(self._fs, "_cat_file", self._fs.cat_file)
        if root.protocol == "s3":
            s3.prepare(self._fs)
        elif root.protocol in azure.PROTOCOLS:
            azure.prepare(self._fs)
        # Otherwise s3fs requests a file's size before it reads the file.
        self._at_once = {"max_concurrency": 1} if "max_concurrency" in inspect.signature(whole).parameters else {}

    @property
    def lists_files_as_folders(self) -> bool:
        """Whether `list` returns nothing for a file, as on S3, Azure and Google."""
        return self._protocol in _LISTINGS

    @property
    def endpoint(self) -> str:
        """The endpoint and region of S3; empty for other storages."""
        return s3.endpoint(self._fs) if self._protocol == "s3" else ""

    def base(self, location: Location) -> str:
        """Return the address as the file system writes it."""
        return str(self._fs._strip_protocol(location.address))  # noqa: SLF001 - there is no public way

    def read(self, address: str, limits: Limits, recorded_bytes: int | None = None) -> bytes:
        """Return a file's bytes, in one request."""
        if self._protocol in _WITHOUT_REQUESTS:
            # A file in an archive may be stored in a thousandth of its size.
            info = self._info(address)
            _check_size(info.get("size") or 0, limits, recorded_bytes, info.get("compress_size"))
        return super().read(address, limits, recorded_bytes)

    def fetch(self, address: str, most_bytes: int) -> pa.Buffer:
        """Return a file's bytes, in one request."""
        if self._protocol == "hdfs":
            self._fs.info(address)  # libhdfs prints a stack trace when a file that it opens does not exist
        content = self._part(self._literal(address), None, None, most_bytes).content
        if bytes(content[:1]) in _HTML_STARTS and self._protocol != "memory":
            _check_not_html(content)
        return pa.py_buffer(content)

    def _part(self, address: str, part: Range | None, etag: str | None, most_bytes: int) -> Part:
        """Return a part of a file, or all of it. Without another reader for the protocol, fsspec reads it."""
        read = _READERS.get(self._protocol)
        if read is not None and self._is_async:
            found: Part = call(self._fs, read, self._fs, address, part, etag, most_bytes, is_limited=True)
            return found
        how = self._at_once if part is None else {"start": part[0], "end": part[1]}
        content = bytes(self._fs.cat_file(address, **how))
        if len(content) > most_bytes and part is None:
            raise OversizedAnswerError(len(content), most_bytes)
        return Part(content, None)

    def list(self, address: str) -> list[Entry]:
        """Return the entries of a folder."""
        if self._protocol in _LISTINGS:
            return self._listed(address, entries)
        if self._protocol in QUOTED:
            folder = self._literal(f"{address}/")
            page = self._part(folder, None, None, web.MOST_PAGE_BYTES).content
            return web.entries_of_page(bytes(page), folder)
        self._literal(address)
        self._fs.invalidate_cache(address)
        items = self._fs.ls(address, detail=True)
        own = address.strip("/")
        # For a file, fsspec lists the file itself. A name that ends with `/` is an object that represents a folder.
        if any(
            item["name"].strip("/") == own and item["type"] == "file" and item["name"][-1:] != "/" for item in items
        ):
            raise NotADirectoryError(f"{address} is a file, not a folder")
        return [self._entry(item) for item in items if item["name"].strip("/") != own]

    def names(self, address: str) -> builtins.list[Entry]:
        """Return the entries of a folder."""
        return self.list(address)

    def tree(self, address: str) -> dict[str, int | None] | None:
        """Return the size of each file below a folder of a store without folders."""
        return self._listed(address, tree) if self._protocol in _LISTINGS else None

    def is_file(self, address: str) -> bool:
        """Return whether the file exists."""
        if self._protocol in _LISTINGS and not s3.is_directory_bucket(address.partition("/")[0]):
            return self._listed(address, has_object)
        return bool(self._info(self._literal(address))["type"] == "file")

    def _listed(self, address: str, read: Callable[[Pages, str], A]) -> A:
        bucket, _, key = address.partition("/")
        pages = _LISTINGS[self._protocol](self._fs, bucket)

        def read_page(prefix: str, *, delimiter: str, token: str | None) -> Page:
            self.requests += 1
            return pages(prefix, delimiter=delimiter, token=token)

        return read(read_page, key)

    def open(self, address: str, size_bytes: int | None, end: int | None) -> "pa.NativeFile | Tail":
        """Return a file opened for random access, or the end of a large one. A file in memory is read whole."""
        if self._protocol == "memory":
            return SmallRemoteFile(self.fetch(address, sys.maxsize))
        return super().open(address, size_bytes, end)

    def read_range(self, address: str, start: int, end: int, etag: str | None = None) -> Part:
        """Return a part of a file, in one request."""
        found = self._part(self._literal(address), (start, end), etag, max(end, MOST_UNKNOWN_BYTES))
        check_unchanged(found.etag, etag)
        content = found.content
        return Part(content if not start and len(content) < end else part_of(content, start, end), found.etag)

    def size(self, address: str) -> int | None:
        """Return the size of a file; None if the storage does not report it."""
        literal = self._literal(address)
        if self._protocol in gcs.PROTOCOLS:
            found: int = call(self._fs, gcs.size, self._fs, literal, is_limited=True)
            return found
        size = self._info(literal).get("size")
        return size if isinstance(size, int) else None

    def _info(self, address: str) -> Mapping[str, Any]:
        info = getattr(self._fs, "_info", None)
        info_fields: Mapping[str, Any]
        info_fields = self._fs.info(address) if info is None or not self._is_async else call(self._fs, info, address)
        return info_fields

    @property
    def _is_async(self) -> bool:
        """Whether the client uses asyncio and is not a wrapper with the same interface."""
        import asyncio  # noqa: PLC0415 - local tables do without it

        return isinstance(getattr(self._fs, "loop", None), asyncio.AbstractEventLoop)

    def _literal(self, address: str) -> str:
        """Count a request; return its address if the file system reads every character of it literally."""
        self.requests += 1
        is_literal = self._fs._strip_protocol(address) == address  # noqa: SLF001 - there is no public way
        if not is_literal or (self._protocol == "s3" and "?versionId=" in address):
            raise UnsupportedFeatureError(
                f"{self._protocol}:// cannot read the name {shorten(address)!r}: "
                "its library reads it as another name. Copy the table to a local folder to read it."
            )
        return address

    def _entry(self, item: Mapping[str, Any]) -> Entry:
        name = str(item["name"]).rstrip("/").rsplit("/", 1)[-1]
        is_folder = item["type"] == "directory"
        return Entry(
            name=name,
            is_folder=is_folder,
            size_bytes=None if is_folder else item.get("size"),
            modified=next((_time(item[key]) for key in _MODIFIED if item.get(key)), None),
        )


def _keep_off_stderr() -> None:
    """Keep Python from writing the libraries' log to stderr without a configured handler: errors contain the same."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())


def _mask_urls(record: logging.LogRecord) -> bool:
    """Mask the secrets of URLs in a record, and return True: fsspec logs each URL that it requests.

    The traceback of an error, which is raised too, would contain the URL again.
    """
    record.msg, record.args = _SECRET_OF_URL.sub("...", record.getMessage()), ()
    record.exc_info = None
    return True


def _check_not_html(content: bytes | bytearray) -> None:
    """Raise UnexpectedResponseError for an HTML page: no file of a table starts like one."""
    if content[:_HTML_PREFIX].removeprefix(codecs.BOM_UTF8).lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise UnexpectedResponseError("the storage answered with an HTML page instead of the file")


def _settings(protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for fsspec: the user's, and as many connections as concurrent requests."""
    if protocol != "s3":
        return dict(options)
    chosen = options.get("config_kwargs") or {}
    return {**options, "config_kwargs": {"max_pool_connections": WORKERS, "retries": s3.RETRIES, **chosen}}


def _time(value: object) -> datetime | None:
    """Return a storage's time as aware UTC; None if its format is unknown."""
    try:
        if isinstance(value, (float, int)):
            return datetime.fromtimestamp(value, UTC)
        result = datetime.fromisoformat(value) if isinstance(value, str) else value
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(result, datetime):
        return None
    return result.astimezone(UTC) if result.tzinfo else result.replace(tzinfo=UTC)
