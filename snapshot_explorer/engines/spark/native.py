"""Rows by Spark's own parquet and ORC readers, where these give exactly what the format means.

That is proven file by file, by their footers: a file's column is of the very type that the table has, or of a narrower
number that every value keeps. Whatever is not proven is left to the format's own reader.

Rows that deletion vectors take away from parquet files are left out by Spark too (`deleted_rows`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from snapshot_explorer.arrow.roaring import NOTHING
from snapshot_explorer.engines.spark.conditions import translated
from snapshot_explorer.engines.spark.deleted_rows import (
    METADATA,
    MOST_BYTES,
    MOST_ROWS,
    bitmap_bytes,
    without_deleted_rows,
)
from snapshot_explorer.engines.spark.footers import Footer, footer
from snapshot_explorer.engines.spark.schemas import (
    arrow_schema,
    has_text,
    quoted,
    spark_batch,
    spark_schema,
    spark_type,
)
from snapshot_explorer.visible import logger_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from snapshot_explorer.arrow.roaring import Positions
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.model import NativeFile, NativeRows, Split

log = logger_of(__name__)


@runtime_checkable
class SupportsNativeFiles(Protocol):
    """A version that can say where other readers of parquet and ORC find its rows."""

    def split_by_file(self, split: Split) -> Sequence[Split]:
        """Return a split cut into one per file, in order; the split itself where its files belong together."""
        ...

    def native_files(self, split: Split) -> NativeRows | None:
        """Return where other readers find the rows of a split; None where they would return others. Reads nothing."""
        ...

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return for each part, a file each, the positions of the deleted rows. Reads the deletion vectors.

        Args:
            parts: Results of `split_by_file`, of splits that have `native_files`.
            rows: How many rows each file has.
        """
        ...


_FEW_FILES = 32
"""Files that Spark lists at once; for more it runs a job, with a task for each
(spark.sql.sources.parallelPartitionDiscovery.threshold)."""
_MOST_FILES = 20_000
"""Files that are looked at, if they are large: footers are read first, and Spark's listing is to be waited for too."""
_LARGE_BYTES = 4 * 2**20
"""Average size from which Spark's readers save more than its listing costs (spark.sql.files.openCostInBytes)."""
_MOST_GROUPS = 32
"""Scans that are put together: each costs Spark a plan of its own."""
_MOST_DELETED = 2**23
"""Deleted rows that Spark leaves out: their positions are decoded here, 8 bytes each."""
_MAX_BITMAP_BYTES = 64 * 2**20
"""Bytes that each executor holds to leave them out."""
_THREADS = 8
_PLAIN_PATH = re.compile(r"/[\w./=+@,\- %]*", re.ASCII)
"""Paths in which Spark sees no pattern."""
_IGNORED_NAME = re.compile(r"[_.].*|.*\._COPYING_")
"""Names of files that Spark passes over without a word."""
_OPTIONS = {
    "mergeSchema": "false",
    "recursiveFileLookup": "true",  # otherwise folders would be taken for partition columns
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "orc.force.positional.evolution": "false",
    "parquet.page.verify-checksum.enabled": "true",  # where pages carry one
}
_UNSAFE_FILTER_TYPES = (pa.float32(), pa.float64(), pa.timestamp("ms", tz="UTC"))
"""Types of values that Spark's readers overlook where a filter is pushed to them. They pass over files whose statistics
leave out NaN, which is greater than any number; look bit by bit for 0.0 where there is -0.0; and cut a filter's
time to milliseconds. Source: spark ParquetFilters; parquet-format, "Statistics"."""
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
    """The positions of the deleted rows of each: of all files, or of none."""


def frames(
    spark: SparkSession,
    version: TableVersion,
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
        version: The version that the splits are of.
        splits: What to read.
        wanted: The columns to give.
        needed: The same and those of the condition.
        condition: Which rows to keep.
    """
    passes = None if condition is None else translated(condition, needed)
    if not isinstance(version, SupportsNativeFiles):
        return [], list(splits)
    if not wanted.names or not _is_worthwhile(splits) or (condition is not None and passes is None):
        return [], list(splits)
    groups, rest = _groups(version, splits, needed)
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


def _is_worthwhile(splits: Sequence[Split]) -> bool:
    """Return whether Spark's readers may save more than looking at the files costs."""
    files = sum(len(split.files) for split in splits)
    return files <= _FEW_FILES or (
        files <= _MOST_FILES and sum(split.size_bytes for split in splits) >= files * _LARGE_BYTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _VerifiedFile:
    """A file that Spark's readers may read."""

    split: Split
    """It alone."""
    file: NativeFile
    """Where it is."""
    footer: Footer
    """What it holds."""
    sources: tuple[_Source, ...]
    """Where each column comes from."""


def _groups(
    version: SupportsNativeFiles, splits: Sequence[Split], schema: pa.Schema
) -> tuple[list[_Group], list[Split]]:
    """Return the files that Spark's readers may read, and the splits of the others."""
    verified, rest = _verified_files(version, splits, schema)
    groups: dict[object, _Group] = {}
    alike: Counter[object] = Counter()
    for one, positions in zip(verified, _deleted_positions(version, verified, schema), strict=True):
        if positions is None:
            rest.append(one.split)
            continue
        sources = ((item.name, str(item.kind), type(item.constant), repr(item.constant)) for item in one.sources)
        key: tuple[object, ...] = (one.file.kind, *sources)
        if len(positions):  # of those of one size each goes to another group
            alike[key, one.footer.size_bytes] += 1
            key = (*key, alike[key, one.footer.size_bytes])
        group = groups.setdefault(key, _Group(kind=one.file.kind, sources=one.sources))
        group.paths.append(f"file://{one.file.address}")
        group.splits.append(one.split)
        group.sizes.append(one.footer.size_bytes)
        group.gone.append(positions)
    return list(groups.values()), rest


def _verified_files(
    version: SupportsNativeFiles, splits: Sequence[Split], schema: pa.Schema
) -> tuple[list[_VerifiedFile], list[Split]]:
    """Return the files that hold what the table has, and the splits of the others. Reads their footers."""
    rest: list[Split] = []
    files: list[tuple[Split, NativeFile, pa.Table | None]] = []
    for split in splits:
        rows = version.native_files(split)
        if rows is None or not all(_is_readable_path(file.address) for file in rows.files):
            rest.append(split)
            continue
        parts = zip(version.split_by_file(split), rows.files, strict=True)
        files += [(part, file, rows.partition) for part, file in parts]
    constants: dict[int, dict[str, _Source | None]] = {}
    found: list[_VerifiedFile] = []
    for (split, file, partition), file_footer in zip(files, _footers([file for _, file, _ in files]), strict=True):
        if id(partition) not in constants:
            constants[id(partition)] = _constants(partition, schema)
        sources = None if file_footer is None else _sources(file, file_footer, constants[id(partition)], schema)
        if sources is None or file_footer is None or file.rows not in (None, file_footer.rows):
            rest.append(split)
        else:
            found.append(_VerifiedFile(split=split, file=file, footer=file_footer, sources=sources))
    return found, rest


def _deleted_positions(
    version: SupportsNativeFiles, files: Sequence[_VerifiedFile], schema: pa.Schema
) -> list[Positions | None]:
    """Return the deleted positions of each file, maybe none; None where Spark cannot leave the rows out.

    Reads the deletion vectors, if they are of few rows.
    """
    supported = [one for one in files if one.file.deleted and _has_row_positions(one)]
    if sum(one.file.deleted for one in supported) > _MOST_DELETED or METADATA in {
        name.lower() for name in schema.names
    }:
        supported = []
    found = version.deleted_positions([one.split for one in supported], [one.footer.rows for one in supported])
    if bitmap_bytes(found) > _MAX_BITMAP_BYTES:
        supported, found = [], []
    gone = {id(one): positions for one, positions in zip(supported, found, strict=True)}
    return [gone.get(id(one)) if one.file.deleted else NOTHING for one in files]


def _has_row_positions(one: _VerifiedFile) -> bool:
    """Return whether Spark tells of each row where in the file it is."""
    return (
        one.file.kind == "parquet"
        and one.footer.size_bytes < MOST_BYTES
        and one.footer.rows < MOST_ROWS
        and METADATA not in one.footer.folded
    )


def _is_readable_path(address: str | None) -> bool:
    """Return whether Spark reads a path as it stands."""
    if address is None or not _PLAIN_PATH.fullmatch(address):
        return False
    return _IGNORED_NAME.fullmatch(address.rpartition("/")[2]) is None


def _footers(files: Sequence[NativeFile]) -> list[Footer | None]:
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
    file: NativeFile, file_footer: Footer, constants: dict[str, _Source | None], schema: pa.Schema
) -> tuple[_Source, ...] | None:
    """Return where each column comes from; None if one has no source of which it is certain."""
    found = [_source(column, file, file_footer, constants) for column in schema]
    if None in found:
        return None
    sources = tuple(one for one in found if one is not None)
    if not any(one.name for one in sources) and any(column.name not in constants for column in schema):
        return None  # whether a file may lack all that is asked for, the format's own reader finds out
    return sources


def _source(
    column: pa.Field, file: NativeFile, file_footer: Footer, constants: dict[str, _Source | None]
) -> _Source | None:
    if column.name in constants:
        return constants[column.name]
    if column.name not in file.names or (pa.types.is_nested(column.type) and not column.nullable):
        return None  # Spark cannot be told that such a column is never null
    stored = file.names[column.name]
    if stored is None:
        return _Source(kind=column.type)
    if stored not in file_footer.columns and stored.lower() not in file_footer.folded:
        return None if stored in file.present else _Source(kind=column.type)
    kind = file_footer.columns.get(stored)
    if kind is None or not _keeps(kind, column.type) or _has_unsafe_filter_type(kind):
        return None
    return _Source(name=stored, kind=kind)


def _has_unsafe_filter_type(kind: pa.DataType) -> bool:
    """Return whether a struct has fields, at any depth, on which Spark would push filters that it must not push."""
    fields = kind if pa.types.is_struct(kind) else ()
    return any(one.type in _UNSAFE_FILTER_TYPES or _has_unsafe_filter_type(one.type) for one in fields)


def _keeps(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a value of a file is the table's as it is, or a number of fewer bits.

    Parts that are never null in the table may be in the file, and Spark casts no such value.
    """
    if kind in _INTEGERS and wanted in _INTEGERS:
        return bool(kind.bit_width <= wanted.bit_width)
    if kind == pa.float32() and wanted == pa.float64():
        return True
    return bool(spark_type(kind) == spark_type(wanted)) and not has_text(wanted)


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
        if any(map(len, group.gone)):
            rows = without_deleted_rows(spark, rows, group.sizes, group.gone)
        columns = [
            _column(source, kind).alias(kind.name)
            for source, kind in zip(group.sources, spark_schema(needed), strict=True)
        ]
        rows = rows.select(*columns)
        if passes is not None:
            rows = rows.filter(passes)
        rows = rows.select(*(_never_null(kind, f.col(quoted(kind.name))).alias(kind.name) for kind in theirs))
        if rows.schema == theirs:
            return rows
        log.debug("Spark gives %s where %s is wanted", rows.schema, theirs)
    except AnalysisException as error:
        log.info("Spark's own readers do not see the files of the table: %s", str(error).splitlines()[0])
    return None


def _column(source: _Source, kind: Any) -> Column:
    """Return the values of a source in the type of the table."""
    from pyspark.sql import functions as f

    if source.name is not None:
        values = f.col(quoted(source.name)).cast(kind.dataType)
        if source.kind not in _UNSAFE_FILTER_TYPES:
            return values
        # The same values in a form of which Spark pushes no filter to its readers.
        if pa.types.is_timestamp(source.kind):
            return f.timestamp_micros(f.unix_micros(values))
        return f.nanvl(values, f.lit(math.nan).cast(kind.dataType))
    value = f.lit(source.constant).cast(kind.dataType)
    # Spark knows that a literal is not null; the column may be.
    return f.nullif(value, f.lit(None).cast(kind.dataType)) if kind.nullable else value


def _never_null(kind: Any, values: Column) -> Column:
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
