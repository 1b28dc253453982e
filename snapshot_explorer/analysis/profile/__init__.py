"""Numbers of columns over versions, and the versions at which the numbers jump.

From the statistics in metadata, and from rows only on request. Health of files is in `analysis.health`.
"""

from snapshot_explorer.analysis.profile.anomalies import AnomalyRules, jumps
from snapshot_explorer.analysis.profile.column_numbers import read_totals
from snapshot_explorer.analysis.profile.profiles import Profile, profile_over, table_anomalies, unrecorded_columns

__all__ = [
    "AnomalyRules",
    "Profile",
    "jumps",
    "profile_over",
    "read_totals",
    "table_anomalies",
    "unrecorded_columns",
]
