"""Rows by Spark's own parquet and ORC readers, where these give exactly what the format means.

That is proven file by file, by their footers: a file's column is of the very type that the table has, or of a narrower
number that every value keeps. Whatever is not proven is left to the format's own reader.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.engines.spark.conditions import translated
from snapshot_explorer.engines.spark.footers import Footer, footer
from snapshot_explorer.engines.spark.schemas import arrow_schema, has_text, spark_batch, spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.model import Split, StoredFile, StoredRows

log = logging.getLogger(__name__)

_MOST_FILES = 1_000
"""Files whose footers are looked at: 0.3 s. Of more, Spark's own listing takes longer than its readers save."""
_MOST_GROUPS = 32
"""Scans that are put together: each costs Spark a plan of its own."""
_THREADS = 8
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

    Only files of this machine are looked at, and only where they are few: each footer is read.

    Args:
        spark: The session.
        table_format: The format that the splits are of.
        splits: What to read.
        wanted: The columns to give.
        needed: The same and those of the condition.
        condition: Which rows to keep.
    """
    passes = None if condition is None else translated(condition, needed)
    few = sum(len(split.files) for split in splits) <= _MOST_FILES
    if not wanted.names or not few or (condition is not None and passes is None):
        return [], list(splits)
    groups, rest = _groups(table_format, splits, needed)
    if len(groups) > _MOST_GROUPS:
        return [], list(splits)
    found: list[DataFrame] = []
    for group in groups:
        frame = _scanned(spark, group, needed, wanted, passes)
        if frame is None:
            rest += group.splits
        else:
            found.append(frame)
    return found, rest


def _groups(table_format: TableFormat, splits: Sequence[Split], schema: pa.Schema) -> tuple[list[_Group], list[Split]]:
    """Return the files that Spark's readers may read, and the splits of the others."""
    rest: list[Split] = []
    files: list[tuple[Split, StoredRows, StoredFile]] = []
    for split in splits:
        whole = table_format.stored(split)
        if whole is None or not all(_is_seen(file.address) for file in whole.files):
            rest.append(split)
            continue
        pieces = table_format.pieces(split)
        files += [(piece, whole, file) for piece, file in zip(pieces, whole.files, strict=True)]
    groups: dict[object, _Group] = {}
    constants = {id(whole): _constants(whole.partition, schema) for _, whole, _ in files}
    for (split, whole, file), there in zip(files, _footers([file for _, _, file in files]), strict=True):
        sources = None if there is None else _sources(file, there, constants[id(whole)], schema)
        if sources is None or there is None or file.rows not in (None, there.rows):
            rest.append(split)
            continue
        key = (file.kind, tuple((one.name, str(one.kind), type(one.constant), repr(one.constant)) for one in sources))
        group = groups.setdefault(key, _Group(kind=file.kind, sources=sources))
        group.paths.append(f"file://{file.address}")
        group.splits.append(split)
    return list(groups.values()), rest


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
    from pyspark.sql import types

    if kind.nullable:
        return values
    stand_in: object = {types.BinaryType: b"", types.BooleanType: False}.get(type(kind.dataType), "0")
    if isinstance(kind.dataType, types.DateType | types.TimestampType | types.TimestampNTZType):
        stand_in = "1970-01-01"
    error = f.raise_error(f.lit(f"The column {kind.name} is never null by the schema, but a data file holds a null."))
    return f.coalesce(values, error.cast(kind.dataType), f.lit(stand_in).cast(kind.dataType))


def quoted(name: str) -> str:
    """Return a column's name as Spark reads it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
