"""Data files as Arrow: parquet files, with their columns mapped and cast to the table's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow.chunks import under
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.records import Predicate
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.corrupt_files import (
    check_read,
    check_rows,
    check_size,
    column_named_in_errors,
    named_in_errors,
)
from snapshot_explorer.formats.delta.files.absent_columns import ExpectedColumns, check_absent
from snapshot_explorer.formats.delta.files.calendars import Calendar, calendar_of
from snapshot_explorer.formats.delta.files.columns import Origin, conform, is_exact, stored_fields
from snapshot_explorer.formats.delta.files.deletion_vectors import DeltaVector
from snapshot_explorer.formats.delta.files.missing_files import Removals, missing_file_error
from snapshot_explorer.formats.delta.metadata.data_types import DeltaField, Mode, arrow_field, arrow_type, type_text
from snapshot_explorer.formats.files.parquet_file import ParquetFile, open_parquet
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_SPARK = b"org.apache.spark."
"""The start of keys in the footers of files by Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaDataFile:
    """A data file to read, from its action. Picklable."""

    path: str
    size_bytes: int | None
    """Size of the file; None if an old action omits it."""
    rows: int | None
    """Physical rows; None if its statistics omit them."""
    vector: DeltaVector | None
    """Its deletion vector; None if all its rows are live."""
    base_row_id: int | None
    """The id of its first row, where rows have ids."""
    commit_version: int | None
    """The version that its rows were committed in, where rows have ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOpenFile:
    """An open data file."""

    file: DeltaDataFile
    parquet: ParquetFile
    schema: pa.Schema
    rows: int
    origin: Origin


@contextmanager
def open_data_file(
    storage: Storage, file: DeltaDataFile, mode: Mode, removals: Removals | None = None
) -> Iterator[DeltaOpenFile]:
    """Open a data file, and name it in errors until it is closed."""
    missing = partial(missing_file_error, f"the data file {file.path}", file.path, removals)
    with (
        named_in_errors(file.path, "parquet", missing),
        storage.open(file.path, size_bytes=file.size_bytes) as source,
    ):
        # Early releases of delta-rs recorded 0 for each file. Source: delta-io/delta-rs pull request 625.
        check_size(f"The data file {file.path}", source.size(), file.size_bytes or None, by="its action in the log")
        parquet = open_parquet(source, coerced_key=_SPARK)
        metadata = parquet.reader.metadata
        rows = int(metadata.num_rows)
        if file.rows is not None:
            check_rows(f"The data file {file.path}", rows, file.rows, by="its action in the log")
        origin = Origin(path=file.path, mode=mode, calendar=calendar_of(metadata.metadata or {}))
        yield DeltaOpenFile(file=file, parquet=parquet, schema=parquet.reader.schema_arrow, rows=rows, origin=origin)


class DeltaColumns:
    """Columns of the table, found in one file after another. Files with the same columns are compared once."""

    def __init__(self, fields: Sequence[DeltaField]) -> None:
        self.fields = fields
        self.schema = pa.schema([arrow_field(field) for field in fields])
        self._last: tuple[pa.Schema, Mode, Calendar] | None = None
        self._stored: tuple[list[pa.Field | None], pa.Schema | None] = ([], None)

    def of(self, opened_file: DeltaOpenFile) -> tuple[list[pa.Field | None], pa.Schema | None]:
        """Return the file's column for each column, and the schema of its batches if they need no conversion."""
        schema, origin = opened_file.schema, opened_file.origin
        last = self._last
        if (
            last is None
            or (origin.mode, origin.calendar) != last[1:]
            or not schema.equals(last[0], check_metadata=True)
        ):
            stored = stored_fields(self.fields, schema, origin)
            self._last = schema, origin.mode, origin.calendar
            self._stored = stored, self._exact(stored, origin)
        return self._stored

    def _exact(self, stored_fields: Sequence[pa.Field | None], origin: Origin) -> pa.Schema | None:
        if not all(
            stored is not None and is_exact(stored, field, origin)
            for stored, field in zip(stored_fields, self.fields, strict=True)
        ):
            return None
        return pa.schema([pa.field(field.name, arrow_type(field.type)) for field in self.fields])


def batches(
    opened_file: DeltaOpenFile,
    columns: DeltaColumns,
    expected: ExpectedColumns,
    keep: Positions | None = None,
    predicate: Predicate | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a data file in file order, each batch after the position of its first row.

    Args:
        keep: Positions, ascending: only row groups with one of them are read, whole. None reads all.
        predicate: A condition on the columns: row groups whose statistics rule out each row are not read.

    Yields:
        Batches with a column per field, named and typed like it; without fields, batches of rows only.
    """
    fields = columns.fields
    stored_fields, are_exact = columns.of(opened_file)
    names = [field.name for field in stored_fields if field is not None]
    if len(names) < len(stored_fields):
        absent = [field for field, stored in zip(fields, stored_fields, strict=True) if stored is None]
        origin, rows = opened_file.origin, opened_file.rows
        check_absent(expected, absent, opened_file.schema, origin, rows=rows, lacks_all=not names)
    log.debug("reading %s of %s", names, opened_file.file.path)
    as_stored = {
        field.name: stored
        for stored, field in (zip(stored_fields, fields, strict=True) if predicate is not None else ())
        if stored is not None and is_exact(stored, field, opened_file.origin)
    }
    metadata = opened_file.parquet.reader.metadata
    for groups, start, rows in row_groups.runs(metadata, keep, row_groups.matching(metadata, as_stored, predicate)):
        at = start
        for batch in opened_file.parquet.batches(names, groups, rows):
            if are_exact:
                ordered = batch if batch.schema.names == names else batch.select(names)
                yield at, under(columns.schema, ordered)
            else:
                yield at, _conform(batch, stored_fields, columns, opened_file)
            at += batch.num_rows
        check_read(f"The data file {opened_file.file.path}", at - start, rows)


def _conform(
    batch: pa.RecordBatch, stored_fields: Sequence[pa.Field | None], columns: DeltaColumns, opened_file: DeltaOpenFile
) -> pa.RecordBatch:
    if not columns.fields:
        return batch
    arrays = [
        pa.nulls(batch.num_rows, arrow_type(field.type))
        if stored is None
        else _column(batch.column(stored.name), field, opened_file)
        for stored, field in zip(stored_fields, columns.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns.schema)


def _column(values: pa.Array, field: DeltaField, opened_file: DeltaOpenFile) -> pa.Array:
    with column_named_in_errors(
        field.name, type_text(field.type), f"the data file {opened_file.file.path}", readers="Delta's own engines"
    ):
        return conform(values, field.type, opened_file.origin)
