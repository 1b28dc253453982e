"""Base files as Arrow: parquet and ORC files, with their columns cast to the table's."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import vectors
from snapshot_explorer.arrow.positions import rows_without_columns
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.records import Predicate
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.corrupt_files import LOADABLE, check_size, named_in_errors
from snapshot_explorer.formats.files.orc_file import OrcFile
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.hudi.files.columns import column, is_exact
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_field
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFile:
    """A base file to read. Picklable."""

    path: str
    """Its path, below the table's root."""
    size_bytes: int | None
    """Its size; None if it is not recorded."""
    rows: int | None
    """Its number of rows; None if it is not recorded."""

    @property
    def is_orc(self) -> bool:
        """Whether it is an ORC file; otherwise it is a parquet file."""
        return self.path.endswith(".orc")


def read_base(
    storage: Storage, file: BaseFile, fields: Sequence[HudiField], predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a base file in file order, with these columns.

    Args:
        fields: The columns. No others are read; columns that the file lacks are null.
        predicate: A condition on the columns: row groups whose statistics rule out each row are not read.
    """
    with (
        translate_errors(file.path, "ORC" if file.is_orc else "parquet"),
        storage.open(file.path, size_bytes=file.size_bytes) as source,
    ):
        check_size(f"The base file {file.path}", source.size(), file.size_bytes, by="its commit")
        batches = _orc(source, fields) if file.is_orc else _parquet(source, fields, predicate)
        schema = pa.schema([arrow_field(field) for field in fields])
        for batch in batches:
            for portion in vectors.portions(batch, schema):
                yield conform_batch(portion, fields, file.path)


def conform_batch(batch: pa.RecordBatch, fields: Sequence[HudiField], path: str) -> pa.RecordBatch:
    """Return a batch of a file with exactly these columns, in the table's types."""
    if not fields:
        return rows_without_columns(batch.num_rows)
    names = batch.schema.names
    columns = [
        column(batch.column(names.index(field.name)) if field.name in names else None, field, batch.num_rows, path)
        for field in fields
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([arrow_field(field) for field in fields]))


def _parquet(
    source: pa.NativeFile, fields: Sequence[HudiField], predicate: Predicate | None
) -> Iterator[pa.RecordBatch]:
    file = open_parquet(source)
    schema, metadata = file.reader.schema_arrow, file.reader.metadata
    names = [field.name for field in fields if field.name in schema.names]
    as_stored: Mapping[str, pa.Field] = {
        field.name: schema.field(field.name)
        for field in (fields if predicate is not None else ())
        if field.name in schema.names and is_exact(schema.field(field.name).type, field.type)
    }
    for groups, _, rows in row_groups.runs(metadata, None, row_groups.matching(metadata, as_stored, predicate)):
        yield from file.batches(names, groups, rows)


def _orc(source: pa.NativeFile, fields: Sequence[HudiField]) -> Iterator[pa.RecordBatch]:
    file = OrcFile(source)
    names = [field.name for field in fields if field.name in file.schema.names]
    yield from file.batches(names, names)


def translate_errors(path: str, file_format: str) -> AbstractContextManager[None]:
    """Translate errors of readers into errors that name the file."""
    return named_in_errors(
        path,
        file_format,
        lambda: SnapshotNotFoundError(
            Message(
                f"The file {path} does not exist: the cleaner removed it, or it was removed by hand. ",
                LOADABLE,
                "; if the table was copied, see that its data files were, too.",
            )
        ),
    )
