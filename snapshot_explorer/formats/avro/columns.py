"""Rows of Avro blocks as Arrow columns, decoded in parallel lanes.

Avro rows have no length prefix: a reader must decode a row to find the next. To decode many rows at once, their starts
are guessed from the first bytes, or the first text, of the first row. All rows are decoded, and the guess is verified:
every row must end where the next starts, and the counts must match. Otherwise `records` decodes the rows one by one.
Where the starts are recorded, as in log files of Hudi, nothing is guessed.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.formats.avro import records
from snapshot_explorer.formats.avro.arrow_values import CannotVectorizeError, Column, Offsets, chosen, to_arrow
from snapshot_explorer.formats.avro.container import Shape, TruncatedError
from snapshot_explorer.formats.avro.lanes import PADDING, Lanes, read_column
from snapshot_explorer.formats.avro.row_starts import chain, guesses, proven

_FEW_ROWS = 24
"""Fewer rows are decoded faster one by one."""


def decode_rows(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray:
    """Return the rows of blocks of one shape as a struct array. Arguments as for `decode`.

    Raises:
        TruncatedError: The blocks end too early or violate the format.
    """
    is_small = sum(rows for rows, _ in blocks) < _FEW_ROWS
    columns = None if is_small else decode(blocks, shape, target)
    return records.decode(blocks, shape, target) if columns is None else columns


def decode(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray | None:
    """Return the rows of blocks of one shape as a struct array, None if the row starts cannot be verified.

    Args:
        blocks: Number of rows and uncompressed bytes, together under 2 GB.
        target: The fields to return and their types; fields that the shape lacks are null.
    """
    content = b"".join([*(block for _, block in blocks), bytes(PADDING)])
    size = len(content) - PADDING
    padded = np.frombuffer(content, np.uint8)
    bounds = np.cumsum([0, *(len(block) for _, block in blocks)], dtype=np.int64)
    counts = np.array([rows for rows, _ in blocks], np.int64)
    try:
        for starts in guesses(content, padded, bounds[:-1][counts > 0], shape):
            column, ends = _decoded(padded, size, starts, shape, target)
            if not proven(starts, ends, bounds, counts):
                kept = chain(starts, ends, size)
                if not proven(starts[kept], ends[kept], bounds, counts):
                    continue
                column = chosen(column, kept)
            return to_arrow(column, target, pa.py_buffer(padded))
    except (TruncatedError, CannotVectorizeError):
        pass
    return None


def decode_at(
    content: bytes, starts: Offsets, shape: Shape, target: pa.StructType
) -> tuple[pa.StructArray, Offsets] | None:
    """Return the rows at recorded positions as a struct array, and where each ends.

    None if they are not rows of the shape. The caller checks the ends: a damaged row may end within another one.

    Args:
        content: The bytes with the rows, under 2 GB.
        starts: Where each row starts.
        target: The fields to return and their types; fields that the shape lacks are null.
    """
    padded = np.frombuffer(content + bytes(PADDING), np.uint8)
    try:
        column, ends = _decoded(padded, len(content), starts, shape, target)
        if not (ends > len(content)).any():
            return to_arrow(column, target, pa.py_buffer(padded)), ends
    except (TruncatedError, CannotVectorizeError):
        pass
    return None


def _decoded(
    padded: npt.NDArray[np.uint8], size: int, starts: Offsets, shape: Shape, target: pa.DataType
) -> tuple[Column, Offsets]:
    lanes = Lanes(padded, size, starts.copy())
    return read_column(shape, lanes, target), lanes.at
