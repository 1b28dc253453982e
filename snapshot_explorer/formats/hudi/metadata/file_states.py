"""The files of all versions of a Hudi table, and the versions with unknown files."""

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.hudi.metadata.file_groups import NEVER, LostSlice, Numbers, live_files
from snapshot_explorer.formats.hudi.metadata.unread_commits import UnreadCommits


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """The files that each of some versions added or removed, with their rows and bytes; null if unknown."""

    files: Numbers
    rows: pa.Array
    size_bytes: pa.Array


@dataclass(frozen=True, kw_only=True)
class FileStates:
    """The files of all versions."""

    files: pa.Table
    """STORED."""
    lost_slices: Sequence[LostSlice]
    """Slices from before the first known commit that are lost; the first known commit may have removed them."""
    start: int
    """The first known commit."""
    is_cut: bool
    """Whether commits before the first known one are unknown, so that older instants count as committed."""
    versions: Sequence[int]
    unread: UnreadCommits
    """The commits that cannot be read, or are missing."""
    known_from: int = 0
    """Before this version, file groups may be unknown: commits before the first one are, and a later one is too."""

    @property
    def unknown_from(self) -> int:
        """The first version that depends on an unreadable or missing commit; NEVER without such a commit."""
        return 0 if self.known_from else min((*self.unread.errors, *self.unread.missing), default=NEVER)

    @cached_property
    def after_missing(self) -> tuple[int, ...]:
        """The versions right after missing commits: their files include the missing commits' changes."""
        indices = {bisect_left(self.versions, instant) for instant in self.unread.missing}
        return tuple(self.versions[index] for index in sorted(indices) if index < len(self.versions))

    @cached_property
    def _lacks_files(self) -> Sequence[bool]:
        """Whether each version has a file that does not exist. Then other files of the version may be unknown."""
        versions = np.array(self.versions, np.int64)
        exists = pc.is_in(self.files.column("path"), pa.array(list(self.unread.existing), pa.string()))
        counts = np.zeros(len(versions) + 1, np.int64)
        absent = self.files.filter(pc.invert(exists))
        for sign, bounds in ((1, "first"), (-1, "removed")):
            np.add.at(counts, np.searchsorted(versions, absent.column(bounds).to_numpy()), sign)
        lacks: Sequence[bool] = (np.cumsum(counts)[:-1] > 0).tolist()
        return lacks

    @cached_property
    def total_rows(self) -> Sequence[int | None]:
        """The rows in the files of each version; None if a log file changes them, or not all files are known."""
        versions = np.array(self.versions, np.int64)
        counts = self.files.column("rows")
        known = np.zeros((2, len(versions) + 1), np.int64)
        is_known = counts.is_valid().to_numpy()
        values = pc.fill_null(counts, 0).to_numpy()
        for sign, bounds in ((1, "first"), (-1, "removed")):
            index = np.searchsorted(versions, self.files.column(bounds).to_numpy())
            np.add.at(known[0], index, sign * values)
            np.add.at(known[1], index, sign * ~is_known)
        is_early = any(not lost.since for lost in self.lost_slices)
        known[1, 0] += is_early
        known[1, np.searchsorted(versions, self.earliest or self.start)] -= is_early
        known[1, np.searchsorted(versions, self.unknown_from)] += 1
        rows, unknown = np.cumsum(known, axis=1)[:, :-1].tolist()
        return [None if missing else count for count, missing in zip(rows, unknown, strict=True)]

    @property
    def earliest(self) -> int | None:
        """The first version whose files are all known; None if that is the first one."""
        since = max((lost.removed for lost in self.lost_slices if not lost.since), default=self.start)
        return next((version for version in self.versions if version >= since > self.start), None)

    def changed(self, versions: Sequence[int], bound: Literal["first", "removed"]) -> tuple[Numbers, Numbers]:
        """Return the indices of the files that versions added or removed, and the index of each file's version."""
        ascending = np.argsort(np.array(versions, np.int64), kind="stable")
        ordered = np.append(np.array(versions, np.int64)[ascending], NEVER)
        times = self.files.column(bound).to_numpy()
        index = np.searchsorted(ordered, times)
        files = np.flatnonzero((ordered[index] == times) & (index < len(ascending)))
        return files, ascending[index[files]]

    def counts(self, versions: Sequence[int], bound: Literal["first", "removed"]) -> FileCounts:
        """Return the numbers of files, rows and bytes that each of some versions added or removed."""
        files, index = self.changed(versions, bound)
        columns = self.files.select(["rows", "size_bytes"]).take(from_numpy(files))
        return FileCounts(
            files=np.bincount(index, minlength=len(versions)),
            rows=sums(columns.column("rows"), index, len(versions)),
            size_bytes=sums(columns.column("size_bytes"), index, len(versions)),
        )

    def check(self, version: int, root: str) -> None:
        """Raise if not all files of a version are known."""
        is_unknown = version >= self.unread.blocked_from or version in self.unread.errors or version < self.known_from
        if version >= self.unread.listed_from and not is_unknown:
            index = bisect_left(self.versions, version)
            is_unknown = self._lacks_files[index]
        if is_unknown or any(lost.since and lost.since <= version < lost.removed for lost in self.lost_slices):
            raise copy(self.unread.error_of(version))
        for lost in self.lost_slices:
            if not lost.since and version < lost.removed:
                raise SnapshotNotFoundError(
                    f"The files of version {version} of {root} are not all known: the file group {lost.file_id} in the "
                    f"partition {lost.partition!r} had files of the instant {lost.instant}, which was archived. The "
                    "archive was deleted, and the cleaner removed the files. Choose a newer version, from "
                    f"{lost.removed} on."
                )

    def check_changes(self, versions: Sequence[int], root: str) -> None:
        """Raise unless the changes of versions are known, from their files and the files of the versions before."""
        if self.unknown_from == NEVER:
            return
        for version in versions:
            if version in self.after_missing:
                raise copy(self.unread.error_of(version))
            index = bisect_left(self.versions, version)
            for number in self.versions[max(0, index - 1) : index + 1]:
                if number >= self.unknown_from:
                    self.check(number, root)

    def at(self, version: int, root: str) -> pa.Table:
        """Return the files of a version: STORED."""
        self.check(version, root)
        return live_files(self.files, version)


def sums(values: pa.ChunkedArray, index: Numbers, count: int) -> pa.Array:
    """Return the sum of the values with each index, null where one is null."""
    totals, unknown = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    np.add.at(totals, index, pc.fill_null(values, 0).to_numpy())
    unknown[index[values.is_null().to_numpy()]] = True
    return from_numpy(totals, unknown)
