"""The engines that load rows, and how much they read without confirmation."""

from snapshot_explorer.table.cost import ReadLimits

ENGINES = ("pandas", "arrow", "spark")
"""The engines that load rows."""
DEFAULT_LIMITS = ReadLimits(rows=1_000_000, size_bytes=1_000_000_000)
"""The limits unless `%config` sets others."""
