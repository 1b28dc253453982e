"""Apache Hudi tables. `table` has its history, `version` one version; `features` lists what is read and refused."""

from snapshot_explorer.formats.hudi.table import Hudi

__all__ = ["Hudi"]
