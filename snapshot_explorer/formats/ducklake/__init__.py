"""DuckLake tables."""

from snapshot_explorer.formats.ducklake.table import DuckLake

__all__ = ["DuckLake"]
