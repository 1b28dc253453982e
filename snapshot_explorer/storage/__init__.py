"""Read-only files below one root, on disks and stores: concurrent reads of many small files, and translated errors.

`location` parses and checks paths, `files` reads from the local disk and from fsspec, `object_stores` from S3, Azure
and Google with this package's own requests, `listings` reads listings of folders, `failures` translates errors.
"""

import builtins  # `list` is a method here
import copyreg
import io
import logging
import os
import pickle
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, TypeVar, overload

import pyarrow as pa

from snapshot_explorer.core.errors import MissingFileError, SnapshotExplorerError, StorageError
from snapshot_explorer.core.hints import Hint, Message, python_call
from snapshot_explorer.core.limits import DEFAULT, Limits, check_limits, size_error
from snapshot_explorer.core.resources import resource_error
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.single_flight import SingleFlight
from snapshot_explorer.storage import azure, gcs
from snapshot_explorer.storage.allowed_roots import AllowedRoots, ConfinedOptions
from snapshot_explorer.storage.bounded_answers import complete_content
from snapshot_explorer.storage.clients import open_files, read_if_present, refuse_file
from snapshot_explorer.storage.concurrency import concurrently, together
from snapshot_explorer.storage.escaped_names import EscapedNames
from snapshot_explorer.storage.failures import (
    OversizedAnswerError,
    ReplacedFileError,
    detach,
    ensure_backend,
    is_missing_bucket,
    is_missing_file,
    is_missing_folder,
    lacks_hadoop,
    masked_cause,
    might_be_missing,
    missing_backend,
    missing_bucket_error,
    own_error,
    storage_error,
)
from snapshot_explorer.storage.files import FileNames, Files, LocalFile, local_size
from snapshot_explorer.storage.hidden import HiddenOptions, bare_errors, hidden_options, hidden_url
from snapshot_explorer.storage.immutable_files import ImmutableFiles
from snapshot_explorer.storage.listings import Entry, EntryFields
from snapshot_explorer.storage.location import (
    LOCAL,
    Location,
    check_wrapper,
    full_text,
    is_full_location,
    join_address,
    listing_folder,
    may_have_links,
    normalize,
    parse_location,
    shorten,
    spellings,
)
from snapshot_explorer.storage.masks import Mask, has_values
from snapshot_explorer.storage.object_store_clients import settings
from snapshot_explorer.storage.option_values import check_values
from snapshot_explorer.storage.options import fsspec_options
from snapshot_explorer.storage.outside import ExternalFiles, ExternalLocations, parse_external_files
from snapshot_explorer.storage.ranges import ByteBudget, Range, RemoteFile, is_remote, load_of
from snapshot_explorer.storage.retries import Attempts, is_transient
from snapshot_explorer.storage.same_files import Addresses

__all__ = [
    "Entry",
    "EntryFields",
    "ExternalFiles",
    "Storage",
    "is_remote",
    "load_of",
    "parse_external_files",
    "pickled_with_options",
]

log = logger_of(__name__)

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E", bound=EntryFields)

_NAME = attrgetter("name")
_MAX_LISTED = 32
"""The maximum number of folders that are listed one by one on a store that lists a tree as fast as a folder."""
AHEAD_BYTES = 64 * 2**20
"""Bytes of remote files that are fetched before their row groups are needed, over all open files."""
_MAX_REMOTE_CHECKS = 256
"""The maximum number of files that are checked one by one: on remote storage in all, on the local disk per folder."""
_MAX_KEPT_BYTES = 2**16
"""The size of the largest files that `Storage.reading_once` keeps."""
_MAX_WARNINGS = 1_000
"""The maximum number of different warnings about a table."""
_MAX_ENTRIES_PER_FILE = 16
"""Entries of a folder that are listed per file to check."""


@dataclass(frozen=True, slots=True)
class _Connection:
    """The open file system of one process. It survives neither a fork nor pickling."""

    files: Files
    base: str = field(repr=False)
    pool: ThreadPoolExecutor | None
    """Makes requests; None for local files."""
    ahead: ByteBudget
    """The number of bytes that open files may fetch ahead."""


class Storage:
    """A table's folder, read-only. Safe to use from several threads.

    Paths are relative to the root and use `/`. Every character is literal. Metadata names paths, so a path that
    leaves the root raises CorruptTableError. A full location that `resolve_external` returned, with its `scheme://`,
    is also accepted, and checked again. Picklable, without what may be secret: then it must be opened again, with
    options. `pickled_with_options` is for executors, each of which opens its own connection.

    Requests to remote storage are retried after transient errors: throttling (503, 429, SlowDown), a server error
    (500, 502, 504), a timeout, a broken connection, or an HTML page in place of a file. There are five attempts,
    with waits of 0.1, 0.2, 0.4 and 0.8 seconds, each 50 % longer or shorter at random. No attempt starts more than 30
    seconds after the first. Each attempt on S3 is up to five requests, unless `config_kwargs` in the options sets
    another number; botocore waits up to 1, 2, 4 and 8 seconds between them. Refused connections and unknown hosts fail
    within 5 seconds. Denied access, missing credentials and redirects are never retried.

    A server decides neither how much memory a file takes nor how long an answer does: see `bounded_answers` and
    `Limits`. Parts of one file are of one content: if a writer replaces it meanwhile, StorageError is raised.
    """

    root: str
    """The root for display, without user, password and query."""

    limits: Limits
    """Limits on memory and time per metadata file. They are pickled, so they hold on executors."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any] | None = None,
        *,
        external_files: ExternalFiles = "allow",
        limits: Limits = DEFAULT,
        roots: AllowedRoots | None = None,
    ) -> None:
        """Bind to a folder. Reads nothing.

        Args:
            path: A local path (`~` is the home folder), or a URL: file, s3, memory or any other of fsspec's.
            options: Options of fsspec's file system for that protocol; for S3, Azure and Google also named as in
                object_store. Never shown.
            external_files: Whether to read files outside of the folder that the metadata names on the same storage.
            limits: Limits on memory and time per metadata file.
            roots: Folders outside of which nothing is read; by default the folders in the options, which may be
                `ConfinedOptions`, or no limit.

        Raises:
            AccessDeniedError: The folder is outside of `roots`.
        """
        self._roots = options.roots if isinstance(options, ConfinedOptions) else roots
        options, path = hidden_options(options) or HiddenOptions(), hidden_url(path)
        check_limits(limits)
        with bare_errors():
            self._location = parse_location(path)
            self.root = self._location.shown
            if self._roots is not None:
                self._roots.check(self._location)
            self._external_files = parse_external_files(external_files)
            check_wrapper(self._location, options)
            self._options = HiddenOptions(fsspec_options(self._location.protocol, options))
            check_values(self._location.protocol, self._options)
            if settings(self._location, self._options) is None:
                ensure_backend(self._location.protocol)
        self._mask = Mask({"options": self._options, "passed": options}, self._location.hidden)
        self._was_pickled = False
        self.limits = limits
        self._external_locations = ExternalLocations(self._location, self._external_files, self._account)
        self._connections: dict[int, _Connection] = {}
        self._above: Storage | None = None
        self._path_below = ""
        self._file_names = FileNames()
        self._warnings: set[tuple[str, ...]] = set()
        self._escaped_names = EscapedNames()
        self._ahead: dict[str, Future[bytes | None]] = {}
        self._once: SingleFlight | None = None
        self._immutable: ImmutableFiles | None = None
        self._keepers = 0
        self._keepers_lock = threading.Lock()
        self._turns: threading.Lock | None = None
        self._listed: dict[str, list[Entry]] | None = None

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def __reduce__(self) -> tuple[Callable[..., "Storage"], tuple[Any, ...]]:
        if not (self._location.hidden or has_values(self._options)):
            return self._with_options()
        return _without_options, (self.root, self._location.protocol, self._external_files, self.limits)

    def __copy__(self) -> "Storage":
        return self  # a copy by way of `__reduce__` would lack the options

    def __deepcopy__(self, _memo: object) -> "Storage":
        return self

    def _with_options(self) -> tuple[Callable[..., "Storage"], tuple[Any, ...]]:
        """Return the same as `__reduce__` but with all secrets, for processes that read on behalf of this process."""
        if self._above is not None:
            return Storage.below, (self._above, self._path_below)  # storages in one pickle share a connection
        self._warn_external_files()  # the driver logs what executors read
        create = partial(Storage, external_files=self._external_files, limits=self.limits, roots=self._roots)
        return create, (full_text(self._location), dict(self._options))

    def below(self, path: str) -> "Storage":
        """Return the storage of a folder below the root, which makes its requests over the connection of this one."""
        if not path:
            return self
        address = full_text(self._location)
        name = self._escaped_names.original(path)
        location = parse_location(f"{address}{'' if address.endswith('/') else '/'}{name}")
        result = Storage.__new__(Storage)
        vars(result).update(
            vars(self),  # options are checked, and masks made, once for all folders of a lake
            root=location.shown,
            _location=location,
            _above=self,
            _path_below=path,
            _external_locations=ExternalLocations(location, self._external_files, self._account),
            _connections={},
            _file_names=FileNames(),
            _warnings=set(),
            _escaped_names=EscapedNames(),
            _ahead={},
            _once=None,
            _immutable=None,
            _keepers=0,
            _keepers_lock=threading.Lock(),
            _turns=None,
        )
        return result

    @property
    def is_local(self) -> bool:
        """Whether the folder is on the local disk."""
        return self._location.protocol == LOCAL

    @property
    def has_links(self) -> bool:
        """Whether two names may refer to the same file."""
        return may_have_links(self._location)

    @property
    def _account(self) -> object:
        return self._options.get("account_name")

    @property
    def is_portable(self) -> bool:
        """Whether another process of this machine can read the folder: not in memory or through a user's own class."""
        return self.is_local or settings(self._location, self._options) is not None

    @property
    def requests(self) -> int:
        """The requests that this process has made for the folder, and for others over the same connection.

        0 for the local disk. Retries within a library are not counted.
        """
        return self._connection().files.requests

    @property
    def outside(self) -> str | None:
        """The number of files outside of the folder that the metadata has named, and their folder; None if none."""
        return self._external_locations.note

    def warn_once(self, logger: logging.Logger, message: str, *args: object) -> None:
        """Log a warning about the table once while it is open, because calls read the same metadata many times."""
        warning = (message, *map(str, args))
        if warning not in self._warnings and len(self._warnings) < _MAX_WARNINGS:
            self._warnings.add(warning)
            logger.warning(message, *args)

    def _warn_external_files(self) -> None:
        if note := self._external_locations.first_note():
            log.warning(
                "%s reads %s. The writers of the table choose them. To refuse them, use %s.",
                self.root,
                note,
                python_call(Hint("open_table", {"path": ..., "external_files": "refuse"})),
            )

    def read(
        self, path: str, *, immutable: bool = False, size_bytes: int | None = None, listed_bytes: int | None = None
    ) -> bytes:
        """Return a file's bytes, in one request. A file above the limits is not read: raises LimitError.

        Args:
            path: The file.
            immutable: Whether no writer replaces it; see `keeping_immutable`.
            size_bytes: The recorded size of a data file, to which the limits for metadata do not apply.
            listed_bytes: The size in a listing of a file that never shrinks. A shorter answer is requested again, and
                raises StorageError if it stays shorter.
        """
        if immutable and (kept := self._immutable) is not None:
            return kept.read(path, partial(self.read, path))
        if path in self._ahead or self._once is not None:
            if (known := self._read_present(path)) is None:
                raise self._missing_file(path)
            if len(known) >= (listed_bytes or 0):
                return known
            if (once := self._once) is not None:
                once.forget(path)
        files, address = self._resolve(path)
        content = self._call(
            lambda at: complete_content(files.read(at, self.limits, size_bytes), listed_bytes), address, path
        )
        log.debug("read %s (%d bytes)", path, len(content))
        return content

    def read_many(self, paths: Sequence[str], *, immutable: bool = False) -> builtins.list[bytes]:
        """Return the files' bytes in the given order, read concurrently, one request each."""
        return self.each(partial(self.read, immutable=immutable), paths)

    def read_each(self, paths: Sequence[str], *, immutable: bool = False) -> Iterator[bytes]:
        """Yield the files' bytes in the given order, one request each.

        If threads are not faster, each file is read when the iterator reaches it, so that it is processed while it is
        in the CPU cache. Otherwise all are read concurrently, like `read_many`.
        """
        return map(self.read, paths) if self._pool is None else iter(self.read_many(paths, immutable=immutable))

    def read_present(self, paths: Sequence[str], *, immutable: bool = False) -> builtins.list[bytes | None]:
        """Return the files' bytes like `read_many`, with None for a file that does not exist."""
        if self._immutable is None or not immutable:
            return self.each(self._read_present, paths)

        def read(path: str) -> bytes | None:
            with suppress(MissingFileError):
                return self.read(path, immutable=True)
            return None

        return self.each(read, paths)

    @contextmanager
    def keeping_immutable(self) -> Iterator[None]:
        """Request each immutable file only once within a block, up to 64 MiB. Does nothing on the local disk.

        Several steps of a call read the same manifests. Blocks may be nested, and overlap in threads. The cached files
        are dropped at the end of the last block. Missing files and listings are not cached.
        """
        if self.is_local:
            yield
            return
        with self._keepers_lock:
            self._keepers += 1
            self._immutable = self._immutable or ImmutableFiles()
        try:
            yield
        finally:
            with self._keepers_lock:
                self._keepers -= 1
                if not self._keepers:
                    self._immutable = None

    def forget_immutable(self) -> None:
        """Drop the cached immutable files, because another table replaced the table."""
        if (kept := self._immutable) is not None:
            kept.forget_all()

    @contextmanager
    def reading_ahead(self, paths: Sequence[str]) -> Iterator[None]:
        """Begin to read small files that a block probably reads first. Does nothing on the local disk.

        In the block, the first `read` or `read_present` of each file returns these bytes, `exists` checks them, and the
        second listing of a folder returns the first one. So only the block may use this object meanwhile.
        """
        if (pool := self._pool) is not None:
            self._ahead.update((path, pool.submit(self._kept_present, path)) for path in paths)
            self._listed = {}
        try:
            yield
        finally:
            self._ahead.clear()
            self._listed = None

    @contextmanager
    def reading_once(self, turns: "threading.Lock | None" = None) -> Iterator[None]:
        """Read each small file and list each folder only once within a block, as if nothing changed meanwhile.

        For several computations on a table in the same state, which would each read the same metadata. It applies to
        all threads that use this storage. A folder is listed again if a listed file no longer exists.

        Args:
            turns: The lock that the calling thread holds while it computes, if many threads read other tables.
                Requests are then made one after another in this thread, and release the lock while they wait.
        """
        self._once, self._turns = SingleFlight(), turns
        try:
            yield
        finally:
            self._once, self._turns = None, None

    def _read_once(self, key: str, make: Callable[[], A]) -> A:
        """Return the result of `make`; within `reading_once` its first result, unless that is large."""
        once = self._once
        if once is None:
            return make()
        value = once.get(key, make)
        if isinstance(value, bytes) and len(value) > _MAX_KEPT_BYTES:
            once.forget(key)
        return value

    def _kept_present(self, path: str) -> bytes | None:
        content = self._read_once(path, partial(self._read_present_now, path))
        if content is None and (once := self._once) is not None:
            # A listing that names the file is outdated: a new one shows whether the file expired or was lost.
            folder, _, name = path.rpartition("/")
            for key in _listing_keys(folder):
                if any(entry[0] == name for entry in once.peek(key) or ()):
                    once.forget(key)
        return content

    def _read_present(self, path: str) -> bytes | None:
        ahead = self._taken_ahead(path)
        return self._kept_present(path) if ahead is None else ahead.result()

    def _taken_ahead(self, path: str) -> Future[bytes | None] | None:
        """Return a file that is being or was read ahead, once; None if reading ahead has already failed."""
        ahead = self._ahead.pop(path, None)
        has_failed = ahead is not None and ahead.done() and ahead.exception() is not None
        return None if has_failed else ahead

    def _read_present_now(self, path: str) -> bytes | None:
        try:
            content = self._request(partial(read_if_present, self.limits), path)
        except MissingFileError:
            return None
        if content is not None:
            log.debug("read %s (%d bytes)", path, len(content))
        return content

    def list(self, folder: str) -> builtins.list[Entry]:
        """Return the entries of a folder, sorted by name; empty if the folder does not exist. One listing.

        Hidden files are included, the folder itself is not. On S3 a listing is one request per 1000 names. A folder
        does not exist if the storage says so: any other failure is an error.
        """
        key, _ = _listing_keys(folder)
        read, listed = partial(self._read_once, key, partial(self._list_now, folder)), self._listed
        if listed is None:
            return read()
        known = listed.pop(folder, None)
        if known is None:
            known = listed[folder] = read()
        return known

    def _list_now(self, folder: str) -> builtins.list[Entry]:
        return sorted(self._entries(lambda files, address: files.list(address), folder), key=_NAME)

    def folders(self, folder: str) -> builtins.list[str]:
        """Return the names of the subfolders of a folder, sorted, without sizes and times. One listing."""
        return self.folders_and_files(folder)[0]

    def folders_and_files(self, folder: str) -> tuple[builtins.list[str], builtins.list[str]]:
        """Return the names of the subfolders of a folder, sorted, and of its files, in any order. One listing."""
        names: tuple[builtins.list[str], builtins.list[str]] = [], []
        for name, is_folder, *_ in self._names(folder):
            names[not is_folder].append(name)
        return sorted(names[0]), names[1]

    def _names(self, folder: str) -> Sequence[EntryFields]:
        _, key = _listing_keys(folder)
        return self._read_once(key, partial(self._names_now, folder))

    def _names_now(self, folder: str) -> Sequence[EntryFields]:
        return self._entries(lambda files, address: files.names(address), folder)

    def _entries(self, read: Callable[[Files, str], Sequence[E]], folder: str) -> Sequence[E]:
        entries: Sequence[E] = ()
        with suppress(MissingFileError):
            entries = self._request(read, folder, is_folder=True)
        if not entries and not folder:
            self._request(refuse_file, folder, is_folder=True)
        log.debug("listed %s (%d entries)", folder or self.root, len(entries))
        return self._escaped_names.escape(folder, entries)

    def has_escapes(self, path: str) -> bool:
        """Return whether a path that listings named has escapes for names that are not UTF-8."""
        return self._escaped_names.has(path)

    def list_many(self, folders: Sequence[str]) -> builtins.list[builtins.list[Entry]]:
        """Return the listings of several folders in the given order, made concurrently."""
        return self.each(self.list, folders)

    def names_many(self, folders: Sequence[str]) -> builtins.list[Sequence[EntryFields]]:
        """Return the listings of several folders, the fields of entries in any order, made concurrently.

        On the local disk without sizes and times, which would cost a call per file.
        """
        return self.each(self._names, folders)

    def exists(self, path: str) -> bool:
        """Return whether the file exists. One request.

        Within `reading_ahead` the file is read instead, because opening a table reads each file whose existence it
        checks.
        """
        if self._listed is not None and (pool := self._pool) is not None and path not in self._ahead:
            self._ahead[path] = pool.submit(self._kept_present, path)
        if (ahead := self._ahead.get(path)) is not None and not (ahead.done() and ahead.exception() is not None):
            return ahead.result() is not None
        try:
            return self._request(lambda files, address: files.is_file(address), path)
        except MissingFileError:
            return False

    def exists_many(self, paths: Sequence[str]) -> builtins.list[bool]:
        """Return for each path, in order, whether the file exists. The requests are concurrent."""
        return self.each(self.exists, paths)

    def sizes(self, paths: Sequence[str]) -> dict[str, int | None]:
        """Return the size in bytes of each file that exists, by path; None if the storage does not report it.

        One listing per folder, concurrently; one listing of the whole table if S3, Azure or Google would list more than
        32 folders. On the local disk a check per file, which is faster.
        """
        if self._location.protocol == LOCAL:
            checked = [(path, self._request(lambda _, address: local_size(address), path)) for path in paths]
            return {path: size for path, size in checked if size is not None}
        folders = sorted(set(map(listing_folder, paths)))
        listed: dict[str, int | None] = {}
        if sum(not is_full_location(folder) for folder in folders) > _MAX_LISTED:
            tree = self._request(lambda files, address: files.tree(address), "", is_folder=True)
            folders = folders if tree is None else [folder for folder in folders if is_full_location(folder)]
            listed = tree or {}
            log.debug("listed %s with its folders (%d files)", self.root, len(listed))
        return listed | {
            f"{folder}/{name}" if folder else name: entry.size_bytes
            for folder, entries in zip(folders, self.list_many(folders), strict=True)
            for entry in entries
            for name in spellings(entry.name, folder)
            if not entry.is_folder
        }

    def missing(self, paths: Sequence[str]) -> builtins.list[str]:
        """Return the paths whose file does not exist, if the check is cheap.

        On the local disk all paths are checked, with one listing for a folder with many of them. On remote storage,
        more than 256 paths are not checked, because each check is a request.
        """
        if self._location.protocol != LOCAL and len(paths) > _MAX_REMOTE_CHECKS:
            return []
        rest = self._not_in_listings(paths) if self._location.protocol == LOCAL else paths
        return [path for path, exists in zip(rest, self.exists_many(rest), strict=True) if not exists]

    def _not_in_listings(self, paths: Sequence[str]) -> builtins.list[str]:
        """Return the paths that are not found in listings of folders with many of the paths.

        That is faster than a check for each file. A returned path might still exist: the listing of a folder with far
        more entries than paths is not read to the end.
        """
        parts = [path.rpartition("/") for path in paths]
        existing: dict[str, frozenset[str]] = {}
        for folder, count in Counter(map(itemgetter(0), parts)).items():
            if count > _MAX_REMOTE_CHECKS and "://" not in folder:
                try:
                    existing[folder] = self._request(
                        partial(self._names_among, _MAX_ENTRIES_PER_FILE * count), folder, is_folder=True
                    )
                except SnapshotExplorerError:
                    continue  # the check of each file raises it
        nothing: frozenset[str] = frozenset()
        return [
            path
            for path, (folder, _, name) in zip(paths, parts, strict=True)
            if name not in existing.get(folder, nothing)
        ]

    def _names_among(self, most: int, _: Files, address: str) -> frozenset[str]:
        return self._file_names.names_in(address, most)

    @overload
    def together(self, first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]: ...
    @overload
    def together(
        self, first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], /
    ) -> tuple[A, B, C]: ...
    @overload
    def together(
        self, first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], fourth: Callable[[], D], /
    ) -> tuple[A, B, C, D]: ...
    @overload
    def together(self, *reads: Callable[[], A]) -> tuple[A, ...]: ...
    def together(self, *reads: Callable[[], object]) -> tuple[object, ...]:
        """Return the results of functions that read, in order. They run concurrently if requests take long.

        The last function runs in the calling thread, where an interrupt stops it. Pass the function that reads the most
        last. Raises the first error, in the order of the functions.
        """
        return tuple(read() for read in reads) if self._pool is None else together(reads)

    def open(self, path: str, *, size_bytes: int | None = None, end: int | None = None) -> pa.NativeFile:
        """Return a data file opened for random access; only the requested ranges are read.

        From remote storage a file of up to 1 MiB is fetched whole. Of a larger file the last 128 KiB are fetched, and
        the result is a `RemoteFile`, whose `load` fetches ranges before they are read. Each other read is a request of
        64 KiB or more.

        Args:
            size_bytes: Its size, if the metadata contains it: saves a request.
            end: The end of the part to read, if the size is unknown. Up to 1 MiB are then fetched in one request, as
                if the file ended there.
        """
        source = self._request(lambda files, address: files.open(address, size_bytes, end), path)
        log.debug("opened %s", path)
        connection = self._connection()
        if isinstance(source, LocalFile):
            source.failure = partial(self._storage_error, ReplacedFileError(), path, is_folder=False)
        if isinstance(source, pa.NativeFile) or connection.pool is None:
            return source
        fetch = partial(self._read_range, path, source.etag)
        return RemoteFile.of(source.size, bytes(source.content), fetch, connection.pool, connection.ahead)

    def _read_range(self, path: str, etag: str | None, part: Range) -> bytes:
        content = self._request(lambda files, address: files.read_range(address, *part, etag), path).content
        log.debug("read %d bytes of %s at %d", len(content), path, part[0])
        return bytes(content)

    def local_address(self, path: str) -> str | None:
        """Return the absolute path of a local file, for other readers; None for a remote one."""
        return self._resolve(path)[1] if self._location.protocol == LOCAL else None

    def addresses(self, paths: Sequence[str]) -> builtins.list[str | None]:
        """Return the addresses of files, equal for all paths of the same file, even from different tables.

        None if a path is not read. Follows links of the local disk; reads nothing else.
        """
        of = Addresses(self._location, self._account).of
        return [of(self._escaped_names.original(path)) for path in paths]

    def is_same_store(self, other: "Storage") -> bool:
        """Return whether equal addresses of both storages are the same file: same protocol, and equal options."""
        mine, others = ((store._location.protocol, dict(store._options)) for store in (self, other))  # noqa: SLF001 - of this class
        return mine == others

    def resolve_external(self, location: str) -> str:
        """Return the path for `read` and `open` of a full location in the table's metadata.

        The path keeps its scheme (`file:///mnt/x`, `s3://bucket/key`), which distinguishes it from a path below the
        root. A location without a scheme is a local file.
        """
        return full_text(self._external_locations.resolve(location))

    def _connection(self) -> _Connection:
        """Return the connection of this process. After a fork the child opens its own."""
        process = os.getpid()
        # No lock, because a fork could leave it locked. If two threads connect at once, the first connection stays.
        return self._connections.get(process) or self._connections.setdefault(process, self._connect())

    @property
    def _pool(self) -> ThreadPoolExecutor | None:
        """The threads that make requests; None if requests are made one after the other."""
        return self._connection().pool if self._turns is None else None

    def _connect(self) -> _Connection:
        location = self._location
        if self._was_pickled:
            raise StorageError(
                Message(
                    f"{self.root} was restored from a pickle, which contains no storage options and no user, password "
                    "or signature of a URL. Open it again: ",
                    Hint("open_table", {"path": ..., "storage_options": ...}),
                    ".",
                )
            )
        failure: SnapshotExplorerError
        try:
            if self._above is not None:
                shared = self._above._connection()  # noqa: SLF001 - of this class
                return replace(shared, base=hidden_url(shared.files.base(location)))
            with bare_errors():
                files = open_files(location, self._options)
                base = hidden_url(files.base(location))
            pool = ThreadPoolExecutor(files.workers, "snapshot-explorer") if files.workers > 1 else None
            return _Connection(files, base, pool, ByteBudget(AHEAD_BYTES))
        except SnapshotExplorerError:
            raise
        except Exception as error:  # noqa: BLE001 - a library may raise anything, and quote the options
            problem = f"Could not connect to {self.root}"
            failure = resource_error(error, problem) or storage_error(error, problem, self._mask, local=False)
            if lacks_hadoop(location.protocol, error):
                failure = missing_backend(location.protocol, error)
            failure.__cause__ = masked_cause(error, self._mask)
        raise failure

    def _resolve(self, path: str) -> tuple[Files, str]:
        """Return the file system and the address of a path. The path is checked before a connection is opened."""
        if self._roots is not None:
            self._roots.check_stop()
        if is_full_location(path):
            location = self._external_locations.resolve(path)
            if self._roots is not None:
                self._roots.check(location)
            self._warn_external_files()
            files = self._connection().files
            return files, self._call(files.base, location, path)
        plain = normalize(self._escaped_names.original(path))
        connection = self._connection()
        address = join_address(connection.base, plain, self._location.protocol)
        if self._roots is not None and self.is_local:  # elsewhere, nothing below a folder leads out of it
            self._roots.check(Location(protocol=LOCAL, address=address, shown=address))
        return connection.files, address

    def _request(self, operation: Callable[[Files, str], A], path: str, *, is_folder: bool = False) -> A:
        files, address = self._resolve(path)
        return self._call(partial(operation, files), address, path, is_folder=is_folder)

    def _call(self, operation: Callable[[B], A], argument: B, path: str, *, is_folder: bool = False) -> A:
        """Return the result of an operation on the storage; its errors are retried or translated."""
        if (turns := self._turns) is None:
            return self._attempt(operation, argument, path, is_folder=is_folder)
        turns.release()
        try:
            return self._attempt(operation, argument, path, is_folder=is_folder)
        finally:
            turns.acquire()

    def _attempt(self, operation: Callable[[B], A], argument: B, path: str, *, is_folder: bool) -> A:
        """Return the result of an operation; transient errors are retried, others are translated."""
        ambient = sys.exception()
        attempts = Attempts()
        while True:
            try:
                return operation(argument)
            except SnapshotExplorerError:
                raise
            except Exception as error:  # noqa: BLE001 - a library may raise anything, and quote the options
                caught = error
            # Outside the handler: otherwise the foreign error, with its secrets, would remain the context of our error.
            try:
                detach(caught, ambient)
                if self.is_local or not attempts.wait(caught):
                    raise self._storage_error(caught, path, is_folder=is_folder)
                log.debug("%s failed, retrying: %s", path, type(caught).__name__)
            finally:
                del caught  # in its traceback is this frame: together they would keep the table until a collection

    def _storage_error(self, error: BaseException, path: str, *, is_folder: bool) -> SnapshotExplorerError:
        failure = self._failure(error, path, is_folder=is_folder)
        failure.__cause__ = masked_cause(error, self._mask)
        return failure

    def _failure(self, error: BaseException, path: str, *, is_folder: bool) -> SnapshotExplorerError:
        if (lacking := resource_error(error, f"Could not read {shorten(path)} in {self.root}")) is not None:
            return StorageError(str(lacking)) if isinstance(error, OSError) else lacking
        if isinstance(own := own_error(error), OversizedAnswerError):
            return size_error(shorten(path), own.size_bytes, own.limit)
        # No file can have the name of a folder that could not be listed, so none is searched for.
        is_missing = (
            is_missing_folder(error) and not is_transient(error) if is_folder else self._is_missing(error, path)
        )
        if is_missing and not is_missing_bucket(error):
            return self._missing_file(path)
        target = f"{shorten(path)} in {self.root}" if path else self.root
        connection = self._connections.get(os.getpid())
        at = "" if connection is None or not connection.files.endpoint else f" ({connection.files.endpoint})"
        if is_missing_bucket(error):
            return missing_bucket_error(f"{target}{at}", is_azure=self._location.protocol in azure.PROTOCOLS)
        return storage_error(error, f"Could not read {target}{at}", self._mask, local=self._location.protocol == LOCAL)

    def _missing_file(self, path: str) -> MissingFileError:
        return MissingFileError(
            f"{shorten(path) or 'The folder'} does not exist in {self.root}. "
            "It may have been removed since; check the path, or open the table again."
        )

    def _is_missing(self, error: BaseException, path: str) -> bool:
        """Return whether an error means that the file does not exist. Storages differ in the errors they raise."""
        if is_missing_file(error) and not is_transient(error) and self._location.protocol not in gcs.PROTOCOLS:
            return True  # gcsfs raises the same error for every 404 response, also for a gateway's
        if self.is_local or is_transient(error) or not might_be_missing(error):
            return False
        ambient = sys.exception()
        try:
            files, address = self._resolve(path)
            return not files.is_file(address)
        except SnapshotExplorerError:
            return False
        except Exception as second:  # noqa: BLE001 - as above
            detach(second, ambient)
            return is_missing_file(second) and not is_transient(second)

    def each(self, operation: Callable[[B], A], items: Sequence[B]) -> builtins.list[A]:
        """Return the results of an operation that makes one request, in the order of the items.

        Computed concurrently if that is faster. Raises the first error in order.
        """
        pool = self._pool
        if pool is None or len(items) < 2:  # noqa: PLR2004 - one request needs no thread
            return [operation(item) for item in items]
        return concurrently(pool, self._connection().files.workers, operation, items)


def pickled_with_options(value: object) -> bytes:
    """Return a value pickled for another process that reads for this one, with the options of each storage in it.

    An ordinary pickle, which users save, contains neither options nor a URL's secrets.
    """
    content = io.BytesIO()
    pickler = pickle.Pickler(content, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {
        Storage: Storage._with_options,  # noqa: SLF001 - of this module
        pa.FixedSizeListType: _whole_list_type,
    }
    pickler.dump(value)
    return content.getvalue()


def _whole_list_type(dtype: pa.FixedSizeListType) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and arguments that make a type. Arrow's own pickles lose whether its items are nullable."""
    return pa.list_, (dtype.value_field, dtype.list_size)


def _without_options(root: str, protocol: str, external_files: ExternalFiles, limits: Limits) -> Storage:
    """Return a storage from a pickle, which raises an error when something is read from it."""
    result = Storage("/", external_files=external_files, limits=limits)
    location = Location(protocol=protocol, address=root, shown=root)
    external = ExternalLocations(location, external_files)
    vars(result).update(root=root, _location=location, _external_locations=external, _was_pickled=True)
    return result


def _listing_keys(folder: str) -> tuple[str, str]:
    """Return the keys under which the entries of a folder are kept, and their names without sizes and times."""
    return f"{folder}/", f"{folder}//"
