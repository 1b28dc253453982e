"""The history of rows: each state that rows had, with the versions that have it. Each file is read once."""

from snapshot_explorer.analysis.row_history.history import plan_row_history, row_history
from snapshot_explorer.analysis.row_history.history_result import RowHistory, RowHistoryPlan, RowHistoryRequest

__all__ = ["RowHistory", "RowHistoryPlan", "RowHistoryRequest", "plan_row_history", "row_history"]
