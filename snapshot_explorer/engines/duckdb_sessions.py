"""DuckDB instances that are opened once per process: opening one takes longer than many conditions or queries."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.old_libraries import DUCKDB_LOCAL_ERRORS_AS_JSON, DUCKDB_NANOSECONDS
from snapshot_explorer.core.progress import StoppedError, stop_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import duckdb

_OFFLINE = {
    "temp_directory": "",  # otherwise a folder in the current directory, which may be a table's folder
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_LOCKED = {**_OFFLINE, "threads": "1"}
_PLANNING = {**_LOCKED, "errors_as_json": "true"}
_QUERIES = {**_OFFLINE, "errors_as_json": "true"}
_NO_ACCESS = "SET enable_external_access = false"
"""Not among the settings: afterwards, no other folder for temporary files can be set."""
_LOCAL_JSON_ERRORS = "SET errors_as_json = true"
_MEMORY_SHARE = 0.5 / 0.8
"""Half of the memory, as a share of DuckDB's own limit, which is 80 %."""
_INTERRUPTED = "Query interrupted"
"""The text of the RuntimeError that DuckDB raises in the main thread after Ctrl-C."""
_INTERRUPT_SECONDS = 0.1
"""Seconds between interrupts of a query that has not ended: it may not have begun at the first one."""

_Result = TypeVar("_Result")


def check_nanoseconds(columns: Iterable[str], schema: pa.Schema) -> None:
    """Raise UnsupportedFeatureError if the installed DuckDB truncates values of a column to microseconds."""
    if not DUCKDB_NANOSECONDS.applies():
        return
    for name in columns:
        if schema.names.count(name) == 1 and is_truncated(schema.field(name).type):
            raise UnsupportedFeatureError(
                f"Conditions and SQL do not read the nanoseconds of column {name!r}: {DUCKDB_NANOSECONDS.remedy()}"
            )


def is_truncated(dtype: pa.DataType) -> bool:
    """Return whether a type is, or contains, a time or a timestamp with a zone that has nanoseconds."""
    is_zoned = pa.types.is_timestamp(dtype) and dtype.tz is not None
    if is_zoned or pa.types.is_time(dtype):
        return bool(dtype.unit == "ns")
    return any(is_truncated(dtype.field(index).type) for index in range(dtype.num_fields))


@contextmanager
def locked_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection that has no access to files, the network or Python variables; it uses one thread."""
    with _closing(_instance(os.getpid(), tuple(_LOCKED.items()), _NO_ACCESS).cursor()) as cursor:
        yield cursor


@contextmanager
def planning_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection like `locked_cursor` that explains queries and runs none; its errors are JSON."""
    if DUCKDB_LOCAL_ERRORS_AS_JSON.applies():
        connection = open_instance(_LOCKED, _NO_ACCESS, _LOCAL_JSON_ERRORS)
    else:
        connection = _instance(os.getpid(), tuple(_PLANNING.items()), _NO_ACCESS).cursor()
    with _closing(connection) as cursor:
        yield cursor


@contextmanager
def file_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection that reads local files, in threads. Only for queries that this package builds."""
    with _closing(_instance(os.getpid(), tuple(_OFFLINE.items())).cursor()) as cursor:
        yield cursor


@contextmanager
def query_cursor(paths: Sequence[str] = ()) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a new connection for a query of a user, which can read these local files and nothing else.

    The relations and objects of a query end with its connection. The instances for the last sets of files stay open:
    the first query of an instance takes up to twice as long as later ones.
    """
    files = tuple(sorted(set(paths)))
    if DUCKDB_LOCAL_ERRORS_AS_JSON.applies():
        connection = _opened_for(files)
    else:
        connection = _instances_of_queries(os.getpid())(files).cursor()
    with _closing(connection) as cursor:
        yield cursor


def run_interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], _Result]) -> _Result:
    """Return the result of work on a connection, which Ctrl-C, a stop button and `stop_with` end soon.

    In a thread of its own: in the main thread, DuckDB checks for signals only between its tasks, and the task of a join
    may take hours.
    """
    with ThreadPoolExecutor(1, "snapshot-sql") as threads:
        future = threads.submit(work)
        try:
            if (check_stop := stop_check()) is not None:
                while not wait([future], timeout=_INTERRUPT_SECONDS).done:
                    check_stop()
            return future.result()
        except (KeyboardInterrupt, StoppedError):
            while not future.done():
                connection.interrupt()
                wait([future], timeout=_INTERRUPT_SECONDS)
            raise


@contextmanager
def _closing(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection, and close it at the end. Ctrl-C raises KeyboardInterrupt, whichever error DuckDB raises."""
    import duckdb

    with connection as cursor:
        try:
            yield cursor
        except duckdb.Error as error:
            resources.check(error, "The query did not finish")
            raise
        except RuntimeError as error:
            if str(error) == _INTERRUPTED:
                raise KeyboardInterrupt from error
            raise


@cache
def _instances_of_queries(process: int) -> Callable[[tuple[str, ...]], duckdb.DuckDBPyConnection]:
    """Return a function that opens an instance, and keeps the last two of this process."""
    del process  # as in _instance: a cache that both share would close the parent's instance in its child
    return lru_cache(maxsize=2)(_opened_for)


def _opened_for(paths: Sequence[str]) -> duckdb.DuckDBPyConnection:
    settings, statements = _QUERIES, [_NO_ACCESS]
    if DUCKDB_LOCAL_ERRORS_AS_JSON.applies():
        settings, statements = _OFFLINE, [*statements, _LOCAL_JSON_ERRORS]
    if paths:
        listed = ", ".join(f"'{path}'" for path in paths)
        statements.insert(0, f"SET allowed_paths = [{listed}]")
    return open_instance(settings, *statements, memory_share=_MEMORY_SHARE)


@cache
def _instance(process: int, settings: tuple[tuple[str, str], ...], *more: str) -> duckdb.DuckDBPyConnection:
    del process  # a forked process must not use its parent's instance, nor close it, for lack of its threads
    return open_instance(dict(settings), *more)


def open_instance(settings: Mapping[str, str], *more: str, memory_share: float = 1.0) -> duckdb.DuckDBPyConnection:
    """Return an instance of its own with these settings, which queries cannot change; its zone is UTC.

    Args:
        memory_share: The share of DuckDB's own limit of memory that it may use.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(settings))
    if memory_share < 1:
        more = (f"SET memory_limit = '{memory_limit_of(connection, memory_share)}'", *more)
    for statement in ("SET GLOBAL TimeZone = 'UTC'", *more, "SET lock_configuration = true"):
        connection.execute(statement)
    return connection


def memory_limit_of(connection: duckdb.DuckDBPyConnection, share: float) -> str:
    """Return a share of an instance's limit of memory. DuckDB before 2.0 does not accept a percentage."""
    size, unit = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0].split()
    if unit == "PiB":  # DuckDB 1.3 assumes this much memory for a control group without a limit
        size, unit = str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.8 / 2**20), "MiB"
    return f"{float(size) * share}{unit}"
