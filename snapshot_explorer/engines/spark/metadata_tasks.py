"""How pieces of metadata are read on executors: tasks travel there and RECORDS come back as a DataFrame.

Tasks travel inside the function that Spark ships anyway, as compressed pickles: neither `explain` nor the UI nor a log
shows what is in them, storage options included.
"""

from __future__ import annotations

import pickle
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.formats.units import NOTES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.formats.units import Reader, Unit

_ROWS = 8_192
"""Rows of a batch that Spark is handed."""
_NOT_THERE = (
    "snapshot_explorer can not be imported on a Spark executor: {error}. The executors need the package and what it "
    "depends on. Install it in their image or environment (pip install snapshot-explorer), or ship a packed "
    "environment with spark.addArtifacts(..., archive=True) or --archives; --py-files ships the package alone."
)


def records(
    spark: SparkSession, read: Reader, units: Iterable[tuple[Unit, Mapping[str, Any]]], more: pa.Schema
) -> DataFrame:
    """Return the RECORDS of units, lazily: each time it is used, a Spark task reads each unit.

    Args:
        spark: The session, classic or Connect.
        read: Reads a unit.
        units: The units, each with values that all of its records get.
        more: What these values are.
    """
    schema = pa.schema([*RECORDS, *more])
    return _on_executors(spark, partial(_told, read, schema), list(units), schema)


def notes(spark: SparkSession, read: Reader, units: Sequence[Unit]) -> pa.Table:
    """Return the NOTES of units. One Spark job."""
    function = partial(_told, read, NOTES)
    found = _on_executors(spark, function, [(unit, {}) for unit in units], NOTES).toArrow()
    return found.select(NOTES.names).cast(NOTES)


def spark_schema(schema: pa.Schema) -> str:
    """Return the columns of an Arrow schema as Spark writes them; only the types of frames are known."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{_spark_type(kind.key_type)}, {_spark_type(kind.item_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return _SPARK_TYPES[kind]


_SPARK_TYPES = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.binary(): "binary",
}


def _as_spark_takes(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema in which rows are handed to Spark: its times are in microseconds."""
    micros = pa.timestamp("us", "UTC")
    return pa.schema([(one.name, micros if pa.types.is_timestamp(one.type) else one.type) for one in schema])


def _told(read: Reader, schema: pa.Schema, task: tuple[Unit, Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield what a unit tells, and the values given with it; runs on executors."""
    unit, given = task
    for table in read(unit):
        for name, value in given.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, schema.field(name).type), len(table)))  # noqa: PLW2901 - grows
        yield from table.select(schema.names).cast(_as_spark_takes(schema)).to_batches(max_chunksize=_ROWS)


def _on_executors(
    spark: SparkSession, function: Callable[[Any], Iterator[pa.RecordBatch]], tasks: Sequence[object], schema: pa.Schema
) -> DataFrame:
    """Return a lazy DataFrame of what a function gives for each task, a Spark task each.

    Args:
        spark: The session.
        function: Takes a task and yields batches; picklable by name.
        tasks: Whatever is picklable.
        schema: The columns.
    """
    if not tasks:
        return spark.createDataFrame([], spark_schema(schema))
    parts = [_packed(task) for task in tasks]
    work = _work(_packed(function), parts, _NOT_THERE)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(work, spark_schema(schema))


def _work(
    function: bytes, parts: Sequence[bytes], not_there: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # Spark ships an inner function by value: it must name nothing of this module, which may not be there.
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            from snapshot_explorer.engines.spark.metadata_tasks import run  # noqa: PLC0415 - on the executor
        except ImportError as error:
            raise ImportError(not_there.format(error=error)) from None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from run(function, parts[number])

    return rows


def run(function: bytes, task: bytes) -> Iterator[pa.RecordBatch]:
    """Yield what a function gives for a task; runs on executors."""
    work: Callable[[Any], Iterator[pa.RecordBatch]] = _unpacked(function)
    yield from work(_unpacked(task))


def _packed(value: object) -> bytes:
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def _unpacked(content: bytes) -> Any:
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - the driver made it; it comes as Spark's own closures do
