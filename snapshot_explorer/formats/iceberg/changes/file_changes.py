"""Files of two versions that differ only in their deletes."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from snapshot_explorer.formats.iceberg.changes.events import Part
from snapshot_explorer.formats.iceberg.deletes.index import NO_DELETES
from snapshot_explorer.formats.iceberg.metadata.types import IcebergField
from snapshot_explorer.formats.iceberg.scan.plans import IcebergPlan
from snapshot_explorer.formats.iceberg.scan.read import plan_of
from snapshot_explorer.model import Split


def identity_without_deletes(split: Split) -> Hashable | None:
    """Return a value that is equal for splits of one file that differ at most in deletes; None for other splits."""
    plan = split.detail
    if not isinstance(plan, IcebergPlan):
        return None
    return tuple(sorted(split.partition.items())), plan.path, plan.first_row_id, plan.context.key


def stored_rows(split: Split) -> Split | None:
    """Return a split of the rows of a file without its deletes; None for other splits."""
    plan = split.detail
    if not isinstance(plan, IcebergPlan):
        return None
    return replace(split, raw=True, counted=None, detail=replace(plan, deletes=NO_DELETES))


def identity_in(split: Split, columns: Sequence[str | None]) -> Hashable | None:
    """Return a value that is equal for splits of one file whose rows are equal in these columns; else None.

    The schemas of the versions may differ: a column is read by its id. A column that is None represents nulls.
    """
    plan = split.detail
    if not isinstance(plan, IcebergPlan):
        return None
    known = {field.name: field for field in plan.context.schema.fields}
    read = tuple(None if name is None else _kept(known[name]) for name in columns)
    deletes = plan.deletes.identity(plan.sequence_number)
    return plan.path, plan.sequence_number, plan.first_row_id, deletes, plan.context.rules, read


def _kept(field: IcebergField) -> Hashable:
    """Return a key that is equal if the values of a column are read in the same way."""
    return field.id, field.type, field.initial_default


def rows_deleted(before: Split, after: Split) -> Split | None:
    """Return a split of the rows that are live in `before` and deleted in `after`; None if there are none.

    Reads nothing. Both are splits of the same file.
    """
    live, other = plan_of(before), plan_of(after)
    if covers(live, other):
        return None
    return replace(before, raw=False, counted=None, detail=Part(live=live, deleted=other))


def covers(live: IcebergPlan, other: IcebergPlan) -> bool:
    """Return whether all rows that the deletes of `live` leave are left by those of `other`, by their files alone."""
    mine, theirs = live.deletes, other.deletes
    if theirs.vector is not None and theirs.vector != mine.vector:
        return False
    if mine.vector is not None and theirs.vector is None and theirs.positions:
        return False
    my_positions, their_positions = ({file.location for file in item.positions} for item in (mine, theirs))
    my_rows, their_rows = (
        {(item.ids, location) for item in plan.deletes.equality for location in item.after(plan.sequence_number)}
        for plan in (live, other)
    )
    return their_positions <= my_positions and their_rows <= my_rows
