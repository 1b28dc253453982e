"""Rows by Spark's own parquet and ORC readers, where these give exactly what the format means.

That is proven file by file, by their footers: a file's column is of the very type that the table has, or of a narrower
number that every value keeps. Whatever is not proven is left to the format's own reader.

Rows that deletion vectors take away are left out by a join with their places, which Spark tells of parquet files.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.engines.spark.conditions import translated
from snapshot_explorer.engines.spark.footers import Footer, footer
from snapshot_explorer.engines.spark.schemas import arrow_schema, has_text, spark_batch, spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.roaring import Positions
    from snapshot_explorer.model import Split, StoredFile

log = logging.getLogger(__name__)

_FEW_FILES = 32
"""Files that Spark lists at once; for more it runs a job, with a task for each
(spark.sql.sources.parallelPartitionDiscovery.threshold)."""
_MOST_FILES = 20_000
"""Files that are looked at, if they are large: footers are read first, and Spark's listing is to be waited for too."""
_LARGE_BYTES = 4 * 2**20
"""Average size from which Spark's readers save more than its listing costs (spark.sql.files.openCostInBytes)."""
_MOST_GROUPS = 32
"""Scans that are put together: each costs Spark a plan of its own."""
_MOST_DELETED = 1_000_000
"""Rows that are joined away: each executor holds the places of all, some 30 bytes each."""
_MOST_ROWS = 2**31
_MOST_BYTES = 2**32
"""Limits of files whose deleted rows are joined away: the product of both is a long."""
_THREADS = 8
_METADATA = "_metadata"
"""Spark's own column, of facts about a row's file."""
_PLAIN_PATH = re.compile(r"/[\w./=+@,\- %]*", re.ASCII)
"""Paths in which Spark sees no pattern."""
_UNSEEN = re.compile(r"[_.].*|.*\._COPYING_")
"""Names of files that Spark passes over without a word."""
_OPTIONS = {
    "mergeSchema": "false",
    "recursiveFileLookup": "true",  # otherwise folders would be taken for partition columns
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a column comes from: a column of the file, or else a constant."""

    name: str | None = None
    """The name in the file; None for a constant."""
    kind: pa.DataType
    """The type in the file, or of the table."""
    constant: Any = None
    """The value, for Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Files that one scan reads."""

    kind: str
    """parquet or orc."""
    sources: tuple[_Source, ...]
    """Where each column comes from."""
    paths: list[str] = field(default_factory=list)
    """The files."""
    splits: list[Split] = field(default_factory=list)
    """The same files for the format's reader."""
    sizes: list[int] = field(default_factory=list)
    """How large each is: no two alike where rows are deleted."""
    gone: list[Positions] = field(default_factory=list)
    """The positions of the deleted rows of each, in such a group; otherwise empty."""


def frames(
    spark: SparkSession,
    table_format: TableFormat,
    splits: Sequence[Split],
    *,
    wanted: pa.Schema,
    needed: pa.Schema,
    condition: Condition | None,
) -> tuple[list[DataFrame], list[Split]]:
    """Return DataFrames of the rows that Spark's readers give exactly, and the splits that are left.

    Only files of this machine are looked at, and only if there are up to 32, or up to 20,000 of 4 MB on average: each
    footer is read here, by eight threads, and Spark lists them. Of smaller ones that takes longer than it saves. Up to
    32 scans are made, of the files that are most bytes: a scan reads files of one partition and one schema.

    Args:
        spark: The session.
        table_format: The format that the splits are of.
        splits: What to read.
        wanted: The columns to give.
        needed: The same and those of the condition.
        condition: Which rows to keep.
    """
    passes = None if condition is None else translated(condition, needed)
    if not wanted.names or not _is_worth(splits) or (condition is not None and passes is None):
        return [], list(splits)
    groups, rest = _groups(table_format, splits, needed)
    groups.sort(key=lambda group: -sum(group.sizes))
    for group in groups[_MOST_GROUPS:]:
        rest += group.splits
    del groups[_MOST_GROUPS:]
    found: list[DataFrame] = []
    for group in groups:
        frame = _scanned(spark, group, needed, wanted, passes)
        if frame is None:
            rest += group.splits
        else:
            found.append(frame)
    return found, rest


def _is_worth(splits: Sequence[Split]) -> bool:
    """Return whether Spark's readers may save more than looking at the files costs."""
    files = sum(len(split.files) for split in splits)
    return files <= _FEW_FILES or (
        files <= _MOST_FILES and sum(split.size_bytes for split in splits) >= files * _LARGE_BYTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A file that may be one for Spark's readers."""

    split: Split
    """It alone."""
    file: StoredFile
    """Where it is."""
    partition: pa.Table | None
    """One row: the typed value of each partition column."""


def _groups(table_format: TableFormat, splits: Sequence[Split], schema: pa.Schema) -> tuple[list[_Group], list[Split]]:
    """Return the files that Spark's readers may read, and the splits of the others."""
    rest: list[Split] = []
    files: list[_Found] = []
    for split in splits:
        whole = table_format.stored(split)
        if whole is None or not all(_is_seen(file.address) for file in whole.files):
            rest.append(split)
            continue
        parts = zip(table_format.pieces(split), whole.files, strict=True)
        files += [_Found(split=part, file=file, partition=whole.partition) for part, file in parts]
    constants: dict[int, dict[str, _Source | None]] = {}
    proven: list[tuple[_Found, Footer, tuple[_Source, ...]]] = []
    for one, there in zip(files, _footers([one.file for one in files]), strict=True):
        if id(one.partition) not in constants:
            constants[id(one.partition)] = _constants(one.partition, schema)
        sources = None if there is None else _sources(one.file, there, constants[id(one.partition)], schema)
        if sources is None or there is None or one.file.rows not in (None, there.rows):
            rest.append(one.split)
        else:
            proven.append((one, there, sources))
    gone, left = _gone(table_format, proven, schema)
    groups: dict[object, _Group] = {}
    for one, there, sources in proven:
        if id(one) in left:
            rest.append(one.split)
            continue
        key = (
            one.file.kind,
            tuple((item.name, str(item.kind), type(item.constant), repr(item.constant)) for item in sources),
        )
        turn = 0 if id(one) in gone else None
        while turn is not None and (other := groups.get((key, turn))) and there.size_bytes in other.sizes:
            turn += 1
        group = groups.setdefault((key, turn), _Group(kind=one.file.kind, sources=sources))
        group.paths.append(f"file://{one.file.address}")
        group.splits.append(one.split)
        group.sizes.append(there.size_bytes)
        group.gone.extend([gone[id(one)]] if id(one) in gone else [])
    return list(groups.values()), rest


def _gone(
    table_format: TableFormat, files: Sequence[tuple[_Found, Footer, object]], schema: pa.Schema
) -> tuple[dict[int, Positions], set[int]]:
    """Return the deleted positions of each file that has some, and the files whose rows can not be joined away; by id.

    Reads the deletion vectors, if they are of few rows.
    """
    having = [(one, there) for one, there, _ in files if one.file.deleted]
    able = [
        (one, there)
        for one, there in having
        if one.file.kind == "parquet"
        and there.size_bytes < _MOST_BYTES
        and there.rows < _MOST_ROWS
        and _METADATA not in there.folded
    ]
    if sum(one.file.deleted for one, _ in able) > _MOST_DELETED or _METADATA in {name.lower() for name in schema.names}:
        able = []
    found = table_format.deleted([one.split for one, _ in able], [there.rows for _, there in able])
    gone = {id(one): positions for (one, _), positions in zip(able, found, strict=True)}
    return gone, {id(one) for one, _ in having} - set(gone)


def _is_seen(address: str | None) -> bool:
    """Return whether Spark reads a path as it stands."""
    if address is None or not _PLAIN_PATH.fullmatch(address):
        return False
    return _UNSEEN.fullmatch(address.rpartition("/")[2]) is None


def _footers(files: Sequence[StoredFile]) -> list[Footer | None]:
    with ThreadPoolExecutor(_THREADS, "snapshot-footers") as pool:
        return list(pool.map(footer, files))


def _constants(partition: pa.Table | None, schema: pa.Schema) -> dict[str, _Source | None]:
    """Return the source of each partition column; None for one that has no literal in Spark."""
    found: dict[str, _Source | None] = {}
    if partition is None:
        return found
    for name in partition.column_names:
        if name in schema.names:
            one = pa.schema([schema.field(name)])
            values = spark_batch([partition.column(name).combine_chunks()], arrow_schema(one)).column(0)
            kind = values.type
            is_literal = kind in (*_INTEGERS, pa.string(), pa.bool_(), pa.date32()) or pa.types.is_decimal(kind)
            source = _Source(kind=kind, constant=values[0].as_py())
            found[name] = source if is_literal or not values[0].is_valid else None
    return found


def _sources(
    file: StoredFile, there: Footer, constants: dict[str, _Source | None], schema: pa.Schema
) -> tuple[_Source, ...] | None:
    """Return where each column comes from; None if one has no source of which it is certain."""
    found = [_source(column, file, there, constants) for column in schema]
    return None if None in found else tuple(one for one in found if one is not None)


def _source(column: pa.Field, file: StoredFile, there: Footer, constants: dict[str, _Source | None]) -> _Source | None:
    if column.name in constants:
        return constants[column.name]
    if column.name not in file.names:
        return None
    stored = file.names[column.name]
    if stored is None or (stored not in there.columns and stored.lower() not in there.folded):
        return _Source(kind=column.type)
    kind = there.columns.get(stored)
    return _Source(name=stored, kind=kind) if kind is not None and _keeps(kind, column.type) else None


def _keeps(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a value of a file is the table's as it is, or a number of fewer bits."""
    if kind in _INTEGERS and wanted in _INTEGERS:
        return bool(kind.bit_width <= wanted.bit_width)
    if kind == pa.float32() and wanted == pa.float64():
        return True
    theirs, ours = (spark_schema(pa.schema([pa.field("", one)])).simpleString() for one in (kind, wanted))
    return bool(theirs == ours) and not has_text(wanted)


def _scanned(
    spark: SparkSession, group: _Group, needed: pa.Schema, wanted: pa.Schema, passes: Column | None
) -> DataFrame | None:
    """Return the rows of a group; None where Spark does not see its files, or would give them another schema."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    stored = {source.name: source.kind for source in group.sources if source.name is not None}
    reader = spark.read.schema(spark_schema(pa.schema([pa.field(name, kind) for name, kind in stored.items()])))
    theirs = spark_schema(wanted)
    try:
        rows = reader.options(**_OPTIONS).format(group.kind).load(group.paths)
        if group.gone:
            rows = _without(spark, rows, group)
        columns = [
            _column(source, kind).alias(kind.name)
            for source, kind in zip(group.sources, spark_schema(needed), strict=True)
        ]
        rows = rows.select(*columns)
        if passes is not None:
            rows = rows.filter(passes)
        rows = rows.select(*(_present(kind, f.col(quoted(kind.name))).alias(kind.name) for kind in theirs))
        if rows.schema == theirs:
            return rows
        log.debug("Spark gives %s where %s is wanted", rows.schema, theirs)
    except AnalysisException as error:
        log.info("Spark's own readers do not see the files of the table: %s", str(error).splitlines()[0])
    return None


def _without(spark: SparkSession, rows: DataFrame, group: _Group) -> DataFrame:
    """Return rows but for those deleted: the file's size and the row's position in it tell each from all others.

    Source: spark docs, "File metadata column"; ParquetRowIndexUtil, which counts rows that are not read too.
    """
    from pyspark.sql import functions as f

    name = "_" * max(map(len, rows.columns), default=0) + "_place"
    places = [positions + size * _MOST_ROWS for size, positions in zip(group.sizes, group.gone, strict=True)]
    deleted = spark.createDataFrame(pa.table({name: np.concatenate(places)}))
    size = f.col(f"{_METADATA}.file_size")
    place = size * f.lit(_MOST_ROWS) + f.col(f"{_METADATA}.row_index")
    changed = f.raise_error(f.lit("A data file has another size than when the DataFrame was made. Make it anew."))
    place = f.when(size.isin(group.sizes), place).otherwise(changed.cast("bigint"))
    return rows.select("*", place.alias(name)).join(f.broadcast(deleted), name, "left_anti").drop(name)


def _column(source: _Source, kind: Any) -> Column:
    """Return the values of a source in the type of the table."""
    from pyspark.sql import functions as f

    if source.name is not None:
        return f.col(quoted(source.name)).cast(kind.dataType)
    value = f.lit(source.constant).cast(kind.dataType)
    # Spark knows that a literal is not null; the column may be.
    return f.nullif(value, f.lit(None).cast(kind.dataType)) if kind.nullable else value


def _present(kind: Any, values: Column) -> Column:
    """Return values of a column that is never null in a way that Spark knows of it, and fails where one is."""
    from pyspark.sql import functions as f

    if kind.nullable:
        return values
    error = f.raise_error(f.lit(f"The column {kind.name} is never null by the schema, but a data file holds a null."))
    return f.coalesce(values, error.cast(kind.dataType), f.lit(_stand_in(kind.dataType)).cast(kind.dataType))


def _stand_in(kind: Any) -> object:
    """Return a value that Spark casts to a type and knows to be there; of what is cast from text it is not sure."""
    from pyspark.sql import types

    match kind:
        case types.DecimalType():
            return Decimal(0).scaleb(-kind.scale)
        case types.NumericType():
            return 0
        case types.BooleanType():
            return False
        case types.BinaryType():
            return b""
        case types.DateType():
            return _EPOCH.date()
        case types.TimestampType() | types.TimestampNTZType():
            return _EPOCH
    return ""


def quoted(name: str) -> str:
    """Return a column's name as Spark reads it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
