"""`VersionResolver`: resolve refs and ranges to versions of a table."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import dropwhile
from typing import Protocol, get_args

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.model import ChangeMode, Gap, Listing
from snapshot_explorer.refs import (
    AsOf,
    Earliest,
    NothingBeforeError,
    Ref,
    Tag,
    parse_range,
    parse_ref,
    parse_time_bound,
    resolve,
    resolve_range,
)
from snapshot_explorer.refs.times import brief_repr, format_time
from snapshot_explorer.single_flight import cached_property
from snapshot_explorer.snapshot import Snapshot

_SOON = 60
"""Seconds after the time of a ref within which a commit is mentioned."""


class VersionSource(Protocol):
    """A table that caches its listing and tags."""

    def update(self, *, staleness_acceptable: bool = False) -> Snapshot:
        """Return the newest snapshot."""
        ...

    def listing(self) -> Listing:
        """Return all versions. One listing."""
        ...

    def tag_versions(self) -> Mapping[str, int]:
        """Return the version of each tag."""
        ...


class VersionResolver:
    """The history of a table for resolving refs. Lists the log at most once."""

    def __init__(
        self, table: VersionSource, table_format: TableFormat, *, listed: tuple[int, ...] | None = None
    ) -> None:
        self._table = table
        self._format = table_format
        self._given = listed

    @cached_property
    def _listing(self) -> Listing:
        return self._table.listing()

    @property
    def listed(self) -> tuple[int, ...]:
        """Return all versions, including those of which only the commit is left."""
        return self._listing.versions

    def listing(self) -> Listing:
        """Return a listing of the versions that can be loaded."""
        return replace(self._listing, versions=self._listing.reachable if self._given is None else self._given)

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
        return self._format.candidates_at(time, versions, follow_log=self._given is None)

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
        if since is not None and versions:
            before = self._last_at(_time("since", since) - timedelta(milliseconds=1))
            versions = tuple(version for version in versions if before is None or version > before)
        if until is not None and versions:
            last_one = self._last_at(_time("until", until))
            versions = tuple(version for version in versions if last_one is not None and version <= last_one)
        return versions[::-1]

    def gaps(self, versions: Sequence[int]) -> tuple[Gap, ...]:
        """Return the gaps between versions, in any order; see `Listing.gaps`."""
        return self._listing.gaps(sorted(versions))

    def newest_notes(self, versions: Sequence[int]) -> tuple[str, ...]:
        """Return a sentence about a lost newer version, if the newest listed version is among these."""
        note, listed = self._listing.newest_note, self.listed
        return () if note is None or not listed or listed[-1] not in versions else (note,)

    def changed(self, between: str | tuple[Ref, Ref] | None = None) -> Sequence[int]:
        """Return the existing versions of a range whose changes are known, oldest first.

        Args:
            between: As for `between`, except that earliest as A means the first version whose changes are known.
        """
        versions = self.between(between)[::-1]
        if between is not None and _bounds(between)[0] != Earliest():
            return versions
        lost = set(self._listing.commitless)
        return tuple(dropwhile(lost.__contains__, versions))

    def span(
        self, a: int | str | datetime | Ref, b: int | str | datetime | Ref, mode: ChangeMode
    ) -> tuple[int, int, ChangeMode]:
        """Return the versions before the first and of the last change, and the mode: `diff` for `auto` and two tags."""
        if mode not in get_args(ChangeMode):
            raise InvalidArgumentError(f"{mode!r} is not a mode. Modes: {', '.join(get_args(ChangeMode))}.")
        first, last = (parse_ref(ref, tags=self.tags) for ref in (a, b))
        if mode == "auto" and isinstance(first, Tag) and isinstance(last, Tag):
            mode = "diff"
        start, end = resolve_range(first, last, self, whole=mode != "diff")
        return start, end, mode

    def _existing(self, ref: Ref) -> int:
        version = resolve(ref, self)
        if version not in self.listed:
            self._format.version(version)
        return version

    def _last_at(self, time: datetime) -> int | None:
        """Return the last version committed at or before a time; None if all are later."""
        try:
            return resolve(AsOf(time=time), VersionResolver(self._table, self._format, listed=self.listed))
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
