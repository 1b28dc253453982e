"""Removal of rows of a data file by position."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.roaring import Positions


def without(
    batches: Iterator[tuple[int, pa.RecordBatch, pa.RecordBatch]], deleted: Positions
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield a file's batches without the rows at some positions.

    Args:
        batches: Rows of the file in order: the position of the first one, and two batches of as many rows each, which
            stay aligned.
        deleted: Positions, ascending.
    """
    for start, batch, metadata in batches:
        mask = kept(deleted, start, batch.num_rows)
        yield masked(batch, mask), masked(metadata, mask)


def kept(deleted: Positions, start: int, rows: int) -> pa.BooleanArray:
    """Return for each of some consecutive rows of a file whether it is not at one of some positions.

    Args:
        deleted: Positions, ascending.
        start: The position of the first row.
        rows: The number of rows.
    """
    first, last = np.searchsorted(deleted, (start, start + rows))
    is_kept = np.ones(rows, bool)
    is_kept[deleted[first:last] - start] = False
    return pa.array(is_kept)


def masked(batch: pa.RecordBatch, kept: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows where the mask is true, also of a batch without columns."""
    if batch.num_columns:
        return batch.filter(kept)
    return batch.slice(0, kept.true_count)


def bare(rows: int) -> pa.RecordBatch:
    """Return rows without columns."""
    return pa.record_batch([pa.nulls(rows)], names=["rows"]).select([])
