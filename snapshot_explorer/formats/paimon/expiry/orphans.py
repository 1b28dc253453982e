"""The files that Paimon's metadata names, and the effect of `remove_orphan_files` on all other files.

Source: paimon docs, "Manage Snapshots", "Remove Orphan Files"; paimon OrphanFilesClean, LocalOrphanFilesClean.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.records import Listing, gaps_note
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles
from snapshot_explorer.formats.paimon.metadata.contents import (
    KEPT_LISTS,
    METADATA,
    checked_entries,
    list_of,
)
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import INDEXES, MANIFESTS, Layout, manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import read_indexes, read_lists
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.storage import Storage

_AGE = timedelta(days=1)
_AT_ONCE = 256
"""The maximum number of manifests whose content is in memory at the same time."""
_BRANCH = r"(?:branch/branch-[^/]+/)?"
_OWN = re.compile(
    rf"{_BRANCH}(?:snapshot/(?:snapshot-\d+|LATEST|EARLIEST)|changelog/(?:changelog-\d+|LATEST|EARLIEST)|schema/schema-\d+"
    r"|tag/tag-.+|consumer/consumer-.+|service/.+)",
    re.ASCII,
)
_SNAPSHOTS = re.compile(rf"{_BRANCH}(?:snapshot|changelog)/[^/]+")
_SHARED = (MANIFESTS, INDEXES, "statistics")


def named_files(storage: Storage, histories: Mapping[str, PaimonHistory], listed: pa.Array) -> NamedFiles:
    """Return the listed files that a snapshot, tag or changelog of any branch names.

    Files are matched by their names, which are unique, as `remove_orphan_files` does: folders depend on options, which
    may have changed. Reads every manifest list and every manifest once.

    Args:
        histories: By branch.
    """
    names = _Names(storage)
    for branch, history in histories.items():
        names.add_branch(branch, history)
    last = pc.replace_substring_regex(listed, r"^.*/", "")
    is_named = pc.or_(
        pc.is_in(last, pa.array(names.names, pa.string())),
        pa.array([_OWN.fullmatch(path) is not None for path in listed.to_pylist()], pa.bool_()),
    )
    return NamedFiles(
        paths=listed.filter(is_named),
        unread=tuple(names.unread),
        notes=("Files at external paths were not searched, only the table's folder.",) if names.is_external else (),
    )


@dataclass(frozen=True, slots=True)
class _NamedFile:
    """A file in the folder of manifests."""

    name: str
    size_bytes: int | None
    snapshot: PaimonSnapshot
    """The snapshot, tag or changelog that names it."""
    is_kept: bool
    """Whether it exists as long as the snapshot."""

    @property
    def path(self) -> str:
        """Its path below the table's folder."""
        return manifest_path(self.name, self.snapshot.path)


class _Names:
    """The names of files, and the metadata that could not be read."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen: set[str] = set()
        self.names: set[str] = set()
        self.unread: list[str] = []
        self.is_external = False

    def add_branch(self, branch: str, history: PaimonHistory) -> None:
        try:
            stored = history.stored_versions()
            present = history.present([*stored.snapshots, *stored.changelogs])
        except SnapshotExplorerError as error:
            self._lacks(f"The snapshots of branch {branch} could not be read", error)
            return
        self.unread += map(str, stored.damaged_tags)
        self.unread += [stored.newest_note] if stored.newest_note else []
        read = [number for number in stored.snapshots if number in present]
        gaps = Listing(versions=stored.snapshots, identity=()).gaps(read)
        # Expiry removes the oldest snapshots. The newest one never vanishes without a fault.
        if read[-1:] != list(stored.snapshots[-1:]):
            self.unread.append(f"Snapshot {stored.snapshots[-1]} of branch {branch} was listed, but does not exist.")
        self.unread += gaps_note(gaps, f"files that only they name in branch {branch} are unknown")
        named = {item.path: item for item in (*present.values(), *stored.tags.values())}
        snapshots = list(named.values())
        for begin in range(0, len(snapshots), _AT_ONCE):
            self._add_snapshots(snapshots[begin : begin + _AT_ONCE])

    def _add_snapshots(self, snapshots: Sequence[PaimonSnapshot]) -> None:
        lists = [
            _NamedFile(*named, snapshot, kind in KEPT_LISTS[snapshot.file_kind])
            for snapshot in snapshots
            for kind in ("base", "delta", "changelog")
            if (named := list_of(snapshot, kind)) is not None and self._is_new(named[0])
        ]
        manifests: dict[str, tuple[pa.Table, PaimonSnapshot]] = {}
        for file, content in self._read(lists):
            rows = self._manifests_in(file, content)
            manifests |= {name: (row, file.snapshot) for name, row in rows.items() if self._is_new(name)}
        self.names.update(snapshot.statistics for snapshot in snapshots if snapshot.statistics is not None)
        self._add_manifests(manifests)
        indexes = [
            # Expiry deletes the index manifests of changelogs.
            _NamedFile(snapshot.index_manifest, None, snapshot, snapshot.file_kind != "changelog")
            for snapshot in snapshots
            if snapshot.index_manifest is not None and self._is_new(snapshot.index_manifest)
        ]
        for file, content in self._read(indexes):
            self._add_index(file, content)

    def _is_new(self, name: str) -> bool:
        is_new = name not in self._seen
        self._seen.add(name)
        self.names.add(name)
        return is_new

    def _manifests_in(self, file: "_NamedFile", content: bytes | None) -> dict[str, pa.Table]:
        """Return the names of the manifests in a list, each with its row of the list."""
        if content is None:
            if file.is_kept:
                self.unread.append(f"{MANIFESTS}/{file.name}, which {file.snapshot.path} names, does not exist.")
            return {}
        try:
            check_size(file.path, len(content), file.size_bytes, by=METADATA)
            rows = read_lists([(file.name, content)], limits=self._storage.limits)[0]
        except SnapshotExplorerError as error:
            self._lacks(f"{MANIFESTS}/{file.name} could not be read", error)
            return {}
        return {manifest: rows.slice(index, 1) for index, manifest in enumerate(rows.column("name").to_pylist())}

    def _add_manifests(self, manifests: Mapping[str, tuple[pa.Table, PaimonSnapshot]]) -> None:
        # Expiry deletes the manifests of changelogs and of deltas that only expired snapshots need.
        files = [
            _NamedFile(name, None, snapshot, snapshot.file_kind == "snapshot")
            for name, (_, snapshot) in sorted(manifests.items())
        ]
        for file, content in self._read(files):
            if content is None:
                if file.is_kept:
                    self.unread.append(
                        f"The manifest {MANIFESTS}/{file.name}, which {file.snapshot.path} needs, is missing."
                    )
                continue
            try:
                entries, _ = checked_entries(
                    manifests[file.name][0],
                    [(file.path, content)],
                    ("extra_files", "external_path"),
                    limits=self._storage.limits,
                )
            except SnapshotExplorerError as error:
                self._lacks(f"The manifest {MANIFESTS}/{file.name} could not be read", error)
                continue
            self.is_external |= entries.column("external_path").null_count < len(entries)
            self.names.update(entries.column("file_name").to_pylist())
            self.names.update(pc.list_flatten(entries.column("extra_files")).to_pylist())

    def _add_index(self, file: "_NamedFile", content: bytes | None) -> None:
        if content is None:
            if file.is_kept:
                self.unread.append(f"The index manifest {MANIFESTS}/{file.name} of {file.snapshot.path} is missing.")
            return
        try:
            rows = read_indexes([(file.name, content)], limits=self._storage.limits)[0]
        except SnapshotExplorerError as error:
            self._lacks(f"The index manifest {MANIFESTS}/{file.name} could not be read", error)
            return
        self.names.update(rows.column("file_name").to_pylist())

    def _read(self, files: Sequence["_NamedFile"]) -> Iterator[tuple["_NamedFile", bytes | None]]:
        """Yield files with their content; None if a file does not exist."""
        for begin in range(0, len(files), _AT_ONCE):
            batch = files[begin : begin + _AT_ONCE]
            try:
                contents = self._storage.read_present([file.path for file in batch])
            except SnapshotExplorerError as error:
                self._lacks("A manifest could not be read", error)
                contents = [b""] * len(batch)
            yield from zip(batch, contents, strict=True)

    def _lacks(self, problem: str, error: SnapshotExplorerError) -> None:
        self.unread.append(Message(f"{problem}: ", without_period(error.message), "."))


def clean_up(files: pa.Table, now: datetime, *, partitions: int, name: str) -> CleanUp:
    """Return the outcome of `remove_orphan_files` for files that no snapshot names.

    Args:
        files: path and modified.
        partitions: The number of partition columns.
        name: The SQL name of the table.
    """
    rows = zip(files.column("path").to_pylist(), files.column("modified").to_pylist(), strict=True)
    judge = partial(_clean_up_of, cutoff=now - _AGE, partitions=partitions)
    return CleanUp(
        files=[judge(path, modified) for path, modified in rows],
        rule="remove_orphan_files deletes files older than 1 day by default, from the folders of buckets, manifests, "
        "indexes, statistics and snapshots.",
        commands=(("Spark SQL, dry run", f"CALL sys.remove_orphan_files(table => '{name}', dry_run => true)"),),
    )


def _clean_up_of(path: str, modified: datetime, *, cutoff: datetime, partitions: int) -> FileCleanUp:
    folder, _, name = path.rpartition("/")
    kind = next(_kinds_of(folder, name))
    is_searched = (
        folder in _SHARED or _SNAPSHOTS.fullmatch(path) is not None or _is_bucket(folder.split("/"), partitions)
    )
    if not is_searched:
        return FileCleanUp(kind=kind, outcome="ignored", because="remove_orphan_files does not look in its folder")
    if modified >= cutoff:
        return FileCleanUp(kind=kind, outcome="kept", because="it is younger than 1 day")
    return FileCleanUp(kind=kind, outcome="deleted", because="no snapshot, tag or changelog names it")


def _is_bucket(parts: Sequence[str], partitions: int) -> bool:
    return parts[-1].startswith("bucket-") and len(parts) > partitions


def _kinds_of(folder: str, name: str) -> Iterator[str]:
    if name.startswith(".") or name.endswith(".tmp"):
        yield "temporary"
    if folder == MANIFESTS:
        yield "manifest"
    if folder == INDEXES or name.startswith("index-") or name.endswith(".index"):
        yield "index"
    if folder == "statistics":
        yield "statistics"
    if name.startswith("changelog-") and "bucket-" in folder:
        yield "change data"
    if folder.rpartition("/")[2].startswith("bucket-"):
        yield "data"
    if folder.rpartition("/")[2] in ("snapshot", "changelog", "schema", "tag", "consumer"):
        yield "metadata"
    yield "other"


def branch_histories(storage: Storage, names: Sequence[str]) -> dict[str, PaimonHistory]:
    """Return the histories of branches. Reads nothing."""
    return {name: PaimonHistory(storage, Layout(name)) for name in names}
