"""The rows of a version in the order of a column; many are read in parts. No widget."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.engines.duckdb_ast import quote_identifier
from snapshot_explorer.jupyter.explorer.contents.row_conditions import comparison
from snapshot_explorer.results.exports import flatten_rows
from snapshot_explorer.table import Snapshot
from snapshot_explorer.table.cost import ReadLimits, cost_of

PART = 960
"""Rows that are read at a time: pages of a grid fit into it."""
_PARTS = 8
"""Parts that are kept in memory."""
HELD_VALUES, _HELD_BYTES = 2_000_000, 20_000_000
"""The maximum number of values in memory, and of bytes of files, whose rows are read at once and kept."""
COUNTED = ReadLimits(rows=20_000_000, size_bytes=2_000_000_000)
"""The maximum size of files whose matching rows are counted, and of which a column is sorted."""


class VersionRows:
    """Rows of a version that match a condition, in an order. Few are read once, of many one part at a time."""

    def __init__(
        self,
        snapshot: Snapshot,
        columns: Sequence[str],
        where: str | None,
        *,
        sort: str | None = None,
        descending: bool = False,
    ) -> None:
        """Read the data that counting and sorting need.

        Args:
            snapshot: The version.
            columns: The columns to return.
            where: The condition in SQL; None for all rows.
            sort: The column to sort by, nulls last; None for the order of the scan.
            descending: Whether the greatest values come first.

        Raises:
            InvalidArgumentError: Sorting would exceed the limits, or the condition does not fit the schema.
        """
        self._snapshot, self._columns, self._where = snapshot, [*columns], where
        self._sort, self._descending = sort, descending
        self.cost = cost_of(snapshot, where)
        """The cost of reading all rows."""
        self._held: pa.Table | None = None
        self._keys: pa.ChunkedArray | None = None
        self.total: int | None = None
        """The number of rows; None if they were not counted."""
        self.part = lru_cache(_PARTS)(self._part)
        is_small = self.cost.rows is not None and self.cost.rows * len(columns) <= HELD_VALUES
        if is_small and self.cost.size_bytes <= _HELD_BYTES:
            self._hold()
        elif not self.cost.exceeds(COUNTED):
            self._count()
        elif sort is not None:
            raise InvalidArgumentError(
                f"Sorting by {sort} reads the column in {self.cost}; up to {COUNTED} are sorted here. Narrow Where."
            )

    @property
    def is_held(self) -> bool:
        """Return whether all rows are in memory."""
        return self._held is not None

    def _hold(self) -> None:
        names = dict.fromkeys([*self._columns, *([self._sort] if self._sort else [])])
        rows = self._snapshot.to_arrow([*names], self._where)
        self._held = (rows if self._sort is None else rows.take(self._order(rows[self._sort]))).select(self._columns)
        self.total = len(rows)

    def _count(self) -> None:
        if self._sort is None:
            self.total = self._snapshot.count(self._where)
            return
        keys = self._snapshot.to_arrow([self._sort], self._where)[self._sort]
        self._keys, self.total = keys.take(self._order(keys)), len(keys)

    def _order(self, keys: pa.ChunkedArray) -> pa.Array:
        """Return the places of the rows in their order; equal rows keep the order of the scan."""
        if pa.types.is_nested(keys.type):
            keys = flatten_rows(pa.table({"": keys})).column(0)
        places = pa.array(range(len(keys)), pa.int64())
        sort_keys = [("key", "descending" if self._descending else "ascending"), ("place", "ascending")]
        return pc.sort_indices(pa.table({"key": keys, "place": places}), sort_keys=sort_keys)

    def _part(self, start: int) -> pa.Table:
        """Return the rows from a place on: at most `PART`, or all if they are in memory."""
        end = start + PART if self.total is None else min(start + PART, self.total)
        if self._keys is not None and start < end:
            values = (self._keys[start], self._keys[end - 1])
            if any(comparison(str(self._sort), "=", value) is None for value in values):
                self._hold()  # there is no exact literal, as for NaN
        if self._held is not None:
            return self._held.slice(start)
        if self._keys is None or start >= end:
            return self._read(None, limit=end).slice(start)
        rows = pa.concat_tables(self._sorted(self._keys, start, end))
        if len(rows) != end - start:
            raise InvalidArgumentError(
                f"Rows sorted by {self._sort} cannot be read in parts: {len(rows):,} rows have the values of "
                f"{end - start:,}. Use the line of code."
            )
        return rows

    def _sorted(self, keys: pa.ChunkedArray, start: int, end: int) -> Iterator[pa.Table]:
        """Yield the rows from `start` to `end`: of the first value, of the values between, and of the last value.

        A value may have more rows than a part. Then only its first rows in the order of the scan are read.
        """
        sort = str(self._sort)
        first, last = keys[start], keys[end - 1]
        begins, ends = _run(keys, start)
        yield self._read(comparison(sort, "=", first), limit=min(end, ends) - begins).slice(start - begins)
        if ends >= end:
            return
        begins, _ = _run(keys, end - 1)
        if ends < begins:
            signs = ("<", ">") if self._descending else (">", "<")
            bounds = [
                comparison(sort, signs[0], first),
                comparison(sort, signs[1], last) if last.is_valid else f"{quote_identifier(sort)} is not null",
            ]
            names = [*dict.fromkeys([*self._columns, sort])]
            rows = self._read(" and ".join(bound for bound in bounds if bound), columns=names)
            yield rows.take(self._order(rows[sort])).select(self._columns)
        yield self._read(comparison(sort, "=", last), limit=end - begins)

    def _read(
        self, condition: str | None, *, limit: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        parts = [f"({text})" for text in dict.fromkeys((self._where, condition)) if text]
        return self._snapshot.to_arrow(columns or self._columns, " and ".join(parts) or None, limit)


def _run(keys: pa.ChunkedArray, index: int) -> tuple[int, int]:
    """Return the start and the end of the rows with the value at a place; values are sorted, nulls last."""
    if not keys[index].is_valid:
        return len(keys) - keys.null_count, len(keys)
    equal = pc.indices_nonzero(pc.fill_null(pc.equal(keys, keys[index]), False))  # noqa: FBT003 - what null becomes
    return equal[0].as_py(), equal[len(equal) - 1].as_py() + 1
