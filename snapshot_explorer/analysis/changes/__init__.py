"""The row changes of a table as a stream: commit by commit, from a position that can be saved.

The rows of a commit are compared in `analysis.diff`; all versions of rows at once are in `analysis.row_history`. Who
follows commits without their rows, as the explorer does, keeps a position too: `interruption` recognizes a table that
was created again, a rollback and a late commit in the same way. A row of a lake has no history to continue: it is read
again as soon as the listing differs, which identifies the newest commit.
"""

from snapshot_explorer.analysis.changes.cursor import ChangeBounds, ChangeCursor
from snapshot_explorer.analysis.changes.new_commits import interruption
from snapshot_explorer.analysis.changes.position import ChangePosition
from snapshot_explorer.analysis.changes.starting import newest_position, position_after, position_before, start_position

__all__ = [
    "ChangeBounds",
    "ChangeCursor",
    "ChangePosition",
    "interruption",
    "newest_position",
    "position_after",
    "position_before",
    "start_position",
]
