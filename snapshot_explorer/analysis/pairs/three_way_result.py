"""`ThreeWayDiff`: the rows that two sides changed since a common base, and the statement that merges them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_rows import kinds_of
from snapshot_explorer.analysis.diff.row_matching import take_rows
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_values import Mask, same
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.results import Exportable, Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

STATUSES = ("ours", "theirs", "both", "merged", "conflict")
"""Changed by one side alone; by both to the same row; by both in different columns; by both in ways that exclude each
other."""
CHANGES = ("inserted", "updated", "deleted")
_VERSIONS = ("base", "ours", "theirs")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MergeStatement(Shown):
    """A statement in Spark SQL that brings what theirs changed to ours, as text to copy. Nothing was run. Draws itself.

    It is left to the user's engine to run, which may take its name for the table from a catalog.
    """

    ours: str
    """The version that it changes, as display text."""
    theirs: str
    key: tuple[str, ...]
    """The columns of ours that identify a row."""
    statement: str
    """The statement, after its settings and comments on what to read before it is run; empty if there is nothing to
    bring."""
    counts: Mapping[str, int]
    """The number of rows to expect for each of `CHANGES`."""
    conflicts: int
    """The number of conflicting rows, which are left out."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to bring."""
        return not self.statement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ThreeWayDiff(Exportable, Shown):
    """The rows that two sides changed since a common base, by key. Draws itself.

    A row that both deleted, or that is equal on both sides, is changed by `both`. A row that both updated, each in
    columns that the other left as they were, is `merged`. A `conflict` is a cell that both changed to different values,
    or a row that one deleted and the other updated. Values are compared as by `Table.diff_rows`.
    """

    base: str
    """The base, as display text."""
    ours: str
    theirs: str
    key: tuple[str, ...]
    """The columns that identify a row."""
    columns: tuple[str, ...]
    """The columns that are compared, the key included, in the order of the base."""
    columns_not_compared: tuple[str, ...]
    """Columns that not all three have, or that were left out."""
    rows: pa.Table
    """A row for each key that a side changed, conflicts first: `status`, one of `STATUSES`; `ours` and `theirs`, what
    each side did, one of `CHANGES`, null for nothing; `conflict_columns`, null for none; the key; and each other column
    as it is in the base, in ours and in theirs, such as `amount_base`, null where the row does not exist."""

    names_in_ours: Mapping[str, str]
    """The name in ours of each compared column."""
    writer: Callable[[ThreeWayDiff, str | None], MergeStatement] | None = field(default=None, repr=False)
    """Writes the statement for ours; None if ours is not a version of a table."""

    @staticmethod
    def schema_of(schema: pa.Schema, key: Sequence[str]) -> pa.Schema:
        """Return the columns of `rows` for compared columns. Names that occur twice get underscores."""
        fields = [schema.field(name) for name in key]
        for column in schema:
            if column.name not in key:
                fields += [column.with_name(f"{column.name}_{version}") for version in _VERSIONS]
        taken = {column.name for column in fields}
        first = []
        for name, dtype in (
            ("status", pa.string()),
            ("ours", pa.string()),
            ("theirs", pa.string()),
            ("conflict_columns", pa.list_(pa.string())),
        ):
            while name in taken:
                name += "_"  # noqa: PLW2901 - until the name is unique
            first.append(pa.field(name, dtype))
        return pa.schema([*first, *fields])

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows of each status."""
        by_status = kinds_of(self.rows)
        return {status: by_status.get(status, 0) for status in STATUSES}

    @property
    def has_conflicts(self) -> bool:
        """Whether a merge would need a decision."""
        return bool(self.counts["conflict"])

    def of_status(self, status: str) -> pa.Table:
        """Return the rows of one of `STATUSES`, with the columns of `rows`.

        Raises:
            InvalidArgumentError: There is no such status.
        """
        if status not in STATUSES:
            raise InvalidArgumentError(f"There is no status {status!r}. Statuses: {', '.join(STATUSES)}.")
        return self.rows.filter(pc.equal(self.rows.column(0), status))

    @property
    def conflicts(self) -> Frame:
        """A row for each row with a conflict, with the columns of `rows`."""
        return Frame(self.of_status("conflict"), title=f"{self.title}, conflicts", noun="conflicts", of_rows=True)

    @property
    def incoming(self) -> pa.Table:
        """What a merge would do to ours: `rowkind` and the compared columns, without conflicts.

        `rowkind` is +I (inserted), -D (deleted), -U and +U (updated: before and after, in pairs), as in
        `Table.row_changes`. Of a row that both updated, cells that theirs changed are theirs', all others are ours.
        """
        rows = pa.concat_tables([self.of_status("theirs"), self.of_status("merged")])
        base, ours, theirs = (self.side(rows, version) for version in _VERSIONS)
        # A cell that theirs left as it was in the base is ours.
        columns = [
            _choose(theirs[name], ours[name], same(single_chunk(base[name]), single_chunk(theirs[name])))
            for name in self.columns
        ]
        after = pa.Table.from_arrays(columns, schema=theirs.schema)
        kinds = rows.column(2)
        of_kind = {change: pa.array(np.asarray(pc.equal(kinds, change))) for change in CHANGES}
        before, updated = ours.filter(of_kind["updated"]), after.filter(of_kind["updated"])
        pairs = pa.concat_tables([_with_kind(before, BEFORE), _with_kind(updated, AFTER)])
        order = np.arange(2 * len(before)).reshape(2, -1).T.ravel()  # each before its update, then after it
        return pa.concat_tables(
            [
                _with_kind(after.filter(of_kind["inserted"]), INSERTED),
                _with_kind(ours.filter(of_kind["deleted"]), DELETED),
                pairs.take(pa.array(order)),
            ]
        )

    def merge_statement(self, name: str | None = None) -> MergeStatement:
        """Return the statement in Spark SQL that brings `incoming` to ours. Nothing is run.

        A MERGE that lists the rows, up to 500, after the settings that it needs. It holds while ours is the newest
        version. Lists the versions, and reads the key of all rows of ours, unless the format enforces it.

        Args:
            name: The table's name in the engine, such as `lake.shop.orders`; by default as for `Table.repair`.

        Raises:
            InvalidArgumentError: Ours is not the newest version of a table, or the key is not unique there.
            UnsupportedFeatureError: No statement is certain to be exact; the message says why.
        """
        if self.writer is None:
            raise InvalidArgumentError(
                "Ours is not a version of a table that was opened: write `incoming` to it with the tool that made it."
            )
        return self.writer(self, name)

    def side(self, rows: pa.Table, version: str) -> pa.Table:
        """Return some of `rows` with the compared columns as they are in `base`, `ours` or `theirs`."""
        fields, arrays = [], []
        names = rows.column_names[4:]
        for name in self.columns:
            own = name if name in self.key else f"{name}_{version}"
            index = 4 + names.index(own)
            arrays.append(rows.column(index))
            fields.append(rows.schema.field(index).with_name(name))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    @property
    def title(self) -> str:
        """What is compared."""
        return f"Three-way diff: {self.ours} and {self.theirs} since {self.base}"

    def to_arrow(self) -> pa.Table:
        """Return `rows`."""
        return self.rows


def _choose(first: pa.ChunkedArray, second: pa.ChunkedArray, is_second: Mask) -> pa.Array:
    """Return the values of the first column, or of the second one where the mask is true."""
    both = pa.chunked_array([*first.chunks, *second.chunks], first.type)
    return take_rows(both, np.arange(len(first)) + np.where(is_second, len(first), 0))


def _with_kind(rows: pa.Table, kind: str) -> pa.Table:
    return rows.add_column(0, pa.field(ROW_KIND, pa.string()), pa.array([kind] * len(rows), pa.string()))
