"""What runs around an explorer: the notebook's variables, and the page that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapshot_explorer.table import Table


def name_of(table: Table, variables: Mapping[str, Any]) -> str:
    """Return the variable that holds the table."""
    names = [name for name, value in list(variables.items()) if value is table and not name.startswith("_")]
    return names[0] if names else "table"


def has_kernel() -> bool:
    """Return whether a kernel runs, so that there may be a page for widgets."""
    return getattr(get_ipython(), "kernel", None) is not None


def has_browser() -> bool:
    """Return whether the cell that runs was sent by a page: pages tell the cell's id, programs do not."""
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        return False
    parent = kernel.get_parent()
    return bool(((parent or {}).get("metadata") or {}).get("cellId"))
