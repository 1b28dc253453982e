"""Rows of a version as a lazy Spark DataFrame.

Files whose rows Spark's own readers give exactly are read by them (`native`). All other splits are read by the format
itself, on the executors. Both give the same columns, types and nullability, and are put one below the other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.engines.spark import native
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_batch, spark_schema
from snapshot_explorer.engines.spark.sessions import parallelism, session
from snapshot_explorer.engines.spark.tasks import on_executors, packs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.engines.scan import Scan
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.model import Split, SplitReader

_DUMMY = pa.schema([pa.field("row", pa.null())])
"""The columns of rows without columns, until Spark drops them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the rows of a split are read. Picklable; it holds the storage with its options, so it has no text."""

    reader: SplitReader
    """Reads the splits."""
    needed: tuple[str, ...]
    """The columns that are read: those wanted and those of the condition."""
    condition: Condition | None
    """Which rows to keep."""
    limit: int | None
    """How many rows are wanted of a task at most."""
    schema: pa.Schema
    """The Arrow schema for Spark; without columns, that of rows alone."""

    def __repr__(self) -> str:
        return f"Reading(schema={self.schema.names})"


def to_spark(version: TableVersion, splits: Sequence[Split], scan: Scan, *, spark: SparkSession | None) -> DataFrame:
    """Return the rows of splits as a lazy DataFrame; arguments as `local.to_arrow`, and the session.

    Nothing is cached and no row is read. The DataFrame reads the splits that were planned, whatever is committed later.
    Of up to 32 files, or of up to 20,000 that are large, the footers are read here, and the deletion vectors; more than
    32 are listed by a job of Spark's own. `tests/benchmarks/spark_rows.py plan` measures what 100,000 files cost.

    Raises:
        UnsupportedFeatureError: A column is of a type that Spark cannot hold.
        CorruptTableError: A data file is not there; on the local disk, or of few files elsewhere.
        MissingDependencyError: There is no PySpark or no Java.
    """
    wanted, condition, limit = scan.columns, scan.condition, scan.limit
    _check_there(version, splits)
    found = session(spark)
    theirs = spark_schema(wanted or _DUMMY)
    if limit == 0:
        return _plain(found.createDataFrame([], theirs), wanted)
    frames, rest = native.frames(
        found,
        version,
        splits,
        wanted=wanted,
        needed=scan.needed,
        condition=condition,
    )
    reading = Reading(
        reader=version,
        needed=tuple(scan.needed.names),
        condition=condition,
        limit=limit,
        schema=arrow_schema(wanted or _DUMMY),
    )
    if rest or not frames:
        tasks = packs(rest, parallelism(found), version.split_by_file)
        frames.append(on_executors(found, partial(read, reading), tasks, theirs))
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    return _plain(rows if limit is None else rows.limit(limit), wanted)


def _check_there(version: TableVersion, splits: Sequence[Split]) -> None:
    """Raise what the format raises where a data file is not there, before Spark is asked to do anything."""
    gone = set(version.missing_files(splits))
    for split in splits if gone else ():
        for piece in version.split_by_file(split) if gone.intersection(split.files) else ():
            if gone.intersection(piece.files):
                deque(version.read(piece, []), maxlen=0)


def _plain(rows: DataFrame, wanted: pa.Schema) -> DataFrame:
    return rows if wanted.names else rows.select()


def read(reading: Reading, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
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
