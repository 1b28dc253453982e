"""The row changes of one commit: planned from metadata, and read as Arrow batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.changes.new_commits import check_follows
from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.diff.diff import row_diff
from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan, plan_diff
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import CHANGE_COLUMNS, CHANGE_TYPES, INSERTED
from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import Scan, scan_of
from snapshot_explorer.formats.unread_versions import readable_times

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from snapshot_explorer.analysis.changes.new_commits import NewCommit
    from snapshot_explorer.analysis.diff.diff_plan import DiffRequest
    from snapshot_explorer.core.records import Split
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.history import History

_BATCH_ROWS = 65_536
"""The maximum number of rows of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChanges:
    """The planned changes of one commit. Picklable."""

    version: TableVersion
    """The version that the commit created."""
    committed_at: datetime | None
    """When it was committed; None if that was not recorded."""
    diff: RowDiffPlan | None
    """The rows that differ from the version before it; None if all its rows count as inserted."""
    splits: tuple[Split, ...] = ()
    """Its rows, if they all count as inserted."""
    scan: Scan | None = None
    """The columns and the condition for these rows."""

    @property
    def is_empty(self) -> bool:
        """Whether metadata alone proves that no row changed."""
        return not (self.splits or (self.diff is not None and (self.diff.a.splits or self.diff.b.splits)))

    def batches(self, memory_limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the changes: the columns of the rows, then CHANGE_COLUMNS. Batches are not empty.

        Deleted rows first, then inserted ones, then updated ones, each before and after its update. Reads all of the
        changes before the first batch, unless all rows count as inserted.
        """
        if self.diff is None:
            for batch in self._all_rows():
                yield self._changes(pa.repeat(CHANGE_TYPES[INSERTED], batch.num_rows), batch.columns, batch.schema)
            return
        types = pa.array(list(CHANGE_TYPES.values()))
        kinds = pa.array(list(CHANGE_TYPES))
        for part in _together(row_diff(self.diff, memory_limit=memory_limit).changed.parts()):
            for batch in part.combine_chunks().to_batches(_BATCH_ROWS):
                own = types.take(pc.index_in(batch.column(0), kinds))
                yield self._changes(own, batch.columns[2:], pa.schema(list(batch.schema)[2:]))

    def _all_rows(self) -> Iterator[pa.RecordBatch]:
        if self.scan is None:
            return
        scan, condition = self.scan, self.scan.condition
        needed = Scan(columns=scan.needed, needed=scan.needed)
        for batch in local.batches(self.version, self.splits, needed):
            rows = batch if condition is None else batch.filter(condition.mask(pa.Table.from_batches([batch])))
            if rows.num_rows:
                yield rows.select(scan.columns.names)

    def _changes(self, types: pa.Array, columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
        time = pa.scalar(self.committed_at, CHANGE_COLUMNS.field(2).type)
        arrays = [types, pa.repeat(pa.scalar(self.version.number, pa.int64()), len(types)), pa.repeat(time, len(types))]
        return pa.RecordBatch.from_arrays([*columns, *arrays], schema=pa.schema([*schema, *CHANGE_COLUMNS]))


def _together(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield parts, small ones together, so that a commit with few changes is one batch."""
    waiting: list[pa.Table] = []
    rows = 0
    for part in parts:
        waiting.append(part)
        rows += len(part)
        if rows >= _BATCH_ROWS:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def plan_commit(source: History, commit: NewCommit, request: DiffRequest) -> CommitChanges:
    """Return the planned changes of a commit. Reads the metadata of it and of the version before; no data file.

    Raises:
        InvalidArgumentError: An argument does not fit the version.
        PositionError: Versions before it are missing, or the files of either version are gone.
    """
    table_format = source.table_format
    version = table_format.version(commit.version)
    if commit.before is not None:
        check_follows(source, commit)
        before = table_format.version(commit.before)
        plan = plan_diff(source.path, table_format, before, version, request, are_adjacent=True)
        _check_not_taken(plan.columns)
        return CommitChanges(version=version, committed_at=plan.b.committed_at, diff=plan)
    scan = scan_of(version.arrow_schema, row_columns(version, request), request.where)
    _check_not_taken(scan.columns.names)
    (committed_at,) = readable_times(table_format, [commit.version])
    splits = version.plan(scan.condition).splits
    return CommitChanges(version=version, committed_at=committed_at, diff=None, splits=tuple(splits), scan=scan)


def row_columns(version: TableVersion, request: DiffRequest) -> tuple[str, ...]:
    """Return the columns of changed rows under the schema of a version: the requested ones and the key, in its order.

    Raises:
        InvalidArgumentError: The version lacks one.
    """
    names = version.arrow_schema.names
    key = (request.key,) if isinstance(request.key, str) else request.key
    keys = version.schema.primary_keys if key is None else check_names(key, names, "key") or ()
    chosen = check_names(request.columns, names, "columns")
    return tuple(name for name in names if chosen is None or name in {*chosen, *keys})


def _check_not_taken(names: Sequence[str]) -> None:
    taken = [name for name in names if name in CHANGE_COLUMNS.names]
    if taken:
        raise InvalidArgumentError(
            Message(
                f"The table has a column {taken[0]!r}, which is also a column of changes. Leave it out with ",
                Hint("", {"columns": [...]}),
                ".",
            )
        )
