"""Rows through time: which splits and rows differ between versions."""

from snapshot_explorer.rows.changed_splits import ChangedSplits, changed_splits, differing_splits

__all__ = ["ChangedSplits", "changed_splits", "differing_splits"]
