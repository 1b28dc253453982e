"""What a retention rule would delete from a table, what prevents other deletions, and which versions are readable."""

from snapshot_explorer.retention.readability import KnownReadability, readability_frame, with_readability
from snapshot_explorer.retention.report import Retention, retention_of

__all__ = ["KnownReadability", "Retention", "readability_frame", "retention_of", "with_readability"]
