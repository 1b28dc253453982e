"""Scan plans as rows of the frame PLAN."""

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.model import ReadPlan


def plan_rows(plan: ReadPlan) -> pa.Table:
    """Return PLAN: one row per split that is read, then rows for what is skipped."""
    read = [
        {
            "partition": list(split.partition.items()),
            "bucket": split.bucket,
            "raw": split.raw,
            "files": len(split.files),
            "rows": split.rows,
            "size_bytes": split.size_bytes,
        }
        for split in plan.splits
    ]
    rows = pa.Table.from_pylist(read, frames.PLAN)
    skipped = plan.skipped()
    if not skipped.num_rows:
        return rows
    skipped = skipped.add_column(2, frames.PLAN.field("raw"), pa.nulls(skipped.num_rows, pa.bool_()))
    return pa.concat_tables([rows, skipped.cast(frames.PLAN)])
