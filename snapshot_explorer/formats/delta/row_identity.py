"""`DeltaRowIdentity`: which splits of two versions of a Delta table have the same rows."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from snapshot_explorer.core.records import PlannedPair, Predicate, Split
from snapshot_explorer.formats.capabilities import RowIdentity
from snapshot_explorer.formats.delta.changes.events import DeltaEvents, DeltaVectorDifference
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.delta.metadata.schema import schema_of
from snapshot_explorer.formats.delta.scan import planning
from snapshot_explorer.formats.delta.scan.plans import plan_of_file
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, kw_only=True)
class DeltaRowIdentity(RowIdentity):
    """The identity of the rows of a version."""

    storage: Storage
    log: DeltaLog
    number: int
    metadata: Callable[[], Metadata]

    def plan_pair(self, other: Self, predicates: Sequence[Predicate | None]) -> PlannedPair:
        states = self.storage.together(*(partial(version.log.state, version.number) for version in (self, other)))
        return planning.plan_pair(self.storage, states, predicates)

    def without_vector(self, split: Split) -> Hashable | None:
        plan = plan_of_file(split)
        return None if plan is None else (tuple(sorted(split.partition.items())), plan.files[0].path, plan.schema)

    def stored_rows(self, split: Split) -> Split | None:
        plan = plan_of_file(split)
        if plan is None:
            return None
        files = (replace(plan.files[0], vector=None),)
        return replace(split, raw=True, live_rows=None, detail=replace(plan, files=files))

    def has_deleted_positions(self, split: Split) -> bool:
        return plan_of_file(split) is not None and split.rows is not None

    def in_columns(self, split: Split, columns: Sequence[str | None], absent: frozenset[str]) -> Hashable | None:
        # The schemas of the versions may differ: a column is read as stored in the file, by its name there or its id.
        plan = plan_of_file(split)
        if plan is None:
            return None
        read: list[Hashable] = []
        for name in columns:
            if name is None or name in absent:
                read.append(None)
                continue
            field, is_partition = plan.schema.field(name), name in plan.schema.partition_columns
            key = field.id if plan.schema.mode == "id" and not is_partition else field.stored
            read.append((key, is_partition, field.type, field.changes))
        # The names of partition columns may differ, their order may not.
        return tuple(split.partition.values()), plan.files[0].path, plan.files[0].vector, tuple(read)

    def columns_added_since(self, other: Self) -> frozenset[str]:
        """Return the columns whose ids are greater than all ids of the table at the other version.

        None of that version's files contains them, because an id is assigned only once. Empty if column mapping is not
        enabled in both.

        Source: delta PROTOCOL.md, "Column Mapping", delta.columnMapping.maxColumnId.
        """
        schema, older = (schema_of(version.metadata()) for version in (self, other))
        if older.max_id is None or "none" in (schema.mode, older.mode):
            return frozenset()
        return frozenset(field.name for field in schema.fields if field.id is not None and field.id > older.max_id)

    def rows_deleted(self, before: Split, after: Split) -> Split | None:
        plan, later = plan_of_file(before), plan_of_file(after)
        if plan is None or later is None:
            return None
        (file,), (other,) = plan.files, later.files
        if other.vector is None or other.vector == file.vector:
            return None
        events = DeltaEvents(
            files=before,
            change="delete",
            version=self.number,
            committed_at=None,
            columns=tuple(field.name for field in plan.schema.fields),
            vector_difference=DeltaVectorDifference(
                path=file.path, rows=file.rows, deleted_by=other.vector, not_deleted_by=file.vector
            ),
        )
        return replace(before, raw=False, rows=other.vector.cardinality, live_rows=None, detail=events)
