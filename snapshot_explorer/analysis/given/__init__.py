"""Rows that belong to no table, read like a version: DataFrames, Arrow data and plain files.

Tables of the formats are read by `formats`; `analysis.pairs` compares such rows with a version's rows.
"""

from snapshot_explorer.analysis.given.data_frames import is_rows
from snapshot_explorer.analysis.given.file_names import KNOWN_ENDINGS
from snapshot_explorer.analysis.given.plain_files import read_plain_file

__all__ = ["KNOWN_ENDINGS", "is_rows", "read_plain_file"]
