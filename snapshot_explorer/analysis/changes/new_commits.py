"""The commits after a position, where the table's history still continues from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from snapshot_explorer.core.errors import CorruptTableError, MissingFileError, PositionError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import MAINTENANCE_KINDS, capitalized, gaps_text, runs_of, runs_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snapshot_explorer.analysis.changes.position import ChangePosition
    from snapshot_explorer.history import History


class NewCommit(NamedTuple):
    """A commit whose changes were not read, and the version before it."""

    before: int | None
    """The version with which it is compared; None if all its rows count as inserted."""
    version: int


def commits_after(source: History, position: ChangePosition) -> list[NewCommit]:
    """Return the commits after a position, ascending. One listing, and the commit at the position.

    After a position without a version, the first one is the oldest version after which no other is missing, whose rows
    all count as inserted.

    Raises:
        PositionError: The history does not continue from the position.
    """
    versions = readable_versions(source)
    if position.version is None:
        gaps = source.listing.gaps(versions)
        start = bisect_left(versions, gaps[-1].after) if gaps else 0
        return _pairs(None, versions[start:])
    check_position(source, position)
    return _pairs(position.version, versions[bisect_right(versions, position.version) :])


def _pairs(before: int | None, versions: Sequence[int]) -> list[NewCommit]:
    return [NewCommit(*pair) for pair in zip((before, *versions), versions, strict=False)]


def check_position(source: History, position: ChangePosition) -> None:
    """Check that a history has the version of a position, with the same commit and the same ones before it.

    Raises:
        PositionError: It does not; the message names what happened and how to go on.
    """
    lost = interruption(source, position)
    if lost is not None:
        raise _lost(source, lost.problem, position.version or 0, lost.more)


class Interruption(NamedTuple):
    """Why a history does not continue from a position."""

    problem: str
    """A sentence or two, for a reader of commits or of their rows."""
    more: str = ""
    """What to read instead, for a reader of rows."""


def interruption(source: History, position: ChangePosition) -> Interruption | None:
    """Return why a history does not continue from a position; None if it has the same commits up to there.

    Recognizes a table that was created again, a rollback, a version that has expired, and a commit that was completed
    late. One listing, and the commit at the position.
    """
    version = position.version
    if version is None:
        return None
    versions = readable_versions(source)
    if version not in versions:
        return Interruption(f"Version {version}, up to which changes were read, {_absence(source, version)}.")
    if source.table_format.fingerprint(version) != position.fingerprint:
        is_unknown = version in source.listing.without_commit
        return Interruption(
            f"The commit of version {version}, up to which changes were read, is gone: it is unknown whether the "
            "version is still the same."
            if is_unknown
            else f"Version {version} is not the one up to which changes were read: it has another commit. The table "
            "was created again, rolled back or renumbered since, or it is another table."
        )
    late = _completed_since(source, position, version)
    if not late:
        return None
    before = versions[: bisect_left(versions, late[0])][-1:]
    own = Hint("table.diff_rows", {"a": before[0], "b": late[0]}) if before else Hint("table.at", {"ref": late[0]})
    return Interruption(
        f"{capitalized(runs_text(runs_of(late)))} was completed after version {version}, up to which changes were "
        "read, although it began earlier.",
        Message(" Its changes were not read. ", own, f" has the changes of {late[0]}."),
    )


def _completed_since(source: History, position: ChangePosition, last: int) -> list[int]:
    """Return the versions before a position at the version `last` that were completed since, and changed rows.

    One of them need not have been pending then: a writer takes its instant before it writes anything.
    """
    known, first = frozenset(position.read), min(position.read, default=last)
    late = sorted(
        {version for version in readable_versions(source) if first < version < last and version not in known}
        | set(position.pending).intersection(source.listing.versions)
    )
    kinds = source.table_format.commits(late)["kind"].to_pylist() if late else []
    return [version for version, kind in zip(late, kinds, strict=True) if kind not in MAINTENANCE_KINDS]


def check_follows(source: History, commit: NewCommit) -> None:
    """Check that no version is missing between a commit and the version before it.

    Raises:
        PositionError: One is, so that changes cannot be attributed to the commit.
    """
    before, version = commit
    gaps = () if before is None else source.listing.gaps_between(before, version)
    if gaps:
        both = Hint("table.diff_rows", {"a": before, "b": version})
        more = Message(" ", both, f" has all changes from {before} to {version}.")
        raise _lost(source, f"{capitalized(gaps_text(gaps))}.", version, more)


def is_overtaken(source: History, commit: NewCommit) -> bool:
    """Return whether a commit that was being written has been completed before this one since the listing.

    One listing, if there was such a commit.
    """
    before, version = commit
    if before is None or not any(before < item < version for item in source.listing.pending):
        return False
    return source.relisted().listing.between(before, version) != (version,)


@contextmanager
def naming_ways_on(source: History, commit: NewCommit) -> Iterator[None]:
    """Turn the error for a commit whose files are gone or damaged into one that says how to go on."""
    try:
        yield
    except (CorruptTableError, SnapshotNotFoundError, MissingFileError) as error:
        problem = Message(f"The changes of version {commit.version} cannot be read: ", error)
        raise _lost(source, problem, commit.version) from error


def readable_versions(source: History) -> tuple[int, ...]:
    """Return the versions whose rows can be read, ascending; none for a table without versions."""
    without_files = frozenset(source.listing.without_files)
    return tuple(version for version in source.listing.reachable if version not in without_files)


def _absence(source: History, version: int) -> str:
    versions = readable_versions(source)
    if not versions or version > versions[-1]:
        return "does not exist any more: the table was rolled back or created again"
    if version < versions[0]:
        return "has expired"
    return "is not in the history any more: it was rolled back, or it has expired"


def _lost(source: History, problem: str, version: int, more: str = "") -> PositionError:
    """Return the error with the ways to go on: after the nearest version that is left, or with all rows."""
    versions = readable_versions(source)
    if not versions:
        return PositionError(Message(problem, " The table has no version now. Start again when it has one."))
    index = bisect_right(versions, version)
    nearest = versions[max(0, index - 1)]
    return PositionError(
        Message(
            problem,
            more,
            " To go on after the nearest version that is left: ",
            Hint("table.changes_since", {"position": nearest}),
            f"; what changed in between is then neither read nor undone. To start again, load all rows of version "
            f"{versions[-1]} with ",
            Hint("snapshot.to_arrow", {"ref": versions[-1]}),
            ", and go on with ",
            Hint("table.changes_since", {"position": versions[-1]}),
            ".",
        )
    )
