"""Which rows of two sets are equal, and which cells of two rows with the same key differ.

Rows are matched by their hashes and then compared value by value: equal hashes alone do not make rows equal.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_values import Mask, comparable_column, exact_keys, same
from snapshot_explorer.engines.duckdb_sessions import locked_cursor

Indices = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedRows:
    """Rows and a hash of each."""

    rows: pa.Table
    hashes: Hashes
    """The hash of each row's key; without a key, of the whole row."""


def match_rows(before: HashedRows, after: HashedRows, columns: Sequence[str]) -> tuple[Indices, Indices]:
    """Return the indices of rows of two sets that have a partner with equal columns, and the partners' indices.

    Each row has at most one partner. The rows without one are the difference of the multisets.
    """
    left, right = equal_hashes(before.hashes, after.hashes)
    if not columns or not len(left):
        return left, right
    equal = equal_rows(before.rows, after.rows, left, right, columns)
    if equal.all():
        return left, right
    # Different rows have the same hash: all rows with these hashes are compared by their values.
    unclear = np.unique(before.hashes[left[~equal]])
    clear = ~is_in(before.hashes[left], unclear)
    more_left, more_right = _exactly_matched(before, after, unclear, columns)
    return np.concatenate([left[clear], more_left]), np.concatenate([right[clear], more_right])


def equal_hashes(before: Hashes, after: Hashes) -> tuple[Indices, Indices]:
    """Return the indices of equal hashes, each at most once, in the order of `before`.

    Rows at the same place on both sides are matched first: a file that is rewritten mostly keeps its order.
    """
    shared = min(len(before), len(after))
    at_once = before[:shared] == after[:shared]
    fixed = np.flatnonzero(at_once)
    moved = np.flatnonzero(~at_once)
    rest_left, rest_right = (np.concatenate([moved, np.arange(shared, len(side))]) for side in (before, after))
    more_left, more_right = _joined(before[rest_left], after[rest_right])
    partners = np.full(len(before), -1, np.int64)
    partners[fixed] = fixed
    partners[rest_left[more_left]] = rest_right[more_right]
    left = np.flatnonzero(partners >= 0)
    return left, partners[left]


def _joined(before: Hashes, after: Hashes) -> tuple[Indices, Indices]:
    """Return the indices of equal hashes: the n-th row with a hash matches the n-th one on the other side."""
    order, other = np.argsort(before), np.argsort(after)
    left, right = before[order], after[other]
    if not len(left) or not len(right):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    indices = np.arange(len(left))
    starts = np.concatenate([np.zeros(1, bool), left[1:] != left[:-1]])
    number = indices - np.maximum.accumulate(np.where(starts, indices, 0))
    partner = np.searchsorted(right, left, "left") + number
    inside = partner < len(right)
    matches = np.flatnonzero(inside)[right[partner[inside]] == left[inside]]
    return order[matches], other[partner[matches]]


def equal_rows(before: pa.Table, after: pa.Table, left: Indices, right: Indices, columns: Sequence[str]) -> Mask:
    """Return for each pair of indices whether the rows there are equal in some columns."""
    equal = np.ones(len(left), bool)
    for name in columns:
        equal &= equal_at(before[name], after[name], left, right)
    return equal


def equal_at(before: pa.ChunkedArray, other: pa.ChunkedArray, left: Indices, right: Indices) -> Mask:
    """Return for each pair of indices whether two columns have equal values there."""
    return same(take_rows(before, left), take_rows(other, right))


def take_rows(column: pa.ChunkedArray, indices: Indices) -> pa.Array:
    """Return the values of a column at some indices, in one array."""
    return single_chunk(column.take(pa.array(indices)))


def _exactly_matched(
    before: HashedRows, after: HashedRows, hashes: Hashes, columns: Sequence[str]
) -> tuple[Indices, Indices]:
    sides = []
    for side in (before, after):
        indices = np.flatnonzero(is_in(side.hashes, hashes))
        keys = exact_keys([take_rows(side.rows[name], indices) for name in columns])
        sides.append(list(zip(keys, indices.tolist(), strict=True)))
    waiting = defaultdict(list)
    for key, index in reversed(sides[1]):
        waiting[key].append(index)
    pairs = [(index, waiting[key].pop()) for key, index in sides[0] if waiting[key]]
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(left, np.int64), np.array(right, np.int64)


def is_in(hashes: Hashes, others: Hashes) -> npt.NDArray[np.bool_]:
    """Return for each hash whether `others` contains it."""
    return np.isin(hashes, others, kind="sort")  # the default method fails with old versions: NUMPY_ISIN


def unmatched_indices(rows: int, indices: Indices) -> Indices:
    """Return the indices of the rows that are not among some indices."""
    is_left = np.ones(rows, bool)
    is_left[indices] = False
    return np.flatnonzero(is_left)


def find_repeated(rows: HashedRows, columns: Sequence[str]) -> int | None:
    """Return the index of a row whose columns equal another row's columns; None if all rows differ."""
    ordered = np.sort(rows.hashes)
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not len(again):
        return None
    suspects = np.flatnonzero(is_in(rows.hashes, ordered[again]))
    seen: set[str] = set()
    for start in range(0, len(suspects), _AT_ONCE):
        batch = suspects[start : start + _AT_ONCE]
        for index, key in zip(
            batch.tolist(), exact_keys([take_rows(rows.rows[column], batch) for column in columns]), strict=True
        ):
            if key in seen:
                return int(index)
            seen.add(key)
    return None


_AT_ONCE = 10_000
"""The number of rows that are compared as text at a time."""


def changed_cells(
    before: pa.Table, after: pa.Table, left: Indices, right: Indices, columns: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return for each pair of rows and each column whether the values differ."""
    is_changed = np.zeros((len(left), len(columns)), bool)
    for index, name in enumerate(columns):
        is_changed[:, index] = ~equal_at(before[name], after[name], left, right)
    return is_changed


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return a 64-bit hash per row of some columns, the same in every process with the same release of DuckDB."""
    if not columns:
        return np.zeros(rows, np.uint64)
    names = [f"c{index}" for index in range(len(columns))]
    batch = pa.RecordBatch.from_arrays([comparable_column(column) for column in columns], names=names)
    with locked_cursor() as cursor:
        cursor.register("rows", pa.Table.from_batches([batch]))
        columns_of_hashes = cursor.execute(f"SELECT hash({', '.join(names)}) AS hash FROM rows").fetchnumpy()  # noqa: S608 - the names are numbers
    return np.asarray(columns_of_hashes["hash"], np.uint64)
