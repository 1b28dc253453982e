"""Removal of rows of a data file by position."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.roaring import Positions

_BATCH_ROWS = 65_536
_FEW = 8
"""If at most one row in this many is removed, columns are copied run by run, which is faster then."""
_FLAT = (
    pa.types.is_primitive,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
)


def without_deleted(
    batches: Iterator[tuple[int, pa.RecordBatch, pa.RecordBatch]], deleted: Positions
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield a file's batches without the rows at some positions.

    Args:
        batches: Rows of the file in order: the position of the first one, and two aligned batches of as many
            rows each.
        deleted: Positions, ascending.
    """
    for start, batch, metadata in batches:
        mask = kept_mask(deleted, start, batch.num_rows)
        yield filter_rows(batch, mask), filter_rows(metadata, mask)


def kept_mask(deleted: Positions, start: int, rows: int) -> pa.BooleanArray:
    """Return for each row of a file from `start` on whether it is kept. The deleted positions ascend."""
    return mask_of(kept_rows(deleted, start, rows))


def kept_rows(positions: Positions, start: int, rows: int, *, are_kept: bool = False) -> npt.NDArray[np.bool_]:
    """Return for each row of a file from `start` on whether it is kept.

    Args:
        positions: Positions, ascending: of the deleted rows.
        are_kept: Whether they are of the kept rows instead.
    """
    first, last = np.searchsorted(positions, (start, start + rows))
    result = np.full(rows, not are_kept)
    result[positions[first:last] - start] = are_kept
    return result


def mask_of(kept: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """Return booleans as an Arrow array. Much faster than `pa.array`."""
    bits = pa.py_buffer(np.packbits(kept, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(kept), [None, bits], null_count=0)


def filter_rows(batch: pa.RecordBatch, kept: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows where the mask is true, also of a batch without columns."""
    if not batch.num_columns:
        return batch.slice(0, kept.true_count)
    if kept.false_count * _FEW > len(kept):
        return batch.filter(kept)  # turns the mask into positions first
    columns = [_without_validity(column).filter(kept) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _without_validity(values: pa.Array) -> pa.Array:
    """Return values without a bitmap of nulls if none is null: a filter of runs is several times as fast then."""
    dtype = values.type
    if values.null_count or not any(is_kind(dtype) for is_kind in _FLAT):
        return values
    validity, *buffers = values.buffers()
    if validity is None:
        return values
    return pa.Array.from_buffers(dtype, len(values), [None, *buffers], null_count=0, offset=values.offset)


def rows_without_columns(rows: int) -> pa.RecordBatch:
    """Return rows without columns."""
    return pa.record_batch([pa.nulls(rows)], names=["rows"]).select([])


def batches_without_columns(rows: int, size: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield rows without columns, at most `size` at once."""
    return (rows_without_columns(min(size, rows - start)) for start in range(0, rows, size))
