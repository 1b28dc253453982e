"""Row diffs: which rows differ between two versions, read, compared and returned.

Two tables are paired in `analysis.pairs`, which uses these plans; differences in metadata are in `analysis.compare`.
"""

from snapshot_explorer.analysis.diff.changed_splits import changed_splits
from snapshot_explorer.analysis.diff.comparison_rules import Tolerance
from snapshot_explorer.analysis.diff.counted_commits import count_rows, keep_counts
from snapshot_explorer.analysis.diff.diff import row_diff
from snapshot_explorer.analysis.diff.diff_plan import DiffRequest, RowDiffPlan, plan_diff
from snapshot_explorer.analysis.diff.diff_result import RowDiff
from snapshot_explorer.analysis.diff.spark_diff import row_diff_by

__all__ = [
    "DiffRequest",
    "RowDiff",
    "RowDiffPlan",
    "Tolerance",
    "changed_splits",
    "count_rows",
    "keep_counts",
    "plan_diff",
    "row_diff",
    "row_diff_by",
]
