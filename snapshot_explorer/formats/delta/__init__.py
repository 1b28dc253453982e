"""Delta Lake tables. `table` has its history, `version` one version; `features` lists what is read and refused."""

from snapshot_explorer.formats.delta.table import Delta

__all__ = ["Delta"]
