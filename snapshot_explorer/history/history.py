"""`History`: the past of a table, which every question about several versions takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, get_args

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import ChangeMode
from snapshot_explorer.core.refs import (
    AsOf,
    Earliest,
    Latest,
    OfBranch,
    Ref,
    RefLike,
    Tag,
    Version,
    is_newest_state,
    parse_range,
    parse_ref,
    parse_time_bound,
)
from snapshot_explorer.core.refs.records import brief_repr, format_time
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.core.text import did_you_mean, format_utc, list_names
from snapshot_explorer.history.commits import commit_of, history_frame, unread_commit_notes
from snapshot_explorer.history.expectations import Expectation
from snapshot_explorer.history.expressions import open_expression
from snapshot_explorer.history.open_branch import Log, OpenBranch
from snapshot_explorer.history.resolving import last_committed_by, resolve, resolve_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapshot_explorer.core.records import Commit, Gap, Listing, TableSchema
    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.history.commits import CachedMetadata
    from snapshot_explorer.history.lifetimes import FileLifetimes
    from snapshot_explorer.history.loaded_version import LoadedVersion
    from snapshot_explorer.history.management import SnapshotManagement
    from snapshot_explorer.results import Frame

_FIRST_TIME = datetime.min.replace(tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SOON = 60
"""A commit within this many seconds after the time of a ref is mentioned."""


class WithPast(ABC):
    """What has the history of a table, for `history_of`: a base of `Table`."""

    @property
    @abstractmethod
    def _past(self) -> History:
        """The history for one call, which lists the log at most once."""


def history_of(table: WithPast) -> History:
    """Return the history of a table, for one call: it lists the log at most once."""
    return table._past  # noqa: SLF001 - for this package: users have `Table` itself


class History:
    """The past of a table on one branch, for one call: its log is listed at most once, when it is first needed.

    Knows the versions and the gaps between them, resolves refs, leads to the table's other branches, and has the
    lifetimes of the data files.
    """

    def __init__(
        self, branch: OpenBranch, *, is_newest_state: bool = False, relatives: dict[str, History] | None = None
    ) -> None:
        self.open_branch = branch
        """What is in memory of the branch."""
        self.is_newest_state = is_newest_state
        """Whether the newest version is the newest state of the table, in its current schema."""
        self._log = Log(branch=branch)
        self._relatives = {} if relatives is None else relatives
        self._relatives.setdefault(branch.branch_name, self)

    @property
    def table_format(self) -> TableFormat:
        """Return the table in its format, in the schemas of its commits. No request."""
        return self.open_branch.format

    @property
    def management(self) -> SnapshotManagement:
        """Return the current version, its updates and its staleness."""
        return self.open_branch.management

    @property
    def cached(self) -> CachedMetadata:
        """Return the metadata that is in memory. No request."""
        return self.open_branch.cached

    @property
    def path(self) -> str:
        """Return the location of the table, without secrets."""
        return self.open_branch.path

    @property
    def name(self) -> str:
        """Return the name of the table."""
        return self.open_branch.name

    @property
    def branch(self) -> str | None:
        """Return the branch; None for the main one."""
        return self.open_branch.branch

    @property
    def branch_name(self) -> str:
        """Return the name of the branch, also of the main one."""
        return self.open_branch.branch_name

    @property
    def open_expression(self) -> str:
        """Return the Python call that opens the table, without secrets."""
        return open_expression(self.path, self.branch, self.table_format)

    @cached_property
    def format(self) -> TableFormat:
        """Return the table in its format. One listing, the first time, for the newest state."""
        return self.table_format.with_current_schema(self.listing) if self.is_newest_state else self.table_format

    @property
    def listing(self) -> Listing:
        """Return all versions, also the versions of which only the commit is left. One listing, the first time."""
        return self._log.listing

    def lifetimes(self) -> FileLifetimes:
        """Return the lifetimes of all data files. Reads the log once; later calls read only new versions."""
        return self.open_branch.lifetimes()

    def with_newest_state(self, is_newest_state: bool) -> History:  # noqa: FBT001 - the name of the method says what it means
        """Return this history with the newest version in the table's current schema, or in the schema of its commit."""
        if is_newest_state is self.is_newest_state:
            return self
        result = History(self.open_branch, is_newest_state=is_newest_state)
        result._log = self._log
        return result

    def relisted(self) -> History:
        """Return this history without its listing: the log is listed again when it is needed."""
        return History(self.open_branch, is_newest_state=self.is_newest_state)

    def tags(self) -> Mapping[str, int]:
        """Return the version of each tag, sorted by name. Paimon: reads a small file per tag."""
        return self.open_branch.tags()

    def branch_names(self) -> Sequence[str]:
        """Return the names of all branches, main included, sorted; none in a format without branches. One listing."""
        return self.open_branch.branch_names()

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return the commit time of each version, in their order, aware, in UTC. At most one small file per version."""
        return self.table_format.committed_at(versions)

    # Versions

    def versions(self, good: int | None = None, bad: int | None = None) -> tuple[int, ...]:
        """Return the versions whose rows can be read, ascending, from `good` to `bad`, both included. One listing."""
        without_files = frozenset(self.listing.without_files)
        result = tuple(
            version
            for version in self.listing.reachable
            if version not in without_files and (good is None or version >= good) and (bad is None or version <= bad)
        )
        if not result:
            raise SnapshotNotFoundError(f"{self.path} has no version yet: nothing has been committed to it.")
        return result

    def versions_among(self, chosen: Sequence[int] | None) -> tuple[int, ...]:
        """Return the chosen versions whose rows can be read, ascending; all for None. One listing."""
        versions = self.versions()
        if chosen is None:
            return versions
        among = frozenset(chosen)
        result = tuple(version for version in versions if version in among)
        if not result:
            raise SnapshotNotFoundError(f"None of the requested versions of {self.path} can be read.")
        return result

    def vanished(self) -> SnapshotNotFoundError:
        """Return the error for versions that no longer exist after they were listed."""
        return SnapshotNotFoundError(
            f"The versions of {self.path} were removed while they were read: they expired, or the table was emptied or "
            "replaced. Try again."
        )

    def gaps(self, versions: Sequence[int]) -> tuple[Gap, ...]:
        """Return the gaps between versions, in any order; see `Listing.gaps`."""
        return self.listing.gaps(sorted(versions))

    def edge_notes(self, versions: Sequence[int]) -> tuple[str, ...]:
        """Return notes on unknown commits before the oldest and after the newest version, if `versions` has these."""
        listed, edges = self.listing.versions, (self.listing.before_note, self.listing.newest_note)
        ends = (listed[0], listed[-1]) if listed else ()
        return tuple(note for note, end in zip(edges, ends, strict=False) if note is not None and end in versions)

    def schemas(self, versions: Sequence[int]) -> Sequence[TableSchema]:
        """Return the schema of each version: in one pass, or one by one if some versions have no commit."""
        if set(versions) & set(self.listing.without_commit):
            return [self.format.version(version).schema for version in versions]
        return self.format.schemas(versions)

    def commits_frame(self, versions: Sequence[int]) -> Frame:
        """Return the COMMITS frame of versions, in their order. Lists nothing."""
        commits, unread = self.open_branch.commits(versions)
        notes = unread_commit_notes(unread)
        return history_frame(commits, title=self.title, readability=self.open_branch.readability, notes=notes)

    @property
    def title(self) -> str:
        """The title of frames of commits."""
        return f"History of {self.name}{f', branch {self.branch}' if self.branch else ''}"

    def commit(self, version: int) -> Commit:
        """Return the commit of a version."""
        return commit_of(self.format.commits([version]))

    def span_text(self, versions: Sequence[int]) -> str:
        """Return the first and the last of some versions with their times, as display text."""
        ends = list(dict.fromkeys([versions[0], versions[-1]]))
        try:
            times = [f" of {format_utc(time)}" for time in self.format.committed_at(ends)]
        except SnapshotExplorerError:
            times = [" of a time that was not recorded"] * len(ends)
        return " to ".join(f"{version}{time}" for version, time in zip(ends, times, strict=True))

    # Refs

    def resolve(self, ref: Ref) -> int:
        """Return the version of a ref of this branch; a number without steps is returned unchecked."""
        return resolve(self._numbered(ref) if isinstance(ref, Version) and ref.back else ref, self._log)

    def load(self, ref: Ref) -> LoadedVersion:
        """Return the version of a ref of this branch. One listing for all refs; a tag or a time costs small files."""
        return self.open_branch.load(self.resolve(ref), is_newest_state=is_newest_state(ref))

    def version_of(self, ref: RefLike) -> int | None:
        """Return the version of any ref in this branch; None if nothing has been committed."""
        other, own_ref = self.in_branch(ref)
        version = other.load(own_ref).version.number
        if other is self or version is None:
            return version
        shared = other.shared_versions(self)
        if version not in shared:
            raise SnapshotNotFoundError(
                Message(
                    f"{parse_ref(ref)} is version {version} of branch {other.branch_name}, which branch "
                    f"{self.branch_name} does not have. Open that branch: ",
                    Hint("open_table", {"path": self.path, "branch": other.branch_name}),
                    ".",
                )
            )
        return shared[version]

    def expect(self, ref: RefLike, reason: str) -> None:
        """Expect what is found at a version, in this open table: see `Table.health`. At most two requests."""
        number = self.version_of(ref)
        if number is None:
            raise SnapshotNotFoundError(f"{self.name} has no version yet: nothing has been committed to it.")
        expectation = Expectation(version=number, reason=reason, committed_at=self.committed_at([number])[0])
        others = (item for item in self.open_branch.expected if item.version != number)
        self.open_branch.expected = (*others, expectation)

    def time_note(self, ref: RefLike) -> str | None:
        """Return why the version of a time is the one before, where the next was committed within a minute after it."""
        history, own_ref = self.in_branch(ref)
        return history._time_note(own_ref)  # noqa: SLF001 - of this class

    def _time_note(self, ref: Ref) -> str | None:
        if not isinstance(ref, AsOf) or ref.back:
            return None
        version, versions = resolve(ref, self._log), self._log.loadable.versions
        later = versions[bisect_right(versions, version) :][:1]
        if not later:
            return None
        time = self._log.committed_at(later)[0]
        seconds = (time - ref.time).total_seconds()
        if not 0 < seconds < _SOON:
            return None
        return (
            f"{ref} is version {version}, the last one committed by then: version {later[0]} was committed "
            f"{seconds:g} s later, at {format_time(time)}."
        )

    def between(
        self,
        between: str | tuple[Ref, Ref] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> Sequence[int]:
        """Return the existing versions of a range, newest first.

        Args:
            between: Two refs `A..B` of this branch, both included; a missing side means earliest or latest.
            since: The first time of a commit.
            until: The last time of a commit.
        """
        versions = self.listing.versions
        if between is not None and versions:
            first, last = sorted(self._existing(ref) for ref in _bounds(between))
            versions = tuple(version for version in versions if first <= version <= last)
        start = None if since is None else _time("since", since)
        end = None if until is None else _time("until", until)
        return self._committed(versions, start, end)[::-1] if versions else ()

    def _committed(self, versions: Sequence[int], start: datetime | None, end: datetime | None) -> Sequence[int]:
        """Return the versions committed in a time range; None for no bound."""
        if not self.table_format.has_ordered_times and (start or end):
            times = dict(zip(versions, self._log.committed_at(versions), strict=True))
            return [
                version
                for version in versions
                if (start is None or times[version] >= start) and (end is None or times[version] <= end)
            ]
        if start is not None:
            is_first = start - _FIRST_TIME < _MILLISECOND  # of the calendar
            before = None if is_first else last_committed_by(start - _MILLISECOND, self._log)
            versions = [version for version in versions if before is None or version > before]
        if end is not None and versions:
            last = last_committed_by(end, self._log)
            versions = [version for version in versions if last is not None and version <= last]
        return versions

    def changed(self, between: tuple[Ref, Ref] | None = None) -> Sequence[int]:
        """Return the existing versions of a range whose changes are known, oldest first.

        Args:
            between: As for `between`, except that earliest as A means the first version whose changes are known.
        """
        versions = self.between(between)[::-1]
        if between is not None and between[0] != Earliest():
            return versions
        lost = set(self.listing.without_commit)
        return tuple(dropwhile(lost.__contains__, versions))

    def span(self, a: RefLike, b: RefLike, mode: ChangeMode) -> tuple[int, int, ChangeMode]:
        """Return the versions before the first and of the last change, and the mode: `diff` for `auto` and two tags."""
        if mode not in get_args(ChangeMode):
            raise InvalidArgumentError(f"{mode!r} is not a mode. Modes: {', '.join(get_args(ChangeMode))}.")
        first, last = (self._numbered(parse_ref(ref, tags=self.tags)) for ref in (a, b))
        if mode == "auto" and isinstance(first, Tag) and isinstance(last, Tag):
            mode = "diff"
        start, end = resolve_range(first, last, self._log, whole=mode != "diff")
        return start, end, mode

    def _numbered(self, ref: Ref) -> Ref:
        """Return a ref by the number of its version, where it has another number that names one."""
        if not isinstance(ref, Version) or ref.number in self.listing.versions:
            return ref
        return replace(ref, number=self.table_format.version_named(ref.number))

    def _existing(self, ref: Ref) -> int:
        version = resolve(self._numbered(ref), self._log)
        if version not in self.listing.versions:
            self.table_format.version(version)
        return version

    # Branches

    def on_branch(self, name: str) -> History:
        """Return the history of a branch, also of `main`: the same object at each call. One listing at first."""
        if name not in self._relatives:
            branch = self.open_branch.other(name, lambda: self._format_on(name))
            self._relatives[name] = History(branch, is_newest_state=self.is_newest_state, relatives=self._relatives)
        return self._relatives[name]

    def _format_on(self, name: str) -> TableFormat:
        """Return the table in its format, bound to another branch."""
        self._check_has_branches()
        names = self.branch_names()
        if name not in names and not self.table_format.branches.has_history(name):
            near = did_you_mean(name, names, lambda branch: str(OfBranch(name=branch)))
            raise SnapshotNotFoundError(f"The table has no branch {name!r}. Branches: {list_names(names)}.{near}")
        return self.table_format.branches.table_on(name)

    def _check_has_branches(self) -> None:
        """Check that tables of the format have branches."""
        if self.table_format.branches.main is None:
            raise InvalidArgumentError(
                f"{self.name} is a {self.table_format.title} table, and this format has no branches. Use a "
                "version, such as 17, latest~2 or @2h."
            )

    def in_branch(self, ref: RefLike) -> tuple[History, Ref]:
        """Return the history of the branch that a ref names, or this one, and the ref in it.

        A time before a rollback names a version that is in no branch: the history is the one that ends there.
        """
        parsed = parse_ref(ref, tags=self.tags, branches=self.branch_names)
        if isinstance(parsed, AsOf):
            branch = self.table_format.branches.holding(parsed.time)
            return (self, parsed) if branch is None else (self.on_branch(branch), Latest(back=parsed.back))
        if not isinstance(parsed, OfBranch):
            return self, parsed
        self._check_has_branches()
        if parsed.written and parsed.written in self.tags():
            raise InvalidArgumentError(
                f"{parsed.written!r} is ambiguous: it is a tag as well as a branch. Write tag:{parsed.written} or "
                f"branch:{parsed.written}."
            )
        return self.on_branch(parsed.name), parsed.own_ref

    def shared_versions(self, other: History) -> Mapping[Any, int]:
        """Return the versions that another branch has too, with their numbers there."""
        return self.table_format.branches.shared_versions(other.table_format.branches)

    def resolve_pair(self, a: RefLike, b: RefLike, *, as_versions: bool = False) -> ComparedRefs:
        """Return two refs with the histories that have them: one history if it has both.

        Args:
            as_versions: Whether a branch whose schema was changed since its newest version is in a history that has
                this version. Otherwise it is in its own, because another history has the version in the schema of its
                commit.
        """
        (history_a, ref_a), (history_b, ref_b) = self.in_branch(a), self.in_branch(b)
        if history_a is history_b or ref_a == Earliest():
            return ComparedRefs(a=history_b, ref_a=ref_a, b=history_b, ref_b=ref_b)
        first, last = history_a.load(ref_a), history_b.load(ref_b)
        of_a, of_b = history_a.shared_versions(history_b), history_b.shared_versions(history_a)
        if first.version.number in of_a and (as_versions or first.in_own_schema() is first):
            number = Version(number=of_a[first.version.number])
            return ComparedRefs(a=history_b, ref_a=number, b=history_b, ref_b=ref_b)
        if last.version.number in of_b and (as_versions or last.in_own_schema() is last):
            number = Version(number=of_b[last.version.number])
            return ComparedRefs(a=history_a, ref_a=ref_a, b=history_a, ref_b=number)
        return ComparedRefs(a=history_a, ref_a=ref_a, b=history_b, ref_b=ref_b)

    def one_history(self, *refs: RefLike) -> tuple[History, Sequence[Ref]]:
        """Return the history that has these refs, at most two, and the refs in it."""
        if not refs:
            return self, ()
        if len(refs) == 1:
            result, ref = self.in_branch(refs[0])
            return result, (ref,)
        a, b = refs
        pair = self.resolve_pair(a, b, as_versions=True)
        if pair.a is pair.b:
            return pair.a, (pair.ref_a, pair.ref_b)
        shared = max(pair.b.shared_versions(pair.a), default=None)
        share = "They have no version in common" if shared is None else f"The newest version of both is {shared}"
        raise InvalidArgumentError(
            f"{parse_ref(a)} and {parse_ref(b)} are on two branches, and neither has both versions, so none lie "
            f"between them. {share}. Use a range of one branch, such as earliest..{parse_ref(b)}, or compare the two "
            "versions."
        )

    def of_range(self, between: str | tuple[Ref, Ref] | None) -> tuple[History, tuple[Ref, Ref] | None]:
        """Return the history that has the range `A..B`, and the range in it; this one without a range.

        Its newest version is the newest state of the table if the range has no end, or ends with the newest state.
        """
        if between is None:
            return self.with_newest_state(is_newest_state=True), None
        bounds = between if isinstance(between, tuple) and len(between) == 2 else parse_range(between)  # noqa: PLR2004 - A, B
        result, (first, last) = self.one_history(*bounds)
        return result.with_newest_state(is_newest_state(last)), (first, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRefs:
    """Refs A and B, each with the history that has its version."""

    a: History
    ref_a: Ref
    b: History
    """The history of B: the same object if one history has both."""
    ref_b: Ref

    def versions(self) -> tuple[TableVersion, TableVersion]:
        """Return the versions."""
        return self.a.load(self.ref_a).version, self.b.load(self.ref_b).version

    def divergence(self, first: TableVersion, last: TableVersion) -> Divergence | None:
        """Return the branches of the two versions; None if one history has both."""
        if self.a is self.b or first.number is None or last.number is None:
            return None
        branches_a, branches_b = self.a.table_format.branches, self.b.table_format.branches
        branches_a.check_comparable(branches_b, (first.number, last.number))
        shared = max(self.a.shared_versions(self.b).items(), default=(None, None))
        return Divergence(
            name_a=self.a.branch_name,
            name_b=self.b.branch_name,
            format_a=self.a.table_format,
            shared_a=shared[0],
            shared_b=shared[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The branches of versions A and B, where A is not on the branch of B, nor B on the branch of A."""

    name_a: str
    name_b: str
    format_a: TableFormat
    shared_a: int | None
    """The number in the history of A of the newest version that both have; None if they have none in common."""
    shared_b: int | None
    """Its number in the history of B."""

    @property
    def since(self) -> str:
        """Return where the branches part, as display text."""
        if self.shared_a is None or self.shared_b is None:
            return "which share no version"
        same = f"version {self.shared_a}"
        return f"since {same}" if self.shared_a == self.shared_b else f"since {same}, which is {self.shared_b} in B"


def _bounds(between: str | tuple[Ref, Ref]) -> tuple[Ref, Ref]:
    return between if isinstance(between, tuple) else parse_range(between)


def _time(name: str, value: str | datetime) -> datetime:
    time = parse_time_bound(value, start=name == "since")
    if time is None:
        raise InvalidArgumentError(
            f"{name}={brief_repr(value)} is not a time. Use a datetime, or text such as 2026-11-01, 3d or yesterday."
        )
    return time
