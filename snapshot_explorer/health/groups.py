"""Group the files of a version by partition and bucket."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import codes_of_maps, group_ids

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def mergeable(count: Ints, size_bytes: Ints, target_bytes: int) -> Ints:
    """Return the number of files that merging would save, from the number of small files and their bytes.

    A single file saves none, nor do files whose bytes fill as many files of the target size.
    """
    merged = np.maximum(1, -(-size_bytes // target_bytes))
    return np.where(count > 1, np.maximum(0, count - merged), 0)


def only_several(count: Ints) -> Ints:
    """Return the numbers, with 0 in place of 1: a single small file has nothing to merge with."""
    return np.where(count > 1, count, 0)


def middle(low: Ints, high: Ints) -> Ints:
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

    def counted(self, chosen: Mask) -> Ints:
        """Return the number of chosen files in each group."""
        return np.bincount(self.of_files[chosen], minlength=self.count).astype(np.int64)

    def summed(self, values: Ints, chosen: Mask | None = None) -> Ints:
        """Return the sum of the values of all or the chosen files in each group."""
        sums = np.zeros(self.count, np.int64)
        some = slice(None) if chosen is None else chosen
        np.add.at(sums, self.of_files[some], values[some])
        return sums

    def total(self, name: str) -> pa.Array:
        """Return the sum of a column in each group; null if one of its values is."""
        values, unknown = numbers(self.files, name)
        return pa.array(self.summed(values), mask=self.counted(unknown) > 0)

    @cached_property
    def spread(self) -> tuple[Ints, Ints, Ints]:
        """Return the minimum, median and maximum file size of each group."""
        ordered = self.sizes[np.lexsort((self.sizes, self.of_files))]
        counts = np.bincount(self.of_files, minlength=self.count)
        ends = np.cumsum(counts)
        begins = ends - counts
        median = middle(ordered[begins + (counts - 1) // 2], ordered[begins + counts // 2])
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
        return self.counted(has_bucket & (level == 0)) + np.bincount(runs, minlength=self.count)


def groups_of(files: pa.Table) -> Groups:
    """Return files grouped by partition and bucket."""
    if not len(files):
        return Groups(files=files, of_files=np.zeros(0, np.int64), firsts=np.zeros(0, np.int64))
    codes = group_ids([pa.array(codes_of_maps(files.column("partition"))), files.column("bucket")])
    _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    ranks = np.argsort(order)
    return Groups(files=files, of_files=ranks[places].astype(np.int64), firsts=firsts[order].astype(np.int64))


def numbers(files: pa.Table, name: str) -> tuple[Ints, Mask]:
    """Return the values of a column, with 0 for null, and a mask of nulls."""
    column = single_chunk(files.column(name))
    unknown = column.is_null().to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).cast(pa.int64()).to_numpy(), unknown


def is_valid(files: pa.Table, name: str) -> Mask:
    """Return a mask of the rows in which a column is not null."""
    valid: Mask = single_chunk(files.column(name).is_valid()).to_numpy(zero_copy_only=False)
    return valid
