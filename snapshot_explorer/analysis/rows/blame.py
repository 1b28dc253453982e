"""The changes of rows: every version that inserted, updated or deleted rows of a condition, before and after."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.diff.changed_rows import changes_schema, compare_rows
from snapshot_explorer.analysis.diff.diff import check_not_null, memory_bytes, not_unique_error
from snapshot_explorer.analysis.diff.row_matching import HashedRows, find_repeated, row_hashes
from snapshot_explorer.analysis.row_history import HistoryReader, RowHistory, RowHistoryRequest, history_by
from snapshot_explorer.analysis.rows.blame_result import Blame, BlameReading, BlameRequest, ChangesAt, blame_of
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.engines.scan import missing_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.core.errors import SnapshotExplorerError
    from snapshot_explorer.core.records import Gap
    from snapshot_explorer.history import History

Ints = npt.NDArray[np.int64]


def blame(
    source: History,
    request: BlameRequest,
    between: Sequence[int] | None = None,
    *,
    engine: str | SparkSession | None = None,
) -> Blame:
    """Return the changes of rows; see `Table.blame`. They are where states of the row history begin and end.

    Args:
        between: Consecutive versions; None for all.
    """
    versions = source.versions_among(between)
    reference = source.format.version(versions[-1])
    schema = reference.arrow_schema
    names = check_names(request.columns, schema.names, "columns") or tuple(schema.names)
    keyed = check_names(request.key, schema.names, "key")
    key = tuple(reference.schema.primary_keys) if keyed is None else keyed
    names = tuple(name for name in schema.names if name in {*names, *key})
    reader = HistoryReader(source, RowHistoryRequest(where=request.where, columns=names), between)
    try:
        history = history_by(engine, reader, memory_bytes(None))
    except UNREADABLE:
        if not reader.nothing_is_readable:
            raise
        history = None
    found = _Changes(source, reader, versions)
    changes = found.changes(history, key)
    if not changes:
        empty = changes_schema(reader.schema).empty_table()
        changes = [ChangesAt(versions[-1], empty, (), (), is_first=False)]
    return blame_of(
        source, reader.affected, changes, versions=versions, reading=found.reading, request=request, key=key
    )


class _Changes:
    """Finds the changed rows of each version that may have some, and the versions that could not be read."""

    def __init__(self, source: History, reader: HistoryReader, versions: Sequence[int]) -> None:
        self._source = source
        self._known = reader.affected.lifetimes.versions
        self._indices = reader.affected.indices
        self._begin = int(np.searchsorted(np.asarray(self._known, np.int64), versions[0]))
        self._unreadable = reader.unreadable
        self._reasons: dict[int, str] = {}
        self.reading = BlameReading()

    def changes(self, history: RowHistory | None, key: Sequence[str]) -> list[ChangesAt]:
        """Return the changed rows of each version that changed some; see `changed_rows.changes_schema`.

        All rows of the first version that can be read are returned as inserted.
        """
        known, result = self._known, list[ChangesAt]()
        by_version: Mapping[int, pa.Table] = {} if history is None else dict(_changed_rows(history, key))
        if history is not None:
            self.reading.files = history.plan.files
        indices = {self._begin, *(index for index in self._indices if index > self._begin)}
        indices |= {index for index, number in enumerate(known) if number in by_version}
        is_first = True
        gaps_before: list[Gap] = []
        unreadable: list[int] = []
        for index in sorted(indices):
            number = known[index]
            gaps_before += self._source.gaps(known[max(self._begin, index - 1) : index + 1])
            if number in self._unreadable:
                self.reading.unreadable[number] = self._reason(number, self._unreadable[number])
                unreadable.append(number)
                continue
            self.reading.compared += 1
            if number in by_version:
                skipped = tuple(gaps_before), tuple(unreadable)
                result.append(ChangesAt(number, by_version[number], *skipped, is_first=is_first))
            is_first, gaps_before, unreadable = False, [], []
        return result

    def _reason(self, number: int, error: SnapshotExplorerError) -> str:
        """Return the end of a sentence that a version cannot be read: the same for all versions without data files."""
        if id(error) not in self._reasons:
            self._reasons[id(error)] = Message(": ", without_period(Message(error)))
            with suppress(*UNREADABLE):
                version = self._source.format.version(number)
                if missing_files(version.storage, version.plan(None).splits):
                    self._reasons[id(error)] = " because data files are gone"
        return self._reasons[id(error)]


def _changed_rows(history: RowHistory, key: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the versions that changed rows, ascending, each with these rows; see `changed_rows.changes_schema`."""
    states, columns = history.ordered(), len(history.plan.columns)
    rows = states.select(list(range(columns)))
    begins, ends = (np.asarray(states.column(columns + side).fill_null(-1)) for side in (0, 1))
    old, new = _by_version(ends), _by_version(begins)
    for number in sorted(old.keys() | new.keys()):
        before, after = (_hashed(rows, indices.get(number), key) for indices in (old, new))
        _check_key(before, key, number)
        _check_key(after, key, number)
        yield number, compare_rows(before, after, key)


def _by_version(numbers: Ints) -> dict[int, Ints]:
    """Return the positions of each number that is not -1."""
    order = np.argsort(numbers, kind="stable")
    order = order[np.searchsorted(numbers[order], 0) :]
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return {int(numbers[own[0]]): own for own in np.split(order, starts[1:])} if len(order) else {}


def _hashed(rows: pa.Table, indices: Ints | None, key: Sequence[str]) -> HashedRows:
    chosen = (rows.slice(0, 0) if indices is None else rows.take(pa.array(indices))).combine_chunks()
    hashed = [single_chunk(chosen[name]) for name in key or chosen.column_names]
    return HashedRows(rows=chosen, hashes=row_hashes(hashed, len(chosen)))


def _check_key(rows: HashedRows, key: Sequence[str], number: int) -> None:
    """Raise if the key does not identify the rows that a version changed; Iceberg enforces none."""
    if not key:
        return
    check_not_null(rows.rows, key, f"version {number}")
    index = find_repeated(rows, key)
    if index is not None:
        raise not_unique_error(rows.rows, index, key, f"version {number}")
