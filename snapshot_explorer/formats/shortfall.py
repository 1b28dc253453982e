"""A listing that shows less than an earlier one: which versions are lost, and the errors that say so.

Versions expire from the oldest on; a table that was there, and versions after the earliest one, do not go by
themselves. An empty or shorter listing is a folder that was moved or dropped, a storage that is behind, or a proxy that
answers in its place. So it is refused, and what was read before stays, unless the table itself proves that it went
back.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from snapshot_explorer.errors import StorageError, TableNotFoundError

TRIES = 3
"""How often a listing is made before it is refused: an object store may be behind, a writer may be at work."""
PAUSE_SECONDS = 0.1
_NAMED = 5
"""How many versions a message names."""


def now() -> datetime:
    """Return the time, to be kept with a listing."""
    return datetime.now(UTC)


def lost_versions(before: Sequence[int], found: Sequence[int]) -> tuple[int, ...]:
    """Return the versions of an earlier listing that a later one lacks, but for those before its first: they expired.

    Args:
        before: Versions of the earlier listing, ascending.
        found: Versions of the later one, ascending.
    """
    if not before:
        return ()
    if not found:
        return tuple(before)
    first, last = found[0], found[-1]
    if last - first + 1 == len(found) and before[-1] <= last:
        return ()
    there = set(found)
    return tuple(version for version in before if version >= first and version not in there)


def table_gone(root: str, what: str, newest: int, since: datetime) -> TableNotFoundError:
    """Return the error of a table that was there and of which nothing is shown any more.

    Args:
        root: The table's root.
        what: What is missing or empty, such as "its folder _delta_log".
        newest: The newest version of the last listing.
        since: The time of the last listing.
    """
    return TableNotFoundError(
        f"{root} shows no version any more: {what} is missing or empty. At {_spelled(since)} version {newest} was the "
        "newest. The table was moved or dropped, or the storage does not show it now. What was read before stays. Try "
        "again; if the table is gone for good, or was made anew, open it again."
    )


def fewer_versions(root: str, lost: Sequence[int], found: Sequence[int], since: datetime) -> StorageError:
    """Return the error of a storage that shows fewer versions than before.

    Args:
        root: The table's root.
        lost: The versions that are missing, ascending.
        found: The versions that are shown, ascending.
        since: The time of the last listing.
    """
    shown = f"{found[0]} to {found[-1]}" if len(found) > 1 else str(found[0])
    return StorageError(
        f"{root} shows fewer versions than before: {_named(lost)} {'is' if len(lost) == 1 else 'are'} missing, which "
        f"the storage showed at {_spelled(since)}; now it shows {shown}. The storage may be behind, a writer may be at "
        "work, or files of the table were removed. What was read before stays. Try again; if the versions were removed "
        "on purpose, open the table again."
    )


def _named(versions: Sequence[int]) -> str:
    if len(versions) == 1:
        return f"version {versions[0]}"
    more = f" and {len(versions) - _NAMED:,} more" if len(versions) > _NAMED else ""
    return f"versions {', '.join(map(str, versions[:_NAMED]))}{more}"


def _spelled(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")
