"""Rows of a version as a lazy Spark DataFrame.

Spark's own readers read the files for which they are exact (`native`). The format's reader reads all other splits on
the executors. Both return the same columns, types and nullability, and are combined by a union.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.core.errors import MissingDependencyError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.old_libraries import PYSPARK_COLLATIONS
from snapshot_explorer.engines.collations import collation_of
from snapshot_explorer.engines.scan import check_files
from snapshot_explorer.engines.spark import native
from snapshot_explorer.engines.spark.schemas import arrow_schema, quote_column, spark_batch, spark_schema
from snapshot_explorer.engines.spark.sessions import parallelism, session
from snapshot_explorer.engines.spark.tasks import on_executors, pack_splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.core.records import Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.engines.scan import Scan
    from snapshot_explorer.formats import TableVersion

_DUMMY = pa.schema([pa.field("row", pa.null())])
"""A placeholder column for rows without columns, until Spark drops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkReading:
    """Reads the rows of a split. Picklable. It contains the storage with its options, so it has no repr."""

    reader: TableVersion
    """Reads the splits."""
    needed: tuple[str, ...]
    """The columns to read: the columns to return and the columns of the condition."""
    condition: Condition | None
    """The condition on rows; None for all."""
    limit: int | None
    """The maximum number of rows per task; None for all."""
    schema: pa.Schema
    """The Arrow schema for Spark; without columns, the placeholder's schema."""

    def __repr__(self) -> str:
        return f"Reading(schema={self.schema.names})"


def to_spark(version: TableVersion, splits: Sequence[Split], scan: Scan, *, spark: SparkSession | None) -> DataFrame:
    """Return the rows of splits as a lazy DataFrame. Arguments as for `local.to_arrow`, and the session.

    Caches nothing and reads no rows. The DataFrame reads the planned splits, whatever is committed later. For up to 32
    files, or up to 20,000 large ones, footers and deletion vectors are read here; Spark lists more than 32 with a job.
    `tests/benchmarks/spark_rows.py plan` measures the cost for 100,000 files.
    """
    schema, condition, limit = scan.columns, scan.condition, scan.limit
    check_files(version, splits)
    spark_session = session(spark)
    theirs = spark_schema(schema or _DUMMY)
    if limit == 0:
        return _plain(spark_session.createDataFrame([], theirs), schema)
    frames, rest = native.frames(
        spark_session,
        version,
        splits,
        schema=schema,
        needed=scan.needed,
        condition=condition,
    )
    reading = SparkReading(
        reader=version,
        needed=tuple(scan.needed.names),
        condition=condition,
        limit=limit,
        schema=arrow_schema(schema or _DUMMY),
    )
    if rest or not frames:
        tasks = pack_splits(rest, parallelism(spark_session), version.split_by_file)
        frames.append(on_executors(spark_session, partial(read, reading), tasks, theirs))
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    return _plain(rows if limit is None else rows.limit(limit), schema)


def _with_collations(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """Return the rows with the collations of columns of text, by which Spark then compares them."""
    named = {field.name: collation_of(field) for field in schema if pa.types.is_string(field.type)}
    collations = {name: collation.rpartition(".")[2] for name, collation in named.items() if collation}
    if not collations:
        return rows
    if PYSPARK_COLLATIONS.applies():
        raise MissingDependencyError(
            Message(
                f"The column {next(iter(collations))!r} has a collation: {PYSPARK_COLLATIONS.remedy()}. Or read the "
                "other columns with ",
                Hint("snapshot.to_spark", {"columns": [...]}),
                ".",
            )
        )
    from pyspark.sql.functions import col, collate

    return rows.withColumns(
        {name: collate(col(quote_column(name)), collation) for name, collation in collations.items()}
    )


def _plain(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """Return the rows without a placeholder column, and with the collations of columns of text."""
    return _with_collations(rows, schema) if schema.names else rows.select()


def read(reading: SparkReading, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's splits for Spark. Runs on executors."""
    total = 0
    for split in splits:
        for batch in reading.reader.read(split, reading.needed):
            rows = batch if reading.condition is None else batch.filter(reading.condition.mask(pa.table(batch)))
            total += rows.num_rows
            if rows.num_rows:
                yield _for_spark(rows, reading.schema)
            if reading.limit is not None and total >= reading.limit:
                return


def _for_spark(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if schema.names == _DUMMY.names and not set(_DUMMY.names) <= set(rows.schema.names):
        return pa.RecordBatch.from_arrays([pa.nulls(rows.num_rows)], schema=schema)
    return spark_batch([rows.column(name) for name in schema.names], schema)
