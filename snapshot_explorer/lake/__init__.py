"""Many tables at one instant: their overview, their versions at a time, and the changes in all of them.

A question about one table is in `analysis`; here are its answers for many, and the rows in which two tables differ.
"""

from snapshot_explorer.lake.changes import LakeChanges
from snapshot_explorer.lake.following import LakeFollower
from snapshot_explorer.lake.instant import LakeSnapshot
from snapshot_explorer.lake.lake import Lake, check, open_lake, open_tables, overview_request, overview_rows
from snapshot_explorer.lake.tables import LakeTable
from snapshot_explorer.lake.tracing import LakeTrace

__all__ = [
    "Lake",
    "LakeChanges",
    "LakeFollower",
    "LakeSnapshot",
    "LakeTable",
    "LakeTrace",
    "check",
    "open_lake",
    "open_tables",
    "overview_request",
    "overview_rows",
]
