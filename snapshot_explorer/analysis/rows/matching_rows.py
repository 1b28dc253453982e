"""The number of rows of splits that match a condition, even if some splits cannot be read."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns
from snapshot_explorer.core.errors import UNREADABLE, StorageError
from snapshot_explorer.core.records import Split
from snapshot_explorer.engines import local
from snapshot_explorer.engines.conditions import Condition
from snapshot_explorer.formats import TableVersion

FAILURES = (*UNREADABLE, StorageError)
"""Errors of the data, rather than of the condition."""
_BATCH_BYTES = 8 * 2**20
"""Decoded bytes of rows to which a condition is applied at once: an evaluation costs milliseconds."""


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
    counts = np.zeros(len(splits), np.int64)
    lock = Lock()
    waiting: list[tuple[int, pa.RecordBatch]] = []
    held = 0

    def consume(order: tuple[int, int], batch: pa.RecordBatch) -> None:
        nonlocal waiting, held
        rows = columns.rows(batch, names, of_a=True)
        full: list[tuple[int, pa.RecordBatch]] = []
        with lock:
            if rows.num_rows:
                waiting.append((order[0], rows))
                held += rows.nbytes
            if held > _BATCH_BYTES:
                full, waiting, held = waiting, [], 0
        count(full)

    def count(batches: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        if not batches:
            return
        mask = where.mask(pa.Table.from_batches([rows for _, rows in batches])).to_numpy(zero_copy_only=False)
        owners = np.repeat([owner for owner, _ in batches], [rows.num_rows for _, rows in batches])
        with lock:
            np.add.at(counts, owners[mask], 1)

    local.for_each_batch(version, splits, columns.names_in(names, of_a=True), consume)
    count(waiting)
    return [int(item) for item in counts]
