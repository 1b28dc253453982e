"""The effect of Hudi's archiver on a table: the commits that it would move from the active timeline to the archive.

Source: hudi TimelineArchiverV2.getCommitInstantsToArchive, ArchivalUtils.getMinAndMaxInstantsToKeep,
CompactionUtils.getEarliestInstantToRetainForCompaction, ClusteringUtils.getEarliestInstantToRetainForClustering.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snapshot_explorer.core.errors import CorruptTableError, MissingFileError
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import FOLDER
from snapshot_explorer.formats.hudi.metadata.timeline import PENDING_ACTIONS, timeline_folder, timeline_of
from snapshot_explorer.formats.settings import SettingsReader, parse_count

_MIN, _MAX = ("hoodie.keep.min.commits", 20), ("hoodie.keep.max.commits", 30)
_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits", 5
_BEYOND_SAVEPOINT = "hoodie.archive.beyond.savepoint"
_MARGIN = 2
"""The earliest commit that the cleaner keeps and the commit before it, which both stay active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archival:
    """The effect of the archiver."""

    versions: frozenset[int]
    """The versions that would be moved."""
    rule: tuple[str, str]
    """The property that starts archival, with its value as text."""
    note: str


def archival(source: HudiSource, earliest_kept: int | None, savepoints: Sequence[int]) -> Archival:
    """Return which versions the archiver would move. At most one listing: of the metadata table's timeline.

    Args:
        earliest_kept: The earliest version that the cleaner keeps by the table's policy; None if it keeps file slices.
        savepoints: The versions with savepoints.
    """
    values = source.config.values
    settings = SettingsReader(values, noun="property", engine="Hudi")
    min_commits, _ = settings.of(*_MIN, parse_count)
    most, origin = settings.of(*_MAX, parse_count)
    active = list(source.timeline.writes)
    if earliest_kept is not None:
        cleaned = sum(version > earliest_kept for version in active) + _MARGIN
        if min_commits < cleaned:
            min_commits, most = cleaned, cleaned + most - min_commits
            origin = "more than is set, because the cleaner needs them"
    moved: list[int] = []
    why = f"the active timeline has {pluralize(len(active), 'commit')}, not more than {most:,}"
    if len(active) > most:
        bounds = list(_bounds(source, active, settings))
        if savepoints and not source.config.is_on(_BEYOND_SAVEPOINT):
            bounds.append((min(savepoints), "the first savepoint"))
        bound, why = min(bounds, default=(active[-1] + 1, ""))
        kept = frozenset(savepoints)
        moved = [version for version in active if version < bound and version not in kept][: len(active) - min_commits]
    return Archival(
        versions=frozenset(moved),
        rule=(_MAX[0], f"{pluralize(most, 'commit')}, {origin}"),
        note=(
            f"Archival would move {pluralize(len(moved), 'commit')}, up to {moved[-1]}, out of the active timeline; it "
            "deletes no data files, but Hudi's own time travel does not read archived versions."
            if moved
            else f"Archival would move no commits: {why}."
        ),
    )


def _bounds(source: HudiSource, active: Sequence[int], settings: SettingsReader) -> Iterator[tuple[int, str]]:
    """Yield instants since which commits stay active, each with the reason as text."""
    pending = [item.time for item in source.timeline.of_action(*PENDING_ACTIONS) if item.state != "completed"]
    if pending:
        before = [version for version in active if version < pending[0]]
        yield before[-1] if before else pending[0], f"the action requested at {pending[0]} is not completed"
    if source.config.is_merge_on_read and (time := _for_compaction(source, settings)) is not None:
        yield time, f"the next compaction needs the commits from {time} on"
    if (time := _for_clustering(source)) is not None:
        yield time, f"the cleaner needs the replacement at {time}"
    if source.config.text("hoodie.table.metadata.partitions"):
        yield _in_metadata_table(source, active)


def _for_compaction(source: HudiSource, settings: SettingsReader) -> int | None:
    """Return the earliest commit that the schedule of compactions counts from."""
    needed, _ = settings.of(*_DELTA_COMMITS, parse_count)
    completed = [item for item in source.timeline.of_action("commit") if item.state == "completed"]
    since = completed[-1].time if completed else 0
    deltas = [item.time for item in source.timeline.of_action("deltacommit") if item.time > since]
    if len(deltas) >= needed:
        return deltas[-needed]
    return since or (deltas[0] if deltas else None)


def _for_clustering(source: HudiSource) -> int | None:
    """Return the first replacement whose replaced files may not have been cleaned."""
    replaced = [item.time for item in source.timeline.of_action("replacecommit", "clustering")]
    cleans = [item for item in source.timeline.of_action("clean") if item.state == "completed"]
    if not cleans:
        return replaced[0] if replaced else None
    try:
        earliest = str((source.plan(cleans[-1]).get("earliestInstantToRetain") or {}).get("timestamp") or "")
    except (MissingFileError, CorruptTableError):  # the plan of an old clean may be missing or empty
        earliest = ""
    kept = int(earliest) if earliest.isdecimal() else cleans[-1].time
    return next((time for time in replaced if time >= kept), None)


def _in_metadata_table(source: HudiSource, active: Sequence[int]) -> tuple[int, str]:
    """Return the first commit that the last compaction of the metadata table does not contain."""
    folder = f"{FOLDER}/metadata/{timeline_folder(source.config)}"
    commits = timeline_of(source.storage.list(folder), source.config).of_action("commit")
    compacted = [instant.time for instant in commits if instant.state == "completed"]
    if not compacted:
        return 0, "the metadata table was not compacted yet"
    after = (version for version in active if source.completion(version) > compacted[-1])
    return next(after, active[-1] + 1), f"the last compaction of the metadata table was at {compacted[-1]}"
