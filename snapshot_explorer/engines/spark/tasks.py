"""Work for executors: what a task is, how tasks reach them, and how the package does.

Tasks travel inside the function that Spark ships anyway, as compressed pickles: neither `explain` nor the UI nor a
log shows what is in them, storage options included.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.engines.spark.executors import packed
from snapshot_explorer.engines.spark.sessions import quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from snapshot_explorer.model import Split

_TARGET_BYTES = 128 * 2**20
"""Compressed size of the files of a task, as of Spark's own (spark.sql.files.maxPartitionBytes)."""
_OPEN_BYTES = 4 * 2**20
"""What opening a file counts, as with Spark (spark.sql.files.openCostInBytes)."""
NOT_ON_EXECUTOR = (
    "snapshot_explorer cannot be imported on a Spark executor: {error}. The executors need the package and what it "
    "depends on. Install it in their image or environment (pip install snapshot-explorer), or ship a packed "
    "environment with spark.addArtifacts(..., archive=True) or --archives; --py-files ships the package alone."
)
"""What an executor says that lacks the package."""


def on_executors(
    spark: SparkSession, function: Callable[..., Iterator[pa.RecordBatch]], tasks: Iterable[object], schema: StructType
) -> DataFrame:
    """Return a lazy DataFrame of what a function gives for each task, a Spark task each, in their order.

    Args:
        spark: The session, classic or Connect.
        function: Takes a task and yields batches in the Arrow types of the schema (`schemas.spark_batch`). It must be
            picklable by name, such as a function of a module of this package or a `functools.partial` of one. What it
            is bound to is kept on the executor from task to task.
        tasks: Whatever is picklable. Pickled at once.
        schema: The columns.
    """
    parts = [packed(task) for task in tasks]
    if not parts:
        return spark.createDataFrame([], schema)
    with quiet():
        return spark.range(0, len(parts), 1, len(parts)).mapInArrow(
            _work(packed(function), parts, NOT_ON_EXECUTOR), schema
        )


def _work(
    function: bytes, parts: Sequence[bytes], missing_message: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # Spark ships an inner function by value: it must name nothing of this module, which may not be there.
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            from snapshot_explorer.engines.spark.executors import run  # noqa: PLC0415 - it may not be there
        except ImportError as error:
            raise ImportError(missing_message.format(error=error)) from None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from run(function, parts[number])

    return rows


def packs(splits: Iterable[Split], parallelism: int, cut: Callable[[Split], Iterable[Split]]) -> list[list[Split]]:
    """Return splits put together to tasks, in their order: each of up to 128 MB, or as small as keeps all cores busy.

    Args:
        splits: What to read.
        parallelism: How many tasks Spark runs at once.
        cut: Gives the parts of a split that may be read on their own; asked for splits that are too large for a task.
    """
    splits = list(splits)
    total = sum(_weight(split) for split in splits)
    target = min(_TARGET_BYTES, max(_OPEN_BYTES, total // max(1, parallelism)))
    parts = chain.from_iterable(
        cut(split) if _weight(split) > target and len(split.files) > 1 else (split,) for split in splits
    )
    return list(pack(parts, _weight, target=target))


def _weight(split: Split) -> int:
    return max(split.size_bytes, _OPEN_BYTES * len(split.files))
