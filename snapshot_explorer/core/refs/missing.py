"""Errors for versions that do not exist."""

from bisect import bisect_left

from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.records import Listing
from snapshot_explorer.core.refs.records import Ref, Version


def not_found(ref: Ref | int, listing: Listing) -> SnapshotNotFoundError:
    """Return the error for a missing version, with the available versions and the nearest one."""
    versions = listing.versions
    if not versions:
        return no_versions_error(ref)
    last = versions[-1]
    available = f"Available versions: {range_text(listing)}"
    number = ref if isinstance(ref, int) else ref.number if isinstance(ref, Version) and not ref.back else None
    if number is None:
        return SnapshotNotFoundError(f"No version matches {ref}. {available}. Try earliest or {last}.")
    index = bisect_left(versions, number)
    nearest = min(versions[max(0, index - 1) : index + 1], key=lambda version: abs(version - number))
    is_known = number and (listing.is_contiguous or number < versions[0])
    state = listing.absence(number) if is_known else "does not exist"
    return SnapshotNotFoundError(f"Version {number} {state}. {available}. Try {nearest}, latest or @2h.")


def range_text(listing: Listing) -> str:
    """Return the first and the last version, and whether some between are missing."""
    first, last = listing.versions[0], listing.versions[-1]
    return f"{first} to {last}{', with gaps' if listing.has_gaps else ''}" if first != last else f"{first}"


def no_versions_error(ref: Ref | int) -> SnapshotNotFoundError:
    """Return the error for a ref of a table without versions."""
    return SnapshotNotFoundError(
        f"No version matches {ref}: the table has no version yet. Update after the first commit."
    )
