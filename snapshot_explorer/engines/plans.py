"""Scan plans as rows of the frame PLAN."""

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.model import ReadPlan


def plan_rows(plan: ReadPlan) -> pa.Table:
    """Return PLAN: one row per split that is read, then rows for what is skipped."""
    splits = plan.splits
    columns = {
        "partition": [tuple(split.partition.items()) for split in splits],
        "bucket": [split.bucket for split in splits],
        "raw": [split.raw for split in splits],
        "files": [len(split.files) for split in splits],
        "rows": [split.rows for split in splits],
        "size_bytes": [split.size_bytes for split in splits],
        "skipped": pa.nulls(len(splits), pa.string()),
    }
    rows = pa.table([pa.array(columns[field.name], field.type) for field in frames.PLAN], schema=frames.PLAN)
    skipped = plan.skipped()
    if not skipped.num_rows:
        return rows
    skipped = skipped.add_column(2, frames.PLAN.field("raw"), pa.nulls(skipped.num_rows, pa.bool_()))
    return pa.concat_tables([rows, skipped.cast(frames.PLAN)])
