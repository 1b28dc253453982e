"""The history of rows on Spark: executors read the splits, and join the states of each bucket of hashes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.diff import memory_bytes
from snapshot_explorer.analysis.row_history.continuation import RowStates, joined_states, states_of, states_schema
from snapshot_explorer.analysis.row_history.history import HELD_BYTES, HistoryReader
from snapshot_explorer.analysis.row_history.history_result import HistoryStates, RowHistory, stored_schema
from snapshot_explorer.analysis.row_history.reading import (
    HistoryScan,
    each_state,
    turning_positions,
)
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_batch, spark_schema
from snapshot_explorer.engines.spark.tasks import (
    PAYLOADS,
    collect,
    exchange,
    ipc_bytes,
    messages_of,
    on_executors,
    pack_items,
    received,
)
from snapshot_explorer.results.stored_rows import StoredRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.analysis.row_history.history import Periods
    from snapshot_explorer.analysis.row_history.history_result import RowHistoryPlan, RowHistoryRequest
    from snapshot_explorer.analysis.row_history.planning import SplitHistory
    from snapshot_explorer.core.records import Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.history import History

_Item = TypeVar("_Item")

_BUCKET_BYTES = 32 * 2**20
"""Compressed size of the files whose states one task joins."""


def row_history(
    source: History,
    request: RowHistoryRequest,
    between: Sequence[int] | None = None,
    *,
    engine: str | SparkSession | None = None,
    memory_limit: int | None = None,
) -> RowHistory:
    """Return the states of rows; see `Table.row_history`. Arguments as for `plan_row_history`."""
    return history_by(engine, HistoryReader(source, request, between), memory_bytes(memory_limit))


def history_by(engine: str | SparkSession | None, reader: HistoryReader, memory_limit: int) -> RowHistory:
    """Return the states of rows, read by an engine: `local`, which is also None, `spark` or a session."""
    spark = sessions.session_of(engine, "read a row history")
    if spark is None:
        return reader.read(lambda plan: reader.history(plan, memory_limit))
    plan = reader.plan()
    return RowHistory(plan=plan, states=SparkStates(reader, plan, spark))


def collected_from(
    spark: SparkSession,
    function: Callable[[Sequence[_Item]], pa.Table],
    items: Sequence[_Item],
    split_of: Callable[[_Item], Split],
) -> list[pa.Table]:
    """Return the small results of a function of items, which executors call for a part of them at a time.

    Args:
        split_of: Returns the split that an item reads.
    """
    tasks = [tuple(part) for part in pack_items(items, split_of, sessions.parallelism(spark))]
    rows = collect(spark, on_executors(spark, partial(_payload_of, function), tasks, spark_schema(PAYLOADS)))
    return [pa.ipc.open_stream(bytes(row["payload"])).read_all() for row in rows]


def _payload_of(function: Callable[[Sequence[_Item]], pa.Table], items: Sequence[_Item]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_arrays([pa.array([ipc_bytes(function(items))], pa.binary())], schema=PAYLOADS)


class SparkStates(HistoryStates):
    """States that Spark computes: as a DataFrame, or collected at their first use."""

    def __init__(self, reader: HistoryReader, plan: RowHistoryPlan, spark: SparkSession) -> None:
        """Compute nothing yet."""
        scan = reader.scan(plan)
        self._plan = plan
        self._spark = spark
        self._shared = _Shared(
            columns=plan.columns,
            where=scan.where,
            periods=reader.periods(plan),
            turning=tuple(np.flatnonzero(turning_positions(scan)).tolist()),
        )

    @cached_property
    def _collected(self) -> HistoryStates:
        stored, count = StoredRows(stored_schema(self._plan.columns), limit_bytes=HELD_BYTES), 0
        with stored:
            for row in self._frame(_as_payload, None).toLocalIterator():
                part = pa.ipc.open_stream(bytes(row["payload"])).read_all()
                stored.add(part)
                count += len(part)
        return HistoryStates(stored, count)

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of states."""
        return self._collected.count

    def parts(self) -> Iterator[pa.Table]:
        return self._collected.parts()

    def to_spark(self) -> DataFrame:
        return self._frame(_as_rows, self._plan.schema)

    def _frame(
        self, result: Callable[[_Shared, pa.Table], Iterator[pa.RecordBatch]], schema: pa.Schema | None
    ) -> DataFrame:
        """Return the results of a function of states: of splits whose rows no other has, and of those joined."""
        shared, splits = self._shared, self._plan.splits
        at_once = sessions.parallelism(self._spark)
        types = spark_schema(PAYLOADS if schema is None else schema)
        turning = frozenset(shared.turning)
        joined = [item for item in splits if any({state.first, state.last} & turning for state in item.states)]
        alone = [item for item in splits if item not in joined] if joined else splits
        own = on_executors(self._spark, partial(_own_states, shared, result), _tasks(alone, at_once), types)
        if not joined:
            return own
        buckets = max(at_once, sum(item.split.size_bytes for item in joined) // _BUCKET_BYTES)
        send, join = partial(_messages, shared, buckets), partial(_joined_states, shared, result)
        return own.unionByName(exchange(self._spark, send, _tasks(joined, at_once), join, types))


def _tasks(splits: Sequence[SplitHistory], at_once: int) -> list[tuple[SplitHistory, ...]]:
    return [tuple(items) for items in pack_items(splits, lambda item: item.split, at_once)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What all tasks of a row history need. Picklable."""

    columns: pa.Schema
    where: Condition | None
    periods: Periods
    turning: tuple[int, ...]
    """The positions at which rows are continued, ascending."""

    def scan(self, splits: Sequence[SplitHistory]) -> HistoryScan:
        return HistoryScan(splits=splits, schema=self.columns, where=self.where, count=len(self.periods.numbers))


def _own_states(
    shared: _Shared,
    result: Callable[[_Shared, pa.Table], Iterator[pa.RecordBatch]],
    splits: Sequence[SplitHistory],
) -> Iterator[pa.RecordBatch]:
    """Yield the states of splits. Runs on executors."""
    for states in each_state(shared.scan(splits)):
        yield from result(shared, shared.periods.applied_to(states, stored_schema(shared.columns)))


def _messages(shared: _Shared, buckets: int, splits: Sequence[SplitHistory]) -> Iterator[pa.RecordBatch]:
    """Yield the states of splits by the hashes of their rows. Runs on executors."""
    for states in each_state(shared.scan(splits)):
        yield from messages_of(states.table(states_schema(shared.columns)), states.known_hashes, buckets)


def _joined_states(
    shared: _Shared,
    result: Callable[[_Shared, pa.Table], Iterator[pa.RecordBatch]],
    payloads: Sequence[bytes],
) -> Iterator[pa.RecordBatch]:
    """Yield the states of a bucket. Runs on executors."""
    tables = [pa.ipc.open_stream(payload).read_all() for payload in payloads]
    rows, hashes = received(tables, states_schema(shared.columns))
    joined: list[RowStates] = []
    joined_states(states_of(rows, hashes), shared.turning, joined.append)
    for states in joined:
        yield from result(shared, shared.periods.applied_to(states, stored_schema(shared.columns)))


def _as_payload(_: _Shared, states: pa.Table) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_arrays([pa.array([ipc_bytes(states)], pa.binary())], schema=PAYLOADS)


def _as_rows(_: _Shared, states: pa.Table) -> Iterator[pa.RecordBatch]:
    rows = states.select(list(range(states.num_columns - 1))).combine_chunks()
    schema = arrow_schema(rows.schema)
    for batch in rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]:
        yield spark_batch(batch.columns, schema)
