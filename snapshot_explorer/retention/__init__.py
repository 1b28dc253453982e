"""What a retention rule would delete from a table, what prevents other deletions, and which files are there."""

from snapshot_explorer.retention.readability import KnownReadability, readability_frame, with_readability
from snapshot_explorer.retention.report import Retention, retention_of
from snapshot_explorer.retention.verification import LEVELS, Level, Verification, verify

__all__ = [
    "LEVELS",
    "KnownReadability",
    "Level",
    "Retention",
    "Verification",
    "readability_frame",
    "retention_of",
    "verify",
    "with_readability",
]
