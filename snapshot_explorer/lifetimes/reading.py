"""From a table's log to its `FileLifetimes`, reading what is not known yet."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from os import PathLike

from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.lifetimes.index import FileLifetimes
from snapshot_explorer.lifetimes.stored import file_of, load, save
from snapshot_explorer.model import Listing
from snapshot_explorer.progress import Step, step
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

_FIRST = 2_000
"""Versions whose changes are read first; by what there are of them it is told how many to read at once after that."""
_FASTER = 8
"""How many times as many versions are read next as before, at most: later ones may have changed more."""
_AT_ONCE = 100_000
"""Changes in memory at the same time, about; of a table with more files so many as it has."""
_TRIES = 5


def read_lifetimes(table_format: TableFormat, known: FileLifetimes | None = None, *, title: str) -> FileLifetimes:
    """Return the lifetimes of the data files of a table, over all versions whose files can be told.

    One pass over the log: the files of the earliest version, of each behind a gap and of each whose commit is gone, and
    the changes of all others.
    Of a table that is known already only its newer versions are read, and a listing and the newest known commit, which
    tell that it is the same history still; otherwise, and if no known version is left, all is read anew. Versions that
    have expired since stay known.

    Args:
        table_format: The table.
        known: Lifetimes of the table that were read before.
        title: What to call them when they are drawn.

    Raises:
        CorruptTableError: A file of the log is missing or damaged; the message names it.
        SnapshotNotFoundError: Versions kept expiring while they were read.
    """
    for left in reversed(range(_TRIES)):
        listing = table_format.listing(0)
        base = known if known is not None and _continues(table_format, known, listing) else FileLifetimes(title=title)
        try:
            found = _extended(table_format, base, listing)
        except SnapshotNotFoundError:
            # A version may have expired since the listing.
            if not left:
                raise
            continue
        if found is base or _is_unchanged(table_format, found, base, listing):
            return found
    raise SnapshotNotFoundError(
        f"Versions expired, or history was rewritten, each of {_TRIES} times it was read. "
        "Try again when less is going on."
    )


def keep_lifetimes(
    table_format: TableFormat,
    known: FileLifetimes | None,
    *,
    cache_dir: str | PathLike[str],
    table: Sequence[str | None],
    title: str,
) -> FileLifetimes:
    """Return lifetimes like `read_lifetimes`, which are kept in a folder: there what was read before is found.

    Args:
        table_format: The table.
        known: Lifetimes of the table that were read before; without it those in the folder, if there are.
        cache_dir: The user's folder, never in the table.
        table: What tells the table from others, its location first.
        title: What to call them when they are drawn.

    Raises:
        InvalidArgumentError: The folder is in the table.
        StorageError: The folder cannot be written.
    """
    file = file_of(cache_dir, table)
    kept = load(file, title=title)
    newer = known if known is not None and (kept is None or known.versions[-1:] > kept.versions[-1:]) else kept
    result = read_lifetimes(table_format, newer, title=title)
    if result is not kept and result.versions:
        save(file, result)
    return result


def fingerprint_of(table_format: TableFormat, version: int) -> str:
    """Return what tells a commit from another of the same number. Costs what `commits` costs."""
    commit = table_format.commits([version]).select(["version", "committed_at", "details"])
    return blake2b(repr(commit.to_pylist()).encode(), digest_size=16).hexdigest()


def time_of(table_format: TableFormat, version: int) -> datetime | None:
    """Return when a version was committed; None if nothing says so, as where only a checkpoint is left."""
    try:
        return table_format.committed_at([version])[0]
    except CorruptTableError as error:
        log.debug("no time: %s", error)
        return None


def states_of(listing: Listing) -> list[int]:
    """Return the versions of a listing whose files can be told, ascending."""
    return sorted(set(listing.reachable).difference(listing.stateless))


def _continues(table_format: TableFormat, known: FileLifetimes, listing: Listing) -> bool:
    """Return whether a listing is of the history that is known, or of one that goes on from it."""
    states = states_of(listing)
    if not states or not known.versions or states[-1] < known.versions[-1]:
        return False
    newest = known.versions[-1]
    if any(version < newest for version in set(states).difference(known.versions)):
        return False  # they were not shown when the others were read, by a listing that was behind
    if newest in states:
        return repr(listing.identity) == known.identity or fingerprint_of(table_format, newest) == known.fingerprint
    # The newest known one has expired. One that is still there, such as a tag's, must be the same.
    both = max(set(states).intersection(known.versions), default=None)
    return both is not None and time_of(table_format, both) == known.time_of(both)


def _extended(table_format: TableFormat, base: FileLifetimes, listing: Listing) -> FileLifetimes:
    """Return lifetimes that know the newer versions of a listing too."""
    newest = base.versions[-1] if base.versions else None
    found = base
    unknown = [version for version in states_of(listing) if newest is None or version > newest]
    with step("Reading the changes of versions", total=len(unknown)) as reading:
        for run in listing.runs(unknown, listing.commitless):
            rest = run
            if not found.versions or listing.predecessor(run[0]) != found.versions[-1] or run[0] in listing.commitless:
                found, rest = _with_first_state(table_format, found, run)
                reading.advance(len(run) - len(rest))
            found = _with_later_changes(table_format, found, rest, reading)
    if unknown and not found.versions:
        raise SnapshotNotFoundError("All versions expired while their files were read. Try again.")
    if found is base:
        return base
    return found.with_fingerprint(repr(listing.identity), fingerprint_of(table_format, found.versions[-1]))


def _with_later_changes(
    table_format: TableFormat, found: FileLifetimes, rest: Sequence[int], reading: Step
) -> FileLifetimes:
    """Return lifetimes that know the versions behind the known ones too, by what each changed."""
    number = _FIRST
    while rest:
        some, rest = rest[:number], rest[number:]
        times, changes = table_format.committed_at(some), table_format.changes(some, changelog=False)
        found = found.extended(some, times, changes)
        reading.advance(len(some))
        # A step takes time for the live files too, whatever it reads; with so many changes that counts little.
        wanted = max(_AT_ONCE, len(found)) * len(some) // max(1, len(changes))
        number = min(max(1, wanted), _FASTER * len(some))
    return found


def _with_first_state(
    table_format: TableFormat, base: FileLifetimes, run: Sequence[int]
) -> tuple[FileLifetimes, Sequence[int]]:
    """Return lifetimes that know the first version of a run whose files can be told, and the versions behind it."""
    for place, version in enumerate(run):
        try:
            files = table_format.version(version).files()
        except SnapshotNotFoundError as error:
            log.debug("left out: %s", error)
            continue
        return base.with_state(version, time_of(table_format, version), files), run[place + 1 :]
    return base, ()


def _is_unchanged(table_format: TableFormat, found: FileLifetimes, base: FileLifetimes, listing: Listing) -> bool:
    """Return whether the versions that were read are still there, and no other, and the newest is still the same."""
    again = table_format.listing(0)
    existing = set(states_of(again))
    if not set(found.versions).difference(base.versions) <= existing:
        return False
    if existing.intersection(states_of(listing)).difference(found.versions):
        return False  # one that was not found when it was read is there after all
    newest = found.versions[-1:]
    return again.identity == listing.identity or all(
        time_of(table_format, version) == found.time_of(version) for version in newest
    )
