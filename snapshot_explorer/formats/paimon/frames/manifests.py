"""The frames MANIFESTS and ENTRIES of Paimon versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.capabilities import MergedManifests
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.contents import (
    ManifestLists,
    checked_entries,
    delta_manifests,
    read_lists_of,
    read_or_explain,
)
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import MANIFESTS, manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE
from snapshot_explorer.formats.paimon.metadata.partitions import data_paths, folders_of, partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.metadata.value_texts import sql_text
from snapshot_explorer.storage import Storage

_ELSEWHERE = ("deletion_vector", "deleted_rows", "data_change")


@dataclass(frozen=True, kw_only=True)
class PaimonManifests(MergedManifests):
    """The manifests of the snapshots of a branch."""

    storage: Storage
    history: PaimonHistory

    def of_delta(self, versions: Sequence[int]) -> frozenset[str] | None:
        return delta_manifests(self.storage, self.history.snapshots(versions))

    def of_index(self, versions: Sequence[int]) -> Sequence[str | None]:
        return [item.index_manifest for item in self.history.snapshots(versions)]


def manifests_frame(snapshot: PaimonSnapshot, lists: ManifestLists, schema: PaimonSchema) -> pa.Table:
    """Return the MANIFESTS frame of a version. Its index manifest comes last, with unknown size."""
    rows = lists.manifests
    kinds = np.repeat(np.array(lists.names, object), lists.counts)
    list_paths = np.repeat(np.array(lists.paths, object), lists.counts)
    positions = [position for count in lists.counts for position in range(count)]
    names = rows.column("name").to_pylist()
    columns = {
        "version": snapshot.id,
        "list": kinds.tolist(),
        "list_path": list_paths.tolist(),
        "position": positions,
        "path": [f"{MANIFESTS}/{name}" for name in names],
        "size_bytes": rows.column("size_bytes"),
        "added_files": rows.column("added"),
        "removed_files": rows.column("deleted"),
        "schema_id": rows.column("schema_id"),
        "partition_min": _bounds(rows.column("partition_min"), schema),
        "partition_max": _bounds(rows.column("partition_max"), schema),
    }
    table = frames.table_of(frames.MANIFESTS, columns)
    if snapshot.index_manifest is None:
        return table
    index = {"version": snapshot.id, "list": "index", "position": 0, "path": f"{MANIFESTS}/{snapshot.index_manifest}"}
    return pa.concat_tables([table, pa.Table.from_pylist([index], frames.MANIFESTS)])


def _bounds(rows: pa.ChunkedArray, schema: PaimonSchema) -> pa.Array:
    fields = [schema.field(name) for name in schema.partition_keys]
    values = binary_row.decode(rows, fields, lenient=True)
    columns = [sql_text(values.column(index), field.type) for index, field in enumerate(fields)]
    names = [field.name for field in fields]
    maps = (
        [list(zip(names, texts, strict=True)) for texts in zip(*columns, strict=True)] if fields else [[]] * len(rows)
    )
    present = rows.is_valid().to_pylist()
    return pa.array(
        [item if is_present else None for item, is_present in zip(maps, present, strict=True)], frames.PARTITION
    )


def entries_of(
    storage: Storage, snapshot: PaimonSnapshot, path: str, *, schema: PaimonSchema, options: Mapping[str, str]
) -> pa.Table:
    """Return the ENTRIES of a manifest of a version. Reads the version's manifest lists and the manifest.

    Args:
        path: The manifest, as in the column `path` of MANIFESTS.
        options: The newest options, which define the names of folders.
    """
    if snapshot.index_manifest and path == manifest_path(snapshot.index_manifest, snapshot.path):
        raise InvalidArgumentError(
            Message(
                f"{path} is the index manifest of version {snapshot.id}: it lists index files, not data files. "
                "Deletion vectors are in the column deletion_vector of ",
                Hint("snapshot.files", {"ref": snapshot.id}),
                ".",
            )
        )
    lists = read_lists_of(storage, snapshot, ("base", "delta", "changelog"))
    listed = lists.manifests.filter(pc.equal(lists.manifests.column("name"), path.removeprefix(f"{MANIFESTS}/")))
    if not len(listed):
        raise InvalidArgumentError(
            Message(
                f"Version {snapshot.id} has no manifest {path!r}. It has {len(lists.manifests):,} manifests: see the "
                "column path of ",
                Hint("snapshot.manifests", {"ref": snapshot.id}),
                ".",
            )
        )
    content = read_or_explain(storage, snapshot, lambda: storage.read(path, immutable=True))
    entries, _ = checked_entries(listed.slice(0, 1), [(path, content)], None, limits=storage.limits)
    partitions = partitions_of(entries.column("partition"), schema)
    folders = folders_of(partitions, entries.column("bucket"), schema, options)
    words = pc.if_else(pc.equal(entries.column("kind"), DELETE), "remove", "add")
    columns = {
        "change": words,
        "path": data_paths(entries, folders, storage, strict=False),
        "partition": partitions.column(),
    }
    # Deletion vectors are in index manifests, and data_change depends on the commit: both are null here.
    names = [name for name in frames.ENTRIES.names if name not in (*columns, *_ELSEWHERE)]
    return frames.table_of(frames.ENTRIES, columns | {name: entries.column(name) for name in names})
