"""Read what many versions record, although the metadata of some is missing, damaged or denied.

Such versions are returned with the reason, in place of an error for all: an answer over many versions uses the others,
and names these. Nothing else catches errors of single versions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.errors import UNREADABLE, SnapshotExplorerError
from snapshot_explorer.formats.interface import TableFormat
from snapshot_explorer.model import capitalized, runs_of, runs_text

T = TypeVar("T")
Reasons = Mapping[int, SnapshotExplorerError]
"""Why versions could not be read, by version."""


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


def readable_changes(
    table_format: TableFormat, versions: Sequence[int], *, changelog: bool = True
) -> tuple[pa.Table, Reasons]:
    """Return the CHANGES of versions, and which versions are missing among them, with the reasons."""
    read = read_apart(lambda group: table_format.changes(group, changelog=changelog), versions)
    return pa.concat_tables([frames.CHANGES.empty_table(), *(part for _, part in read.parts)]), read.unread


def readable_commits(table_format: TableFormat, versions: Sequence[int]) -> tuple[pa.Table, Reasons]:
    """Return the COMMITS of versions, in their order, and those that cannot be read, whose rows have only a time."""
    read = read_apart(table_format.commits, versions)
    if not read.unread:
        return pa.concat_tables([frames.COMMITS.empty_table(), *(part for _, part in read.parts)]), {}
    rows = {row["version"]: row for _, part in read.parts for row in part.to_pylist()}
    unread = list(read.unread)
    for version, time in zip(unread, readable_times(table_format, unread), strict=True):
        rows[version] = {"version": version, "committed_at": time, "kind": "other", "tags": []}
    return pa.Table.from_pylist([rows[version] for version in versions], frames.COMMITS), read.unread


def readable_times(table_format: TableFormat, versions: Sequence[int]) -> list[datetime | None]:
    """Return when versions were committed, in their order; None where that cannot be read."""
    read = read_apart(table_format.committed_at, versions)
    times = {version: time for group, part in read.parts for version, time in zip(group, part, strict=True)}
    return [times.get(version) for version in versions]


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
