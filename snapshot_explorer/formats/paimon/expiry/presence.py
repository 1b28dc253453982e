"""Existence of the files that versions need, with the recorded sizes: data files, manifests, indexes and schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.expiry import Presence, check_gone, checked_files, presence_from
from snapshot_explorer.formats.paimon.metadata.contents import read_index_manifests
from snapshot_explorer.formats.paimon.metadata.layout import MANIFESTS, Layout, manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import INDEX_ENTRIES, read_lists
from snapshot_explorer.formats.paimon.metadata.schema import Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.scan.scans import vectors_in
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.storage import Storage

_AT_ONCE = 2_000
"""The maximum number of snapshots whose manifest lists are in memory at the same time."""


def presence(
    storage: Storage, layout: Layout, schemas: Schemas, lifetimes: pa.Table, snapshots: Sequence[PaimonSnapshot]
) -> Presence:
    """Return the existence of the files that reads of versions need, without the indexes of dynamic buckets.

    Lists the folders of data files, manifests, schemas and deletion vectors. Reads the base and delta manifest lists of
    each snapshot, and each index manifest once, concurrently.
    """
    paths = single_chunk(lifetimes.column("path"))
    metadata, checked = storage.together(
        partial(_MetadataFiles, storage, layout),
        partial(checked_files, storage, paths, single_chunk(lifetimes.column("size_bytes"))),
    )
    without = _without_schema(storage, schemas, snapshots)
    for begin in range(0, len(snapshots), _AT_ONCE):
        without |= metadata.missing_for(snapshots[begin : begin + _AT_ONCE])
    metadata.check_gone()
    indexed = [snapshot for snapshot in snapshots if snapshot.index_manifest is not None and snapshot.id not in without]
    damaged, lacking, unchecked = _check_indexes(storage, schemas, indexed)
    return replace(
        presence_from(checked, paths),
        missing_metadata=without | damaged,
        via_tag={
            snapshot.id: "through its tag; the snapshot has expired"
            for snapshot in snapshots
            if snapshot.file_kind == "tag"
        },
        missing_deletes=lacking,
        unchecked_files=unchecked,
    )


def _without_schema(storage: Storage, schemas: Schemas, snapshots: Sequence[PaimonSnapshot]) -> dict[int, str]:
    """Return the versions whose schema cannot be read, with the reasons. Reads the schemas not read before."""
    read = read_apart(schemas.by_id, sorted({snapshot.schema_id for snapshot in snapshots}), storage)
    return {
        snapshot.id: str(read.unread[snapshot.schema_id]) for snapshot in snapshots if snapshot.schema_id in read.unread
    }


class _MetadataFiles:
    """The files in the folders of manifests and schemas, from one listing each."""

    def __init__(self, storage: Storage, layout: Layout) -> None:
        self._storage, self._layout = storage, layout
        manifests, schemas = storage.list_many([MANIFESTS, layout.folder("schema")])
        self._sizes = {f"{MANIFESTS}/{entry.name}": entry.size_bytes for entry in manifests}
        self._sizes |= {f"{layout.folder('schema')}/{entry.name}": entry.size_bytes for entry in schemas}
        self._names = pa.array([entry.name for entry in manifests], pa.string())
        self._lengths = pa.array([entry.size_bytes for entry in manifests], pa.int64())
        self._lost: set[str] = set()

    def missing_for(self, snapshots: Sequence[PaimonSnapshot]) -> dict[int, str]:
        problems: dict[int, str] = {}
        lists: list[tuple[int, str]] = []
        for snapshot in snapshots:
            named = [
                (manifest_path(snapshot.base_manifest_list, snapshot.path), snapshot.base_manifest_list_bytes),
                (manifest_path(snapshot.delta_manifest_list, snapshot.path), snapshot.delta_manifest_list_bytes),
            ]
            others = [self._layout.numbered("schema", snapshot.schema_id)]
            others += [manifest_path(snapshot.index_manifest, snapshot.path)] if snapshot.index_manifest else []
            problem = self._problem([*named, *((path, None) for path in others)])
            if problem is None:
                lists += [(snapshot.id, path) for path, _ in named]
            else:
                problems[snapshot.id] = problem
        return problems | self._missing_manifests(lists)

    def _problem(self, files: Sequence[tuple[str, int | None]]) -> str | None:
        for path, size in files:
            if path not in self._sizes:
                self._lost.add(path)
                return f"{path} does not exist"
            if size is not None and self._sizes[path] not in (None, size):
                return f"{path} has another size than recorded"
        return None

    def _missing_manifests(self, lists: Sequence[tuple[int, str]]) -> dict[int, str]:
        """Return for versions the manifest in their lists that is missing or resized, or the unreadable list."""

        def names_in(indices: Sequence[int]) -> tuple[pa.Table, list[int]]:
            paths = [lists[index][1] for index in indices]
            contents = self._storage.read_many(paths, immutable=True)
            rows, counts = read_lists(list(zip(paths, contents, strict=True)), limits=self._storage.limits)
            return rows, np.repeat([lists[index][0] for index in indices], counts).tolist()

        read = read_apart(names_in, range(len(lists)), self._storage)
        problems = {lists[index][0]: error.message for index, error in read.unread.items()}
        for _, (rows, owners) in read.parts:
            names, sizes = single_chunk(rows.column("name")), single_chunk(rows.column("size_bytes"))
            listed = pc.index_in(names, self._names)
            is_resized = pc.fill_null(pc.not_equal(sizes, self._lengths.take(listed)), fill_value=False)
            for row in np.flatnonzero(pc.or_(listed.is_null(), is_resized).to_numpy(zero_copy_only=False)).tolist():
                path = f"{MANIFESTS}/{names[row].as_py()}"
                is_gone = not listed[row].is_valid
                if is_gone:
                    self._lost.add(path)
                problems.setdefault(
                    owners[row], f"{path} {'does not exist' if is_gone else 'has another size than recorded'}"
                )
        return problems

    def check_gone(self) -> None:
        check_gone(self._storage, [sorted(self._lost)])


def _check_indexes(
    storage: Storage, schemas: Schemas, snapshots: Sequence[PaimonSnapshot]
) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
    """Return for versions the index manifests and index files that are missing or resized, or were not checked."""
    names = {snapshot.index_manifest or "": snapshot.path for snapshot in snapshots}
    indexes, damage = _read_indexes(storage, names)
    newest = schemas.newest(max(snapshot.schema_id for snapshot in snapshots)) if indexes else None
    files: dict[str, dict[str, int | None]] = {
        name: {vector.path: vector.file_bytes for vector in vectors_in(storage, rows, newest, newest.options).values()}
        for name, rows in indexes.items()
        if newest is not None
    }
    sizes = {path: size for named in files.values() for path, size in named.items()}
    checked = checked_files(storage, pa.array(list(sizes), pa.string()), pa.array(list(sizes.values()), pa.int64()))
    bad, unknown = (
        {*names.to_pylist()} for names in (pa.concat_arrays([checked.gone, checked.resized]), checked.unknown)
    )
    lacking, unchecked = {}, {}
    for snapshot in snapshots:
        paths = files.get(snapshot.index_manifest or "", {}).keys()
        if paths & bad:
            count = f"{len(paths & bad):,} of its files with deletion vectors"
            lacking[snapshot.id] = f"{count} are missing or have another size than recorded"
        elif paths & unknown:
            unchecked[snapshot.id] = f"{len(paths & unknown):,} files with deletion vectors are on another storage"
    damaged = {
        snapshot.id: damage[snapshot.index_manifest] for snapshot in snapshots if snapshot.index_manifest in damage
    }
    return damaged, lacking, unchecked


def _read_indexes(storage: Storage, names: Mapping[str, str]) -> tuple[dict[str, pa.Table], dict[str, str]]:
    """Return the INDEX_ENTRIES of index manifests by name, and the problems of unreadable index manifests."""
    every = list(names)
    read = read_apart(
        lambda indices: read_index_manifests(storage, {every[index]: names[every[index]] for index in indices}),
        range(len(every)),
        storage,
    )
    tables = {name: rows for _, part in read.parts for name, rows in part.items()}
    problems = {every[index]: error.message for index, error in read.unread.items()}
    problems |= {name: f"{manifest_path(name, '')} does not exist" for name, rows in tables.items() if rows is None}
    return {name: INDEX_ENTRIES.empty_table() if rows is None else rows for name, rows in tables.items()}, problems
