"""Rows through time: which splits and rows differ between versions."""

from snapshot_explorer.rows.changed_splits import ChangedSplits, changed_splits, differing_splits
from snapshot_explorer.rows.diff import row_diff
from snapshot_explorer.rows.diff_plan import DiffRequest, RowDiffPlan, plan_diff
from snapshot_explorer.rows.row_diff import RowDiff
from snapshot_explorer.rows.spark_diff import spark_row_diff

__all__ = [
    "ChangedSplits",
    "DiffRequest",
    "RowDiff",
    "RowDiffPlan",
    "changed_splits",
    "differing_splits",
    "plan_diff",
    "row_diff",
    "spark_row_diff",
]
