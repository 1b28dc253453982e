"""Apache Iceberg tables, read by path from their metadata files, without a catalog.

`table` has its history, `version` one version; `features` lists what is read and refused.
"""

from snapshot_explorer.formats.iceberg.table import Iceberg

__all__ = ["Iceberg"]
