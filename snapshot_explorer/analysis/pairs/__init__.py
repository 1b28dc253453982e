"""Row diffs of two tables: paired columns, proofs from metadata, and plans.

Rows are read and compared by `analysis.diff`; `lake.pair_diff` has the public functions.
"""

from snapshot_explorer.analysis.pairs.given_sides import given_side
from snapshot_explorer.analysis.pairs.pair_plan import PairRequest, PairSide, plan_pair
from snapshot_explorer.analysis.pairs.three_way import three_way_diff
from snapshot_explorer.analysis.pairs.three_way_result import MergeStatement, ThreeWayDiff

__all__ = [
    "MergeStatement",
    "PairRequest",
    "PairSide",
    "ThreeWayDiff",
    "given_side",
    "plan_pair",
    "three_way_diff",
]
