"""The effect of a retention rule on a table, the reasons that prevent deletions, and checks of existing files.

The rules of each format are in its `expiry/`. Nothing is deleted.
"""

from snapshot_explorer.analysis.retention.orphans import Orphans, find_orphans
from snapshot_explorer.analysis.retention.readability import read_readability
from snapshot_explorer.analysis.retention.report import Retention, retention_of
from snapshot_explorer.analysis.retention.verification import LEVELS, Level, Verification, VerifiedFiles, verify

__all__ = [
    "LEVELS",
    "Level",
    "Orphans",
    "Retention",
    "Verification",
    "VerifiedFiles",
    "find_orphans",
    "read_readability",
    "retention_of",
    "verify",
]
