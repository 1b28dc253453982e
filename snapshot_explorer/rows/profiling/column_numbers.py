"""The numbers of columns at every version, from the statistics and the lifetimes of files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.extremes import greatest_over
from snapshot_explorer.model import Bounds
from snapshot_explorer.rows.source import column_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.lifetimes import FileLifetimes, FileStatistics
    from snapshot_explorer.rows.source import Source

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


LACKING = "no such column"
"""Why a version has no numbers of a column."""
_MOST_TOTALS = 10_000
"""The maximum number of versions whose totals are computed from the lifetimes of files."""
UNORDERED = "min, max: unknown, since the texts have a collation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a column, a value per version; null is unknown."""

    null_count: pa.Array
    """Nulls in live rows."""
    least: pa.Array
    """The least value, or a lower bound of it; null where all values are null."""
    greatest: pa.Array
    """The greatest value, or an upper bound of it."""


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
    """The statistics of the columns, a row per range; rows are those in the file."""
    deleted: pa.Array
    """The rows of each file that its deletion vector removes; null without one."""
    valueless: pa.Table | None = None
    """For each column and file whether it has no values, only nulls and NaN; None where that is unknown."""

    @cached_property
    def rows(self) -> pa.Array:
        """Return the rows at each version; null where those of a file are unknown."""
        return self._sums(self._live_rows)

    @cached_property
    def has_vectors(self) -> Mask:
        """Return at which versions a file has a deletion vector."""
        return self._running(_mask(self.deleted.is_valid())) > 0

    def numbers(self, column: str) -> Numbers:
        """Return the numbers of a column."""
        rows, live = self.bounds.rows, self._live_rows
        nulls = single_chunk(self.bounds.null_count.column(column))
        is_null = pc.equal(nulls, rows)
        # How many of the deleted rows were null is known only if all values are null, or none.
        some = pc.and_(self.deleted.is_valid(), pc.and_(pc.greater(nulls, 0), pc.invert(is_null)))
        counted = pc.if_else(pc.fill_null(is_null, False), live, nulls)  # noqa: FBT003 - pyarrow's
        counted = pc.if_else(pc.fill_null(some, True), pa.scalar(None, pa.int64()), counted)  # noqa: FBT003
        # A file without rows, or with only nulls, has no bounds.
        is_empty = _mask(pc.or_kleene(is_null, pc.equal(live, 0)))
        if self.valueless is not None:
            is_empty |= _mask(single_chunk(self.valueless.column(column)))
        least = single_chunk(self.bounds.lower.column(column))
        greatest = single_chunk(self.bounds.upper.column(column))
        return Numbers(
            null_count=self._sums(counted),
            least=self._extremes(least, is_empty, is_greatest=False),
            greatest=self._extremes(greatest, is_empty, is_greatest=True),
        )

    @cached_property
    def _live_rows(self) -> pa.Array:
        return pc.subtract(self.bounds.rows, pc.fill_null(self.deleted, 0))

    def _running(self, values: Ints | Mask) -> Ints:
        """Return the sum of the values of live files at each version."""
        changes = np.zeros(self.count + 1, np.int64)
        np.add.at(changes, self.first, values)
        np.subtract.at(changes, self.last, values)
        return np.cumsum(changes)[: self.count]

    def _sums(self, values: pa.Array) -> pa.Array:
        unknown = self._running(_mask(values.is_null()).astype(np.int64))
        return pa.array(self._running(pc.fill_null(values, 0).to_numpy(zero_copy_only=False)), mask=unknown > 0)

    def _extremes(self, values: pa.Array, is_empty: Mask, *, is_greatest: bool) -> pa.Array:
        """Return the least or greatest of the values of live files at each version; null where one is unknown."""
        kind = values.type
        if pa.types.is_floating(kind):
            values = pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values)
        if pa.types.is_boolean(kind):
            values = values.cast(pa.uint8())
        if not is_sortable(values.type):
            return pa.nulls(self.count, kind)
        has_value = _mask(values.is_valid()) & ~is_empty
        unknown = self._running((_mask(values.is_null()) & ~is_empty).astype(np.int64)) > 0
        order = np.asarray(pc.sort_indices(values, sort_keys=[("", "ascending" if is_greatest else "descending")]))
        ranks = np.zeros(len(values), np.int64)
        ranks[order] = np.arange(1, len(values) + 1)
        chosen = np.flatnonzero(has_value)
        best = greatest_over(ranks[chosen], self.first[chosen], self.last[chosen], self.count)
        places = order[np.maximum(best, 1) - 1] if len(order) else np.zeros(self.count, np.int64)
        return values.take(pa.array(places, mask=unknown | (best == 0))).cast(kind)


def is_sortable(kind: pa.DataType) -> bool:
    """Return whether values of a type have a least and a greatest."""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind) and not pa.types.is_duration(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_number or is_time or is_text)


def _mask(values: pa.Array) -> Mask:
    """Return booleans, False for null."""
    filled: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's
    return filled.astype(np.bool_)


def ranges_of(found: FileStatistics) -> FileRanges:
    """Return the files of lifetimes with their statistics."""
    return _ranges(found.lifetimes, found.bounds)


def rows_over(lifetimes: FileLifetimes) -> pa.Array:
    """Return the rows in the files of each version of lifetimes; null where those of a file are unknown.

    Rows that deletion vectors remove do not count where lifetimes have their number (Delta).
    """
    rows = single_chunk(lifetimes.intervals.rows.column("rows"))
    nothing = pa.table({"": rows}).select([])
    return _ranges(lifetimes, Bounds(lower=nothing, upper=nothing, null_count=nothing, rows=rows)).rows


def read_totals(
    table_format: TableFormat, lifetimes: Callable[[], FileLifetimes], versions: Sequence[int]
) -> pa.Table | None:
    """Return the size of the table at each version: version, files, rows, size_bytes; None if there are many versions.

    `rows` counts what `total_rows` of COMMITS does: it is null where other files delete rows of data files, and where
    rows are spread over files or in another branch.

    Args:
        table_format: The table.
        lifetimes: Returns its lifetimes.
        versions: All its versions.
    """
    if len(versions) > _MOST_TOTALS:
        return None
    read = lifetimes()
    totals = read.totals().select(["version", "files", "rows", "size_bytes"])
    rows = rows_over(read)
    if table_format.row_modifiers():
        rows = pa.nulls(len(rows), pa.int64())
    has_deletes = pa.array([bool(manifests) for manifests in table_format.delete_manifests(read.versions)], pa.bool_())
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
    source: Source, known: FileStatistics, reference: TableVersion, names: Sequence[str]
) -> dict[str, list[tuple[int, int]]]:
    """Return for each column the ranges of positions of versions whose schema lacks it."""
    versions = np.asarray(known.lifetimes.versions, np.int64)
    starts = [start for start, _ in known.schemas]
    places = [*np.searchsorted(versions, starts).tolist(), len(versions)]
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    called = column_names(source.format, starts, reference, names)
    for start, begin, end in zip(starts, places, places[1:], strict=False):
        for name, there in called.at(start).items():
            if there is None:
                found[name].append((begin, end))
    return found
