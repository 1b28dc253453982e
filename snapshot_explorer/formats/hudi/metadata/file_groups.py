"""When each file of a table is live: the sum over the metadata of all completed writes.

No commit of Hudi lists the files of the table. Each new base file, or requested compaction, begins a file slice of its
file group: a base file and the log files that follow it. A version has the newest slice of each group that is not
replaced.

Source: hudi HoodieFileGroup, AbstractTableFileSystemView; hudi specification, "File Slice".
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.hudi.metadata.commits import CommitMetadata, WriteStat
from snapshot_explorer.formats.hudi.metadata.file_names import LogName, log_name

NEVER = 2**63 - 1
"""The time at which a live file is removed."""
FileGroup = tuple[str, str]
"""A file group: its partition and its id."""


class StoredFile(NamedTuple):
    """A base file or log file, and the versions in which it is live."""

    path: str
    """The file, relative to the table's root."""
    partition: str
    file_id: str
    is_log: bool
    slice: int
    commits: tuple[int, ...]
    """The commits that wrote it, ascending: several only for a log file that was appended to."""
    first: int
    """The first instant at which it is live."""
    removed: int
    """The first instant at which it is not; NEVER while live."""
    rows: int | None
    """Rows of a base file; None for a log file, whose records are changes."""
    size_bytes: int | None
    moves_rows: bool
    """Whether its commit only rearranged rows."""

    @property
    def added(self) -> int:
        """The commit that wrote it first."""
        return self.commits[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file in a partition folder that was written before the first known commit."""

    path: str
    """The file, relative to the table's root."""
    partition: str
    file_id: str
    instant: int
    is_log: bool
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSlice:
    """A file slice from before the first known commit whose files are unknown."""

    partition: str
    file_id: str
    instant: str
    removed: int
    """The first version that does not need it."""


@dataclass(frozen=True, kw_only=True)
class WriteHistory:
    """What the sum is computed from."""

    commits: Mapping[int, CommitMetadata]
    """The completed writes, ascending."""
    completions: Mapping[int, int]
    """When they were completed, where log files belong to slices by that time."""
    pending: Sequence[tuple[FileGroup, int]]
    """The file groups in the plans of pending compactions, with the instants of these."""
    listed: Sequence[ListedFile] = ()
    """Files from before the first known commit."""
    has_completion_times: bool
    """Whether a log file belongs to the slice at the completion time of its commit, as from table version 8 on."""

    @cached_property
    def services(self) -> frozenset[int]:
        """The commits that only rearranged rows."""
        return frozenset(time for time, commit in self.commits.items() if commit.is_service)


@dataclass(slots=True)
class _Log:
    name: LogName
    stat: WriteStat
    commits: list[int]


@dataclass(slots=True)
class _Group:
    bases: dict[int, WriteStat] = field(default_factory=dict)
    logs: dict[str, _Log] | None = None
    """None without log files: an empty dictionary in each of a million groups would take memory."""
    pending: tuple[int, ...] = ()
    replaced: int = NEVER


def stored_files(history: WriteHistory) -> tuple[list[StoredFile], list[LostSlice]]:
    """Return the files of all versions, and slices from before the first known commit that are lost."""
    groups = _groups(history)
    files: list[StoredFile] = []
    lost: list[LostSlice] = []
    versions = sorted(history.commits)
    start = versions[0] if versions else NEVER
    known = {*versions, NEVER}
    for (partition, file_id), group in groups.items():
        for file in _files_of(partition, file_id, group, history):
            if (file.first in known or file.first < start) and file.removed in known:
                files.append(file)
                continue
            first, removed = _version_from(file.first, versions), _version_from(file.removed, versions)
            if first < removed:
                files.append(file._replace(first=first, removed=removed))
        missing = _lost(partition, file_id, group, start)
        if missing is not None and missing.removed > start:
            lost.append(missing)
    return files, lost


def _version_from(time: int, versions: Sequence[int]) -> int:
    """Return the first version at or after an instant, which is no version itself where its action was rolled back.

    Instants before the first known version stay: files from then were added before it.
    """
    if time == NEVER or not versions or time < versions[0]:
        return time
    index = bisect_left(versions, time)
    return versions[index] if index < len(versions) else NEVER


def _groups(history: WriteHistory) -> dict[FileGroup, _Group]:
    groups: dict[FileGroup, _Group] = {}
    for listed in history.listed:
        group = groups.setdefault((listed.partition, listed.file_id), _Group())
        _add(group, _listed_stat(listed), listed.instant)
    for time, commit in history.commits.items():
        for stat in commit.stats:
            key = stat.partition, stat.file_id
            if key not in groups:
                groups[key] = _Group()
            _add(groups[key], stat, time)
        for partition, ids in commit.replaced.items():
            for file_id in ids:
                groups.setdefault((partition, file_id), _Group()).replaced = time  # the greatest counts
    for key, time in history.pending:
        if key in groups:
            groups[key].pending += (time,)
    return groups


def _listed_stat(listed: ListedFile) -> WriteStat:
    return WriteStat(
        partition=listed.partition,
        file_id=listed.file_id,
        path=listed.path,
        size_bytes=listed.size_bytes,
        rows=None,
        inserts=0,
        updates=0,
        deletes=0,
        previous=None,
        is_log=listed.is_log,
        change_files={},
    )


def _add(group: _Group, stat: WriteStat, time: int) -> None:
    if not stat.is_log:
        group.bases[time] = stat
        return
    name = log_name(stat.name)
    if name is None:
        raise CorruptTableError(
            f"A commit at {time} wrote the log file {stat.path}, whose name is not that of a log file. The metadata of "
            "the commit may be damaged; compare it with a copy of the table."
        )
    if group.logs is None:
        group.logs = {}
    known = group.logs.get(stat.name)
    if known is None:
        group.logs[stat.name] = _Log(name, stat, [time])
    else:
        known.stat = stat  # its size is that after the last append
        known.commits.append(time)


def _files_of(partition: str, file_id: str, group: _Group, history: WriteHistory) -> Iterable[StoredFile]:
    if group.logs:
        return _files_with_logs(partition, file_id, group, history)
    return _base_files(group, history)


def _base_files(group: _Group, history: WriteHistory) -> Iterator[StoredFile]:
    """Yield the files of a group without log files, where each base file replaces the one before."""
    times = [*sorted(group.bases), NEVER]
    for time, following in pairwise(times):
        stat = group.bases[time]
        removed = min(group.replaced, following)
        if time < removed:
            yield _base_file(stat, time, removed, history)


def _base_file(stat: WriteStat, time: int, removed: int, history: WriteHistory) -> StoredFile:
    return StoredFile(
        path=stat.path,
        partition=stat.partition,
        file_id=stat.file_id,
        is_log=False,
        slice=time,
        commits=(time,),
        first=time,
        removed=removed,
        rows=stat.rows,
        size_bytes=stat.size_bytes,
        moves_rows=time in history.services,
    )


def _files_with_logs(partition: str, file_id: str, group: _Group, history: WriteHistory) -> Iterable[StoredFile]:
    times = sorted({*group.bases, *group.pending})
    own: set[int] = set()
    slices: list[tuple[_Log, int]] = []
    for log in sorted((group.logs or {}).values(), key=lambda item: item.name):
        time = _slice_of(log, times, history)
        if time not in times:
            insort(times, time)
            own.add(time)
        slices.append((log, time))
    # A pending compaction does not end the slice before: both are merged.
    ends = sorted({*group.bases, *own})

    def removed(time: int) -> int:
        index = bisect_right(ends, time)
        return min(group.replaced, ends[index] if index < len(ends) else NEVER)

    files = [_base_file(stat, time, removed(time), history) for time, stat in group.bases.items()]
    files += [
        StoredFile(
            path=log.stat.path,
            partition=partition,
            file_id=file_id,
            is_log=True,
            slice=time,
            commits=tuple(log.commits),
            first=max(log.commits[0], time),
            removed=removed(time),
            rows=None,
            size_bytes=log.stat.size_bytes,
            moves_rows=log.commits[0] in history.services,
        )
        for log, time in slices
    ]
    return [file for file in files if file.first < file.removed]


def _slice_of(log: _Log, times: Sequence[int], history: WriteHistory) -> int:
    """Return the instant of the slice that a log file belongs to: a new one if none fits."""
    if not history.has_completion_times:
        return int(log.name.instant)
    time = log.commits[0]
    completed = history.completions.get(time, time)
    if times and len(str(completed)) != len(str(times[-1])):
        completed = time
    index = bisect_right(times, completed)
    return times[index - 1] if index else int(log.name.instant)


def _lost(partition: str, file_id: str, group: _Group, start: int) -> LostSlice | None:
    """Return the slice that the group's first known commit replaced or appended to, if its files are unknown."""
    stats = group.bases
    if group.logs:
        stats = {log.commits[0]: log.stat for log in reversed(group.logs.values())} | stats
    if not stats:  # the group was replaced, and nothing else is known of it
        return LostSlice(partition=partition, file_id=file_id, instant=f"before {start}", removed=group.replaced)
    time = min(stats)
    stat = stats[time]
    previous = stat.previous
    if previous is None or not previous.isdigit() or int(previous) >= start:
        return None
    # The group's slice at the previous instant is neither in a known commit nor in a listing.
    return LostSlice(
        partition=partition,
        file_id=file_id,
        instant=previous,
        removed=min([base for base in group.bases if base >= time] + [group.replaced]),
    )


def live(files: Sequence[StoredFile], version: int) -> list[StoredFile]:
    """Return the files of a version."""
    return [file for file in files if file.first <= version < file.removed]
