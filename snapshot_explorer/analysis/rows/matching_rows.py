"""The number of rows of splits that match a condition, even if some splits cannot be read."""

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns
from snapshot_explorer.core.errors import UNREADABLE, StorageError
from snapshot_explorer.core.records import Split
from snapshot_explorer.engines import local
from snapshot_explorer.engines.conditions import Condition, count_matching
from snapshot_explorer.formats import TableVersion

FAILURES = (*UNREADABLE, StorageError)
"""Errors of the data, rather than of the condition."""


def matching_rows(
    version: TableVersion, columns: AlignedColumns, where: Condition, splits: Sequence[Split]
) -> list[int | Exception]:
    """Return the number of matching rows of each split, or the error by which it cannot be read."""
    try:
        return list(_count_matches(version, columns, where, splits))
    except FAILURES as error:
        if len(splits) == 1:
            return [error]
    # One by one, to find the splits that cannot be read.
    return [count for split in splits for count in matching_rows(version, columns, where, [split])]


def _count_matches(
    version: TableVersion, columns: AlignedColumns, where: Condition, splits: Sequence[Split]
) -> list[int]:
    names = sorted(where.columns)
    counts: defaultdict[int, list[int]] = defaultdict(list)

    def consume(order: tuple[int, int], batch: pa.RecordBatch) -> None:
        rows = columns.rows(batch, names, of_a=True)
        counts[order[0]].append(count_matching(pa.Table.from_batches([rows]), where) if batch.num_rows else 0)

    local.for_each_batch(version, splits, columns.names_in(names, of_a=True), consume)
    return [sum(counts[index]) for index in range(len(splits))]
