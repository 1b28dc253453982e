"""Rows from DuckDB's own parquet reader, for files whose footers prove that it returns exactly the version's rows.

DuckDB skips row groups and pages, and decodes the columns to return only where rows match. It reads only local
parquet files without deleted rows, whose columns have exactly the types of the table, and whose pages match their
checksums. The format's own reader reads all other files, and files for which DuckDB reports an error.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.arrow import parquet_pages
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.old_libraries import DUCKDB_ROW_ORDER
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.engines.duckdb_ast import hide_statistics, quote_identifier
from snapshot_explorer.engines.duckdb_sessions import file_cursor
from snapshot_explorer.engines.footers import Identity, file_identity, read_footer
from snapshot_explorer.formats import row_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import duckdb

    from snapshot_explorer.core.records import NativeFile, Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.engines.scan import Scan
    from snapshot_explorer.formats import TableVersion

log = logger_of(__name__)

_FEW_FILES, _MAX_FILES = 32, 1_000
"""The maximum number of files whose footers are read: of any size, and of large files."""
_MIN_BYTES = 2**20
"""Average file size from which DuckDB's reader saves more than reading the footers again costs."""
_MAX_RUNS = 32
"""The maximum number of queries for one scan."""
_THREADS = 8
_PLAIN_PATH = re.compile(r"/[\w./=+@,\- %]*", re.ASCII)
"""Paths that DuckDB does not read as a pattern."""
_FLOATS = (pa.float32(), pa.float64())
_TEXTS = (pa.string(), pa.binary())
_UTC, _DUCKDB_UTC = pa.timestamp("us", tz="UTC"), pa.timestamp("us", tz="Etc/UTC")
_TYPES = frozenset(
    (
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        *_FLOATS,
        *_TEXTS,
        pa.date32(),
        pa.timestamp("us"),
        _UTC,
    )
)
"""Types that DuckDB and Arrow read alike from parquet files, and that DuckDB returns unchanged; decimals too."""
_CONSTANTS = "__snapshot_constants__"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFile:
    """A file that DuckDB may read."""

    path: str
    """Its absolute path."""
    stored: Identity
    """The file's identity when its footer was read."""
    names: tuple[tuple[str, str], ...]
    """The stored name of each column that is in the file."""
    guarded: frozenset[str]
    """The columns whose statistics DuckDB must not use."""
    constants: pa.Table | None
    """One row: the value of each partition column to read; None without any."""
    checksums: tuple[tuple[int, int], ...]
    """The column chunks to read whose pages have checksums, each a row group and a column."""


def select_rows(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> pa.Table | None:
    """Return the rows of splits in their order; None unless it is proven that DuckDB returns exactly these rows.

    Reads the footers of the files first. The rows equal the result of `engines.local.to_arrow`.
    """
    files = provable_files(reader, splits, scan.needed, scan.condition)
    if files is None:
        return None
    parts: list[pa.Table] = []
    left = scan.limit
    for run in _runs(files):
        rows = _fetch(run, scan.columns, scan, left)
        if rows is None:
            return None
        parts.append(rows)
        left = None if left is None else left - rows.num_rows
        if left == 0:
            break
    if not scan.columns.names:  # tables without columns cannot be joined, but they do have rows
        return _without_columns(sum(rows.num_rows for rows in parts))
    return pa.concat_tables(parts) if parts else scan.columns.empty_table()


def count(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> int | None:
    """Return the number of matching rows; None unless it is proven that DuckDB counts them as the format does."""
    condition = scan.condition
    if condition is None or not condition.columns:
        return None
    needed = pa.schema([field for field in scan.needed if field.name in condition.columns])
    files = provable_files(reader, splits, needed, condition)
    if files is None:
        return None
    total = 0
    for run in _runs(files):
        rows = _fetch(run, None, scan, None)
        if rows is None:
            return None
        total += rows.column(0)[0].as_py()
    return total


def _runs(files: Sequence[QueryFile]) -> Iterator[Sequence[QueryFile]]:
    for _, run in groupby(files, key=_kind):
        yield list(run)


def _kind(file: QueryFile) -> tuple[object, ...]:
    return file.names, file.guarded, id(file.constants)


def provable_files(
    reader: TableVersion, splits: Sequence[Split], schema: pa.Schema, predicate: Condition | None
) -> list[QueryFile] | None:
    """Return the files of splits, in order, if DuckDB reads these columns of every one as the format does.

    Checksums of pages without a matching row may not be verified.
    """
    if not schema.names or not splits or not _is_worthwhile(splits):
        return None
    if len({name.lower() for name in schema.names}) < len(schema.names):
        return None  # DuckDB finds columns in any case of letters
    if not all(field.type in _TYPES or pa.types.is_decimal128(field.type) for field in schema):
        return None
    stored: list[tuple[NativeFile, pa.Table | None]] = []
    for split in splits:
        native = reader.native_files.of(split) if split.raw else None
        if native is None:
            return None
        stored += [(file, native.partition) for file in native.files]
    if not all(file.kind == "parquet" and not file.deleted and _is_plain(file.address) for file, _ in stored):
        return None
    with ThreadPoolExecutor(_THREADS, "snapshot-footers") as pool:
        apply = pool.map if len(stored) > _FEW_FILES else map  # starting a thread costs as much as some footers
        files = list(apply(lambda item: _proven_file(item[0], item[1], schema, predicate), stored))
        result = [file for file in files if file is not None]
        if len(result) < len(files) or len({_kind(file) for file in result}) > _MAX_RUNS:
            return None
        return result if all(pool.map(_is_intact, [file for file in result if file.checksums])) else None


def _is_worthwhile(splits: Sequence[Split]) -> bool:
    files = sum(len(split.files) for split in splits)
    are_large = sum(split.size_bytes for split in splits) >= files * _MIN_BYTES
    return files <= (_MAX_FILES if are_large else _FEW_FILES)


def _is_plain(address: str | None) -> bool:
    return address is not None and _PLAIN_PATH.fullmatch(address) is not None


def _proven_file(
    file: NativeFile, partition: pa.Table | None, schema: pa.Schema, predicate: Condition | None
) -> QueryFile | None:
    """Return a file if its footer has each column in the type of the table."""
    try:
        before = file_identity(file.address or "")
    except OSError:
        return None
    stored_footer = read_footer(file)
    if stored_footer is None or file.rows not in (None, stored_footer.rows):
        return None
    constants = partition.column_names if partition is not None else ()
    names = {}
    for field in schema:
        if field.name in constants:
            continue
        stored = file.names.get(field.name)
        if stored is None or stored_footer.columns.get(stored) != field.type:
            return None
        if file.ids is not None and stored_footer.ids.get(stored) != file.ids[stored]:
            return None
        names[field.name] = stored
    path = file.address or ""
    fields = tuple((name, pa.field(in_file, schema.field(name).type)) for name, in_file in names.items())
    try:
        # Rows of the only row group might match, or the file would not be read.
        checksums = (
            _checksums(file_identity(path), fields, predicate if stored_footer.row_groups > 1 else None)
            if names
            else None
        )
    except (CorruptBytesError, pa.ArrowException, OSError):
        checksums = None  # the format's own reader raises the error
    if checksums is None:
        return None
    read = [name for name in constants if name in schema.names]
    doubted = _FLOATS if row_groups.WRITERS.match(stored_footer.writer) else (*_FLOATS, *_TEXTS)
    return QueryFile(
        stored=before,
        path=path,
        names=tuple(names.items()),
        guarded=frozenset(name for name in names if schema.field(name).type in doubted),
        constants=partition.select(read) if partition is not None and read else None,
        checksums=checksums,
    )


@lru_cache(maxsize=1_000)
def _checksums(
    file: Identity, fields: tuple[tuple[str, pa.Field], ...], predicate: Condition | None
) -> tuple[tuple[int, int], ...]:
    """Return the column chunks whose pages have checksums, each a row group and a column.

    Only of row groups in which rows might match the predicate. A file that was rewritten is read again.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    with pa.memory_map(file.path) as source:
        metadata = pq.ParquetFile(source).metadata
        leaves = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
        return tuple(
            (group, leaves[field.name])
            for group in row_groups.matching(metadata, dict(fields), predicate)
            for _, field in fields
            if parquet_pages.has_checksums(source, metadata.row_group(group).column(leaves[field.name]))
        )


def are_unchanged(files: Iterable[QueryFile]) -> bool:
    """Return whether no file was written to or replaced since its footer was read."""
    try:
        return all(file_identity(file.path) == file.stored for file in files)
    except OSError:
        return False


def _is_intact(file: QueryFile) -> bool:
    """Return whether pages match their checksums, which DuckDB does not verify."""
    try:
        return _has_intact(file_identity(file.path), file.checksums)
    except (CorruptBytesError, pa.ArrowException, OSError):
        return False  # the format's own reader raises the error


@lru_cache(maxsize=1_000)
def _has_intact(file: Identity, chunks: tuple[tuple[int, int], ...]) -> bool:
    """Return whether the pages of column chunks match their checksums.

    Intact pages are not read again unless the file is rewritten.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    with pa.memory_map(file.path) as source:
        metadata = pq.ParquetFile(source).metadata
        return all(parquet_pages.is_intact(source, metadata.row_group(group).column(leaf)) for group, leaf in chunks)


def _fetch(run: Sequence[QueryFile], columns: pa.Schema | None, scan: Scan, limit: int | None) -> pa.Table | None:
    """Return rows of files that one query reads, or their number without columns; None if DuckDB fails."""
    import duckdb

    condition = scan.condition
    outputs = [f"__snapshot_out_{index}__" for index in range(0 if columns is None else len(columns))]
    inner = [
        f"{_value(run[0], name)} AS {out}" for name, out in zip(columns.names if columns else (), outputs, strict=True)
    ]
    inner += [
        f"{_guard_column(run[0], name)} AS {quote_identifier(name)}"
        for name in (sorted(condition.columns) if condition else ())
    ]
    # Names are quoted, paths are plain, and the condition has been parsed as one expression without subqueries.
    chosen = "count(*)" if columns is None else ", ".join(outputs) or "true"
    query = f"SELECT {chosen} FROM (SELECT {', '.join(inner)} FROM {_files(run)})"  # noqa: S608
    if condition is not None:
        matches = f"(\n{condition.text}\n)"
        query += f" WHERE {f'coalesce(CAST({matches} AS BOOLEAN), false)' if DUCKDB_ROW_ORDER.applies() else matches}"
    query += "" if limit is None else f" LIMIT {limit}"
    with file_cursor() as cursor:
        try:
            if run[0].constants is not None:
                cursor.register(_CONSTANTS, run[0].constants)
            rows = cursor.sql(query).to_arrow_table()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            log.debug("DuckDB does not read %s and %s more: %s", run[0].path, len(run) - 1, str(error).splitlines()[0])
            return None
    if not are_unchanged(run):
        return None  # rows of two contents may be mixed: the format's own reader reads one, or raises an error
    if columns is None:
        return rows
    return _cast_rows(rows, columns) if outputs else _without_columns(rows.num_rows)


def _without_columns(rows: int) -> pa.Table:
    return pa.table({"rows": pa.nulls(rows)}).select([])


def _cast_rows(rows: pa.Table, columns: pa.Schema) -> pa.Table | None:
    """Return rows under a schema; None if the type of a column differs in more than the name of UTC."""
    typed = [
        values.cast(field.type) if values.type == _DUCKDB_UTC and field.type == _UTC else values
        for values, field in zip(rows.columns, columns, strict=True)
    ]
    if [values.type for values in typed] != [field.type for field in columns]:
        log.debug("DuckDB returns %s for %s", rows.schema, columns)
        return None
    return pa.Table.from_arrays(typed, schema=columns)


def view(cursor: duckdb.DuckDBPyConnection, files: Sequence[QueryFile], columns: Mapping[str, str], prefix: str) -> str:
    """Return a query of DuckDB over all rows of files, in order. Conditions on it skip row groups.

    Args:
        cursor: The connection in which the partition values of the query are registered.
        prefix: The start of the names under which partition values are registered.
    """
    parts = []
    for number, run in enumerate(_runs(files)):
        constants = f"{prefix}{number}"
        if run[0].constants is not None:
            cursor.register(constants, run[0].constants)
        values = [
            f"{_guard_column(run[0], name, constants)} AS {quote_identifier(result)}"
            for name, result in columns.items()
        ]
        parts.append(f"SELECT {', '.join(values)} FROM {_files(run)}")  # noqa: S608 - as in _fetch
    return " UNION ALL ".join(parts)


def _files(run: Sequence[QueryFile]) -> str:
    paths = ", ".join(f"'{file.path}'" for file in run)
    return f"read_parquet([{paths}], hive_partitioning = false, union_by_name = false)"


def _value(file: QueryFile, name: str, constants: str = _CONSTANTS) -> str:
    stored = dict(file.names).get(name)
    return f"(SELECT {quote_identifier(name)} FROM {constants})" if stored is None else quote_identifier(stored)  # noqa: S608


def _guard_column(file: QueryFile, name: str, constants: str = _CONSTANTS) -> str:
    """Return a column in a form for which DuckDB uses no statistics where these are unreliable.

    Statistics of parquet leave out NaN, which is greater than any number in DuckDB: `x > 5` would skip files with it.
    Source: parquet-format, "Statistics".
    """
    value = _value(file, name, constants)
    return hide_statistics(value) if name in file.guarded else value
