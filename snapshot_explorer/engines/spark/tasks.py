"""Tasks for executors: pack splits into tasks, and ship tasks and the package.

Tasks are part of the function that Spark ships, as compressed pickles: `explain`, the UI and logs do not display their
contents, such as storage options.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.core.old_libraries import PYSPARK_THREADS
from snapshot_explorer.engines.spark.executors import pack_value
from snapshot_explorer.engines.spark.sessions import is_connect, suppress_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from snapshot_explorer.core.records import Split


_Item = TypeVar("_Item")

TARGET_BYTES = 128 * 2**20
"""The compressed size of the files of a task, as for Spark's own tasks (spark.sql.files.maxPartitionBytes)."""
OPEN_BYTES = 4 * 2**20
"""The cost of opening a file, as in Spark (spark.sql.files.openCostInBytes)."""
NOT_ON_EXECUTOR = (
    "snapshot_explorer cannot be imported on a Spark executor: {error}. The executors need the package and what it "
    "depends on. Install it in their image or environment (pip install snapshot-explorer), or ship a packed "
    "environment with spark.addArtifacts(..., archive=True) or --archives; --py-files ships the package alone."
)
"""The message of an executor without the package."""


def on_executors(
    spark: SparkSession, function: Callable[..., Iterator[pa.RecordBatch]], tasks: Iterable[object], schema: StructType
) -> DataFrame:
    """Return a lazy DataFrame of the results of a function for each task, in order, with one Spark task each.

    Args:
        function: Yields batches in the Arrow types of the schema for a task (`schemas.spark_batch`). It must be
            picklable by name, such as a function of a module of this package or a `functools.partial` of one. Its
            bound arguments stay on the executor between tasks.
    """
    parts = [pack_value(task) for task in tasks]
    if not parts:
        return spark.createDataFrame([], schema)
    with suppress_warnings():
        return spark.range(0, len(parts), 1, len(parts)).mapInArrow(
            task_function(pack_value(function), parts, NOT_ON_EXECUTOR), schema
        )


_CANCEL_SECONDS = 0.2
"""Seconds between cancellations of a job: it may not have begun at the first one."""


def collect(spark: SparkSession, rows: DataFrame) -> list[Row]:
    """Return the rows of a DataFrame. Runs one Spark job, which Ctrl-C and a stop button cancel.

    In a thread of its own: PySpark's `collect` waits for the end of the job before it lets an interrupt through.
    """
    from pyspark.util import inheritable_thread_target

    tag, connect = f"snapshot-explorer-{uuid4().hex}", is_connect(spark)
    add = spark.addTag if connect else spark.sparkContext.addJobTag
    cancel = spark.interruptTag if connect else spark.sparkContext.cancelJobsWithTag

    def collect() -> Any:
        add(tag)
        return rows.collect()

    # Job groups and tags of the user's hold there too.
    inheriting: object = inheritable_thread_target if PYSPARK_THREADS.applies() else inheritable_thread_target(spark)
    target = inheriting(collect) if callable(inheriting) else collect  # PySpark 4.0 without pinned threads: no function
    with ThreadPoolExecutor(1, "snapshot-spark") as threads:
        future: Future[list[Row]] = threads.submit(target)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                cancel(tag)
                wait([future], timeout=_CANCEL_SECONDS)
            raise


def task_function(
    function: bytes, parts: Sequence[bytes], missing_message: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that executors run: `function` over the parts whose numbers the batches contain."""

    # Spark ships an inner function by value: it must use nothing of this module, which an executor may lack.
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            from snapshot_explorer.engines.spark.executors import run  # noqa: PLC0415 - an executor may lack it
        except ImportError as error:
            raise ImportError(missing_message.format(error=error)) from None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from run(function, parts[number])

    return rows


def pack_splits(
    splits: Iterable[Split], parallelism: int, cut: Callable[[Split], Iterable[Split]]
) -> list[list[Split]]:
    """Return splits packed into tasks, in order: each up to 128 MB, or smaller to keep all cores busy.

    Args:
        cut: Returns the parts of a split that can be read independently; called for splits too large for a task.
    """
    splits = list(splits)
    target = _target(splits, parallelism)
    parts = chain.from_iterable(
        cut(split) if _weight(split) > target and len(split.files) > 1 else (split,) for split in splits
    )
    return list(pack(parts, _weight, target=target))


def pack_items(items: Sequence[_Item], split_of: Callable[[_Item], Split], parallelism: int) -> list[list[_Item]]:
    """Return items packed into tasks, in order, each by the split that it reads; see `pack_splits`."""
    target = _target([split_of(item) for item in items], parallelism)
    return list(pack(items, lambda item: _weight(split_of(item)), target=target))


def _target(splits: Sequence[Split], parallelism: int) -> int:
    return min(TARGET_BYTES, max(OPEN_BYTES, sum(map(_weight, splits)) // max(1, parallelism)))


def _weight(split: Split) -> int:
    return max(split.size_bytes, OPEN_BYTES * len(split.files))


MESSAGES = pa.schema([pa.field("bucket", pa.int32(), nullable=False), pa.field("payload", pa.binary(), nullable=False)])
"""The output of tasks: bytes, and the bucket that they belong to."""
PAYLOADS = pa.schema([pa.field("payload", pa.binary(), nullable=False)])
"""The columns of the result by default."""


def messages_of(
    rows: pa.Table, hashes: npt.NDArray[np.uint64], buckets: int, prefix: bytes = b""
) -> Iterator[pa.RecordBatch]:
    """Yield rows as MESSAGES to the buckets of their hashes, which `received` returns; nothing without rows.

    Args:
        prefix: What each payload begins with.
    """
    if not len(rows):
        return
    numbers = (hashes % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    table = rows.append_column("hash", pa.array(hashes)).take(pa.array(order))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
    payloads = [
        prefix + ipc_bytes(table.slice(start, end - start))
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True)
    ]
    own = pa.array(numbers[order][starts], pa.int32())
    yield pa.RecordBatch.from_arrays([own, pa.array(payloads, pa.binary())], schema=MESSAGES)


def received(tables: Sequence[pa.Table], schema: pa.Schema) -> tuple[pa.Table, npt.NDArray[np.uint64]]:
    """Return the rows in messages and their hashes, from the tables in the payloads."""
    empty = schema.append(pa.field("hash", pa.uint64())).empty_table()
    table = pa.concat_tables([empty, *tables]).combine_chunks()
    # By place: a column of the rows may have any name.
    last = table.num_columns - 1
    return table.select(list(range(last))), table.column(last).to_numpy()


def ipc_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def exchange(
    spark: SparkSession,
    produce: Callable[..., Iterator[pa.RecordBatch]],
    tasks: Iterable[object],
    reduce: Callable[[Sequence[bytes]], Iterator[pa.RecordBatch]],
    schema: StructType | None = None,
    *,
    more: Sequence[tuple[DataFrame, Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]]] = (),
) -> DataFrame:
    """Return a lazy DataFrame of the results of a function for the messages of each bucket.

    Args:
        produce: Yields batches of MESSAGES for a task; see the function of `on_executors`.
        more: DataFrames, each with a function that yields batches of MESSAGES for a batch of its rows.
        reduce: Yields, for all payloads of a bucket in no order, batches in the Arrow types of the schema;
            picklable by name.
    """
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    messages = StructType(
        [StructField("bucket", IntegerType(), nullable=False), StructField("payload", BinaryType(), nullable=False)]
    )
    payloads = StructType([StructField("payload", BinaryType(), nullable=False)])
    with suppress_warnings():
        sent = on_executors(spark, produce, tasks, messages)
        for frame, function in more:
            sent = sent.unionByName(frame.mapInArrow(_mapping(pack_value(function), NOT_ON_EXECUTOR), messages))
        return sent.groupBy("bucket").applyInArrow(_reducing(pack_value(reduce), NOT_ON_EXECUTOR), schema or payloads)


def _mapping(function: bytes, not_there: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # As `task_function`.
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            from snapshot_explorer.engines.spark.executors import run_on  # noqa: PLC0415 - an executor may lack it
        except ImportError as error:
            raise ImportError(not_there.format(error=error)) from None
        for batch in batches:
            yield from run_on(function, batch)

    return rows


def _reducing(function: bytes, not_there: str) -> Callable[[pa.Table], pa.Table]:
    # Spark ships an inner function by value: it must use nothing of this module, which an executor may lack.
    def rows(table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Spark reads annotations of pyarrow types
        try:
            import pyarrow  # noqa: ICN001, PLC0415 - an executor may lack it

            from snapshot_explorer.engines.spark.executors import run_on  # noqa: PLC0415 - likewise
        except ImportError as error:
            raise ImportError(not_there.format(error=error)) from None
        return pyarrow.Table.from_batches(list(run_on(function, table.column("payload").to_pylist())))

    return rows
