"""Read rows with Spark's own Parquet and ORC readers if these return exactly the rows of the format.

Footers prove this file by file: a column of the file has the type of the table, or a narrower number type that widens
without loss. The format's own reader reads all other files.

Spark also leaves out the rows that deletion vectors delete from Parquet files (`deleted_rows`).
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.roaring import NOTHING
from snapshot_explorer.core.milliseconds import EPOCH
from snapshot_explorer.core.old_libraries import PYSPARK_ARROW
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.engines.footers import Footer, read_footer
from snapshot_explorer.engines.spark.conditions import translate_condition
from snapshot_explorer.engines.spark.schemas import (
    arrow_schema,
    has_converted,
    quote_column,
    spark_batch,
    spark_schema,
    spark_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from snapshot_explorer.arrow.roaring import Positions
    from snapshot_explorer.core.records import NativeFile, Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion


log = logger_of(__name__)


_FEW_FILES = 32
"""Files that Spark lists at once; for more it runs a job, with a task for each
(spark.sql.sources.parallelPartitionDiscovery.threshold)."""
_MAX_FILES = 20_000
"""The maximum number of large files. Reading footers and Spark's listing take time for each file."""
_LARGE_BYTES = 4 * 2**20
"""The average file size above which Spark's readers save more than its listing costs
(spark.sql.files.openCostInBytes)."""
MAX_GROUPS = 32
"""The maximum number of scans in a union. Spark plans each one."""
_MAX_DELETED = 2**23
"""The maximum number of deleted rows that Spark leaves out. Their positions are decoded here, 8 bytes each."""
_MAX_BITMAP_BYTES = 64 * 2**20
"""The maximum memory for them on each executor."""
_THREADS = 8
_PLAIN_PATH = re.compile(r"/[\w./=+@,\- %]*", re.ASCII)
"""Paths that Spark does not read as a glob pattern."""
_IGNORED_NAME = re.compile(r"[_.].*|.*\._COPYING_")
"""Names of files that Spark silently skips."""
_CHECKSUM_MAGIC, _CHECKSUM_BYTES = b"crc\0", 4
_CHECKSUM_HEADER = struct.Struct(">4si")
"""The first bytes of a file of checksums, and the number of bytes that each checksum covers."""
_OPTIONS = {
    "mergeSchema": "false",
    "recursiveFileLookup": "true",  # otherwise Spark reads folder names as partition columns
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "orc.force.positional.evolution": "false",
    "parquet.page.verify-checksum.enabled": "true",  # if pages contain one
}
_UNSAFE_FILTER_TYPES = (pa.float32(), pa.float64(), pa.timestamp("ms", tz="UTC"))
"""Types for which Spark's readers miss rows if a filter is pushed down. They skip files whose statistics leave out NaN,
which is greater than any number; compare 0.0 and -0.0 bit by bit; and truncate the time of a filter to milliseconds.
Source: spark ParquetFilters; parquet-format, "Statistics"."""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The source of a column: a column of the file, or a constant."""

    name: str | None = None
    """The name in the file; None for a constant."""
    dtype: pa.DataType
    """The type in the file; for a constant, the type in the table."""
    constant: Any = None
    """The constant, as a value for Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    file_format: str
    """parquet or orc."""
    sources: tuple[_Source, ...]
    paths: list[str] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    """The same files as splits of the format."""
    sizes: list[int] = field(default_factory=list)
    """The size of each file. All differ if rows are deleted."""
    gone: list[Positions] = field(default_factory=list)
    """The positions of the deleted rows of each file; empty if no file has any."""


def frames(
    spark: SparkSession,
    version: TableVersion,
    splits: Sequence[Split],
    *,
    schema: pa.Schema,
    needed: pa.Schema,
    condition: Condition | None,
) -> tuple[list[DataFrame], list[Split]]:
    """Return DataFrames of the rows that Spark's readers read exactly, and the remaining splits.

    Considers only local files, and at most 32 files, or at most 20,000 with an average of 4 MB: eight threads read the
    footers here, and Spark lists the files, which takes longer than it saves for smaller files. Creates at most 32
    scans, for the files with the most bytes: a scan reads files of one partition and one schema.

    Args:
        needed: The columns to return and the columns of the condition.
    """
    passes = None if condition is None else translate_condition(condition, needed)
    if not schema.names or not is_worthwhile(splits) or (condition is not None and passes is None):
        return [], list(splits)
    groups, rest = native_groups(version, splits, needed)
    groups.sort(key=lambda group: -sum(group.sizes))
    for group in groups[MAX_GROUPS:]:
        rest += group.splits
    del groups[MAX_GROUPS:]
    parts: list[DataFrame] = []
    for group in groups:
        frame = _scan(spark, group, needed, schema, passes)
        if frame is None:
            rest += group.splits
        else:
            parts.append(frame)
    return parts, rest


def is_worthwhile(splits: Sequence[Split]) -> bool:
    """Return whether Spark's readers may save more than inspecting the files costs."""
    files = sum(len(split.files) for split in splits)
    return files <= _FEW_FILES or (
        files <= _MAX_FILES and sum(split.size_bytes for split in splits) >= files * _LARGE_BYTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _VerifiedFile:
    """A file that Spark's readers may read, as one split."""

    split: Split
    file: NativeFile
    """Its path and format."""
    footer: Footer
    """The columns and size from its footer."""
    sources: tuple[_Source, ...]


def native_groups(
    version: TableVersion, splits: Sequence[Split], schema: pa.Schema
) -> tuple[list[_Group], list[Split]]:
    """Return the files that Spark's readers may read, and the splits of the others."""
    verified, rest = _verified_files(version, splits, schema)
    groups: dict[object, _Group] = {}
    alike: Counter[object] = Counter()
    for verified_file, positions in zip(verified, _deleted_positions(version, verified, schema), strict=True):
        if positions is None:
            rest.append(verified_file.split)
            continue
        sources = (
            (item.name, str(item.dtype), type(item.constant), repr(item.constant)) for item in verified_file.sources
        )
        key: tuple[object, ...] = (verified_file.file.kind, *sources)
        if len(positions):  # files of equal size go to different groups
            alike[key, verified_file.footer.size_bytes] += 1
            key = (*key, alike[key, verified_file.footer.size_bytes])
        group = groups.setdefault(key, _Group(file_format=verified_file.file.kind, sources=verified_file.sources))
        group.paths.append(f"file://{verified_file.file.address}")
        group.splits.append(verified_file.split)
        group.sizes.append(verified_file.footer.size_bytes)
        group.gone.append(positions)
    return list(groups.values()), rest


def _verified_files(
    version: TableVersion, splits: Sequence[Split], schema: pa.Schema
) -> tuple[list[_VerifiedFile], list[Split]]:
    """Return the files whose columns match the table, and the splits of the others. Reads the footers."""
    rest: list[Split] = []
    files: list[tuple[Split, NativeFile, pa.Table | None]] = []
    for split in splits:
        rows = version.native_files.of(split)
        if rows is None or not all(_is_readable_path(file.address) for file in rows.files):
            rest.append(split)
            continue
        parts = zip(version.split_by_file(split), rows.files, strict=True)
        files += [(part, file, rows.partition) for part, file in parts]
    constants: dict[int, dict[str, _Source | None]] = {}
    verified: list[_VerifiedFile] = []
    for (split, file, partition), file_footer in zip(files, _footers([file for _, file, _ in files]), strict=True):
        if id(partition) not in constants:
            constants[id(partition)] = _constants(partition, schema)
        sources = None if file_footer is None else _sources(file, file_footer, constants[id(partition)], schema)
        is_counted = file_footer is not None and file.rows in (None, file_footer.rows)
        if sources is None or file_footer is None or not is_counted or _has_other_checksums(file, file_footer):
            rest.append(split)
        else:
            verified.append(_VerifiedFile(split=split, file=file, footer=file_footer, sources=sources))
    return verified, rest


def _has_other_checksums(file: NativeFile, file_footer: Footer) -> bool:
    """Return whether the checksums beside a file belong to another file size, so that Hadoop cannot read the file.

    Source: hadoop ChecksumFileSystem.
    """
    folder, _, name = str(file.address).rpartition("/")
    checksums = Path(folder, f".{name}.crc")
    try:
        with checksums.open("rb") as content:
            header = content.read(_CHECKSUM_HEADER.size)
        size = checksums.stat().st_size
    except OSError:
        return False
    if not header.startswith(_CHECKSUM_MAGIC) or len(header) < _CHECKSUM_HEADER.size:
        return False  # Hadoop ignores it
    chunk: int = _CHECKSUM_HEADER.unpack(header)[1]
    return chunk <= 0 or size != _CHECKSUM_HEADER.size + _CHECKSUM_BYTES * -(-file_footer.size_bytes // chunk)


def _deleted_positions(
    version: TableVersion, files: Sequence[_VerifiedFile], schema: pa.Schema
) -> list[Positions | None]:
    """Return the deleted positions of each file, possibly none; None if Spark cannot leave the rows out.

    Reads the deletion vectors if they delete few rows.
    """
    supported = [file for file in files if file.file.deleted and _has_row_positions(file)]
    is_too_many = sum(file.file.deleted for file in supported) > _MAX_DELETED
    if is_too_many or METADATA in {name.lower() for name in schema.names} or PYSPARK_ARROW.applies():
        supported = []
    counts = [file.footer.rows for file in supported]
    deleted = version.native_files.deleted_positions([file.split for file in supported], counts)
    if bitmap_bytes(deleted) > _MAX_BITMAP_BYTES:
        supported, deleted = [], []
    gone = {id(file): positions for file, positions in zip(supported, deleted, strict=True)}
    return [gone.get(id(file)) if file.file.deleted else NOTHING for file in files]


def _has_row_positions(file: _VerifiedFile) -> bool:
    return (
        file.file.kind == "parquet"
        and file.footer.size_bytes < MOST_BYTES
        and file.footer.rows < MOST_ROWS
        and METADATA not in file.footer.folded
    )


def _is_readable_path(address: str | None) -> bool:
    if address is None or not _PLAIN_PATH.fullmatch(address):
        return False
    return _IGNORED_NAME.fullmatch(address.rpartition("/")[2]) is None


def _footers(files: Sequence[NativeFile]) -> list[Footer | None]:
    with ThreadPoolExecutor(_THREADS, "snapshot-footers") as pool:
        return list(pool.map(read_footer, files))


def _constants(partition: pa.Table | None, schema: pa.Schema) -> dict[str, _Source | None]:
    """Return the source of each partition column; None for a value that has no literal in Spark."""
    constants: dict[str, _Source | None] = {}
    if partition is None:
        return constants
    for name in partition.column_names:
        if name in schema.names:
            own_schema = pa.schema([schema.field(name)])
            values = spark_batch([partition.column(name).combine_chunks()], arrow_schema(own_schema)).column(0)
            dtype = values.type
            is_literal = dtype in (*_INTEGERS, pa.string(), pa.bool_(), pa.date32()) or pa.types.is_decimal(dtype)
            source = _Source(dtype=dtype, constant=values[0].as_py())
            constants[name] = source if is_literal or not values[0].is_valid else None
    return constants


def _sources(
    file: NativeFile, file_footer: Footer, constants: dict[str, _Source | None], schema: pa.Schema
) -> tuple[_Source, ...] | None:
    """Return the source of each column; None if the source of a column is uncertain."""
    candidates = [_source(column, file, file_footer, constants) for column in schema]
    if None in candidates:
        return None
    sources = tuple(source for source in candidates if source is not None)
    if not any(source.name for source in sources) and any(column.name not in constants for column in schema):
        return None  # the format's own reader checks whether a file may lack all selected columns
    return sources


def _source(
    column: pa.Field, file: NativeFile, file_footer: Footer, constants: dict[str, _Source | None]
) -> _Source | None:
    if column.name in constants:
        return constants[column.name]
    if column.name not in file.names or (pa.types.is_nested(column.type) and not column.nullable):
        return None  # there is no way to declare in Spark that this column is never null
    stored = file.names[column.name]
    if stored is None:
        return _Source(dtype=column.type)
    if stored not in file_footer.columns and stored.lower() not in file_footer.folded:
        is_uncertain = stored in file.present or _may_have_id(file, file_footer, stored)
        return None if is_uncertain else _Source(dtype=column.type)
    dtype = file_footer.columns.get(stored)
    if file.ids is not None and file_footer.ids.get(stored) != file.ids[stored]:
        return None
    if dtype is None or not _keeps(dtype, column.type) or _has_unsafe_filter_type(dtype):
        return None
    return _Source(name=stored, dtype=dtype)


def _may_have_id(file: NativeFile, file_footer: Footer, stored: str) -> bool:
    """Return whether a file may store a column under another name.

    Iceberg's writers replace characters that a name in Avro cannot have: the column `1st` is `_1st` in the file.

    Source: iceberg TypeToMessageType, AvroSchemaUtil.
    """
    return file.ids is not None and (not file_footer.ids or file.ids[stored] in file_footer.ids.values())


def _has_unsafe_filter_type(dtype: pa.DataType) -> bool:
    """Return whether a struct has fields, at any depth, for which a pushed filter would miss rows."""
    fields = dtype if pa.types.is_struct(dtype) else ()
    return any(field.type in _UNSAFE_FILTER_TYPES or _has_unsafe_filter_type(field.type) for field in fields)


def _keeps(dtype: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a type of a file is the table's, or a number with fewer bits.

    Fields that are never null in the table may be null in the file, and Spark does not cast such values.
    """
    if dtype in _INTEGERS and target in _INTEGERS:
        return bool(dtype.bit_width <= target.bit_width)
    if dtype == pa.float32() and target == pa.float64():
        return True
    return bool(spark_type(dtype) == spark_type(target)) and not has_converted(target)


def _scan(
    spark: SparkSession, group: _Group, needed: pa.Schema, schema: pa.Schema, passes: Column | None
) -> DataFrame | None:
    """Return the rows of a group; None if Spark cannot access its files, or would read another schema."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    stored = {source.name: source.dtype for source in group.sources if source.name is not None}
    reader = spark.read.schema(spark_schema(pa.schema([pa.field(name, field) for name, field in stored.items()])))
    theirs = spark_schema(schema)
    try:
        rows = reader.options(**_OPTIONS).format(group.file_format).load(group.paths)
        if any(map(len, group.gone)):
            rows = without_deleted_rows(spark, rows, group.sizes, group.gone)
        columns = [
            _column(source, field).alias(field.name)
            for source, field in zip(group.sources, spark_schema(needed), strict=True)
        ]
        rows = rows.select(*columns)
        if passes is not None:
            rows = rows.filter(passes)
        rows = rows.select(*(_never_null(field, f.col(quote_column(field.name))).alias(field.name) for field in theirs))
        if rows.schema == theirs:
            return rows
        log.debug("Spark reads the schema %s, but the table has %s", rows.schema, theirs)
    except AnalysisException as error:
        log.info("Spark's own readers do not see the files of the table: %s", str(error).splitlines()[0])
    return None


def _column(source: _Source, field: Any) -> Column:
    from pyspark.sql import functions as f

    if source.name is not None:
        values = f.col(quote_column(source.name)).cast(field.dataType)
        if source.dtype not in _UNSAFE_FILTER_TYPES:
            return values
        # The same values in an expression for which Spark pushes no filter down.
        if pa.types.is_timestamp(source.dtype):
            return f.timestamp_micros(f.unix_micros(values))
        return f.nanvl(values, f.lit(math.nan).cast(field.dataType))
    value = f.lit(source.constant).cast(field.dataType)
    # For Spark, a literal is never null; the column may be.
    return f.nullif(value, f.lit(None).cast(field.dataType)) if field.nullable else value


def _never_null(field: Any, values: Column) -> Column:
    """Return values that Spark treats as never null. Spark fails if one is null."""
    from pyspark.sql import functions as f

    if field.nullable:
        return values
    error = f.raise_error(
        f.lit(f"The column {field.name} is never null by the schema, but a data file contains a null.")
    )
    return f.coalesce(values, error.cast(field.dataType), f.lit(_stand_in(field.dataType)).cast(field.dataType))


def _stand_in(field_type: Any) -> object:
    """Return a value cast to a non-nullable type; Spark makes the result of a cast from text nullable."""
    from pyspark.sql import types

    match field_type:
        case types.DecimalType():
            return Decimal(0).scaleb(-field_type.scale)
        case types.NumericType():
            return 0
        case types.BooleanType():
            return False
        case types.BinaryType():
            return b""
        case types.DateType():
            return EPOCH.date()
        case types.TimestampType() | types.TimestampNTZType():
            return EPOCH
    return ""


METADATA = "_metadata"
"""Spark's metadata column about the file of a row."""
MOST_ROWS = 2**31
MOST_BYTES = 2**32
"""Limits for files whose deleted rows are left out: the product of both fits a long."""
CHUNK_WIDTHS = (6, 8, 10, 12, 14, 16)
"""Sizes of a chunk, as powers of two: small chunks suit few deleted rows that are far apart."""
_WORD = 6
"""Bits of a long, as a power of two."""
_ENTRY_BYTES = 64
"""The bytes of a chunk in Spark's hash table, without its bits."""


def bitmap_bytes(gone: Sequence[Positions]) -> int:
    """Return an estimate of the memory that leaving out these rows needs on each executor."""
    return _bitmap_bytes(gone, chunk_width(gone))


def chunk_width(gone: Sequence[Positions]) -> int:
    """Return the binary logarithm of the chunk size with the smallest bitmaps for these deleted rows."""
    return min(CHUNK_WIDTHS, key=lambda chunk: _bitmap_bytes(gone, chunk))


def _bitmap_bytes(gone: Sequence[Positions], chunk: int) -> int:
    chunks = sum(1 + int(np.count_nonzero(np.diff(positions >> chunk))) for positions in gone if len(positions))
    return chunks * (_ENTRY_BYTES + (1 << chunk) // 8)


def without_deleted_rows(
    spark: SparkSession, rows: DataFrame, sizes: Sequence[int], gone: Sequence[Positions]
) -> DataFrame:
    """Return the rows of Parquet files without deleted ones. Spark fails on a file with an unknown size.

    Args:
        sizes: The size of each file, below `MOST_BYTES`. All differ.
        gone: The positions of the deleted rows of each file, ascending and below `MOST_ROWS`.

    Source: spark docs, "File metadata column"; ParquetRowIndexUtil, which also counts rows that are not read.
    """
    from pyspark.sql import functions as f

    stem = "_" * max(map(len, rows.columns), default=0)
    index, chunk, words = (f"{stem}_{name}" for name in ("place", "chunk", "words"))
    width = chunk_width(gone)
    bitmaps = spark.createDataFrame(_bitmaps(sizes, gone, width).rename_columns([chunk, words]))
    size = f.col(f"{METADATA}.file_size")
    changed = f.raise_error(
        f.lit("The size of a data file has changed since the DataFrame was created. Create it again.")
    )
    row_place = f.when(size.isin(list(sizes)), size * f.lit(MOST_ROWS) + f.col(f"{METADATA}.row_index"))
    placed = rows.select("*", row_place.otherwise(changed.cast("bigint")).alias(index))
    placed = placed.withColumn(chunk, f.shiftright(index, width))
    word = f.shiftright(index, _WORD).bitwiseAND(f.lit((1 << width - _WORD) - 1)).cast("int")
    bit = f.getbit(f.get(words, word), f.col(index).bitwiseAND(f.lit((1 << _WORD) - 1)).cast("int"))
    # A chunk without deleted rows has no bitmap.
    kept = placed.join(f.broadcast(bitmaps), chunk, "left").where(f.coalesce(bit, f.lit(0)) == 0)
    return kept.drop(index, chunk, words)


def _bitmaps(sizes: Sequence[int], gone: Sequence[Positions], width: int) -> pa.Table:
    """Return the number of each chunk with deleted rows, and its bits as longs, lowest bit first."""
    indices = (positions + size * MOST_ROWS for size, positions in zip(sizes, gone, strict=True))
    chunks, words = zip(*starmap(chunk_bits, ((each, width) for each in indices)), strict=True)
    flat = np.concatenate(words)
    offsets = np.arange(0, len(flat) + 1, 1 << width - _WORD, dtype=np.int32)
    return pa.table([np.concatenate(chunks), pa.ListArray.from_arrays(offsets, flat)], names=["chunk", "words"])


def chunk_bits(indices: Positions, width: int) -> tuple[Positions, Positions]:
    """Return the chunks of ascending addresses, and the words of all chunks, concatenated."""
    chunks, at = np.unique(indices >> width, return_inverse=True)
    words = np.zeros(len(chunks) << width - _WORD, np.int64)
    if len(indices):
        word = (at << width - _WORD) + (indices >> _WORD & (1 << width - _WORD) - 1)
        firsts = np.flatnonzero(np.diff(word, prepend=-1))
        bits = np.left_shift(np.int64(1), indices & (1 << _WORD) - 1)
        words[word[firsts]] = np.bitwise_or.reduceat(bits, firsts)
    return chunks, words
