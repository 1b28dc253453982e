"""`OpenBranch`: what is in memory of a branch of an open table, and `Log`, its log as one call sees it."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from os import PathLike

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Listing
from snapshot_explorer.core.refs import MAIN
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.unread_versions import Reasons, readable_commits
from snapshot_explorer.history.commits import CachedMetadata, CommitFilter, read_history
from snapshot_explorer.history.expectations import Expectation  # noqa: TC001 - as the other types here
from snapshot_explorer.history.lifetimes import FileFacts, FileLifetimes, keep_lifetimes, read_lifetimes
from snapshot_explorer.history.loaded_version import LoadedVersion
from snapshot_explorer.history.management import SnapshotManagement
from snapshot_explorer.history.overview import last_part
from snapshot_explorer.history.readability import KnownReadability
from snapshot_explorer.history.row_counts import KnownRowCounts
from snapshot_explorer.storage import Storage


class OpenBranch:
    """A branch of an open table: its current version, and what earlier calls read. Safe to use from several threads."""

    def __init__(
        self,
        path: str,
        table_format: TableFormat,
        *,
        name: str | None = None,
        branch: str | None = None,
        staleness_limit: timedelta = timedelta(0),
        storage: Storage | None = None,
        note_level: int = logging.WARNING,
    ) -> None:
        self.path = path
        """The location of the table, without secrets."""
        self.format = table_format
        """The table in its format, bound to the branch."""
        self.name = name or last_part(path)
        """The name of the table: the last part of its path, or its name in a catalog."""
        self.branch = branch
        """The branch; None for the main one."""
        self.storage = storage
        self.readability = KnownReadability()
        """What `Table.verify` found."""
        self.row_counts = KnownRowCounts()
        """The rows that commits changed, of those that were read and compared."""
        self.expected: tuple[Expectation, ...] = ()
        """The versions that the user expects to stand out, by `History.expect`."""
        self._versions: tuple[int, ...] = ()
        self._tags: Mapping[str, int] = {}
        self._branch_names: tuple[str, ...] = ()
        self._columns: tuple[str, ...] = ()
        self._commits = frames.no_rows(frames.COMMITS)
        self._lifetimes: FileLifetimes | None = None
        self._others: dict[str, OpenBranch] = {}
        self._lock = threading.Lock()
        self.management = SnapshotManagement(
            table_format.listing,
            # Without the object itself: it is freed as soon as nobody has it.
            lambda listing: LoadedVersion(
                path=path,
                version=table_format.with_current_schema(listing).version(listing.latest),
                listing=listing,
            ),
            validate=lambda version: table_format.version(version).validate(),
            log_name=f"{table_format.name} log found for the {table_format.name.capitalize()} table at {path}",
            staleness_limit=staleness_limit,
            note_level=note_level,
        )
        """The current version, its updates and its staleness."""

    @property
    def branch_name(self) -> str:
        """Return the name of the branch, also of the main one."""
        return self.branch or MAIN

    @property
    def current(self) -> LoadedVersion:
        """Return the most recently loaded version. No request."""
        return self.management.current_snapshot

    def load(self, version: int, *, is_newest_state: bool = False) -> LoadedVersion:
        """Return a version: the newest one in the table's current schema if that is requested. No request."""
        current = self.current
        if version == current.version.number:
            return current if is_newest_state else current.in_own_schema()
        return LoadedVersion(path=self.path, version=self.format.version(version))

    def other(self, name: str, make_format: Callable[[], TableFormat]) -> "OpenBranch":
        """Return another branch of the table: the same object at each call. One listing at first."""
        with self._lock:
            if name not in self._others:
                self._others[name] = OpenBranch(
                    self.path,
                    make_format(),
                    name=self.name,
                    branch=None if name == MAIN else name,
                    storage=self.storage,
                )
            return self._others[name]

    def listing(self) -> Listing:
        """Return all versions, also the versions of which only the commit is left. One listing."""
        listing = self.format.listing(0)
        self._versions = listing.reachable
        return listing

    def tags(self) -> Mapping[str, int]:
        """Return the version of each tag, sorted by name. Paimon: reads a small file per tag."""
        self._tags = self.format.tags()
        return self._tags

    def branch_names(self) -> Sequence[str]:
        """Return the names of all branches, main included, sorted; none in a format without branches. One listing."""
        names = self.format.branches.names()
        self._branch_names = tuple(names)
        return self._branch_names

    def commits(self, versions: Sequence[int]) -> tuple[pa.Table, Reasons]:
        """Return COMMITS of versions, in their order, and which commits cannot be read. Lists nothing.

        Raises:
            SnapshotNotFoundError: A version does not exist.
        """
        commits, unread = read_history(self.format, versions, CommitFilter(), None)
        for version, error in unread.items():
            if isinstance(error, SnapshotNotFoundError) and version not in self.listing().versions:
                raise error
        return self.keep_commits(commits), unread

    def commit_columns(self, versions: Sequence[int], columns: Collection[str]) -> tuple[pa.Table, Reasons]:
        """Return COMMITS in which other columns may be null, and which commits cannot be read. Lists nothing."""
        with step("Reading commits", total=None):
            return readable_commits(self.format, versions, columns=columns)

    def keep_commits(self, commits: pa.Table) -> pa.Table:
        """Return COMMITS with what `Table.verify` and row counts found, and keep them for completion."""
        self._commits = self.row_counts.applied_to(self.readability.applied_to(commits))
        return self._commits

    def lifetimes(self, cache_dir: str | PathLike[str] | None = None) -> FileLifetimes:
        """Return the lifetimes of all data files. Reads the log once; later calls read only new versions."""
        known, title = self._lifetimes, f"File lifetimes of {self.name}"
        with self.format.storage.keeping_immutable():
            if cache_dir is None:
                self._lifetimes = read_lifetimes(self.format, known, title=title)
            else:
                table = (self.path, self.format.name, self.branch)
                self._lifetimes = keep_lifetimes(self.format, known, cache_dir=cache_dir, table=table, title=title)
        self._lifetimes.facts = FileFacts(
            commits=lambda versions: self.commits(versions[::-1])[0], missing=lambda: self.readability.missing
        )
        return self._lifetimes

    @property
    def cached(self) -> CachedMetadata:
        """Return the metadata that is in memory. No request."""
        number, schema = self.current.version.number, self.current.cache.peek(self.current.schema_key)
        if schema:
            self._columns = tuple(column.name for column in schema.columns)
        return CachedMetadata(
            versions=self._versions or ((number,) if number is not None else ()),
            commits=self._commits,
            tags=tuple(self._tags),
            branches=self._branch_names,
            columns=self._columns,
            readability=self.readability.rows,
        )

    @property
    def is_listed(self) -> bool:
        """Return whether the versions were listed."""
        return bool(self._versions)


@dataclass(frozen=True, kw_only=True)
class Log:
    """The log of a branch for one call: listed at most once, when it is first needed."""

    branch: OpenBranch

    @cached_property
    def listing(self) -> Listing:
        """Return all versions, also the versions of which only the commit is left. One listing, the first time."""
        return self.branch.listing()

    @property
    def loadable(self) -> Listing:
        """Return the listing without the versions of which only the commit is left."""
        return replace(self.listing, versions=self.listing.reachable)

    def latest(self) -> int | None:
        """Return the newest version; None for a table without versions. At most one listing, from the format's hint."""
        return self.branch.management.update(staleness_acceptable=True).version.number

    def tags(self) -> Mapping[str, int]:
        """Return the version of each tag."""
        return self.branch.tags()

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return the commit time of each version, aware. Reads at most one small file per version."""
        return self.branch.format.committed_at(versions)

    def candidates_at(self, time: datetime, versions: Sequence[int], *, follow_log: bool = True) -> Sequence[int]:
        """Return the range of these versions that is searched for the last one committed at or before a time."""
        return self.branch.format.candidates_at(time, versions, follow_log=follow_log)
