"""What a rule of retention would take from a table and what holds the rest, and which versions can still be loaded."""

from snapshot_explorer.retention.readability import readability_frame
from snapshot_explorer.retention.report import Retention, retention_of

__all__ = ["Retention", "readability_frame", "retention_of"]
