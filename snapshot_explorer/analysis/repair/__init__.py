"""Repair plans: the statement for the user's engine that puts back rows of an earlier version. Nothing is run.

Which rows differ is decided in `analysis.diff`.
"""

from snapshot_explorer.analysis.repair.commit_rows import count_deleted_among
from snapshot_explorer.analysis.repair.erasing import ErasureStatements, erasure_statements
from snapshot_explorer.analysis.repair.merging import merge_statement
from snapshot_explorer.analysis.repair.planning import plan_repair
from snapshot_explorer.analysis.repair.repair import Repair
from snapshot_explorer.analysis.repair.request import RepairRequest, restored_version

__all__ = [
    "ErasureStatements",
    "Repair",
    "RepairRequest",
    "count_deleted_among",
    "erasure_statements",
    "merge_statement",
    "plan_repair",
    "restored_version",
]
