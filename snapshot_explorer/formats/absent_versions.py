"""Errors for versions that do not exist."""

from collections.abc import Sequence

from snapshot_explorer.errors import SnapshotNotFoundError
from snapshot_explorer.model import absence_text


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
