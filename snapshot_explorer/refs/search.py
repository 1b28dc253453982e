"""The search for the version that a ref names."""

import difflib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, assert_never

from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.model import Listing
from snapshot_explorer.refs.records import LONGEST_TAG, AsOf, Earliest, Latest, Ref, Tag, Version, quote_name
from snapshot_explorer.refs.times import format_time, utc


class NothingBeforeError(SnapshotNotFoundError):
    """All versions were committed after a time; none has expired since they were listed."""


class History(Protocol):
    """What the search for a version needs to know of a table."""

    def listing(self) -> Listing:
        """Return a listing of the versions that can be loaded. One listing."""
        ...

    def tags(self) -> Mapping[str, int]:
        """Return each tag's version."""
        ...

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware. Reads one small file per version.

        Raises:
            SnapshotNotFoundError: One has expired since the listing.
        """
        ...

    def candidates_at(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:
        """Return the run of these versions in which the last one committed by a time is looked for."""
        ...

    def latest(self) -> int | None:
        """Return the newest version, None for a table without versions; cheap."""
        ...


def resolve(ref: Ref, history: History) -> int:
    """Return the version that a ref names.

    A number alone asks nothing and is returned without a look whether it exists: the caller loads it and, if it is
    not there, raises `not_found`. `latest` asks for `latest()`, a tag for the tags. With steps, each costs one
    listing; a time costs one and, where a version's own file tells its time, about log2(n) small reads. Times are
    searched as Paimon does, as if they never went back with rising versions; where writers' clocks disagree, a
    neighbour may be found. Delta's times never go back.

    Raises:
        SnapshotNotFoundError: No version answers to it; the message says which exist.
        InvalidArgumentError: A tag's name can be read in two ways.

    Source: paimon docs, "Time travel"; SnapshotManager.earlierOrEqualTimeMills.
    """
    match ref:
        case Version(back=0):
            return ref.number
        case Version():
            return _step_back(ref, _index_of(ref, history), history)
        case Latest(back=0):
            newest = history.latest()
            if newest is None:
                raise _no_versions_error(ref)
            return newest
        case Latest():
            return _step_back(ref, len(_existing_versions(ref, history)) - 1, history)
        case Earliest():
            return _step_back(ref, 0, history)
        case Tag():
            return _resolve_tag(ref, history)
        case AsOf():
            return _resolve_time(ref, history)
        case _:
            assert_never(ref)


def not_found(ref: Ref | int, listing: Listing) -> SnapshotNotFoundError:
    """Return the error for a version that is not there, with the versions that are and the nearest of them.

    Args:
        ref: What was asked for.
        listing: The versions that exist.
    """
    versions = listing.versions
    if not versions:
        return _no_versions_error(ref)
    first, last = versions[0], versions[-1]
    available = f"Available: {first} to {last}" if first != last else f"Available: only {first}"
    gaps = ", with gaps" if listing.has_gaps else ""
    number = ref if isinstance(ref, int) else ref.number if isinstance(ref, Version) and not ref.back else None
    if number is None:
        return SnapshotNotFoundError(f"No snapshot answers to {ref}. {available}{gaps}. Try earliest or {last}.")
    place = bisect_left(versions, number)
    nearest = min(versions[max(0, place - 1) : place + 1], key=lambda version: abs(version - number))
    expired = " (older ones expired)" if number < first else ""
    return SnapshotNotFoundError(
        f"No snapshot answers to {number}. {available}{gaps}{expired}. Try {nearest}, latest or a time such as @2h."
    )


def _index_of(ref: Version, history: History) -> int:
    versions = _existing_versions(ref, history)
    place = bisect_left(versions, ref.number)
    if place == len(versions) or versions[place] != ref.number:
        raise not_found(ref.number, history.listing())
    return place


def _step_back(ref: Ref, place: int, history: History) -> int:
    """Return the version so many steps before a place in the list of existing ones."""
    versions = _existing_versions(ref, history)
    if place < ref.back:
        several = f"{versions[0]} to {versions[-1]}, {len(versions):,} versions"
        raise SnapshotNotFoundError(
            f"No snapshot answers to {ref}: it goes back past the earliest. "
            f"Available: {several if len(versions) > 1 else f'only {versions[0]}'}. Try earliest."
        )
    return versions[place - ref.back]


def _existing_versions(ref: Ref, history: History) -> Sequence[int]:
    versions = history.listing().versions
    if not versions:
        raise _no_versions_error(ref)
    return versions


def _resolve_tag(ref: Tag, history: History) -> int:
    tags = history.tags()
    literal_names = [
        name for name in (f"{ref.name}~{ref.back}", ref.name + "^" * min(ref.back, LONGEST_TAG)) if name in tags
    ]
    literal_names = literal_names if ref.back else []
    if literal_names and ref.name in tags:
        raise InvalidArgumentError(
            f"{ref} can be read in two ways: there are the tags {ref.name!r} and {literal_names[0]!r}. "
            f"Write tag:{quote_name(literal_names[0])}, or {tags[ref.name]}~{ref.back}."
        )
    if literal_names:
        return tags[literal_names[0]]
    if ref.name not in tags:
        raise _unknown_tag_error(ref, tags)
    if not ref.back:
        return tags[ref.name]
    # The tagged version itself may have expired: tags outlive versions.
    return _step_back(ref, bisect_left(_existing_versions(ref, history), tags[ref.name]), history)


def _unknown_tag_error(ref: Tag, tags: Mapping[str, int]) -> SnapshotNotFoundError:
    if not tags:
        return SnapshotNotFoundError(
            f"No tag is called {ref.name!r}: the table has no tags. Try latest or a time such as @2h."
        )
    near = difflib.get_close_matches(ref.name, tags, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(str(Tag(name=name)) for name in near)}?" if near else "Try one of them."
    names = sorted(tags)
    some = ", ".join(names[:10]) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")  # noqa: PLR2004 - a line
    return SnapshotNotFoundError(f"No tag is called {ref.name!r}. Tags: {some}. {advice}")


def _resolve_time(ref: AsOf, history: History) -> int:
    versions = _existing_versions(ref, history)
    run = history.candidates_at(ref.time, versions)
    seen: dict[int, datetime] = {}
    low = oldest = begin = bisect_left(versions, run[0])
    high = end = low + len(run)
    while low < high:
        middle = (low + high) // 2
        try:
            seen[middle] = history.committed_at([versions[middle]])[0]
        except SnapshotNotFoundError:
            low = oldest = middle + 1  # expired since the listing, and all before it
            continue
        if seen[middle] <= ref.time:
            low = middle + 1
        else:
            high = middle
    if low > oldest:
        return _step_back(ref, low - 1, history)
    if oldest == end:
        raise SnapshotNotFoundError(f"No snapshot answers to {ref}: the versions expired meanwhile. Ask again.")
    time = utc(seen.get(oldest) or history.committed_at([versions[oldest]])[0])
    kind = NothingBeforeError if oldest == begin else SnapshotNotFoundError
    raise kind(
        f"No snapshot answers to {ref}: nothing that exists was committed at or before then. "
        f"The earliest is {versions[oldest]}, of {format_time(time)}. Try earliest or @{format_time(time)}."
    )


def _no_versions_error(ref: Ref | int) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(
        f"No snapshot answers to {ref}: the table has no version yet. Update after the first commit."
    )


_SHOWN = 5


def resolve_range(first: Ref, last: Ref, history: History, *, whole: bool) -> tuple[int, int]:
    """Return the version that changes begin after, and the one that they end with.

    Args:
        first: Names the first; as a number, or as `earliest^`, it may be one before the earliest version.
        last: Names the last.
        history: Where versions are looked up.
        whole: Whether every version between must exist; otherwise the two must, and only they.

    Raises:
        InvalidArgumentError: The last comes before the first.
        SnapshotNotFoundError: A version does not exist.
    """
    end = resolve(last, history)
    start = _start(first, history, whole=whole)
    if start > end:
        raise InvalidArgumentError(f"Version {end} comes before {start}. Give the earlier one first.")
    if whole:
        _check_complete(start, end, history.listing())
    return start, end


def _start(ref: Ref, history: History, *, whole: bool) -> int:
    listing = history.listing()
    before = listing.predecessor(listing.versions[0]) if whole and listing.versions else None
    is_before = ref == Earliest(back=1) or (isinstance(ref, Version) and not ref.back and ref.number == before)
    if before is not None and is_before:
        return before
    return resolve(ref, history)


def _check_complete(first: int, last: int, listing: Listing) -> None:
    """Refuse a range in which a version is missing."""
    missing = listing.first_missing(first, last)
    if missing is None:
        return
    existing = listing.between(first, last)
    some = ", ".join(map(str, existing[:_SHOWN])) + (", ..." if len(existing) > _SHOWN else "")
    # Where versions count from 0, what is before the earliest has no number to speak of.
    after = f"after {first} and " if first >= 0 else ""
    begin = _complete_from(existing, last, listing)
    advice = f"Ask from {begin} on" if begin < last else "Ask for a range without it, or compare the two versions"
    raise SnapshotNotFoundError(
        f"Version {missing}, {after}up to {last}, does not exist or has expired. There are: {some or 'none'}. {advice}."
    )


def _complete_from(existing: Sequence[int], last: int, listing: Listing) -> int:
    """Return the version from which on, up to the last, none is missing; the last one if there is no such."""
    run = listing.runs(existing)[-1] if existing else ()
    return run[0] if run and run[-1] == last else last
