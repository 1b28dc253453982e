"""The history of rows: each state that rows had, with the versions that have it. Each file is read once."""

from snapshot_explorer.analysis.row_history.history import row_history
from snapshot_explorer.analysis.row_history.history_result import RowHistory, RowHistoryPlan, RowHistoryRequest

__all__ = ["RowHistory", "RowHistoryPlan", "RowHistoryRequest", "row_history"]
