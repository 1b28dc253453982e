"""The effect of Hudi's cleaner on a table: its rule, and the existing files that it would delete.

Source: hudi CleanPlanner.getFilesToCleanKeepingLatestCommits, CleanerUtils.getEarliestCommitToRetain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.formats.expiry import (
    Expiry,
    Mask,
    RetentionRule,
    check_age,
    format_duration,
    freed_frame,
    holder,
    live_at,
    paths_of,
    ranges,
    sizes_of,
)
from snapshot_explorer.formats.hudi.metadata.history import HudiSource, committed_at
from snapshot_explorer.formats.hudi.metadata.timeline import WRITES, moment
from snapshot_explorer.render.cells import counted

_DEFAULT_COMMITS = 10
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cleaning:
    """What the cleaner keeps."""

    earliest: int | None
    """The earliest version to keep; None if nothing would be deleted."""
    rules: tuple[tuple[str, str], ...]
    """The rules by name, each with its value and source."""
    arguments: str
    """The arguments of the command."""


def expiry(
    source: HudiSource,
    rule: RetentionRule,
    lifetimes: pa.Table,
    newest: int | None,
    *,
    gone: Mask,
    savepoints: Sequence[int],
) -> Expiry:
    """Return what the cleaner would delete with a rule.

    Of each file group it keeps the slices from the earliest version to keep on, and the one before. So a file goes if
    its slice ended before that version, unless a savepoint needs it.

    Args:
        lifetimes: LIFETIMES of the table.
        newest: The newest version in them; None if there is none.
        gone: Which of these files do not exist.
        savepoints: The versions with savepoints.
    """
    versions = [version for version in source.versions if newest is not None and version <= newest]
    cleaning = _cleaning(source, rule, versions)
    ended = np.zeros(len(lifetimes), np.bool_)
    if cleaning.earliest is not None:
        ended = ranges(lifetimes)[1] < cleaning.earliest
    held: Mask = np.zeros(len(lifetimes), np.bool_)
    for version in savepoints:
        held |= live_at(lifetimes, version)
    freed = ended & ~held & ~gone
    root = source.storage.root.rstrip("/").rpartition("/")[2].replace("'", "''")
    return Expiry(
        versions=_versions(source, versions, lifetimes, gone=gone, freed=freed),
        freed=freed_frame(lifetimes, freed),
        holders=_holders(lifetimes, newest, savepoints, ended=ended, gone=gone),
        rules=cleaning.rules,
        commands=(("Spark SQL", f"CALL run_clean(table => '{root}', {cleaning.arguments})"),) if versions else (),
        notes=(
            "Base files and log files of commits are counted, not files of writers that failed, and not change data.",
            "Ages are computed as if the writer's clock were in UTC.",
        ),
    )


def _cleaning(source: HudiSource, rule: RetentionRule, versions: Sequence[int]) -> _Cleaning:
    """Return what a rule keeps: of an age and a number, what either keeps."""
    earliest: list[int | None] = []
    rules: list[tuple[str, str]] = []
    arguments: list[str] = []
    if rule.keep is not None:
        begin = check_age(rule.now, rule.keep)
        earliest.append(next((version for version in versions if moment(source.instant(version).text) >= begin), None))
        rules.append(("hoodie.clean.hours.retained", f"{format_duration(rule.keep)}, as requested"))
        hours = -(-rule.keep // _HOUR)
        arguments.append(f"clean_policy => 'KEEP_LATEST_BY_HOURS', hours_retained => {hours}")
    if rule.keep_last is not None or rule.keep is None:
        count = _DEFAULT_COMMITS if rule.keep_last is None else rule.keep_last
        earliest.append(versions[-count] if 0 < count < len(versions) else None)
        by = "Hudi's default" if rule.keep_last is None else "as requested"
        rules.append(("hoodie.clean.commits.retained", f"{counted(count, 'commit')}, {by}"))
        arguments.append(f"clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => {count}")
    known = [item for item in earliest if item is not None]
    chosen = min(known) if len(known) == len(earliest) else None
    return _Cleaning(earliest=_before_pending(source, versions, chosen), rules=tuple(rules), arguments=arguments[-1])


def _before_pending(source: HudiSource, versions: Sequence[int], earliest: int | None) -> int | None:
    """Return the earliest version to keep where a write is pending: the last one before it, if that is earlier."""
    pending = [
        instant.time
        for instant in source.timeline.instants
        if instant.state != "completed" and instant.action in {*WRITES, "clustering"}
    ]
    if earliest is None or not pending or min(pending) >= earliest:
        return earliest
    return max((version for version in versions if version < min(pending)), default=None)


def _versions(source: HudiSource, versions: Sequence[int], lifetimes: pa.Table, *, gone: Mask, freed: Mask) -> pa.Table:
    rows = []
    for version, time in zip(versions, committed_at(source, versions), strict=True):
        live = live_at(lifetimes, version)
        missing, lost = int((live & gone).sum()), int((live & freed).sum())
        outcome, because = "kept", "no file that it needs would be deleted"
        if missing:
            outcome, because = "gone", f"{missing:,} of its files do not exist"
        elif lost:
            outcome, because = "lost", f"{lost:,} of its files would be deleted"
        elif version == versions[-1]:
            because = "the newest"
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
    rows.append(holder("kept versions", None, version=None, sizes=sizes, held=kept, exclusive=kept - others))
    for version, held in saved.items():
        elsewhere = kept.union(*(paths for number, paths in saved.items() if number != version))
        rows.append(holder("tag", str(version), version=version, sizes=sizes, held=held, exclusive=held - elsewhere))
    return pa.Table.from_pylist(rows, frames.HOLDERS)
