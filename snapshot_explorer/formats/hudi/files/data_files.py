"""Base files as Arrow: parquet and ORC files, with their columns cast to the table's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.arrow import int96, orc_tail, orc_timestamps, parquet_batches
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.positions import bare
from snapshot_explorer.errors import MissingFileError, SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.corrupt_files import LOADABLE, check_size, unreadable
from snapshot_explorer.formats.hudi.files.columns import column, is_exact
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_field
from snapshot_explorer.model import Predicate
from snapshot_explorer.storage import Storage, load_of
from snapshot_explorer.visible import logger_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyarrow import orc

log = logger_of(__name__)

_BATCH_ROWS = 65_536


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
        fields: The columns. No others are read; those that the file lacks are null.
        predicate: A condition on the columns: row groups whose statistics rule out each row are not read.
    """
    with (
        translated(file.path, "ORC" if file.is_orc else "parquet"),
        storage.open(file.path, size_bytes=file.size_bytes) as source,
    ):
        check_size(f"The base file {file.path}", source.size(), file.size_bytes, by="its commit")
        batches = _orc(source, fields) if file.is_orc else _parquet(source, fields, predicate)
        for batch in batches:
            yield conformed(batch, fields, file.path)


def conformed(batch: pa.RecordBatch, fields: Sequence[HudiField], path: str) -> pa.RecordBatch:
    """Return a batch of a file with exactly these columns, in the table's types."""
    if not fields:
        return bare(batch.num_rows)
    names = batch.schema.names
    columns = [
        column(batch.column(names.index(field.name)) if field.name in names else None, field, batch.num_rows, path)
        for field in fields
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([arrow_field(field) for field in fields]))


def _parquet(
    source: pa.NativeFile, fields: Sequence[HudiField], predicate: Predicate | None
) -> Iterator[pa.RecordBatch]:
    reader, another = open_parquet(source)
    schema = reader.schema_arrow
    names = [field.name for field in fields if field.name in schema.names]
    metadata = reader.metadata
    as_stored: Mapping[str, pa.Field] = {
        field.name: schema.field(field.name)
        for field in (fields if predicate is not None else ())
        if field.name in schema.names and is_exact(schema.field(field.name).type, field.type)
    }
    for groups, _, rows in row_groups.runs(metadata, None, row_groups.matching(metadata, as_stored, predicate)):
        if names:
            yield from parquet_batches.batches(reader, names, groups, another=another, load=load_of(source))
        else:
            yield from (bare(min(_BATCH_ROWS, rows - start)) for start in range(0, rows, _BATCH_ROWS))


def open_parquet(source: pa.NativeFile) -> "tuple[pq.ParquetFile, Callable[[], pq.ParquetFile] | None]":
    """Return a parquet file, opened, and what opens it again for another thread, None for a remote one."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    open_reader = partial(pq.ParquetFile, source, page_checksum_verification=True)
    reader = open_reader()
    if any(reader.schema.column(index).physical_type == "INT96" for index in range(len(reader.schema))):
        open_reader = partial(open_reader, metadata=int96.bytes_metadata(source))
        reader = open_reader()
    another = None if isinstance(source, pa.PythonFile | pa.BufferReader) else open_reader
    return reader, another


def _orc(source: pa.NativeFile, fields: Sequence[HudiField]) -> Iterator[pa.RecordBatch]:
    from pyarrow import orc  # noqa: PLC0415 - likewise

    orc_tail.check_types(source)
    reader = orc.ORCFile(source)
    orc_tail.check_stripes(source)
    names = [field.name for field in fields if field.name in reader.schema.names]
    if not names:
        yield from (bare(min(_BATCH_ROWS, reader.nrows - at)) for at in range(0, reader.nrows, _BATCH_ROWS))
        return
    # pyarrow parses a dot in a name as a path into a struct: all columns are read then.
    chosen = None if any("." in name for name in names) else names
    for stripe in range(reader.nstripes):
        yield orc_timestamps.as_java_reads(_stripe(reader, stripe, chosen), source, stripe)


def _stripe(reader: "orc.ORCFile", stripe: int, names: list[str] | None) -> pa.RecordBatch:
    batch = reader.read_stripe(stripe, columns=names)
    batch.validate(full=True)  # the ORC reader does not check that text is UTF-8
    return batch


@contextmanager
def translated(path: str, file_format: str) -> Iterator[None]:
    """Translate errors of readers into errors that name the file."""
    try:
        yield
    except MissingFileError as error:
        raise SnapshotNotFoundError(
            f"The file {path} does not exist: the cleaner removed it, or it was removed by hand. {LOADABLE}; if the "
            "table was copied, see that its data files were, too."
        ) from error
    except SnapshotExplorerError:
        raise
    except (pa.ArrowException, CorruptBytesError, OSError, ValueError, LookupError, OverflowError) as error:
        raise unreadable(path, file_format, error) from error
