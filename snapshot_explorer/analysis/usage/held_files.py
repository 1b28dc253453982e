"""`HeldFiles`: each data file of a table once, with the versions, tags and branches that hold it.

The versions of all histories are positions on one axis, one history after the other, and lifetimes are intervals of
them. What holds a file is counted by cumulative sums over positions, so the time does not grow with their number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.history import History
from snapshot_explorer.history.lifetimes import FileLifetimes

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
HolderKind = Literal["older versions", "tags", "branches", "versions on no branch"]
Grouped = tuple[pa.Table, Sequence[str]]
"""Rows of USAGE, USAGE_OVER_TIME or USAGE_BY_COLUMN, and what could not be read for them, a sentence each."""
Sums = Mapping[str, pa.Array]
"""Numbers and sizes of files by their columns of USAGE; a size is null if the size of a file is unknown."""
_SUMS = (("files", "size_bytes"), ("live_files", "live_bytes"), ("held_files", "held_bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingHistory:
    """A history whose versions hold files: the open one, a branch, or versions on no branch."""

    source: History
    kind: HolderKind
    """What the history is as a holder; of the open one, what its versions are."""
    label: str
    """Its name as a holder, such as `branch dev`; empty for the open one."""
    lifetimes: FileLifetimes
    versions: Ints
    """The versions that exist, ascending. Those that expired since they were read are not among them."""
    start: int
    """The position of the first version of its lifetimes."""

    def positions(self, versions: Sequence[int] | Ints) -> Ints:
        """Return the positions of versions."""
        return self.start + np.searchsorted(np.asarray(self.lifetimes.versions, np.int64), versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingTag:
    """A tag that holds files."""

    label: str
    """Its name as a holder, such as `tag v1`."""
    version: int
    position: int


class HeldFiles:
    """Each data file once, with what holds it. The arrays have a value per file; see `counted`.

    Holders have numbers: the versions of the open history that exist by themselves, not only by a tag; tags; histories.
    """

    def __init__(
        self, histories: Sequence[HoldingHistory], tags: Sequence[HoldingTag], unread: tuple[str, ...]
    ) -> None:
        """Count what holds each file.

        Args:
            histories: The open one first.
            tags: The tags whose files are known.
            unread: What could not be read and may hold files, a sentence each.
        """
        own, *others = histories
        self.histories, self.tags = histories, tags
        self.unread = unread
        """With any, nothing is known to be held only once."""
        first = own.source.listing.first_unexpired
        self.plain: Ints = own.versions if first is None else own.versions[own.versions >= first]
        """The versions among the holders, ascending."""
        self.labels = [*(tag.label for tag in tags), *(item.label for item in others)]
        """The names of the other holders."""
        kinds = [own.kind] * len(self.plain) + ["tags"] * len(tags) + [item.kind for item in others]
        self.kinds = np.array(kinds, np.str_)
        """The kind of each holder."""
        self.committed_at: pa.Array = pa.concat_arrays([item.lifetimes.committed_at for item in histories])
        """The commit time at each position."""
        self._read_intervals()
        self.tag_positions: Ints = np.array([item.position for item in tags], np.int64)
        self._single = np.concatenate([own.positions(self.plain), self.tag_positions])
        self.held_by_others = [self._held_at(item.positions(item.versions)) for item in others]
        """Which files each history beside the open one has."""
        self.holder_counts, numbers = self.count_holders(np.ones(len(self.kinds), np.bool_))
        self.only_holder: Ints = np.where(self.holder_counts == 1, numbers, -1)
        """The number of the only holder of each file; -1 for a file that has several, or none."""
        self.counted: Mask = self.holder_counts > 0
        """Whether anything holds the file. Others are of versions that have expired since they were read."""
        self.is_live: Mask = self._held_at(own.positions(self.plain[-1:]))
        """Whether the newest version has the file."""
        every = np.stack([np.ones(self.count, np.int64), self.size_bytes, self.is_size_unknown]) * self.counted
        self._summands = np.concatenate([every, every * self.is_live])

    def _read_intervals(self) -> None:
        """Join the lifetimes of all histories by file and begin. Those of a file do not overlap afterwards."""
        parts = [item.lifetimes.intervals for item in self.histories]
        paths = pa.chunked_array([single_chunk(part.paths(part.rows)) for part in parts], pa.string())
        rows = pa.concat_tables([part.rows.select(["first", "last", "size_bytes"]) for part in parts])
        counts = [len(part.rows) for part in parts]
        history = np.repeat(np.arange(len(counts)), counts)
        starts = np.array([item.start for item in self.histories])[history]
        lengths = np.array([len(item.lifetimes.versions) for item in self.histories])[history]
        file = group_ids([paths])
        begin = starts + rows["first"].to_numpy()
        end = starts + np.minimum(rows["last"].to_numpy(), lengths)
        order = np.lexsort((begin, file))
        file, begin, end = file[order], begin[order], end[order]
        self.count = int(file.max(initial=-1)) + 1
        self._origin = np.searchsorted(file, np.arange(self.count))
        self._history: Ints = history[order[self._origin]]
        """The index of the first history with the file."""
        self._row: Ints = np.concatenate([np.arange(count) for count in counts])[order[self._origin]]
        """The row of the file's first interval in that history."""
        base = file * (len(self.committed_at) + 1)
        reached = np.concatenate([[0], np.maximum.accumulate(base + end)])[: len(base)] - base
        # A path that is live twice at once, such as on two levels, is one file.
        self._file, self._begin, self._end = file, np.minimum(np.maximum(begin, reached), end), end
        sizes = single_chunk(rows["size_bytes"])
        size_bytes = sizes.fill_null(0).to_numpy()[order]
        differs = size_bytes != size_bytes[self._origin][file]
        differs |= sizes.is_null().to_numpy(zero_copy_only=False)[order]
        self.is_size_unknown: Mask = np.logical_or.reduceat(differs, self._origin)
        """Whether the size is not recorded, or recorded with several values."""
        self.size_bytes: Ints = np.where(self.is_size_unknown, 0, size_bytes[self._origin])

    def count_holders(self, chosen: Mask) -> tuple[Ints, Ints]:
        """Return how many of the chosen holders each file has, and the sum of their numbers."""
        numbers = np.flatnonzero(chosen[: len(self._single)])
        numbers = numbers[np.argsort(self._single[numbers], kind="stable")]
        first, after = self._ranges(self._single[numbers])
        sums = np.concatenate([[0], np.cumsum(numbers)])
        count, total = (np.add.reduceat(part, self._origin) for part in (after - first, sums[after] - sums[first]))
        for number, held in enumerate(self.held_by_others, len(self._single)):
            if chosen[number]:
                count += held
                total += number * held
        return count, total

    def _ranges(self, positions: Ints) -> tuple[Ints, Ints]:
        """Return which of some ascending positions each interval has: the index of the first, and after the last."""
        before = np.searchsorted(positions, np.arange(len(self.committed_at) + 1))
        return before[self._begin], before[self._end]

    def _held_at(self, positions: Ints) -> Mask:
        """Return which files live at any of some ascending positions."""
        first, after = self._ranges(positions)
        return np.logical_or.reduceat(after > first, self._origin)

    def first_indices(self, positions: Ints) -> Ints:
        """Return the index of the first of some ascending positions at which each file lives; -1 if none."""
        first, after = self._ranges(positions)
        result = np.minimum.reduceat(np.where(after > first, first, len(positions)), self._origin)
        return np.where(result < len(positions), result, -1)

    def removal_positions(self) -> Ints:
        """Return the position in the open history at which each file is gone for good; -1 if it is not in there."""
        in_own = self._end <= len(self.histories[0].lifetimes.versions)
        return np.maximum.reduceat(np.where(in_own, self._end, -1), self._origin)

    def sums_at(self, positions: Ints) -> Sums:
        """Return what lives at each position."""
        order = np.argsort(positions, kind="stable")
        first, after = self._ranges(positions[order])
        rows = np.flatnonzero(after > first)
        result = np.empty((len(self._summands), len(positions)), np.int64)
        result[:, order] = sums_at(first[rows], after[rows], self._summands[:, self._file[rows]], len(positions))
        return _columns(result)

    def sums_by(self, groups: Ints, number: int) -> Sums:
        """Return the sums of the files of each group, from 0 to `number`; of a file without one it is -1."""
        files = np.flatnonzero(groups >= 0)
        result = np.zeros((len(self._summands), number), np.int64)
        for sums, summands in zip(result, self._summands, strict=True):
            np.add.at(sums, groups[files], summands[files])
        return _columns(result)

    def sums_of(self, masks: Sequence[Mask]) -> Sums:
        """Return the sums of the files of each mask."""
        sums = np.array([self._summands @ mask for mask in masks], np.int64)
        return _columns(sums.reshape(-1, len(self._summands)).T)

    def origins(self, history: int, chosen: Mask) -> tuple[Ints, pa.Table]:
        """Return the chosen files that are first found in a history, and the rows of its intervals that have them."""
        files = np.flatnonzero(chosen & (self._history == history))
        return files, self.histories[history].lifetimes.intervals.rows.take(pa.array(self._row[files]))


def sums_at(first: Ints, after: Ints, summands: Ints, number: int) -> Ints:
    """Return sums over the intervals that have each of a number of points, a row for each row of summands.

    Args:
        first: The index of the first point in each interval; `after` is the one after the last.
    """
    changes = np.zeros((len(summands), number + 1), np.int64)
    for sums, values in zip(changes, summands, strict=True):
        np.add.at(sums, first, values)
        np.subtract.at(sums, after, values)
    return np.cumsum(changes, axis=1)[:, :-1]


def _columns(sums: Ints) -> Sums:
    """Return columns of USAGE from number, size and number of unknown sizes, of all files and of live ones."""
    result: dict[str, pa.Array] = {}
    parts = (sums[:3], sums[3:], sums[:3] - sums[3:])
    for (files, size_bytes), (number, size, unknown) in zip(_SUMS, parts, strict=True):
        result |= {files: pa.array(number), size_bytes: pa.array(size, mask=unknown > 0)}
    return result


def read_held_files(history: History) -> HeldFiles:
    """Return the files of a table. Reads the log of each branch once, as `lifetimes` does, and the tags."""
    of_table = history.table_format.branches
    detached = frozenset(of_table.detached_heads())
    histories = [_holding(history, "older versions", "", 0)]
    unread: list[str] = []
    for name in (*of_table.names(), *sorted(detached)):
        if name == history.branch_name:
            continue
        label = f"versions on no branch up to snapshot {name}" if name in detached else f"branch {name}"
        start = histories[-1].start + len(histories[-1].lifetimes.versions)
        try:
            kind: HolderKind = "versions on no branch" if name in detached else "branches"
            histories.append(_holding(history.on_branch(name), kind, label, start))
        except UNREADABLE as error:
            unread.append(Message(f"The files of {label} are unknown: ", without_period(error.message), "."))
    for item in histories:
        unread += [*item.lifetimes.unread_notes, *item.source.listing.unread]
    tags, unknown = _tags(histories)
    return HeldFiles(histories, tags, tuple(dict.fromkeys([*unread, *unknown])))


def _holding(source: History, kind: HolderKind, label: str, start: int) -> HoldingHistory:
    lifetimes, listing = source.lifetimes(), source.listing
    existing = set(listing.reachable).difference(listing.without_files).intersection(lifetimes.versions)
    versions = np.array(sorted(existing), np.int64)
    return HoldingHistory(source=source, kind=kind, label=label, lifetimes=lifetimes, versions=versions, start=start)


def _tags(histories: Sequence[HoldingHistory]) -> tuple[list[HoldingTag], list[str]]:
    """Return the tags as holders, the open history's first, and a sentence for each whose files are unknown.

    A tag of the table may name a version of another branch. The tags that only a branch has are removed with it.
    """
    own, *others = histories
    result: list[HoldingTag] = []
    unknown: list[str] = []
    try:
        tags = own.source.tags()
    except UNREADABLE as error:
        return [], [Message("The tags could not all be read: ", without_period(error.message), ".")]
    for name, number in tags.items():
        candidates = [(own, number)]
        if number not in own.versions:
            candidates = [(item, item.source.tags().get(name, -1)) for item in others]
        held = [
            HoldingTag(label=f"tag {name}", version=version, position=int(item.positions([version])[0]))
            for item, version in candidates
            if version in item.versions
        ]
        result += held[:1]
        if not held:
            unknown.append(f"The files of tag {name} are unknown: its version {number} could not be read.")
    first_other = len(own.lifetimes.versions)
    return sorted(result, key=lambda tag: (min(tag.position, first_other), tag.label)), unknown
