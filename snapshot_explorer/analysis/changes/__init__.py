"""The row changes of a table as a stream: commit by commit, from a position that can be saved."""

from snapshot_explorer.analysis.changes.commit_changes import CommitChanges, plan_commit
from snapshot_explorer.analysis.changes.cursor import ChangeBounds, ChangeCursor
from snapshot_explorer.analysis.changes.new_commits import NewCommit, check_position, commits_after
from snapshot_explorer.analysis.changes.position import (
    ChangePosition,
    is_position,
    parse_position,
    position_at,
    start_position,
)

__all__ = [
    "ChangeBounds",
    "ChangeCursor",
    "ChangePosition",
    "CommitChanges",
    "NewCommit",
    "check_position",
    "commits_after",
    "is_position",
    "parse_position",
    "plan_commit",
    "position_at",
    "start_position",
]
