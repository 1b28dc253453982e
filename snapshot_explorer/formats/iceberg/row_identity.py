"""`IcebergRowIdentity`: which splits of two versions of an Iceberg table have the same rows."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from snapshot_explorer.core.records import Split
from snapshot_explorer.formats.capabilities import RowIdentity
from snapshot_explorer.formats.iceberg.changes.events import Part
from snapshot_explorer.formats.iceberg.changes.row_changes import covers
from snapshot_explorer.formats.iceberg.deletes.index import NO_DELETES
from snapshot_explorer.formats.iceberg.scan.plans import IcebergPlan
from snapshot_explorer.formats.iceberg.scan.read import plan_of


class IcebergRowIdentity(RowIdentity):
    """The identity of the rows of splits."""

    def without_vector(self, split: Split) -> Hashable | None:
        plan = split.detail
        if not isinstance(plan, IcebergPlan):
            return None
        return tuple(sorted(split.partition.items())), plan.path, plan.first_row_id, plan.context.key

    def deletes_of(self, split: Split) -> frozenset[Hashable]:
        # The positions of a data file are compared with its rows; values of equality deletes are the same for all.
        plan = plan_of(split)
        deletes = plan.deletes
        own = {(plan.path, item) for item in (deletes.vector, *deletes.positions) if item is not None}
        return frozenset(own.union(*(item.after(plan.sequence_number) for item in deletes.equality)))

    def stored_rows(self, split: Split) -> Split | None:
        plan = split.detail
        if not isinstance(plan, IcebergPlan):
            return None
        return replace(split, raw=True, live_rows=None, detail=replace(plan, deletes=NO_DELETES))

    def has_deleted_positions(self, split: Split) -> bool:
        return isinstance(split.detail, IcebergPlan) and not split.detail.deletes.equality

    def in_columns(self, split: Split, columns: Sequence[str | None], absent: frozenset[str]) -> Hashable | None:
        # The schemas of the versions may differ: a column is read by its id.
        plan = split.detail
        if not isinstance(plan, IcebergPlan):
            return None
        known = {field.name: (field.id, field.type, field.initial_default) for field in plan.context.schema.fields}
        read = tuple(None if name is None or name in absent else known[name] for name in columns)
        deletes = plan.deletes.identity(plan.sequence_number)
        return plan.path, plan.sequence_number, plan.first_row_id, deletes, plan.context.rules, read

    def rows_deleted(self, before: Split, after: Split) -> Split | None:
        live, other = plan_of(before), plan_of(after)
        return (
            None
            if covers(live, other)
            else replace(before, raw=False, live_rows=None, detail=Part(live=live, deleted=other))
        )
