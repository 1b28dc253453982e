"""Data files and delete files as Arrow: opened, with their columns and ids, and read in file order."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import pyarrow as pa

from snapshot_explorer.arrow import parquet_batches
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.positions import batches_without_columns
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.records import Predicate
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.avro.container import Container, read_container
from snapshot_explorer.formats.corrupt_files import (
    absent_file_error,
    check_read,
    check_rows,
    check_size,
    named_in_errors,
)
from snapshot_explorer.formats.files.field_columns import (
    Constants,
    FileField,
    Projection,
    project,
    projection,
    unconverted_columns,
)
from snapshot_explorer.formats.files.orc_file import OrcFile
from snapshot_explorer.formats.files.parquet_file import ParquetFile, open_parquet
from snapshot_explorer.formats.iceberg.files.columns import RULES
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules, file_fields, stores_ids
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField
from snapshot_explorer.storage import Storage, load_of

log = logger_of(__name__)

FileFormat = Literal["parquet", "orc", "avro"]
FORMATS: tuple[FileFormat, ...] = ("parquet", "orc", "avro")
BATCH_ROWS = 65_536
"""Rows that are read at a time. With more, the memory of intermediate results is not reused."""

_OVERSTATING = re.compile(r"parquet-mr version 1\.11\.[01]\b")
"""The writer in the footers of files by Iceberg 0.8 to 0.10."""
_READ_BYTES = 65_536
"""Bytes of a column chunk of a local file that are read at a time. A whole chunk would need new memory each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A data file or delete file to read. Picklable."""

    location: str
    format: FileFormat
    rows: int | None
    """Its number of rows by its manifest; None if it is not to be compared."""
    size_bytes: int | None = None
    """Its size by its manifest; None if it is not to be compared."""
    constants: frozenset[int] = frozenset()
    """The ids of columns that the partition defines."""
    path_bounds: tuple[bytes, bytes] | None = None
    """The first and the last path in a position delete file by its manifest; None if not recorded."""
    position_bounds: tuple[bytes, bytes] | None = None
    """The first and the last position in it, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergOpenFile:
    """An open file."""

    file: File
    rows: int
    fields: tuple[FileField, ...]
    reader: ParquetFile | OrcFile | Container
    source: pa.NativeFile
    layouts: "Layouts"
    """The columns of files with the same schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows of a file."""

    start: int
    count: int
    values: pa.RecordBatch | list[pa.Array]
    """The requested columns in order; a batch of the file if it has exactly them."""

    @property
    def columns(self) -> list[pa.Array]:
        """The requested columns in order."""
        columns: list[pa.Array] = self.values.columns if isinstance(self.values, pa.RecordBatch) else self.values
        return columns


class Layouts:
    """The columns of the file that was read last, and their projection: the next file often has the same schema.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._last: tuple[pa.Schema, IdRules, tuple[FileField, ...]] | None = None
        self._projection: tuple[Sequence[IcebergField], tuple[FileField, ...], Projection[IcebergField]] | None = None

    def fields(self, schema: pa.Schema, rules: IdRules, path: str) -> tuple[FileField, ...]:
        """Return the columns of a parquet file; see `file_fields`."""
        last = self._last
        if last is not None and last[1] is rules and last[0].equals(schema, check_metadata=True):
            return last[2]
        result = file_fields(schema, rules, path, by_position=True)
        self._last = schema, rules, result
        return result

    def projection(
        self, fields: Sequence[IcebergField], stored: tuple[FileField, ...], constants: Constants, path: str
    ) -> Projection[IcebergField]:
        """Return the mapping from the columns of a file to requested columns; see `projection`."""
        last = self._projection
        if (
            last is not None
            and last[0] is fields
            and last[1] is stored
            and last[2].constants.keys() == constants.keys()
        ):
            return last[2].of(constants, f"the data file {path}")
        result = projection(RULES, fields, stored, constants, f"the data file {path}")
        self._projection = fields, stored, result
        return result


@contextmanager
def open_data_file(
    storage: Storage,
    file: File,
    rules: IdRules,
    *,
    dictionary: Sequence[str] = (),
    layouts: Layouts | None = None,
) -> Iterator[IcebergOpenFile]:
    """Open a file, and name it in errors until it is closed.

    Args:
        rules: How columns get ids if the file stores none.
        dictionary: Columns of a parquet file that stay dictionary-encoded if they are stored as a dictionary.
    """
    read_head = partial(_head, storage, file, rules, dictionary, layouts or Layouts())
    missing = partial(absent_file_error, f"The file {file.location}")
    with named_in_errors(file.location, file.format, missing), ExitStack() as stack:
        source = stack.enter_context(storage.open(file.location, size_bytes=file.size_bytes))
        try:
            result = read_head(source)
        except (pa.ArrowException, CorruptBytesError, OSError, ValueError):
            if storage.is_local or file.size_bytes != source.size():
                raise
            # A longer file may be at this path now, as is allowed for imported files.
            source = stack.enter_context(storage.open(file.location))
            result = read_head(source)
        size_bytes = source.size()
        if file.size_bytes not in (None, size_bytes) and not (
            _is_imported(result) or _is_overstated(result, size_bytes)
        ):
            check_recorded_size(file, size_bytes)
        if file.rows is not None:
            check_rows(f"The file {file.location}", result.rows, file.rows, by="its manifest")
        yield result


def is_read_despite_size(
    storage: Storage, location: str, recorded: int | None, rules: IdRules, constants: frozenset[int]
) -> bool:
    """Return whether the rows of a file are read although it has another size than recorded. Reads its footer."""
    formats: tuple[FileFormat, ...] = ("parquet", "orc")
    for file_format in formats:
        file = File(location=location, format=file_format, rows=None, constants=constants)
        try:
            with open_data_file(storage, file, rules) as result:
                named = replace(result, file=replace(file, size_bytes=recorded))
                return _is_imported(named) or _is_overstated(named, result.source.size())
        except SnapshotExplorerError:
            continue
    return False


def _head(
    storage: Storage, file: File, rules: IdRules, dictionary: Sequence[str], layouts: Layouts, source: pa.NativeFile
) -> IcebergOpenFile:
    if not source.size():
        check_recorded_size(file, 0)
    if file.format == "parquet":
        return _parquet(file, source, rules, dictionary, layouts)
    if file.format == "orc":
        return _orc(file, source, rules, layouts)
    return _avro(storage, file, source, rules, layouts)


def check_recorded_size(file: File, size_bytes: int) -> None:
    """Check the size of a file that was opened."""
    check_size(f"The file {file.location}", size_bytes, file.size_bytes, by="its manifest")


def _is_imported(opened_file: IcebergOpenFile) -> bool:
    """Return whether a file was registered in the table instead of written by it: its recorded size may be wrong.

    Such files have no field ids, or lack the columns of identity partitions as files of Hive do. An engine that
    overwrites them in place does not update the manifest.

    Source: iceberg specification, "Writer requirements": writers store field ids; `name_mapping` and `partition_*`
    among the test tables of duckdb-iceberg.
    """
    reader, constants = opened_file.reader, opened_file.file.constants
    if isinstance(reader, Container):
        return False
    schema = reader.reader.schema_arrow if isinstance(reader, ParquetFile) else reader.schema
    return not stores_ids(schema) or (
        bool(constants) and constants.isdisjoint(field.id for field in opened_file.fields)
    )


def _is_overstated(opened_file: IcebergOpenFile, size_bytes: int) -> bool:
    """Return whether the recorded size may be larger than the file because of an error of its writer.

    Iceberg 0.8 to 0.10 added what was still buffered to the sizes of parquet files. They wrote with Parquet 1.11.

    Source: apache/iceberg #882, #1980 and #2001.
    """
    reader, recorded = opened_file.reader, opened_file.file.size_bytes or 0
    if not isinstance(reader, ParquetFile) or recorded < size_bytes:
        return False
    footer = reader.reader.metadata
    return b"iceberg.schema" in (footer.metadata or {}) and bool(_OVERSTATING.match(footer.created_by or ""))


def _parquet(
    file: File, source: pa.NativeFile, rules: IdRules, dictionary: Sequence[str], layouts: Layouts
) -> IcebergOpenFile:
    buffer_size = _READ_BYTES if isinstance(source, pa.OSFile) else 0
    parquet = open_parquet(source, dictionary=dictionary, buffer_size=buffer_size)
    return IcebergOpenFile(
        file=file,
        rows=int(parquet.reader.metadata.num_rows),
        fields=layouts.fields(parquet.reader.schema_arrow, rules, file.location),
        reader=parquet,
        source=source,
        layouts=layouts,
    )


def _orc(file: File, source: pa.NativeFile, rules: IdRules, layouts: Layouts) -> IcebergOpenFile:
    reader = OrcFile(source)
    fields = file_fields(reader.schema, rules, file.location, by_position=False)
    return IcebergOpenFile(file=file, rows=reader.rows, fields=fields, reader=reader, source=source, layouts=layouts)


def _avro(storage: Storage, file: File, source: pa.NativeFile, rules: IdRules, layouts: Layouts) -> IcebergOpenFile:
    from snapshot_explorer.formats.iceberg.files.avro_schemas import arrow_schema  # noqa: PLC0415 - for fastavro

    container = read_container(source.read(), file.location, {}, limits=storage.limits)
    fields = file_fields(arrow_schema(container), rules, file.location, by_position=False)
    return IcebergOpenFile(
        file=file, rows=container.rows, fields=fields, reader=container, source=source, layouts=layouts
    )


def read(
    open_file: IcebergOpenFile,
    fields: Sequence[IcebergField],
    constants: Constants,
    *,
    keep: Positions | None = None,
    predicate: Predicate | None = None,
    size: int | None = BATCH_ROWS,
) -> Iterator[Rows]:
    """Yield the rows of a file in file order.

    Args:
        fields: The columns. No others are decoded, except in Avro files.
        constants: Columns that are constant in the file.
        keep: Positions, ascending: of parquet files only row groups with one of them are read, whole. None reads all.
        predicate: A condition on the columns: row groups whose statistics rule out each row are not read.
        size: The maximum number of rows per batch; None for as many as memory allows. Stripes of ORC files are read
            whole.
    """
    columns = open_file.layouts.projection(fields, open_file.fields, constants, open_file.file.location)
    log.debug("reading %s of %s", columns.names, open_file.file.location)
    for groups, start, rows in _runs(open_file, columns, keep, predicate):
        at = start
        for batch in batches(open_file, columns, groups, rows, size=size):
            is_exact = columns.is_exact and batch.schema.names == columns.names
            values = batch if is_exact else project(batch, columns, batch.num_rows, RULES)
            yield Rows(start=at, count=batch.num_rows, values=values)
            at += batch.num_rows
        check_read(f"The file {open_file.file.location}", at - start, rows)


def _runs(
    open_file: IcebergOpenFile, columns: Projection[IcebergField], keep: Positions | None, predicate: Predicate | None
) -> Iterator[tuple[list[int] | None, int, int]]:
    """Yield row groups to read together: their numbers, None for all; the position of the first row; the row count."""
    reader = open_file.reader
    is_whole = keep is None and predicate is None
    if is_whole or not isinstance(reader, ParquetFile):
        yield None, 0, open_file.rows
        return
    metadata = reader.reader.metadata
    yield from row_groups.runs(
        metadata, keep, row_groups.matching(metadata, unconverted_columns(columns, RULES), predicate)
    )


def batches(
    open_file: IcebergOpenFile,
    columns: Projection[IcebergField],
    groups: list[int] | None,
    rows: int,
    *,
    size: int | None = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a file in file order, with the columns of a projection in the types of the file.

    Args:
        groups: The row groups of a parquet file; None for the whole file.
        size: The maximum number of rows per batch; None for as many as memory allows. Stripes of ORC files are read
            whole.
    """
    names, reader = columns.names, open_file.reader
    if not names:
        yield from batches_without_columns(rows, size or BATCH_ROWS)
    elif isinstance(reader, OrcFile):
        yield from reader.batches(names, _micros(columns))
    elif isinstance(reader, Container):
        from snapshot_explorer.formats.avro import rows as avro_rows  # noqa: PLC0415 - for fastavro
        from snapshot_explorer.formats.iceberg.files.avro_schemas import arrow_schema  # noqa: PLC0415 - likewise

        yield from avro_rows.batches(reader, arrow_schema(reader), size or BATCH_ROWS)
    elif size is None:
        parquet = reader.reader
        yield from reader.batches(names, range(parquet.num_row_groups) if groups is None else groups, rows)
    else:
        every = list(range(reader.reader.num_row_groups)) if groups is None else groups
        if (load := load_of(reader.source)) is not None:
            load(parquet_batches.ranges(reader.reader.metadata, names, every))
        if every:  # pyarrow before 19 fails without any; for few rows, threads cost more than they save
            yield from reader.reader.iter_batches(size, row_groups=groups, columns=names, use_threads=rows > BATCH_ROWS)


def _micros(columns: Projection[IcebergField]) -> frozenset[str]:
    """Return the columns of a file whose times are in microseconds in the table."""
    return frozenset(
        stored.name
        for field, stored in columns.targets
        if stored is not None and field.type.root in ("timestamp", "timestamptz")
    )
