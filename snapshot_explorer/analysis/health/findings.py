"""Health findings of a version: each compares a measured number with thresholds."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.hints import Hint, Message, join
from snapshot_explorer.core.records import Finding, MaintenanceSettings
from snapshot_explorer.core.text import format_size, pluralize

STATES = ("act", "watch", "unknown", "ok")
"""The states of a finding, the most urgent first."""
MISSING_FILES = "missing files"
NOT_LOOKED_FOR = Message("Not checked: whether its files exist; ", Hint("table.verify"), " looks for them.")
_POSTPONED = -2
_MERGEABLE = (50, 0.2), (1_000, 0.5)
"""Thresholds to watch and to act: a number of mergeable files, and their share of all files. Both must be reached."""
_SMALL_GROUPS = (100, 0.5), (10_000, 0.5)
_SKEW = 10
_LARGE = 10
"""The size of the largest partition and bucket from which skew counts, as a number of files of the target size."""
_MAX_DELETED = 0.5
_DELETE_RECORDS = 0.2
_MANIFESTS = 2, 10
"""Small manifests, as multiples of the engine's threshold."""
_COMMITS = (100, 2), (1_000, 10)
"""Commits since the checkpoint: a minimum, and a multiple of the interval."""


def findings_of(
    partitions: pa.Table,
    levels: pa.Table,
    manifests: pa.Table,
    settings: MaintenanceSettings,
    readability: Mapping[str, object] | None,
    own: Sequence[Finding] = (),
) -> tuple[Finding, ...]:
    """Return the findings of a version, the most urgent first.

    Thresholds are the engine's own if it has one. The others exclude tables that need no maintenance: tables with few
    files, and for ratios tables smaller than one small file.

    Args:
        readability: Its row of READABILITY; None if its files were not checked.

    Source: paimon UniversalCompaction.pick, MergeTreeCompactManager.shouldWaitForLatestCompaction,
    ManifestFileMerger; delta docs, "Best practices"; paimon docs, "Data Distribution".
    """
    if not len(partitions):
        return (*_of_metadata(manifests, settings), *own)
    findings = [_of_existence(readability), *_of_files(partitions, settings), *_of_deletes(partitions, settings)]
    if settings.runs_trigger is not None and settings.runs_stop is not None:
        findings += _of_runs(partitions, levels, settings, (settings.runs_trigger, settings.runs_stop))
    findings += [*_of_metadata(manifests, settings), *own]
    return tuple(sorted(findings, key=lambda finding: STATES.index(finding.state)))


def findings_frame(findings: Sequence[Finding]) -> pa.Table:
    """Return findings as HEALTH_FINDINGS, in their order."""
    rows = [{name: getattr(finding, name) for name in frames.HEALTH_FINDINGS.names} for finding in findings]
    return pa.Table.from_pylist(rows, frames.HEALTH_FINDINGS)


def verdict(findings: Sequence[Finding], *, is_empty: bool) -> str:
    """Return a sentence on the most urgent findings."""
    by_state = {state: [finding for finding in findings if finding.state == state] for state in STATES}
    watched = ", ".join(item.finding for item in by_state["watch"])
    is_unchecked = any(item.finding == MISSING_FILES for item in by_state["unknown"])
    unchecked = (" ", NOT_LOOKED_FOR) if is_unchecked else ()
    if by_state["act"]:
        description = join("; ", [Message(f"{item.finding} (", item.found, ")") for item in by_state["act"]])
        return Message("To do: ", description, "." + (f" To watch: {watched}." if watched else ""), *unchecked)
    if watched:
        by_metadata = " by its metadata" if unchecked else ""
        return Message(f"Nothing is urgent{by_metadata}. To watch: {watched}.", *unchecked)
    if is_empty:
        return "The version has no data files: nothing to do."
    unknown = ", ".join(item.finding for item in by_state["unknown"] if item.finding != MISSING_FILES)
    good = "By its metadata, there is nothing to do." if unchecked else "In good order: nothing to do."
    return Message(good, f" Unknown: {unknown}." if unknown else "", *unchecked)


def noun_of(partitions: pa.Table) -> tuple[str, str]:
    """Return the noun for the groups of HEALTH_PARTITIONS, plural and singular."""
    has_buckets = partitions["bucket"].null_count < len(partitions)
    has_partitions = not has_buckets or any(partitions["partition"].slice(0, 1).to_pylist())
    names = [name for name, is_present in (("partition", has_partitions), ("bucket", has_buckets)) if is_present]
    return " and ".join(f"{name}s" for name in names), " and ".join(names)


def _of_existence(readability: Mapping[str, object] | None) -> Finding:
    missing = readability["missing_files"] if readability else None
    is_whole = readability is not None and readability["readable"] == "yes"
    result: str = Message("not checked: health reads metadata, and ", Hint("table.verify"), " looks for every file")
    if is_whole:
        result = "every file that the version needs exists, with its recorded size"
    elif readability and readability["readable"] is not None:
        result = Message("the version cannot be loaded: ", readability["reason"])
    elif readability:
        result = Message("not checked: ", readability["reason"])
    is_lacking = readability is not None and readability["readable"] in ("metadata", "no")
    return Finding(
        finding=MISSING_FILES,
        value=max(1, int(missing or 0)) if is_lacking else 0 if is_whole else None,  # type: ignore[call-overload]  # a number
        watch_from=1,
        act_from=1,
        found=result,
        threshold="1 file",
        meaning="Its rows cannot be loaded without all of its files.",
        advice="Restore the files from a backup or from the versions of the storage",
    )


def _of_files(partitions: pa.Table, settings: MaintenanceSettings) -> Iterator[Finding]:
    noun = noun_of(partitions)
    files, small, mergeable = (_sum(partitions, name) for name in ("files", "small_files", "mergeable_files"))
    watch, act = (max(number, part * files) for number, part in _MERGEABLE)
    yield Finding(
        finding="small files",
        value=mergeable,
        watch_from=watch,
        act_from=act,
        found=f"compaction would remove {mergeable:,} of {files:,} files, by merging {small:,} small ones"
        if mergeable
        else f"compaction would remove none of {pluralize(files, 'file')}: no {noun[1]} has enough small ones to merge",
        threshold=f"{_MERGEABLE[0][0]:,} removable files and {_MERGEABLE[0][1]:.0%} of all, "
        f"act from {_MERGEABLE[1][0]:,} and {_MERGEABLE[1][1]:.0%}",
        meaning="Readers open each file with requests of its own: many small files slow them down.",
        advice=settings.compact,
    )
    sizes = partitions["size_bytes"].to_numpy()
    median, largest = float(np.median(sizes)), int(sizes.max())
    yield Finding(
        finding="skew",
        value=round(largest / median, 1) if median else None,
        watch_from=_SKEW,
        is_large_enough=largest >= _LARGE * settings.target_bytes,
        found=f"all is in one {noun[1]}"
        if len(sizes) == 1
        else f"the largest of {len(sizes):,} {noun[0]} has {format_size(largest)}, "
        f"the median {format_size(int(median))}",
        threshold=f"{_SKEW} times the median, "
        f"where the largest has {format_size(_LARGE * settings.target_bytes)} or more",
        meaning="Tasks are per partition and bucket: the largest determines how long a read or compaction takes.",
        advice="Find out what its rows have in common; choose a bucket key or partitions that distribute them",
    )
    below = int((sizes < settings.small_bytes).sum())
    watch, act = (max(number, part * len(sizes)) for number, part in _SMALL_GROUPS)
    yield Finding(
        finding=f"small {noun[0]}",
        value=below,
        watch_from=watch,
        act_from=act,
        found=f"{below:,} of {len(sizes):,} {'holds' if below == 1 else 'hold'} less than "
        f"{format_size(settings.small_bytes)}",
        threshold=f"{_SMALL_GROUPS[0][0]:,} and {_SMALL_GROUPS[0][1]:.0%} of all, act from {_SMALL_GROUPS[1][0]:,}",
        meaning="Compaction does not merge files of different partitions or buckets, so their files remain small.",
        advice=settings.repartition_advice,
    )


def _of_deletes(partitions: pa.Table, settings: MaintenanceSettings) -> Iterator[Finding]:
    if settings.deleted_ratio is None:
        return
    size_condition = f"in tables of {format_size(settings.small_bytes)} or more"
    is_large_enough = _sum(partitions, "size_bytes") >= settings.small_bytes
    rows = _sum_known(partitions, "rows")
    deleted = _sum_known(partitions, "deleted_rows")
    with_vector, files = _sum(partitions, "vector_files"), _sum(partitions, "files")
    ratio = 0.0 if not with_vector else _part(deleted, rows)
    description = "no file has a deletion vector"
    if with_vector:
        share = "an unknown part" if ratio is None else f"{ratio:.1%}"
        description = f"{share} of the rows, by vectors of {with_vector:,} of {files:,} files"
        maximum = pc.max(partitions["deleted_ratio"]).as_py()
        if len(partitions) > 1 and maximum is not None:
            description += f"; at most {maximum:.1%} in a {noun_of(partitions)[1]}"
    yield Finding(
        finding="rows deleted by vectors",
        value=ratio,
        is_large_enough=is_large_enough,
        watch_from=settings.deleted_ratio,
        act_from=max(_MAX_DELETED, settings.deleted_ratio),
        found=description,
        threshold=f"{settings.deleted_ratio:.0%} ({settings.deleted_source}), "
        f"act from {max(_MAX_DELETED, settings.deleted_ratio):.0%}, {size_condition}",
        meaning="Readers still read deleted rows, and the vectors to filter them out.",
        advice=settings.compact,
    )
    if settings.runs_trigger is None:
        return
    records = _sum_known(partitions, "delete_records")
    ratio = _part(records, rows)
    yield Finding(
        finding="rows that delete others",
        value=ratio,
        is_large_enough=is_large_enough,
        watch_from=_DELETE_RECORDS,
        act_from=_MAX_DELETED,
        found="unknown: not in the manifests" if ratio is None else f"{ratio:.1%} of the rows in files",
        threshold=f"{_DELETE_RECORDS:.0%}, act from {_MAX_DELETED:.0%}, {size_condition}",
        meaning="Every reader merges them, until a full compaction drops them from the last level.",
        advice=settings.compact,
    )


def _of_runs(
    partitions: pa.Table, levels: pa.Table, settings: MaintenanceSettings, triggers: tuple[int, int]
) -> Iterator[Finding]:
    trigger, stop = triggers
    runs = partitions["sorted_runs"].to_numpy()
    maximum, above = int(runs.max(initial=0)), int((runs > trigger).sum())
    fresh = pc.sum(levels.filter(pc.equal(levels["level"], 0))["files"]).as_py() or 0
    yield Finding(
        finding="sorted runs",
        value=maximum,
        watch_from=trigger + 1,
        act_from=stop + 1,
        found=f"at most {maximum:,} in a bucket, {above:,} of {len(runs):,} buckets are above the trigger, "
        f"and level 0 has {fresh:,} files",
        threshold=f"{trigger + 1}, above num-sorted-run.compaction-trigger, act from {stop + 1}, above .stop-trigger",
        meaning="Readers merge the runs of a bucket; above the stop trigger its writers wait for a compaction.",
        advice=settings.compact,
    )
    waiting = partitions.filter(pc.equal(partitions["bucket"], _POSTPONED))
    if len(waiting):
        count = _sum(waiting, "files")
        yield Finding(
            finding="postponed files",
            value=count,
            watch_from=1,
            found=f"{count:,} files of {format_size(_sum(waiting, 'size_bytes'))} wait for a bucket",
            threshold="1 file",
            meaning="Readers do not see their rows until a compaction assigns them to buckets.",
            advice=settings.compact,
        )


def _of_metadata(manifests: pa.Table, settings: MaintenanceSettings) -> Iterator[Finding]:
    base, delta = (manifests.filter(pc.equal(manifests["list"], name)) for name in ("base", "delta"))
    limit = settings.metadata_limit
    if limit is None:
        return
    if settings.metadata_bytes is None:
        yield _of_commits(base, delta, settings, limit)
        return
    sizes = pa.concat_tables([base, delta])["size_bytes"].drop_null().to_numpy()
    small = int((sizes < settings.metadata_bytes).sum())
    median = format_size(int(np.median(sizes))) if len(sizes) else "none"
    watch, act = (limit * times for times in _MANIFESTS)
    yield Finding(
        finding="manifests",
        value=small,
        watch_from=watch,
        act_from=act,
        found=f"{small:,} of {len(sizes):,} {'is' if small == 1 else 'are'} below "
        f"{format_size(settings.metadata_bytes)}; their median is {median}",
        threshold=f"{watch:,}, act from {act:,}; writers merge {limit:,} ({settings.metadata_source})",
        meaning="Every read opens all manifests of the version to plan.",
        advice=settings.metadata_command,
    )


def _of_commits(base: pa.Table, delta: pa.Table, settings: MaintenanceSettings, limit: int) -> Finding:
    watch, act = (max(number, times * limit) for number, times in _COMMITS)
    checkpoint = "no checkpoint that can be read"
    if len(base):
        bytes_known = base["size_bytes"].drop_null().to_numpy()
        parts = f" in {len(base):,} files" if len(base) > 1 else ""
        checkpoint = f"the checkpoint of {format_size(int(bytes_known.sum()))}{parts}"
    return Finding(
        finding="commits since the checkpoint",
        value=len(delta),
        watch_from=watch,
        act_from=act,
        found=f"{len(delta):,}, and {checkpoint}: {pluralize(len(base) + len(delta), 'file')} to read at opening",
        threshold=f"{watch:,}, act from {act:,}; a checkpoint is due every {limit:,} ({settings.metadata_source})",
        meaning="Opening the table reads each of these commits, with a request each.",
        advice=settings.metadata_command,
    )


def _part(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _sum(rows: pa.Table, name: str) -> int:
    return int(pc.sum(rows[name]).as_py() or 0)


def _sum_known(rows: pa.Table, name: str) -> int | None:
    return None if rows[name].null_count else _sum(rows, name)
