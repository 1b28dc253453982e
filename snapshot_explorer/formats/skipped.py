"""The SKIPPED frame: files that are not read, grouped by partition, bucket and reason."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Bounds, Predicate

_ALL = pc.ScalarAggregateOptions(skip_nulls=False)
"""A sum is null if one of its numbers is."""


Reasons = npt.NDArray[np.object_]
"""For each file, the reason to skip it; None if it is read."""


def by_statistics(predicate: Predicate, bounds: Bounds) -> list[str | None]:
    """Return the reasons to skip files whose bounds rule out every row."""
    columns = predicate.ruled_out(bounds).to_pylist()
    return [None if names is None else f"statistics of {names}" for names in columns]


def skipped_frame(
    files: pa.Table,
    reasons: Reasons,
    *,
    partitions: Sequence[Mapping[str, str | None]],
    of_files: npt.NDArray[np.integer] | pa.Array,
    buckets: pa.ChunkedArray | None = None,
) -> pa.Table:
    """Return the SKIPPED frame.

    Args:
        files: The columns `rows` and `size_bytes` of files.
        reasons: The reason to skip each.
        partitions: The distinct partitions as text.
        of_files: The index of the partition of each file among them.
    """
    listed = pa.table(
        {
            "position": pa.array(of_files),
            "bucket": pa.nulls(len(files), pa.int32()) if buckets is None else buckets,
            "skipped": pa.array(reasons.tolist(), pa.string()),
            "rows": files.column("rows"),
            "size_bytes": files.column("size_bytes"),
        }
    )
    listed = listed.filter(listed.column("skipped").is_valid())
    if not listed.num_rows:
        return frames.SKIPPED.empty_table()
    grouped = listed.group_by(["position", "bucket", "skipped"], use_threads=False).aggregate(
        [([], "count_all"), ("rows", "sum", _ALL), ("size_bytes", "sum", _ALL)]
    )
    texts = pa.array([list(text.items()) for text in partitions], frames.PARTITION)
    columns = [
        texts.take(grouped.column("position").combine_chunks()),
        grouped.column("bucket"),
        grouped.column("count_all"),
        grouped.column("rows_sum"),
        grouped.column("size_bytes_sum"),
        grouped.column("skipped"),
    ]
    return pa.table(columns, schema=frames.SKIPPED)
