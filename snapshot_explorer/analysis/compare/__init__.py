"""Compare two versions of a table: manifests, files, schema, properties, partitions.

From metadata alone: rows are compared in `analysis.diff`.
"""

from snapshot_explorer.analysis.compare.comparison import EMPTY_TEXTS, PARTS, Comparison
from snapshot_explorer.analysis.compare.manifests import entries_of, find_manifest

__all__ = ["EMPTY_TEXTS", "PARTS", "Comparison", "entries_of", "find_manifest"]
