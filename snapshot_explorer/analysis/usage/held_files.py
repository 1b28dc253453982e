"""`HeldFiles`: each data file of a table once, with the versions, tags and branches that hold it.

Lifetimes are intervals of version positions. What holds a file of the open history is counted by cumulative sums over
the positions of versions and tags, so the time does not grow with their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.history.lifetimes import FileLifetimes

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
HolderKind = Literal["older versions", "tags", "branches", "versions on no branch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingHistory:
    """A history whose versions hold files: the open one, a branch, or versions on no branch."""

    kind: HolderKind
    """What the history is as a holder; of the open one, what its versions are."""
    label: str
    """Its name as a holder, such as `branch dev`; empty for the open one."""
    lifetimes: FileLifetimes
    versions: Ints
    """The versions that exist, ascending."""

    def positions(self, versions: Sequence[int] | Ints) -> Ints:
        """Return the positions of versions in the lifetimes."""
        return np.searchsorted(np.asarray(self.lifetimes.versions, np.int64), np.asarray(versions, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What holds files: a version or a tag at a version of a history, or all versions of a history."""

    kind: HolderKind
    label: str = ""
    """Its name, such as `branch dev`; empty for a version of the open history."""
    version: int | None
    """The version; None for a whole history."""
    history: int = 0
    """The index of the history: 0 for the open one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intervals:
    """The lifetimes of all histories, by file, history and begin. Lifetimes of a file in a history do not overlap."""

    file: Ints
    history: Ints
    row: Ints
    """The row in the intervals of the history."""
    begin: Ints
    end: Ints
    size_bytes: Ints
    is_size_unknown: Mask


class HeldFiles:
    """Each data file once, with what holds it. The arrays have a value per file; see `counted`."""

    def __init__(self, histories: Sequence[HoldingHistory], holders: Sequence[Holder]) -> None:
        """Count what holds each file.

        Args:
            histories: The open one first.
            holders: First the versions of the open history that exist by themselves, not only by a tag, ascending.
        """
        self.histories, self.holders = histories, holders
        self._intervals = intervals = _merged(histories)
        self.count = int(intervals.file.max(initial=-1)) + 1
        self._own = np.flatnonzero(intervals.history == 0)
        is_version = self.of_kind("older versions")
        self.plain: Ints = np.array([item.version for item in holders[: int(np.count_nonzero(is_version))]], np.int64)
        """The versions among the holders, ascending."""
        self.at_own_versions: Mask = np.array([not item.history and item.version is not None for item in holders], bool)
        """Which holders are versions of the open history, or tags of them."""
        versions = [item.version or 0 for item in holders]
        self._positions = np.where(self.at_own_versions, histories[0].positions(versions), 0)
        self.held_elsewhere = {
            index: self._held_at(item.history, item.version)
            for index, item in enumerate(holders)
            if not self.at_own_versions[index]
        }
        """Which files each other holder has, by its index."""
        self.holder_counts, indices = self._count_holders(np.ones(len(holders), np.bool_))
        self.only_holder: Ints = np.where(self.holder_counts == 1, indices, -1)
        """The index of the only holder of each file; -1 for a file that has several, or none."""
        self.is_live: Mask = self._held_at(0, int(self.plain[-1])) if len(self.plain) else self.holder_counts < 0
        """Whether the newest version has the file."""
        self.counted: Mask = self.holder_counts > 0
        """Whether anything holds the file. Others are of versions that have expired since they were read."""
        self.origin: Ints = np.searchsorted(intervals.file, np.arange(self.count))
        self.size_bytes, self.is_size_unknown = self._sizes()

    def of_kind(self, kind: HolderKind) -> Mask:
        """Return which holders are of a kind."""
        return np.array([item.kind == kind for item in self.holders], np.bool_)

    def holder_count(self, chosen: Mask) -> Ints:
        """Return how many of the chosen holders each file has."""
        return self._count_holders(chosen)[0]

    def _count_holders(self, chosen: Mask) -> tuple[Ints, Ints]:
        """Return how many of the chosen holders each file has, and the sum of the indices of these."""
        index = np.flatnonzero(chosen & self.at_own_versions)
        index = index[np.argsort(self._positions[index], kind="stable")]
        before = np.searchsorted(self._positions[index], np.arange(self._position_count + 1))
        sums = np.concatenate([[0], np.cumsum(index)])[before]
        begin, end, file = (getattr(self._intervals, name)[self._own] for name in ("begin", "end", "file"))
        number, total = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        np.add.at(number, file, before[end] - before[begin])
        np.add.at(total, file, sums[end] - sums[begin])
        for other, held in self.held_elsewhere.items():
            number += held & chosen[other]
            total += np.where(held & chosen[other], other, 0)
        return number, total

    def at_versions(self, versions: Ints, chosen: Mask) -> tuple[Ints, pa.Array]:
        """Return the number and the total size of the chosen files that each version of the open history has."""
        rows = self._own[chosen[self._intervals.file[self._own]]]
        begin, end, file = (getattr(self._intervals, name)[rows] for name in ("begin", "end", "file"))
        at = self.histories[0].positions(versions)
        sizes = pa.array(self.size_bytes[file], mask=self.is_size_unknown[file])
        return files_at(at, begin, end, sizes, self._position_count)

    def first_versions(self, versions: Ints) -> Ints:
        """Return the index of the first of some ascending versions of the open history with each file; -1 if none."""
        before = np.searchsorted(self.histories[0].positions(versions), np.arange(self._position_count + 1))
        begin, end, file = (getattr(self._intervals, name)[self._own] for name in ("begin", "end", "file"))
        has_some = before[end] > before[begin]
        result = np.full(self.count, len(versions), np.int64)
        np.minimum.at(result, file[has_some], before[begin[has_some]])
        return np.where(result < len(versions), result, -1)

    @property
    def _position_count(self) -> int:
        """Return the number of versions in the lifetimes of the open history."""
        return len(self.histories[0].lifetimes.versions)

    def totals(self, chosen: Mask) -> tuple[int, int | None]:
        """Return the number of the chosen files and their size in bytes; None if the size of one is unknown."""
        chosen = chosen & self.counted
        size = None if self.is_size_unknown[chosen].any() else int(self.size_bytes[chosen].sum())
        return int(chosen.sum()), size

    def totals_by(self, groups: Ints, number: int, chosen: Mask) -> tuple[Ints, pa.Array]:
        """Return the number and the total size of the chosen files of each group; null if a size is unknown.

        Args:
            groups: The group of each file, from 0 to `number`; -1 for none.
        """
        files = np.flatnonzero(chosen & self.counted & (groups >= 0))
        sums = np.zeros((2, number), np.int64)
        np.add.at(sums[0], groups[files], self.size_bytes[files])
        np.add.at(sums[1], groups[files], self.is_size_unknown[files])
        return np.bincount(groups[files], minlength=number), pa.array(sums[0], mask=sums[1] > 0)

    def origins(self, history: int) -> tuple[Ints, Ints]:
        """Return the files that are first found in a history, and the row of each in its intervals."""
        files = np.flatnonzero(self._intervals.history[self.origin] == history)
        return files, self._intervals.row[self.origin[files]]

    def removal_positions(self) -> Ints:
        """Return the position in the open history at which each file is gone for good; -1 if it is not in there."""
        result = np.full(self.count, -1, np.int64)
        np.maximum.at(result, self._intervals.file[self._own], self._intervals.end[self._own])
        return result

    def _held_at(self, index: int, version: int | None) -> Mask:
        """Return which files a history has at a version, or at any of its versions."""
        history, intervals = self.histories[index], self._intervals
        positions = history.positions(history.versions if version is None else [version])
        before = np.searchsorted(positions, np.arange(len(history.lifetimes.versions) + 1))
        rows = np.flatnonzero(intervals.history == index)
        rows = rows[before[intervals.end[rows]] > before[intervals.begin[rows]]]
        result = np.zeros(self.count, np.bool_)
        result[intervals.file[rows]] = True
        return result

    def _sizes(self) -> tuple[Ints, Mask]:
        """Return the size of each file, and whether it is unknown: not recorded, or recorded with several values."""
        intervals = self._intervals
        sizes = intervals.size_bytes[self.origin]
        is_unknown = np.zeros(self.count, np.bool_)
        differs = intervals.is_size_unknown | (intervals.size_bytes != sizes[intervals.file])
        is_unknown[intervals.file[differs]] = True
        return np.where(is_unknown, 0, sizes), is_unknown


def files_at(at: Ints, begin: Ints, end: Ints, sizes: pa.Array, positions: int) -> tuple[Ints, pa.Array]:
    """Return the number and the total size of the files that live at some positions; null if a size is unknown.

    Args:
        begin: The position from which each file lives; up to `end`, which is not included.
        positions: The number of positions.
    """
    sums = []
    for values in (np.ones(len(begin), np.int64), sizes.fill_null(0).to_numpy(), sizes.is_null().cast(pa.int8())):
        changes = np.zeros(positions + 1, np.int64)
        np.add.at(changes, begin, values)
        np.subtract.at(changes, end, values)
        sums.append(np.cumsum(changes)[at])
    return sums[0], pa.array(sums[1], mask=sums[2] > 0)


def _merged(histories: Sequence[HoldingHistory]) -> _Intervals:
    rows = [history.lifetimes.intervals.rows for history in histories]
    paths = [
        single_chunk(history.lifetimes.intervals.paths(part)) for history, part in zip(histories, rows, strict=True)
    ]
    file = group_ids([pa.chunked_array(paths, pa.string())])
    counts = [len(part) for part in rows]
    history = np.repeat(np.arange(len(rows)), counts)
    row = np.concatenate([np.arange(count) for count in counts])
    begin = np.concatenate([part.column("first").to_numpy().astype(np.int64) for part in rows])
    ends = [
        np.minimum(part.column("last").to_numpy().astype(np.int64), len(item.lifetimes.versions))
        for item, part in zip(histories, rows, strict=True)
    ]
    end = np.concatenate(ends)
    sizes = [single_chunk(part.column("size_bytes")) for part in rows]
    unknown = np.concatenate([size.is_null().to_numpy(zero_copy_only=False) for size in sizes])
    size_bytes = np.concatenate([size.fill_null(0).to_numpy(zero_copy_only=False) for size in sizes])
    order = np.lexsort((begin, history, file))
    file, history, begin, end = file[order], history[order], begin[order], end[order]
    span = int(end.max(initial=0)) + 1
    base = (file * len(rows) + history) * span
    reached = np.maximum.accumulate(base + end)
    before = np.concatenate([[0], reached[:-1]]) - base if len(base) else base
    # A path that is live twice at once, such as on two levels, is one file.
    begin = np.minimum(np.maximum(begin, before), end)
    return _Intervals(
        file=file,
        history=history,
        row=row[order],
        begin=begin,
        end=end,
        size_bytes=size_bytes[order],
        is_size_unknown=unknown[order],
    )
