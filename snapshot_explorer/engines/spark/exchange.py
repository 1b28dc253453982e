"""Tasks whose results are grouped by bucket and processed again: a shuffle of bytes that Spark does not interpret.

Rows travel as Arrow in binary columns, so that no value goes through Spark's own types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.engines.spark.executors import packed
from snapshot_explorer.engines.spark.sessions import quiet
from snapshot_explorer.engines.spark.tasks import NOT_ON_EXECUTOR, on_executors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MESSAGES = pa.schema([pa.field("bucket", pa.int32(), nullable=False), pa.field("payload", pa.binary(), nullable=False)])
"""The output of tasks: bytes, and the bucket that they belong to."""
PAYLOADS = pa.schema([pa.field("payload", pa.binary(), nullable=False)])
"""The result if no other columns are given."""


def exchanged(
    spark: SparkSession,
    produce: Callable[..., Iterator[pa.RecordBatch]],
    tasks: Iterable[object],
    reduce: Callable[[Sequence[bytes]], Iterator[pa.RecordBatch]],
    schema: StructType | None = None,
) -> DataFrame:
    """Return a lazy DataFrame of the results of a function for the messages of each bucket.

    Args:
        produce: Yields batches of MESSAGES for a task; see the function of `on_executors`.
        reduce: Yields, for all payloads of a bucket in no order, batches in the Arrow types of the schema;
            picklable by name.
    """
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    messages = StructType(
        [StructField("bucket", IntegerType(), nullable=False), StructField("payload", BinaryType(), nullable=False)]
    )
    payloads = StructType([StructField("payload", BinaryType(), nullable=False)])
    with quiet():
        sent = on_executors(spark, produce, tasks, messages)
        return sent.groupBy("bucket").applyInArrow(_work(packed(reduce), NOT_ON_EXECUTOR), schema or payloads)


def _work(function: bytes, not_there: str) -> Callable[[pa.Table], pa.Table]:
    # Spark ships an inner function by value: it must use nothing of this module, which an executor may lack.
    def rows(table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Spark reads annotations of pyarrow types
        try:
            import pyarrow  # noqa: ICN001, PLC0415 - an executor may lack it

            from snapshot_explorer.engines.spark.executors import run_on  # noqa: PLC0415 - likewise
        except ImportError as error:
            raise ImportError(not_there.format(error=error)) from None
        return pyarrow.Table.from_batches(list(run_on(function, table.column("payload").to_pylist())))

    return rows
