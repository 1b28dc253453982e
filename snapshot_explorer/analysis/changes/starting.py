"""Positions in the history of a table: saved ones, of a ref, before and after a version."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.changes.new_commits import commits_after, readable_versions
from snapshot_explorer.analysis.changes.position import (
    MAX_PENDING,
    MAX_READ,
    ChangePosition,
    is_position,
    parse_position,
)
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.core.refs import parse_ref

if TYPE_CHECKING:
    from snapshot_explorer.core.refs import RefLike
    from snapshot_explorer.history import History


def start_position(source: History, start: RefLike | None) -> ChangePosition:
    """Return the position for a saved one, for a ref after whose version changes begin, or for None the very first.

    Raises:
        InvalidArgumentError: The position is of a table in another format, or on another branch.
        SnapshotNotFoundError: The version does not exist, or its rows cannot be read any more.
    """
    beginning = ChangePosition(format=source.table_format.name, branch=source.branch_name, version=None)
    if isinstance(start, str) and is_position(start):
        position = parse_position(start)
        if (position.format, position.branch) != (beginning.format, beginning.branch):
            raise InvalidArgumentError(
                f"The position is of branch {position.branch} of a {position.format} table, and this is branch "
                f"{beginning.branch} of a {beginning.format} table. Open that table or branch, or start from a version "
                "of this one."
            )
        return position
    version = None if start is None else source.version_of(start)
    if version is None:
        return beginning
    if version not in source.versions():
        raise SnapshotNotFoundError(
            f"The rows of {parse_ref(start)}, version {version}, cannot be read any more, so its next changes are "
            f"unknown. Versions with rows: {source.versions()[0]} to {source.versions()[-1]}."
        )
    return position_at(source, version)


def position_before(source: History, version: int) -> ChangePosition:
    """Return the position after which the changes of a version come first.

    Raises:
        SnapshotNotFoundError: As for `start_position`.
    """
    after, beginning = start_position(source, version), start_position(source, None)
    versions = readable_versions(source)
    if commits_after(source, beginning)[0].version == after.version:
        return beginning
    return position_at(source, versions[max(0, bisect_left(versions, version) - 1)])


def position_after(source: History, start: ChangePosition, most: int, last: ChangePosition) -> ChangePosition:
    """Return the position after at most some commits from a start on, up to `last`; the start if there are none.

    Raises:
        PositionError: The history does not continue from the start.
    """
    end = -1 if last.version is None else last.version
    commits = [item.version for item in commits_after(source, start) if item.version <= end]
    if not commits:
        return start
    return last if len(commits) <= most else position_at(source, commits[most - 1])


def newest_position(source: History) -> ChangePosition:
    """Return the position after the newest commit."""
    versions = readable_versions(source)
    return position_at(source, versions[-1]) if versions else start_position(source, None)


def position_at(source: History, version: int) -> ChangePosition:
    """Return the position after a version. Reads its commit, or a small part of it."""
    pending = tuple(item for item in source.listing.pending if item < version)
    versions = () if source.table_format.has_ordered_times else readable_versions(source)
    return ChangePosition(
        format=source.table_format.name,
        branch=source.branch_name,
        version=version,
        fingerprint=source.table_format.fingerprint(version),
        pending=pending[-MAX_PENDING:],
        read=versions[: bisect_right(versions, version)][-MAX_READ:],
    )
