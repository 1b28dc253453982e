"""Health numbers at every version, computed from the lifetimes of files."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.health.groups import Ints, Mask, count_mergeable, drop_single, is_valid, numbers
from snapshot_explorer.arrow.extremes import extreme_over
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import MaintenanceSettings, gaps_note
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame, non_empty_columns

_DRAWN = (
    "version",
    "committed_at",
    "files",
    "rows",
    "size_bytes",
    "median_bytes",
    "small_files",
    "mergeable_files",
    "level0_files",
    "most_sorted_runs",
    "deleted_rows",
)


def health_history(
    table_format: TableFormat, lifetimes: FileLifetimes, versions: Collection[int] | None, *, name: str
) -> Frame:
    """Return HEALTH_HISTORY of versions, newest first. Reads the newest settings, nothing else.

    Args:
        versions: The versions; None for all versions of the lifetimes. Others have no row.
    """
    title = f"Health of {name} over its versions"
    if not lifetimes.versions:
        return Frame(frames.HEALTH_HISTORY.empty_table(), title=title, noun="versions", drawn=_DRAWN)
    settings = table_format.version(None).health_facts().settings
    rows = over_frame(lifetimes, settings, has_deletions=table_format.delete_files is None)
    known = np.asarray(lifetimes.versions, np.int64)
    chosen = np.arange(len(known)) if versions is None else np.flatnonzero(np.isin(known, list(versions)))
    rows = rows.take(pa.array(chosen[::-1]))
    total = None if versions is None else len(versions)
    first, last = (known[chosen[0]], known[chosen[-1]]) if len(chosen) else (0, 0)
    gaps = [gap for gap in lifetimes.gaps if gap.before >= first and gap.after <= last]
    notes = (*gaps_note(gaps, "the next version includes what changed there"), *lifetimes.unread_notes)
    drawn = non_empty_columns(rows.select(_DRAWN))
    return Frame(rows, title=title, noun="versions", total=total, drawn=drawn, notes=notes)


def over_frame(lifetimes: FileLifetimes, settings: MaintenanceSettings, *, has_deletions: bool = True) -> pa.Table:
    """Return HEALTH_HISTORY of all versions that are known, oldest first.

    `vector_files` and `deleted_rows` are null if files have levels (Paimon), or without `has_deletions` (Iceberg):
    deletions then change during the lifetime of a file, and lifetimes do not contain them.

    Args:
        has_deletions: Whether a file gets a new lifetime when its deletions change.
    """
    file_intervals = _intervals_of(lifetimes)
    count = file_intervals.count
    size_bytes, _ = numbers(file_intervals.intervals, "size_bytes")
    files, total = file_intervals.running(np.ones(len(size_bytes), np.int64)), file_intervals.running(size_bytes)
    median = medians(size_bytes, file_intervals.first, file_intervals.last, count)
    small = file_intervals.steps(file_intervals.groups, size_bytes < settings.small_bytes, size_bytes)
    mergeable_files = count_mergeable(small.number, small.size_bytes, settings.target_bytes)
    every = file_intervals.steps(file_intervals.groups, None, size_bytes)
    levels, no_level = numbers(file_intervals.intervals, "level")
    has_levels = bool(len(levels)) and not no_level.all()
    per_file = np.maximum(files, 1)
    columns: dict[str, pa.Array | Ints] = {
        "version": np.asarray(lifetimes.versions, np.int64),
        "committed_at": lifetimes.committed_at,
        "files": files,
        "rows": file_intervals.running_sum("rows", np.ones(len(levels), np.bool_)),
        "size_bytes": total,
        "mean_bytes": pa.array(total // per_file, mask=files == 0),
        "median_bytes": pa.array(median, mask=files == 0),
        "small_files": small.total(drop_single(small.number)),
        "mergeable_files": small.total(mergeable_files),
        "groups": every.total(np.minimum(every.number, 1)),
        "level0_files": file_intervals.running((levels == 0).astype(np.int64))
        if has_levels
        else pa.nulls(count, pa.int64()),
        "most_sorted_runs": pa.nulls(count, pa.int64()),
        "vector_files": pa.nulls(count, pa.int64()),
        "deleted_rows": pa.nulls(count, pa.int64()),
    }
    if settings.runs_trigger is not None:
        columns["most_sorted_runs"] = file_intervals.most_runs(levels)
    if has_deletions and no_level.all():
        has_vector = is_valid(file_intervals.intervals, "deletion_vector")
        columns["vector_files"] = file_intervals.running(has_vector.astype(np.int64))
        columns["deleted_rows"] = file_intervals.running_sum("deleted_rows", has_vector)
    schema = frames.HEALTH_HISTORY
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The sizes of groups of files over versions: a row for each version that changes a group."""

    group: Ints
    when: Ints
    """The position of the version."""
    number: Ints
    """The number of files of the group from then on."""
    size_bytes: Ints
    count: int
    """The number of versions."""

    def total(self, values: Ints) -> Ints:
        """Return the sum over the groups at each version. The value of a step lasts until the group's next step."""
        before = np.zeros(len(values), np.int64)
        before[1:] = np.where(_is_last(self.group)[:-1], 0, values[:-1])
        changes = np.zeros(self.count, np.int64)
        np.add.at(changes, self.when, values - before)
        return np.cumsum(changes)

    @property
    def until(self) -> Ints:
        """Return for each step the position of the group's next step, or the number of versions."""
        following = np.full(len(self.when), self.count, np.int64)
        following[:-1] = np.where(_is_last(self.group)[:-1], self.count, self.when[1:])
        return following


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileIntervals:
    """When files are added and removed, by partition and bucket."""

    intervals: pa.Table
    """INTERVALS of `lifetimes.intervals`."""
    first: Ints
    """The position of the version that adds each file."""
    last: Ints
    """The position of the version that removes each file; `count` if none does."""
    groups: Ints
    """The group number of each file, from 0."""
    count: int
    """The number of versions."""

    def running(self, values: Ints) -> Ints:
        changes = np.zeros(self.count + 1, np.int64)
        np.add.at(changes, self.first, values)
        np.subtract.at(changes, self.last, values)
        return np.cumsum(changes)[: self.count]

    def running_sum(self, name: str, chosen: Mask) -> pa.Array:
        """Return the sum of a column over the chosen files; null if a value is null."""
        values, unknown = numbers(self.intervals, name)
        unknown_count = self.running((unknown & chosen).astype(np.int64))
        return pa.array(self.running(np.where(chosen, values, 0)), mask=unknown_count > 0)

    def steps(self, groups: Ints, chosen: Mask | None, size_bytes: Ints) -> _Steps:
        indices = np.arange(len(self.first)) if chosen is None else np.flatnonzero(chosen)
        return _steps(groups[indices], self.first[indices], self.last[indices], size_bytes[indices], self.count)

    def most_runs(self, levels: Ints) -> Ints:
        """Return the maximum number of sorted runs in a bucket at each version."""
        bucket, _ = numbers(self.intervals, "bucket")
        fresh, high = (bucket >= 0) & (levels == 0), np.flatnonzero((bucket >= 0) & (levels > 0))
        # A run is a file of level 0, or all files of a higher level of a bucket: as long as there are any.
        keys = self.groups[high] * (int(levels.max(initial=0)) + 1) + levels[high]
        _, owners, numbered = np.unique(keys, return_index=True, return_inverse=True)
        nothing = np.zeros(len(high), np.int64)
        higher = _steps(numbered.astype(np.int64), self.first[high], self.last[high], nothing, self.count)
        lives = higher.number > 0
        groups = np.concatenate([self.groups[fresh], self.groups[high][owners][higher.group[lives]]])
        first = np.concatenate([self.first[fresh], higher.when[lives]])
        last = np.concatenate([self.last[fresh], higher.until[lives]])
        runs = _steps(groups, first, last, np.zeros(len(groups), np.int64), self.count)
        return extreme_over(runs.number, runs.when, runs.until, self.count, extreme=np.maximum, nothing=0)


def _steps(groups: Ints, first: Ints, last: Ints, size_bytes: Ints, count: int) -> _Steps:
    gone = np.flatnonzero(last < count)
    keys = np.concatenate([groups, groups[gone]]) * (count + 1) + np.concatenate([first, last[gone]])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    signs = np.concatenate([np.ones(len(first), np.int64), -np.ones(len(gone), np.int64)])[order]
    sizes = np.concatenate([size_bytes, -size_bytes[gone]])[order]
    numbered, summed = np.cumsum(signs), np.cumsum(sizes)
    # The last change of a group in a version determines its size there. The sums continue over groups, so the end of
    # the previous group is subtracted.
    ends = _is_last(keys // (count + 1))
    begins: Ints = np.cumsum(ends) - ends
    before = [np.concatenate([[0], running[ends]])[begins] for running in (numbered, summed)]
    is_last = _is_last(keys)
    return _Steps(
        group=keys[is_last] // (count + 1),
        when=keys[is_last] % (count + 1),
        number=(numbered - before[0])[is_last],
        size_bytes=(summed - before[1])[is_last],
        count=count,
    )


def _intervals_of(lifetimes: FileLifetimes) -> _FileIntervals:
    intervals, count = lifetimes.intervals.rows, len(lifetimes.versions)
    first, last = (intervals.column(name).to_numpy().astype(np.int64) for name in ("first", "last"))
    partitions = _codes_of_values(lifetimes.intervals.partitions)[intervals.column("partition").to_numpy()]
    codes = group_ids([pa.array(partitions), intervals.column("bucket")])
    groups = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return _FileIntervals(intervals=intervals, first=first, last=np.minimum(last, count), groups=groups, count=count)


def _codes_of_values(partitions: pa.MapArray) -> Ints:
    """Return a number per partition, equal for equal values at equal positions.

    Lifetimes contain the names of partition columns at the time a file was added. By name, one partition would become
    two after a rename.
    """
    offsets = partitions.offsets.to_numpy()
    lengths = np.diff(offsets)
    indices = [
        partitions.items.take(pa.array(np.where(lengths > index, offsets[:-1] + index, 0), mask=lengths <= index))
        for index in range(int(lengths.max(initial=0)))
    ]
    return group_ids([pa.array(lengths), *indices])


def _is_last(keys: Ints) -> Mask:
    return np.concatenate([keys[1:] != keys[:-1], np.ones(min(1, len(keys)), np.bool_)])


def medians(values: Ints, first: Ints, last: Ints, count: int) -> Ints:
    """Return the median of the values present at each moment, rounded down between two; 0 if there are none.

    Each value has a slot, in the order of the values. From one moment to the next the median moves by no more slots
    in use than values are added and removed, so the time is in proportion to the values and the moments.

    Args:
        first: The first moment at which each value is present.
        last: The first moment at which each value is no longer present; `count` or more if it remains.
    """
    if not len(values):
        return np.zeros(count, np.int64)
    order = np.argsort(values, kind="stable")
    slots = np.empty(len(values), np.int64)
    slots[order] = np.arange(len(values))
    gone = last < count
    when = np.concatenate([first, last[gone]])
    by_time = np.argsort(when, kind="stable")
    events = np.concatenate([slots, ~slots[gone]])[by_time]  # ~slot where its value goes
    ends = np.searchsorted(when[by_time], np.arange(count), side="right")
    low, high, totals = _middle_slots(events.tolist(), ends.tolist(), len(values))
    ordered = values[order]
    minimum, maximum = ordered[low], ordered[high]
    return np.where(totals > 0, minimum + (maximum - minimum) // 2, 0)


def _middle_slots(events: list[int], ends: list[int], size: int) -> tuple[Ints, Ints, Ints]:
    """Return for each moment the slots of the two middle values, which may be the same, and the number of values."""
    present = bytearray(size)
    slots = np.zeros((3, len(ends)), np.int64)
    at = below = total = begin = 0  # `below` of the `total` values present are in slots before `at`
    for moment, end in enumerate(ends):
        for event in events[begin:end]:
            slot, step = (event, 1) if event >= 0 else (~event, -1)
            present[slot] += step
            total += step
            if slot < at:
                below += step
        begin = end
        if not total:
            continue
        middle = (total - 1) // 2
        while below > middle:
            at = present.rfind(1, 0, at)
            below -= 1
        while below < middle or not present[at]:
            below += present[at]
            at = present.find(1, at + 1)
        slots[:, moment] = at, at if total % 2 else present.find(1, at + 1), total
    low, high, totals = slots
    return low, high, totals
