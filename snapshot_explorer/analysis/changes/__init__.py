"""The row changes of a table as a stream: commit by commit, from a position that can be saved."""

from snapshot_explorer.analysis.changes.cursor import ChangeBounds, ChangeCursor
from snapshot_explorer.analysis.changes.position import ChangePosition
from snapshot_explorer.analysis.changes.starting import newest_position, position_before, start_position

__all__ = ["ChangeBounds", "ChangeCursor", "ChangePosition", "newest_position", "position_before", "start_position"]
