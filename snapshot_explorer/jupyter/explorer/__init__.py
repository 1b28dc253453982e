"""The explorer: a table's past to travel by hand, as a widget. `explore` is the way to get one."""

from snapshot_explorer.jupyter.explorer.explorer import Explorer, explore
from snapshot_explorer.jupyter.explorer.state import ExplorerState

__all__ = ["Explorer", "ExplorerState", "explore"]
