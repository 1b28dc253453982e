"""The rows that changed between two versions, matched by their row ids.

The states of consecutive versions are compared under the columns of the last one: a row id that is only in the later
state was inserted, one that is only in the earlier state deleted, and one whose values differ updated. Splits that both
versions read in the same way are not read.

Source: reference, "Changes between snapshots".
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.equal_values import exact_keys, same
from snapshot_explorer.core.records import CHANGE_COLUMNS, CHANGE_TYPES, ROW_KIND, Split
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_field
from snapshot_explorer.formats.ducklake.metadata.log import DuckLakeLog
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata
from snapshot_explorer.formats.ducklake.scan.planning import plan
from snapshot_explorer.formats.ducklake.scan.read import HIDDEN, read_split
from snapshot_explorer.storage import Storage

_KINDS = tuple(CHANGE_TYPES)
_INSERTED, _BEFORE, _AFTER, _DELETED = range(4)
_ROW_ID = HIDDEN.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckLakeEvents:
    """The splits in which two consecutive versions differ. `Split.detail`; picklable."""

    before: tuple[Split, ...]
    after: tuple[Split, ...]
    fields: tuple[LakeField, ...]
    """The columns of the rows."""
    version: int
    committed_at: datetime | None

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read."""
        return tuple(tuple(split.identity for split in splits) for splits in (self.before, self.after)), self.version


def splits_between(log: DuckLakeLog, metadata: DuckLakeMetadata, first: int, last: int) -> list[Split]:
    """Return a split for each version after the first up to the last that changed files, deletes or inlined rows.

    A first version before the table was created has no rows.
    """
    fields = metadata.fields_at(last)
    versions = metadata.versions[(metadata.versions > first) & (metadata.versions <= last)].tolist()
    start = metadata.version_at(first)
    known: tuple[Split, ...] = () if start is None else plan(log, metadata, start, fields=fields).splits
    result = []
    for version in versions:
        own = plan(log, metadata, version, fields=fields).splits
        shared = {split.identity for split in known} & {split.identity for split in own}
        before, after = (tuple(split for split in side if split.identity not in shared) for side in (known, own))
        known = own
        if before or after:
            result.append(_split(metadata, version, before, after, fields))
    return result


def _split(
    metadata: DuckLakeMetadata,
    version: int,
    before: tuple[Split, ...],
    after: tuple[Split, ...],
    fields: tuple[LakeField, ...],
) -> Split:
    time = metadata.snapshots.column("snapshot_time")[metadata.index_of(version)].as_py()
    parts = (*before, *after)
    return Split(
        files=tuple(dict.fromkeys(path for split in parts for path in split.files)),
        raw=False,
        partition={},
        bucket=None,
        rows=None,
        size_bytes=sum(split.size_bytes for split in parts),
        detail=DuckLakeEvents(before=before, after=after, fields=fields, version=version, committed_at=time),
    )


def read_events(storage: Storage, events: DuckLakeEvents, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows of a version: inserts, deletes, then updates before and after, as one batch.

    In addition to the columns of the rows, `rowkind`, the metadata columns and CHANGE_COLUMNS are available. Reads both
    states whole.
    """
    before, after = (_rows(storage, splits, events) for splits in (events.before, events.after))
    chosen = _matched(before, after)
    indices = pa.array(np.concatenate([part for _, part in chosen]), pa.int64())
    kinds = np.concatenate([np.full(len(part), kind) for kind, part in chosen])
    if not len(kinds):
        return
    # Rows of the later state follow those of the earlier one.
    rows = pa.concat_tables([before, after]).take(indices).combine_chunks()
    computed = {
        ROW_KIND: pa.array(_KINDS).take(pa.array(kinds)),
        "_change_type": pa.array([CHANGE_TYPES[kind] for kind in _KINDS]).take(pa.array(kinds)),
        "_commit_version": pa.repeat(pa.scalar(events.version, pa.int64()), len(kinds)),
        "_commit_timestamp": pa.repeat(pa.scalar(events.committed_at, CHANGE_COLUMNS.field(2).type), len(kinds)),
    }
    own = {field.name: index for index, field in enumerate(events.fields)}
    hidden = {name: len(own) + index for index, name in enumerate(HIDDEN.names)}
    arrays = [
        rows.column(own[name]) if name in own else computed[name] if name in computed else rows.column(hidden[name])
        for name in columns
    ]
    batch = pa.table(arrays, names=list(columns)) if columns else rows.select([])
    yield from batch.to_batches()


def _rows(storage: Storage, splits: Sequence[Split], events: DuckLakeEvents) -> pa.Table:
    """Return the rows of splits: the columns of the table by position, then the metadata columns."""
    names = [field.name for field in events.fields]
    hidden = [name for name in HIDDEN.names if name not in names]
    schema = pa.schema([*map(arrow_field, events.fields), *(HIDDEN.field(name) for name in hidden)])
    batches = [batch for split in splits for batch in read_split(storage, split, [*names, *hidden])]
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches], schema
    )


def _matched(before: pa.Table, after: pa.Table) -> list[tuple[int, np.ndarray]]:
    """Return the kinds of changes, each with the indices of its rows in both tables together."""
    start = len(before)
    ids = [_ids(rows) for rows in (before, after)]
    common, old, new = np.intersect1d(ids[0], ids[1], return_indices=True)
    old, new = old[common >= 0], new[common >= 0]
    differs = np.zeros(len(old), np.bool_)
    for name_index in range(before.num_columns - len(HIDDEN)):
        left, right = (
            rows.column(name_index).combine_chunks().take(pa.array(indices)) if len(rows) else pa.nulls(0)
            for rows, indices in ((before, old), (after, new))
        )
        if len(left):
            differs |= ~same(left, right)
    deleted, inserted = (np.setdiff1d(np.arange(len(rows)), matched) for rows, matched in ((before, old), (after, new)))
    deleted, inserted = _without_equal(before, after, deleted, inserted, ids)
    pairs = [(_BEFORE, old[differs]), (_AFTER, new[differs] + start)]
    return [(_INSERTED, inserted + start), (_DELETED, deleted), *pairs]


def _ids(rows: pa.Table) -> np.ndarray:
    """Return the ids of rows; different negative numbers for rows without an id."""
    index = rows.schema.get_field_index(_ROW_ID)
    column = rows.column(index).combine_chunks() if index >= 0 else pa.nulls(len(rows), pa.int64())
    return np.where(np.asarray(column.is_null()), -1 - np.arange(len(rows)), np.asarray(column.fill_null(0)))


def _without_equal(
    before: pa.Table, after: pa.Table, deleted: np.ndarray, inserted: np.ndarray, ids: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return deleted and inserted rows without pairs of equal rows that have no ids: added files have none."""
    without = [indices[own[indices] < 0] for own, indices in zip(ids, (deleted, inserted), strict=True)]
    if not all(len(indices) for indices in without):
        return deleted, inserted
    count = before.num_columns - len(HIDDEN)
    keys = [
        exact_keys([rows.column(i).combine_chunks().take(pa.array(indices)) for i in range(count)])
        for rows, indices in zip((before, after), without, strict=True)
    ]
    shared = Counter(keys[0]) & Counter(keys[1])
    gone = []
    for texts, indices in zip(keys, without, strict=True):
        left, own = Counter(shared), []
        for text, index in zip(texts, indices.tolist(), strict=True):
            if left[text]:
                left[text] -= 1
                own.append(index)
        gone.append(np.asarray(own, np.int64))
    return np.setdiff1d(deleted, gone[0]), np.setdiff1d(inserted, gone[1])
