"""When each data file of a table was added and removed, from one pass over its log.

Which rows the files have is not looked at.
"""

from snapshot_explorer.history.lifetimes.facts import FileFacts
from snapshot_explorer.history.lifetimes.index import FileLifetimes
from snapshot_explorer.history.lifetimes.reading import (
    delete_manifests,
    despite_expiry,
    fingerprint_of,
    keep_lifetimes,
    read_lifetimes,
    time_of,
)
from snapshot_explorer.history.lifetimes.statistics import FileStatistics, read_statistics

__all__ = [
    "FileFacts",
    "FileLifetimes",
    "FileStatistics",
    "delete_manifests",
    "despite_expiry",
    "fingerprint_of",
    "keep_lifetimes",
    "read_lifetimes",
    "read_statistics",
    "time_of",
]
