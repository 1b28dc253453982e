"""Chunks of Arrow columns."""

import pyarrow as pa


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column in one piece; nothing is copied if it is in one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
