"""Apache Paimon tables."""

from snapshot_explorer.formats.paimon.table import Paimon

__all__ = ["Paimon"]
