"""Resolve refs and ranges of refs to versions, each in the branch that it names (`VersionResolver`)."""

import difflib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from typing import Any, Generic, Protocol, Self, TypeVar, get_args

from snapshot_explorer.compare.comparison import BranchDivergence
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.model import ChangeMode, Gap, Listing
from snapshot_explorer.refs import (
    MAIN,
    AsOf,
    Earliest,
    Latest,
    NothingBeforeError,
    OfBranch,
    Ref,
    RefLike,
    Tag,
    Version,
    parse_range,
    parse_ref,
    parse_time_bound,
    resolve,
    resolve_range,
)
from snapshot_explorer.refs.records import brief_repr, format_time
from snapshot_explorer.single_flight import cached_property
from snapshot_explorer.snapshot import Snapshot

_FIRST_TIME = datetime.min.replace(tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SOON = 60
"""A commit within this many seconds after the time of a ref is mentioned."""


class BranchTable(Protocol):
    """A table that is bound to a branch, and opens others."""

    name: str
    branch: str | None
    bound: TableFormat

    def at(self, ref: RefLike) -> Snapshot:
        """Return the snapshot at a ref."""
        ...

    def at_each(self, *refs: Ref) -> Sequence[Snapshot]:
        """Return the snapshots at refs of its history."""
        ...

    def on_branch(self, name: str) -> Self:
        """Return the table bound to a branch."""
        ...

    def update(self, *, staleness_acceptable: bool = False) -> Snapshot:
        """Return the newest snapshot."""
        ...

    def listing(self) -> Listing:
        """Return all versions. One listing."""
        ...

    def branch_names(self) -> Sequence[str]:
        """Return the names of all branches."""
        ...

    def tag_versions(self) -> Mapping[str, int]:
        """Return the version of each tag."""
        ...


class VersionResolver:
    """The history of a table for resolving refs. Lists the log at most once."""

    def __init__(self, table: BranchTable, *, versions: tuple[int, ...] | None = None) -> None:
        self._table = table
        self._format = table.bound
        self._versions = versions

    @cached_property
    def _listing(self) -> Listing:
        return self._table.listing()

    @property
    def listed(self) -> tuple[int, ...]:
        """Return all versions, including those whose files are gone and only the commit is left."""
        return self._listing.versions

    def listing(self) -> Listing:
        """Return a listing of the versions that can be loaded."""
        return replace(self._listing, versions=self._listing.reachable if self._versions is None else self._versions)

    def latest(self) -> int | None:
        """Return the newest version; None for a table without versions."""
        return self._table.update(staleness_acceptable=True).version

    def tags(self) -> Mapping[str, int]:
        """Return the version of each tag."""
        return self._table.tag_versions()

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return the commit time of each version."""
        return self._format.committed_at(versions)

    def candidates_at(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:
        """Return the range of these versions that is searched for the last one committed at or before a time."""
        return self._format.candidates_at(time, versions, follow_log=self._versions is None)

    def time_note(self, ref: Ref) -> str | None:
        """Return why the version of a time is the one before, where the next was committed within a minute after it."""
        if not isinstance(ref, AsOf) or ref.back:
            return None
        version, versions = resolve(ref, self), self.listing().versions
        later = versions[bisect_right(versions, version) :][:1]
        if not later:
            return None
        time = self.committed_at(later)[0]
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
            between: Two refs `A..B`, both included; a missing side means earliest or latest.
        """
        versions = self.listed
        if between is not None and versions:
            first, last = sorted(self._existing(ref) for ref in _bounds(between))
            versions = tuple(version for version in versions if first <= version <= last)
        start = None if since is None else _time("since", since)
        end = None if until is None else _time("until", until)
        return self._committed(versions, start, end)[::-1] if versions else ()

    def _committed(self, versions: Sequence[int], start: datetime | None, end: datetime | None) -> Sequence[int]:
        """Return those of some versions that were committed from a time on, up to another; None for no bound."""
        if not self._format.has_ordered_times and (start or end):
            times = dict(zip(versions, self.committed_at(versions), strict=True))
            return [
                version
                for version in versions
                if (start is None or times[version] >= start) and (end is None or times[version] <= end)
            ]
        if start is not None:
            is_first = start - _FIRST_TIME < _MILLISECOND  # of the calendar
            before = None if is_first else self._last_at(start - _MILLISECOND)
            versions = [version for version in versions if before is None or version > before]
        if end is not None and versions:
            last = self._last_at(end)
            versions = [version for version in versions if last is not None and version <= last]
        return versions

    def gaps(self, versions: Sequence[int]) -> tuple[Gap, ...]:
        """Return the gaps between versions, in any order; see `Listing.gaps`."""
        return self._listing.gaps(sorted(versions))

    def edge_notes(self, versions: Sequence[int]) -> tuple[str, ...]:
        """Return what is unknown before the first listed version and after the newest one, if these are among some."""
        listed, edges = self.listed, (self._listing.before_note, self._listing.newest_note)
        ends = (listed[0], listed[-1]) if listed else ()
        return tuple(note for note, end in zip(edges, ends, strict=False) if note is not None and end in versions)

    def changed(self, between: str | tuple[Ref, Ref] | None = None) -> Sequence[int]:
        """Return the existing versions of a range whose changes are known, oldest first.

        Args:
            between: As for `between`, except that earliest as A means the first version whose changes are known.
        """
        versions = self.between(between)[::-1]
        if between is not None and _bounds(between)[0] != Earliest():
            return versions
        lost = set(self._listing.without_commit)
        return tuple(dropwhile(lost.__contains__, versions))

    def span(self, a: RefLike, b: RefLike, mode: ChangeMode) -> tuple[int, int, ChangeMode]:
        """Return the versions before the first and of the last change, and the mode: `diff` for `auto` and two tags."""
        if mode not in get_args(ChangeMode):
            raise InvalidArgumentError(f"{mode!r} is not a mode. Modes: {', '.join(get_args(ChangeMode))}.")
        first, last = (self._numbered(parse_ref(ref, tags=self.tags)) for ref in (a, b))
        if mode == "auto" and isinstance(first, Tag) and isinstance(last, Tag):
            mode = "diff"
        start, end = resolve_range(first, last, self, whole=mode != "diff")
        return start, end, mode

    def resolve(self, ref: Ref) -> int:
        """Return the version of a ref; a number without steps is returned unchecked."""
        return resolve(self._numbered(ref) if isinstance(ref, Version) and ref.back else ref, self)

    def _numbered(self, ref: Ref) -> Ref:
        """Return a ref by the number of its version, where it has another number that names one."""
        if not isinstance(ref, Version) or ref.number in self.listed:
            return ref
        return replace(ref, number=self._format.version_named(ref.number))

    def _existing(self, ref: Ref) -> int:
        version = resolve(self._numbered(ref), self)
        if version not in self.listed:
            self._format.version(version)
        return version

    def _last_at(self, time: datetime) -> int | None:
        """Return the last version committed at or before a time; None if all are later."""
        try:
            return resolve(AsOf(time=time), VersionResolver(self._table, versions=self.listed))
        except NothingBeforeError:
            return None


def _bounds(between: str | tuple[Ref, Ref]) -> tuple[Ref, Ref]:
    return between if isinstance(between, tuple) else parse_range(between)


def _time(name: str, value: str | datetime) -> datetime:
    time = parse_time_bound(value, start=name == "since")
    if time is None:
        raise InvalidArgumentError(
            f"{name}={brief_repr(value)} is not a time. Use a datetime, or text such as 2026-11-01, 3d or yesterday."
        )
    return time


_MAX_NAMED = 20
"""Branches that a message names."""


T = TypeVar("T", bound=BranchTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides(Generic[T]):
    """Versions A and B, each in the history of a table."""

    a: T
    ref_a: Ref
    b: T
    """The table of B: the same object if one history has both."""
    ref_b: Ref

    def resolved(self) -> tuple[TableVersion, TableVersion]:
        """Return the versions."""
        if self.a is self.b:
            first, last = self.a.at_each(self.ref_a, self.ref_b)
            return first.resolved, last.resolved
        return self.a.at(self.ref_a).resolved, self.b.at(self.ref_b).resolved

    def parted(self, first: TableVersion, last: TableVersion) -> BranchDivergence | None:
        """Return the branches of the two versions; None if one history has both."""
        if self.a is self.b or first.number is None or last.number is None:
            return None
        self.a.bound.check_comparable(self.b.bound, (first.number, last.number))
        shared = max(_shared_versions(self.a, self.b).items(), default=(None, None))
        return BranchDivergence(
            name_a=branch_name(self.a),
            name_b=branch_name(self.b),
            format_a=self.a.bound,
            shared_a=shared[0],
            shared_b=shared[1],
        )


def branch_name(table: BranchTable) -> str:
    """Return the name of the branch that a table is bound to."""
    return table.branch or MAIN


def format_on_branch(table: BranchTable, name: str) -> TableFormat:
    """Return a table in its format, bound to another branch."""
    _check_has_branches(table)
    names = table.branch_names()
    if name not in names and not table.bound.has_history(name):
        near = difflib.get_close_matches(name, names, 1)
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        raise SnapshotNotFoundError(
            f"The table has no branch {name!r}. Branches: {', '.join(names[:_MAX_NAMED])}{more}."
            + (f" Did you mean {OfBranch(name=near[0])}?" if near else "")
        )
    return table.bound.on_branch(name)


def in_branch(table: T, ref: RefLike) -> tuple[T, Ref]:
    """Return the table bound to the branch that a ref names, or the table itself, and the ref in its history.

    A time before a rollback names a version that is in no branch: the table is bound to the history that ends there.
    """
    parsed = parse_ref(ref, tags=table.tag_versions, branches=table.branch_names)
    if isinstance(parsed, AsOf):
        branch = table.bound.branch_at(parsed.time)
        return (table, parsed) if branch is None else (table.on_branch(branch), Latest(back=parsed.back))
    if not isinstance(parsed, OfBranch):
        return table, parsed
    _check_has_branches(table)
    if parsed.written and parsed.written in table.tag_versions():
        raise InvalidArgumentError(
            f"{parsed.written!r} is ambiguous: it is a tag as well as a branch. Write tag:{parsed.written} or "
            f"branch:{parsed.written}."
        )
    return table.on_branch(parsed.name), parsed.own_ref


def version_in_history(table: T, ref: RefLike) -> int | None:
    """Return the version of a ref in the table's own history."""
    other, own_ref = in_branch(table, ref)
    version = other.at(own_ref).version
    if other is table or version is None:
        return version
    shared = _shared_versions(other, table)
    if version not in shared:
        raise SnapshotNotFoundError(
            f"{parse_ref(ref)} is version {version} of branch {branch_name(other)}, which branch {branch_name(table)} "
            f"does not have. Open that branch: open_table(path, branch={branch_name(other)!r})."
        )
    return shared[version]


def sides_of(table: T, a: RefLike, b: RefLike, *, as_versions: bool = False) -> Sides[T]:
    """Return two refs with the tables whose histories have them: one table if one history has both.

    Args:
        as_versions: Whether a branch whose schema was changed since its newest version is in a history that has this
            version. Otherwise it is in its own, because another history has the version in the schema of its commit.
    """
    (table_a, ref_a), (table_b, ref_b) = in_branch(table, a), in_branch(table, b)
    if table_a is table_b or ref_a == Earliest():
        return Sides(a=table_b, ref_a=ref_a, b=table_b, ref_b=ref_b)
    first, last = table_a.at(ref_a), table_b.at(ref_b)
    of_a, of_b = _shared_versions(table_a, table_b), _shared_versions(table_b, table_a)
    if first.version in of_a and (as_versions or first.in_own_schema() is first):
        return Sides(a=table_b, ref_a=Version(number=of_a[first.version]), b=table_b, ref_b=ref_b)
    if last.version in of_b and (as_versions or last.in_own_schema() is last):
        return Sides(a=table_a, ref_a=ref_a, b=table_a, ref_b=Version(number=of_b[last.version]))
    return Sides(a=table_a, ref_a=ref_a, b=table_b, ref_b=ref_b)


def one_history(table: T, *refs: RefLike) -> tuple[T, Sequence[Ref]]:
    """Return the table whose history has these refs, at most two, and the refs in it."""
    if not refs:
        return table, ()
    if len(refs) == 1:
        result, ref = in_branch(table, refs[0])
        return result, (ref,)
    a, b = refs
    sides = sides_of(table, a, b, as_versions=True)
    if sides.a is sides.b:
        return sides.a, (sides.ref_a, sides.ref_b)
    shared = max(_shared_versions(sides.b, sides.a), default=None)
    share = "They have no version in common" if shared is None else f"The newest version of both is {shared}"
    raise InvalidArgumentError(
        f"{parse_ref(a)} and {parse_ref(b)} are on two branches, and neither has both versions, so none lie between "
        f"them. {share}. Use a range of one branch, such as earliest..{parse_ref(b)}, or compare the two versions."
    )


def range_in_history(table: T, between: str | tuple[Ref, Ref] | None) -> tuple[T, tuple[Ref, Ref] | None]:
    """Return the table whose history has the range `A..B`, and the range there; the table itself without a range."""
    if between is None:
        return table, None
    bounds = between if isinstance(between, tuple) and len(between) == 2 else parse_range(between)  # noqa: PLR2004 - A, B
    result, (first, last) = one_history(table, *bounds)
    return result, (first, last)


def _check_has_branches(table: BranchTable) -> None:
    """Check that tables of the format have branches."""
    if table.bound.main_branch is None:
        raise InvalidArgumentError(
            f"{table.name} is a {table.bound.name.capitalize()} table, and this format has no branches. Use a version, "
            "such as 17, latest~2 or @2h."
        )


def _shared_versions(table: BranchTable, other: BranchTable) -> Mapping[Any, int]:
    return table.bound.shared_versions(other.bound)
