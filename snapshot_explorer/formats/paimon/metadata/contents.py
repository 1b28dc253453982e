"""What versions hold and changed: from snapshots through manifest lists to entries, in a few waves of reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer import frames
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    MissingFileError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.formats.paimon.metadata.layout import MANIFESTS, manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import (
    DELETE,
    FILE_COLUMNS,
    INDEX_ENTRIES,
    live,
    read_entries,
    read_indexes,
    read_lists,
)
from snapshot_explorer.formats.paimon.metadata.partitions import data_paths, folders_of, partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import Schema
from snapshot_explorer.formats.paimon.metadata.snapshots import Snapshot
from snapshot_explorer.storage import Storage
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

T = TypeVar("T")
Keep = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""Which rows of LIST are manifests to read; the others hold nothing that is asked for."""
_NEWEST_FORMAT = 3
_OLDEST_FORMAT = 2
_KEEP_LONGER = (
    "choose a newer version. The table option snapshot.time-retained, 1 h by default, says how long snapshots are "
    "kept; a tag keeps one for longer."
)
_KEPT = {
    "snapshot": ("base", "delta", "changelog"),
    "tag": ("base", "delta"),
    "changelog": ("changelog",),
}
"""The manifest lists that are there as long as the file that names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The files of a version."""

    entries: pa.Table
    """ENTRIES of the live files, with a column `is_new`: whether this version's own commit added the file."""
    indexes: pa.Table
    """INDEX_ENTRIES of the version."""
    unread: int = 0
    """How many manifests were not read, as they hold nothing that is asked for."""
    files: int | None = None
    """How many files are live in all manifests, read or not; None where the lists do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """The manifest lists of a version."""

    names: tuple[str, ...]
    """base, delta or changelog, for each list that is there."""
    paths: tuple[str, ...]
    """The list files."""
    manifests: pa.Table
    """LIST rows of all lists, one after another."""
    counts: tuple[int, ...]
    """How many of the rows are each list's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What several commits changed."""

    entries: pa.Table
    """ENTRIES of all commits, one after another."""
    commits: npt.NDArray[np.int64]
    """For each entry the position of its commit among those asked for."""
    known: tuple[bool, ...]
    """For each commit whether its files were still there to be read."""


def read_lists_of(storage: Storage, snapshot: Snapshot, kinds: Sequence[str]) -> Lists:
    """Return the manifest lists of these kinds (base, delta, changelog) of a version. A request each, at once.

    Of a version that only a tag or a changelog holds, the lists that Paimon has removed are left out.

    Raises:
        CorruptTableError: A list is missing or cut short; the message names it.
        SnapshotNotFoundError: The version expired while it was read.
    """
    _check_readable(snapshot)
    chosen = [(kind, *named) for kind in kinds if (named := _list_of(snapshot, kind)) is not None]
    if any(kind not in _KEPT[snapshot.held] for kind, _, _ in chosen):
        chosen = [
            (kind, name, size)
            for kind, name, size in chosen
            if kind in _KEPT[snapshot.held] or storage.exists(manifest_path(name, snapshot.path))
        ]
    paths = [manifest_path(name, snapshot.path) for _, name, _ in chosen]
    contents = _read(storage, snapshot, paths)
    for path, content, (_, _, size) in zip(paths, contents, chosen, strict=True):
        _check_size(path, content, size)
    rows, counts = read_lists(list(zip(paths, contents, strict=True)), limits=storage.limits)
    return Lists(names=tuple(kind for kind, _, _ in chosen), paths=tuple(paths), manifests=rows, counts=tuple(counts))


def read_state(
    storage: Storage,
    snapshot: Snapshot,
    *,
    with_indexes: bool = True,
    keep: Keep | None = None,
    columns: Sequence[str] | None = None,
) -> State:
    """Return the live files of a version: two waves of concurrent reads, lists and then manifests.

    Files of partitions that a manifest left out by `keep` may hold need not be there, or may be dead. With `columns`,
    which include `FILE_COLUMNS`, the entries have these alone.

    Raises:
        CorruptTableError: A file is missing, cut short or damaged; the message names it.
        SnapshotNotFoundError: The version expired while it was read, or only its changelog is left.
        UnsupportedFeatureError: A newer Paimon wrote something that is not read.

    Source: paimon docs, "Manifest"; paimon AbstractFileStoreScan.
    """
    written = read_written(storage, snapshot, with_indexes=with_indexes, keep=keep, columns=columns)
    alive = live(written.entries, is_partial=bool(written.unread))
    if not written.unread:
        _check_total(snapshot, alive)
    return replace(written, entries=alive)


def read_written(
    storage: Storage,
    snapshot: Snapshot,
    *,
    with_indexes: bool = True,
    keep: Keep | None = None,
    columns: Sequence[str] | None = None,
) -> State:
    """Return all entries of a version's manifests, DELETEs and what they delete included; see `read_state`."""
    lists = state_lists(storage, snapshot)
    names = lists.manifests.column("name").to_pylist()
    kept = np.ones(len(names), np.bool_) if keep is None else keep(lists.manifests)
    listed = lists.manifests.filter(pa.array(kept))
    paths = [manifest_path(name, lists.paths[0]) for name in listed.column("name").to_pylist()]
    extra = [manifest_path(snapshot.index_manifest, snapshot.path)] if with_indexes and snapshot.index_manifest else []
    contents = _read(storage, snapshot, paths + extra)
    files = list(zip(paths, contents[: len(paths)], strict=True))
    _check_sizes(listed, files)
    entries, counts = read_entries(files, columns, limits=storage.limits)
    _check_counts(listed, files, counts)
    split = sum(counts[: int(kept[: lists.counts[0]].sum())])
    entries = entries.append_column("is_new", pa.array(np.arange(len(entries)) >= split))
    indexes = read_indexes([(extra[0], contents[-1])] if extra else [], limits=storage.limits)[0]
    added, deleted = (pc.sum(lists.manifests.column(name), skip_nulls=False).as_py() for name in ("added", "deleted"))
    total = None if added is None or deleted is None else added - deleted
    return State(entries=entries, indexes=indexes, unread=len(names) - len(files), files=total)


def state_lists(storage: Storage, snapshot: Snapshot) -> Lists:
    """Return the base and delta lists of a version: they name the manifests of its files. A request each, at once.

    Raises: as `read_state`, but for manifests.
    """
    if snapshot.held == "changelog":
        raise SnapshotNotFoundError(
            f"Version {snapshot.id} has expired: only its changelog is left, in {snapshot.path}. "
            "Its commit can be shown, its files and rows cannot; choose a newer version."
        )
    lists = read_lists_of(storage, snapshot, ("base", "delta"))
    names = lists.manifests.column("name").to_pylist()
    if len(set(names)) < len(names):
        raise CorruptTableError(f"The manifest lists of {snapshot.path} name a manifest twice; choose another version.")
    return lists


def read_listed(storage: Storage, snapshot: Snapshot, listed: pa.Table, list_path: str) -> tuple[pa.Table, list[int]]:
    """Return `FILE_COLUMNS` of ENTRIES of some manifests that a version's lists name, and how many are each one's.

    Raises: as `read_state`.
    """
    paths = [manifest_path(name, list_path) for name in listed.column("name").to_pylist()]
    files = list(zip(paths, _read(storage, snapshot, paths), strict=True))
    _check_sizes(listed, files)
    entries, counts = read_entries(files, FILE_COLUMNS, limits=storage.limits)
    _check_counts(listed, files, counts)
    return entries, counts


def index_of(storage: Storage, snapshot: Snapshot) -> pa.Table:
    """Return the INDEX_ENTRIES of a version.

    Raises: as `read_state`.
    """
    if not snapshot.index_manifest:
        return INDEX_ENTRIES.empty_table()
    path = manifest_path(snapshot.index_manifest, snapshot.path)
    return read_indexes([(path, _read(storage, snapshot, [path])[0])], limits=storage.limits)[0]


def read_changes(
    storage: Storage,
    snapshots: Sequence[Snapshot],
    kind: str,
    *,
    keep: Keep | None = None,
    columns: Sequence[str] | None = None,
) -> Changes:
    """Return the entries of the delta or changelog lists of several commits: two waves of concurrent reads.

    Manifests that `keep` leaves out are not read. A commit whose files have vanished meanwhile is marked as unknown
    and has no entries. With `columns` the entries have these alone.

    Raises:
        CorruptTableError: A file is cut short or damaged; the message names it.
    """
    known = [True] * len(snapshots)
    chosen = [(index, *named) for index, one in enumerate(snapshots) if (named := _list_of(one, kind)) is not None]
    for index, _, _ in chosen:
        _check_readable(snapshots[index])
    paths = [manifest_path(name, snapshots[index].path) for index, name, _ in chosen]
    lists: list[tuple[int, str, bytes]] = []
    for (index, _, size), path, content in zip(chosen, paths, storage.read_present(paths), strict=True):
        if content is None:
            known[index] = False
            continue
        _check_size(path, content, size)
        lists.append((index, path, content))
    rows, counts = read_lists([(path, content) for _, path, content in lists], limits=storage.limits)
    owners = np.repeat([index for index, _, _ in lists], counts).astype(np.int64)
    if keep is not None and len(rows):
        kept = keep(rows)
        rows, owners = rows.filter(pa.array(kept)), owners[kept]
    return _entries_of(storage, rows, owners, known, columns)


def check_known(snapshots: Sequence[Snapshot], changes: Changes, kind: str) -> None:
    """Refuse changes that lack a commit whose files should be there.

    Raises:
        SnapshotNotFoundError: A commit's files have vanished; it probably expired.
    """
    for snapshot, known in zip(snapshots, changes.known, strict=True):
        if not known and kind in _KEPT[snapshot.held]:
            raise SnapshotNotFoundError(
                f"What version {snapshot.id} changed cannot be read: the files of the {kind} manifest list that "
                f"{snapshot.path} names are gone. It probably expired while it was read; {_KEEP_LONGER}"
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
    contents = dict(zip(distinct, storage.read_present(paths), strict=True))
    for name, owner in zip(names, owners.tolist(), strict=True):
        known[owner] = known[owner] and contents[name] is not None
    kept = [row for row, owner in enumerate(owners.tolist()) if known[owner]]
    files = [(manifest_path(names[row], "a manifest list"), contents[names[row]] or b"") for row in kept]
    listed = rows.take(pa.array(kept, pa.int64()))
    _check_sizes(listed, files)
    entries, counts = read_entries(files, columns, limits=storage.limits)
    _check_counts(listed, files, counts)
    return Changes(entries=entries, commits=np.repeat(owners[kept], counts), known=tuple(known))


def read_indexes_of(storage: Storage, snapshots: Sequence[Snapshot]) -> Sequence[pa.Table]:
    """Return the INDEX_ENTRIES of each version; empty where it has none or its index manifest has vanished."""
    names = list(dict.fromkeys(one.index_manifest for one in snapshots if one.index_manifest))
    paths = [manifest_path(name, "a snapshot") for name in names]
    contents = storage.read_present(paths)
    # An empty file is there: it is damaged, and refused as such.
    present = [(path, content) for path, content in zip(paths, contents, strict=True) if content is not None]
    rows, counts = read_indexes(present, limits=storage.limits)
    begins = dict(zip([path for path, _ in present], np.cumsum([0, *counts]).tolist(), strict=False))
    sizes = dict(zip([path for path, _ in present], counts, strict=True))
    empty = INDEX_ENTRIES.empty_table()
    of_name = {
        name: rows.slice(begins[path], sizes[path]) if path in begins and path in sizes else empty
        for name, path in zip(names, paths, strict=True)
    }
    return [of_name.get(one.index_manifest or "", empty) for one in snapshots]


def _list_of(snapshot: Snapshot, kind: str) -> tuple[str, int | None] | None:
    """Return name and size of one of a snapshot's manifest lists; None where it has none."""
    if kind == "base":
        return snapshot.base_manifest_list, snapshot.base_manifest_list_bytes
    if kind == "delta":
        return snapshot.delta_manifest_list, snapshot.delta_manifest_list_bytes
    if snapshot.changelog_manifest_list is None:
        return None
    return snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_bytes


def _check_readable(snapshot: Snapshot) -> None:
    if not _OLDEST_FORMAT <= snapshot.format_version <= _NEWEST_FORMAT:
        raise UnsupportedFeatureError(
            f"{snapshot.path} is of format version {snapshot.format_version}; versions {_OLDEST_FORMAT} and "
            f"{_NEWEST_FORMAT}, of Paimon 0.3 and newer, are read."
        )


def _check_size(path: str, content: bytes, size: int | None) -> None:
    if size is not None and len(content) != size:
        raise CorruptTableError(
            f"{path} has {len(content)} bytes where the table's metadata says {size}: it is cut short or was "
            "replaced. Compare it with a copy of the table, or choose another version."
        )


def _check_sizes(listed: pa.Table, files: Sequence[tuple[str, bytes]]) -> None:
    for (path, content), size in zip(files, listed.column("size_bytes").to_pylist(), strict=True):
        _check_size(path, content, size)


def _check_counts(listed: pa.Table, files: Sequence[tuple[str, bytes]], counts: Sequence[int]) -> None:
    """Check the number of entries of manifests against what their lists say."""
    totals = pc.add(listed.column("added"), listed.column("deleted")).to_pylist()
    for (path, _), total, count in zip(files, totals, counts, strict=True):
        if total is not None and total != count:
            raise CorruptTableError(
                f"{path} has {count} entries where its manifest list says {total}: it is cut short or was replaced. "
                "Compare it with a copy of the table, or choose another version."
            )


def _check_total(snapshot: Snapshot, alive: pa.Table) -> None:
    rows = pc.sum(alive.column("rows")).as_py() or 0
    if snapshot.total_rows is not None and rows != snapshot.total_rows:
        log.warning("%s counts %d rows, its live files %d", snapshot.path, snapshot.total_rows, rows)


def _read(storage: Storage, snapshot: Snapshot, paths: Sequence[str]) -> list[bytes]:
    """Return files that a snapshot needs."""
    return guarded(storage, snapshot, lambda: storage.read_many(paths))


def guarded(storage: Storage, snapshot: Snapshot, read: Callable[[], T]) -> T:
    """Return what `read` returns; say what it means if a file has vanished.

    Raises:
        SnapshotNotFoundError: The version has expired meanwhile.
        CorruptTableError: The version is still there, but not its file.
    """
    try:
        return read()
    except MissingFileError as error:
        raise _vanished(storage, snapshot, error) from error


def _vanished(storage: Storage, snapshot: Snapshot, error: MissingFileError) -> SnapshotExplorerError:
    missing = str(error).rstrip(".")
    if not storage.exists(snapshot.path):
        return SnapshotNotFoundError(f"Version {snapshot.id} expired while it was read ({missing}); {_KEEP_LONGER}")
    return CorruptTableError(
        f"Version {snapshot.id} cannot be read: a file that {snapshot.path} needs is gone ({missing}). The snapshot "
        f"probably expired while it was read, otherwise the table has lost the file; {_KEEP_LONGER}"
    )


_ELSEWHERE = ("deletion_vector", "deleted_rows", "data_change")


def entries_of(
    storage: Storage, snapshot: Snapshot, path: str, *, schema: Schema, options: Mapping[str, str]
) -> pa.Table:
    """Return the ENTRIES of a manifest that a version names. Reads the version's lists and the manifest.

    Args:
        storage: The table's storage.
        snapshot: The version.
        path: The manifest, as MANIFESTS spells it.
        schema: The version's schema.
        options: The newest options, which say how folders are called.

    Raises:
        InvalidArgumentError: The version does not name it, or it is an index manifest.
        CorruptTableError: It is missing, cut short or damaged.
    """
    if snapshot.index_manifest and path == manifest_path(snapshot.index_manifest, snapshot.path):
        raise InvalidArgumentError(
            f"{path} is the index manifest of version {snapshot.id}: it holds index files, not data files. "
            "The files of the version say which deletion vectors they have."
        )
    lists = read_lists_of(storage, snapshot, ("base", "delta", "changelog"))
    if path.removeprefix(f"{MANIFESTS}/") not in set(lists.manifests.column("name").to_pylist()):
        raise InvalidArgumentError(
            f"Version {snapshot.id} has no manifest {path!r}. It has {len(lists.manifests):,}: "
            "those that its manifests() names."
        )
    content = guarded(storage, snapshot, lambda: storage.read(path))
    entries, _ = read_entries([(path, content)], limits=storage.limits)
    partitions = partitions_of(entries.column("partition"), schema)
    folders = folders_of(partitions, entries.column("bucket"), schema, options)
    words = pc.if_else(pc.equal(entries.column("kind"), DELETE), "remove", "add")
    columns = {
        "change": words,
        "path": data_paths(entries, folders, storage, strict=False),
        "partition": partitions.column(),
    }
    # Which rows of its file are deleted, and whether its commit only rearranged them, is told elsewhere.
    columns |= {field.name: pa.nulls(len(entries), field.type) for field in frames.ENTRIES if field.name in _ELSEWHERE}
    names = frames.ENTRIES.names
    return pa.table(
        [columns[name] if name in columns else entries.column(name) for name in names], schema=frames.ENTRIES
    )


def delta_manifests(storage: Storage, snapshots: Sequence[Snapshot]) -> frozenset[str] | None:
    """Return the paths of the manifests in the delta lists of these commits, read at once; None if a list is gone."""
    paths = [manifest_path(one.delta_manifest_list, one.path) for one in snapshots]
    contents = storage.read_present(paths)
    there = [(path, content) for path, content in zip(paths, contents, strict=True) if content is not None]
    if len(there) < len(paths):
        return None
    rows, _ = read_lists(there, limits=storage.limits)
    return frozenset(f"{MANIFESTS}/{name}" for name in rows.column("name").to_pylist())
