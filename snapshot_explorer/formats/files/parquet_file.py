"""Parquet files, opened so that their times and checksums are read as the formats define them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.arrow import parquet_batches, parquet_footers
from snapshot_explorer.arrow.positions import batches_without_columns
from snapshot_explorer.storage import is_remote, load_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """An open parquet file."""

    reader: "pq.ParquetFile"
    source: pa.NativeFile

    def batches(self, names: Sequence[str], groups: Sequence[int], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of row groups in order, with these columns; without names, rows without columns."""
        if not names:
            return batches_without_columns(rows)
        return parquet_batches.batches(
            self.reader, names, groups, load=load_of(self.source), is_remote=is_remote(self.source)
        )


def open_parquet(
    source: pa.NativeFile, *, coerced_key: bytes | None = None, dictionary: Sequence[str] = (), **options: Any
) -> ParquetFile:
    """Return a parquet file, opened. INT96 columns have the type of 12 bytes (`int96.timestamps`).

    Args:
        coerced_key: The start of a key in the metadata of files whose INT96 columns are timestamps in microseconds.
        dictionary: Columns that stay dictionary-encoded if they are stored as a dictionary.
        options: Arguments of `pyarrow.parquet.ParquetFile`.
    """
    open_reader = partial(parquet_footers.open_file, source, page_checksum_verification=True, **options)
    reader = open_reader(read_dictionary=list(dictionary) or None)
    if any(map(_might_be_int96, reader.schema_arrow.types)) and any(
        reader.schema.column(index).physical_type == "INT96" for index in range(len(reader.schema))
    ):
        if coerced_key is not None and any(key.startswith(coerced_key) for key in reader.metadata.metadata or ()):
            reader = open_reader(metadata=reader.metadata, coerce_int96_timestamp_unit="us")
        else:
            # pyarrow assumes that the nanoseconds of a day are not negative, which holds for files of Spark.
            reader = open_reader(metadata=parquet_footers.metadata_with_int96_as_bytes(source))
    return ParquetFile(reader, source)


def _might_be_int96(dtype: pa.DataType) -> bool:
    is_nested = pa.types.is_nested(dtype) or isinstance(dtype, pa.BaseExtensionType)
    return is_nested or (pa.types.is_timestamp(dtype) and dtype.unit == "ns")
