"""A storage that answers one request wrongly: it fails, cuts short, empties, flips a bit, delays or answers stale.

`Store` holds a table's files in memory and answers as an object store does. A `Fault` names a request by what it asks
for, not by its number: requests are made by several threads at once, whose order is not the same each time.
"""

import errno
import random
import re
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
from fsspec.registry import _registry
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

PROTOCOL = "faulty"
PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body><h1>Sign in to the network</h1></body></html>\n"
)
_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)
_HINTS = re.compile(r"(^|/)(LATEST|EARLIEST|_last_checkpoint)$")


class OwnError(Exception):
    """What a storage's library may raise: a class that no one knows."""


ERRORS = {
    "fails": lambda: OSError(errno.EIO, "planted: input/output error"),
    "fails bare": OSError,
    "denied": lambda: PermissionError(errno.EACCES, "planted: denied"),
    "missing": lambda: FileNotFoundError(errno.ENOENT, "planted: not there"),
    "timeout": lambda: TimeoutError("planted: timed out"),
    "reset": lambda: ConnectionResetError(errno.ECONNRESET, "planted: reset by peer"),
    "value": lambda: ValueError("planted: a value"),
    "recursion": lambda: RecursionError("planted: redirects in a circle"),
    "own class": lambda: OwnError("planted: a class of its own"),
    "group": lambda: ExceptionGroup("planted: several", [OSError("planted"), OwnError("planted")]),
}
"""What a request may raise."""


def _flip(content, chance):
    if not content:
        return content
    place, bit = chance.randrange(len(content)), chance.randrange(8)
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


CONTENTS = {
    "halved": lambda content, _: content[: len(content) // 2],
    "one byte short": lambda content, _: content[:-1],
    "emptied": lambda *_: b"",
    "blank": lambda *_: b" \n",
    "page": lambda *_: PAGE,
    "flipped": _flip,
}
"""What may come in place of a file's bytes, or of a range of them."""
LISTINGS = {
    "list emptied": lambda _: [],
    "list halved": lambda entries: entries[: len(entries) // 2],
    "list without its newest": lambda entries: [one for one in entries if one != max(entries, key=_age)],
}
"""What may come in place of a listing."""
KINDS = (*ERRORS, *CONTENTS, *LISTINGS, "stale hint", "delayed")
"""All kinds of faults."""


def _age(entry):
    """Return what orders the entries of a folder by when they were made: the numbers in their names."""
    return [int(number) for number in re.findall(r"\d+", entry["name"])], entry["name"]


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked."""

    operation: str
    """list, info or read."""
    path: str
    occurrence: int
    """How often the same had been asked before."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One request that is answered wrongly."""

    kind: str
    """One of KINDS."""
    request: Request
    lasts: bool = False
    """Whether all later requests for the same are answered so too."""

    def strikes(self, request):
        """Return whether the fault answers a request."""
        same = (request.operation, request.path) == (self.request.operation, self.request.path)
        first = self.request.occurrence
        return same and (request.occurrence >= first if self.lasts else request.occurrence == first)


def kinds_for(request):
    """Return the kinds of faults that a request may meet."""
    if request.operation == "list":
        return (*ERRORS, *LISTINGS, "delayed")
    if request.operation == "info":
        return (*ERRORS, "delayed")
    return (*ERRORS, *CONTENTS, *(["stale hint"] if _HINTS.search(request.path) else []), "delayed")


class Store:
    """A table's files in memory, the requests for them, and the fault that is to come."""

    def __init__(self, folder, name, table=""):
        """Read a folder of this machine; every file gets a time of its own, by its name.

        Args:
            table: What follows the folder in the path of the table: a catalog in it, and the name of the table.
        """
        self.root = f"lake/{name}"
        self.table = table
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        named = {f"{self.root}/{path.relative_to(folder).as_posix()}": path for path in paths}
        self.files = {name: path.read_bytes() for name, path in named.items()}
        self.times = {name: _WRITTEN + timedelta(minutes=place) for place, name in enumerate(self.files)}
        self.fault = None
        self.struck = 0
        self._asked = Counter()
        self._requests = []
        self._lock = threading.Lock()

    @property
    def url(self):
        return f"{PROTOCOL}://{self.root}"

    def heed(self, fault):
        """Forget what was asked, and answer with a fault from now on; with None as things are."""
        with self._lock:
            self.fault, self.struck = fault, 0
            self._asked.clear()
            self._requests.clear()

    def requests(self):
        """Return what was asked since, in the same order each time."""
        with self._lock:
            return sorted(self._requests, key=lambda one: (one.path, one.operation, one.occurrence))

    def met(self, operation, path):
        """Note a request, and return the kind of the fault that it meets, or None. May raise the fault."""
        path = path.strip("/")
        with self._lock:
            request = Request(operation, path, self._asked[operation, path])
            self._asked[operation, path] += 1
            self._requests.append(request)
            fault = self.fault
            if fault is None or not fault.strikes(request):
                return None
            self.struck += 1
        if fault.kind == "delayed":
            time.sleep(0.002)
            return None
        if fault.kind in ERRORS:
            error = ERRORS[fault.kind]()
            raise error
        return fault.kind

    def altered(self, content, kind, path):
        """Return a file's bytes as a fault gives them."""
        if kind == "stale hint":
            number = re.search(rb"\d+", content)
            older = str(max(int(number[0]) - 1, 0)).encode() if number else b""
            return content if number is None else content.replace(number[0], older, 1)
        return CONTENTS[kind](content, random.Random(f"{path} {len(content)}"))

    @contextmanager
    def without(self, paths):
        """Answer as if files, and folders with all in them, were not there."""
        kept = self.files
        folders = tuple(f"{path}/" for path in paths)
        self.files = {
            name: content for name, content in kept.items() if name not in paths and not name.startswith(folders)
        }
        try:
            yield
        finally:
            self.files = kept


class _File(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start=start, end=end)


class FaultyFileSystem(AbstractFileSystem):
    """The file system of a `Store`, which is the storage option `store`."""

    protocol = PROTOCOL
    root_marker = ""
    cachable = False

    def __init__(self, *args, store, **kwargs):
        super().__init__(*args, **kwargs)
        self.store = store

    def ls(self, path, detail=True, **_):  # noqa: FBT002 - fsspec's
        kind = self.store.met("list", path)
        found = self.listed_files(path.strip("/"))
        found = LISTINGS[kind](found) if kind else found
        return found if detail else [entry["name"] for entry in found]

    def listed_files(self, path):
        files, folders = [], set()
        for name in self.store.files:
            if name == path:
                return [self._described(name)]
            if name.startswith(f"{path}/"):
                rest = name[len(path) + 1 :]
                if "/" in rest:
                    folders.add(f"{path}/{rest.split('/', 1)[0]}")
                else:
                    files.append(self._described(name))
        if not files and not folders:
            raise FileNotFoundError(path)
        return [*files, *({"name": name, "size": 0, "type": "directory"} for name in sorted(folders))]

    def _described(self, name):
        size = len(self.store.files[name])
        return {"name": name, "size": size, "type": "file", "LastModified": self.store.times[name]}

    def info(self, path, **_):
        self.store.met("info", path)
        path = path.strip("/")
        if path in self.store.files:
            return self._described(path)
        if any(name.startswith(f"{path}/") for name in self.store.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def cat_file(self, path, start=None, end=None, **_):
        kind = self.store.met("read", path)
        path = path.strip("/")
        if path not in self.store.files:
            raise FileNotFoundError(path)
        content = self.store.files[path][start:end]
        return self.store.altered(content, kind, path) if kind else content

    def _open(self, path, mode="rb", block_size=None, cache_options=None, **kwargs):
        assert mode == "rb"
        return _File(self, path, mode, block_size, cache_options=cache_options, **kwargs)


@contextmanager
def registered():
    """Make the file system known to fsspec."""
    fsspec.register_implementation(PROTOCOL, FaultyFileSystem, clobber=True)
    try:
        yield
    finally:
        _registry.pop(PROTOCOL, None)
