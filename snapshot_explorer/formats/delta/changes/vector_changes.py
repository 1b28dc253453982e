"""Files of two versions that differ only in their deletion vectors."""

from collections.abc import Hashable
from dataclasses import replace

from snapshot_explorer.formats.delta.changes.events import Events, VectorDifference
from snapshot_explorer.formats.delta.scan.plans import Plan
from snapshot_explorer.model import Split


def identity_without_vector(split: Split) -> Hashable | None:
    """Return a value that is equal for splits of one file that differ at most in vector and row ids; else None."""
    plan = split.detail
    if not isinstance(plan, Plan) or len(plan.files) != 1:
        return None
    return tuple(sorted(split.partition.items())), plan.files[0].path, plan.schema


def rows_deleted(version: int, before: Split, after: Split) -> Split | None:
    """Return a split of the rows that the vector of `before` does not delete, and that of `after` does.

    None if there are none. Reads nothing.

    Args:
        version: The version of `before`.
        before: A split of one file.
        after: A split of the same file.
    """
    plan, later = before.detail, after.detail
    if not (isinstance(plan, Plan) and isinstance(later, Plan)):
        return None
    (file,), (other,) = plan.files, later.files
    if other.vector is None or other.vector == file.vector:
        return None
    events = Events(
        files=before,
        change="delete",
        version=version,
        committed_at=None,
        columns=tuple(field.name for field in plan.schema.fields),
        vector_difference=VectorDifference(
            path=file.path, rows=file.rows, deleted_by=other.vector, not_deleted_by=file.vector
        ),
    )
    return replace(before, raw=False, rows=other.vector.cardinality, counted=None, detail=events)
