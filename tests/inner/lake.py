"""The names of inner modules of `lake` that tests use."""

from snapshot_explorer.lake.discovery import find_tables
from snapshot_explorer.lake.overview import LakeOverview
from snapshot_explorer.lake.table_twins import Twins
