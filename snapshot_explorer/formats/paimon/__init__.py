"""Apache Paimon tables. `table` has its history, `version` one version; `features` lists what is read and refused."""

from snapshot_explorer.formats.paimon.table import Paimon

__all__ = ["Paimon"]
