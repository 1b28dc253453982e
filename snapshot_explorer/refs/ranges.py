"""The versions after one and up to another."""

from collections.abc import Sequence

from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.model import Listing
from snapshot_explorer.refs.records import Earliest, Ref, Version
from snapshot_explorer.refs.search import History, resolve

_SHOWN = 5


def resolve_span(first: Ref, last: Ref, history: History, *, whole: bool) -> tuple[int, int]:
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
        _check_whole(start, end, history.listing())
    return start, end


def _start(ref: Ref, history: History, *, whole: bool) -> int:
    listing = history.listing()
    before = listing.predecessor(listing.versions[0]) if whole and listing.versions else None
    is_before = ref == Earliest(back=1) or (isinstance(ref, Version) and not ref.back and ref.number == before)
    if before is not None and is_before:
        return before
    return resolve(ref, history)


def _check_whole(first: int, last: int, listing: Listing) -> None:
    """Refuse a range in which a version is missing."""
    missing = listing.first_missing(first, last)
    if missing is None:
        return
    there = listing.between(first, last)
    some = ", ".join(map(str, there[:_SHOWN])) + (", ..." if len(there) > _SHOWN else "")
    # Where versions count from 0, what is before the earliest has no number to speak of.
    after = f"after {first} and " if first >= 0 else ""
    begin = _whole_from(there, last, listing)
    advice = f"Ask from {begin} on" if begin < last else "Ask for a range without it, or compare the two versions"
    raise SnapshotNotFoundError(
        f"Version {missing}, {after}up to {last}, does not exist or has expired. There are: {some or 'none'}. {advice}."
    )


def _whole_from(there: Sequence[int], last: int, listing: Listing) -> int:
    """Return the version from which on, up to the last, none is missing; the last one if there is no such."""
    run = listing.runs(there)[-1] if there else ()
    return run[0] if run and run[-1] == last else last
