"""The deleted positions of a data file: delete files, deletion vectors, and inlined deletes.

Source: DuckLake specification 1.0, "ducklake_delete_file"; reference, "Deletes".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.corrupt_files import named_in_errors
from snapshot_explorer.formats.ducklake.metadata.paths import absent_data_error
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.files.vector_blobs import checked_body, positions_of
from snapshot_explorer.storage import Storage

_MAX_POSITION = 1 << 62
_SNAPSHOTS = "_ducklake_internal_snapshot_id"
DELETE_FORMATS = ("parquet", "puffin")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A delete file of one data file. Picklable."""

    path: str
    """Its path for `Storage`."""
    format: str
    size_bytes: int | None
    up_to: int | None
    """The last snapshot whose deletes count, if the file may contain later ones; None if all count."""


def deleted_positions(
    storage: Storage, files: Sequence[DeleteFile], inlined: Sequence[int], rows: int, path: str
) -> Positions:
    """Return the positions of the deleted rows of a data file, ascending: the union of all its deletes.

    Args:
        inlined: Positions of inlined deletes.
        rows: The number of rows of the data file.
        path: The data file, for messages.

    Raises:
        CorruptTableError: A delete file is missing or damaged, or a position is outside of the data file.
    """
    parts = [read_delete_file(storage, file) for file in files]
    if inlined:
        parts.append(np.asarray(inlined, np.int64))
    if not parts:
        return NOTHING
    result = np.unique(np.concatenate(parts))
    if len(result) and not 0 <= result[0] <= result[-1] < rows:
        raise CorruptTableError(
            f"The deletes of the data file {path} name the position {result[-1] if result[0] >= 0 else result[0]}, and "
            f"it has {rows} rows. The catalog or a delete file is damaged; compare them with a copy."
        )
    return result


def read_delete_file(storage: Storage, file: DeleteFile) -> Positions:
    """Return the positions in a delete file that count."""
    missing = partial(absent_data_error, storage, f"The delete file {file.path}")
    with named_in_errors(file.path, file.format, missing):
        if file.format == "puffin":
            # A bare blob, not in a Puffin file.
            return positions_of(checked_body(storage.read(file.path, size_bytes=file.size_bytes)), _MAX_POSITION)
        with storage.open(file.path, size_bytes=file.size_bytes) as source:
            parquet = open_parquet(source)
            names = parquet.reader.schema_arrow.names
            if "pos" not in names:
                raise CorruptBytesError("it has no column pos")
            chosen = ["pos", _SNAPSHOTS] if _SNAPSHOTS in names and file.up_to is not None else ["pos"]
            groups = range(parquet.reader.metadata.num_row_groups)
            rows = pa.Table.from_batches(
                parquet.batches(chosen, groups, parquet.reader.metadata.num_rows),
                pa.schema([parquet.reader.schema_arrow.field(name) for name in chosen]),
            )
    positions = np.asarray(rows.column("pos").cast(pa.int64()).to_numpy(), np.int64)
    if len(chosen) > 1:
        positions = positions[np.asarray(rows.column(_SNAPSHOTS).to_numpy()) <= file.up_to]
    return positions
