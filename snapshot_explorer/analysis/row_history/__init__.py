"""The history of rows: each state that rows had, with the versions that have it. Each file is read once.

Blame and the single pass of bisection in `analysis.rows`, and periods in SQL, are questions to it.
"""

from snapshot_explorer.analysis.row_history.continuation import RowStates, equal_groups
from snapshot_explorer.analysis.row_history.history import HistoryReader, plan_row_history
from snapshot_explorer.analysis.row_history.history_result import RowHistory, RowHistoryPlan, RowHistoryRequest
from snapshot_explorer.analysis.row_history.planning import SplitHistory
from snapshot_explorer.analysis.row_history.reading import HistoryScan, each_state, read_states
from snapshot_explorer.analysis.row_history.spark_history import collected_from, history_by, row_history

__all__ = [
    "HistoryReader",
    "HistoryScan",
    "RowHistory",
    "RowHistoryPlan",
    "RowHistoryRequest",
    "RowStates",
    "SplitHistory",
    "collected_from",
    "each_state",
    "equal_groups",
    "history_by",
    "plan_row_history",
    "read_states",
    "row_history",
]
