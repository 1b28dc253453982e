"""Row diffs: reads the splits in which two versions differ and compares their rows."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_rows import compare_parts
from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan, Side
from snapshot_explorer.analysis.diff.diff_result import HELD_BYTES, RowDiff, spill
from snapshot_explorer.analysis.diff.row_matching import HashedRows, Hashes, find_repeated, is_in, row_hashes
from snapshot_explorer.analysis.diff.spilled_rows import EqualRows, SplitRows
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import check_files

_WIDEST_VALUE = 60
"""Characters of a value in a message."""
_SHOWN_COLUMNS = 5
"""Columns of a key in a message."""
DEFAULT_MEMORY = 2**30
"""Bytes of rows, and of the memory for matching them, up to which rows stay in memory; more go to temporary files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideReader:
    """Reads the rows of one side in the columns that are compared. Picklable."""

    plan: RowDiffPlan
    of_a: bool
    columns: tuple[str, ...]

    @property
    def side(self) -> Side:
        """The version, and the splits that are read of it."""
        return self.plan.a if self.of_a else self.plan.b

    @property
    def needed(self) -> list[str]:
        """The columns to read, in the version's own names."""
        extra = sorted(self.plan.condition.columns - set(self.columns)) if self.plan.condition else []
        return self.plan.aligned.names_in([*self.columns, *extra], of_a=self.of_a)

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Hashes]:
        """Return the rows of a batch that match the condition, with the columns to compare, and hashes of their keys.

        Without a key, the hashes are of whole rows.
        """
        passing = self._passing(batch)
        names = self.plan.key or self.columns
        return passing, row_hashes(
            [self.plan.rules.normalized(passing.column(name)) for name in names], passing.num_rows
        )

    def checked_rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Hashes]:
        """Return the result of `rows`. Raises for a null in a key that is not declared."""
        hashed = self.rows(batch)
        if not self.plan.is_declared_key:
            check_not_null(hashed[0], self.plan.key, self.side.title)
        return hashed

    def _passing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        condition = self.plan.condition
        if condition is None:
            return self.plan.aligned.rows(batch, self.columns, of_a=self.of_a)
        names = [*self.columns, *sorted(condition.columns - set(self.columns))]
        aligned = self.plan.aligned.rows(batch, names, of_a=self.of_a)
        mask = condition.mask(pa.Table.from_batches([aligned]))
        return aligned.select(list(self.columns)).filter(mask)


def check_key(plan: RowDiffPlan) -> None:
    """Raise if the key has nulls, or a value in several rows of one version. Reads the key columns.

    A declared primary key has neither. Rows that are not read, since both versions share them, are not checked.
    """
    if not plan.key or plan.is_declared_key:
        return
    for of_a in (True, False):
        reader = SideReader(plan=plan, of_a=of_a, columns=plan.key)
        hashes: list[Hashes] = []

        def see(
            _: tuple[int, int], batch: pa.RecordBatch, reader: SideReader = reader, parts: list[Hashes] = hashes
        ) -> None:
            parts.append(reader.checked_rows(batch)[1])

        local.for_each_batch(reader.side.version, reader.side.splits, reader.needed, see)
        ordered = np.sort(np.concatenate([np.zeros(0, np.uint64), *hashes]))
        again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])[:_MAX_SUSPECTS]
        if len(again):
            _check_unique(plan, reader, again)


_MAX_SUSPECTS = 10_000
"""The maximum number of repeated hashes whose rows are compared before any other work."""


def check_not_null(rows: pa.RecordBatch | pa.Table, key: Sequence[str], owner: str) -> None:
    """Raise if a column of the key is null in a row of `owner`, such as `version 7`."""
    for name in key:
        column = rows.column(name)
        if column.null_count:
            index = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise InvalidArgumentError(
                Message(
                    f"The key column {name!r} is null in a row of {owner}: "
                    f"{_example(rows, index, key)}. A key must identify every row. Name other columns, or use ",
                    Hint("", {"key": []}),
                    " to compare whole rows.",
                )
            )


def _example(rows: pa.RecordBatch | pa.Table, index: int, key: Sequence[str]) -> str:
    """Return the key of a row for a message, shortened if it is long."""
    shown = [
        f"{name}={truncate(format_cell(rows.column(name)[index]).text, _WIDEST_VALUE)}" for name in key[:_SHOWN_COLUMNS]
    ]
    return ", ".join(shown)


def _check_unique(plan: RowDiffPlan, reader: SideReader, hashes: Hashes) -> None:
    suspects: list[tuple[pa.RecordBatch, Hashes]] = []

    def see(_: tuple[int, int], batch: pa.RecordBatch) -> None:
        rows, own = reader.rows(batch)
        mask = is_in(own, hashes)
        if mask.any():
            suspects.append((rows.filter(pa.array(mask)), own[mask]))

    local.for_each_batch(reader.side.version, reader.side.splits, reader.needed, see)
    rows = HashedRows(
        rows=pa.Table.from_batches([part for part, _ in suspects]), hashes=np.concatenate([own for _, own in suspects])
    )
    raise_repeated(plan, reader.side, rows)


def raise_repeated(plan: RowDiffPlan, side: Side, rows: HashedRows) -> None:
    """Raise if two of the rows have the same key."""
    index = find_repeated(plan.rules.normalized_rows(rows), plan.key)
    if index is None:
        return
    raise not_unique_error(rows.rows, index, plan.key, side.title)


def not_unique_error(rows: pa.Table, index: int, key: Sequence[str], owner: str) -> InvalidArgumentError:
    """Return the error for a key that several rows of `owner` have, one of them at an index."""
    return InvalidArgumentError(
        Message(
            f"The key {', '.join(key)} is not unique: several rows of {owner} have "
            f"{_example(rows, index, key)}. Add columns to the key, or use ",
            Hint("", {"key": []}),
            " to compare whole rows.",
        )
    )


def changes(plan: RowDiffPlan, *, memory_limit: int) -> Iterator[pa.Table]:
    """Yield the changed rows of a plan, part by part; see `changed_rows.changes_schema`.

    Reads both sides at once, each once.
    """
    readers = [SideReader(plan=plan, of_a=of_a, columns=plan.columns) for of_a in (True, False)]
    with closing(SplitRows([plan.schema, plan.schema, pa.schema([])], limit_bytes=memory_limit)) as rows:
        keep_hashes = bool(plan.key) and not plan.is_declared_key
        equal = EqualRows(rows, limit_bytes=memory_limit, keep_hashes=keep_hashes)

        def add(side: int, order: tuple[int, int], batch: pa.RecordBatch) -> None:
            equal.add(side, order, *readers[side].checked_rows(batch))

        local.for_each_batch_of([(reader.side.version, reader.side.splits, reader.needed) for reader in readers], add)
        equal.finish()
        for before, after, dropped in rows.parts():
            if plan.key:
                _check_keys(plan, readers, (before, after), dropped.hashes)
            yield from compare_parts(before, after, plan.key, plan.rules)


def _check_keys(plan: RowDiffPlan, readers: Sequence[SideReader], sides: Sequence[HashedRows], dropped: Hashes) -> None:
    """Raise if two rows of a side have the same key.

    Args:
        dropped: Hashes of keys of further rows, a row of each side, which were equal.
    """
    for reader, side in zip(readers, sides, strict=True):
        raise_repeated(plan, reader.side, side)
    if not len(dropped):
        return
    dropped = np.sort(dropped)
    repeated = dropped[1:][dropped[1:] == dropped[:-1]]
    for reader, side in zip(readers, sides, strict=True):
        own = np.sort(side.hashes)  # in order, each is found near the last one
        indices = np.minimum(np.searchsorted(dropped, own), len(dropped) - 1)
        suspects = np.unique(np.concatenate([own[dropped[indices] == own], repeated]))[:_MAX_SUSPECTS]
        if len(suspects):
            _check_unique(plan, reader, suspects)


def row_diff(plan: RowDiffPlan, *, memory_limit: int | None = None) -> RowDiff:
    """Return the row diff of a plan. Reads both sides once."""
    limit = memory_bytes(memory_limit)
    for side in (plan.a, plan.b):
        if side.version.storage.is_local:  # a request each for others; reading a missing file raises the same error
            check_files(side.version, side.splits)
    if plan.a.table is None:  # of two tables most rows are read, and their keys are checked on the way
        check_key(plan)
    stored_changes = spill(changes(plan, memory_limit=limit), plan.schema, limit_bytes=min(limit, HELD_BYTES))
    return RowDiff(plan=plan, changed=stored_changes)


def memory_bytes(limit: object) -> int:
    """Return the memory limit, by default 1 GiB. Raises InvalidArgumentError if it is not a number of bytes."""
    if limit is None:
        return DEFAULT_MEMORY
    if not isinstance(limit, int) or limit < 0:
        raise InvalidArgumentError(
            f"memory_limit must be a number of bytes, 0 or more, got {limit!r}. Leave it out for 1 GiB."
        )
    return limit
