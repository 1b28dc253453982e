"""Many tables at one instant: their overview, their versions at a time, and what changed in all of them."""

from snapshot_explorer.lake.lake import Lake, open_lake
from snapshot_explorer.lake.tables import LakeTable

__all__ = ["Lake", "LakeTable", "open_lake"]
