"""The live files and changes of versions: from snapshots through manifest lists to entries, in few rounds of reads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.bin_packing import bins
from snapshot_explorer.core.errors import (
    CorruptTableError,
    MissingFileError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
)
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.layout import MANIFESTS, manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import (
    DELETE,
    FILE_COLUMNS,
    IDENTITY,
    INDEX_ENTRIES,
    Deletes,
    read_entries,
    read_indexes,
    read_lists,
)
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

T = TypeVar("T")
Keep = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""A filter over rows of LIST: True for the manifests to read, False for those that cannot match."""
Select = Callable[[pa.Table], pa.Table]
"""Returns those of some live ENTRIES that are kept, with `is_new`; maybe with fewer columns, or more."""
METADATA = "the table's metadata"
_READ_BYTES = 32 << 20
"""Bytes of manifests without DELETE entries that are read concurrently, and in memory at the same time."""
_DECODED_BYTES = 1 << 20
"""Bytes of manifests, mostly compressed, whose entries are in memory at the same time before some are selected."""
_NEWEST_FORMAT = 3
_OLDEST_FORMAT = 2
_KEEP_LONGER = (
    "choose a newer version. The table option snapshot.time-retained, 1 h by default, sets how long snapshots are "
    "kept; a tag keeps one longer."
)
KEPT_LISTS = {
    "snapshot": ("base", "delta", "changelog"),
    "tag": ("base", "delta"),
    "changelog": ("changelog",),
}
"""The manifest lists that exist as long as the file that references them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonState:
    """The files of a version."""

    entries: pa.Table
    """ENTRIES of the live files, with a column `is_new`: whether this version's own commit added the file."""
    indexes: pa.Table
    unread: int = 0
    """The number of manifests that the filter skipped."""
    files: int | None = None
    """The number of live files in all manifests, read or not; None if the lists lack the counts."""
    adds_up: bool = True
    """Whether the number of rows in the files equals the snapshot's; true if not all manifests are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestLists:
    """The manifest lists of a version."""

    names: tuple[str, ...]
    """base, delta or changelog, for each existing list."""
    paths: tuple[str, ...]
    manifests: pa.Table
    """LIST rows of all lists, one after another."""
    counts: tuple[int, ...]
    """The number of rows of each list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The files that several commits changed."""

    entries: pa.Table
    """ENTRIES of all commits, one after another."""
    commits: npt.NDArray[np.int64]
    """For each entry, the index of its commit among the requested ones."""
    known: tuple[bool, ...]
    """For each commit, whether its manifest list and manifests still exist."""
    adds_up: tuple[bool, ...]
    """For each commit, whether it changed as many rows as its snapshot records; true if this is not compared."""


def read_lists_of(storage: Storage, snapshot: PaimonSnapshot, kinds: Sequence[str]) -> ManifestLists:
    """Return the manifest lists of these kinds (base, delta, changelog) of a version. One concurrent request each.

    For a version kept only by a tag or a changelog, the lists that Paimon has removed are left out.
    """
    _check_readable(snapshot)
    chosen = [(kind, *named) for kind in kinds if (named := list_of(snapshot, kind)) is not None]
    if any(kind not in KEPT_LISTS[snapshot.file_kind] for kind, _, _ in chosen):
        chosen = [
            (kind, name, size)
            for kind, name, size in chosen
            if kind in KEPT_LISTS[snapshot.file_kind] or storage.exists(manifest_path(name, snapshot.path))
        ]
    paths = [manifest_path(name, snapshot.path) for _, name, _ in chosen]
    contents = _read(storage, snapshot, paths)
    for path, content, (_, _, size) in zip(paths, contents, chosen, strict=True):
        check_size(path, len(content), size, by=METADATA)
    rows, counts = read_lists(list(zip(paths, contents, strict=True)), limits=storage.limits)
    return ManifestLists(
        names=tuple(kind for kind, _, _ in chosen), paths=tuple(paths), manifests=rows, counts=tuple(counts)
    )


def read_state(
    storage: Storage,
    snapshot: PaimonSnapshot,
    *,
    lists: ManifestLists | None = None,
    with_indexes: bool = True,
    keep: Keep | None = None,
    columns: Sequence[str] | None = None,
    begin: Callable[[], Select] | None = None,
) -> PaimonState:
    """Return the live files of a version. Reads its manifest lists, then its manifests, up to 32 MiB concurrently.

    With `lists`, the version's `state_lists`, only the manifests are read. With `keep`, files of partitions in the
    skipped manifests may be missing, or included although deleted. With `columns`, which contain `FILE_COLUMNS`, the
    entries have only these columns.

    The bytes of manifests with DELETE entries are in memory together, those of others some at a time. Decoded are
    only a few at a time, of which the selected files stay.

    Args:
        begin: Begins a selection of the live files. It begins again if a manifest has DELETE entries that its list does
            not count.

    Source: paimon docs, "Manifest"; paimon AbstractFileStoreScan.
    """
    lists = lists or state_lists(storage, snapshot)
    kept = np.ones(len(lists.manifests), np.bool_) if keep is None else keep(lists.manifests)
    manifests = _Manifests(
        storage=storage,
        snapshot=snapshot,
        listed=lists.manifests.filter(pa.array(kept)),
        folder=lists.paths[0],
        carried_over=int(kept[: lists.counts[0]].sum()),
        with_indexes=with_indexes,
        columns=columns,
    )
    has_deletes = pc.fill_null(pc.not_equal(manifests.listed.column("deleted"), 0), True)  # noqa: FBT003 - for nulls
    try:
        entries, indexes, rows, deletes = manifests.live(has_deletes.to_numpy(), begin)
    except _UncountedDeletesError:
        entries, indexes, rows, deletes = manifests.live(np.ones(len(has_deletes), np.bool_), begin)
    if kept.all():
        deletes.warn_of_orphans(storage)
    added, deleted = (pc.sum(lists.manifests.column(name), skip_nulls=False).as_py() for name in ("added", "deleted"))
    return PaimonState(
        entries=entries,
        indexes=indexes,
        unread=int((~kept).sum()),
        files=None if added is None or deleted is None else added - deleted,
        adds_up=not kept.all() or _adds_up(snapshot, rows, storage),
    )


class _UncountedDeletesError(Exception):
    """A manifest has DELETE entries that its list does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifests:
    """The manifests of a version, to be read a few at a time."""

    storage: Storage
    snapshot: PaimonSnapshot
    listed: pa.Table
    """LIST, a row for each manifest."""
    folder: str
    """The list that names them, for messages."""
    carried_over: int
    """The number of manifests of the base list, which come first."""
    with_indexes: bool
    columns: Sequence[str] | None

    def live(
        self, has_deletes: npt.NDArray[np.bool_], begin: Callable[[], Select] | None
    ) -> tuple[pa.Table, pa.Table, int, Deletes]:
        """Return the live files that are selected, INDEX_ENTRIES, the rows of all live files, and the deleted files."""
        select, indexes, rows = None if begin is None else begin(), INDEX_ENTRIES.empty_table(), 0
        deletes = Deletes(read_entries([], IDENTITY)[0])
        parts: dict[int, pa.Table] = {}
        for numbers, files, index in self._read(has_deletes):
            if index is not None:
                indexes = read_indexes([index], limits=self.storage.limits)[0]
            sizes = np.array([len(content) for _, content in files], np.int64)
            # Where manifests between are read later, a part ends: parts are in the order of their first manifests.
            starts = np.flatnonzero(np.diff(numbers) != 1) + 1
            bounds = bins(sizes, target=_DECODED_BYTES, starts=starts).tolist()
            once = self._decoded(numbers, files, self.columns) if len(bounds) == 2 else None  # noqa: PLR2004 - one part
            if has_deletes[numbers].any():
                deletes = Deletes(self._deleted(numbers, files, bounds, has_deletes) if once is None else once)
            for first, last in pairwise(bounds):
                entries = self._decoded(numbers[first:last], files[first:last], self.columns) if once is None else once
                live = deletes.without(entries)
                if pc.any(pc.equal(live.column("kind"), DELETE)).as_py():
                    raise _UncountedDeletesError
                rows += pc.sum(live.column("rows")).as_py() or 0
                parts[numbers[first]] = live if select is None else select(live)
        if not parts:
            none = self._decoded([], [], self.columns)
            parts[0] = none if select is None else select(none)
        return pa.concat_tables([parts[number] for number in sorted(parts)]), indexes, rows, deletes

    def _read(
        self, has_deletes: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[list[int], list[tuple[str, bytes]], tuple[str, bytes] | None]]:
        """Yield manifests to read concurrently, with those first that have DELETE entries, and the index manifest."""
        paths = [manifest_path(name, self.folder) for name in self.listed.column("name").to_pylist()]
        name = self.snapshot.index_manifest if self.with_indexes else None
        index = [manifest_path(name, self.snapshot.path)] if name else []
        order = np.argsort(~has_deletes, kind="stable")
        sizes = pc.fill_null(self.listed.column("size_bytes"), _READ_BYTES).to_numpy().clip(0, _READ_BYTES)
        bounds = bins(np.where(has_deletes, 0, sizes)[order], target=_READ_BYTES).tolist()
        for first, last in pairwise(bounds if len(order) else [0, 0]):
            numbers = np.sort(order[first:last]).tolist()
            also = [] if first else index
            contents = _read(self.storage, self.snapshot, [*(paths[number] for number in numbers), *also])
            files = [(paths[number], content) for number, content in zip(numbers, contents, strict=False)]
            yield numbers, files, (also[0], contents[-1]) if also else None

    def _deleted(
        self,
        numbers: Sequence[int],
        files: Sequence[tuple[str, bytes]],
        bounds: Sequence[int],
        has_deletes: npt.NDArray[np.bool_],
    ) -> pa.Table:
        """Return IDENTITY and kind of the DELETE entries of manifests."""
        some = [
            [index for index in range(first, last) if has_deletes[numbers[index]]] for first, last in pairwise(bounds)
        ]
        tables = (
            self._decoded([numbers[index] for index in part], [files[index] for index in part], IDENTITY)
            for part in some
        )
        return pa.concat_tables([table.filter(pc.equal(table.column("kind"), DELETE)) for table in tables])

    def _decoded(
        self, numbers: Sequence[int], files: Sequence[tuple[str, bytes]], columns: Sequence[str] | None
    ) -> pa.Table:
        """Return the entries of manifests, with `is_new`; see `PaimonState`."""
        listed = self.listed.take(pa.array(numbers, pa.int64()))
        entries, counts = checked_entries(listed, files, columns, limits=self.storage.limits)
        is_new = np.repeat(np.array(numbers, np.int64) >= self.carried_over, counts)
        return entries.append_column("is_new", pa.array(is_new))


def read_written(storage: Storage, snapshot: PaimonSnapshot) -> PaimonState:
    """Return all entries of a version's manifests, including DELETEs and the files they delete; see `read_state`."""
    lists = state_lists(storage, snapshot)
    paths = [manifest_path(name, lists.paths[0]) for name in lists.manifests.column("name").to_pylist()]
    index = [manifest_path(snapshot.index_manifest, snapshot.path)] if snapshot.index_manifest else []
    contents = _read(storage, snapshot, paths + index)
    files = list(zip(paths, contents[: len(paths)], strict=True))
    entries, _ = checked_entries(lists.manifests, files, None, limits=storage.limits)
    indexes = read_indexes([(index[0], contents[-1])] if index else [], limits=storage.limits)[0]
    return PaimonState(entries=entries, indexes=indexes)


def state_lists(storage: Storage, snapshot: PaimonSnapshot) -> ManifestLists:
    """Return the base and delta lists of a version, which name all manifests of its files. Two concurrent requests."""
    if snapshot.file_kind == "changelog":
        raise SnapshotNotFoundError(
            f"Version {snapshot.id} has expired. Only its changelog is left, in {snapshot.path}: "
            "its commit can be shown, its files and rows cannot. Choose a newer version."
        )
    lists = read_lists_of(storage, snapshot, ("base", "delta"))
    names = lists.manifests.column("name").to_pylist()
    if len(set(names)) < len(names):
        raise CorruptTableError(f"The manifest lists of {snapshot.path} name a manifest twice; choose another version.")
    return lists


def read_listed(
    storage: Storage, snapshot: PaimonSnapshot, listed: pa.Table, list_path: str
) -> tuple[pa.Table, list[int]]:
    """Return `FILE_COLUMNS` of the ENTRIES of some of a version's manifests, and the number of entries of each."""
    paths = [manifest_path(name, list_path) for name in listed.column("name").to_pylist()]
    files = list(zip(paths, _read(storage, snapshot, paths), strict=True))
    return checked_entries(listed, files, FILE_COLUMNS, limits=storage.limits)


def index_of(storage: Storage, snapshot: PaimonSnapshot) -> pa.Table:
    """Return the INDEX_ENTRIES of a version."""
    if not snapshot.index_manifest:
        return INDEX_ENTRIES.empty_table()
    path = manifest_path(snapshot.index_manifest, snapshot.path)
    return read_indexes([(path, _read(storage, snapshot, [path])[0])], limits=storage.limits)[0]


def read_changes(
    storage: Storage,
    snapshots: Sequence[PaimonSnapshot],
    kind: str,
    *,
    keep: Keep | None = None,
    columns: Sequence[str] | None = None,
) -> Changes:
    """Return the entries of the delta or changelog lists of several commits. Two rounds of concurrent reads.

    Manifests for which `keep` returns False are not read. A commit whose files are missing, also at a second request,
    is marked as unknown and has no entries. With `columns` the entries have only these columns.
    """
    known = [True] * len(snapshots)
    chosen = [(index, *named) for index, item in enumerate(snapshots) if (named := list_of(item, kind)) is not None]
    for index, _, _ in chosen:
        _check_readable(snapshots[index])
    paths = [manifest_path(name, snapshots[index].path) for index, name, _ in chosen]
    is_kept = [kind in KEPT_LISTS[snapshots[index].file_kind] for index, _, _ in chosen]
    contents = _read_present(storage, paths, is_kept)
    files: list[tuple[int, str, bytes]] = []
    for (index, _, size), path, content in zip(chosen, paths, contents, strict=True):
        if content is None:
            known[index] = False
            continue
        check_size(path, len(content), size, by=METADATA)
        files.append((index, path, content))
    rows, counts = read_lists([(path, content) for _, path, content in files], limits=storage.limits)
    owners = np.repeat([index for index, _, _ in files], counts).astype(np.int64)
    if keep is not None and len(rows):
        kept = keep(rows)
        rows, owners = rows.filter(pa.array(kept)), owners[kept]
    changes = _entries_of(storage, rows, owners, known, columns)
    if keep is None and "rows" in changes.entries.column_names:
        return replace(changes, adds_up=_add_up(storage, snapshots, changes, kind))
    return changes


def _add_up(storage: Storage, snapshots: Sequence[PaimonSnapshot], changes: Changes, kind: str) -> tuple[bool, ...]:
    """Return whether the number of rows that each commit changed equals the number in its snapshot. Warn if not.

    Paimon does not compare them. Its versions before 0.6 added the rows that a compaction wrote without subtracting the
    rows that it replaced, and each later total contains the error.

    Source: paimon Snapshot, deltaRecordCount and changelogRecordCount; https://github.com/apache/paimon/issues/1998.
    """
    result = []
    signed = changes.entries.column("rows").to_numpy() * (1 - 2 * changes.entries.column("kind").to_numpy())
    totals = np.zeros(len(snapshots), np.int64)
    np.add.at(totals, changes.commits, signed)
    for snapshot, known, rows in zip(snapshots, changes.known, totals.tolist(), strict=True):
        recorded = snapshot.delta_rows if kind == "delta" else snapshot.changelog_rows
        adds_up = not known or recorded in (None, rows) or list_of(snapshot, kind) is None
        result.append(adds_up)
        if not adds_up:
            storage.warn_once(
                log,
                "The %s manifest list of version %d changes %d rows, but %s records %d",
                kind,
                snapshot.id,
                rows,
                snapshot.path,
                recorded,
            )
    return tuple(result)


def _read_present(storage: Storage, paths: Sequence[str], kept: Sequence[bool] | None = None) -> list[bytes | None]:
    """Return the contents of files, None for missing ones. Missing files that should exist are requested again.

    Args:
        kept: For each file whether it should exist; by default all should.
    """
    contents = storage.read_present(paths, immutable=True)
    again = [index for index, item in enumerate(contents) if item is None and (kept is None or kept[index])]
    for index, content in zip(again, storage.read_present([paths[index] for index in again]), strict=True):
        contents[index] = content
    return contents


def check_known(snapshots: Sequence[PaimonSnapshot], changes: Changes, kind: str) -> None:
    """Raise if changes lack a commit whose files should exist."""
    for snapshot, known in zip(snapshots, changes.known, strict=True):
        if not known and kind in KEPT_LISTS[snapshot.file_kind]:
            raise SnapshotNotFoundError(
                f"The changes of version {snapshot.id} cannot be read: the files of the {kind} manifest list in "
                f"{snapshot.path} are gone. It probably expired during the read, otherwise the table has lost a file; "
                f"{_KEEP_LONGER}"
            )


def _entries_of(
    storage: Storage,
    rows: pa.Table,
    owners: npt.NDArray[np.int64],
    known: list[bool],
    columns: Sequence[str] | None,
) -> Changes:
    names = rows.column("name").to_pylist()
    distinct = list(dict.fromkeys(names))
    paths = [manifest_path(name, "a manifest list") for name in distinct]
    contents = dict(zip(distinct, _read_present(storage, paths), strict=True))
    for name, owner in zip(names, owners.tolist(), strict=True):
        known[owner] = known[owner] and contents[name] is not None
    kept = [row for row, owner in enumerate(owners.tolist()) if known[owner]]
    files = [(manifest_path(names[row], "a manifest list"), contents[names[row]] or b"") for row in kept]
    listed = rows.take(pa.array(kept, pa.int64()))
    entries, counts = checked_entries(listed, files, columns, limits=storage.limits)
    commits = np.repeat(owners[kept], counts)
    return Changes(entries=entries, commits=commits, known=tuple(known), adds_up=(True,) * len(known))


def read_indexes_of(storage: Storage, snapshots: Sequence[PaimonSnapshot]) -> Sequence[pa.Table]:
    """Return the INDEX_ENTRIES of each version; empty if it has no index manifest or only its changelog is left."""
    index_manifests = read_index_manifests(
        storage, {snapshot.index_manifest: snapshot.path for snapshot in snapshots if snapshot.index_manifest}
    )
    empty = INDEX_ENTRIES.empty_table()
    indexes = []
    for item in snapshots:
        rows = index_manifests[item.index_manifest] if item.index_manifest else empty
        if rows is None and item.file_kind != "changelog":
            path = manifest_path(item.index_manifest or "", item.path)
            raise _vanished(storage, item, MissingFileError(f"{path} does not exist"))
        indexes.append(empty if rows is None else rows)
    return indexes


def read_index_manifests(storage: Storage, names: Mapping[str, str]) -> dict[str, pa.Table | None]:
    """Return the INDEX_ENTRIES of index manifests by name; None if a manifest has vanished. Concurrent requests.

    Args:
        names: The index manifests, and for each the file that names it, for messages.
    """
    paths = [manifest_path(name, named_by) for name, named_by in names.items()]
    contents = _read_present(storage, paths)
    # An empty file is not a missing one: parsing it raises CorruptTableError.
    present = [(path, content) for path, content in zip(paths, contents, strict=True) if content is not None]
    rows, counts = read_indexes(present, limits=storage.limits)
    result: dict[str, pa.Table | None] = dict.fromkeys(names)
    kept = (name for name, content in zip(names, contents, strict=True) if content is not None)
    for name, begin, count in zip(kept, np.cumsum([0, *counts]).tolist(), counts, strict=False):
        result[name] = rows.slice(begin, count)
    return result


def list_of(snapshot: PaimonSnapshot, kind: str) -> tuple[str, int | None] | None:
    """Return the name and size of a manifest list of a snapshot; None if it has none."""
    if kind == "base":
        return snapshot.base_manifest_list, snapshot.base_manifest_list_bytes
    if kind == "delta":
        return snapshot.delta_manifest_list, snapshot.delta_manifest_list_bytes
    if snapshot.changelog_manifest_list is None:
        return None
    return snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_bytes


def _check_readable(snapshot: PaimonSnapshot) -> None:
    if not _OLDEST_FORMAT <= snapshot.format_version <= _NEWEST_FORMAT:
        raise refusal(
            features.OTHER_SNAPSHOT_FORMATS,
            path=snapshot.path,
            version=snapshot.format_version,
            oldest=_OLDEST_FORMAT,
            newest=_NEWEST_FORMAT,
        )


def checked_entries(
    listed: pa.Table, files: Sequence[tuple[str, bytes]], columns: Sequence[str] | None, *, limits: Limits
) -> tuple[pa.Table, list[int]]:
    """Return `read_entries` of manifests after comparing their sizes and counts with their lists.

    Args:
        listed: LIST, a row for each manifest.
    """
    for (path, content), size in zip(files, listed.column("size_bytes").to_pylist(), strict=True):
        check_size(path, len(content), size, by=METADATA)
    entries, counts = read_entries(files, columns, limits=limits)
    totals = pc.add(listed.column("added"), listed.column("deleted")).to_pylist()
    for (path, _), total, count in zip(files, totals, counts, strict=True):
        if total is not None and total != count:
            raise CorruptTableError(
                f"{path} has {count} entries, but its manifest list records {total}: it was cut short or replaced. "
                "Compare it with a copy of the table, or choose another version."
            )
    return entries, counts


def _adds_up(snapshot: PaimonSnapshot, rows: int, storage: Storage) -> bool:
    """Return whether the live files have the rows that the snapshot records; see `_add_up`. Warn if they do not."""
    if snapshot.total_rows in (None, rows):
        return True
    storage.warn_once(
        log,
        "The live files of version %d have %d rows, but %s records %d: rows are counted in the files",
        snapshot.id,
        rows,
        snapshot.path,
        snapshot.total_rows,
    )
    return False


def _read(storage: Storage, snapshot: PaimonSnapshot, paths: Sequence[str]) -> list[bytes]:
    return read_or_explain(storage, snapshot, lambda: storage.read_many(paths, immutable=True))


def read_or_explain(storage: Storage, snapshot: PaimonSnapshot, read: Callable[[], T]) -> T:
    """Return the result of `read`. Raises an error that explains a missing file."""
    try:
        return read()
    except MissingFileError as error:
        raise _vanished(storage, snapshot, error) from error


def _vanished(storage: Storage, snapshot: PaimonSnapshot, error: MissingFileError) -> SnapshotExplorerError:
    missing = str(error).rstrip(".")
    if not storage.exists(snapshot.path):
        return SnapshotNotFoundError(f"Version {snapshot.id} expired during the read ({missing}); {_KEEP_LONGER}")
    return CorruptTableError(
        f"Version {snapshot.id} cannot be read: a file that {snapshot.path} needs is gone ({missing}). The snapshot "
        f"probably expired during the read, otherwise the table has lost the file; {_KEEP_LONGER}"
    )


def delta_manifests(storage: Storage, snapshots: Sequence[PaimonSnapshot]) -> frozenset[str] | None:
    """Return the paths of the manifests in the delta lists of these commits; None if a list is gone."""
    paths = [manifest_path(snapshot.delta_manifest_list, snapshot.path) for snapshot in snapshots]
    contents = [content for content in _read_present(storage, paths) if content is not None]
    if len(contents) < len(paths):
        return None
    for path, content, snapshot in zip(paths, contents, snapshots, strict=True):
        check_size(path, len(content), snapshot.delta_manifest_list_bytes, by=METADATA)
    rows, _ = read_lists(list(zip(paths, contents, strict=True)), limits=storage.limits)
    return frozenset(f"{MANIFESTS}/{name}" for name in rows.column("name").to_pylist())
