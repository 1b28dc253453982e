"""Maintenance settings of a Hudi table, and its own findings: log files, pending services, cleaning."""

from collections import Counter
from collections.abc import Mapping, Sequence

from snapshot_explorer.core.records import Finding, MaintenanceSettings
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.hudi.metadata.file_groups import StoredFile
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.timeline import WRITES, Instant
from snapshot_explorer.formats.settings import SettingsReader, parse_bytes, parse_count

_MB = 1024 * 1024
_LOG_FILES = "hoodie.compact.inline.max.delta.commits", 5
_RETAINED = "hoodie.clean.commits.retained", 10
_SERVICES = ("compaction", "logcompaction", "clustering")
_WATCH_PENDING = 2 * _LOG_FILES[1]
"""The number of commits after which an action that did not complete is reported."""
_NOT_RECORDED = "Hudi's writers do not record their options: where hoodie.properties lacks one, Hudi's default is used."


def settings_of(properties: Mapping[str, str], name: str, *, is_merge_on_read: bool) -> MaintenanceSettings:
    """Return the settings from `hoodie.properties`, or Hudi's defaults.

    Args:
        name: The table's name, for commands.

    Source: hudi HoodieStorageConfig.PARQUET_MAX_FILE_SIZE, HoodieCompactionConfig.PARQUET_SMALL_FILE_LIMIT; hudi docs,
    "Procedures".
    """
    settings = SettingsReader(properties, noun="property", engine="Hudi")
    target, target_source = settings.of("hoodie.parquet.max.file.size", 120 * _MB, parse_bytes)
    small, small_source = settings.of("hoodie.parquet.small.file.limit", 100 * _MB, parse_bytes)
    compact = f"CALL run_clustering(table => {_quote(name)})"
    if is_merge_on_read:
        compact += f" for small base files, and {_compaction(name)} for log files"
    return MaintenanceSettings(
        target_bytes=target,
        target_source=target_source,
        small_bytes=max(1, min(small, target)),
        small_source=small_source,
        compact=compact,
        repartition_advice="Choose coarser partitions, or fewer buckets, and rewrite the table",
        notes=(_NOT_RECORDED, *settings.notes),
    )


def own_findings(source: HudiSource, version: int, files: Sequence[StoredFile], name: str) -> tuple[Finding, ...]:
    """Return the findings of Hudi's table services; pending services and cleaning of the newest version alone.

    Args:
        files: The files of the version.

    Source: hudi HoodieCompactionConfig.INLINE_COMPACT_NUM_DELTA_COMMITS, HoodieCleanConfig.CLEANER_COMMITS_RETAINED.
    """
    findings = []
    if source.config.is_merge_on_read:
        findings.append(_log_files(source, files, name))
    if version == source.versions[-1]:
        findings += [_pending(source, name), _unfinished_finding(source), _cleaning(source, name)]
    return tuple(findings)


def _log_files(source: HudiSource, files: Sequence[StoredFile], name: str) -> Finding:
    option, default = _LOG_FILES
    trigger, origin = SettingsReader(source.config.values, noun="property", engine="Hudi").of(
        option, default, parse_count
    )
    counts = Counter((file.partition, file.file_id) for file in files if file.is_log)
    slices = len({(file.partition, file.file_id) for file in files})
    above = sum(count > trigger for count in counts.values())
    return Finding(
        finding="log files",
        value=max(counts.values(), default=0),
        watch_from=trigger + 1,
        act_from=4 * trigger,
        found=f"at most {max(counts.values(), default=0):,} in a file slice; {above:,} of {slices:,} slices have more "
        f"than {trigger:,}",
        threshold=f"{trigger + 1:,}, more than {trigger:,} ({origin}), act from {4 * trigger:,}",
        meaning="Readers merge the log files of a slice with its base file.",
        advice=_compaction(name),
    )


def _pending(source: HudiSource, name: str) -> Finding:
    pending = [item for item in source.timeline.of_action(*_SERVICES) if item.state != "completed"]
    is_clustering = bool(pending) and pending[0].action == "clustering"
    return Finding(
        finding="pending services",
        value=_commits_since(source, pending),
        watch_from=_WATCH_PENDING,
        found=_oldest(source, pending) or "no compaction or clustering is requested or running",
        threshold=f"{_WATCH_PENDING:,} commits since it was requested",
        meaning="A compaction that is not run leaves its log files, and holds back the cleaner.",
        advice=f"CALL run_clustering(table => {_quote(name)}, op => 'execute')"
        if is_clustering
        else f"CALL run_compaction(op => 'run', table => {_quote(name)})",
    )


def _unfinished_finding(source: HudiSource) -> Finding:
    unfinished = [item for item in source.timeline.of_action(*WRITES) if item.state != "completed"]
    return Finding(
        finding="unfinished writes",
        value=_commits_since(source, unfinished),
        watch_from=_WATCH_PENDING,
        found=_oldest(source, unfinished) or "no write is requested or running",
        threshold=f"{_WATCH_PENDING:,} commits since it was requested",
        meaning="A write whose writer died leaves its files, and holds back the archival of later commits.",
        advice="If its writer is gone, the next write or clean rolls it back, by hoodie.clean.failed.writes.policy",
    )


def _commits_since(source: HudiSource, pending: Sequence[Instant]) -> int:
    return sum(version > pending[0].time for version in source.versions) if pending else 0


def _oldest(source: HudiSource, pending: Sequence[Instant]) -> str:
    """Return a phrase that describes the pending actions; empty if there are none."""
    if not pending:
        return ""
    since = pluralize(_commits_since(source, pending), "commit")
    return f"{since} since the oldest of {len(pending):,} requested or running: {pending[0].action} {pending[0].text}"


def _cleaning(source: HudiSource, name: str) -> Finding:
    option, default = _RETAINED
    retained, origin = SettingsReader(source.config.values, noun="property", engine="Hudi").of(
        option, default, parse_count
    )
    cleans = [item.time for item in source.timeline.of_action("clean") if item.state == "completed"]
    last = max(cleans, default=None)
    since = sum(last is None or version > last for version in source.timeline.writes)
    return Finding(
        finding="commits since the last clean",
        value=since,
        watch_from=2 * retained + 1,
        found=f"{since:,}" if cleans else f"{since:,}, all of the active timeline, which has no clean",
        threshold=f"{2 * retained + 1:,}, more than twice {retained:,} ({origin})",
        meaning="The cleaner removes files that no retained commit needs; until it runs they take space.",
        advice=f"CALL run_clean(table => {_quote(name)}, retain_commits => {retained})",
    )


def _compaction(name: str) -> str:
    return f"CALL run_compaction(op => 'schedule', table => {_quote(name)}) and then op => 'run'"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
