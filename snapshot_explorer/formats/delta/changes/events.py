"""Rows that tell of changes: those of change data files, and those that files and deletion vectors tell.

Source: delta PROTOCOL.md, "Add CDC File"; delta CDCReader.scala.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.delta.files.deletion_vectors import Vector, deleted
from snapshot_explorer.formats.delta.log.data_types import DataType, Field
from snapshot_explorer.formats.delta.scan.read import read, read_rows
from snapshot_explorer.model import Split
from snapshot_explorer.storage import Storage

ROW_KIND = "rowkind"
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
"""What Delta's readers call the columns that tell of a change."""
STORED_CHANGE = Field(name="_change_type of the file", type=DataType(root="string"), stored=CHANGE_TYPE)
"""The column of change data files that says what became of a row."""
_CHANGES = pa.array(["insert", "update_preimage", "update_postimage", "delete"])
_KINDS = pa.array(["+I", "-U", "+U", "-D"])
_UNKNOWN_ROWS = 1 << 40
"""Taken for the rows of a file of which the log does not tell them; reading it tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The rows of a file that are in one deletion vector and not in another."""

    path: str
    """The file, for `Storage.open`."""
    rows: int | None
    """Its rows, where the log tells them."""
    within: Vector
    """What the rows are in."""
    without: Vector | None
    """What they are not in; None where there is no such vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Files whose rows are events of one commit. `Split.detail`; picklable."""

    files: Split
    """The files, and how they are read; of change data files with the column that says what became of a row."""
    change: str | None
    """What became of all the rows: insert, update_preimage, update_postimage, delete; None where the files say it."""
    version: int
    """The version."""
    committed_at: datetime | None
    """When it was committed; None where nothing says so."""
    columns: tuple[str, ...]
    """Names of the schema's columns."""
    marked: Marked | None = None
    """Which rows of the one file are told; None for all that count."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal where the same rows are read."""
        return self.files.identity, self.change, self.version, self.marked


def read_events(storage: Storage, events: Events, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows with these columns, in this order, as they come in the files; they are streamed.

    Beside the schema's columns there are `rowkind` (+I, -U, +U, -D) and those of HIDDEN.

    Raises:
        CorruptTableError: A file or a deletion vector is missing or damaged, or does not say what became of a row.
        InvalidArgumentError, UnsupportedFeatureError: As `read.read`.
    """
    told = [name for name in columns if name in (ROW_KIND, *HIDDEN.names) and name not in events.columns]
    names = [name for name in columns if name not in told]
    is_said = events.change is None and (ROW_KIND in told or CHANGE_TYPE in told)
    for batch in _rows(storage, events, [*names, STORED_CHANGE.name] if is_said else names):
        if not columns:
            yield batch
            continue
        given = dict(zip(names, batch.columns, strict=False))
        given |= {name: _told(name, events, batch, is_said=is_said) for name in told}
        yield pa.RecordBatch.from_arrays([given[name] for name in columns], names=list(columns))


def _rows(storage: Storage, events: Events, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if events.marked is None:
        return read(storage, events.files, names)
    return read_rows(storage, events.files, names, keep={events.marked.path: _positions(storage, events.marked)})


def _positions(storage: Storage, marked: Marked) -> Positions:
    rows = _UNKNOWN_ROWS if marked.rows is None else marked.rows
    within = deleted(storage, marked.within, marked.path, rows)
    if marked.without is None:
        return within
    return np.setdiff1d(within, deleted(storage, marked.without, marked.path, rows), assume_unique=True)


def _told(name: str, events: Events, batch: pa.RecordBatch, *, is_said: bool) -> pa.Array:
    """Return a column that tells of the change."""
    match name:
        case "_commit_version":
            return pa.repeat(pa.scalar(events.version, pa.int64()), batch.num_rows)
        case "_commit_timestamp":
            if events.committed_at is None:
                raise CorruptTableError(
                    f"Nothing says when version {events.version} was committed: it records no time, and the storage "
                    "tells none of its files. Leave _commit_timestamp out."
                )
            return pa.repeat(pa.scalar(events.committed_at, HIDDEN.field(name).type), batch.num_rows)
    changes = batch.column(batch.num_columns - 1) if is_said else pa.repeat(events.change, batch.num_rows)
    places = pc.index_in(changes, _CHANGES)
    if places.null_count:
        odd = changes.filter(places.is_null())[0].as_py()
        raise CorruptTableError(
            f"The change data file {events.files.files[0]}, or one read with it, says {odd!r} in {CHANGE_TYPE}; known "
            f"are {', '.join(_CHANGES.to_pylist())}. It is damaged; use mode='delta', which does not read it."
        )
    return changes if name == CHANGE_TYPE else _KINDS.take(places)
