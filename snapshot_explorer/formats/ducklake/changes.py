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

from snapshot_explorer.arrow.chunks import single_chunk, under
from snapshot_explorer.arrow.equal_values import exact_keys, same
from snapshot_explorer.core.records import CHANGE_COLUMNS, CHANGE_TYPES, ROW_KIND, Split
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_field
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeLog, DuckLakeMetadata, Ints
from snapshot_explorer.formats.ducklake.scan import HIDDEN, plan, read_fields
from snapshot_explorer.storage import Storage

_KINDS = tuple(CHANGE_TYPES)
_INSERTED, _BEFORE, _AFTER, _DELETED = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckLakeEvents:
    """The splits in which two consecutive versions differ. `Split.detail`; picklable."""

    sides: tuple[tuple[Split, ...], tuple[Split, ...]]
    """The splits of the earlier and of the later version."""
    fields: tuple[LakeField, ...]
    """The columns of the rows."""
    version: int
    committed_at: datetime | None

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read."""
        return tuple(tuple(split.identity for split in splits) for splits in self.sides), self.version


def splits_between(log: DuckLakeLog, metadata: DuckLakeMetadata, first: int, last: int) -> list[Split]:
    """Return a split for each version after the first up to the last that changed files, deletes or inlined rows.

    A first version before the table was created has no rows.
    """
    fields = metadata.fields_at(last)
    start = metadata.version_at(first)
    known = {} if start is None else _by_identity(log, metadata, start, fields)
    result = []
    for version in metadata.versions[(metadata.versions > first) & (metadata.versions <= last)].tolist():
        own = _by_identity(log, metadata, version, fields)
        sides = (
            tuple(split for identity, split in known.items() if identity not in own),
            tuple(split for identity, split in own.items() if identity not in known),
        )
        known = own
        if any(sides):
            time = metadata.value_at(version, "snapshot_time")
            parts = [*sides[0], *sides[1]]
            split = Split(
                files=tuple(dict.fromkeys(path for part in parts for path in part.files)),
                raw=False,
                partition={},
                rows=None,
                size_bytes=sum(part.size_bytes for part in parts),
                detail=DuckLakeEvents(sides=sides, fields=fields, version=version, committed_at=time),
            )
            result.append(split)
    return result


def _by_identity(
    log: DuckLakeLog, metadata: DuckLakeMetadata, version: int, fields: tuple[LakeField, ...]
) -> dict[Hashable, Split]:
    return {split.identity: split for split in plan(log, metadata, version, fields=fields).splits}


def read_events(storage: Storage, events: DuckLakeEvents, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows of a version: inserts, deletes, then updates before and after, as one batch.

    In addition to the columns of the rows, `rowkind`, the metadata columns and CHANGE_COLUMNS are available. Reads both
    states whole.
    """
    fields = [*events.fields, *HIDDEN]
    schema = pa.schema([arrow_field(field) for field in fields])
    before, after = (
        pa.Table.from_batches(
            (under(schema, batch) for split in splits for batch in read_fields(storage, split, fields)), schema
        )
        for splits in events.sides
    )
    chosen = _matched(before, after)
    kinds = pa.array(np.repeat(list(chosen), [len(indices) for indices in chosen.values()]), pa.int64())
    if not len(kinds):
        return
    # Rows of the later state follow the rows of the earlier one.
    rows = pa.concat_tables([before, after]).take(pa.array(np.concatenate(list(chosen.values())), pa.int64()))
    computed = {
        ROW_KIND: pa.array(_KINDS).take(kinds),
        "_change_type": pa.array([CHANGE_TYPES[kind] for kind in _KINDS]).take(kinds),
        "_commit_version": pa.repeat(pa.scalar(events.version, pa.int64()), len(kinds)),
        "_commit_timestamp": pa.repeat(pa.scalar(events.committed_at, CHANGE_COLUMNS.field(2).type), len(kinds)),
    }
    stored = zip(reversed(fields), reversed(rows.combine_chunks().columns), strict=True)
    known = computed | {field.name: column for field, column in stored}  # the table's own columns last
    batch = pa.table([known[name] for name in columns], names=list(columns)) if columns else rows.select([])
    yield from batch.to_batches()


def _matched(before: pa.Table, after: pa.Table) -> dict[int, Ints]:
    """Return the kinds of changes, each with the indices of its rows in both tables together."""
    start, (ids_before, ids_after) = len(before), _row_ids((before, after))
    _, old, new = np.intersect1d(ids_before, ids_after, return_indices=True)
    differs = np.zeros(len(old), np.bool_)
    if len(old):
        for index in range(before.num_columns - len(HIDDEN)):
            left, right = (
                single_chunk(rows.column(index)).take(pa.array(indices))
                for rows, indices in ((before, old), (after, new))
            )
            differs |= ~same(left, right)
    return {
        _INSERTED: np.setdiff1d(np.arange(len(after)), new) + start,
        _DELETED: np.setdiff1d(np.arange(start), old),
        _BEFORE: old[differs],
        _AFTER: new[differs] + start,
    }


def _row_ids(sides: Sequence[pa.Table]) -> list[Ints]:
    """Return the ids of rows. Rows without ids, as in added files, get negative ones: equal rows the same."""
    known: dict[tuple[object, int], int] = {}
    result = []
    for rows in sides:
        column = single_chunk(rows.column(rows.num_columns - len(HIDDEN)))
        ids = np.array(column.fill_null(0))
        without = np.flatnonzero(column.is_null())
        values = [single_chunk(rows.column(i)).take(pa.array(without)) for i in range(rows.num_columns - len(HIDDEN))]
        counts: Counter[object] = Counter()
        for index, key in zip(without.tolist(), exact_keys(values) if len(without) else (), strict=True):
            counts[key] += 1
            ids[index] = known.setdefault((key, counts[key]), -1 - len(known))
        result.append(ids)
    return result
