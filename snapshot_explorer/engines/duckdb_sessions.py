"""DuckDB instances that are opened once per process: opening one takes longer than many conditions or queries."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

_OFFLINE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_LOCKED = {**_OFFLINE, "enable_external_access": "false", "threads": "1"}
_PLANNING = {**_LOCKED, "errors_as_json": "true", "python_scan_all_frames": "false"}
_FILES = {**_OFFLINE, "temp_directory": ""}


def locked_cursor() -> duckdb.DuckDBPyConnection:
    """Return a new connection that reaches no file, no network and no Python variable; one thread works for it."""
    return _instance(os.getpid(), tuple(_LOCKED.items())).cursor()


def planning_cursor() -> duckdb.DuckDBPyConnection:
    """Return a new connection like `locked_cursor` that explains queries and runs none; its errors are JSON."""
    return _instance(os.getpid(), tuple(_PLANNING.items())).cursor()


def file_cursor() -> duckdb.DuckDBPyConnection:
    """Return a new connection that reads local files, in threads. Only for queries that this package builds."""
    return _instance(os.getpid(), tuple(_FILES.items())).cursor()


@cache
def _instance(process: int, settings: tuple[tuple[str, str], ...]) -> duckdb.DuckDBPyConnection:
    del process  # a forked process must not use its parent's instance, nor close it, for lack of its threads
    return opened(dict(settings))


def opened(settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """Return an instance of its own with these settings, which queries cannot change; its zone is UTC."""
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(settings))
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection
