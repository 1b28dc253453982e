"""`RowDiff`: the rows that differ between two versions. Draws itself and exports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_rows import (
    by_column,
    by_values,
    changes_schema,
    kinds_of,
    of_kinds,
    side_by_side,
)
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.engines.scan import check_limit
from snapshot_explorer.results import Exportable, Frame
from snapshot_explorer.results.exports import flatten_rows
from snapshot_explorer.results.stored_rows import StoredRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan

_HEAD_ROWS = 1_000
"""The rows of each kind that remain in memory, to be drawn."""
HELD_BYTES = 256 * 2**20
"""The maximum number of bytes of changed rows in memory; more are written to a temporary file."""
_DRAWN_ROWS = 20


class DiffRows:
    """Changed rows, in memory, in a file or on Spark."""

    schema: pa.Schema
    """Their columns; see `changed_rows.changes_schema`."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows of each kind; kinds without rows are missing."""
        raise NotImplementedError

    @property
    def heads(self) -> Mapping[str, pa.Table]:
        """The first rows of each kind."""
        raise NotImplementedError

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows, part by part."""
        raise NotImplementedError

    def to_spark(self) -> DataFrame:
        """Return the rows as a lazy DataFrame."""
        raise InvalidArgumentError(
            Message(
                "The diff was computed on this machine. For a DataFrame of Spark, pass ",
                Hint("", {"engine": "spark"}),
                " to the diff.",
            )
        )


class ChangedRows(DiffRows):
    """Changed rows, in memory or in a temporary file that is removed with this object."""

    def __init__(self, schema: pa.Schema, *, limit_bytes: int = HELD_BYTES) -> None:
        """Contain no rows yet; `spill` adds them."""
        self.schema = schema
        self._counts: Counter[str] = Counter()
        self._heads: dict[str, pa.Table] = {}
        self._rows = StoredRows(schema, limit_bytes=limit_bytes)

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    @property
    def heads(self) -> Mapping[str, pa.Table]:
        return self._heads

    def fill(self, parts: Iterable[pa.Table]) -> None:
        """Add rows, part by part."""
        with self._rows as rows:
            for part in parts:
                self._count(part)
                rows.add(part)

    def _count(self, part: pa.Table) -> None:
        for kind, count in kinds_of(part).items():
            self._counts[kind] += count
            known = self._heads.get(kind)
            if known is None or len(known) < _HEAD_ROWS:
                is_of_kind = np.asarray(pc.equal(part.column(0), kind))
                rows = part.take(pa.array(np.flatnonzero(is_of_kind)[:_HEAD_ROWS]))
                self._heads[kind] = rows if known is None else pa.concat_tables([known, rows]).slice(0, _HEAD_ROWS)

    def parts(self) -> Iterator[pa.Table]:
        return self._rows.parts()


def spill(parts: Iterable[pa.Table], schema: pa.Schema, *, limit_bytes: int = HELD_BYTES) -> ChangedRows:
    """Return changed rows from their parts, in memory up to the limit, otherwise in a temporary file."""
    result = ChangedRows(changes_schema(schema), limit_bytes=limit_bytes)
    result.fill(parts)
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RowDiff(Exportable, Shown):
    """The rows that differ between version A and version B of a table. Draws itself.

    The rows of A less `before` plus `after` are the rows of B, as multisets. Columns have the names of B and the wider
    of both types. Values are compared as they are stored: nulls are equal, NaN equals NaN, -0.0 differs from 0.0,
    decimals and times are equal if their values are, maps have no order.
    """

    plan: RowDiffPlan
    """The plan: the compared versions and columns, and the reads."""
    changed: DiffRows
    drawn_rows: int = _DRAWN_ROWS

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows that were inserted, deleted and updated."""
        by_kind = self.changed.counts
        return {name: by_kind.get(kind, 0) for name, kind in _COUNTED.items()}

    @property
    def call(self) -> str:
        """The Python that computes the diff."""
        return self.plan.call

    @property
    def is_empty(self) -> bool:
        """Whether no row differs."""
        return not any(self.counts.values())

    @property
    def suggested_key(self) -> str | None:
        """A column that may identify the rows if they were compared without a key; otherwise None.

        It is the column of whole numbers or texts with the most values on both sides, if these are unique and not null
        among the first changed rows of each side.
        """
        deleted, inserted = (self.changed.heads.get(kind) for kind in (DELETED, INSERTED))
        if self.plan.key or deleted is None or inserted is None:
            return None
        shared = {name: _shared_values(deleted[name], inserted[name]) for name in self.plan.columns}
        best = max(shared, key=lambda name: shared[name], default="")
        return best if shared.get(best) else None

    @property
    def inserted(self) -> pa.Table:
        """The rows that B has and A lacks; with a key, the rows whose key A lacks."""
        return self._of(INSERTED)

    @property
    def deleted(self) -> pa.Table:
        """The rows that A has and B lacks; with a key, the rows whose key B lacks."""
        return self._of(DELETED)

    @property
    def updated(self) -> pa.Table:
        """The rows whose key both versions have, with other values.

        The columns are `changed_columns` (list of text), the key, and each other column before and after, as
        `amount_before` and `amount_after`. Empty without a key.
        """
        return side_by_side(self._table(), self.plan.key)

    @property
    def before(self) -> pa.Table:
        """The rows of A that B lacks: the deleted ones, and the updated ones as they were."""
        return self._of(DELETED, BEFORE)

    @property
    def after(self) -> pa.Table:
        """The rows of B that A lacks: the inserted ones, and the updated ones as they are."""
        return self._of(INSERTED, AFTER)

    @property
    def by_column(self) -> Frame:
        """A row per column outside of the key: `updated_rows` in which it differs, and the first of them as examples.

        Raises:
            InvalidArgumentError: The rows were compared without a key.
        """
        rows = by_column(self.changed.parts(), self.plan.schema, self.plan.key)
        return Frame(rows, title=f"{self.plan.title}, by column", noun="columns", of_rows=True)

    def by_partition(self, *columns: str) -> Frame:
        """Return how many rows were inserted, deleted and updated for each partition of B.

        An updated row counts in the partition that it has in B.

        Args:
            columns: Other columns whose values divide the rows.

        Raises:
            InvalidArgumentError: B has no partition columns that were compared, or a column has a nested type.
        """
        rows = by_values(self.changed.parts(), self.plan.schema, columns or self.plan.partition_columns)
        return Frame(rows, title=f"{self.plan.title}, by partition", noun="partitions", of_rows=True)

    def _table(self) -> pa.Table:
        return pa.concat_tables([self.changed.schema.empty_table(), *self.changed.parts()])

    def _of(self, *kinds: str) -> pa.Table:
        schema = self.plan.schema
        parts = [of_kinds(part, kinds) for part in self.changed.parts()]
        return pa.concat_tables([schema.empty_table(), *parts])

    def to_arrow(self) -> pa.Table:
        """Return all changed rows: `rowkind`, `changed_columns`, and the columns of the rows.

        `rowkind` is +I (inserted), -D (deleted), -U and +U (updated: before and after, in pairs), as in
        `Table.row_changes`. `changed_columns` is null for inserted and deleted rows.
        """
        return self._table()

    def to_spark(self) -> DataFrame:
        """Return all changed rows as a lazy Spark DataFrame; columns as `to_arrow`, in Spark's types.

        The rows stay on executors.
        """
        return self.changed.to_spark()

    def _parts(self) -> tuple[pa.Schema, Iterable[pa.Table]]:
        return self.changed.schema, self.changed.parts()

    def _csv_rows(self, rows: pa.Table) -> pa.Table:
        return flatten_rows(rows)

    def showing(self, rows: int) -> RowDiff:
        """Return the same diff, drawn with up to `rows` rows."""
        check_limit(rows, "rows")
        if rows is None:
            raise InvalidArgumentError("rows must be a whole number, 0 or more, got None. The diff has all rows.")
        return replace(self, drawn_rows=rows)


def _shared_values(a: pa.ChunkedArray, b: pa.ChunkedArray) -> int:
    """Return how many values both sides have; 0 if a side has a value twice or null, or the type cannot be a key."""
    dtype = a.type
    if not (pa.types.is_integer(dtype) or pa.types.is_string(dtype)) or a.null_count or b.null_count:
        return 0
    if any(pc.count_distinct(side).as_py() < len(side) for side in (a, b)):
        return 0
    shared: int = pc.sum(pc.is_in(a, b.combine_chunks())).as_py() or 0
    return shared


_COUNTED = {"inserted": INSERTED, "deleted": DELETED, "updated": AFTER}
