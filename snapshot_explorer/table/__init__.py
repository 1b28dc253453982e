"""What users hold: `open_table`, `Table`, `Snapshot`; in `queries/` SQL over versions, in `catalogs/` tables by name.

Each method is one call into `history` or `analysis`: no answer is computed here. Several tables at once are in `lake`.
"""

from snapshot_explorer.table.opening import open_found, open_in_catalog_file, open_table
from snapshot_explorer.table.snapshot import Snapshot, parts_of
from snapshot_explorer.table.table import Table, card_of, read_overview

__all__ = [
    "Snapshot",
    "Table",
    "card_of",
    "open_found",
    "open_in_catalog_file",
    "open_table",
    "parts_of",
    "read_overview",
]
