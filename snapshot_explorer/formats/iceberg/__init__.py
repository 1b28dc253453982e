"""Apache Iceberg tables, read by path from their metadata files, without a catalog."""

from snapshot_explorer.formats.iceberg.table import Iceberg

__all__ = ["Iceberg"]
