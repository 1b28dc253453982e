"""What runs on executors: a task is unpickled and worked on. Imported there by name, so it must be installed there."""

from __future__ import annotations

import pickle
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa


def packed(value: object) -> bytes:
    """Return a value as the compressed pickle that `run` takes."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def run(function: bytes, task: bytes) -> Iterator[pa.RecordBatch]:
    """Yield what a function gives for a task; both were packed by the driver."""
    yield from _function(function)(unpacked(task))


@lru_cache(maxsize=4)
def _function(content: bytes) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """Return the function that many tasks share. Kept between tasks, and with it what it holds open."""
    found: Callable[[Any], Iterator[pa.RecordBatch]] = unpacked(content)
    return found


def unpacked(content: bytes) -> Any:
    """Return the value that `packed` was given."""
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - the driver made it; it comes as Spark's own closures do


def run_on(function: bytes, value: Any) -> Iterator[pa.RecordBatch]:
    """Yield what a packed function gives for a value."""
    yield from _function(function)(value)
