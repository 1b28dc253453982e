"""When each file of a table is live: the sum over the metadata of all completed writes.

No commit of Hudi lists the files of the table. Each new base file, or requested compaction, begins a file slice of its
file group: a base file and the log files that follow it. A version has the newest slice of each group that is not
replaced.

Source: hudi HoodieFileGroup, AbstractTableFileSystemView; hudi specification, "File Slice".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.hudi.metadata.commits import WRITTEN, CommitMetadata
from snapshot_explorer.formats.hudi.metadata.file_names import LogName, log_name

NEVER = 2**63 - 1
"""The time at which a live file is removed."""
FileGroup = tuple[str, str]
"""A file group: its partition and its id."""
Numbers = npt.NDArray[np.int64]


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
    """The first instant at which it is no longer live; NEVER while live."""
    rows: int | None
    """Rows of a base file; None for a log file, whose records are changes."""
    size_bytes: int | None
    moves_rows: bool
    """Whether its commit only rearranged rows."""

    def is_live_at(self, version: int) -> bool:
        """Return whether it is a file of a version."""
        return self.first <= version < self.removed


_TYPES = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    int | None: pa.int64(),
    tuple[int, ...]: pa.list_(pa.int64()),
}
STORED = pa.schema([(name, _TYPES[dtype]) for name, dtype in StoredFile.__annotations__.items()])
"""The fields of `StoredFile`."""


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
    since: int = 0
    """The first version that may need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHistory:
    """The input from which the live files are computed."""

    commits: Mapping[int, CommitMetadata]
    """The completed writes, ascending."""
    written: pa.Table
    """The files that they wrote: WRITTEN."""
    completion: Callable[[int], int]
    """Returns when a commit was completed, if log files belong to slices by that time."""
    pending: Sequence[tuple[FileGroup, int]]
    """The file groups in the plans of pending compactions, with the compactions' instants."""
    listed: Sequence[ListedFile] = ()
    """Files from before the first known commit."""
    has_completion_times: bool
    """Whether a log file belongs to the slice at the completion time of its commit, as from table version 8 on."""
    versions: Sequence[int]
    """Every version, ascending, including versions whose commits are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """Base files by file group and time, then log files in the order in which a group's log files are read."""

    first: Numbers
    """For each file the index of the row that first writes it."""
    last: Numbers
    """For each file the index of the row that last writes it, with its final size."""
    is_log: npt.NDArray[np.bool_]
    instants: Numbers
    """The instant of a base file; for a log file the instant in its name."""
    commits: pa.ListArray
    """The commits that wrote each file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """File groups as numbers, in the order in which they occur."""

    of_files: Numbers
    """The group of each file that was listed or written."""
    of_pending: Numbers
    """The groups in the plans of pending compactions."""
    replaced: Numbers
    """When each group was replaced, or NEVER."""
    without_files: Mapping[int, FileGroup]
    """Groups that are known only because a commit replaced them."""


def stored_files(history: WriteHistory) -> tuple[pa.Table, list[LostSlice]]:
    """Return the files of all versions, STORED, and lost slices from before the first known commit."""
    written = pa.concat_tables([_as_written(history.listed), history.written]).combine_chunks()
    versions = np.asarray(history.versions, np.int64)
    groups = _groups(written, history)
    files = _files(written, groups)
    of_files, added = groups.of_files[files.last], _numbers(written, "version")[files.first]
    slices, removed = _slices(files, groups, of_files, added, history)
    first = np.maximum(added, slices)
    is_live = first < removed
    first, removed = _version_from(first, versions), _version_from(removed, versions)
    order = np.lexsort((files.is_log, of_files))
    order = order[(is_live & (first < removed))[order]]
    stored = written.take(from_numpy(files.last[order]))
    services = [time for time, commit in history.commits.items() if commit.is_service]
    computed = {
        "slice": from_numpy(slices[order]),
        "commits": files.commits.take(from_numpy(order)),
        "first": from_numpy(first[order]),
        "removed": from_numpy(removed[order]),
        "rows": pc.if_else(stored.column("is_log"), pa.scalar(None, pa.int64()), stored.column("rows")),
        "moves_rows": from_numpy(np.isin(added[order], np.array(services, np.int64))),
    }
    columns = [computed[name] if name in computed else stored.column(name) for name in STORED.names]
    start = int(versions[0]) if len(versions) else NEVER
    return pa.table(columns, schema=STORED), _lost_slices(written, files, groups, start)


def records(files: pa.Table) -> list[StoredFile]:
    """Return files as records."""
    commits = list(map(tuple, files.column("commits").to_pylist()))
    columns = {name: files.column(name).to_pylist() for name in STORED.names} | {"commits": commits}
    return list(map(StoredFile, *columns.values()))


def live_files(files: pa.Table, version: int) -> pa.Table:
    """Return the files of a version."""
    first, removed = _numbers(files, "first"), _numbers(files, "removed")
    return files.filter(from_numpy((first <= version) & (version < removed)))


def _numbers(files: pa.Table, name: str) -> Numbers:
    numbers: Numbers = single_chunk(files.column(name)).to_numpy()
    return numbers


def _version_from(times: Numbers, versions: Numbers) -> Numbers:
    """Return the first version at or after instants, which are not versions where actions were rolled back.

    Instants before the first known version stay: files from then were added before it.
    """
    if not len(versions):
        return times
    later = np.append(versions, NEVER)[np.searchsorted(versions, times)]
    return np.where(times < versions[0], times, later)


def _groups(written: pa.Table, history: WriteHistory) -> _Groups:
    replaced = [
        (partition, file_id, time)
        for time, commit in history.commits.items()
        for partition, ids in commit.replaced.items()
        for file_id in ids
    ]
    others = [*replaced, *(group for group, _ in history.pending)]
    keys = [
        pa.concat_arrays([single_chunk(written.column(name)), pa.array([key[part] for key in others], pa.string())])
        for part, name in enumerate(("partition", "file_id"))
    ]
    encoded = from_numpy(group_ids(keys)).dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int64)
    of_files, of_replaced, of_pending = np.split(numbers, [len(written), len(written) + len(replaced)])
    times = np.full(len(encoded.dictionary), NEVER)
    times[of_replaced] = [time for *_, time in replaced]  # ascending: the last one counts
    with_files = set(of_files.tolist()) if replaced else set()
    return _Groups(
        of_files=of_files,
        of_pending=of_pending,
        replaced=times,
        without_files={
            number: key[:2]
            for number, key in zip(of_replaced.tolist(), replaced, strict=True)
            if number not in with_files
        },
    )


def _as_written(listed: Sequence[ListedFile]) -> pa.Table:
    columns = {
        "version": [file.instant for file in listed],
        "partition": [file.partition for file in listed],
        "file_id": [file.file_id for file in listed],
        "path": [file.path for file in listed],
        "size_bytes": [file.size_bytes for file in listed],
        "is_log": [file.is_log for file in listed],
    }
    return pa.table([columns.get(name, [None] * len(listed)) for name in WRITTEN.names], schema=WRITTEN)


def _files(written: pa.Table, groups: _Groups) -> _Files:
    times, of_files = _numbers(written, "version"), groups.of_files
    is_log = single_chunk(written.column("is_log")).to_numpy(zero_copy_only=False)
    bases, logs = np.flatnonzero(~is_log), np.flatnonzero(is_log)
    bases = bases[np.lexsort((times[bases], of_files[bases]))]
    is_other = (np.diff(of_files[bases]) != 0) | (np.diff(times[bases]) != 0)
    bases = bases[np.append(is_other, True)[: len(bases)]]  # of several at an instant, the last one counts
    names = group_ids([written.column("path").take(from_numpy(logs)), from_numpy(of_files[logs])])
    by_name = np.argsort(names, kind="stable")
    logs = logs[by_name]
    bounds = np.append(_starts(names[by_name]), len(logs))
    first = logs[bounds[:-1]]
    paths = written.column("path").take(from_numpy(first)).to_pylist()
    parsed = list(map(_log_name, paths, times[first].tolist()))
    order = np.array(sorted(range(len(parsed)), key=parsed.__getitem__), np.int64)
    commits = _lists(times[logs], bounds).take(from_numpy(order))
    return _Files(
        first=np.concatenate([bases, first[order]]),
        last=np.concatenate([bases, logs[bounds[1:] - 1][order]]),
        is_log=np.repeat([False, True], [len(bases), len(order)]),
        instants=np.concatenate([times[bases], np.array([int(name.instant) for name in parsed], np.int64)[order]]),
        commits=pa.concat_arrays([_lists(times[bases], np.arange(len(bases) + 1)), commits]),
    )


def _log_name(path: str, time: int) -> LogName:
    name = log_name(path.rpartition("/")[2])
    if name is None:
        raise CorruptTableError(
            f"A commit at {time} wrote the log file {path}, whose name is not that of a log file. The metadata of the "
            "commit may be damaged; compare it with a copy of the table."
        )
    return name


def _starts(numbers: Numbers) -> Numbers:
    """Return the starts of runs of the same number. Numbers are 0 or more."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _distinct(numbers: Numbers) -> Numbers:
    """Return the distinct numbers, ascending. Faster than `numpy.unique` if they are nearly sorted."""
    ascending = np.sort(numbers, kind="stable")
    return ascending[_starts(ascending)]


def _is_in_ascending(ascending: Numbers, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Return which numbers, of 0 or more, are among ascending ones."""
    among: npt.NDArray[np.bool_] = np.append(ascending, -1)[np.searchsorted(ascending, numbers)] == numbers
    return among


def _lists(values: Numbers, offsets: Numbers) -> pa.ListArray:
    return pa.ListArray.from_arrays(from_numpy(offsets.astype(np.int32)), from_numpy(values))


class _Instants:
    """Instants of file groups, as numbers that have the order of groups and, within a group, of instants."""

    def __init__(self, times: Numbers) -> None:
        self._times = _distinct(times)

    def of(self, groups: Numbers, times: Numbers) -> Numbers:
        """Return instants, or the last instants at or before these times."""
        return groups * (len(self._times) + 1) + np.searchsorted(self._times, times, "right")

    def split(self, instants: Numbers) -> tuple[Numbers, Numbers]:
        """Return the groups and the times of instants."""
        groups, times = np.divmod(instants, len(self._times) + 1)
        return groups, self._times[times - 1]

    def before(self, instants: Numbers, among: Numbers, default: Numbers) -> Numbers:
        """Return for each instant the time of the last of these instants up to it in its group, or the default."""
        return self._beside(instants, among, np.searchsorted(among, instants, "right") - 1, default)

    def after(self, instants: Numbers, among: Numbers, default: Numbers) -> Numbers:
        """Return for each instant the time of the first of these instants after it in its group, or the default."""
        return self._beside(instants, among, np.searchsorted(among, instants, "right"), default)

    def _beside(self, instants: Numbers, among: Numbers, index: Numbers, default: Numbers) -> Numbers:
        if not len(among):
            return default
        groups, times = self.split(among[np.clip(index, 0, len(among) - 1)])
        is_same = (index >= 0) & (index < len(among)) & (groups == instants // (len(self._times) + 1))
        return np.where(is_same, times, default)


def _slices(
    files: _Files, groups: _Groups, of_files: Numbers, added: Numbers, history: WriteHistory
) -> tuple[Numbers, Numbers]:
    """Return the instants of the slices that files belong to, and when these slices are removed.

    Args:
        of_files: The group of each file.
        added: When each file was written first.
    """
    pending = np.array([time for _, time in history.pending], np.int64)
    instants = _Instants(np.concatenate([files.instants, pending]))
    slices, is_log = files.instants.copy(), files.is_log
    bases = instants.of(of_files[~is_log], slices[~is_log])
    begun = _distinct(np.concatenate([bases, instants.of(groups.of_pending, pending)]))
    if history.has_completion_times:
        slices[is_log] = _by_completion(slices[is_log], of_files[is_log], added[is_log], instants, begun, history)
    every = instants.of(of_files, slices)
    of_logs = every[is_log]
    # A pending compaction does not end the slice before: both are merged.
    ends = _distinct(np.concatenate([bases, of_logs[~_is_in_ascending(begun, of_logs)]]))
    removed = instants.after(every, ends, np.full(len(every), NEVER))
    return slices, np.minimum(removed, groups.replaced[of_files])


def _by_completion(
    named: Numbers, groups: Numbers, added: Numbers, instants: "_Instants", begun: Numbers, history: WriteHistory
) -> Numbers:
    """Return the instants of the slices that log files belong to: new ones if none fits."""
    commits, index = np.unique(added, return_inverse=True)
    completed = np.array([history.completion(time) for time in commits.tolist()], np.int64)[index]
    newest = instants.before(instants.of(groups, np.full(len(groups), NEVER)), begun, completed)
    completed = np.where(_digits(completed) == _digits(newest), completed, added)
    slices = instants.before(instants.of(groups, completed), begun, np.full(len(groups), -1))
    # The first log file without a slice begins one, for those that follow it too.
    without = np.flatnonzero(slices < 0)
    own, first = np.unique(groups[without], return_index=True)
    slices[without] = named[without][first][np.searchsorted(own, groups[without])]
    return slices


def _digits(numbers: Numbers) -> Numbers:
    return np.searchsorted(10 ** np.arange(1, 19), numbers, "right")


def is_before(previous: pa.ChunkedArray, start: int) -> npt.NDArray[np.bool_]:
    """Return which instants in write stats are before a version; False for nulls and texts that are not numbers."""
    encoded = single_chunk(previous).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    is_early = np.array([text.isdecimal() and int(text) < start for text in texts] + [False], np.bool_)
    early: npt.NDArray[np.bool_] = is_early[encoded.indices.fill_null(len(texts)).to_numpy()]
    return early


def _lost_slices(written: pa.Table, files: _Files, groups: _Groups, start: int) -> list[LostSlice]:
    """Return the slices that the first known commits of groups replaced or appended to, if their files are unknown."""
    slices = [
        LostSlice(partition=partition, file_id=file_id, instant=f"before {start}", removed=int(groups.replaced[number]))
        for number, (partition, file_id) in groups.without_files.items()
    ]
    # The group's slice at the previous instant is neither in a known commit nor in a listing.
    of_files, times = groups.of_files[files.last], _numbers(written, "version")[files.first]
    order = np.lexsort((files.first, files.is_log, times, of_files))
    order = order[_starts(of_files[order])]
    early = order[is_before(written.column("previous"), start)[files.last[order]]]
    ends = groups.replaced.copy()
    np.minimum.at(ends, of_files[~files.is_log], times[~files.is_log])
    stats = written.take(from_numpy(files.last[early])).to_pylist()
    slices += [
        LostSlice(partition=stat["partition"], file_id=stat["file_id"], instant=stat["previous"], removed=removed)
        for stat, removed in zip(stats, ends[of_files[early]].tolist(), strict=True)
    ]
    return [item for item in slices if item.removed >= start]
