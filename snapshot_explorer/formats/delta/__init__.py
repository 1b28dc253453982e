"""Delta Lake tables."""

from snapshot_explorer.formats.delta.table import Delta

__all__ = ["Delta"]
