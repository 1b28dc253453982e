"""The numbers of columns at every version, from the statistics and the lifetimes of files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.arrow.extremes import extreme_over
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.history import History, column_names
from snapshot_explorer.history.lifetimes import FileLifetimes, FileStatistics, delete_manifests

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


_AT_ONCE = 2_000_000
"""Values of files, or of versions, that are computed together."""
LACKING = "no such column"
"""Why a version has no numbers of a column."""
_MAX_TOTALS = 10_000
"""The maximum number of versions whose totals are computed from the lifetimes of files."""
UNORDERED = "min, max: unknown, since the texts have a collation"


@dataclass(frozen=True, slots=True)
class ColumnNumbers:
    """The numbers of a column, a value per version; null is unknown."""

    null_count: pa.Array
    """Nulls in live rows."""
    minimum: pa.Array
    """The minimum, or a lower bound of it; null if all values are null."""
    maximum: pa.Array
    """The maximum, or an upper bound of it."""


@dataclass(frozen=True)
class FileRanges:
    """Files that are live over ranges of positions among versions, with statistics."""

    first: Ints
    """The position of the version that adds each file."""
    last: Ints
    """The position of the version that removes each file; `count` while it is live."""
    count: int
    """The number of versions."""
    bounds: Bounds
    """The statistics of the columns, a row per range; `rows` counts the rows in the file."""
    deleted: pa.Array
    """The rows of each file that its deletion vector removes; null without one."""
    valueless: pa.Table | None = None
    """For each column and file whether it has no values, only nulls and NaN; None if unknown."""

    @cached_property
    def rows(self) -> pa.Array:
        """Return the number of rows at each version; null if a file's number is unknown."""
        return self._sums(_fill_nulls(self._live_rows), ~_mask(self._live_rows.is_valid()))

    @cached_property
    def has_vectors(self) -> Mask:
        """Return at which versions a file has a deletion vector."""
        return self._running(_mask(self.deleted.is_valid())) > 0

    def numbers(self, columns: Sequence[str]) -> Iterator[tuple[str, ColumnNumbers]]:
        """Yield the numbers of columns, in no order. Columns of one type are computed together."""
        by_type: dict[pa.DataType, list[str]] = {}
        for column in columns:
            by_type.setdefault(self.bounds.lower.schema.field(column).type, []).append(column)
        limit = max(1, _AT_ONCE // max(1, len(self.first), self.count))
        for dtype, alike in by_type.items():
            for begin in range(0, len(alike), limit):
                batch = alike[begin : begin + limit]
                nulls, is_empty = self._nulls(batch)
                minimum, maximum = (
                    self._extremes(self._together(values, batch), is_empty, dtype, is_maximum=is_maximum)
                    for values, is_maximum in ((self.bounds.lower, False), (self.bounds.upper, True))
                )
                for index, column in enumerate(batch):
                    of_column = (part.slice(index * self.count, self.count) for part in (nulls, minimum, maximum))
                    yield column, ColumnNumbers(*of_column)

    @staticmethod
    def _together(values: pa.Table, columns: Sequence[str]) -> pa.Array:
        return pa.concat_arrays([single_chunk(values.column(column)) for column in columns])

    def _matrix(self, values: npt.NDArray[Any], columns: int) -> npt.NDArray[Any]:
        """Return the values of columns, which come one after another, as a row per file."""
        return values.reshape(columns, len(self.first)).T

    def _nulls(self, columns: Sequence[str]) -> tuple[pa.Array, Mask]:
        """Return the nulls of columns at each version, one column after another, and which files have no values."""
        grouped = self._together(self.bounds.null_count, columns)
        known, nulls = (self._matrix(part, len(columns)) for part in (_mask(grouped.is_valid()), _fill_nulls(grouped)))
        rows, live = (_fill_nulls(values)[:, None] for values in (self.bounds.rows, self._live_rows))
        has_rows = _mask(self.bounds.rows.is_valid())[:, None]
        is_null = known & has_rows & (nulls == rows)
        # How many of the deleted rows were null is known only if all values are null, or none.
        has_deletions = _mask(self.deleted.is_valid())[:, None] & (nulls > 0) & ~is_null
        counted = np.where(is_null, live, nulls)
        # A file without rows, or with only nulls, has no bounds.
        is_empty = is_null | (has_rows & (live == 0))
        if self.valueless is not None:
            is_empty = is_empty | self._matrix(_mask(self._together(self.valueless, columns)), len(columns))
        return self._sums(counted, ~(known & has_rows) | has_deletions), is_empty

    @cached_property
    def _live_rows(self) -> pa.Array:
        return pc.subtract(self.bounds.rows, pc.fill_null(self.deleted, 0))

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The order of files by the positions that add and remove them, and how many there are up to each position."""
        at = np.arange(self.count)
        by_first, by_last = (np.argsort(bounds, kind="stable") for bounds in (self.first, self.last))
        added, removed = (
            np.searchsorted(bounds, at, side="right") for bounds in (self.first[by_first], self.last[by_last])
        )
        return by_first, by_last, added, removed

    def _running(self, values: Ints | Mask) -> Ints:
        """Return the sum of the values of live files at each version; for a matrix, of each column."""
        by_first, by_last, added, removed = self._order
        nothing = np.zeros((1, *values.shape[1:]), np.int64)

        def sums(order: Ints, counts: Ints) -> Ints:
            return np.concatenate([nothing, np.cumsum(values[order], axis=0, dtype=np.int64)])[counts]

        return sums(by_first, added) - sums(by_last, removed)

    def _sums(self, values: Ints, is_unknown: Mask) -> pa.Array:
        """Return the sums of the values of live files at each version; null if one is unknown."""
        unknown = self._running(is_unknown) > 0
        return pa.array(self._running(np.where(is_unknown, 0, values)).T.ravel(), mask=unknown.T.ravel())

    def _extremes(self, values: pa.Array, is_empty: Mask, dtype: pa.DataType, *, is_maximum: bool) -> pa.Array:
        """Return the minimum or maximum of the values of live files at each version; null if one is unknown.

        Args:
            values: The values of columns in files, one column after another.
            is_empty: Which files have no values, a row per file.
        """
        if pa.types.is_floating(dtype):
            values = pc.if_else(pc.is_nan(values), pa.scalar(None, dtype), values)
        if pa.types.is_boolean(dtype):
            values = values.cast(pa.uint8())
        if not is_sortable(values.type):
            return pa.nulls(self.count * is_empty.shape[1], dtype)
        ranks, order = _ranks(values)
        is_known = self._matrix(_mask(values.is_valid()), is_empty.shape[1])
        has_value = is_known & ~is_empty
        unknown = self._running(~is_known & ~is_empty) > 0
        nothing = -1 if is_maximum else len(ranks)
        extreme = np.maximum if is_maximum else np.minimum
        ranked = np.where(has_value, self._matrix(ranks, is_empty.shape[1]), nothing)
        best = extreme_over(ranked, self.first, self.last, self.count, extreme=extreme, nothing=nothing)
        is_null = unknown | (best == nothing)
        indices = order[np.where(is_null, 0, best)] if len(order) else np.zeros(best.shape, np.int64)
        return values.take(pa.array(indices.T.ravel(), mask=is_null.T.ravel())).cast(dtype)


def _ranks(values: pa.Array) -> tuple[Ints, Ints]:
    order = np.asarray(pc.sort_indices(values, sort_keys=[("", "ascending")])).astype(np.int64)
    ranks = np.zeros(len(values), np.int64)
    ranks[order] = np.arange(len(values))
    return ranks, order


def is_sortable(dtype: pa.DataType) -> bool:
    """Return whether values of a type have a minimum and a maximum."""
    is_time = pa.types.is_temporal(dtype) and not pa.types.is_interval(dtype) and not pa.types.is_duration(dtype)
    is_text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return is_number(dtype) or bool(is_time or is_text)


def _fill_nulls(values: pa.Array) -> Ints:
    """Return numbers, 0 for null."""
    filled: Ints = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return filled


def _mask(values: pa.Array) -> Mask:
    """Return booleans, False for null."""
    filled: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's
    return filled.astype(np.bool_)


def ranges_of(statistics: FileStatistics) -> FileRanges:
    """Return the files of lifetimes with their statistics."""
    return _ranges(statistics.lifetimes, statistics.bounds)


def rows_over(lifetimes: FileLifetimes) -> pa.Array:
    """Return the number of rows in the files of each version of lifetimes; null if a file's number is unknown.

    Rows that deletion vectors remove do not count if lifetimes have their number (Delta).
    """
    rows = single_chunk(lifetimes.intervals.rows.column("rows"))
    nothing = pa.table({"": rows}).select([])
    return _ranges(lifetimes, Bounds(lower=nothing, upper=nothing, null_count=nothing, rows=rows)).rows


def rows_note(table_format: TableFormat, versions: Sequence[int]) -> tuple[str, ...]:
    """Return a sentence on what readers do to the rows in data files; nothing if these are the rows of the table."""
    if table_format.has_exact_row_counts:
        return ()
    modifiers = table_format.row_modifiers()
    steps = {
        "merge them by key": table_format.version(versions[-1]).schema.is_merged,
        "remove those in deletion vectors": "deletion vectors" in modifiers,
        "remove those that delete files delete": any(delete_manifests(table_format, versions)),
        "join those that are spread over files": "data evolution" in modifiers,
        "add those of another branch": "another branch" in modifiers,
        "add those outside of files": "rows outside of files" in modifiers,
    }
    words = [step for step, applies in steps.items() if applies]
    return (f"Rows and nulls are counted in data files, before readers {' and '.join(words)}.",) if words else ()


def read_totals(
    table_format: TableFormat, lifetimes: Callable[[], FileLifetimes], versions: Sequence[int]
) -> pa.Table | None:
    """Return the size of the table at each version: version, files, rows, size_bytes; None if there are many versions.

    `rows` counts the same rows as `total_rows` of COMMITS: it is null if other files delete rows of data files, and if
    rows are spread over files or in another branch.
    """
    if len(versions) > _MAX_TOTALS:
        return None
    read = lifetimes()
    totals = read.totals().select(["version", "files", "rows", "size_bytes"])
    rows = rows_over(read)
    if table_format.row_modifiers():
        rows = pa.nulls(len(rows), pa.int64())
    has_deletes = pa.array([bool(manifests) for manifests in delete_manifests(table_format, read.versions)], pa.bool_())
    rows = pc.if_else(has_deletes, pa.scalar(None, pa.int64()), rows)
    return totals.set_column(2, totals.schema.field("rows"), rows)


def _ranges(lifetimes: FileLifetimes, bounds: Bounds) -> FileRanges:
    rows, count = lifetimes.intervals.rows, len(lifetimes.versions)
    first, last = (rows.column(name).to_numpy().astype(np.int64) for name in ("first", "last"))
    # In formats with levels (Paimon), a deletion vector changes during the lifetime of its file.
    no_level = single_chunk(rows.column("level")).is_null()
    deleted = pc.if_else(no_level, single_chunk(rows.column("deleted_rows")), pa.scalar(None, pa.int64()))
    return FileRanges(first=first, last=np.minimum(last, count), count=count, bounds=bounds, deleted=deleted)


def lacking_columns(
    source: History, known: FileStatistics, reference: TableVersion, names: Sequence[str]
) -> dict[str, list[tuple[int, int]]]:
    """Return for each column the ranges of positions of versions whose schema lacks it."""
    versions = np.asarray(known.lifetimes.versions, np.int64)
    starts = [start for start, _ in known.schemas]
    indices = [*np.searchsorted(versions, starts).tolist(), len(versions)]
    result: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    called = column_names(source.format, starts, reference, names)
    for start, begin, end in zip(starts, indices, indices[1:], strict=False):
        for name, own_name in called.at(start).items():
            if own_name is None:
                result[name].append((begin, end))
    return result
