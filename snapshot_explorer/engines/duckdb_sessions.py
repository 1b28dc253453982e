"""DuckDB instances that are opened once per process: opening one takes longer than many conditions or queries."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import duckdb

_OFFLINE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_LOCKED = {**_OFFLINE, "enable_external_access": "false", "threads": "1"}
_PLANNING = {**_LOCKED, "errors_as_json": "true", "python_scan_all_frames": "false"}
_FILES = {**_OFFLINE, "temp_directory": ""}
_QUERIES = {
    **_FILES,
    "python_scan_all_frames": "false",
    "errors_as_json": "true",
    "memory_limit": "50%",
}
_INTERRUPTED = "Query interrupted"
"""The text of the RuntimeError that DuckDB raises in the main thread after Ctrl-C."""
_INTERRUPT_SECONDS = 0.1
"""How often a query is interrupted that has not ended yet. It may not have begun."""

_Result = TypeVar("_Result")


@contextmanager
def locked_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection that reaches no file, no network and no Python variable; one thread works for it."""
    with _cursor(_instance(os.getpid(), tuple(_LOCKED.items()))) as cursor:
        yield cursor


@contextmanager
def planning_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection like `locked_cursor` that explains queries and runs none; its errors are JSON."""
    with _cursor(_instance(os.getpid(), tuple(_PLANNING.items()))) as cursor:
        yield cursor


@contextmanager
def file_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection that reads local files, in threads. Only for queries that this package builds."""
    with _cursor(_instance(os.getpid(), tuple(_FILES.items()))) as cursor:
        yield cursor


@contextmanager
def query_cursor(paths: Sequence[str] = ()) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection for a query of a user, which can read these local files and nothing else.

    What a query registers and creates ends with its connection. The instances for the last sets of files stay open:
    the first query of an instance takes up to twice as long as the next, whatever it is.

    Args:
        paths: The files. Their names contain no quotes.
    """
    with _cursor(_instances_of_queries(os.getpid())(tuple(sorted(set(paths))))) as cursor:
        yield cursor


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], _Result]) -> _Result:
    """Return the result of work on a connection, which Ctrl-C and a stop button end soon.

    In a thread of its own: in the main thread, DuckDB checks for signals only between its tasks, and the task of a join
    may take hours.
    """
    with ThreadPoolExecutor(1, "snapshot-sql") as threads:
        future = threads.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                connection.interrupt()
                wait([future], timeout=_INTERRUPT_SECONDS)
            raise


@contextmanager
def _cursor(instance: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection, closed at the end. Ctrl-C raises KeyboardInterrupt, whichever error DuckDB raises."""
    import duckdb

    with instance.cursor() as cursor:
        try:
            yield cursor
        except duckdb.InterruptException as error:
            raise KeyboardInterrupt from error
        except RuntimeError as error:
            if str(error) == _INTERRUPTED:
                raise KeyboardInterrupt from error
            raise


@cache
def _instances_of_queries(process: int) -> Callable[[tuple[str, ...]], duckdb.DuckDBPyConnection]:
    """Return a function that opens an instance, and keeps the last two of this process."""
    del process  # as in _instance: a cache that both share would close the parent's instance in its child
    return lru_cache(maxsize=2)(_opened_for)


def _opened_for(paths: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
    listed = ", ".join(f"'{path}'" for path in paths)
    return opened(_QUERIES, f"SET allowed_paths = [{listed}]", "SET enable_external_access = false")


@cache
def _instance(process: int, settings: tuple[tuple[str, str], ...]) -> duckdb.DuckDBPyConnection:
    del process  # a forked process must not use its parent's instance, nor close it, for lack of its threads
    return opened(dict(settings))


def opened(settings: Mapping[str, str], *more: str) -> duckdb.DuckDBPyConnection:
    """Return an instance of its own with these settings, which queries cannot change; its zone is UTC.

    Args:
        settings: The settings to open it with.
        more: Statements for settings that an instance can have only later.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(settings))
    for statement in ("SET GLOBAL TimeZone = 'UTC'", *more, "SET lock_configuration = true"):
        connection.execute(statement)
    return connection
