"""Rows of a parquet file in batches that are as large as memory allows, because each batch has a fixed cost."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MIN_ROWS, _MAX_ROWS = 65_536, 2**20
_BATCH_BYTES = 32 * 2**20
"""Estimated decoded bytes of a batch with more than the minimum of rows. With half as many, reading all rows of 8 large
files took 9 % more processor time, and 300 MiB of additional memory instead of 186."""
_PART_BYTES = 16 * 2**20
"""Estimated decoded bytes of small row groups that are decoded together."""
_SAMPLED = 8
"""Row groups by which bytes are estimated."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_OFFSET = 4
"""Bytes of an offset to a text."""
_UNKNOWN_LENGTH = 1024
"""The assumed length of texts without statistics."""


class Load(Protocol):
    """Fetches parts of a remote file, each as its start and end, before they are read."""

    def __call__(self, ranges: Iterable[tuple[int, int]], ahead: Iterable[tuple[int, int]] = ()) -> None:
        """Return when `ranges` are loaded. The ranges in `ahead` may arrive later."""
        ...


@dataclass(frozen=True, slots=True)
class _Part:
    """Row groups that are decoded together."""

    groups: tuple[int, ...]
    """Their numbers, consecutive among those to read."""
    rows: int
    """The number of rows in them."""


def batches(
    reader: "pq.ParquetFile",
    names: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    load: Load | None = None,
    is_remote: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of row groups of a file in order, with these columns.

    Args:
        names: The columns, at least one.
        groups: The row groups; None for all.
        load: Fetches ranges of a remote file: the ranges of a part, and ahead, while it is decoded, of the next part.
        is_remote: Few rows are decoded in pyarrow's threads too, which are as many as there are processors: the
            threads that fetch files are many more.
    """
    metadata = reader.metadata
    chosen = range(metadata.num_row_groups) if groups is None else groups
    rows = metadata.num_rows if groups is None else sum(metadata.row_group(group).num_rows for group in groups)
    if not chosen:  # pyarrow before 19 fails
        return
    if rows <= _MIN_ROWS:  # threads cost more than they save
        if load is not None:
            load(ranges(metadata, names, chosen))
        yield from reader.iter_batches(_MIN_ROWS, row_groups=list(chosen), columns=list(names), use_threads=is_remote)
        return
    width = _row_bytes(metadata, names, chosen)
    for part, following in pairwise([*_parts(metadata, chosen, width), _Part((), 0)]):
        if load is not None:
            load(ranges(metadata, names, part.groups), ranges(metadata, names, following.groups))
        pieces = max(1, math.ceil(part.rows * width / _BATCH_BYTES), math.ceil(part.rows / _MAX_ROWS))
        size = max(_MIN_ROWS, math.ceil(part.rows / pieces))
        yield from reader.iter_batches(size, row_groups=list(part.groups), columns=list(names), use_threads=True)


def ranges(metadata: "pq.FileMetaData", names: Sequence[str], groups: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and end in the file of each column chunk of these columns and row groups."""
    for chunk in _chunks(metadata, names, groups):
        starts = [at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at is not None and at > 0]
        start = min(starts, default=0)
        yield start, start + chunk.total_compressed_size


def _chunks(
    metadata: "pq.FileMetaData", names: Sequence[str], groups: Iterable[int]
) -> "Iterator[pq.ColumnChunkMetaData]":
    columns = frozenset(names)
    for number in groups:
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            chunk = group.column(index)
            path = chunk.path_in_schema
            if path in columns or path.split(".", 1)[0] in columns:
                yield chunk


def _parts(metadata: "pq.FileMetaData", groups: Sequence[int], width: float) -> Iterator[_Part]:
    """Yield parts of one large or several small row groups. A batch across large row groups would copy their rows."""
    most = min(_MAX_ROWS, int(_PART_BYTES / max(width, 1)))
    part = _Part((), 0)
    for group in groups:
        rows = metadata.row_group(group).num_rows
        if part.groups and part.rows + rows > most:
            yield part
            part = _Part((), 0)
        part = _Part((*part.groups, group), part.rows + rows)
    if part.groups:
        yield part


def _row_bytes(metadata: "pq.FileMetaData", names: Sequence[str], groups: Sequence[int]) -> float:
    sampled = groups[:_SAMPLED]
    total = sum(metadata.row_group(number).num_rows for number in sampled)
    size: int = sum(map(_decoded_bytes, _chunks(metadata, names, sampled)))
    return float(size / max(1, total))


def _decoded_bytes(chunk: "pq.ColumnChunkMetaData") -> int:
    """Return an estimate of the decoded bytes of a column chunk. A dictionary may repeat long texts in few bytes."""
    width = _WIDTHS.get(chunk.physical_type)
    if width is None:
        statistics = chunk.statistics
        known = statistics is not None and statistics.has_min_max
        ends = [statistics.min_raw, statistics.max_raw] if known else []
        width = _OFFSET + max((len(end) for end in ends if isinstance(end, bytes)), default=_UNKNOWN_LENGTH)
    return max(int(chunk.total_uncompressed_size), int(chunk.num_values) * width)
