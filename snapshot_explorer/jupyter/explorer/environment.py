"""The environment of an explorer: the notebook's variables and settings, and whether a page shows it."""

from collections.abc import Mapping
from typing import Any

from IPython.core.getipython import get_ipython
from ipywidgets import Widget

from snapshot_explorer.history import open_expression
from snapshot_explorer.jupyter.cost import DEFAULT_LIMITS
from snapshot_explorer.table import Table
from snapshot_explorer.table.cost import ReadLimits


def name_of(table: Table, variables: Mapping[str, Any]) -> str:
    """Return the variable that holds the table; without one, the call that opens the table."""
    names = [name for name, value in list(variables.items()) if value is table and not name.startswith("_")]
    return names[0] if names else open_expression(table.path, table.current.branch)


def load_limits() -> ReadLimits:
    """Return the limits of a load without confirmation: the settings of `%snapshot`, which `%config` shows."""
    magics = _magics()
    if magics is None:
        return DEFAULT_LIMITS
    return ReadLimits(rows=magics.load_row_limit, size_bytes=magics.load_size_limit)


def time_zone() -> str:
    """Return the zone in which times are shown in addition to UTC: the setting of `%snapshot`."""
    magics = _magics()
    return "UTC" if magics is None else str(magics.time_zone)


def _magics() -> Any:
    """Return the settings of `%snapshot`; None without a notebook. By name: the magics import the explorer."""
    shell = get_ipython()
    return None if shell is None else shell.magics_manager.registry.get("SnapshotMagics")


def is_page_acting() -> bool:
    """Return whether the kernel handles a message from a page, and does not run a cell."""
    kernel = getattr(get_ipython(), "kernel", None)
    parent = {} if kernel is None else kernel.get_parent("shell")
    return bool(parent.get("header", {}).get("msg_type") == "comm_msg")


def cell_count() -> int:
    """Return how many cells have run, without the running one."""
    return int(getattr(get_ipython(), "execution_count", 0))


def widget_bundle(widget: Widget) -> dict[str, Any]:
    """Return a widget as an output, sent to the page now; nothing once it is closed. ipywidgets before 8 has none."""
    if widget.model_id is None:
        return {}
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"text/plain": repr(widget), "application/vnd.jupyter.widget-view+json": view}


def has_kernel() -> bool:
    """Return whether a kernel runs, so that there may be a page for widgets."""
    return getattr(get_ipython(), "kernel", None) is not None
