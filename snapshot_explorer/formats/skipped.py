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
_MANY = 64
"""The number of results of `skipped_groups` that are combined."""


Reasons = npt.NDArray[np.object_]
"""For each file, the reason to skip it; None if it is read."""


def by_statistics(predicate: Predicate, bounds: Bounds) -> list[str | None]:
    """Return the reasons to skip files whose bounds rule out every row."""
    columns = predicate.ruled_out(bounds).dictionary_encode()
    texts = [f"statistics of {column}" for column in columns.dictionary.to_pylist()]
    return [None if index is None else texts[index] for index in columns.indices.to_pylist()]


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
    return frame_of([skipped_groups(files, reasons, of_files=of_files, buckets=buckets)], partitions)


def skipped_groups(
    files: pa.Table,
    reasons: Reasons,
    *,
    of_files: npt.NDArray[np.integer] | pa.Array,
    buckets: pa.ChunkedArray | None = None,
) -> pa.Table:
    """Return the counts of some of the skipped files, for `frame_of`. Arguments as for `skipped_frame`."""
    listed = pa.table(
        {
            "position": pa.array(of_files).cast(pa.int64()),
            "bucket": pa.nulls(len(files), pa.int32()) if buckets is None else buckets,
            "skipped": pa.array(reasons.tolist(), pa.string()),
            "files": pa.array(np.ones(len(files), np.int64)),
            "rows": files.column("rows"),
            "size_bytes": files.column("size_bytes"),
        }
    )
    return _grouped(listed.filter(listed.column("skipped").is_valid()))


def add_groups(groups: list[pa.Table], more: pa.Table) -> None:
    """Add the result of `skipped_groups` to earlier ones, which are combined when they are many."""
    groups.append(more)
    if len(groups) == _MANY:
        groups[:] = [_grouped(pa.concat_tables(groups))]


def _grouped(listed: pa.Table) -> pa.Table:
    grouped = listed.group_by(["position", "bucket", "skipped"], use_threads=False).aggregate(
        [(name, "sum", _ALL) for name in ("files", "rows", "size_bytes")]
    )
    return grouped.rename_columns([name.removesuffix("_sum") for name in grouped.column_names])


def frame_of(groups: Sequence[pa.Table], partitions: Sequence[Mapping[str, str | None]]) -> pa.Table:
    """Return the SKIPPED frame of groups of files.

    Args:
        groups: The results of `skipped_groups`, whose positions are those of partitions.
        partitions: The distinct partitions as text.
    """
    grouped = _grouped(pa.concat_tables(groups)) if groups else None
    if grouped is None or not grouped.num_rows:
        return frames.SKIPPED.empty_table()
    texts = pa.array([list(text.items()) for text in partitions], frames.PARTITION)
    columns = [
        texts.take(grouped.column("position").combine_chunks()),
        grouped.column("bucket"),
        grouped.column("files"),
        grouped.column("rows"),
        grouped.column("size_bytes"),
        grouped.column("skipped"),
    ]
    return pa.table(columns, schema=frames.SKIPPED)
