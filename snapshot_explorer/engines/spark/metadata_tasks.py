"""How pieces of metadata are read on executors: RECORDS come back as a DataFrame, PREFETCHED to the driver."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_schema
from snapshot_explorer.engines.spark.tasks import on_executors
from snapshot_explorer.formats.metadata_tasks import PREFETCHED, RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.formats.metadata_tasks import MetadataTask, Reader

_ROWS = 8_192
"""Rows of a batch that Spark is handed."""


def records(
    spark: SparkSession, read: Reader, units: Iterable[tuple[MetadataTask, Mapping[str, Any]]], more: pa.Schema
) -> DataFrame:
    """Return the RECORDS of units, lazily: each time it is used, a Spark task reads each unit.

    Args:
        spark: The session, classic or Connect.
        read: Reads a unit.
        units: The units, each with values that all of its records get.
        more: What these values are.
    """
    schema = pa.schema([*RECORDS, *more])
    return on_executors(spark, partial(_told, read, schema), units, spark_schema(schema))


def notes(spark: SparkSession, read: Reader, units: Sequence[MetadataTask]) -> pa.Table:
    """Return the PREFETCHED of units. One Spark job."""
    function = partial(_told, read, PREFETCHED)
    found = on_executors(spark, function, [(unit, {}) for unit in units], spark_schema(PREFETCHED)).toArrow()
    return found.select(PREFETCHED.names).cast(PREFETCHED)


def _told(read: Reader, schema: pa.Schema, task: tuple[MetadataTask, Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield what a unit tells, and the values given with it; runs on executors."""
    unit, given = task
    for table in read(unit):
        for name, value in given.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, schema.field(name).type), len(table)))  # noqa: PLW2901 - grows
        yield from table.select(schema.names).cast(arrow_schema(schema)).to_batches(max_chunksize=_ROWS)
