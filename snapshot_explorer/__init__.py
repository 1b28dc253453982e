"""Read any version of a Paimon, Delta Lake, Iceberg, Hudi or DuckLake table, and compare versions. Read-only.

`open_table(path)` opens a table by its path, `explore(table)` shows it as a widget;
`%load_ext snapshot_explorer` adds `%snapshot` to IPython.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from snapshot_explorer import errors, samples
from snapshot_explorer.core.old_libraries import check_floors

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from snapshot_explorer.core.environment import show_versions
    from snapshot_explorer.core.limits import Limits
    from snapshot_explorer.core.progress import show_progress
    from snapshot_explorer.jupyter.explorer import explore
    from snapshot_explorer.lake import Lake, LakeSnapshot, check, open_lake
    from snapshot_explorer.lake.certificates import verify_certificate
    from snapshot_explorer.lake.discovery import find_tables
    from snapshot_explorer.lake.pair_diff import diff, diff3
    from snapshot_explorer.lake.table_twins import twins
    from snapshot_explorer.spark import SnapshotDataSource as SnapshotDataSource
    from snapshot_explorer.table import Snapshot, Table, open_table
    from snapshot_explorer.table.queries import sql
    from snapshot_explorer.view.reports import report

check_floors()

__version__ = "0.1.0"
__all__ = [
    "Lake",
    "LakeSnapshot",
    "Limits",
    "Snapshot",
    "Table",
    "check",
    "diff",
    "diff3",
    "errors",
    "explore",
    "find_tables",
    "load_ipython_extension",
    "open_lake",
    "open_table",
    "report",
    "samples",
    "show_progress",
    "show_versions",
    "sql",
    "twins",
    "unload_ipython_extension",
    "verify_certificate",
]
_HOMES = {
    "Lake": "lake",
    "LakeSnapshot": "lake",
    "Limits": "core.limits",
    "Snapshot": "table",
    "SnapshotDataSource": "spark",  # not in __all__: it needs pyspark, which `import *` does not
    "Table": "table",
    "check": "lake",
    "diff": "lake.pair_diff",
    "diff3": "lake.pair_diff",
    "explore": "jupyter.explorer",
    "find_tables": "lake.discovery",
    "open_lake": "lake",
    "open_table": "table",
    "report": "view.reports",
    "show_progress": "core.progress",
    "show_versions": "core.environment",
    "sql": "table.queries",
    "twins": "lake.table_twins",
    "verify_certificate": "lake.certificates",
}
"""The modules of public names that are loaded at first use, so that importing the package is fast."""


def __getattr__(name: str) -> object:
    """Return a public name from its module (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({"__doc__", "__file__", "__name__", "__path__", "__version__", *_HOMES, *__all__})


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Register the `%snapshot` magic; IPython calls this on `%load_ext snapshot_explorer`."""
    from snapshot_explorer.jupyter import extension  # noqa: PLC0415 - only IPython calls this, so that IPython is loaded

    extension.load_ipython_extension(ip)


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Remove everything that `load_ipython_extension` registered."""
    from snapshot_explorer.jupyter import extension  # noqa: PLC0415 - only IPython calls this, so that IPython is loaded

    extension.unload_ipython_extension(ip)
