"""Read what many versions record, although the metadata of some is missing, damaged or denied.

Such versions are returned with the reason, in place of an error for all: an answer over many versions uses the others,
and names these. Nothing else catches errors of single versions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from snapshot_explorer.errors import (
    AccessDeniedError,
    CorruptTableError,
    LimitError,
    MissingFileError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.model import capitalized, runs_of, runs_text

T = TypeVar("T")
Reasons = Mapping[int, SnapshotExplorerError]
"""Why versions could not be read, by version."""

UNREADABLE = (
    CorruptTableError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    MissingFileError,
    AccessDeniedError,
    LimitError,
)
"""Errors of a version that cannot be read, rather than of a condition, or of a storage that does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyRead(Generic[T]):
    """What was read of some versions."""

    parts: Sequence[tuple[Sequence[int], T]]
    """Consecutive versions among those requested, in their order, and what was read of each group."""
    unread: Reasons
    """The other versions."""


def read_apart(read: Callable[[Sequence[int]], T], versions: Sequence[int]) -> PartlyRead[T]:
    """Return what can be read of versions: of all at once, or by halving down to those that cannot be read.

    These are tried twice, so that one wrong answer of a storage does not count.

    Args:
        read: Reads something of versions, in their order. Raises one of UNREADABLE if some cannot be read.
    """
    parts: list[tuple[Sequence[int], T]] = []
    unread: dict[int, SnapshotExplorerError] = {}
    waiting = [(versions, 0)]
    while waiting:
        group, tries = waiting.pop()
        try:
            parts.append((group, read(group)))
        except UNREADABLE as error:
            middle = len(group) // 2
            if middle:
                waiting += [(group[middle:], 0), (group[:middle], 0)]
            elif group and not tries:
                waiting.append((group, 1))
            elif group:
                unread[group[0]] = _without_frames(error)
            else:
                raise
    return PartlyRead(parts=parts, unread=unread)


def unread_notes(unread: Reasons, subject: str = "") -> tuple[str, ...]:
    """Return a sentence for each reason why versions could not be read, with the versions.

    Args:
        subject: What of the versions could not be read, such as `the commit of`; empty for the versions as such.
    """
    versions: dict[str, list[int]] = {}
    for version, error in sorted(unread.items()):
        versions.setdefault(str(error), []).append(version)
    return tuple(
        f"{capitalized(f'{subject} {runs_text(runs_of(numbers))}'.lstrip())} cannot be read: {reason.rstrip('.')}."
        for reason, numbers in versions.items()
    )


def _without_frames(error: SnapshotExplorerError) -> SnapshotExplorerError:
    """Return an error to keep: without its traceback and causes, whose frames have the bytes that were read."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
