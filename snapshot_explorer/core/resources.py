"""Errors for a lack of memory, disk space, threads or open files. They are not about the table."""

from __future__ import annotations

import errno
import inspect
import os
import re
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from snapshot_explorer.core.errors import ResourceError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Call = TypeVar("Call", bound="Callable[..., Any]")
_Class = TypeVar("_Class", bound=type)


class _Lack(NamedTuple):
    """A resource that the machine lacks."""

    problem: str
    advice: str


_MEMORY = _Lack(
    "there is not enough memory",
    Message(
        "Read fewer columns or rows (",
        Hint("", {"columns": [...]}),
        ", ",
        Hint("", {"where": ...}),
        ", ",
        Hint("", {"limit": ...}),
        "), end what else uses memory, or use ",
        Hint("", {"engine": "spark"}),
    ),
)
_DISK = _Lack(
    "there is no space left on the disk",
    "Free some, or set the environment variable TMPDIR to a folder with more space for temporary files",
)
_THREADS = _Lack(
    "no further thread can be started",
    "End what else runs threads, or raise the limit of processes of the user or the container (ulimit -u)",
)
_FILES = _Lack(
    "too many files are open", "Close what else has files open, or raise the limit of open files (ulimit -n)"
)
_BY_ERRNO = {
    errno.ENOMEM: _MEMORY,
    errno.ENOSPC: _DISK,
    errno.EDQUOT: _DISK,
    errno.EFBIG: _DISK,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
}
_BY_TEXT = {
    "can't start new thread": _THREADS,
    "Resource temporarily unavailable": _THREADS,
    "std::bad_alloc": _MEMORY,
    "No space left on device": _DISK,
    "max_temp_directory_size": _DISK,
    "Too many open files": _FILES,
}
"""Parts of the messages of errors without a number: errors about threads, and errors that libraries raise in C++."""
_INTERRUPTS = frozenset({"InterruptException", "ArrowCancelled"})
"""Names of the errors with which DuckDB and pyarrow report Ctrl-C."""
_CLAIM = re.compile(r"(?:size|allocate) (\d+(?:\.\d+)?) ?([kKMGTPE]?i?B)?")
"""The number of requested bytes in an error of pyarrow, NumPy or DuckDB."""
_UNITS = {letter: 1 << 10 * power for power, letter in enumerate("BKMGTPE")}
_LARGEST_MACHINE = 1 << 40


def check(error: BaseException, problem: str) -> None:
    """Raise ResourceError if an error of a library means that the machine lacks a resource; otherwise return.

    For code that otherwise calls a file damaged, or a query wrong. A damaged file may claim to need more memory than
    the machine has: that is no lack.

    Args:
        problem: The failed work, as the start of a sentence.

    Raises:
        KeyboardInterrupt: The error means that the user interrupted the call.
    """
    if type(error).__name__ in _INTERRUPTS:
        raise KeyboardInterrupt from error
    if (failure := resource_error(error, problem)) is not None:
        raise failure from error


def resource_error(error: BaseException, problem: str) -> ResourceError | None:
    """Return our error for an error that means that the machine lacks a resource; None for any other. See `check`."""
    lack = _lack(error)
    is_claim = lack is _MEMORY and _claimed_bytes(error) > _machine_bytes()
    return None if lack is None or is_claim else _resource_error(lack, problem)


def reports_lacking_resources(call: Call) -> Call:
    """Decorate a public function: a lack of memory, disk space, threads or open files raises ResourceError."""

    def translated(error: Exception) -> ResourceError | None:
        lack = None if isinstance(error, SnapshotExplorerError) else _lack(error)
        return None if lack is None else _resource_error(lack, f"{call.__qualname__} did not finish")

    @wraps(call)
    def calling(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except (MemoryError, RuntimeError, OSError) as error:
            if (failure := translated(error)) is None:
                raise
            raise failure from error
        finally:
            del args, kwargs  # a traceback with local variables would show the options that the call hides

    return cast("Call", calling)


def reporting_lacking_resources(cls: _Class) -> _Class:
    """Decorate the public methods of a class with `reports_lacking_resources`."""
    for name, member in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(member) and not inspect.isgeneratorfunction(member):
            setattr(cls, name, reports_lacking_resources(member))
    return cls


def _resource_error(lack: _Lack, problem: str) -> ResourceError:
    return ResourceError(Message(f"{problem}: {lack.problem}. ", lack.advice, "."))


def _lack(error: BaseException) -> _Lack | None:
    return next(filter(None, map(_lack_of, _causes(error))), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _lack_of(error: BaseException) -> _Lack | None:
    if isinstance(error, SnapshotExplorerError):
        return None  # LimitError is a MemoryError, too
    text = _text(error)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return next((lack for words, lack in _BY_TEXT.items() if words in text), _MEMORY)
    if isinstance(error, OSError) and error.errno in _BY_ERRNO:
        return _BY_ERRNO[error.errno]
    return next((lack for words, lack in _BY_TEXT.items() if words in text), None)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a library's error, whose text may be as broken
        return ""


def _claimed_bytes(error: BaseException) -> float:
    """Return the number of bytes that were requested, if the error contains it."""
    match = next(filter(None, (_CLAIM.search(_text(link)) for link in _causes(error))), None)
    return 0 if match is None else float(match[1]) * _UNITS[(match[2] or "B")[0].upper()]


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return _LARGEST_MACHINE
