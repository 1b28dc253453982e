"""Rows through time: row diffs, blame, bisection and column profiles."""

from snapshot_explorer.analysis.diff.changed_splits import ChangedSplits, changed_splits, differing_splits
from snapshot_explorer.analysis.diff.comparison_rules import Tolerance
from snapshot_explorer.analysis.diff.diff import row_diff
from snapshot_explorer.analysis.diff.diff_plan import DiffRequest, RowDiffPlan, plan_diff
from snapshot_explorer.analysis.diff.diff_result import RowDiff
from snapshot_explorer.analysis.diff.spark_diff import row_diff_by
from snapshot_explorer.analysis.pairs.pair_plan import PairRequest, PairSide, plan_pair
from snapshot_explorer.analysis.profile.anomalies import AnomalyRules
from snapshot_explorer.analysis.profile.profiles import Profile, profile_over, table_anomalies
from snapshot_explorer.analysis.rows.bisection import bisect
from snapshot_explorer.analysis.rows.bisection_result import Bisection, BisectionReading
from snapshot_explorer.analysis.rows.blame import blame
from snapshot_explorer.analysis.rows.blame_result import Blame, BlameRequest
from snapshot_explorer.analysis.rows.duplicates import duplicate_key_versions
from snapshot_explorer.analysis.rows.trace_result import Trace, trace

__all__ = [
    "AnomalyRules",
    "Bisection",
    "BisectionReading",
    "Blame",
    "BlameRequest",
    "ChangedSplits",
    "DiffRequest",
    "PairRequest",
    "PairSide",
    "Profile",
    "RowDiff",
    "RowDiffPlan",
    "Tolerance",
    "Trace",
    "bisect",
    "blame",
    "changed_splits",
    "differing_splits",
    "duplicate_key_versions",
    "plan_diff",
    "plan_pair",
    "profile_over",
    "row_diff",
    "row_diff_by",
    "table_anomalies",
    "trace",
]
