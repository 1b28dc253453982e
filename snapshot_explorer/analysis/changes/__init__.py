"""The row changes of a table as a stream: commit by commit, from a position that can be saved.

The rows of a commit are compared in `analysis.diff`; all versions of rows at once are in `analysis.row_history`.
"""

from snapshot_explorer.analysis.changes.cursor import ChangeBounds, ChangeCursor
from snapshot_explorer.analysis.changes.position import ChangePosition
from snapshot_explorer.analysis.changes.starting import newest_position, position_after, position_before, start_position

__all__ = [
    "ChangeBounds",
    "ChangeCursor",
    "ChangePosition",
    "newest_position",
    "position_after",
    "position_before",
    "start_position",
]
