"""Resolve refs to versions."""

import difflib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import assert_never

from snapshot_explorer.core.errors import UNREADABLE, InvalidArgumentError, SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message, without_period
from snapshot_explorer.core.records import Listing
from snapshot_explorer.core.refs.missing import no_versions_error, not_found, range_text
from snapshot_explorer.core.refs.records import (
    LONGEST_NAME,
    AsOf,
    Earliest,
    Latest,
    OfBranch,
    Ref,
    Tag,
    Version,
    brief_repr,
    format_time,
    quote_name,
    to_utc,
)
from snapshot_explorer.core.text import list_names
from snapshot_explorer.history.open_branch import Log


class NothingBeforeError(SnapshotNotFoundError):
    """All versions were committed after a time, and none has expired since the listing."""


def resolve(ref: Ref, log: Log) -> int:
    """Return the version of a ref; a short form, such as `v5`, is also compared with the names of the tags.

    A number without steps is returned unchecked and reads nothing: the caller loads the version, and raises
    `not_found` if it does not exist. `latest` calls `latest()`, a tag reads the tags. Any ref with steps costs one
    listing. A time costs one listing and, if each version's own file contains its time, about log2(n) small reads.
    Like Paimon, the search assumes that times ascend with versions: if the clocks of writers disagree, it may return
    a neighboring version. The times of Delta always ascend; of formats whose times do not, it has one candidate.

    Source: paimon docs, "Time travel"; SnapshotManager.earlierOrEqualTimeMills.
    """
    tag = _tag_of_the_same_name(ref, log)
    if tag is None:
        return _resolve(ref, log)
    tagged = _resolve_tag(tag, log)
    try:
        version: int | None = _resolve(ref, log)
    except SnapshotNotFoundError:
        version = None
    if version == tagged:
        return tagged
    which = f"version {version}" if version is not None else "no version"
    raise InvalidArgumentError(
        f"{brief_repr(tag.name)} is ambiguous: a tag of this name is version {tagged}, and {ref} is {which}. "
        f"Write {tag} or {ref}."
    )


def _tag_of_the_same_name(ref: Ref, log: Log) -> Tag | None:
    """Return the tag that the text of a short form names, or None. Reads the tags of short forms only."""
    match ref:
        case Version(written=written) | Latest(written=written) | AsOf(written=written) if written:
            tags, back = log.tags(), ref.back
            names = [name for name in (f"{written}~{back}", written + "^" * min(back, LONGEST_NAME)) if back]
            whole = next((Tag(name=name) for name in names if name in tags), None)
            steps_back = -int(written) - 1 if isinstance(ref, Latest) and written.startswith("-") else 0
            return Tag(name=written, back=back - steps_back) if written in tags else whole
        case _:
            return None


def _resolve(ref: Ref, log: Log) -> int:
    """Return the version of a ref, whose text is not the name of a tag."""
    match ref:
        case Version(back=0):
            return ref.number
        case Version():
            return _step_back(ref, _index_of(ref, log), log)
        case Latest(back=0):
            newest = log.latest()
            if newest is None:
                raise no_versions_error(ref)
            return newest
        case Latest():
            return _step_back(ref, len(_existing_versions(ref, log)) - 1, log)
        case Earliest():
            return _step_back(ref, 0, log)
        case Tag():
            return _resolve_tag(ref, log)
        case AsOf():
            return _step_back(ref, _index_at(ref, log, _existing_versions(ref, log)), log)
        case OfBranch():
            raise InvalidArgumentError(
                Message(
                    f"{ref} is a version of a branch, and only versions of the open table can be used here. Open the "
                    "branch: ",
                    Hint("open_table", {"path": ..., "branch": ref.name}),
                    ".",
                )
            )
        case _:
            assert_never(ref)


def _index_of(ref: Version, log: Log) -> int:
    versions = _existing_versions(ref, log)
    index = bisect_left(versions, ref.number)
    if index == len(versions) or versions[index] != ref.number:
        raise not_found(ref.number, log.loadable)
    return index


def _step_back(ref: Ref, index: int, log: Log) -> int:
    """Return the version that is the ref's number of steps before a position among the existing versions."""
    versions = _existing_versions(ref, log)
    if index < ref.back:
        raise SnapshotNotFoundError(
            f"No version matches {ref}: it goes back past the earliest. "
            f"Available versions: {range_text(log.loadable)} ({len(versions):,} in total). Try earliest."
        )
    return versions[index - ref.back]


def _existing_versions(ref: Ref, log: Log) -> Sequence[int]:
    versions = log.loadable.versions
    if not versions:
        raise no_versions_error(ref)
    return versions


def _resolve_tag(ref: Tag, log: Log) -> int:
    tags = log.tags()
    literal_names = [
        name for name in (f"{ref.name}~{ref.back}", ref.name + "^" * min(ref.back, LONGEST_NAME)) if name in tags
    ]
    literal_names = literal_names if ref.back else []
    if literal_names and ref.name in tags:
        raise InvalidArgumentError(
            f"{ref} is ambiguous: the table has the tags {ref.name!r} and {literal_names[0]!r}. "
            f"Write tag:{quote_name(literal_names[0])} or {tags[ref.name]}~{ref.back}."
        )
    if literal_names:
        return tags[literal_names[0]]
    if ref.name not in tags:
        raise _unknown_tag_error(ref, tags)
    if not ref.back:
        return tags[ref.name]
    # The tagged version itself may have expired: tags outlive versions.
    return _step_back(ref, bisect_left(_existing_versions(ref, log), tags[ref.name]), log)


def _unknown_tag_error(ref: Tag, tags: Mapping[str, int]) -> SnapshotNotFoundError:
    if not tags:
        return SnapshotNotFoundError(f"Tag {ref.name!r} does not exist: the table has no tags. Try latest or @2h.")
    near = difflib.get_close_matches(ref.name, tags, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(str(Tag(name=name)) for name in near)}?" if near else "Use one of them."
    return SnapshotNotFoundError(f"Tag {ref.name!r} does not exist. Tags: {list_names(sorted(tags), 10)}. {advice}")


def last_committed_by(time: datetime, log: Log) -> int | None:
    """Return the last version committed at or before a time, loadable or not; None if all are later."""
    versions = log.listing.versions
    try:
        return versions[_index_at(AsOf(time=time), log, versions, follow_log=False)]
    except NothingBeforeError:
        return None


def _index_at(ref: AsOf, log: Log, versions: Sequence[int], *, follow_log: bool = True) -> int:
    """Return the index of the last of these versions committed at or before the time of a ref."""
    run = log.candidates_at(ref.time, versions, follow_log=follow_log)
    seen: dict[int, datetime] = {}
    unread: dict[int, SnapshotExplorerError] = {}
    low = oldest = begin = bisect_left(versions, run[0])
    high = end = low + len(run)
    while low < high:
        middle = (low + high) // 2
        if middle in unread:
            rest = [index for index in range(low, high) if index not in unread]
            if not rest:
                raise _unknown_time_error(ref, versions[low], unread[low])
            middle = rest[len(rest) // 2]
        try:
            seen[middle] = log.committed_at([versions[middle]])[0]
        except SnapshotNotFoundError:
            low = oldest = middle + 1  # expired since the listing, and all before it
            continue
        except UNREADABLE as error:
            unread[middle] = error
            continue
        if seen[middle] <= ref.time:
            low = middle + 1
        else:
            high = middle
    if low > oldest:
        return low - 1
    if oldest == end:
        raise SnapshotNotFoundError(f"No version matches {ref}: the versions expired during the search. Try again.")
    time = to_utc(seen.get(oldest) or log.committed_at([versions[oldest]])[0])
    error_class = NothingBeforeError if oldest == begin else SnapshotNotFoundError
    raise error_class(
        f"No version matches {ref}: no available version was committed at or before this time. "
        f"The earliest is {versions[oldest]}, committed at {format_time(time)}. Try earliest or @{format_time(time)}."
    )


def _unknown_time_error(ref: AsOf, version: int, error: SnapshotExplorerError) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(
        Message(
            f"Which version matches {ref} is unknown, because version {version} may have been committed before or "
            "after: ",
            without_period(error.message),
            ". Give the version instead of a time.",
        )
    )


_SHOWN = 5


def resolve_range(first: Ref, last: Ref, log: Log, *, whole: bool) -> tuple[int, int]:
    """Return the bounds of a range of changes: the version before the first change, and the version of the last.

    Args:
        first: The first bound. As a number, or as `earliest^`, it may be the version before the earliest one.
        last: The last bound.
        whole: Whether every version between must exist; otherwise only the bounds must.
    """
    end = resolve(last, log)
    start = _start(first, log, whole=whole)
    if start > end:
        raise InvalidArgumentError(f"Version {end} comes before {start}. Put the earlier version first.")
    if whole:
        _check_complete(start, end, log.loadable)
    return start, end


def _start(ref: Ref, log: Log, *, whole: bool) -> int:
    listing = log.loadable
    before = listing.before_earliest if whole else None
    is_before = ref == Earliest(back=1) or (isinstance(ref, Version) and not ref.back and ref.number == before)
    if before is not None and is_before:
        return before
    return resolve(ref, log)


def _check_complete(first: int, last: int, listing: Listing) -> None:
    """Raise SnapshotNotFoundError if a version of the range is missing."""
    missing = listing.first_missing(first, last)
    if missing is None:
        return
    existing = listing.between(first, last)
    examples = ", ".join(map(str, existing[:_SHOWN])) + (", ..." if len(existing) > _SHOWN else "")
    # The version before version 0 has no number.
    start = first if first >= 0 else "earliest^"
    begin = _complete_from(existing, last, listing)
    advice = f"Use {begin}..{last}" if begin < last else "Use a range without it, or compare the two versions"
    raise SnapshotNotFoundError(
        f"Version {missing} of {start}..{last} does not exist or has expired. "
        f"Available versions in this range: {examples or 'none'}. {advice}."
    )


def _complete_from(existing: Sequence[int], last: int, listing: Listing) -> int:
    """Return the first version from which no version up to the last is missing; the last if there is none."""
    run = listing.runs(existing)[-1] if existing else ()
    return run[0] if run and run[-1] == last else last
