"""The files of each partition and bucket, by numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import codes_of_maps, group_ids

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def mergeable(count: Ints, size_bytes: Ints, target_bytes: int) -> Ints:
    """Return how many files less there would be if so many, of so many bytes, were merged to files of a size.

    Files that are alone, and those whose bytes fill as many files anyway, spare none.
    """
    merged = np.maximum(1, -(-size_bytes // target_bytes))
    return np.where(count > 1, np.maximum(0, count - merged), 0)


def only_several(count: Ints) -> Ints:
    """Return the numbers that are more than one, and 0 in place of others: one small file is merged with nothing."""
    return np.where(count > 1, count, 0)


def middle(low: Ints, high: Ints) -> Ints:
    """Return the median, rounded down, between the two values in the middle, which may be one."""
    return low + (high - low) // 2


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Files by partition and bucket, in the order in which these come first."""

    files: pa.Table
    """FILES."""
    of_files: Ints
    """For each file the number of its partition and bucket."""
    firsts: Ints
    """For each of them the place of its first file."""

    @property
    def count(self) -> int:
        """Return how many partitions and buckets there are."""
        return len(self.firsts)

    @cached_property
    def sizes(self) -> Ints:
        """Return the bytes of each file."""
        return numbers(self.files, "size_bytes")[0]

    def counted(self, chosen: Mask) -> Ints:
        """Return how many of the files are chosen in each."""
        return np.bincount(self.of_files[chosen], minlength=self.count).astype(np.int64)

    def summed(self, values: Ints, chosen: Mask | None = None) -> Ints:
        """Return the sum of values of the files, or of those chosen, in each."""
        sums = np.zeros(self.count, np.int64)
        some = slice(None) if chosen is None else chosen
        np.add.at(sums, self.of_files[some], values[some])
        return sums

    def total(self, name: str) -> pa.Array:
        """Return the sum of a column in each; null where one of its values is."""
        values, unknown = numbers(self.files, name)
        return pa.array(self.summed(values), mask=self.counted(unknown) > 0)

    @cached_property
    def spread(self) -> tuple[Ints, Ints, Ints]:
        """Return the least, median and greatest size of the files of each."""
        ordered = self.sizes[np.lexsort((self.sizes, self.of_files))]
        counts = np.bincount(self.of_files, minlength=self.count)
        ends = np.cumsum(counts)
        begins = ends - counts
        median = middle(ordered[begins + (counts - 1) // 2], ordered[begins + counts // 2])
        return ordered[begins], median, ordered[ends - 1]

    @cached_property
    def sorted_runs(self) -> Ints:
        """Return how many sorted runs each has: files of level 0, and higher levels that have files.

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
    """Return files by partition and bucket."""
    if not len(files):
        return Groups(files=files, of_files=np.zeros(0, np.int64), firsts=np.zeros(0, np.int64))
    codes = group_ids([pa.array(codes_of_maps(files.column("partition"))), files.column("bucket")])
    _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    ranks = np.argsort(order)
    return Groups(files=files, of_files=ranks[places].astype(np.int64), firsts=firsts[order].astype(np.int64))


def numbers(files: pa.Table, name: str) -> tuple[Ints, Mask]:
    """Return the values of a column, 0 for null, and which are null."""
    column = single_chunk(files.column(name))
    unknown = column.is_null().to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).cast(pa.int64()).to_numpy(), unknown


def is_valid(files: pa.Table, name: str) -> Mask:
    """Return in which rows a column is not null."""
    valid: Mask = single_chunk(files.column(name).is_valid()).to_numpy(zero_copy_only=False)
    return valid
