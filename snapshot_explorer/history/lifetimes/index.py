"""`FileLifetimes`: when each data file of a table was added and removed. Answers questions about versions in memory."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.shown_texts import without_url_secrets
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import CHANGED_BY_NEXT, Measure, gaps_note
from snapshot_explorer.core.shown import Shown, figure_of
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.history.lifetimes.intervals import (
    OPEN,
    Intervals,
    interval_identities,
    no_intervals,
    with_changes,
    with_state,
)
from snapshot_explorer.results import Exportable, Frame, non_empty_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import numpy.typing as npt
    import plotly.graph_objects as go

    from snapshot_explorer.core.records import Gap, Listing
    from snapshot_explorer.formats.unread_versions import Reasons
    from snapshot_explorer.history.lifetimes.facts import FileFacts

_EXACT = tuple(name for name in frames.FILES.names if name not in ("deletion_vector", "deleted_rows"))
_SUMMED = ("rows", "size_bytes")
_TOTALS = [frames.FILES.field(name) for name in _SUMMED]
_FILES = frames.COMMITS.field("added_files").with_name("files")


class FileLifetimes(Exportable, Shown):
    """When each data file was added and removed, over the versions whose files are known. Immutable.

    Displays as the LIFETIMES frame. Reads nothing.
    """

    def __init__(
        self,
        *,
        title: str = "File lifetimes",
        versions: tuple[int, ...] = (),
        committed_at: pa.Array | None = None,
        intervals: Intervals | None = None,
    ) -> None:
        """Create lifetimes without versions, or from stored ones. `with_state` and `extended` return longer ones."""
        self.title = title
        """The heading."""
        self.versions = versions
        """The versions whose files are known, ascending."""
        self.committed_at: pa.Array = pa.array([], frames.UTC_MILLIS) if committed_at is None else committed_at
        """The commit time of each version; null if unknown."""
        self.intervals = no_intervals() if intervals is None else intervals
        """The interval of each file."""
        self.identity = ""
        """The fingerprint of the table's newest commit at the last read; see `with_fingerprint`."""
        self.gaps: tuple[Gap, ...] = ()
        """The gaps between the versions: files that were added or removed there count for the next version."""
        self.unread: Reasons = {}
        """The versions among and beside these that cannot be read, and why. Their files are unknown."""
        self.without_commit: Reasons = {}
        """The known versions whose commits cannot be read, and why. Their files are known, and maybe not their time."""
        self.before_note: str | None = None
        """Why it is unknown which versions were before these; None if that is known."""
        self.fingerprint = ""
        """The fingerprint of the newest known commit, which differs from other commits with its number."""
        self.facts: FileFacts | None = None
        """The facts that pictures of files mark, for lifetimes of an open table."""

    def with_state(self, version: int, committed_at: datetime | None, files: pa.Table) -> FileLifetimes:
        """Return lifetimes with one more version, whose files are known.

        For the first version, and after a gap, in which commits are unknown. Files that exist before and after the gap
        count as never removed.

        Args:
            version: A version greater than all known ones.
        """
        intervals = with_state(self.intervals, files, len(self.versions))
        return self._with(intervals, [version], pa.array([committed_at], frames.UTC_MILLIS))

    def extended(self, versions: Sequence[int], committed_at: Sequence[datetime], changes: pa.Table) -> FileLifetimes:
        """Return lifetimes with more versions, which follow the known ones without a gap.

        Takes time in proportion to the live files of the last known version and to the changes.

        Args:
            versions: Ascending, from the one after the last known one.
            changes: Their CHANGES, in the order of the versions. Changelog files are ignored.
        """
        of_data = pc.equal(changes["list"], "delta")
        if not pc.all(of_data).as_py():
            changes = changes.filter(of_data)
        indices = np.searchsorted(np.asarray(versions, np.int64), changes["version"].to_numpy())
        intervals = with_changes(self.intervals, changes, indices + len(self.versions))
        return self._with(intervals, versions, pa.array(committed_at, frames.UTC_MILLIS))

    def with_fingerprint(self, identity: str, fingerprint: str) -> FileLifetimes:
        """Return the same lifetimes with a fingerprint of the history, to detect later whether it was rewritten."""
        result = self._with(self.intervals, (), self.committed_at[:0])
        result.identity, result.fingerprint = identity, fingerprint
        return result

    def with_missing(
        self, listing: Listing, unread: Reasons | None = None, without_commit: Reasons | None = None
    ) -> FileLifetimes:
        """Return the same lifetimes with the gaps of a listing and unreadable versions; this object if nothing changes.

        Args:
            unread: By default the unread versions of this object; likewise `without_commit`.
        """
        unread = self.unread if unread is None else unread
        without_commit = self.without_commit if without_commit is None else without_commit
        missing = listing.gaps(self.versions), listing.before_note, unread, without_commit
        if missing == (self.gaps, self.before_note, self.unread, self.without_commit):
            return self
        result = self.with_fingerprint(self.identity, self.fingerprint)
        result.gaps, result.before_note, result.unread, result.without_commit = missing
        return result

    @property
    def is_complete(self) -> bool:
        """Whether every version and every commit could be read, except missing ones."""
        return not self.unread and not self.without_commit and self.before_note is None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on missing versions, and on unreadable versions with the reasons."""
        return (*gaps_note(self.gaps, CHANGED_BY_NEXT), *self.unread_notes)

    @property
    def unread_notes(self) -> tuple[str, ...]:
        """Sentences on unreadable versions, with the reasons."""
        before = () if self.before_note is None else (self.before_note,)
        return (*before, *unread_notes(self.unread), *unread_notes(self.without_commit, "the changes of"))

    def time_of(self, version: int) -> datetime | None:
        """Return the commit time of a known version, aware, UTC; None if unknown.

        Raises:
            SnapshotNotFoundError: The version is not known.
        """
        time: datetime | None = self.committed_at[self._position(version)].as_py()
        return time

    def _with(self, intervals: Intervals, versions: Sequence[int], committed_at: pa.Array) -> FileLifetimes:
        return FileLifetimes(
            title=self.title,
            versions=(*self.versions, *versions),
            committed_at=pa.concat_arrays([self.committed_at, committed_at]),
            intervals=intervals,
        )

    def files_at(self, version: int) -> pa.Table:
        """Return the live files of a version: FILES without deletion_vector and deleted_rows.

        In Paimon, deletion vectors change during the lifetime of a file, so lifetimes do not contain them;
        `Snapshot.files` reads them. `added_version` is known for more files than in `Snapshot.files`. Partition columns
        have their names at the time when the file was added.

        Raises:
            SnapshotNotFoundError: The files of the version are not known.
        """
        return self._files(self._live(self._position(version)))

    def difference(self, a: int, b: int) -> pa.Table:
        """Return the files that differ from version `a` to version `b`: change (add, remove), then as `files_at`.

        A file that moved to another level is both removed and added, with the same path.

        Raises:
            SnapshotNotFoundError: The files of a version are not known.
        """
        before, after = self._live(self._position(a)), self._live(self._position(b))
        before, after = before & ~after, after & ~before
        again = self._identities
        if again is not None:
            # A file that was removed and added again between them is in both.
            alike = np.intersect1d(again[before], again[after])
            both = np.isin(again, alike[alike >= 0])
            before, after = before & ~both, after & ~both
        removed, added = self._files(before), self._files(after)
        words = pa.array(["remove"] * len(removed) + ["add"] * len(added), pa.string())
        return pa.concat_tables([removed, added]).add_column(0, frames.CHANGES.field("change"), words)

    def totals(self) -> pa.Table:
        """Return the size of the table at each known version: version, committed_at, files, rows, size_bytes.

        Rows are counted in files, before merges and deletes; null if the count of a file is unknown.
        """
        count = len(self.versions)
        rows = self.intervals.rows
        first, last = self._ranges()
        sums = {"files": _running_sums(np.ones(len(rows), np.int64), first, last, count)}
        for name in _SUMMED:
            sums[name], sums[f"{name} unknown"] = (
                _running_sums(values, first, last, count) for values in _values_and_nulls(rows.column(name))
            )
        columns = [pa.array(self.versions, pa.int64()), self.committed_at, pa.array(sums["files"])]
        columns += [pa.array(sums[name], mask=sums[f"{name} unknown"] > 0) for name in _SUMMED]
        head = [frames.LIFETIMES.field("first_version").with_name("version"), frames.COMMITS.field("committed_at")]
        return pa.table(columns, schema=pa.schema([*head, _FILES, *_TOTALS]))

    @cached_property
    def frame(self) -> Frame:
        """Return the LIFETIMES frame, oldest first."""
        rows = self.recorded()
        names = ("path", "partition", "bucket", "level", "rows", "size_bytes", "added_version", "removed_version")
        drawn = non_empty_columns(rows.select(names))
        return Frame(rows, title=self.title, noun="lifetimes", drawn=drawn, notes=self.notes)

    def to_arrow(self) -> pa.Table:
        return self.frame.to_arrow()

    def recorded(self) -> pa.Table:
        """Return the rows with the paths as the log has them, by which files are read. Not for display."""
        rows = self.intervals.rows
        first, last = self._ranges()
        versions = np.asarray(self.versions, np.int64)
        open_ = last == OPEN
        at = np.where(open_, 0, last)
        is_after_gap = np.isin(versions, [gap.after for gap in self.gaps])
        unknown_time = open_ | (is_after_gap[at] if len(at) else open_)
        added = rows.column("added_version")
        known = pc.index_in(added, pa.array(versions))
        columns = {
            "path": self.intervals.paths(rows),
            "partition": self.intervals.partition(rows),
            "first_version": pa.array(versions[first]),
            "added_at": self.committed_at.take(single_chunk(known)),
            "removed_version": pa.array(versions[at] if len(at) else at, pa.int64(), mask=open_),
            "removed_at": self.committed_at.take(pa.array(at, mask=unknown_time)),
        }
        arrays = [columns[name] if name in columns else rows.column(name) for name in frames.LIFETIMES.names]
        return pa.table(arrays, schema=frames.LIFETIMES)

    def __len__(self) -> int:
        return int(self.intervals.rows.num_rows)

    def picture(
        self, of: Literal["totals", "files", "partitions"] = "totals", *, y: Measure = "rows"
    ) -> go.Figure | Shown:
        """Return a figure over the known versions. It displays as a table on pages that show no figures.

        Totals are a plotly figure; `svg` of the others is their text as SVG.

        Args:
            of: `totals` for files, rows and bytes; `files` for a line per file from the version that added it to the
                version that removed it, with compactions, versions that cannot be loaded, and missing files if
                `Table.verify` has looked for them; `partitions` for the changes of each version in each partition.
            y: The measure of `partitions`: rows, files or bytes.

        Raises:
            InvalidArgumentError: `of` or `y` is not one of these.
        """
        return figure_of(self, of=of, y=y)

    @cached_property
    def _identities(self) -> npt.NDArray[np.int64] | None:
        """Return a number for each file with several intervals, -1 for others; None if no file has several."""
        codes = interval_identities(self.intervals)
        _, indices, counts = np.unique(codes, return_inverse=True, return_counts=True)
        several = counts[indices] > 1
        return np.where(several, codes, -1) if several.any() else None

    def _position(self, version: int) -> int:
        number: object = version
        if not isinstance(number, Integral):
            raise InvalidArgumentError(
                Message(
                    f"A version must be a whole number, got {version!r}. For a ref, pass the version of ",
                    Hint("table.at", {"ref": ...}),
                    ".",
                )
            )
        index = int(np.searchsorted(np.asarray(self.versions, np.int64), version))
        if index < len(self.versions) and self.versions[index] == version:
            return index
        known = "No version is known: read the lifetimes again after the first commit."
        if self.versions:
            known = (
                f"Known: {len(self.versions):,} versions from {self.versions[0]} to {self.versions[-1]}. "
                "Choose one of them, or read the lifetimes again."
            )
        raise SnapshotNotFoundError(f"The files of version {version} are not known to these lifetimes. {known}")

    def _ranges(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        return self.intervals.rows.column("first").to_numpy(), self.intervals.rows.column("last").to_numpy()

    def _live(self, position: int) -> npt.NDArray[np.bool_]:
        first, last = self._ranges()
        live: npt.NDArray[np.bool_] = (first <= position) & (position < last)
        return live

    def _files(self, chosen: npt.NDArray[np.bool_]) -> pa.Table:
        rows = self.intervals.rows.filter(pa.array(chosen))
        columns = {"path": self.intervals.paths(rows), "partition": self.intervals.partition(rows)}
        schema = pa.schema([frames.FILES.field(name) for name in _EXACT])
        files = pa.table([columns[name] if name in columns else rows.column(name) for name in _EXACT], schema=schema)
        return without_url_secrets(files, exact=("partition",))


def _values_and_nulls(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    unknown = single_chunk(column.is_null()).to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).to_numpy(), unknown.astype(np.int64)


def _running_sums(
    values: npt.NDArray[np.int64], first: npt.NDArray[np.int32], last: npt.NDArray[np.int32], count: int
) -> npt.NDArray[np.int64]:
    changes = np.zeros(count, np.int64)
    np.add.at(changes, first, values)
    removed = last < OPEN
    np.subtract.at(changes, last[removed], values[removed])
    return np.cumsum(changes)
