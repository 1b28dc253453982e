"""How two versions of a table differ: manifests, files, schema, properties, partitions."""

from snapshot_explorer.compare.comparison import PARTS, Comparison

__all__ = ["PARTS", "Comparison"]
