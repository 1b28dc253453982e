"""Row diffs on Spark: executors read the splits, and compare the rows of each bucket of hashes as one machine does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_rows import changes_schema, compare_rows
from snapshot_explorer.analysis.diff.diff import SideReader, raise_repeated, row_diff
from snapshot_explorer.analysis.diff.diff_result import ChangedRows, DiffRows, RowDiff, spill
from snapshot_explorer.analysis.diff.row_matching import HashedRows
from snapshot_explorer.analysis.given.arrow_types import with_plain_types
from snapshot_explorer.analysis.given.given_rows import SparkRows
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.engines.scan import check_files
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_batch, spark_schema
from snapshot_explorer.engines.spark.tasks import (
    MESSAGES,
    PAYLOADS,
    exchange,
    ipc_bytes,
    messages_of,
    pack_splits,
    received,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan
    from snapshot_explorer.core.records import Split

_BUCKET_BYTES = 32 * 2**20
"""Compressed size of the files whose rows one task compares."""
_ROWS, _ERROR = b"0", b"E"
"""The first byte of a payload: the side of the rows in it, 0 or 1; or E for a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Splits of one side that one task reads."""

    of_a: bool
    splits: tuple[Split, ...]


def row_diff_by(engine: str | SparkSession | None, plan: RowDiffPlan, *, memory_limit: int | None = None) -> RowDiff:
    """Return the row diff of a plan, computed by an engine: `local`, which is also None, `spark` or a session."""
    spark = sessions.session_of(engine, "compare rows")
    if spark is None:
        return row_diff(plan, memory_limit=memory_limit)
    for side in (plan.a, plan.b):
        if side.unreadable is not None:
            check_files(side.version, side.splits)
    return RowDiff(plan=plan, changed=SparkChangedRows(plan, spark))


class SparkChangedRows(DiffRows):
    """Changed rows that Spark computes: as a DataFrame, or collected at their first use."""

    def __init__(self, plan: RowDiffPlan, spark: SparkSession) -> None:
        """Compute nothing yet."""
        self.schema = changes_schema(plan.schema)
        self._plan = plan
        self._spark = spark

    @cached_property
    def _collected(self) -> ChangedRows:
        payloads = self._frame(partial(_payloads, _without_splits(self._plan)), None).toLocalIterator()
        return spill((_receive(bytes(row["payload"])) for row in payloads), self._plan.schema)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows of each kind."""
        return self._collected.counts

    @property
    def heads(self) -> Mapping[str, pa.Table]:
        return self._collected.heads

    def parts(self) -> Iterator[pa.Table]:
        return self._collected.parts()

    def to_spark(self) -> DataFrame:
        return self._frame(partial(_typed, _without_splits(self._plan)), spark_schema(self.schema))

    def _frame(
        self, reduce: Callable[[Sequence[bytes]], Iterator[pa.RecordBatch]], schema: StructType | None
    ) -> DataFrame:
        plan = self._plan
        size = plan.a.size_bytes + plan.b.size_bytes
        at_once = sessions.parallelism(self._spark)
        buckets = max(at_once, size // _BUCKET_BYTES)
        sides = [(True, plan.a), (False, plan.b)]
        frames = [
            (of_a, side.version.frame)
            for of_a, side in sides
            if isinstance(side.version, SparkRows) and side.version.frame is not None
        ]
        tasks = [
            Task(of_a=of_a, splits=tuple(pack))
            for of_a, side in sides
            if not isinstance(side.version, SparkRows)
            for pack in pack_splits(side.splits, at_once, side.version.split_by_file)
        ]
        if frames:  # of unknown size
            buckets = max(buckets, int(self._spark.conf.get("spark.sql.shuffle.partitions") or 0))
        shipped = _without_splits(plan)
        more = [(frame, partial(_messages_of_batch, shipped, buckets, of_a)) for of_a, frame in frames]
        return exchange(self._spark, partial(_messages, shipped, buckets), tasks, reduce, schema, more=more)


def _without_splits(plan: RowDiffPlan) -> RowDiffPlan:
    return replace(plan, a=replace(plan.a, splits=()), b=replace(plan.b, splits=()))


def _messages(plan: RowDiffPlan, buckets: int, task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task by bucket. Runs on executors."""
    reader = SideReader(plan=plan, of_a=task.of_a, columns=plan.columns)
    for split in task.splits:
        for batch in reader.side.version.read(split, reader.needed):
            yield from _messages_of(reader, buckets, batch)


def _messages_of_batch(plan: RowDiffPlan, buckets: int, of_a: bool, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:  # noqa: FBT001 - bound by `partial`
    """Yield the rows of a batch of a Spark DataFrame by bucket. Runs on executors."""
    reader = SideReader(plan=plan, of_a=of_a, columns=plan.columns)
    for part in with_plain_types(pa.Table.from_batches([batch])).to_batches():
        yield from _messages_of(reader, buckets, part)


def _messages_of(reader: SideReader, buckets: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    side = b"0" if reader.of_a else b"1"
    try:
        rows, hashes = reader.checked_rows(batch)
    except InvalidArgumentError as error:
        message = [pa.array([0], pa.int32()), pa.array([_ERROR + str(error).encode()], pa.binary())]
        yield pa.RecordBatch.from_arrays(message, schema=MESSAGES)
        return
    yield from messages_of(pa.Table.from_batches([rows]), hashes, buckets, side)


def _receive(payload: bytes) -> pa.Table:
    if payload[:1] == _ERROR:
        raise InvalidArgumentError(payload[1:].decode())
    return pa.ipc.open_stream(payload[1:]).read_all()


def _compared(plan: RowDiffPlan, payloads: Sequence[bytes]) -> pa.Table:
    sides = []
    for side in (b"0", b"1"):
        tables = [_receive(payload) for payload in payloads if payload[:1] in (side, _ERROR)]
        rows, hashes = received(tables, plan.schema)
        sides.append(HashedRows(rows=rows, hashes=hashes))
    before, after = sides
    if plan.key:
        raise_repeated(plan, plan.a, before)
        raise_repeated(plan, plan.b, after)
    return compare_rows(before, after, plan.key, plan.rules)


def _payloads(plan: RowDiffPlan, payloads: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows of a bucket as payloads. Runs on executors."""
    try:
        payload = _ROWS + ipc_bytes(_compared(plan, payloads))
    except InvalidArgumentError as error:
        payload = _ERROR + str(error).encode()
    yield pa.RecordBatch.from_arrays([pa.array([payload], pa.binary())], schema=PAYLOADS)


def _typed(plan: RowDiffPlan, payloads: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows of a bucket in Spark's types. Runs on executors."""
    changes = _compared(plan, payloads).combine_chunks()
    schema = arrow_schema(changes.schema)
    for batch in changes.to_batches() or [pa.RecordBatch.from_pylist([], changes.schema)]:
        yield spark_batch(batch.columns, schema)
