"""The frames FILES and CHANGES of Paimon versions, from entries."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.formats.paimon.files.deletion_vectors import Vectors
from snapshot_explorer.formats.paimon.metadata.contents import Changes, PaimonState
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot

_APPENDED = 0


def files_frame(
    state: PaimonState, *, version: int, partitions: PaimonPartitions, paths: pa.Array, vectors: Vectors
) -> pa.Table:
    """Return the FILES frame of live entries.

    `data_change` is false for files that a compaction wrote, null where the source of a file is not recorded.
    `added_version` is set for files that this version's own commit added, otherwise null.
    """
    entries = state.entries
    added = pc.if_else(entries.column("is_new"), pa.scalar(version, pa.int64()), pa.scalar(None, pa.int64()))
    change = pc.equal(entries.column("source"), _APPENDED)
    columns = _file_columns(entries, partitions, paths, _vectors_of(entries, [vectors], None)) | {
        "data_change": change,
        "added_version": added,
    }
    return frames.table_of(frames.FILES, columns)


def changes_frame(
    snapshots: Sequence[PaimonSnapshot],
    changes: Changes,
    kind: str,
    *,
    partitions: PaimonPartitions,
    paths: pa.Array,
    vectors: Sequence[Vectors],
) -> pa.Table:
    """Return the CHANGES rows of the delta or changelog lists of several commits.

    The deletion vector of a file is its vector in the version that added it. A compaction changes no data.
    """
    entries = changes.entries
    owners = changes.commits
    removed = entries.column("kind").to_numpy() == DELETE
    versions = np.array([snapshot.id for snapshot in snapshots], np.int64)
    rearranged = np.array([snapshot.kind == "COMPACT" for snapshot in snapshots], np.bool_)
    columns = _file_columns(entries, partitions, paths, _vectors_of(entries, vectors, owners.tolist())) | {
        "version": pa.array(versions[owners]),
        "change": pa.array(np.where(removed, "remove", "add").tolist(), pa.string()),
        "list": kind,
        "data_change": pa.array(~rearranged[owners]),
    }
    return frames.table_of(frames.CHANGES, columns)


def _file_columns(
    entries: pa.Table, partitions: PaimonPartitions, paths: pa.Array, vectors: tuple[pa.Array, pa.Array]
) -> dict[str, object]:
    return {
        "path": paths,
        "partition": partitions.column(),
        "bucket": entries.column("bucket"),
        "level": entries.column("level"),
        "rows": entries.column("rows"),
        "size_bytes": entries.column("size_bytes"),
        "schema_id": entries.column("schema_id"),
        "deletion_vector": vectors[0],
        "deleted_rows": vectors[1],
    }


def _vectors_of(
    entries: pa.Table, vectors: Sequence[Vectors], owners: Sequence[int] | None
) -> tuple[pa.Array, pa.Array]:
    """Return the columns deletion_vector, as `path@offset`, and deleted_rows of entries."""
    if not any(vectors):
        return pa.nulls(len(entries), pa.string()), pa.nulls(len(entries), pa.int64())
    keys = zip(
        entries.column("partition").to_pylist(),
        entries.column("bucket").to_pylist(),
        entries.column("file_name").to_pylist(),
        strict=True,
    )
    of_rows = [vectors[owner] for owner in owners] if owners is not None else [vectors[0]] * len(entries)
    vectors_of_files = [known.get(key) for key, known in zip(keys, of_rows, strict=True)]
    where = [f"{vector.path}@{vector.offset}" if vector else None for vector in vectors_of_files]
    return pa.array(where, pa.string()), pa.array(
        [vector.cardinality if vector else None for vector in vectors_of_files], pa.int64()
    )
