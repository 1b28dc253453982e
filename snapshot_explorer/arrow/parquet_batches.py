"""Rows of a parquet file in batches that are as large as memory allows: every batch costs time of its own."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_LEAST_ROWS, _MOST_ROWS = 65_536, 2**20
_BATCH_BYTES = 16 * 2**20
"""Decoded bytes that a batch of more than the least rows may come to, by an estimate."""
_SAMPLED = 8
"""Row groups by which bytes are estimated."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_OFFSET = 4
"""Bytes of an offset to a text."""
_UNKNOWN_LENGTH = 1024
"""The assumed length of texts without statistics."""


def batches(
    reader: "pq.ParquetFile", names: Sequence[str], groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of row groups of a file in order, with these columns.

    Args:
        reader: The file.
        names: The columns, at least one.
        groups: The row groups; None for all.
    """
    metadata = reader.metadata
    chosen = range(metadata.num_row_groups) if groups is None else groups
    rows = metadata.num_rows if groups is None else sum(metadata.row_group(group).num_rows for group in groups)
    size = _LEAST_ROWS if rows <= _LEAST_ROWS else _batch_rows(metadata, names, chosen)
    # For few rows, threads cost more than they save.
    yield from reader.iter_batches(size, row_groups=list(chosen), columns=list(names), use_threads=rows > _LEAST_ROWS)


def _batch_rows(metadata: "pq.FileMetaData", names: Sequence[str], groups: Sequence[int]) -> int:
    """Return the rows of a batch: a row group, or an equal part of it, as far as its bytes can be estimated."""
    wanted = frozenset(names)
    sampled = [metadata.row_group(group) for group in groups[:_SAMPLED]]
    rows = max((group.num_rows for group in sampled), default=0)
    total = size = 0
    for group in sampled:
        total += group.num_rows
        for index in range(group.num_columns):
            chunk = group.column(index)
            path = chunk.path_in_schema
            if path in wanted or path.split(".", 1)[0] in wanted:
                size += _decoded_bytes(chunk)
    parts = max(1, -(-rows * size // (max(1, total) * _BATCH_BYTES)), -(-rows // _MOST_ROWS))
    return max(_LEAST_ROWS, -(-rows // parts))


def _decoded_bytes(chunk: "pq.ColumnChunkMetaData") -> int:
    """Return an estimate of the decoded bytes of a column chunk. A dictionary may repeat long texts in few bytes."""
    width = _WIDTHS.get(chunk.physical_type)
    if width is None:
        statistics = chunk.statistics
        known = statistics is not None and statistics.has_min_max
        ends = [statistics.min_raw, statistics.max_raw] if known else []
        width = _OFFSET + max((len(end) for end in ends if isinstance(end, bytes)), default=_UNKNOWN_LENGTH)
    return max(int(chunk.total_uncompressed_size), int(chunk.num_values) * width)
