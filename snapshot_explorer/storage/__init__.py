"""Read-only files below one root, over fsspec: many small files at once, errors translated.

`location` knows paths, `files` the two ways to bytes (the local disk, fsspec), `failures` what goes wrong.
"""

import builtins  # `list` is a method here
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import pyarrow as pa

from snapshot_explorer.errors import MissingFileError, SnapshotExplorerError, StorageError
from snapshot_explorer.limits import DEFAULT, Limits
from snapshot_explorer.storage.failures import (
    Mask,
    cause,
    ensure_backend,
    is_worth_a_look,
    lacks_bucket,
    lacks_hadoop,
    means_missing,
    missing_backend,
    translated,
)
from snapshot_explorer.storage.files import Entry, Files, Ranges, connect, file_names
from snapshot_explorer.storage.location import (
    LOCAL,
    checked,
    external,
    full,
    is_full,
    joined,
    parse_location,
    shortened,
)
from snapshot_explorer.storage.outside import ExternalFiles, Outside, rule_of
from snapshot_explorer.storage.retries import Attempts
from snapshot_explorer.visible import logger_of

__all__ = ["Entry", "ExternalFiles", "Storage", "rule_of"]

log = logger_of(__name__)

A = TypeVar("A")
B = TypeVar("B")

_NAME = attrgetter("name")
_FEW = 256
"""Files that are asked for one by one on a storage that is not this machine's own, or in a folder that is."""
_SHOWN = 4
"""Entries of a folder that are listed for each file that is asked for."""


class _Options(dict[str, Any]):
    """Storage options that do not show what they hold, wherever they are printed."""

    def __repr__(self) -> str:
        return f"<{len(self)} storage options>"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class _Live:
    """What a process holds open: it survives neither a fork nor pickling."""

    files: Files
    base: str = field(repr=False)
    pool: ThreadPoolExecutor | None


class Storage:
    """A table's folder. There is no way to write through it. Safe to use from several threads.

    Paths are relative to the root, with `/`, every character taken as it stands; they may not leave it, or they
    raise CorruptTableError: metadata names them. A full location that `resolve_external` returned, told by its
    `scheme://`, is taken too, and checked again. Picklable (the options travel along, necessarily): executors
    open their own.

    A storage that is not this machine's own is asked again where it fails in a way that passes: throttling (503, 429,
    SlowDown), an error of the server (500, 502, 504), a timeout, a connection that breaks, a page of a proxy in a
    file's place. Five tries in all, with waits of 0.1, 0.2, 0.4 and 0.8 seconds, each half as much longer or shorter,
    none of which begins a try more than 30 seconds after the first. Each try on S3 is up to five requests: botocore
    waits up to 1, 2, 4 and 8 seconds between them; `config_kwargs` in the options says otherwise.
    """

    root: str
    """The root as it may be shown: no user, password or query in it."""

    limits: Limits
    """What the table's files of metadata may cost. They travel along, so that executors heed them."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any] | None = None,
        *,
        external_files: ExternalFiles = "allow",
        limits: Limits = DEFAULT,
    ) -> None:
        """Bind to a folder. Reads nothing.

        Args:
            path: A local path (`~` is the home folder), or a URL: file, s3, memory or any other of fsspec's.
            options: What fsspec's file system of that protocol takes. Shown nowhere.
            external_files: Whether files outside of the folder are read that the metadata names on the same storage.
            limits: What files of metadata may cost.

        Raises:
            InvalidArgumentError: The path is not valid, or there is no such rule for files outside.
            MissingDependencyError: The protocol's library is not installed, or nobody knows the protocol.
            UnsupportedFeatureError: The path chains protocols.
        """
        self._location = parse_location(path)
        self._options = _Options(options or {})
        self.root = self._location.shown
        self.limits = limits
        self._mask = Mask(self._options, self._location.hidden)
        self._external_files = rule_of(external_files)
        self._outside = Outside(self._location, self._external_files)
        self._lives: dict[int, _Live] = {}
        ensure_backend(self._location.protocol)

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def __reduce__(self) -> tuple[Callable[..., "Storage"], tuple[str, dict[str, Any]]]:
        self._say_outside()  # what is read elsewhere is said here, where somebody looks
        made = partial(Storage, external_files=self._external_files, limits=self.limits)
        return made, (full(self._location), dict(self._options))

    @property
    def outside(self) -> str | None:
        """How many files outside of the folder the metadata has named so far, and below what; None if it has none."""
        return self._outside.note

    def _say_outside(self) -> None:
        if note := self._outside.unsaid():
            log.warning(
                "%s reads %s. Whoever writes the table chooses them. open_table(..., external_files='refuse') "
                "forbids it.",
                self.root,
                note,
            )

    def read(self, path: str) -> bytes:
        """Return a file's bytes, in one request.

        Raises:
            MissingFileError: The file is not there.
            StorageError: The storage refused or did not answer, or the path is a folder.
            CorruptTableError: The path leads out of the root.
        """
        files, address = self._place(path)
        content = self._told(files.read, address, path)
        log.debug("read %s (%d bytes)", path, len(content))
        return content

    def read_many(self, paths: Sequence[str]) -> builtins.list[bytes]:
        """Return the files' bytes in the order asked for, read concurrently, a request each.

        Raises:
            MissingFileError: One is not there; the first in order is named.
        """
        return self._each(self.read, paths)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes]:
        """Yield the files' bytes in the order asked for, a request each.

        Where threads give nothing, a file is read when it is asked for: it is worked on while the processor's cache
        holds it. Elsewhere all are read at once, like `read_many`.

        Raises: as `read_many`.
        """
        return map(self.read, paths) if self._live().pool is None else iter(self.read_many(paths))

    def read_present(self, paths: Sequence[str]) -> builtins.list[bytes | None]:
        """Return the files' bytes like `read_many`, with None for a file that is not there."""
        return self._each(self._read_present, paths)

    def _read_present(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except MissingFileError:
            return None

    def list(self, folder: str) -> builtins.list[Entry]:
        """Return what is in a folder, sorted by name; empty if there is no such folder. One listing.

        Hidden files are in it, the folder itself is not. On S3 a listing is a request per 1000 names, and a folder
        that is not there costs a second one, of its parent.

        Raises:
            StorageError: The storage refused or did not answer, or the folder is a file.
        """
        try:
            entries = self._ask(lambda files, address: files.list(address), folder)
        except MissingFileError:
            entries = []
        log.debug("listed %s (%d entries)", folder or self.root, len(entries))
        return sorted(entries, key=_NAME)

    def folders(self, folder: str) -> builtins.list[str]:
        """Return the names of the folders in a folder, sorted, as `list` does but without sizes and times. One listing.

        Raises: as `list`.
        """
        try:
            names = self._ask(lambda files, address: files.folders(address), folder)
        except MissingFileError:
            names = []
        log.debug("listed %s (%d folders)", folder or self.root, len(names))
        return sorted(names)

    def list_many(self, folders: Sequence[str]) -> builtins.list[builtins.list[Entry]]:
        """Return several listings in the order asked for, made concurrently."""
        return self._each(self.list, folders)

    def exists(self, path: str) -> bool:
        """Return whether there is a file of that path. One request; on S3 a second one if there is none."""
        try:
            return self._ask(lambda files, address: files.is_file(address), path)
        except MissingFileError:
            return False

    def exists_many(self, paths: Sequence[str]) -> builtins.list[bool]:
        """Return whether there is a file of each path, in the order asked for, asked for concurrently."""
        return self._each(self.exists, paths)

    def missing(self, paths: Sequence[str]) -> builtins.list[str]:
        """Return those of many paths where there is no file, as far as asking is quick.

        On the local disk all are looked at, where a folder is asked for many by a listing of it; elsewhere none of
        more than 256, as each is a request.
        """
        if self._location.protocol != LOCAL and len(paths) > _FEW:
            return []
        listed = self._listed(paths) if self._location.protocol == LOCAL else frozenset()
        rest = [path for path in paths if path not in listed]
        return [path for path, there in zip(rest, self.exists_many(rest), strict=True) if not there]

    def _listed(self, paths: Sequence[str]) -> set[str]:
        """Return files that listings show, of folders of which many are asked for: quicker than to ask for each.

        Of what is not returned nothing is known. Listings are cut short where they show far more than is asked for.
        """
        found: set[str] = set()
        for folder, asked in Counter(path.rpartition("/")[0] for path in paths).items():
            if asked > _FEW and "://" not in folder:
                try:
                    names = self._ask(partial(_names, _SHOWN * asked), folder)
                except SnapshotExplorerError:
                    continue  # told by who asks for the files
                found.update(names if not folder else (f"{folder}/{name}" for name in names))
        return found

    def open(self, path: str, *, size_bytes: int | None = None) -> pa.NativeFile:
        """Return a data file opened for random access; only the ranges asked for are read.

        From a remote storage a file of up to 1 MiB is fetched whole at once; of a larger one each range that is
        asked for is a request, which fetches 64 KiB more than was asked for.

        Args:
            path: The file.
            size_bytes: Its size, where metadata tells it: saves the request that asks for it.

        Raises: as `read`; reading from the file raises the same.
        """
        opened = self._ask(lambda files, address: files.open(address, size_bytes), path)
        log.debug("opened %s", path)
        if isinstance(opened, pa.NativeFile):
            return opened

        return pa.PythonFile(Ranges(opened, partial(self._told, path=path)), mode="r")

    def local_address(self, path: str) -> str | None:
        """Return the absolute path of a file of this machine, for other readers; None for one elsewhere.

        Raises:
            CorruptTableError: The path leads out of the root.
        """
        return self._place(path)[1] if self._location.protocol == LOCAL else None

    def resolve_external(self, location: str) -> str:
        """Return the path for `read` and `open` of a full location that the table's metadata names.

        It keeps its scheme (`file:///mnt/x`, `s3://bucket/key`), which tells it from a path below the root. A
        location without a scheme is a file of this machine.

        Raises:
            UnsupportedFeatureError: The location is on another storage than the table: it is not followed. Or it is
                outside of the table's folder, and such files are refused.
            CorruptTableError: It can be no location.
        """
        return full(self._outside.checked(external(location, self._location)))

    def _live(self) -> _Live:
        """Return what this process holds open. After a fork the child opens its own."""
        process = os.getpid()
        # No lock, which a fork could leave locked: of two threads that connect at once, one is the first.
        return self._lives.get(process) or self._lives.setdefault(process, self._connected())

    def _connected(self) -> _Live:
        location = self._location
        failure: SnapshotExplorerError
        try:
            files = connect(location, self._options)
            pool = ThreadPoolExecutor(files.workers, "snapshot-explorer") if files.workers > 1 else None
            return _Live(files, files.base(location), pool)
        except (SnapshotExplorerError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a library may raise what it likes, and quote the options
            failure = translated(error, f"Could not connect to {self.root}", self._mask, local=False)
            if lacks_hadoop(location.protocol, error):
                failure = missing_backend(location.protocol, error)
            failure.__cause__ = cause(error, self._mask)
        raise failure

    def _place(self, path: str) -> tuple[Files, str]:
        """Return whom to ask and the address of a path, which is checked before anything is connected to."""
        if is_full(path):
            place = self._outside.checked(external(path, self._location))
            self._say_outside()
            files = self._live().files
            return files, self._told(files.base, place, path)
        plain = checked(path)
        live = self._live()
        return live.files, joined(live.base, plain, self._location.protocol)

    def _ask(self, question: Callable[[Files, str], A], path: str) -> A:
        files, address = self._place(path)
        return self._told(partial(question, files), address, path)

    def _told(self, question: Callable[[B], A], asked: B, path: str) -> A:
        """Return the storage's answer to what it is asked, its errors about a path told in our words."""
        try:
            return question(asked)
        except (SnapshotExplorerError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a library may raise what it likes, and quote the options
            attempts = Attempts()
            is_over = self._location.protocol == LOCAL or not attempts.wait(error)
            failure = self._explained(error, path) if is_over else None
        if failure is None:
            return self._again(question, asked, path, attempts)
        # Raised here, outside the handler: otherwise the foreign error, secrets and all, would hang on as context.
        raise failure

    def _again(self, question: Callable[[B], A], asked: B, path: str, attempts: Attempts) -> A:
        """Return the answer to a question that has failed once, in a way that may pass."""
        while True:
            try:
                return question(asked)
            except (SnapshotExplorerError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - as above
                log.debug("%s failed and is asked for again: %s", path, type(error).__name__)
                failure = None if attempts.wait(error) else self._explained(error, path)
            if failure is not None:
                raise failure

    def _explained(self, error: BaseException, path: str) -> StorageError:
        failure = self._failure(error, path)
        failure.__cause__ = cause(error, self._mask)
        return failure

    def _failure(self, error: BaseException, path: str) -> StorageError:
        if not lacks_bucket(error) and self._is_gone(error, path):
            return MissingFileError(
                f"{shortened(path) or 'The folder'} is not there, in {self.root}. "
                "It may have been removed meanwhile; check the path, or open the table again."
            )
        asked = f"{shortened(path)} in {self.root}" if path else self.root
        live = self._lives.get(os.getpid())
        at = "" if live is None or not live.files.endpoint else f" ({live.files.endpoint})"
        if lacks_bucket(error):
            return StorageError(
                f"Could not read {asked}{at}: there is no such bucket. Check the bucket's name, and the endpoint and "
                "region in storage_options."
            )
        return translated(error, f"Could not read {asked}{at}", self._mask, local=self._location.protocol == LOCAL)

    def _is_gone(self, error: BaseException, path: str) -> bool:
        """Return whether an error means that the file is not there: storages differ in how they say so."""
        if means_missing(error):
            return True
        if not is_worth_a_look(error):
            return False
        try:
            files, address = self._place(path)
            files.is_file(address)
        except SnapshotExplorerError:
            return False
        except Exception as second:  # noqa: BLE001 - as above
            return means_missing(second) or isinstance(second, NotADirectoryError)
        return False

    def _each(self, question: Callable[[str], A], paths: Sequence[str]) -> builtins.list[A]:
        """Return the answers in order, asked for concurrently where that is faster; the first error in order counts."""
        live = self._live()
        if live.pool is None or len(paths) < 2:  # noqa: PLR2004 - one question needs no thread
            return [question(path) for path in paths]
        return _concurrently(live.pool, live.files.workers, question, paths)


def _concurrently(
    pool: ThreadPoolExecutor, workers: int, question: Callable[[str], A], paths: Sequence[str]
) -> list[A]:
    places: SimpleQueue[int] = SimpleQueue()
    for place in range(len(paths)):
        places.put(place)
    answers: dict[int, A] = {}
    failures: dict[int, SnapshotExplorerError] = {}
    stopped = threading.Event()

    def work() -> None:
        # A worker takes many questions: a future for each would cost as much as a small answer.
        while not stopped.is_set():
            try:
                place = places.get_nowait()
            except Empty:
                return
            if any(failed < place for failed in tuple(failures)):
                return
            try:
                answers[place] = question(paths[place])
            except SnapshotExplorerError as error:
                failures[place] = error

    working = [pool.submit(work) for _ in range(min(workers, len(paths)))]
    try:
        for worker in working:
            worker.result()
    finally:
        stopped.set()  # after an interrupt the others finish the question that they are at, and take no more
    if failures:
        raise failures[min(failures)]
    return [answers[place] for place in range(len(paths))]


def _names(most: int, _: Files, address: str) -> list[str]:
    return file_names(address, most)
