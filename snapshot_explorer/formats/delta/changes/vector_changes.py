"""Files of two versions that differ only in their deletion vectors."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from snapshot_explorer.formats.delta.changes.events import DeltaEvents, DeltaVectorDifference
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan
from snapshot_explorer.model import Split


def identity_without_vector(split: Split) -> Hashable | None:
    """Return a value that is equal for splits of one file that differ at most in vector and row ids; else None."""
    plan = split.detail
    if not isinstance(plan, DeltaPlan) or len(plan.files) != 1:
        return None
    return tuple(sorted(split.partition.items())), plan.files[0].path, plan.schema


def stored_rows(split: Split) -> Split | None:
    """Return a split of the rows of a file without its vector; None for other splits."""
    plan = split.detail
    if not isinstance(plan, DeltaPlan) or len(plan.files) != 1:
        return None
    files = (replace(plan.files[0], vector=None),)
    return replace(split, raw=True, counted=None, detail=replace(plan, files=files))


def identity_in(split: Split, columns: Sequence[str | None]) -> Hashable | None:
    """Return a value that is equal for splits of one file whose rows are equal in these columns; else None.

    The schemas of the versions may differ: a column is read as the file has it, by its name there or its id. A column
    that is None represents nulls.
    """
    plan = split.detail
    if not isinstance(plan, DeltaPlan) or len(plan.files) != 1:
        return None
    read: list[Hashable] = []
    for name in columns:
        if name is None:
            read.append(None)
            continue
        field = plan.schema.field(name)
        key = field.id if plan.schema.mode == "id" and name not in plan.schema.partition_columns else field.stored
        is_partition = name in plan.schema.partition_columns
        read.append((key, is_partition, field.type, field.changes))
    # The names of partition columns may differ, their order may not.
    values = tuple(split.partition.values())
    return values, plan.files[0].path, plan.files[0].vector, tuple(read)


def columns_added_since(schema: DeltaSchema, other: DeltaSchema) -> frozenset[str]:
    """Return the columns whose ids are greater than any that a table had at another version.

    None of its files has them: ids are given out once. Empty where column mapping is not enabled in both.

    Source: delta PROTOCOL.md, "Column Mapping", delta.columnMapping.maxColumnId.
    """
    if other.greatest_id is None or "none" in (schema.mode, other.mode):
        return frozenset()
    return frozenset(field.name for field in schema.fields if field.id is not None and field.id > other.greatest_id)


def rows_deleted(version: int, before: Split, after: Split) -> Split | None:
    """Return a split of the rows that the vector of `before` does not delete, and that of `after` does.

    None if there are none. Reads nothing.
    """
    plan, later = before.detail, after.detail
    if not (isinstance(plan, DeltaPlan) and isinstance(later, DeltaPlan)):
        return None
    (file,), (other,) = plan.files, later.files
    if other.vector is None or other.vector == file.vector:
        return None
    events = DeltaEvents(
        files=before,
        change="delete",
        version=version,
        committed_at=None,
        columns=tuple(field.name for field in plan.schema.fields),
        vector_difference=DeltaVectorDifference(
            path=file.path, rows=file.rows, deleted_by=other.vector, not_deleted_by=file.vector
        ),
    )
    return replace(before, raw=False, rows=other.vector.cardinality, counted=None, detail=events)
