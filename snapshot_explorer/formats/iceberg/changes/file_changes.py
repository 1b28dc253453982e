"""Files of two versions that differ only in their deletes."""

from collections.abc import Hashable
from dataclasses import replace

from snapshot_explorer.formats.iceberg.changes.events import Part
from snapshot_explorer.formats.iceberg.scan.plans import Plan
from snapshot_explorer.formats.iceberg.scan.read import plan_of
from snapshot_explorer.model import Split


def identity_without_deletes(split: Split) -> Hashable | None:
    """Return a value that is equal for splits of one file that differ at most in deletes; None for other splits."""
    plan = split.detail
    if not isinstance(plan, Plan):
        return None
    return tuple(sorted(split.partition.items())), plan.path, plan.first_row_id, plan.context.key


def rows_deleted(before: Split, after: Split) -> Split | None:
    """Return a split of the rows that are live in `before` and deleted in `after`; None if there are none.

    Reads nothing. Both are splits of the same file.
    """
    live, other = plan_of(before), plan_of(after)
    if covers(live, other):
        return None
    return replace(before, raw=False, counted=None, detail=Part(live=live, deleted=other))


def covers(live: Plan, other: Plan) -> bool:
    """Return whether all rows that the deletes of `live` leave are left by those of `other`, by their files alone."""
    mine, theirs = live.deletes, other.deletes
    if theirs.vector is not None and theirs.vector != mine.vector:
        return False
    if mine.vector is not None and theirs.vector is None and theirs.positions:
        return False
    my_positions, their_positions = ({file.location for file in one.positions} for one in (mine, theirs))
    my_rows, their_rows = (
        {(one.ids, location) for one in plan.deletes.equality for location in one.after(plan.sequence_number)}
        for plan in (live, other)
    )
    return their_positions <= my_positions and their_rows <= my_rows
