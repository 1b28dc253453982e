"""Checks for scripts: rules on the recent commits of one table or of many, with an exit status.

The numbers come from `analysis.health`, `analysis.profile`, `analysis.rows` and the log.
"""

from snapshot_explorer.analysis.checks.evaluation import check_table, failed_opening
from snapshot_explorer.analysis.checks.result import CheckLine, CheckResult
from snapshot_explorer.analysis.checks.settings import CheckSettings, check_settings, matches

__all__ = [
    "CheckLine",
    "CheckResult",
    "CheckSettings",
    "check_settings",
    "check_table",
    "failed_opening",
    "matches",
]
