"""The effect of Hudi's cleaner on a table: its rule, and the existing files that it would delete.

Source: hudi CleanPlanner.getFilesToCleanKeepingLatestCommits and getFilesToCleanKeepingLatestVersions,
CleanerUtils.getEarliestCommitToRetain.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.expiry import (
    Expiry,
    Mask,
    RetentionRule,
    check_age,
    checked_files,
    format_duration,
    freed_frame,
    holder,
    live_at,
    paths_of,
    sizes_of,
)
from snapshot_explorer.formats.hudi.expiry.archival import archival
from snapshot_explorer.formats.hudi.files.change_files import change_files_of
from snapshot_explorer.formats.hudi.metadata.file_groups import NEVER, StoredFile, records
from snapshot_explorer.formats.hudi.metadata.file_names import file_group
from snapshot_explorer.formats.hudi.metadata.history import HudiSource, committed_at
from snapshot_explorer.formats.hudi.metadata.timeline import PENDING_ACTIONS, parse_instant
from snapshot_explorer.formats.hudi.scan.partitions import partition_column
from snapshot_explorer.formats.settings import SettingsReader, parse_count
from snapshot_explorer.storage import Entry

_COMMITS, _HOURS, _FILE_VERSIONS = "KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS"
_POLICY = "hoodie.clean.policy"
_NUMBERS = {
    _COMMITS: ("hoodie.clean.commits.retained", 10, "commit", "retain_commits"),
    _HOURS: ("hoodie.clean.hours.retained", 24, "hour", "hours_retained"),
    _FILE_VERSIONS: ("hoodie.clean.fileversions.retained", 3, "file slice", "file_versions_retained"),
}
"""For each policy the property with its number, Hudi's default, the counted unit, and the command's argument."""
_HOUR = timedelta(hours=1)
_IDLE = "Nothing would be deleted now: no commit was completed since the last clean, and Hudi cleans only after one."
_BY_SLICES = (
    "Archival is predicted for a writer with the cleaning policy KEEP_LATEST_FILE_VERSIONS. The procedure "
    "archive_commits assumes KEEP_LATEST_COMMITS, and may move fewer commits."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    name: str
    count: int
    """The commits, hours or file slices of a group to keep."""
    keep: timedelta | None
    """The age to keep, of the policy by hours."""
    source: str
    """The source of the number, as text."""

    @property
    def rule(self) -> tuple[str, str]:
        """The property of the number, and its value as text."""
        option, _, noun, _ = _NUMBERS[self.name]
        amount = pluralize(self.count, noun) if self.keep is None else format_duration(self.keep)
        return option, f"{amount}, {self.source}"

    @property
    def arguments(self) -> str:
        """The arguments of the command."""
        return f"clean_policy => '{self.name}', {_NUMBERS[self.name][3]} => {self.count}"


def expiry(
    source: HudiSource,
    rule: RetentionRule,
    lifetimes: pa.Table,
    newest: int | None,
    *,
    gone: Mask,
    savepoints: Sequence[int],
    unread: Collection[int] = (),
) -> Expiry:
    """Return the versions and files that the cleaner would delete with a rule.

    Of each file group the cleaner keeps the slices since the earliest kept version and the slice before, or the newest
    slices. A slice with a file that a savepoint needs is kept as a whole, unless its partition's folder is deleted.

    Args:
        lifetimes: LIFETIMES of the table.
        newest: The newest version in them, or None.
        gone: A mask of the files in the LIFETIMES that do not exist.
        savepoints: The versions with savepoints.
        unread: Versions that are not in the LIFETIMES, because a commit cannot be read.
    """
    earliest = source.earliest or 0
    versions = [version for version in source.versions if newest is not None and earliest <= version <= newest]
    policies = _policies(source, rule)
    try:
        is_idle = _is_idle(source)
    except UNREADABLE as error:
        return _undecided_expiry(source, policies, versions, f"the last clean cannot be read: {error}")
    unknown_commits = source.state.unread
    if unread := sorted({*unread, *unknown_commits.errors, *unknown_commits.missing}):
        unknown = f"{runs_text(runs_of(unread))} cannot be read, and so the slices of file groups are not known."
        return _undecided_expiry(source, policies, versions, unknown)
    slices = list(_unneeded_slices(source, policies, rule, versions)) if versions and not is_idle else []
    saved = [files for files in slices if any(file.is_live_at(version) for file in files for version in savepoints)]
    ended = _in_slices(lifetimes, slices)
    dropped = _dropped_partitions(source, slices) if (ended & ~_in_slices(lifetimes, saved) & ~gone).any() else {}
    unsaved = {files[0].partition for files in saved} & dropped.keys()
    saved = [files for files in saved if files[0].partition not in dropped]
    freed = ended & ~_in_slices(lifetimes, saved) & ~gone
    kept = {_by_slice(files[0]) for files in saved}
    cleaned = [files for files in slices if _by_slice(files[0]) not in kept]
    tracked = pa.concat_tables([freed_frame(lifetimes, freed), _change_data(source, cleaned)])
    moved = archival(source, _kept_by_own_policy(source, versions), savepoints)
    others = ", except in folders that would be deleted" if dropped else ""
    root = source.storage.root.rstrip("/").rpartition("/")[2].replace("'", "''")
    command = f"CALL run_clean(table => '{root}', {policies[-1].arguments})"
    return Expiry(
        versions=_versions(source, versions, lifetimes, gone=gone, freed=freed, archived=moved.versions),
        freed=pa.concat_tables([tracked, _untracked_files(source, dropped, tracked)]),
        holders=_holders(lifetimes, newest, savepoints, ended=ended, gone=gone | freed),
        rules=(*(policy.rule for policy in policies), moved.rule),
        commands=(("Spark SQL", command),) if versions else (),
        notes=(
            f"Base files, log files and change data of commits are counted, not files of writers that failed{others}.",
            *([_unsaved(unsaved)] if unsaved else []),
            *([] if source.config.has_utc_times else ["Ages are computed as if the writer's clock were in UTC."]),
            *([_IDLE] if is_idle else []),
            moved.note,
            *([_BY_SLICES] if moved.versions and _own_policy(source) == _FILE_VERSIONS else []),
        ),
    )


def _undecided_expiry(source: HudiSource, policies: Sequence[_Policy], versions: Sequence[int], reason: str) -> Expiry:
    """Return the expiry if it is unknown which file slices the cleaner would delete, with the reason."""
    rows = [
        {"version": version, "committed_at": time, "because": "it is unknown which files would be deleted"}
        for version, time in zip(versions, committed_at(source, versions), strict=True)
    ]
    return Expiry(
        versions=pa.Table.from_pylist(rows, frames.RETAINED),
        freed=frames.FREED.empty_table(),
        holders=frames.HOLDERS.empty_table(),
        rules=tuple(policy.rule for policy in policies),
        commands=(),
        notes=(),
        unknown=f"Which files would be deleted is unknown: {reason}",
    )


def _policies(source: HudiSource, rule: RetentionRule) -> list[_Policy]:
    """Return the policies of a rule, or the table's own. A rule with an age and a number has two policies."""
    policies = []
    if rule.keep is not None:
        hours = -(-rule.keep // _HOUR)
        policies.append(_Policy(name=_HOURS, count=hours, keep=rule.keep, source="as requested"))
    own = _own_policy(source) if rule.keep is None else _COMMITS
    if rule.keep_last is not None:
        name = _COMMITS if own == _HOURS else own
        policies.append(_Policy(name=name, count=rule.keep_last, keep=None, source="as requested"))
    if not policies:
        option, default, _, _ = _NUMBERS[own]
        values = source.config.values
        known = option if option in values else _old_name(option)
        settings = SettingsReader(values, noun="property", engine="Hudi")
        count, origin = settings.of(known if known in values else option, default, parse_count)
        keep = count * _HOUR if own == _HOURS else None
        policies.append(_Policy(name=own, count=count, keep=keep, source=origin))
    return policies


def _own_policy(source: HudiSource) -> str:
    """Return the policy of the properties, or of the last clean: writers do not record their options otherwise."""
    text = source.config.text(_POLICY, _old_name(_POLICY)).upper()
    cleans = source.timeline.of_action("clean")
    if text not in _NUMBERS and cleans:
        try:
            text = str(source.plan(cleans[-1]).get("policy"))
        except UNREADABLE:  # the plan of an old clean may be missing or empty
            text = ""
    return text if text in _NUMBERS else _COMMITS


def _is_idle(source: HudiSource) -> bool:
    """Return whether no commit was completed since the last clean. The cleaner does nothing then, by any policy.

    Source: hudi CleanPlanActionExecutor.needsCleaning; that a writer waits for more than one commit is not recorded.
    """
    cleans = [instant for instant in source.timeline.of_action("clean") if instant.state == "completed"]
    record = source.record(cleans[-1]) if cleans else {}
    last = str(record.get("lastCompletedCommitTimestamp") or "")
    return bool(record) and all(instant.text <= last for instant in source.timeline.writes.values())


def _old_name(option: str) -> str:
    return option.replace("hoodie.clean.", "hoodie.cleaner.")


def _unneeded_slices(
    source: HudiSource, policies: Sequence[_Policy], rule: RetentionRule, versions: Sequence[int]
) -> Iterator[list[StoredFile]]:
    """Yield the file slices that the cleaner would delete if there were no savepoints."""
    earliest = _earliest(source, policies, rule, versions)
    kept = policies[0].count if policies[0].name == _FILE_VERSIONS else None
    if earliest is None and kept is None:
        return
    pending = dict(source.pending)
    files = sorted(records(source.state.files), key=_by_slice)
    for group, members in groupby(files, key=lambda file: (file.partition, file.file_id)):
        slices = [list(slice_files) for _, slice_files in groupby(members, key=lambda file: file.slice)][::-1]
        replaced = max(file.removed for file in slices[0])
        if replaced != NEVER:
            yield from slices if earliest is None or replaced < earliest else ()
            continue
        times = [files[0].slice for files in slices]
        scheduled = pending.get(group)
        # A pending compaction needs the slice before it, and those after.
        compacted = max((time for time in times if scheduled is not None and time < scheduled), default=NEVER)
        if kept is not None:
            older = [files for files in slices if files[0].slice < compacted]
            yield from older[kept - (compacted != NEVER) :]
        elif earliest is not None:
            last_before = max((time for time in times if time < earliest), default=0)
            yield from (files for files in slices[1:] if files[0].slice < min(last_before, compacted))


def _by_slice(file: StoredFile) -> tuple[str, str, int]:
    return file.partition, file.file_id, file.slice


def _earliest(
    source: HudiSource, policies: Sequence[_Policy], rule: RetentionRule, versions: Sequence[int]
) -> int | None:
    """Return the earliest version to keep; None if the policy deletes nothing."""
    active = [version for version in versions if version in source.timeline.writes]
    chosen: list[int | None] = []
    for policy in policies:
        if policy.keep is not None:
            begin = check_age(rule.now, policy.keep)
            chosen.append(next((time for time in active if parse_instant(source.instant(time).text) >= begin), None))
        elif policy.name == _COMMITS:
            earliest = active[-policy.count] if policy.count < len(active) else None
            chosen.append(_before_pending(source, active, earliest))
    known = [item for item in chosen if item is not None]
    return min(known) if known and len(known) == len(chosen) else None


def _before_pending(source: HudiSource, versions: Sequence[int], earliest: int | None) -> int | None:
    """Return the earliest version to keep if a write is pending: the last version before it, if that is earlier."""
    pending = [instant.time for instant in source.timeline.of_action(*PENDING_ACTIONS) if instant.state != "completed"]
    if earliest is None or not pending or min(pending) >= earliest:
        return earliest
    return max((version for version in versions if version < min(pending)), default=None)


def _in_slices(lifetimes: pa.Table, slices: Sequence[Sequence[StoredFile]]) -> Mask:
    """Return which of the LIFETIMES belong to files of the slices."""
    paths = pa.array([file.path for files in slices for file in files], pa.string())
    return np.asarray(pc.is_in(lifetimes.column("path"), value_set=paths).to_numpy(), np.bool_)


def _kept_by_own_policy(source: HudiSource, versions: Sequence[int]) -> int | None:
    """Return the earliest version that the cleaner keeps by the table's own policy, at the time of the newest one."""
    if not versions:
        return None
    own = RetentionRule(keep=None, keep_last=None, now=parse_instant(source.instant(versions[-1]).text))
    return _earliest(source, _policies(source, own), own, versions)


def _dropped_partitions(source: HudiSource, slices: Sequence[Sequence[StoredFile]]) -> dict[str, list[Entry]]:
    """Return the partitions whose folders the cleaner deletes with all their contents, and the files in them.

    The cleaner deletes the folder of a partition if it keeps no file slice there. A file group that a failed writer
    left in the folder prevents this.

    Source: hudi CleanPlanner.hasPendingFiles, CleanActionExecutor.clean.
    """
    state = source.state.files
    current = state.filter(pc.equal(state.column("removed"), NEVER)).column("partition").unique().to_pylist()
    candidates = {files[0].partition for files in slices}.difference(current, [""])
    if not candidates:
        return {}
    every = {_by_slice(file) for file in records(state) if file.partition in candidates}
    needed = every - {_by_slice(files[0]) for files in slices}
    partitions = sorted(candidates - {partition for partition, _, _ in needed})
    groups = {(partition, file_id) for partition, file_id, _ in every}
    return {
        partition: entries
        for partition, entries in zip(partitions, source.storage.list_many(partitions), strict=True)
        if entries and all((partition, group) in groups for entry in entries if (group := file_group(entry.name)))
    }


def _unsaved(partitions: Collection[str]) -> str:
    names = ", ".join(repr(name) for name in sorted(partitions)[:3])
    return (
        f"The cleaner deletes the folders of partitions without current files, here {names}"
        f"{' and others' if len(partitions) > 3 else ''}, with the files that savepoints need."  # noqa: PLR2004 - names
    )


def _untracked_files(source: HudiSource, dropped: Mapping[str, Sequence[Entry]], tracked: pa.Table) -> pa.Table:
    """Return the FREED frame of the other data files in folders that would be deleted."""
    known = set(tracked.column("path").to_pylist())
    files = {
        f"{partition}/{entry.name}": (partition, entry.size_bytes)
        for partition, entries in dropped.items()
        for entry in entries
        if file_group(entry.name) and f"{partition}/{entry.name}" not in known
    }
    partitions, sizes = map(list, zip(*files.values(), strict=True)) if files else ([], [])
    columns = {
        "path": pa.array(files, pa.string()),
        "partition": partition_column(source.config, pa.array(partitions, pa.string())),
        "size_bytes": pa.array(sizes, pa.int64()),
        "removed_version": pa.nulls(len(files), pa.int64()),
        "what": pa.repeat("untracked", len(files)),
    }
    return frames.table_of(frames.FREED, columns)


def _change_data(source: HudiSource, cleaned: Sequence[Sequence[StoredFile]]) -> pa.Table:
    """Return the FREED frame of the existing files of change data in some file slices."""
    if not source.config.logs_changes or not cleaned:
        return frames.FREED.empty_table()
    ended = {_by_slice(files[0]): max(file.removed for file in files) for files in cleaned}
    times: dict[tuple[str, str], list[int]] = {}
    for partition, file_id, time in sorted({_by_slice(file) for file in records(source.state.files)}):
        times.setdefault((partition, file_id), []).append(time)
    rows: list[tuple[str, str, int, int]] = []
    for version, groups in change_files_of(source.commits(source.versions)).items():
        for (partition, file_id), files in groups.items():
            group = times.get((partition, file_id), [])
            # Like log files, they have the commit that wrote them in their names.
            index = bisect_right(group, source.completion(version))
            removed = ended.get((partition, file_id, group[index - 1])) if index else None
            if removed is not None:
                rows += [(file.path, partition, file.size_bytes, removed) for file in files]
    paths, partitions, sizes, removals = map(list, zip(*rows, strict=True)) if rows else [[]] * 4
    columns = {
        "path": pa.array(paths, pa.string()),
        "partition": partition_column(source.config, pa.array(partitions, pa.string())),
        "size_bytes": pa.array(sizes, pa.int64()),
        "removed_version": pa.array(removals, pa.int64()),
    }
    gone = checked_files(source.storage, columns["path"], columns["size_bytes"]).gone
    freed = frames.table_of(frames.FREED, columns | {"what": "change data"})
    return freed.filter(pc.invert(pc.is_in(freed.column("path"), value_set=gone)))


def _versions(
    source: HudiSource,
    versions: Sequence[int],
    lifetimes: pa.Table,
    *,
    gone: Mask,
    freed: Mask,
    archived: Collection[int],
) -> pa.Table:
    rows = []
    for version, time in zip(versions, committed_at(source, versions), strict=True):
        live = live_at(lifetimes, version)
        missing, deletable = int((live & gone).sum()), int((live & freed).sum())
        outcome, because = "kept", "no file that it needs would be deleted"
        if missing:
            outcome, because = "gone", f"{missing:,} of its files do not exist"
        elif deletable:
            outcome, because = "lost", f"{deletable:,} of its files would be deleted"
        elif version == versions[-1]:
            because = "the newest"
        if version in archived and version != versions[-1]:
            because += "; archival would move it"
        rows.append({"version": version, "committed_at": time, "outcome": outcome, "because": because})
    return pa.Table.from_pylist(rows, frames.RETAINED)


def _holders(
    lifetimes: pa.Table, newest: int | None, savepoints: Sequence[int], *, ended: Mask, gone: Mask
) -> pa.Table:
    sizes = sizes_of(lifetimes)
    old = ~gone if newest is None else ~gone & ~live_at(lifetimes, newest)
    kept = paths_of(lifetimes, old & ~ended)
    saved = {version: paths_of(lifetimes, old & live_at(lifetimes, version)) for version in savepoints}
    rows = []
    others = frozenset().union(*saved.values())
    rows.append(holder("kept versions", None, version=None, sizes=sizes, paths=kept, exclusive=kept - others))
    for version, held in saved.items():
        elsewhere = kept.union(*(paths for number, paths in saved.items() if number != version))
        rows.append(holder("tag", str(version), version=version, sizes=sizes, paths=held, exclusive=held - elsewhere))
    return pa.Table.from_pylist(rows, frames.HOLDERS)
