"""What is drawn of a row history and of its plan."""

import pyarrow as pa

from snapshot_explorer.analysis.row_history import RowHistory, RowHistoryPlan
from snapshot_explorer.results import non_empty_columns
from snapshot_explorer.view.dispatch import draw
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Pairs, fact_line

_DRAWN_ROWS = 20
_PERIOD = 4
"""The columns of ROW_HISTORY, which are the last ones of a row history."""


@draw.register
def _plan(plan: RowHistoryPlan) -> Drawing:
    notes = [Line(note) for note in plan.notes]
    facts = Pairs((*_facts(plan), ("call", Code(plan.call))))
    return Drawing(title=f"{plan.title}, not read", parts=(*notes, Line(f"Reads {plan.reading}."), facts))


@draw.register
def _history(history: RowHistory) -> Drawing:
    """Return the first states as a drawing, the versions before the columns of the rows."""
    plan = history.plan
    grid = Grid(_drawn(history.head(_DRAWN_ROWS)), total=len(history), noun="states of rows", limit=_DRAWN_ROWS)
    notes = [Line(note) for note in plan.notes]
    return Drawing(
        title=plan.title,
        parts=(*notes, grid, fact_line([*_facts(plan), ("read", plan.reading)]), Code(plan.call)),
    )


def _facts(plan: RowHistoryPlan) -> list[tuple[str, object]]:
    return [("format", plan.format), ("versions", plan.span)]


def _drawn(rows: pa.Table) -> pa.Table:
    """Return states with the versions first, and with the times that are known."""
    count = rows.num_columns
    period = list(range(count - _PERIOD, count))
    known = non_empty_columns(rows.select(period[2:]))
    times = [index for index in period[2:] if rows.column_names[index] in known]
    return rows.select([*period[:2], *times, *range(count - _PERIOD)])
