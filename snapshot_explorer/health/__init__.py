"""Table health: file sizes, small files, skew, deletes, sorted runs and manifests, also over versions."""

from snapshot_explorer.health.over_time import health_history
from snapshot_explorer.health.result import Health, read_health

__all__ = ["Health", "health_history", "read_health"]
