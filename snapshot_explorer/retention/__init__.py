"""What a retention rule would delete from a table, what prevents other deletions, and which versions are readable."""

from snapshot_explorer.retention.readability import readability_frame
from snapshot_explorer.retention.report import Retention, retention_of

__all__ = ["Retention", "readability_frame", "retention_of"]
