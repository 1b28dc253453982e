"""Search for the version that removed a file that no longer exists."""

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.storage import Storage

MAX_COMMITS = 1_000
"""The maximum number of commits that are read to find the commit that removed a file."""


def removed_in(storage: Storage, log: DeltaLog, path: str) -> int | None:
    """Return a version that no longer needs a file; None if the newest one needs it, or if it is unknown.

    Lists the log and reads the newest 1,000 commits. If none of them removes the file, reads the newest state.
    """
    try:
        log.refresh()
        actions = log.actions([commit.version for commit in log.commits()[-MAX_COMMITS:]], infos=False)
        removed, added = (
            pc.max(files.filter(pc.equal(files.column("path"), path)).column("version")).as_py()
            for files in (actions.removes, actions.adds)
        )
        # A file whose deletion vector was replaced is removed and added in one commit.
        if removed is not None and (added is None or added < removed):
            return int(removed)
        newest = log.versions()[-1]
        return None if _needs(storage, log.state(newest).adds, path) else newest
    except SnapshotExplorerError:
        return None


def _needs(storage: Storage, adds: pa.Table, path: str) -> bool:
    """Return whether a file is a live file, or contains a deletion vector of a live file."""
    paths = adds.column("path")
    if pc.any(pc.equal(paths, path)).as_py():
        return True
    with_vector = adds.filter(adds.column("deletion_vector").is_valid())
    descriptors = with_vector.column("deletion_vector").to_pylist()
    vectors = map(vector_of, descriptors, [storage] * len(descriptors), with_vector.column("path").to_pylist())
    return any(vector is not None and vector.path == path for vector in vectors)
