"""Chunks of Arrow columns."""

import pyarrow as pa


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, without a copy if it has one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
