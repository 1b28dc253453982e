"""The explorer: a widget to browse a table's history. `explore` returns one."""

from snapshot_explorer.jupyter.explorer.explorer import Explorer, explore
from snapshot_explorer.jupyter.explorer.state import ExplorerState

__all__ = ["Explorer", "ExplorerState", "explore"]
