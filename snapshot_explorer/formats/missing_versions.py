"""Missing versions: the errors for absent versions, and for listings with fewer versions than an earlier listing.

Versions expire from the oldest on; neither a table nor a version after the earliest one disappears by itself. An empty
or shorter listing means that the folder was moved or dropped, that the storage is not up to date, or that a proxy
answered. So it is refused, and the earlier listing is kept, unless the table itself proves a rollback.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from snapshot_explorer.core.errors import SnapshotNotFoundError, StorageError, TableNotFoundError
from snapshot_explorer.core.records import absence_text
from snapshot_explorer.core.text import list_names

TRIES = 3
"""Attempts before a listing is refused: an object store may not be up to date, or a writer may be active."""
PAUSE_SECONDS = 0.1
_MAX_NAMED = 5
"""The maximum number of versions that a message lists."""


def pause() -> None:
    """Wait before a listing, or a file that a writer may be writing, is read again."""
    time.sleep(PAUSE_SECONDS)


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def lost_versions(before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """Return the versions of an earlier listing that a later one lacks, except expired ones before its first.

    Args:
        before: Versions of the earlier listing, ascending.
        after: Versions of the later one, ascending.
    """
    if not before:
        return ()
    if not after:
        return tuple(before)
    first, last = after[0], after[-1]
    if last - first + 1 == len(after) and before[-1] <= last:
        return ()
    found_set = set(after)
    return tuple(version for version in before if version >= first and version not in found_set)


def missing_table_error(root: str, metadata: str, newest: int, since: datetime) -> TableNotFoundError:
    """Return the error for a table that existed and whose listing is empty.

    Args:
        what: The missing or empty part, such as "its folder _delta_log".
        newest: The newest version of the last listing.
        since: The time of the last listing.
    """
    return TableNotFoundError(
        f"{root} shows no version any more: {metadata} is missing or empty. At {_utc_text(since)} version {newest} was "
        "the newest. The table was moved or dropped, or the storage does not show it now. What was read before is "
        "kept. Try again; if the table is gone for good, or was recreated, open it again."
    )


def missing_versions_error(root: str, lost: Sequence[int], after: Sequence[int], since: datetime) -> StorageError:
    """Return the error for a storage that shows fewer versions than before.

    Args:
        lost: The versions that are missing, ascending.
        after: The versions that are shown, ascending.
        since: The time of the last listing.
    """
    shown = f"{after[0]} to {after[-1]}" if len(after) > 1 else str(after[0])
    return StorageError(
        f"{root} shows fewer versions than before: {_version_list(lost)} {'is' if len(lost) == 1 else 'are'} "
        f"missing, which the storage showed at {_utc_text(since)}; now it shows {shown}. The storage may be behind, a "
        "writer may be at work, or files of the table were removed. What was read before is kept. Try again; if the "
        "versions were removed on purpose, open the table again."
    )


def _version_list(versions: Sequence[int]) -> str:
    if len(versions) == 1:
        return f"version {versions[0]}"
    return f"versions {list_names([*map(str, versions)], _MAX_NAMED)}"


def _utc_text(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def absent_version_error(
    root: str, version: int, versions: Sequence[int], state: str | None = None
) -> SnapshotNotFoundError:
    """Return the error for a version that is not among the existing ones.

    Args:
        versions: The existing versions, ascending.
        state: Why it is absent, as the end of a sentence; by default that follows from its number.
    """
    if not versions:
        return SnapshotNotFoundError(
            f"Version {version} does not exist. {root} has no version yet: nothing has been committed to it."
        )
    first, last = versions[0], versions[-1]
    gaps = ", with gaps" if len(versions) < last - first + 1 else ""
    existing = f"{first} to {last}{gaps}" if first != last else f"{first}"
    nearest = min(versions, key=lambda number: abs(number - version))
    return SnapshotNotFoundError(
        f"Version {version} {state or absence_text(version, first, last)}. Available versions: {existing}. "
        f"Try {nearest}, latest or @2h."
    )


def empty_table_error(root: str) -> SnapshotNotFoundError:
    """Return the error for a request that needs a version of a table without any."""
    return SnapshotNotFoundError(f"{root} has no version yet: nothing has been committed to it.")
