"""Read a table's log for the explorer: the newest commits, then all of them, later only new ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.history import history_of
from snapshot_explorer.table import parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapshot_explorer.core.records import Gap, Listing
    from snapshot_explorer.table import Snapshot, Table

MOST_COMMITS = 10_000
"""Commits that are read, the newest ones."""
FIRST_COMMITS = 1_000
"""Commits that are read before the first picture, which shows fewer."""
_SAME = ("version", "committed_at", "identifier", "details")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The versions of a table that were read."""

    listing: Listing
    """All versions that are listed."""
    commits: pa.Table
    """COMMITS of the newest versions, newest first."""
    notes: tuple[str, ...] = ()
    """Which of these commits cannot be read, and why; a sentence each."""
    branches: Mapping[str, int | None] = field(default_factory=dict)
    """The branches other than the main one, sorted, with the version that each begins with; None if none is proven."""
    is_partial: bool = False
    """Whether older commits are still to be read."""

    @property
    def versions(self) -> tuple[int, ...]:
        """Return all versions that are listed, ascending."""
        return self.listing.versions

    @property
    def readable(self) -> tuple[int, ...]:
        """Return the versions that can be loaded, ascending."""
        return self.listing.reachable

    def gaps(self, commits: pa.Table) -> tuple[Gap, ...]:
        """Return the gaps between versions from the earliest of some COMMITS on."""
        if not len(commits):
            return ()
        earliest = pc.min(commits["version"]).as_py()
        return self.listing.gaps([version for version in self.versions if version >= earliest])

    def branches_by_version(self) -> dict[int, list[str]]:
        """Return the branches that begin with a version, by version."""
        result: dict[int, list[str]] = {}
        for name, version in self.branches.items():
            if version is not None:
                result.setdefault(version, []).append(name)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The size of the newest version."""

    files: int
    """Live data files."""
    size_bytes: int
    """Their size."""


def read_newest(table: Table, *, most: int = MOST_COMMITS) -> tuple[Snapshot, Log]:
    """Return the newest snapshot and the log, read again. One listing, and two more where there is a newer snapshot.

    Args:
        table: The table.
        most: The maximum number of commits to read, the newest ones.
    """
    listing = history_of(table).listing
    if parts_of(table.current).loaded.listing != listing:
        table.update()
        listing = history_of(table).listing
    return table.current, read_log(table, listing=listing, most=most)


def read_log(
    table: Table, before: Log | None = None, *, listing: Listing | None = None, most: int = MOST_COMMITS
) -> Log:
    """Return the current log. Reads only new commits if the log has only grown.

    Args:
        table: The table.
        before: The previous log; None to read everything again.
        listing: All versions; None to list them.
        most: The maximum number of commits to read, the newest ones, where everything is read.
    """
    listing = listing or history_of(table).listing
    read = None if before is None else _extend_log(table, before, listing)
    is_partial = before is not None and before.is_partial
    if read is None:
        newest = history_of(table).commits_frame(listing.versions[: -most - 1 : -1])
        read = newest.to_arrow(), newest.notes
        is_partial = most < min(len(listing.versions), MOST_COMMITS)
    commits, notes = read
    known = pc.is_in(commits["version"], pa.array(listing.versions, pa.int64()))
    log = Log(
        listing=listing,
        commits=commits.filter(known),
        notes=notes,
        branches={row["branch"]: row["forked_version"] for row in table.branches().to_dict()},
        is_partial=is_partial,
    )
    return with_known_facts(table, log)


def with_known_facts(table: Table, log: Log) -> Log:
    """Return a log with the last result of `Table.verify`, and with the counts of rows that were read. No request."""
    return replace(log, commits=history_of(table).open_branch.keep_commits(log.commits))


def _extend_log(table: Table, before: Log, listing: Listing) -> tuple[pa.Table, tuple[str, ...]] | None:
    """Return the known commits and the new ones, with their notes; None if the newest known one has changed."""
    if not len(before.commits):
        return None
    newest = before.commits.slice(0, 1)
    version = newest["version"][0].as_py()
    if version not in listing.versions[-MOST_COMMITS:]:
        return None
    newer = [item for item in listing.versions[: -MOST_COMMITS - 1 : -1] if item >= version]
    added = history_of(table).commits_frame(newer)
    fresh = added.to_arrow()
    if not fresh.slice(len(fresh) - 1).select(_SAME).equals(newest.select(_SAME)):
        return None
    old = before.commits.slice(1)
    gone = pc.and_(
        pc.fill_null(pc.not_equal(old["readable"], "no"), fill_value=True),
        pc.invert(pc.is_in(old["version"], pa.array(listing.reachable, pa.int64()))),
    )
    at = frames.COMMITS.get_field_index("readable")
    old = old.set_column(at, frames.COMMITS.field(at), pc.if_else(gone, "metadata", old["readable"]))
    notes = tuple(dict.fromkeys((*added.notes, *before.notes)))
    return pa.concat_tables([fresh, old]).slice(0, MOST_COMMITS), notes


def read_table_size(table: Table) -> TableSize:
    """Return the size of the newest version. Reads the metadata of its files."""
    rows = table.current.files().to_arrow()
    return TableSize(files=len(rows), size_bytes=pc.sum(rows["size_bytes"]).as_py() or 0)
