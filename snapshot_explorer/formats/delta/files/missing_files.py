"""The error for a missing file: removed by the table and deleted by VACUUM, or lost."""

from collections.abc import Callable
from dataclasses import dataclass

from snapshot_explorer.core.errors import CorruptTableError, SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.formats.corrupt_files import LOADABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """The version that is read, and the search for a later version without a file."""

    version: int
    removed_in: Callable[[str], int | None]
    """Returns a later version that does not need a file; None if the newest one needs it, or if it is unknown."""


def missing_file_error(name: str, path: str, removals: Removals | None) -> SnapshotExplorerError:
    """Return the error for a file that does not exist.

    A version whose files VACUUM deleted has expired. A file that the newest version needs was lost.

    Args:
        name: The file and its role, for the message.
        path: The file, for `Storage.open`.
        removals: The version, and how a later version without the file is found.
    """
    removed_in = removals.removed_in(path) if removals else None
    if removals is None or removed_in is None:
        return CorruptTableError(
            Message(
                f"{name[0].upper()}{name[1:]} does not exist. No newer version is known that does without it: it was "
                "removed by hand or lost. Restore it from a copy of the table; ",
                LOADABLE,
                ".",
            )
        )
    return SnapshotNotFoundError(
        Message(
            f"Version {removals.version} has expired: {name} does not exist. It is not among the files of version "
            f"{removed_in} and newer ones, so VACUUM may have deleted it; ",
            LOADABLE,
            ".",
        )
    )
