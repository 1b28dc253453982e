"""The rows that changed between two versions: slices that differ are read at both versions, and compared by key.

Rows of file groups whose slice is the same at both versions cannot differ. If a commit recorded its changes, the
recorded changes are read instead.

Source: hudi "Incremental Queries"; hudi HoodieCDCExtractor.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.equal_values import exact_keys, same
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND, ChangeMode, Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.files.change_files import (
    ChangeEvents,
    ChangeFile,
    change_files_of,
    read_change_file,
)
from snapshot_explorer.formats.hudi.metadata.file_groups import FileGroup
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_field
from snapshot_explorer.formats.hudi.scan.meta_columns import COMMIT_TIME, FIELDS
from snapshot_explorer.formats.hudi.scan.planning import VersionFiles, slice_splits
from snapshot_explorer.formats.hudi.scan.plans import HudiPlan
from snapshot_explorer.formats.hudi.scan.read import complete_columns, read
from snapshot_explorer.formats.hudi.scan.record_keys import RecordKeys, check_deletes, deleted_key, keys_of, record_keys
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
    """The location of the rows' keys."""
    fields: tuple[HudiField, ...]
    """The columns of the later version."""
    version: int
    """The later version."""
    instant: str
    """The later version as its instant's text."""
    change_files: tuple[ChangeFile, ...] = ()
    """The files in which the commit recorded the changes of the slice; if empty, the slices are compared."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read."""
        sides = (tuple(split.identity for split in splits) for splits in (self.before, self.after))
        return *sides, self.version, self.change_files


def no_changelog() -> InvalidArgumentError:
    """Return the error for a changelog of a table that records no changes."""
    return InvalidArgumentError(
        Message(
            "The table records no change data: hoodie.table.cdc.enabled is not true. Use ",
            Hint("", {"mode": "delta"}),
            ", which compares the file slices that each commit changed, or ",
            Hint("", {"mode": "diff"}),
            ", which compares two versions.",
        )
    )


def splits_between(
    source: HudiSource, at: Callable[[int], VersionFiles], first: int, last: int, mode: ChangeMode
) -> list[Split]:
    """Return splits of the rows that changed after `first` up to `last`, by version, then by partition.

    Args:
        at: Returns the files from which the splits of a version are planned, in the schema of `last`.
        first: The version before the first included one; before the earliest version, the table was empty.
        mode: `auto`: by commit, without commits that only rearranged rows; from change data if it was written.
            `changelog`: as auto, if the table records change data. `delta`: without change data. `diff`: the rows of
            `last` compared with the rows of `first`.
    """
    if any(field.name == ROW_KIND for field in at(last).fields):
        raise refusal(features.CHANGE_COLUMN_CONFLICT)
    if mode == "changelog" and not source.config.logs_changes:
        raise no_changelog()
    versions = source.versions
    begin, end = bisect_right(versions, first), bisect_right(versions, last)
    if mode == "diff":
        difference = (_Difference(source, at, versions[begin - 1] if begin else None, last),) if begin < end else ()
        return [split for item in difference for split in item.by_partition()]
    commits = source.commits(versions[begin:end])
    change_files = change_files_of(commits) if mode != "delta" else {}
    splits: list[Split] = []
    for index in range(begin, end):
        commit = commits[versions[index]]
        if commit.is_service:
            continue
        item = _Difference(source, at, versions[index - 1] if index else None, versions[index])
        recorded = change_files.get(versions[index], {})
        is_logged = mode != "delta" and (source.config.logs_changes or bool(recorded))
        splits += item.by_group(recorded) if is_logged else item.by_partition()
    return splits


def recorded_splits(
    source: HudiSource, at: Callable[[int], VersionFiles], before: int | None, last: int
) -> list[Split]:
    """Return a split per file of change data that a version's commit wrote; see `splits_between`.

    Args:
        before: The version before it, if any.
    """
    change_files = change_files_of(source.commits([last]))[last]
    if not change_files:
        return []
    difference = _Difference(source, at, before, last)
    return [
        split
        for group, files in change_files.items()
        for file in files
        for split in difference.by_group({group: [file]}, others=False)
    ]


class _Difference:
    """The file slices that differ between two versions."""

    def __init__(self, source: HudiSource, at: Callable[[int], VersionFiles], before: int | None, after: int) -> None:
        self._source = at(after)
        self._instant = source.instant(after).text
        self._before = {} if before is None else slice_splits(at(before))
        self._after = slice_splits(self._source)
        self._keys = record_keys(self._source.config, self._source.fields)

    def by_partition(self) -> Iterator[Split]:
        """Yield splits of slices that are compared together, as rows may move between the groups of a partition."""
        partitions: dict[str, list[FileGroup]] = {}
        for group in self._groups():
            partitions.setdefault(group[0], []).append(group)
        for groups in partitions.values():
            yield self._split(groups, ())

    def by_group(
        self, change_files: Mapping[FileGroup, Sequence[ChangeFile]], *, others: bool = True
    ) -> Iterator[Split]:
        """Yield splits of single slices, as Hudi's change queries see them: a row that moves is deleted and inserted.

        Args:
            change_files: The files in which changes were recorded, by file group.
            others: Whether to yield the splits of other file groups too.
        """
        for group in dict.fromkeys((*change_files, *(self._groups() if others else ()))):
            yield self._split([group], tuple(change_files.get(group, ())))

    def _groups(self) -> list[FileGroup]:
        """Return the file groups whose slices differ."""
        return [
            group
            for group in dict.fromkeys((*self._before, *self._after))
            if (old := self._before.get(group)) is None
            or (new := self._after.get(group)) is None
            or old.identity != new.identity
        ]

    def _split(self, groups: Sequence[FileGroup], change_files: tuple[ChangeFile, ...]) -> Split:
        removed, added = (
            tuple(side[group] for group in groups if group in side) for side in (self._before, self._after)
        )
        splits = (*removed, *added)
        reads_slices = not change_files or not self._source.config.logs_whole_rows
        paths = [path for split in splits for path in split.files] if reads_slices else []
        return Split(
            files=tuple(dict.fromkeys((*(file.path for file in change_files), *paths))),
            raw=False,
            partition=splits[0].partition if splits else {},
            rows=None,
            size_bytes=sum(file.size_bytes for file in change_files) or sum(split.size_bytes for split in splits),
            detail=ChangedSlices(
                before=removed,
                after=added,
                keys=self._keys,
                fields=self._source.fields,
                version=self._source.version,
                instant=self._instant,
                change_files=change_files,
            ),
        )


def read_changes(storage: Storage, changed: ChangedSlices, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that differ, with these columns of the schema and `rowkind`. Both versions' rows are in memory."""
    fields = {field.name: arrow_field(field) for field in (*changed.fields, FIELDS[COMMIT_TIME])}
    schema = pa.schema([_KIND_FIELD if name == ROW_KIND else fields[name] for name in columns])
    for kinds, rows in _changed_rows(storage, changed):
        more = {ROW_KIND: kinds, COMMIT_TIME: pa.repeat(changed.instant, rows.num_rows)}
        arrays = [more[name] if name in more else rows.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays([_flat(array) for array in arrays], schema=schema)


def _changed_rows(storage: Storage, changed: ChangedSlices) -> Iterator[tuple[pa.Array, pa.Table]]:
    before, after = (cache(partial(_rows, storage, changed, splits)) for splits in (changed.before, changed.after))
    names = [field.name for field in changed.fields]
    if not changed.change_files:
        yield from _changes(before(), after(), changed.keys, names)
        return
    for file in changed.change_files:
        for events in read_change_file(storage, file, changed.instant, changed.fields):
            sides = [
                None if events.has(side) else _Side(rows=rows(), keys=_keys(rows(), changed.keys))
                for side, rows in (("before", before), ("after", after))
            ]
            if any(side is not None and not _is_unique(side.keys) for side in sides):
                # Keys do not say which rows were changed.
                yield from _changes(before(), after(), changed.keys, names)
                return
            yield _recorded_changes(events, changed, sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    rows: pa.Table
    keys: pa.Array


def _recorded_changes(
    events: ChangeEvents, changed: ChangedSlices, sides: Sequence[_Side | None]
) -> tuple[pa.Array, pa.Table]:
    """Return the kinds of recorded changes and their rows.

    Args:
        sides: The rows of the slice before and after, if the change data lacks them.
    """
    operations = np.array(events.operations.to_pylist(), object)
    tables = []
    for name, affected, side in zip(("before", "after"), ("ud", "iu"), sides, strict=True):
        indices = np.flatnonzero(np.isin(operations, list(affected)))
        if side is None:
            rows, is_known = _with_partition(events.image(name), changed), events.is_present(name)
        else:
            check_deletes(changed.keys)
            keys = [deleted_key(key, changed.keys) for key in events.keys.to_pylist()]
            places = pc.index_in(pa.array(keys, pa.string()), value_set=side.keys, skip_nulls=True)
            rows, is_known = side.rows.take(places), places.is_valid()
        known = np.asarray(is_known.to_numpy(zero_copy_only=False), np.bool_)
        if not known[indices].all():
            raise CorruptTableError(
                Message(
                    f"The change data {events.path} names a row that has no values {name} its change: neither there "
                    "nor in the data files. It is damaged; compare it with a copy of the table, or use ",
                    Hint("", {"mode": "delta"}),
                    ".",
                )
            )
        tables.append(rows.select([field.name for field in changed.fields]))
    kinds, order = [], []
    for index, operation in enumerate(operations.tolist()):
        if operation in ("u", "d"):
            kinds.append(BEFORE if operation == "u" else DELETED)
            order.append(index)
        if operation in ("u", "i"):
            kinds.append(AFTER if operation == "u" else INSERTED)
            order.append(len(operations) + index)
    return pa.array(kinds, pa.string()), pa.concat_tables(tables).take(pa.array(order, pa.int64()))


def _with_partition(rows: pa.Table, changed: ChangedSlices) -> pa.Table:
    """Return recorded rows with the values of partition columns that files lack."""
    plan = (*changed.after, *changed.before)[0].detail
    if not isinstance(plan, HudiPlan) or not rows.num_rows:
        return rows
    return pa.Table.from_batches([complete_columns(rows.combine_chunks().to_batches()[0], changed.fields, plan)])


def _rows(storage: Storage, changed: ChangedSlices, splits: Sequence[Split]) -> pa.Table:
    fields = {field.name: field for field in (*changed.fields, *changed.keys.columns)}
    schema = pa.schema([arrow_field(field) for field in fields.values()])
    batches = (batch for split in splits for batch in read(storage, split, list(fields)))
    return pa.concat_tables([schema.empty_table(), *(pa.Table.from_batches([batch]) for batch in batches)])


def _changes(
    before: pa.Table, after: pa.Table, keys: RecordKeys, names: Sequence[str]
) -> Iterator[tuple[pa.Array, pa.Table]]:
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
    # The old version of an updated row is followed by the new version.
    pairs = pa.concat_tables([left.take(pa.array(changed)), right.take(pa.array(changed))])
    order = np.arange(2 * len(changed)).reshape(2, -1).T.reshape(-1)
    yield pa.array([BEFORE, AFTER] * len(changed), pa.string()), pairs.take(pa.array(order))
    yield pa.repeat(INSERTED, len(added)), after.take(pa.array(added))


def _without_keys(before: pa.Table, after: pa.Table, names: Sequence[str]) -> Iterator[tuple[pa.Array, pa.Table]]:
    """Yield the rows that only one version has, for tables without unique keys."""
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
