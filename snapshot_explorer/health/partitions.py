"""Health frames by partition and bucket, and by level."""

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.health.groups import Groups, Ints, is_valid, mergeable, numbers, only_several
from snapshot_explorer.model import MaintenanceSettings

_DIGITS = 4


def partitions_frame(groups: Groups, settings: MaintenanceSettings) -> pa.Table:
    """Return HEALTH_PARTITIONS, ordered by mergeable files, then sorted runs, then bytes, all descending.

    Ratios are rounded to 4 digits.

    Args:
        groups: FILES with `delete_records`, by partition and bucket.
    """
    size_bytes = groups.summed(groups.sizes)
    minimum, median, maximum = groups.spread if groups.count else (size_bytes,) * 3
    small = groups.sizes < settings.small_bytes
    small_files = groups.counted(small)
    mergeable_files = mergeable(small_files, groups.summed(groups.sizes, small), settings.target_bytes)
    rows = groups.total("rows")
    vector_files, deleted_rows = _vectors(groups)
    delete_records = groups.total("delete_records")
    runs = groups.sorted_runs if settings.runs_trigger is not None else None
    firsts = pa.array(groups.firsts)
    columns = {
        "partition": single_chunk(groups.files.column("partition")).take(firsts),
        "bucket": single_chunk(groups.files.column("bucket")).take(firsts),
        "files": groups.counted(np.ones(len(groups.files), np.bool_)),
        "rows": rows,
        "size_bytes": size_bytes,
        "min_bytes": minimum,
        "median_bytes": median,
        "max_bytes": maximum,
        "small_files": only_several(small_files),
        "mergeable_files": mergeable_files,
        "share": _ratio(pa.array(size_bytes), int(size_bytes.sum())),
        "skew": _ratio(pa.array(size_bytes), float(np.median(size_bytes)) if groups.count else 0),
        "sorted_runs": pa.nulls(groups.count, pa.int64()) if runs is None else runs,
        "vector_files": vector_files,
        "deleted_rows": deleted_rows,
        "deleted_ratio": _ratio(deleted_rows, rows),
        "delete_records": delete_records,
        "delete_ratio": _ratio(delete_records, rows),
    }
    schema = frames.HEALTH_PARTITIONS
    table = pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
    runs = np.zeros(groups.count, np.int64) if runs is None else runs
    return table.take(pa.array(np.lexsort((-size_bytes, -runs, -mergeable_files))))


def levels_frame(groups: Groups) -> pa.Table:
    """Return HEALTH_LEVELS, from level 0 upwards; no rows if the format has no levels."""
    level, unknown = numbers(groups.files, "level")
    levels, places = np.unique(level[~unknown], return_inverse=True)
    files = groups.files.filter(pa.array(~unknown))
    by_level = Groups(files=files, of_files=places.astype(np.int64), firsts=np.zeros(len(levels), np.int64))
    both = np.unique(places * max(1, groups.count) + groups.of_files[~unknown]) // max(1, groups.count)
    size_bytes = by_level.summed(by_level.sizes)
    columns = [
        levels,
        np.bincount(places, minlength=len(levels)),
        by_level.total("rows"),
        size_bytes,
        _ratio(pa.array(size_bytes), int(groups.sizes.sum())),
        np.bincount(both, minlength=len(levels)),
    ]
    schema = frames.HEALTH_LEVELS
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _vectors(groups: Groups) -> tuple[Ints, pa.Array]:
    """Return for each group the number of files with a deletion vector, and of rows that these delete."""
    has_vector = is_valid(groups.files, "deletion_vector")
    values, unknown = numbers(groups.files, "deleted_rows")
    lacking = groups.counted(has_vector & unknown)
    return groups.counted(has_vector), pa.array(groups.summed(values, has_vector), mask=lacking > 0)


def _ratio(part: pa.Array, whole: pa.Array | float) -> pa.Array:
    """Return ratios, to 4 digits; null if a part or the whole is unknown, or the whole is 0."""
    of = whole if isinstance(whole, pa.Array) else pa.scalar(float(whole))
    divisor = pc.if_else(pc.equal(of, 0), pa.scalar(None, pa.float64()), pc.cast(of, pa.float64()))
    return pc.round(pc.divide(pc.cast(part, pa.float64()), divisor), _DIGITS)
