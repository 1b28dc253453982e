"""Evaluate a condition at every version from the row history: each data file is read once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.diff import memory_bytes
from snapshot_explorer.analysis.row_history import (
    HistoryReader,
    collected_from,
    each_state,
    read_states,
)
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.formats.unread_versions import read_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.row_history import (
        HistoryScan,
        RowHistoryPlan,
        RowHistoryRequest,
        RowStates,
        SplitHistory,
    )
    from snapshot_explorer.core.errors import SnapshotExplorerError
    from snapshot_explorer.engines.aggregates import PartialCondition
    from snapshot_explorer.history import History

_HELD_BYTES = 64 * 2**20
"""Bytes of rows that are aggregated at once."""


class SinglePass:
    """The states of rows from which a condition is evaluated at every version; made by `single_pass`."""

    def __init__(self, reader: HistoryReader, versions: Sequence[int], condition: PartialCondition | None) -> None:
        """Plan what is read.

        Args:
            condition: The condition on all rows of a version; None if it holds where a row matches the reader's.
        """
        plan = reader.plan()
        self.files, self.size_bytes = plan.files, plan.size_bytes
        self._reader = reader
        self._versions = versions
        self._condition = condition

    def holds(
        self, engine: str | SparkSession | None = None
    ) -> tuple[list[bool | None], dict[int, SnapshotExplorerError]]:
        """Return whether the condition holds at each version, None where it cannot be read; and why it cannot.

        Args:
            engine: Reads the rows; as in `history_by`.
        """
        spark = sessions.session_of(engine, "evaluate a condition at every version")
        reader = self._reader
        answers = reader.read(self._answers) if spark is None else self._answers_of_spark(spark, reader.plan())
        return [answers.get(version) for version in self._versions], dict(self._reader.unreadable)

    def _answers(self, plan: RowHistoryPlan) -> dict[int, bool]:
        # Which rows are equal makes no difference here.
        scan = self._reader.scan(plan, are_joined=False)
        parts = _Parts(self._condition, scan)
        read_states(scan, parts.add, memory_limit=memory_bytes(None))
        return _answers(self._condition, [parts.table()], plan)

    def _answers_of_spark(self, spark: SparkSession, plan: RowHistoryPlan) -> dict[int, bool]:
        scan = self._reader.scan(plan, are_joined=False)
        aggregates = partial(_table_of, self._condition, replace(scan, splits=()))
        tables = collected_from(spark, aggregates, plan.splits, attrgetter("split"))
        return _answers(self._condition, [_Parts(self._condition, scan).table(), *tables], plan)


def _table_of(condition: PartialCondition | None, scan: HistoryScan, splits: Sequence[SplitHistory]) -> pa.Table:
    """Return the aggregates of the rows of splits. Runs on executors."""
    parts = _Parts(condition, scan)
    for states in each_state(replace(scan, splits=splits)):
        parts.add(states)
    return parts.table()


def _answers(condition: PartialCondition | None, tables: Sequence[pa.Table], plan: RowHistoryPlan) -> dict[int, bool]:
    """Return whether a condition holds at each version of a plan, from the aggregates of all rows."""
    table, count = pa.concat_tables(tables), len(plan.versions)
    ranges, parts = np.unique(table.column(0).to_numpy(), return_inverse=True)
    first, last = ranges // (count + 1), ranges % (count + 1)
    if condition is None:
        matching = np.zeros(count + 1, np.int64)
        np.add.at(matching, first, 1)
        np.add.at(matching, last, -1)
        holds = (np.cumsum(matching)[:-1] > 0).tolist()
    else:
        table = table.set_column(0, table.field(0), pa.array(parts.astype(np.int64)))
        holds = condition.over(table, first, last, count)
    return dict(zip(plan.versions, holds, strict=True))


class _Parts:
    """The aggregates of the rows that have the same range of versions, from states of rows."""

    def __init__(self, condition: PartialCondition | None, scan: HistoryScan) -> None:
        self._condition = condition
        self._count = scan.count
        self._part = "part"
        while self._part in {name.lower() for name in scan.schema.names}:
            self._part += "_"
        self._schema = scan.schema.append(pa.field(self._part, pa.int64()))
        self._ranges = np.zeros(0, np.int64)
        self._rows: list[pa.Table] = []
        self._aggregates: list[pa.Table] = []
        self._held = 0

    def add(self, states: RowStates) -> None:
        """Add rows with their ranges of versions."""
        ranges = states.first * (self._count + 1) + states.last
        if self._condition is None:
            self._ranges = np.union1d(self._ranges, ranges)
            return
        part = pa.array(ranges)
        self._rows.append(pa.Table.from_arrays([*states.rows.columns, part], schema=self._schema))
        self._held += states.rows.nbytes + part.nbytes
        if self._held > _HELD_BYTES:
            self._aggregate(self._condition)

    def _aggregate(self, condition: PartialCondition) -> None:
        rows = pa.concat_tables([self._schema.empty_table(), *self._rows])
        self._aggregates.append(condition.of_parts(rows, self._part))
        self._rows, self._held = [], 0

    def table(self) -> pa.Table:
        """Return the ranges, each as one number, with the aggregates of rows; a range may occur several times."""
        if self._condition is None:
            return pa.table({"part": self._ranges})
        self._aggregate(self._condition)
        return pa.concat_tables(self._aggregates)


def single_pass(
    source: History,
    versions: Sequence[int],
    request: RowHistoryRequest,
    condition: PartialCondition | None,
    *,
    max_plans: int | None,
) -> SinglePass | str:
    """Return the pass over the rows of versions, or why it may not be exact. Opens no data file.

    Reads the log once, and plans a few versions that have every file.

    Args:
        request: The columns of the condition; with the condition itself, if it is on each row.
        max_plans: The maximum number of versions to plan; None for any.
    """
    columns = request.columns or ()
    readable = read_apart(source.schemas, versions, source.format.storage)
    if readable.unread:
        return "some versions cannot be read"
    of_each = [
        {(column.id, column.name, column.type) for column in schema.columns if column.name in columns}
        for _, part in readable.parts
        for schema in part
    ]
    if any(item != of_each[-1] or len(item) != len(columns) for item in of_each):
        return "a column of the condition was added, renamed or had another type"
    reader = HistoryReader(source, request, versions, without_columns=not columns)
    if not set(versions) <= set(reader.affected.lifetimes.versions):
        return "the files of some versions are not known"
    if max_plans is not None and reader.plans > max_plans:
        return f"{reader.plans:,} versions would be planned, so that each file is in one of them"
    return SinglePass(reader, versions, condition)
