"""Run a task on an executor, where this module is imported by name: the package must be installed there."""

from __future__ import annotations

import pickle
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from snapshot_explorer.storage import pickled_with_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa


def pack_value(value: object) -> bytes:
    """Return a value as the compressed pickle that `run` accepts, with the storage options that executors need."""
    return zlib.compress(pickled_with_options(value), 1)


def run(function: bytes, task: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the results of a function for a task. The driver packed both."""
    yield from _function(function)(unpack_value(task))


@lru_cache(maxsize=4)
def _function(content: bytes) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """Return the function that many tasks share. It remains in memory between tasks, with its open files."""
    function: Callable[[Any], Iterator[pa.RecordBatch]] = unpack_value(content)
    return function


def unpack_value(content: bytes) -> Any:
    """Return the value in a result of `pack_value`."""
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - the driver made it; it comes as Spark's own closures do


def run_on(function: bytes, value: Any) -> Iterator[pa.RecordBatch]:
    """Yield the results of a packed function for a value."""
    yield from _function(function)(value)
