"""Apache Hudi tables."""

from snapshot_explorer.formats.hudi.table import Hudi

__all__ = ["Hudi"]
