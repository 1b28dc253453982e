"""The SKIPPED frame: files that are not read, grouped by partition, bucket and reason."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow import compute as pc

_ALL = pc.ScalarAggregateOptions(skip_nulls=False)
"""A sum is unknown where one of its numbers is."""


def skipped_frame(listed: pa.Table, partitions: Sequence[Mapping[str, str | None]]) -> pa.Table:
    """Return the SKIPPED frame.

    Args:
        listed: A row per file: `position` of its partition among `partitions`, `bucket` (int32), why it is `skipped`
            (null where it is read), `rows` and `size_bytes`.
        partitions: Partitions as text.
    """
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
