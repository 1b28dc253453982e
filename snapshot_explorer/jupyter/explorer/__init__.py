"""The explorer: a widget to browse a table's history. `explore` returns one.

`state` can be driven without a browser, `contents` computes what the views show, and `page` has what runs in it.
"""

from snapshot_explorer.jupyter.explorer.explorer import Explorer, explore
from snapshot_explorer.jupyter.explorer.state import ExplorerState

__all__ = ["Explorer", "ExplorerState", "explore"]
