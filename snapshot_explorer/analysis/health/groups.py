"""Group the files of a version by partition and bucket."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import codes_of_maps, group_ids
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import MaintenanceSettings

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def count_mergeable(count: Ints, size_bytes: Ints, target_bytes: int) -> Ints:
    """Return the number of files that merging would save, from the number of small files and their bytes.

    A single file saves none, nor do files whose bytes fill as many files of the target size.
    """
    merged = np.maximum(1, -(-size_bytes // target_bytes))
    return np.where(count > 1, np.maximum(0, count - merged), 0)


def drop_single(count: Ints) -> Ints:
    """Return the numbers, with 0 in place of 1: a single small file has nothing to merge with."""
    return np.where(count > 1, count, 0)


def middle_mean(low: Ints, high: Ints) -> Ints:
    """Return the mean of the two middle values, rounded down."""
    return low + (high - low) // 2


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Files grouped by partition and bucket, in the order of first appearance."""

    files: pa.Table
    """FILES."""
    of_files: Ints
    firsts: Ints
    """The index of the first file of each group."""

    @property
    def count(self) -> int:
        """Return the number of groups."""
        return len(self.firsts)

    @cached_property
    def sizes(self) -> Ints:
        """Return the bytes of each file."""
        return numbers(self.files, "size_bytes")[0]

    def count_files(self, chosen: Mask) -> Ints:
        """Return the number of chosen files in each group."""
        return np.bincount(self.of_files[chosen], minlength=self.count).astype(np.int64)

    def sum_values(self, values: Ints, chosen: Mask | None = None) -> Ints:
        """Return the sum of the values of all or the chosen files in each group."""
        sums = np.zeros(self.count, np.int64)
        files = slice(None) if chosen is None else chosen
        np.add.at(sums, self.of_files[files], values[files])
        return sums

    def total(self, name: str) -> pa.Array:
        """Return the sum of a column in each group; null if one of its values is."""
        values, unknown = numbers(self.files, name)
        return pa.array(self.sum_values(values), mask=self.count_files(unknown) > 0)

    @cached_property
    def spread(self) -> tuple[Ints, Ints, Ints]:
        """Return the minimum, median and maximum file size of each group."""
        ordered = self.sizes[np.lexsort((self.sizes, self.of_files))]
        counts = np.bincount(self.of_files, minlength=self.count)
        ends = np.cumsum(counts)
        begins = ends - counts
        median = middle_mean(ordered[begins + (counts - 1) // 2], ordered[begins + counts // 2])
        return ordered[begins], median, ordered[ends - 1]

    @cached_property
    def sorted_runs(self) -> Ints:
        """Return the number of sorted runs of each group: files of level 0, plus higher levels with files.

        Postponed buckets have none: their files wait for a bucket.

        Source: paimon docs, "Primary Key Table", "Overview"; paimon Levels.numberOfSortedRuns.
        """
        level, bucket = (numbers(self.files, name)[0] for name in ("level", "bucket"))
        has_bucket = bucket >= 0
        high = np.flatnonzero(has_bucket & (level > 0))
        span = int(level.max(initial=0)) + 1
        runs = np.unique(self.of_files[high] * span + level[high]) // span
        return self.count_files(has_bucket & (level == 0)) + np.bincount(runs, minlength=self.count)


def groups_of(files: pa.Table) -> Groups:
    """Return files grouped by partition and bucket."""
    if not len(files):
        return Groups(files=files, of_files=np.zeros(0, np.int64), firsts=np.zeros(0, np.int64))
    codes = group_ids([pa.array(codes_of_maps(files.column("partition"))), files.column("bucket")])
    _, firsts, indices = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    ranks = np.argsort(order)
    return Groups(files=files, of_files=ranks[indices].astype(np.int64), firsts=firsts[order].astype(np.int64))


def numbers(files: pa.Table, name: str) -> tuple[Ints, Mask]:
    """Return the values of a column, with 0 for null, and a mask of nulls."""
    column = single_chunk(files.column(name))
    unknown = column.is_null().to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).cast(pa.int64()).to_numpy(), unknown


def is_valid(files: pa.Table, name: str) -> Mask:
    """Return a mask of the rows in which a column is not null."""
    valid: Mask = single_chunk(files.column(name).is_valid()).to_numpy(zero_copy_only=False)
    return valid


_DIGITS = 4


def partitions_frame(groups: Groups, settings: MaintenanceSettings) -> pa.Table:
    """Return HEALTH_PARTITIONS, ordered by mergeable files, then sorted runs, then bytes, all descending.

    Ratios are rounded to 4 digits.

    Args:
        groups: FILES with `delete_records`, by partition and bucket.
    """
    size_bytes = groups.sum_values(groups.sizes)
    minimum, median, maximum = groups.spread if groups.count else (size_bytes,) * 3
    small = groups.sizes < settings.small_bytes
    small_files = groups.count_files(small)
    mergeable_files = count_mergeable(small_files, groups.sum_values(groups.sizes, small), settings.target_bytes)
    rows = groups.total("rows")
    vector_files, deleted_rows = _vectors(groups)
    delete_records = groups.total("delete_records")
    runs = groups.sorted_runs if settings.runs_trigger is not None else None
    firsts = pa.array(groups.firsts)
    columns = {
        "partition": single_chunk(groups.files.column("partition")).take(firsts),
        "bucket": single_chunk(groups.files.column("bucket")).take(firsts),
        "files": groups.count_files(np.ones(len(groups.files), np.bool_)),
        "rows": rows,
        "size_bytes": size_bytes,
        "min_bytes": minimum,
        "median_bytes": median,
        "max_bytes": maximum,
        "small_files": drop_single(small_files),
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
    levels, indices = np.unique(level[~unknown], return_inverse=True)
    files = groups.files.filter(pa.array(~unknown))
    by_level = Groups(files=files, of_files=indices.astype(np.int64), firsts=np.zeros(len(levels), np.int64))
    both = np.unique(indices * max(1, groups.count) + groups.of_files[~unknown]) // max(1, groups.count)
    size_bytes = by_level.sum_values(by_level.sizes)
    columns = [
        levels,
        np.bincount(indices, minlength=len(levels)),
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
    lacking = groups.count_files(has_vector & unknown)
    return groups.count_files(has_vector), pa.array(groups.sum_values(values, has_vector), mask=lacking > 0)


def _ratio(part: pa.Array, whole: pa.Array | float) -> pa.Array:
    """Return ratios, to 4 digits; null if a part or the whole is unknown, or the whole is 0."""
    of = whole if isinstance(whole, pa.Array) else pa.scalar(float(whole))
    divisor = pc.if_else(pc.equal(of, 0), pa.scalar(None, pa.float64()), pc.cast(of, pa.float64()))
    return pc.round(pc.divide(pc.cast(part, pa.float64()), divisor), _DIGITS)
