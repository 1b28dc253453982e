"""Read a table's log for the explorer: the newest commits, then all of them, later only new ones."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from snapshot_explorer.analysis.changes import ChangePosition, interruption, newest_position
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.records import Gap, Listing
from snapshot_explorer.history import History, history_of
from snapshot_explorer.table import Snapshot, Table, parts_of

MOST_COMMITS = 10_000
"""Commits that are read, the newest ones."""
FIRST_COMMITS = 1_000
"""Commits that are read before the first picture, which shows fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The versions of a table that were read."""

    source: History = field(repr=False)
    """The history, as it was listed."""
    commits: pa.Table
    """COMMITS of the newest versions, newest first."""
    notes: tuple[str, ...] = ()
    """Which of these commits cannot be read, and why; a sentence each."""
    branches: Mapping[str, int | None] = field(default_factory=dict)
    """The branches other than the main one, sorted, with the version that each begins with; None if none is proven."""
    is_partial: bool = False
    """Whether older commits are still to be read."""
    position: ChangePosition | None = None
    """The newest version and its commit; None if they cannot be read."""
    interruption: str = ""
    """Why it does not continue from the log that was read before, in a sentence; empty if it does."""

    @property
    def listing(self) -> Listing:
        """Return all versions that are listed."""
        return self.source.listing

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


def read_newest(table: Table, before: Log | None = None, *, most: int = MOST_COMMITS) -> tuple[Snapshot, Log]:
    """Return the newest snapshot and the log, read again. One listing, and two more where there is a newer snapshot.

    Args:
        table: The table.
        before: The previous log.
        most: The maximum number of commits to read, the newest ones.
    """
    source = history_of(table)
    if parts_of(table.current).loaded.listing != source.listing:
        table.update()
        source = history_of(table)
    return table.current, read_log(table, before, source=source, most=most, is_extended=False)


def read_log(
    table: Table,
    before: Log | None = None,
    *,
    source: History | None = None,
    most: int = MOST_COMMITS,
    is_extended: bool = True,
) -> Log:
    """Return the current log. Reads only new commits if the log has only grown.

    Args:
        table: The table.
        before: The previous log.
        source: The history, with its listing; None to list all versions.
        most: The maximum number of commits to read, the newest ones, where everything is read.
        is_extended: Whether the commits of the previous log are kept, if it continues.
    """
    source = source or history_of(table)
    versions, read, lost = source.listing.versions, None, ""
    with source.table_format.storage.keeping_immutable():
        if before is not None:
            lost = _interruption(source, before)
            read = _extend_log(source, before) if is_extended and not lost else None
        is_partial = before is not None and before.is_partial
        if read is None:
            newest = source.commits_frame(versions[: -most - 1 : -1])
            read = newest.to_arrow(), newest.notes
            is_partial = most < min(len(versions), MOST_COMMITS)
        position = None
        with suppress(*UNREADABLE):
            position = newest_position(source)
    commits, notes = read
    log = Log(
        source=source,
        commits=commits.filter(pc.is_in(commits["version"], pa.array(versions, pa.int64()))),
        notes=notes,
        branches={row["branch"]: row["forked_version"] for row in table.branches().to_dict()},
        is_partial=is_partial,
        position=position,
        interruption=lost,
    )
    return with_known_facts(table, log)


def _interruption(source: History, before: Log) -> str:
    """Return why a history does not continue from a log, as a reader of its row changes would be told."""
    lost = None
    if before.position is not None:
        with suppress(*UNREADABLE):
            lost = interruption(source, before.position)
    return "" if lost is None else lost.problem


def with_known_facts(table: Table, log: Log) -> Log:
    """Return a log with the last result of `Table.verify`, and with the counts of rows that were read. No request."""
    return replace(log, commits=history_of(table).open_branch.keep_commits(log.commits))


def _extend_log(source: History, before: Log) -> tuple[pa.Table, tuple[str, ...]] | None:
    """Return the known commits and the new ones, with their notes; None if the newest known one is not listed."""
    if not len(before.commits):
        return None
    listing, version = source.listing, before.commits["version"][0].as_py()
    if version not in listing.versions[-MOST_COMMITS:]:
        return None
    newer = [item for item in listing.versions[: -MOST_COMMITS - 1 : -1] if item >= version]
    added = source.commits_frame(newer)
    fresh = added.to_arrow()
    old = before.commits.slice(1)
    gone = pc.and_(
        pc.fill_null(pc.not_equal(old["readable"], "no"), fill_value=True),
        pc.invert(pc.is_in(old["version"], pa.array(listing.reachable, pa.int64()))),
    )
    at = frames.COMMITS.get_field_index("readable")
    old = old.set_column(at, frames.COMMITS.field(at), pc.if_else(gone, "metadata", old["readable"]))
    notes = tuple(dict.fromkeys((*added.notes, *before.notes)))
    return frames.concat_commits([fresh, old]).slice(0, MOST_COMMITS), notes


def read_table_size(table: Table) -> TableSize:
    """Return the size of the newest version. Reads the metadata of its files."""
    rows = table.current.files().to_arrow()
    return TableSize(files=len(rows), size_bytes=pc.sum(rows["size_bytes"]).as_py() or 0)
