"""Row groups of parquet files in which rows may match a predicate, by their statistics.

Statistics are compared only if they bound exactly the values that are read. The writer's statistics must be known to be
right, all readers must order the type alike, and the column must be returned as it is stored.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.records import Bounds, Predicate

if TYPE_CHECKING:
    import pyarrow.parquet as pq

WRITERS = re.compile(
    r"parquet-mr version (1\.1\d|[2-9])|parquet-mr compatible Photon|parquet-cpp-arrow|parquet-rs|DuckDB|Polars"
)
"""Writers whose statistics order text by unsigned bytes. Older ones of Java did not (PARQUET-251, PARQUET-686)."""
_MIN_BYTES = 2**20
"""The minimum size of a single row group whose statistics are compared, which takes about a millisecond."""
_UTC = pa.timestamp("us", tz="UTC")
_STORED = {
    pa.int8(): ("INT32", pa.int32()),
    pa.int16(): ("INT32", pa.int32()),
    pa.int32(): ("INT32", pa.int32()),
    pa.int64(): ("INT64", pa.int64()),
    pa.date32(): ("INT32", pa.int32()),
    pa.timestamp("us"): ("INT64", pa.int64()),
    _UTC: ("INT64", pa.int64()),
    pa.string(): ("BYTE_ARRAY", pa.binary()),
}
"""The types whose statistics are compared, each with its physical type and the physical type's Arrow type. Decimals
that are stored as integers are compared too. Statistics of floating point types leave out NaN."""


class Run(NamedTuple):
    """Row groups that are read together."""

    groups: list[int]
    """Their numbers, consecutive."""
    start: int
    """The position of their first row in the file."""
    rows: int
    """The number of rows in them."""


def runs(
    metadata: "pq.FileMetaData", keep: Positions | None = None, matching: Sequence[int] | None = None
) -> Iterator[Run]:
    """Yield the row groups of a file to read, in order.

    Args:
        keep: Positions, ascending: only row groups with one of them are read. None reads all.
        matching: The numbers of the row groups to read, ascending; None for all.
    """
    if keep is None and (matching is None or len(matching) == metadata.num_row_groups):
        yield Run(list(range(metadata.num_row_groups)), 0, metadata.num_rows)
        return
    chosen = frozenset(range(metadata.num_row_groups) if matching is None else matching)
    start = 0
    run = Run([], 0, 0)
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if group in chosen and (keep is None or np.searchsorted(keep, start) < np.searchsorted(keep, start + rows)):
            run = Run([*run.groups, group], run.start if run.groups else start, run.rows + rows)
        elif run.groups:
            yield run
            run = Run([], 0, 0)
        start += rows
    if run.groups:
        yield run


def matching(
    metadata: "pq.FileMetaData", columns: Mapping[str, pa.Field], predicate: Predicate | None
) -> Sequence[int]:
    """Return the numbers of the row groups in which rows may match a predicate, ascending. Reads nothing.

    Args:
        columns: The file's column by its name in the predicate. Its values must be read as they are stored, in its
            Arrow type. Other columns may have any values.
        predicate: The rows to read; None for all.
    """
    groups = range(metadata.num_row_groups)
    names = [name for name in columns if predicate is not None and name in predicate.columns]
    if predicate is None or not names or not groups or not _is_worth(metadata):
        return groups
    if not WRITERS.match(metadata.created_by or ""):
        return groups
    leaves = _leaves(metadata)
    lower, upper, nulls = {}, {}, {}
    for name in names:
        leaf = leaves.get(columns[name].name)
        if leaf is not None:
            chunks = [metadata.row_group(group).column(leaf) for group in groups]
            lower[name], upper[name] = _ends(metadata.schema.column(leaf), chunks, columns[name].type)
            nulls[name] = pa.array([_null_count(chunk) for chunk in chunks], pa.int64())
    if not nulls:
        return groups
    rows = pa.array([metadata.row_group(group).num_rows for group in groups], pa.int64())
    bounds = Bounds(lower=pa.table(lower), upper=pa.table(upper), null_count=pa.table(nulls), rows=rows)
    ruled_out = predicate.ruled_out(bounds)
    return [group for group in groups if not ruled_out[group].is_valid]


def _is_worth(metadata: "pq.FileMetaData") -> bool:
    return bool(metadata.num_row_groups > 1 or metadata.row_group(0).total_byte_size >= _MIN_BYTES)


def _leaves(metadata: "pq.FileMetaData") -> dict[str, int]:
    """Return the indexes of columns without parts, by name; without names that several columns have."""
    indices: dict[str, int] = {}
    twice = set()
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.name == column.path and not column.max_repetition_level:
            twice |= {column.name} & indices.keys()
            indices[column.name] = index
    return {name: index for name, index in indices.items() if name not in twice}


def _null_count(chunk: "pq.ColumnChunkMetaData") -> int | None:
    statistics = chunk.statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None


def _ends(
    column: "pq.ColumnSchema", chunks: Sequence["pq.ColumnChunkMetaData"], dtype: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Return the minimum and maximum of column chunks, null where unknown."""
    unknown = pa.nulls(len(chunks), dtype)
    to_array = _to_array(column, dtype)
    if to_array is None:
        return unknown, unknown
    known = [
        chunk.statistics if chunk.statistics is not None and chunk.statistics.has_min_max else None for chunk in chunks
    ]
    try:
        lower = to_array([None if item is None else item.min_raw for item in known])
        return lower, to_array([None if item is None else item.max_raw for item in known])
    except (pa.ArrowException, ValueError, OverflowError):  # the statistics are damaged
        return unknown, unknown


def _to_array(column: "pq.ColumnSchema", dtype: pa.DataType) -> Callable[[list[object]], pa.Array] | None:
    """Return a function from statistics as they are stored to values of a type; None if they are not compared."""
    physical = column.physical_type
    if pa.types.is_decimal128(dtype):
        scale = dtype.scale
        is_alike = column.logical_type.type == "DECIMAL" and (column.precision, column.scale) == (
            dtype.precision,
            scale,
        )
        if not is_alike or physical not in ("INT32", "INT64"):
            return None
        return lambda raw: pa.array(
            [None if item is None else Decimal(str(item)).scaleb(-scale) for item in raw], dtype
        )
    if dtype not in _STORED or _STORED[dtype][0] != physical:
        return None
    # The Arrow schema in a file may have another unit than what is stored.
    if pa.types.is_timestamp(dtype) and '"microseconds"' not in column.logical_type.to_json():
        return None
    return lambda raw: pa.array(raw, _STORED[dtype][1]).cast(dtype)
