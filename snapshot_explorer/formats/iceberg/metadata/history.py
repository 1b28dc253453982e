"""The versions of a table: its snapshots in the history of one branch, by sequence number.

A version is the sequence number of a snapshot, which is unique in the table, never changes, and rises along a history.
Tables of format 1 have none: their snapshots are numbered from the oldest existing one. Numbers of other branches,
of staged and of rolled-back commits are gaps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import compress, islice
from operator import itemgetter, lt, ne

from snapshot_explorer.core.errors import CorruptTableError, SnapshotNotFoundError, TableNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.milliseconds import from_millis, to_millis
from snapshot_explorer.core.text import did_you_mean, list_names
from snapshot_explorer.formats.iceberg.metadata.table_metadata import MAIN, IcebergSnapshot, TableMetadata
from snapshot_explorer.storage.location import shorten

_MAX_SEARCHED = 1_000
"""Branches that are searched for a snapshot."""
_COUNTED = (
    "The table has format version 1, whose snapshots have no sequence numbers: its versions are counted from the "
    "oldest snapshot that is left, so a version may have another number once older ones have expired. Snapshot ids "
    "do not change."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergHistory:
    """The history of one branch. Immutable."""

    metadata: TableMetadata
    branch: str | None
    """The branch; None for main."""
    versions: tuple[int, ...]
    ids: Mapping[int, int]
    snapshots: Mapping[int, IcebergSnapshot]
    numbers: Mapping[int, int]
    without_commit: tuple[int, ...]
    """Versions whose predecessor is not their parent snapshot, ascending."""
    after_gaps: tuple[int, ...]
    """The versions `without_commit` before which snapshots are missing: all that did not replace their predecessor."""
    is_counted: bool
    """Whether versions are counted, because the snapshots have no sequence numbers."""
    cut: str | None
    """Why snapshots before the first version are unknown although the metadata names them; None if they are not."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a sentence if versions may have other numbers in another session, and if older ones are not known."""
        numbering_notes = (_COUNTED,) if self.is_counted and self.versions else ()
        if self.cut is None:
            return numbering_notes
        note = Message(
            f"The history begins with version {self.versions[0]}, because the parents of its snapshots contradict each "
            f"other: {self.cut}. Open an older snapshot by its id: ",
            Hint("open_table", {"path": ..., "branch": ...}),
            ".",
        )
        return (*numbering_notes, note)

    def version_of(self, number: int) -> int | None:
        """Return the version with a number or a snapshot id; None if no version has it."""
        return number if number in self.snapshots else self.numbers.get(number)

    def time_of(self, version: int) -> datetime:
        """Return when a version was committed, aware, UTC."""
        return time_of(self.snapshots[version].timestamp_ms)


class _OfVersions(Mapping[int, IcebergSnapshot]):
    """The snapshot of each version, made when it is looked up."""

    def __init__(self, ids: Mapping[int, int], snapshots: Mapping[int, IcebergSnapshot]) -> None:
        self._ids = ids
        self._snapshots = snapshots

    def __getitem__(self, version: int) -> IcebergSnapshot:
        return self._snapshots[self._ids[version]]

    def __contains__(self, version: object) -> bool:
        return version in self._ids

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def time_of(millis: int) -> datetime:
    """Return a time in milliseconds since 1970 as an aware time in UTC."""
    try:
        return from_millis(millis)
    except OverflowError as error:
        raise CorruptTableError(
            f"A time in the table's metadata is {millis} milliseconds, which is not within the years 1 to 9999. The "
            "metadata file is damaged; compare it with a copy of the table."
        ) from error


def history_of(metadata: TableMetadata, branch: str | None, known: Mapping[int, int] | None = None) -> IcebergHistory:
    """Return the history of a branch.

    Args:
        branch: A branch's name, or a snapshot id as text, for the history that ends there; None for main.
        known: The numbers of snapshots that were counted before, which they keep.
    """
    head = _head(metadata, branch)
    chain, cut = _chain(metadata, head, is_main=branch in (None, MAIN))
    recorded = metadata.snapshots.numbers
    is_counted = bool(chain) and not any(map(recorded.__getitem__, chain))
    if is_counted:
        numbers: Mapping[int, int] = _count_snapshots(chain, known or {})
    elif chain == metadata.snapshots.every("id"):
        numbers = recorded
    else:
        numbers = {item: recorded[item] for item in chain}
    ids = dict(zip(numbers.values(), numbers, strict=True))
    later, parents = chain[1:], metadata.snapshots.column("parent_id", chain)[1:]
    is_orphan = map(ne, parents, chain)
    orphans = list(compress(zip(chain, later, strict=False), is_orphan))
    gaps = [item for before, item in orphans if not _replaces(metadata, item, before)]
    return IcebergHistory(
        metadata=metadata,
        branch=branch,
        versions=tuple(ids),
        ids=ids,
        snapshots=_OfVersions(ids, metadata.snapshots),
        numbers=numbers,
        without_commit=tuple(numbers[item] for _, item in orphans),
        after_gaps=tuple(map(numbers.__getitem__, gaps)),
        is_counted=is_counted,
        cut=cut,
    )


def _head(metadata: TableMetadata, branch: str | None) -> int | None:
    if branch is None or branch == MAIN:
        return metadata.current_snapshot_id
    if branch.isascii() and branch.isdigit() and len(branch) < 20 and int(branch) in metadata.snapshots:  # noqa: PLR2004
        return int(branch)
    ref = metadata.refs.get(branch)
    if ref is not None and ref.is_branch:
        return ref.snapshot_id
    raise _no_branch(metadata, branch, is_tag=ref is not None)


def _no_branch(metadata: TableMetadata, branch: str, *, is_tag: bool) -> TableNotFoundError:
    quoted = shorten(repr(branch))
    if is_tag:
        return TableNotFoundError(
            f"The table has no branch {quoted}: it is a tag. Open the table without a branch and use "
            f"tag:{shorten(branch)}."
        )
    names = sorted(name for name, ref in metadata.refs.items() if ref.is_branch) or [MAIN]
    listed, near = list_names([*map(shorten, names)]), did_you_mean(branch, names, lambda name: shorten(repr(name)))
    return TableNotFoundError(f"The table has no branch {quoted} and no snapshot of that id. Branches: {listed}.{near}")


def _chain(metadata: TableMetadata, head: int | None, *, is_main: bool) -> tuple[list[int], str | None]:
    """Return the snapshots of a history, oldest first, and the reason to leave out older ones if parents are damaged.

    Source: iceberg reads a snapshot whatever its parents are.
    """
    straight = _straight(metadata, head)
    if straight:
        return (_with_tagged(metadata, straight) if is_main else straight), None
    parents, numbers = metadata.snapshots.parents, metadata.snapshots.numbers
    newest_first: dict[int, None] = {}
    snapshot_id, cut = head, None
    while snapshot_id is not None:
        newest_first[snapshot_id] = None
        before = parents[snapshot_id]
        if before is None:
            before = _replaced_snapshot(metadata, snapshot_id) if is_main else None
        elif before not in parents:
            before = None
        if before is not None:
            cut = _contradiction(snapshot_id, before, numbers, newest_first)
            if cut is not None:
                break
            if numbers[snapshot_id] and numbers[before] == 0:
                # The last snapshot before an upgrade from format 1 is version 0; older ones have no number.
                newest_first[before] = None
                break
        snapshot_id = before
    oldest_first = list(newest_first)[::-1]
    return (_with_tagged(metadata, oldest_first) if is_main and cut is None else oldest_first), cut


def _contradiction(snapshot_id: int, before: int, numbers: Mapping[int, int], newer: Mapping[int, None]) -> str | None:
    """Return why a snapshot cannot be the child of another snapshot; None if it can."""
    number, number_before = numbers[snapshot_id], numbers[before]
    if before in newer:
        return f"the parents of snapshot {snapshot_id} form a cycle"
    if number == 0 < number_before:
        return f"snapshot {snapshot_id} has no sequence number, but its parent has"
    if number and number_before >= number:
        return (
            f"snapshot {snapshot_id} has the sequence number {number}, and the one before it, {before}, {number_before}"
        )
    return None


def _straight(metadata: TableMetadata, head: int | None) -> list[int]:
    """Return all snapshots if each is the parent of the next one, which has a greater number; otherwise none.

    Most tables are recorded in this way. The first snapshot is then the oldest one.
    """
    names = ("id", "parent_id", "sequence_number")
    ids, parents, numbers = map(metadata.snapshots.every, names)
    is_straight = (
        bool(ids)
        and ids[-1] == head
        and parents[0] not in metadata.snapshots
        and numbers[0] > 0
        and all(map(lt, numbers, islice(numbers, 1, None)))
        and parents[1:] == ids[:-1]
    )
    return list(ids) if is_straight else []


def _replaced_snapshot(metadata: TableMetadata, snapshot_id: int) -> int | None:
    """Return the snapshot that a snapshot without a parent replaced as main's current snapshot; None if unknown."""
    logged = metadata.snapshot_log.ids
    index = logged.index(snapshot_id) if snapshot_id in logged else 0
    before, numbers = logged[index - 1] if index else None, metadata.snapshots.numbers
    if before is None or before not in numbers:
        return None
    is_older = numbers[before] < numbers[snapshot_id] if numbers[snapshot_id] else numbers[before] == 0
    return before if is_older else None


def _replaces(metadata: TableMetadata, snapshot_id: int, before: int) -> bool:
    """Return whether a snapshot without a parent replaced another one, without snapshots between."""
    return metadata.snapshots.parents[snapshot_id] is None and _replaced_snapshot(metadata, snapshot_id) == before


def _with_tagged(metadata: TableMetadata, chain: list[int]) -> list[int]:
    """Return a history of main with the older snapshots that only tags kept from expiring before it.

    Snapshots of other branches are not included.
    """
    tagged = {ref.snapshot_id for ref in metadata.refs.values() if not ref.is_branch}
    if tagged:
        tagged.difference_update(chain)
    if not chain or not tagged:
        return chain
    first = metadata.snapshots[chain[0]]
    elsewhere = _ancestors(metadata, [ref.snapshot_id for ref in metadata.refs.values() if ref.is_branch])
    older = [metadata.snapshots[item] for item in tagged - elsewhere]
    if first.sequence_number:
        older = [item for item in older if 0 < item.sequence_number < first.sequence_number]
    else:
        is_counted = not any(metadata.snapshots.numbers[item] for item in chain)
        older = [item for item in older if is_counted and item.timestamp_ms < first.timestamp_ms]
        older = [item for item in older if item.sequence_number == 0]
    older.sort(key=lambda snapshot: (snapshot.sequence_number, snapshot.timestamp_ms, snapshot.id))
    return [*(item.id for item in older), *chain]


def _ancestors(metadata: TableMetadata, heads: Sequence[int]) -> set[int]:
    parents = metadata.snapshots.parents
    result: set[int] = set()
    for head in heads:
        snapshot_id: int | None = head
        while snapshot_id is not None and snapshot_id not in result and snapshot_id in parents:
            result.add(snapshot_id)
            snapshot_id = parents[snapshot_id]
    return result


def _count_snapshots(ids: Sequence[int], known: Mapping[int, int]) -> dict[int, int]:
    """Return numbers for snapshots without sequence numbers: known numbers are kept, and later snapshots follow."""
    indices = [index for index, item in enumerate(ids) if item in known]
    if indices != list(range(len(indices))):
        # There are older snapshots than the known ones: this is another history.
        known, indices = {}, []
    numbers: dict[int, int] = {item: known[item] for item in ids[: len(indices)]}
    following = max(known.values(), default=0) + 1
    return numbers | {item: following + index for index, item in enumerate(ids[len(indices) :])}


def current_at(history: IcebergHistory, time: datetime) -> IcebergSnapshot | None:
    """Return the snapshot that was current in main at a time, by the snapshot log, whether or not it still is in main.

    The entry with the greatest time counts: the entries are not in the order of their times where the clocks of writers
    differ. None if all entries are later, and for other branches and tables, which have no log.

    Raises:
        SnapshotNotFoundError: The snapshot has expired.

    Source: iceberg specification, "Point in Time Reads (Time Travel)"; SnapshotUtil.nullableSnapshotIdAsOfTime of
    Iceberg 1.12 (apache/iceberg 17360).
    """
    metadata = history.metadata
    if history.branch not in (None, MAIN):
        return None
    millis = to_millis(time)
    entries = [entry for entry in zip(*metadata.snapshot_log, strict=True) if entry[0] <= millis]
    if not entries:
        return None
    since, snapshot_id = max(entries, key=itemgetter(0))  # the first one of equal times
    snapshot = metadata.snapshots.get(snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(
            f"Main was at the snapshot {snapshot_id} since {time_of(since):%Y-%m-%d %H:%M:%S} UTC, and the table no "
            "longer has it: it has expired. Try a later time, or latest."
        )
    return snapshot


def committed_by(history: IcebergHistory, time: datetime, versions: Sequence[int]) -> Sequence[int]:
    """Return the version with the greatest commit time up to a time; empty if all are later."""
    millis = to_millis(time)
    times = history.metadata.snapshots.column("timestamp_ms", [history.ids[version] for version in versions])
    committed = [(moment, version) for moment, version in zip(times, versions, strict=True) if moment <= millis]
    return [max(committed, key=itemgetter(0))[1]] if committed else []


def not_in_history(history: IcebergHistory, snapshot: IcebergSnapshot) -> SnapshotNotFoundError:
    """Return the error for a snapshot of the table that is not in a history. It explains how to open the snapshot."""
    number = (
        f"Version {snapshot.sequence_number} (snapshot {snapshot.id})"
        if snapshot.sequence_number
        else (f"Snapshot {snapshot.id}")
    )
    name = history.branch or MAIN
    branch, reason = _whereabouts(history.metadata, snapshot)
    return SnapshotNotFoundError(
        Message(
            f"{number} is in the table but not in the history of {shorten(name)}: {reason}. Open it with ",
            Hint("open_table", {"path": ..., "branch": branch}),
            ".",
        )
    )


def _whereabouts(metadata: TableMetadata, snapshot: IcebergSnapshot) -> tuple[str, str]:
    for name, ref in islice(metadata.refs.items(), _MAX_SEARCHED):
        if ref.is_branch and name != MAIN and snapshot.id in _ancestors(metadata, [ref.snapshot_id]):
            return name, f"it belongs to the branch {shorten(name)}"
    left = _left_main(metadata, snapshot)
    if left is not None:
        return str(snapshot.id), f"main left it at {time_of(left):%Y-%m-%d %H:%M:%S} UTC, by a rollback"
    head = metadata.current_snapshot_id
    if head is not None and not snapshot.sequence_number and snapshot.id in _ancestors(metadata, [head]):
        return str(snapshot.id), "it was committed in format version 1; an upgraded table lists only the last such one"
    if "wap.id" in snapshot.summary:
        return str(snapshot.id), f"it was staged as {shorten(repr(snapshot.summary['wap.id']))} and not published"
    return str(snapshot.id), "no branch leads to it"


def detached_heads(metadata: TableMetadata) -> list[str]:
    """Return the ids of the newest snapshots that no branch leads to: rolled back, staged, or of a deleted branch."""
    heads = [ref.snapshot_id for ref in metadata.refs.values() if ref.is_branch]
    current = metadata.current_snapshot_id
    detached = set(metadata.snapshots).difference(
        _ancestors(metadata, [*heads, *([] if current is None else [current])])
    )
    parents = metadata.snapshots.parents
    return sorted(map(str, detached.difference(parents[item] for item in detached)))


def _left_main(metadata: TableMetadata, snapshot: IcebergSnapshot) -> int | None:
    """Return when main was rolled back past a snapshot, in milliseconds; None if the log has no such rollback."""
    builds_on_it = {snapshot.id: True}
    left, was_there = None, False
    for millis, logged in zip(*metadata.snapshot_log, strict=True):
        passed: list[int] = []
        snapshot_id: int | None = logged
        while snapshot_id is not None and snapshot_id in metadata.snapshots and snapshot_id not in builds_on_it:
            builds_on_it[snapshot_id] = False  # so that a cycle ends
            passed.append(snapshot_id)
            snapshot_id = metadata.snapshots[snapshot_id].parent_id
        is_built_on = snapshot_id is not None and builds_on_it.get(snapshot_id, False)
        builds_on_it.update(dict.fromkeys(passed, is_built_on))
        if is_built_on:
            left, was_there = None, True
        elif was_there and left is None:
            left = millis
    return left
