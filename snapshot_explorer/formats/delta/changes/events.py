"""Changed rows: from change data files, or derived from files and deletion vectors.

Source: delta PROTOCOL.md, "Add CDC File"; delta CDCReader.scala.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import CHANGE_TYPES, ROW_KIND, Split
from snapshot_explorer.formats.delta.files.deletion_vectors import DeltaVector, read_deleted_positions
from snapshot_explorer.formats.delta.files.missing_files import Removals
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, DeltaField
from snapshot_explorer.formats.delta.scan.read import read, read_rows
from snapshot_explorer.storage import Storage

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
HIDDEN = pa.schema(
    [
        pa.field(CHANGE_TYPE, pa.string(), nullable=False),
        pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
        pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""The change columns of Delta's readers."""
STORED_CHANGE = DeltaField(name="_change_type of the file", type=DeltaDataType(root="string"), stored=CHANGE_TYPE)
"""The column of change data files with the kind of change."""
_CHANGES = tuple(CHANGE_TYPES.values())
_KINDS = tuple(CHANGE_TYPES)
_UNKNOWN_ROWS = 1 << 40
"""Assumed row count of a file without one in the log; reading checks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaVectorDifference:
    """The rows of a file that are in one deletion vector and not in another."""

    path: str
    rows: int | None
    """Its row count, if the log contains it."""
    deleted_by: DeltaVector
    not_deleted_by: DeltaVector | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaEvents:
    """Files whose rows are events of one commit. `Split.detail`; picklable."""

    files: Split
    """The files and how to read them; change data files include the column with the kind of change."""
    change: str | None
    """The change of all rows: insert, update_preimage, update_postimage, delete; None if the files contain it."""
    version: int
    committed_at: datetime | None
    columns: tuple[str, ...]
    vector_difference: DeltaVectorDifference | None = None
    """The rows of the single file to return; None for all valid rows."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read."""
        return self.files.identity, self.change, self.version, self.vector_difference


def read_events(
    storage: Storage, events: DeltaEvents, columns: Sequence[str], removals: Removals
) -> Iterator[pa.RecordBatch]:
    """Yield rows with these columns, in this order, streamed in file order.

    In addition to the schema's columns, `rowkind` (+I, -U, +U, -D) and the columns of HIDDEN are available.
    """
    metadata_names = [name for name in columns if name in (ROW_KIND, *HIDDEN.names) and name not in events.columns]
    names = [name for name in columns if name not in metadata_names]
    is_stored = events.change is None and (ROW_KIND in metadata_names or CHANGE_TYPE in metadata_names)
    for batch in _rows(storage, events, [*names, STORED_CHANGE.name] if is_stored else names, removals):
        if not columns:
            yield batch
            continue
        columns_by_name = dict(zip(names, batch.columns, strict=False))
        columns_by_name |= {name: _metadata_column(name, events, batch, is_stored=is_stored) for name in metadata_names}
        yield pa.RecordBatch.from_arrays([columns_by_name[name] for name in columns], names=list(columns))


def _rows(storage: Storage, events: DeltaEvents, names: Sequence[str], removals: Removals) -> Iterator[pa.RecordBatch]:
    if events.vector_difference is None:
        return read(storage, events.files, names, removals=removals)
    return read_rows(
        storage,
        events.files,
        names,
        keep={events.vector_difference.path: _positions(storage, events.vector_difference, removals)},
        removals=removals,
    )


def _positions(storage: Storage, vector_difference: DeltaVectorDifference, removals: Removals) -> Positions:
    path = vector_difference.path
    rows = _UNKNOWN_ROWS if vector_difference.rows is None else vector_difference.rows
    deleted_by = read_deleted_positions(storage, vector_difference.deleted_by, path, rows, removals)
    if vector_difference.not_deleted_by is None:
        return deleted_by
    others = read_deleted_positions(storage, vector_difference.not_deleted_by, path, rows, removals)
    return np.setdiff1d(deleted_by, others, assume_unique=True)


def _metadata_column(name: str, events: DeltaEvents, batch: pa.RecordBatch, *, is_stored: bool) -> pa.Array:
    match name:
        case "_commit_version":
            return pa.repeat(pa.scalar(events.version, pa.int64()), batch.num_rows)
        case "_commit_timestamp":
            if events.committed_at is None:
                raise CorruptTableError(
                    f"The time when version {events.version} was committed is unknown: the commit records none, and "
                    "the storage reports no file times. Leave _commit_timestamp out."
                )
            return pa.repeat(pa.scalar(events.committed_at, HIDDEN.field(name).type), batch.num_rows)
    changes = batch.column(batch.num_columns - 1) if is_stored else pa.repeat(events.change, batch.num_rows)
    indices = pc.index_in(changes, pa.array(_CHANGES))
    if indices.null_count:
        unknown = changes.filter(indices.is_null())[0].as_py()
        raise CorruptTableError(
            Message(
                f"The change data file {events.files.files[0]}, or one read with it, has {unknown!r} in {CHANGE_TYPE}; "
                f"known values are {', '.join(_CHANGES)}. It is damaged; use ",
                Hint("", {"mode": "delta"}),
                ", which does not read it.",
            )
        )
    return changes if name == CHANGE_TYPE else pa.array(_KINDS).take(indices)
