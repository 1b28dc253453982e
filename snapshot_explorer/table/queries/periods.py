"""Periods in a query: `for system_time all`, `from A to B` and `between A and B`, as SQL:2011 has them.

They read the row history: each state of a row with the versions that have it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.row_history import RowHistoryPlan, RowHistoryRequest, plan_row_history, row_history
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.refs import AsOf, Ref
from snapshot_explorer.engines import sql as duckdb_sql
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.history import History, WithPast, history_of
from snapshot_explorer.table.queries.tokens import Token, parse_point, period_words, position_of

_PERIOD_COLUMNS = 4
"""The columns of a row history behind the columns of the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Which states of rows a query reads."""

    first: Ref | None = None
    """The version from which on states count; None for the first one."""
    last: Ref | None = None
    """The version up to which states count; None for the newest one."""
    kind: Literal["all", "from", "between"] = "all"
    """Whether `last` counts too: `between`, not `from`."""
    size: int
    """The number of tokens of the clause, without spaces and comments."""


def parse_period(query: str, following: Sequence[Token], now: datetime) -> Period | None:
    """Return the period at the start of the tokens after a table name, or None."""
    words = period_words(following)
    if words is None:
        return None
    by_time, kind = words
    if not kind:
        begin = following[1].text
        where = position_of(query, following[2].start if len(following) > 2 else len(query))  # noqa: PLR2004 - for it
        raise InvalidArgumentError(
            f"FOR {begin} needs a version or a period{where}: as of '2026-11-01', all, from A to B, or between A and B."
        )
    if kind == "ALL":
        return Period(size=3)
    first, at = parse_point(query, following, 3, by_time=by_time, now=now)
    between = "TO" if kind == "FROM" else "AND"
    if at >= len(following) or following[at].keyword != between:
        where = position_of(query, following[at].start if at < len(following) else len(query))
        raise InvalidArgumentError(f"{kind} needs a second version after {between}{where}: {kind} A {between} B.")
    last, end = parse_point(query, following, at + 1, by_time=by_time, now=now)
    return Period(first=first, last=last, kind="from" if kind == "FROM" else "between", size=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStates:
    """The states of rows of a table in a period."""

    relation: duckdb_sql.Relation
    plan: Callable[[str | None], RowHistoryPlan]
    """Returns what is read for a condition; None for all states."""


def row_states(table: WithPast, name: str, period: Period) -> RowStates:
    """Return the states of rows of a table in a period. Plans the history; opens no data file until rows are read."""
    source = history_of(table).with_newest_state(is_newest_state=True)
    plan = plan_row_history(source, RowHistoryRequest())
    read = partial(_read, source, plan, _bounds(source, period))
    relation = duckdb_sql.Relation(
        what=f"{name} for system_time {period.kind}",
        schema=plan.schema,
        read=lambda columns, where, _: read(where).select(list(columns)),
        count=lambda: len(read(None)),
    )
    return RowStates(relation=relation, plan=lambda where: plan_row_history(source, _request(plan, where)))


def _request(plan: RowHistoryPlan, where: str | None) -> RowHistoryRequest:
    """Return the request of the states whose rows match a condition, as far as it is about the columns of the rows."""
    own = None if where is None else parse_condition(where, plan.schema).on(frozenset(plan.columns.names))
    return RowHistoryRequest(where=None if own is None else own.text)


def _read(
    source: History, plan: RowHistoryPlan, is_in_period: Callable[[pa.Table], pa.Array], where: str | None
) -> pa.Table:
    """Return the states that match a condition in a period. States are of all columns, whichever are selected."""
    history = row_history(source, _request(plan, where))
    parts = [part.filter(is_in_period(part)) for part in history.tables()]
    return pa.concat_tables([history.schema.empty_table(), *parts])


def _bounds(source: History, period: Period) -> Callable[[pa.Table], pa.Array]:
    """Return a function that returns for each state whether it is in the period."""
    first = None if period.first is None else _version(source, period.first)
    last = None if period.last is None else _version(source, period.last)
    includes_last = period.kind == "between"
    if last is not None and isinstance(period.last, AsOf) and not includes_last:
        # The last version before that time is there up to it.
        includes_last = source.committed_at([last])[0] < period.last.time

    def is_in_period(states: pa.Table) -> pa.Array:
        begins, ends = (np.asarray(states.column(states.num_columns - at).fill_null(_OPEN)) for at in (4, 3))
        mask = np.ones(len(states), np.bool_)
        if first is not None:
            mask &= ends > first
        if last is not None:
            mask &= begins <= last if includes_last else begins < last
        return pa.array(mask)

    return is_in_period


_OPEN = np.iinfo(np.int64).max


def _version(source: History, ref: Ref) -> int:
    number = source.version_of(ref)
    if number is None:
        raise UnsupportedFeatureError("A table without versions has no states of rows.")
    return number
