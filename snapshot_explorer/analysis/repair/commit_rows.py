"""The rows that a commit removed, changed or inserted, and which of them later commits changed too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.row_matching import is_in, row_hashes
from snapshot_explorer.analysis.repair.selection import MOST_KEYS, RowCounts, matching_changes
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_values import exact_keys
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED
from snapshot_explorer.engines import local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from snapshot_explorer.analysis.diff import RowDiff
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion

MOST_LEFT = 100
"""The maximum number of rows that are left as they are and listed."""
_SINCE = {INSERTED: "inserted again", AFTER: "changed again", BEFORE: "changed again", DELETED: "removed"}
"""The effect of later commits on a row, by the kind of its change since."""
_EQUAL_BEFORE = "equal to rows from before"
"""Why a row without a key is left: which of the equal rows the commit inserted is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRows:
    """The rows that a commit changed, by the effect of undoing it."""

    counts: RowCounts
    """The rows that undoing it inserts, deletes and updates: no later commit changed them."""
    keys: tuple[Mapping[str, object], ...] | None
    """Their keys; None if there are more than `MOST_KEYS`, one has a year that Python lacks, or there is no key."""
    rows: pa.Table | None
    """The same rows as a row diff has them, for a table without a key; None if there are more than `MOST_KEYS`."""
    has_negative_zero: bool
    """Whether one of these rows has a negative zero, which Spark does not distinguish from 0.0."""
    left: pa.Table
    """The first `MOST_LEFT` rows that are left: `since`, the effect of later commits, then the key or all columns."""
    left_counts: Mapping[str, int]
    """The number of rows that are left, by the effect of later commits."""
    already: int
    """The number of rows that already equal the rows before the commit."""

    @property
    def left_rows(self) -> int:
        """The number of rows that are left because later commits changed them too."""
        return sum(self.left_counts.values())


def commit_rows(
    changed: RowDiff,
    since: RowDiff,
    overall: Callable[[], RowDiff],
    *,
    now: TableVersion,
    where: Condition | None,
    key: Sequence[str],
) -> CommitRows:
    """Return the rows that a commit changed and a condition selects, before the commit or after it.

    Args:
        changed: The row diff of the version before the commit and of the commit.
        since: The row diff of the commit and of the newest version.
        overall: Returns the row diff of the version before the commit and of the newest one.
        now: The newest version.
        where: The condition. Without a key, the row diffs contain only matching rows.
        key: The columns that identify a row; empty to compare whole rows, as multisets.
    """
    columns = list(key) or list(changed.plan.columns)
    condition = where if key else None
    known = _Identities(columns, (_deduplicate_updates(part) for part in _select_rows(changed, condition)))
    touched = known.changed_kinds(since)
    differing = known.changed_kinds(overall()) if touched else {}
    reasons = {identity: _SINCE[kind] for identity, kind in touched.items() if identity in differing}
    if not key:
        reasons |= dict.fromkeys(_equal_inserted_rows(changed, columns, now, where, touched), _EQUAL_BEFORE)
    return _classify(changed, condition, columns, key, reasons, touched)


def count_touched(diff: RowDiff, since: RowDiff, condition: Condition | None, key: Sequence[str]) -> RowCounts:
    """Return how many changed rows of a diff, which a condition selects, are also changed in another diff."""
    columns = list(key) or list(diff.plan.columns)
    touched = _Identities(
        columns, (_deduplicate_updates(part) for part in _select_rows(diff, condition))
    ).changed_kinds(since)
    counts: Counter[str] = Counter()
    for part in _select_rows(diff, condition):
        rows = _deduplicate_updates(part)
        identities = exact_keys([single_chunk(rows[name]) for name in columns])
        counts.update(
            kind for kind, identity in zip(rows.column(0).to_pylist(), identities, strict=True) if identity in touched
        )
    return RowCounts(inserted=counts[INSERTED], deleted=counts[DELETED], updated=counts[AFTER])


def count_inserted_again(changed: RowDiff, since: RowDiff) -> int:
    """Return how many of the rows that a diff without a key has as inserted are also changed in another one."""
    columns = list(changed.plan.columns)
    parts = [part.filter(pc.equal(part.column(0), INSERTED)) for part in changed.changed.parts()]
    touched = _Identities(columns, parts).changed_kinds(since)
    return sum(
        identity in touched for part in parts for identity in exact_keys([single_chunk(part[name]) for name in columns])
    )


def count_deleted_among(changed: RowDiff, rows: pa.Table) -> int:
    """Return how many of the rows that a diff has as deleted are among others, by its key or by all their values."""
    names = list(changed.plan.key or changed.plan.columns)
    deleted, others = (
        Counter(exact_keys([single_chunk(side[name]) for name in names])) for side in (changed.deleted, rows)
    )
    return (deleted & others).total()


def _select_rows(diff: RowDiff, condition: Condition | None) -> Iterator[pa.Table]:
    for part in diff.changed.parts():
        yield part if condition is None else matching_changes(part, condition)


def _deduplicate_updates(part: pa.Table) -> pa.Table:
    """Return changed rows with each updated row once, as it is after its update."""
    return part.filter(pc.not_equal(part.column(0), BEFORE))


class _Identities:
    """The identities of rows: the values of some columns. Equal hashes alone do not make them equal."""

    def __init__(self, columns: Sequence[str], parts: Iterable[pa.Table]) -> None:
        self._columns = columns
        self._known: set[str] = set()
        hashes = [np.zeros(0, np.uint64)]
        for part in parts:
            arrays = [single_chunk(part[name]) for name in columns]
            self._known.update(exact_keys(arrays))
            hashes.append(row_hashes(arrays, len(part)))
        self._hashes = np.unique(np.concatenate(hashes))

    def changed_kinds(self, diff: RowDiff) -> dict[str, str]:
        """Return the identities of rows that changed in a diff, with the kind of change."""
        result: dict[str, str] = {}
        for part in diff.changed.parts() if self._known else ():
            kinds = part.column(0)
            for identity, index in self.matching_rows(part):
                result[identity] = kinds[index].as_py()
        return result

    def matching_rows(self, rows: pa.Table) -> Iterator[tuple[str, int]]:
        """Yield the identities that occur in rows, with the index of the row."""
        arrays = [single_chunk(rows[name]) for name in self._columns]
        suspects: npt.NDArray[np.int64] = np.flatnonzero(is_in(row_hashes(arrays, len(rows)), self._hashes))
        chosen = pa.array(suspects)
        for identity, index in zip(exact_keys([array.take(chosen) for array in arrays]), suspects, strict=True):
            if identity in self._known:
                yield identity, int(index)


def _equal_inserted_rows(
    changed: RowDiff, columns: Sequence[str], now: TableVersion, where: Condition | None, touched: Mapping[str, str]
) -> list[str]:
    """Return the inserted rows that the newest version has more often than the commit inserted them. Reads it."""
    inserted: Counter[str] = Counter()
    parts = []
    for part in changed.changed.parts():
        rows = part.filter(pc.equal(part.column(0), INSERTED))
        inserted.update(exact_keys([single_chunk(rows[name]) for name in columns]))
        parts.append(rows)
    if not inserted:
        return []
    known, lock = _Identities(columns, parts), Lock()
    counts: Counter[str] = Counter()

    def count(_: tuple[int, int], batch: pa.RecordBatch) -> None:
        identities = [identity for identity, _ in known.matching_rows(pa.Table.from_batches([batch]))]
        with lock:
            counts.update(identities)

    local.for_each_batch(now, now.plan(where).splits, columns, count)
    return [identity for identity, rows in inserted.items() if identity not in touched and counts[identity] != rows]


def _classify(
    changed: RowDiff,
    condition: Condition | None,
    columns: Sequence[str],
    key: Sequence[str],
    reasons: Mapping[str, str],
    touched: Mapping[str, str],
) -> CommitRows:
    counts: Counter[str] = Counter()
    left_counts: Counter[str] = Counter()
    left: list[pa.Table] = []
    chosen: list[pa.Table] = []
    already, held, has_negative_zero = 0, 0, False
    for part in _select_rows(changed, condition):
        rows = _deduplicate_updates(part)
        identities = exact_keys([single_chunk(rows[name]) for name in columns])
        since = [reasons.get(identity) for identity in identities]
        is_left = np.array([reason is not None for reason in since], np.bool_)
        is_touched = np.array([identity in touched for identity in identities], np.bool_)
        kept = rows.filter(pa.array(~is_left & ~is_touched))
        already += int((is_touched & ~is_left).sum())
        left_counts.update(reason for reason in since if reason is not None)
        if is_left.any() and sum(map(len, left)) < MOST_LEFT:
            listed = rows.select(columns).filter(pa.array(is_left))
            words = pa.array([reason for reason in since if reason is not None], pa.string())
            left.append(listed.add_column(0, _since_name(columns), words).slice(0, MOST_LEFT))
        counts.update(kept.column(0).to_pylist())
        has_negative_zero = has_negative_zero or _has_negative_zero(kept)
        if held <= MOST_KEYS:
            chosen.append(kept.slice(0, MOST_KEYS + 1))
            held += len(chosen[-1])
    total = pa.concat_tables(chosen) if chosen else None
    rows_to_undo = total if total is not None and held <= MOST_KEYS else None
    empty = pa.schema([pa.field(_since_name(columns), pa.string()), *map(changed.plan.schema.field, columns)])
    return CommitRows(
        # A row that the commit deleted is inserted, and the other way around.
        counts=RowCounts(inserted=counts[DELETED], deleted=counts[INSERTED], updated=counts[AFTER]),
        keys=_keys(rows_to_undo, key) if key else None,
        rows=None if key else rows_to_undo,
        has_negative_zero=has_negative_zero,
        left=pa.concat_tables([empty.empty_table(), *(part.cast(empty) for part in left)]).slice(0, MOST_LEFT),
        left_counts=dict(left_counts),
        already=already,
    )


def _since_name(columns: Sequence[str]) -> str:
    name = "since"
    while name in columns:
        name += "_"
    return name


def _keys(rows: pa.Table | None, key: Sequence[str]) -> tuple[Mapping[str, object], ...] | None:
    if rows is None:
        return None
    try:
        return tuple(rows.select(list(key)).to_pylist())
    except OverflowError:  # a year before 1 or after 9999
        return None


def _has_negative_zero(rows: pa.Table) -> bool:
    """Return whether a row has a negative zero. Nested values are not searched: rows with them are refused."""
    for column in rows.columns[2:]:
        if pa.types.is_floating(column.type):
            values = column.combine_chunks().fill_null(1).to_numpy(zero_copy_only=False)
            if (np.signbit(values) & (values == 0)).any():
                return True
    return False
