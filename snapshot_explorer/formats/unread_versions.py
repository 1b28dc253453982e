"""Read the metadata of many versions, although the metadata of some is missing, damaged or denied.

Unreadable versions are returned with the reason, instead of an error for all: a result over many versions uses the
readable ones and names the others. Nothing else catches errors of single versions.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Generic, TypeVar

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE, SnapshotExplorerError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.records import capitalized, runs_of, runs_text
from snapshot_explorer.formats.interface import TableFormat
from snapshot_explorer.storage import Storage

T = TypeVar("T")
Reasons = Mapping[int, SnapshotExplorerError]
"""The reason why each unreadable version could not be read, by version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyRead(Generic[T]):
    """The results for the versions that can be read, and the errors of the others."""

    parts: Sequence[tuple[Sequence[int], T]]
    """Groups of consecutive requested versions, in their order, and the result of each group."""
    unread: Reasons
    """The versions that cannot be read."""


def read_apart(read: Callable[[Sequence[int]], T], versions: Sequence[int], storage: Storage) -> PartlyRead[T]:
    """Return the results for all readable versions: read at once or, after an error, by bisection.

    Versions that cannot be read are read once more from the storage, so that one wrong response does not count.

    Args:
        read: Reads something of versions, in their order. Raises one of UNREADABLE if some cannot be read.
        storage: The storage to read. Its cached files are dropped before the second attempt.
    """
    parts: dict[int, tuple[Sequence[int], T]] = {}
    failed: list[int] = []
    waiting = [(0, len(versions))]
    while waiting:
        start, end = waiting.pop()
        try:
            parts[start] = versions[start:end], read(versions[start:end])
        except UNREADABLE:
            middle = (start + end) // 2
            if start == end:
                raise
            if middle == start:
                failed.append(start)
            else:
                waiting += [(middle, end), (start, middle)]
    unread: dict[int, SnapshotExplorerError] = {}
    if failed:
        storage.forget_immutable()
    for index in failed:
        group = versions[index : index + 1]
        try:
            parts[index] = group, read(group)
        except UNREADABLE as error:
            unread[group[0]] = _without_frames(error)
    return PartlyRead(parts=[part for _, part in sorted(parts.items(), key=itemgetter(0))], unread=unread)


def readable_changes(
    table_format: TableFormat, versions: Sequence[int], *, changelog: bool = True
) -> tuple[pa.Table, Reasons]:
    """Return the CHANGES of versions, and the unreadable versions with the reasons."""
    read = read_apart(lambda group: table_format.changes(group, changelog=changelog), versions, table_format.storage)
    return pa.concat_tables([frames.CHANGES.empty_table(), *(part for _, part in read.parts)]), read.unread


def readable_commits(
    table_format: TableFormat, versions: Sequence[int], *, columns: Collection[str] | None = None
) -> tuple[pa.Table, Reasons]:
    """Return the COMMITS of versions, in their order, and the unreadable versions, whose rows have only a time.

    With `columns`, others may be null; see `TableFormat.commits`.
    """
    read = read_apart(lambda group: table_format.commits(group, columns=columns), versions, table_format.storage)
    commits = frames.concat_commits([part for _, part in read.parts])
    if not read.unread:
        return commits, {}
    rows = {row["version"]: row for row in commits.to_pylist()}
    unread = list(read.unread)
    for version, time in zip(unread, readable_times(table_format, unread), strict=True):
        rows[version] = {"version": version, "committed_at": time, "kind": "other", "tags": []}
    return pa.Table.from_pylist([rows[version] for version in versions], commits.schema), read.unread


def readable_times(table_format: TableFormat, versions: Sequence[int]) -> list[datetime | None]:
    """Return when versions were committed, in their order; None if that cannot be read."""
    read = read_apart(table_format.committed_at, versions, table_format.storage)
    times = {version: time for group, part in read.parts for version, time in zip(group, part, strict=True)}
    return [times.get(version) for version in versions]


def unread_notes(unread: Reasons, subject: str = "") -> tuple[str, ...]:
    """Return a sentence for each reason why versions could not be read, with the versions.

    Args:
        subject: The unreadable part of the versions, such as `the commit of`; empty for the whole versions.
    """
    versions: dict[str, list[int]] = {}
    for version, error in sorted(unread.items()):
        versions.setdefault(error.message, []).append(version)
    return tuple(
        Message(
            f"{capitalized(f'{subject} {runs_text(runs_of(numbers))}'.lstrip())} cannot be read: ",
            without_period(reason),
            ".",
        )
        for reason, numbers in versions.items()
    )


def _without_frames(error: SnapshotExplorerError) -> SnapshotExplorerError:
    """Return an error to keep: without its traceback and causes, whose frames have the bytes that were read."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
