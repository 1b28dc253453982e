"""Which rows changed between two versions: the file slices that differ are read at both, and compared by key.

Rows of file groups whose slice is the same at both versions cannot differ.

Source: hudi "Incremental Queries"; hudi HoodieCDCExtractor.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.equal_values import exact_keys, same
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_field
from snapshot_explorer.formats.hudi.scan.planning import VersionFiles, slice_splits
from snapshot_explorer.formats.hudi.scan.read import read
from snapshot_explorer.formats.hudi.scan.record_keys import RecordKeys, keys_of, record_keys
from snapshot_explorer.model import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND, ChangeMode, Split
from snapshot_explorer.storage import Storage

_KIND_FIELD = pa.field(ROW_KIND, pa.string(), nullable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSlices:
    """The slices of a partition that differ between two versions. `Split.detail`; picklable."""

    before: tuple[Split, ...]
    """The slices of the earlier version."""
    after: tuple[Split, ...]
    """The slices of the later version."""
    keys: RecordKeys
    """Where the keys of rows are."""
    fields: tuple[HudiField, ...]
    """The columns of the later version."""
    version: int
    """The later version."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal where the same rows are read."""
        sides = (tuple(split.identity for split in splits) for splits in (self.before, self.after))
        return *sides, self.version


def no_changelog() -> InvalidArgumentError:
    """Return the error for a changelog that is requested."""
    return InvalidArgumentError(
        "The change data of Hudi tables is not read. Use mode='delta', which compares the file slices that each commit "
        "changed, or mode='diff', which compares two versions."
    )


def splits_between(
    source: HudiSource, at: Callable[[int], VersionFiles], first: int, last: int, mode: ChangeMode
) -> list[Split]:
    """Return splits of the rows that changed after `first` up to `last`, by version, and of a version by partition.

    Args:
        at: Returns what the splits of a version are planned from, in the schema of `last`.
        first: The version before the first included one; before the earliest version, the table was empty.
        mode: `auto` and `delta`: by commit, without those that only rearranged rows. `diff`: the rows of `last` against
            those of `first`.
    """
    if any(field.name == ROW_KIND for field in at(last).fields):
        raise refusal(features.CHANGE_COLUMN_CONFLICT)
    versions = source.versions
    begin, end = bisect_right(versions, first), bisect_right(versions, last)
    if mode == "diff":
        pairs = [(versions[begin - 1] if begin else None, last)] if begin < end else []
    else:
        commits = source.commits(versions[begin:end])
        changing = [version for version in versions[begin:end] if not commits[version].is_service]
        indices = [bisect_left(versions, version) for version in changing]
        pairs = [(versions[index - 1] if index else None, versions[index]) for index in indices]
    return [split for before, after in pairs for split in _difference(at, before, after)]


def _difference(at: Callable[[int], VersionFiles], before: int | None, after: int) -> Iterator[Split]:
    new = at(after)
    earlier = {} if before is None else slice_splits(at(before))
    later = slice_splits(new)
    partitions: dict[str, tuple[list[Split], list[Split]]] = {}
    for index, (mine, other) in enumerate(((earlier, later), (later, earlier))):
        for group, split in mine.items():
            same_group = other.get(group)
            if same_group is None or same_group.identity != split.identity:
                partitions.setdefault(group[0], ([], []))[index].append(split)
    keys = record_keys(new.config, new.fields)
    for removed, added in partitions.values():
        splits = (*removed, *added)
        yield Split(
            files=tuple(dict.fromkeys(path for split in splits for path in split.files)),
            raw=False,
            partition=splits[0].partition,
            bucket=None,
            rows=None,
            size_bytes=sum(split.size_bytes for split in splits),
            detail=ChangedSlices(
                before=tuple(removed), after=tuple(added), keys=keys, fields=new.fields, version=after
            ),
        )


def read_changes(storage: Storage, changed: ChangedSlices, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that differ, with these columns: of the schema, and `rowkind`. Both sides are held in memory."""
    before, after = (_rows(storage, changed, splits) for splits in (changed.before, changed.after))
    names = [field.name for field in changed.fields]
    schema = pa.schema([_KIND_FIELD if name == ROW_KIND else before.schema.field(name) for name in columns])
    for kinds, rows in _changes(before, after, changed.keys, names):
        arrays = [kinds if name == ROW_KIND else rows.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays([_flat(array) for array in arrays], schema=schema)


def _rows(storage: Storage, changed: ChangedSlices, splits: Sequence[Split]) -> pa.Table:
    fields = {field.name: field for field in (*changed.fields, *changed.keys.columns)}
    schema = pa.schema([arrow_field(field) for field in fields.values()])
    batches = (batch for split in splits for batch in read(storage, split, list(fields)))
    return pa.concat_tables([schema.empty_table(), *(pa.Table.from_batches([batch]).cast(schema) for batch in batches)])


def _changes(
    before: pa.Table, after: pa.Table, keys: RecordKeys, names: Sequence[str]
) -> Iterator[tuple[pa.Array, pa.Table]]:
    """Yield the kinds of changes and their rows."""
    old, new = (_keys(table, keys) for table in (before, after))
    if not (_is_unique(old) and _is_unique(new)):
        yield from _without_keys(before, after, names)
        return
    indices = pc.index_in(old, value_set=new)
    kept = np.flatnonzero(np.asarray(indices.is_valid()))
    matched = np.asarray(indices.take(pa.array(kept)), np.int64)
    removed = np.setdiff1d(np.arange(len(before)), kept)
    added = np.setdiff1d(np.arange(len(after)), matched)
    equal = np.ones(len(kept), np.bool_)
    left, right = before.take(pa.array(kept)), after.take(pa.array(matched))
    for name in names:
        equal &= same(_flat(left.column(name)), _flat(right.column(name)))
    changed = np.flatnonzero(~equal)
    yield pa.repeat(DELETED, len(removed)), before.take(pa.array(removed))
    # An updated row is followed by what it became.
    pairs = pa.concat_tables([left.take(pa.array(changed)), right.take(pa.array(changed))])
    order = np.arange(2 * len(changed)).reshape(2, -1).T.reshape(-1)
    yield pa.array([BEFORE, AFTER] * len(changed), pa.string()), pairs.take(pa.array(order))
    yield pa.repeat(INSERTED, len(added)), after.take(pa.array(added))


def _without_keys(before: pa.Table, after: pa.Table, names: Sequence[str]) -> Iterator[tuple[pa.Array, pa.Table]]:
    """Yield the rows of one side that the other lacks, where keys do not identify rows."""
    old, new = (exact_keys([_flat(table.column(name)) for name in names]) for table in (before, after))
    for kind, table, mine, other in ((DELETED, before, old, new), (INSERTED, after, new, old)):
        left = Counter(other)
        chosen = []
        for index, row in enumerate(mine):
            if left[row] > 0:
                left[row] -= 1
            else:
                chosen.append(index)
        yield pa.repeat(kind, len(chosen)), table.take(pa.array(chosen, pa.int64()))


def _keys(table: pa.Table, keys: RecordKeys) -> pa.Array:
    if not table.num_rows:
        return pa.array([], pa.string())
    batch = table.combine_chunks().to_batches()[0]
    return keys_of(batch, keys)


def _is_unique(keys: pa.Array) -> bool:
    return not keys.null_count and len(pc.unique(keys)) == len(keys)


def _flat(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.nulls(0, values.type)])
