"""Single manifests of a version: what they hold, and which ones commits wrote."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer import frames
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats.paimon.metadata.contents import guarded, read_lists_of
from snapshot_explorer.formats.paimon.metadata.layout import MANIFESTS, manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE, read_entries, read_lists
from snapshot_explorer.formats.paimon.metadata.partitions import data_paths, folders_of, partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import Schema
from snapshot_explorer.formats.paimon.metadata.snapshots import Snapshot
from snapshot_explorer.storage import Storage

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
