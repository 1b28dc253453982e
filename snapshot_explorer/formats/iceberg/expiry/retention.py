"""Snapshot expiry: the snapshots and files that Iceberg's `expire_snapshots` would remove.

Source: iceberg docs, "Spark Procedures" (expire_snapshots); iceberg RemoveSnapshots, ExpireSnapshotsSparkAction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.milliseconds import to_millis
from snapshot_explorer.core.text import list_names, pluralize
from snapshot_explorer.formats.expiry import (
    Expiry,
    Mask,
    RetentionRule,
    check_age,
    format_duration,
)
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.expiry.settings import name_of
from snapshot_explorer.formats.iceberg.frames.files import partition_maps, partitions_of
from snapshot_explorer.formats.iceberg.metadata.contents import Source, manifests_of, readable_entries
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory, time_of
from snapshot_explorer.formats.iceberg.metadata.manifests import live_entries
from snapshot_explorer.formats.iceberg.metadata.partition_tuples import PartitionTuples
from snapshot_explorer.formats.iceberg.metadata.table_metadata import MAIN, IcebergSnapshot, SnapshotRef, TableMetadata
from snapshot_explorer.formats.settings import SettingsReader, parse_flag
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.storage.same_files import match_files

_AGE = "history.expire.max-snapshot-age-ms"
_MIN = "history.expire.min-snapshots-to-keep"
_REF_AGE = "history.expire.max-ref-age-ms"
_DELETES_METADATA, _MOST_METADATA = "write.metadata.delete-after-commit.enabled", "write.metadata.previous-versions-max"
_DEFAULT_AGE_MS = 5 * 24 * 60 * 60 * 1000
_DEFAULT_MIN = 1
_FOR_EVER = 2**63 - 1
_COMMAND_NOTE = "The table's name is a guess from its folder: give the name that it has in your catalog."
_MAX_HOLDERS = 200
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The arguments of `expire_snapshots`, in milliseconds since 1970."""

    now: int
    older_than: int
    min_snapshots: int
    ref_age: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptSnapshots:
    snapshots: Mapping[int, str]
    """The snapshot ids, and why each is kept."""
    refs: tuple[SnapshotRef, ...]
    removed_refs: tuple[str, ...]
    """The refs that are removed because of their age."""


def expiry(source: Source, history: IcebergHistory, rule: RetentionRule, lifetimes: pa.Table) -> Expiry:
    """Return the snapshots and files that `CALL system.expire_snapshots` with a rule would remove.

    Files are removed that a removed snapshot reaches and no kept one, of any branch or tag. Reads the manifest lists of
    all snapshots of the table, and every manifest that one of them names.

    Args:
        rule: The rule; by default the table's own settings apply.
        lifetimes: LIFETIMES of the history.
    """
    metadata = source.metadata
    if not parse_flag(metadata.properties, "gc.enabled", default=True):
        raise refusal(features.EXPIRY_WITHOUT_GC)
    arguments, rules = _rule(metadata.properties, rule)
    kept = _kept_snapshots(metadata, arguments)
    versions = _versions(history, kept)
    if not metadata.snapshots:
        return Expiry(
            versions=versions,
            freed=frames.FREED.empty_table(),
            holders=frames.HOLDERS.empty_table(),
            rules=rules,
            commands=(),
            notes=("The table has no snapshots: nothing expires.",),
        )
    reached = _ReachableFiles(source)
    kept_unread = [item for item in reached.unread if item in kept.snapshots]
    nothing = frames.FREED.empty_table()
    # A kept snapshot that cannot be read may need any file.
    freed, undecided = (nothing, ()) if kept_unread else _freed_files(source, reached, kept, lifetimes)
    is_known = not kept_unread and (len(freed) > 0 or not undecided)
    return Expiry(
        versions=versions,
        freed=freed,
        holders=frames.HOLDERS.empty_table() if kept_unread else _holders(history, reached, kept),
        rules=rules,
        commands=_commands(source.storage.root, arguments),
        notes=(*undecided, *_notes(metadata, history, kept)),
        metadata=_freed_metadata(source, reached, kept) if is_known else nothing,
        command_notes=(_COMMAND_NOTE,),
        unknown=_unknown(history, reached, kept_unread),
    )


def _rule(properties: Mapping[str, str], rule: RetentionRule) -> tuple[_Rule, tuple[tuple[str, str], ...]]:
    settings = SettingsReader(properties, noun="property", engine="Iceberg")
    age = rule.keep
    if age is None:
        age = timedelta(milliseconds=settings.required_count(_AGE, _DEFAULT_AGE_MS, _FOR_EVER))
    minimum = rule.keep_last or settings.required_count(_MIN, _DEFAULT_MIN, _FOR_EVER)
    count = "1 version" if minimum == 1 else f"{minimum:,} versions"
    rules = (
        ("keep", f"{format_duration(age)} ({settings.source_of(_AGE, is_requested=rule.keep is not None)})"),
        ("keep at least", f"{count} ({settings.source_of(_MIN, is_requested=rule.keep_last is not None)})"),
    )
    result = _Rule(
        now=to_millis(rule.now),
        older_than=to_millis(check_age(rule.now, age)),
        min_snapshots=minimum,
        ref_age=settings.required_count(_REF_AGE, _FOR_EVER, _FOR_EVER),
    )
    return result, rules


def _kept_snapshots(metadata: TableMetadata, rule: _Rule) -> _KeptSnapshots:
    """Return the snapshots that expiry keeps.

    Source: iceberg RemoveSnapshots (computeRetainedRefs, computeAllBranchSnapshotsToRetain,
    unreferencedSnapshotsToRetain).
    """
    refs: list[SnapshotRef] = []
    removed: list[SnapshotRef] = []
    for name, ref in metadata.refs.items():
        max_age = rule.ref_age if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        is_kept = name == MAIN or rule.now - metadata.snapshots[ref.snapshot_id].timestamp_ms <= max_age
        (refs if is_kept else removed).append(ref)
    snapshots: dict[int, str] = {}
    referenced: set[int] = set()
    for ref in refs:
        word = "head of the branch" if ref.is_branch else "named by the tag"
        snapshots.setdefault(ref.snapshot_id, f"{word} {ref.name}")
        referenced.add(ref.snapshot_id)
        if ref.is_branch:
            _keep_branch(metadata, ref, rule, snapshots, referenced)
    for snapshot in metadata.snapshots.values():
        if snapshot.id not in referenced and snapshot.timestamp_ms >= rule.older_than:
            snapshots.setdefault(snapshot.id, "younger than the rule, of no branch")
    return _KeptSnapshots(snapshots=snapshots, refs=tuple(refs), removed_refs=tuple(ref.name for ref in removed))


def _keep_branch(
    metadata: TableMetadata, ref: SnapshotRef, rule: _Rule, snapshots: dict[int, str], referenced: set[int]
) -> None:
    minimum = rule.min_snapshots if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    older_than = rule.older_than if ref.max_snapshot_age_ms is None else rule.now - ref.max_snapshot_age_ms
    count, is_keeping = 0, True
    for item in _ancestry(metadata, ref.snapshot_id):
        referenced.add(item.id)
        is_keeping = is_keeping and (count < minimum or item.timestamp_ms >= older_than)
        if is_keeping:
            count += 1
            why = f"among the last {minimum:,}" if count <= minimum else "younger than the rule"
            snapshots.setdefault(item.id, f"{why} of the branch {ref.name}")


def _ancestry(metadata: TableMetadata, head: int) -> Sequence[IcebergSnapshot]:
    ancestors: dict[int, IcebergSnapshot] = {}
    snapshot_id: int | None = head
    while snapshot_id is not None and snapshot_id in metadata.snapshots and snapshot_id not in ancestors:
        ancestors[snapshot_id] = metadata.snapshots[snapshot_id]
        snapshot_id = metadata.snapshots[snapshot_id].parent_id
    return list(ancestors.values())


def _versions(history: IcebergHistory, kept: _KeptSnapshots) -> pa.Table:
    rows = [
        {
            "version": version,
            "committed_at": history.time_of(version),
            "outcome": "kept" if snapshot.id in kept.snapshots else "lost",
            "because": kept.snapshots.get(snapshot.id, "older than the rule, and no branch or tag needs it"),
        }
        for version, snapshot in history.snapshots.items()
    ]
    return pa.Table.from_pylist(rows, frames.RETAINED)


class _ReachableFiles:
    """The files that snapshots reach. Reads every manifest list and every manifest of a table once."""

    def __init__(self, source: Source) -> None:
        self.snapshots = list(source.metadata.snapshots.values())
        every = range(len(self.snapshots))
        of_lists = read_apart(
            lambda rows: manifests_of(source, [self.snapshots[row] for row in rows]), every, source.storage
        )
        lists = pa.concat_tables([part for _, part in of_lists.parts] or [manifests_of(source, [])])
        keys = lists.column("location").combine_chunks().dictionary_encode()
        codes = keys.indices.to_numpy().astype(np.int64)
        firsts = np.unique(codes, return_index=True)[1]
        manifests = lists.take(pa.array(firsts))
        self.partitions = PartitionTuples(source.metadata.specs)
        entries, unread = readable_entries(source, manifests, self.partitions)
        rows = live_entries(entries)
        encoded = single_chunk(rows.column("location")).dictionary_encode()
        self._file_codes = encoded.indices.to_numpy().astype(np.int64)
        self._file_manifests = rows.column("manifest").to_numpy()
        self.paths = encoded.dictionary
        self.rows = rows.take(pa.array(np.unique(self._file_codes, return_index=True)[1]))
        """An entry of each file, in the order of `paths`."""
        index = {item.id: index for index, item in enumerate(self.snapshots)}
        owners = np.array([index[item] for item in lists.column("snapshot_id").to_pylist()], np.int64)
        self._order = np.argsort(owners, kind="stable")
        self._bounds = np.searchsorted(owners[self._order], np.arange(len(self.snapshots) + 1))
        self._codes = codes[self._order]
        self._indices = index
        self.manifest_rows = manifests
        """MANIFEST_FILES of each manifest."""
        self.unread = {self.snapshots[row].id: error for row, error in of_lists.unread.items()}
        """The reason why some files of a snapshot are unknown, by its id."""
        for row, code in zip(owners.tolist(), codes.tolist(), strict=True):
            if code in unread:
                self.unread.setdefault(self.snapshots[row].id, unread[code])

    def manifests(self, snapshot_ids: Sequence[int]) -> Mask:
        """Return which of the manifests the snapshots reach."""
        is_reached = np.zeros(len(self.manifest_rows), np.bool_)
        for snapshot_id in snapshot_ids:
            index = self._indices[snapshot_id]
            is_reached[self._codes[self._bounds[index] : self._bounds[index + 1]]] = True
        return is_reached

    def files(self, snapshot_ids: Sequence[int]) -> Mask:
        """Return which of the files the snapshots reach."""
        is_reached = self.manifests(snapshot_ids)
        result = np.zeros(len(self.paths), np.bool_)
        result[self._file_codes[is_reached[self._file_manifests]]] = True
        return result

    def sizes(self) -> npt.NDArray[np.int64]:
        sizes: npt.NDArray[np.int64] = self.rows.column("size_bytes").to_numpy()
        return sizes


def _freed_files(
    source: Source, reached: _ReachableFiles, kept: _KeptSnapshots, lifetimes: pa.Table
) -> tuple[pa.Table, Sequence[str]]:
    """Return FREED, and notes on files that are left out because kept snapshots may name them by another path."""
    removed_ids = [snapshot.id for snapshot in reached.snapshots if snapshot.id not in kept.snapshots]
    needed = pa.array(reached.files(list(kept.snapshots)))
    freed = pc.and_(pa.array(reached.files(removed_ids)), pc.invert(needed))
    matched = match_files(source.storage, reached.paths.filter(freed), reached.paths.filter(needed))
    rows = reached.rows.filter(freed).filter(pc.invert(matched.is_named))
    notes = []
    if count := pc.sum(matched.is_named).as_py():
        notes.append(
            f"{pluralize(count, 'file')} of snapshots that would be removed {'is' if count == 1 else 'are'} not "
            "listed: kept snapshots name the same by another path. expire_snapshots compares paths as text and may "
            "delete it."
        )
    if matched.note:
        rows, notes = rows.slice(0, 0), [*notes, f"{matched.note} No file is listed."]
    maps = partition_maps(source.metadata, reached.partitions.arrays())
    is_vector = pc.equal(rows.column("file_format"), "puffin")
    of_data = pc.equal(rows.column("content"), 0)
    known = pc.index_in(rows.column("location"), single_chunk(lifetimes.column("path")))
    removed = single_chunk(lifetimes.column("removed_version")).take(single_chunk(known))
    columns = {
        "what": pc.if_else(of_data, "data", pc.if_else(is_vector, "deletion vector", "deletes")),
        "path": rows.column("location"),
        "partition": partitions_of(rows, maps),
        "size_bytes": rows.column("size_bytes"),
        "removed_version": removed,
    }
    table = frames.table_of(frames.FREED, columns)
    return table.sort_by([("removed_version", "ascending"), ("path", "ascending")]), notes


def _freed_metadata(source: Source, reached: _ReachableFiles, kept: _KeptSnapshots) -> pa.Table:
    """Return FREED of the metadata files that only removed snapshots need, and of old metadata files.

    Source: iceberg ReachableFileCleanup; CatalogUtil.deleteRemovedMetadataFiles.
    """
    metadata, locations = source.metadata, source.locations
    removed_snapshots = [snapshot for snapshot in reached.snapshots if snapshot.id not in kept.snapshots]
    rows: list[tuple[str, str, int | None]] = [
        ("manifest list", snapshot.manifest_list, None)
        for snapshot in removed_snapshots
        if snapshot.manifest_list is not None
    ]
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    needed = {item.get("statistics-path") for item in statistics if item.get("snapshot-id") in kept.snapshots}
    rows += [
        ("statistics", path, item.get("file-size-in-bytes"))
        for item in statistics
        if (path := item.get("statistics-path")) is not None and path not in needed
    ]
    properties = metadata.properties
    if parse_flag(properties, _DELETES_METADATA):
        most = SettingsReader(properties, noun="property", engine="Iceberg").required_count(
            _MOST_METADATA, 100, _FOR_EVER
        )
        log = [path for _, path in metadata.metadata_log]
        # The command adds the current one.
        rows += [("metadata", path, None) for path in log[: max(0, len(log) + 1 - most)]]
    recorded = pa.array([path for _, path, _ in rows], pa.string())
    is_freed = reached.manifests([item.id for item in removed_snapshots]) & ~reached.manifests(list(kept.snapshots))
    manifests = reached.manifest_rows.filter(pa.array(is_freed))
    return pa.concat_tables(
        [
            frames.table_of(
                frames.FREED,
                {
                    "what": pa.array([what for what, _, _ in rows], pa.string()),
                    "path": locations.many(recorded) if rows else recorded,
                    "size_bytes": pa.array([size for _, _, size in rows], pa.int64()),
                },
            ),
            frames.table_of(
                frames.FREED,
                {
                    "what": "manifest",
                    "path": manifests.column("location"),
                    "size_bytes": manifests.column("length"),
                },
            ),
        ]
    )


def _holders(history: IcebergHistory, reached: _ReachableFiles, kept: _KeptSnapshots) -> pa.Table:
    """Return the HOLDERS frame: the references to files that are not in the newest version of the history."""
    if not history.versions:
        return frames.HOLDERS.empty_table()
    newest = reached.files([history.snapshots[history.versions[-1]].id])
    named = [ref for ref in kept.refs if ref.name != (history.branch or MAIN)][:_MAX_HOLDERS]
    of_refs = {ref.snapshot_id for ref in named if not ref.is_branch}
    in_history = [snapshot for snapshot in kept.snapshots if snapshot in history.numbers and snapshot not in of_refs]
    masks: dict[tuple[str, str | None], tuple[Mask, int | None]] = {
        ("kept versions", None): (reached.files(in_history), None)
    }
    for ref in named:
        number = history.metadata.snapshots[ref.snapshot_id].sequence_number
        ids = [ref.snapshot_id]
        if ref.is_branch:
            ids = [item.id for item in _ancestry(history.metadata, ref.snapshot_id) if item.id in kept.snapshots]
        key = ("branch" if ref.is_branch else "tag", ref.name)
        masks[key] = (reached.files(ids), history.numbers.get(ref.snapshot_id, number))
    counts = np.sum([mask for mask, _ in masks.values()], axis=0)
    sizes = reached.sizes()
    rows = []
    for (kind, name), (mask, version) in masks.items():
        old = mask & ~newest
        alone = old & (counts == 1)
        rows.append(
            {
                "holder": kind,
                "name": name,
                "version": version,
                "files": int(old.sum()),
                "size_bytes": int(sizes[old].sum()),
                "exclusive_files": int(alone.sum()),
                "exclusive_bytes": int(sizes[alone].sum()),
            }
        )
    return pa.Table.from_pylist(
        [row for row in rows if row["files"] or row["holder"] != "kept versions"], frames.HOLDERS
    )


def _unknown(history: IcebergHistory, reached: _ReachableFiles, kept: Sequence[int]) -> str | None:
    """Return why other files may be deleted too, in a sentence; None if every snapshot could be read.

    Args:
        kept: The snapshots that are kept and cannot be read.
    """
    if not reached.unread:
        return None
    names = [
        f"version {history.numbers[item]}" if item in history.numbers else f"snapshot {item}" for item in reached.unread
    ]
    listed = list_names(names, _MAX_NAMED)
    if kept:
        return (
            f"Which files would be deleted is unknown: {listed} cannot be read, and those that are kept may need any."
        )
    return f"More files may be deleted: those of {listed} are unknown."


def _commands(root: str, rule: _Rule) -> tuple[tuple[str, str], ...]:
    literal = name_of(root).replace("'", "''")
    older = time_of(rule.older_than).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    call = (
        f"CALL system.expire_snapshots(table => '{literal}', older_than => TIMESTAMP '{older} UTC', "
        f"retain_last => {rule.min_snapshots})"
    )
    return (("Spark", call),)


def _notes(metadata: TableMetadata, history: IcebergHistory, kept: _KeptSnapshots) -> tuple[str, ...]:
    notes = []
    others = [
        snapshot
        for snapshot in metadata.snapshots
        if snapshot not in history.numbers and snapshot not in kept.snapshots
    ]
    if others:
        notes.append(
            f"{len(others):,} snapshots of other branches, or of none, would be removed too; their files are counted."
        )
    if kept.removed_refs:
        shown = ", ".join(kept.removed_refs[:5])
        notes.append(f"Branches and tags that would be removed for their age: {shown}.")
    notes.append(
        "Manifest lists, manifests and statistics files that would go too are in metadata_files, and not counted."
    )
    if not parse_flag(metadata.properties, _DELETES_METADATA):
        notes.append(f"Old metadata files stay: {_DELETES_METADATA} is not true.")
    return tuple(notes)
