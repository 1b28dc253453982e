"""Which rows changed when: blame, bisection, traces, and keys that several rows have.

Two versions are compared in `analysis.diff`; all states of rows are read in `analysis.row_history`.
"""

from snapshot_explorer.analysis.rows.bisection import bisect
from snapshot_explorer.analysis.rows.bisection_result import Bisection, BisectionReading
from snapshot_explorer.analysis.rows.blame import blame
from snapshot_explorer.analysis.rows.blame_result import Blame, BlameRequest
from snapshot_explorer.analysis.rows.duplicates import duplicate_key_versions, duplicates
from snapshot_explorer.analysis.rows.trace import METADATA, MISSING, READ, UNREADABLE_FILE
from snapshot_explorer.analysis.rows.trace_result import Trace, drawn_columns, trace

__all__ = [
    "METADATA",
    "MISSING",
    "READ",
    "UNREADABLE_FILE",
    "Bisection",
    "BisectionReading",
    "Blame",
    "BlameRequest",
    "Trace",
    "bisect",
    "blame",
    "drawn_columns",
    "duplicate_key_versions",
    "duplicates",
    "trace",
]
