"""Table health: file sizes, small files, skew, deletes, sorted runs, manifests, also over versions; its rhythm.

What clean-up would delete is in `analysis.retention`; rules with an exit status are in `analysis.checks`.
"""

from snapshot_explorer.analysis.health.over_time import health_history
from snapshot_explorer.analysis.health.result import Health, read_health
from snapshot_explorer.analysis.health.rhythm import RHYTHM_COMMITS, RHYTHM_RULE, Pace, Rhythm, rhythm, span

__all__ = [
    "RHYTHM_COMMITS",
    "RHYTHM_RULE",
    "Health",
    "Pace",
    "Rhythm",
    "health_history",
    "read_health",
    "rhythm",
    "span",
]
