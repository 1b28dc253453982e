"""The files that the log of a Delta table names, below the table's root.

Source: delta PROTOCOL.md, "File Types", "Add File and Remove File", "Deletion Vectors".
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from snapshot_explorer.core.errors import SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.records import Listing, gaps_note
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.metadata.layout import HINT, LOG, SIDECARS, STAGED, log_files, staged_version
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.log_segment import LogListing, earliest
from snapshot_explorer.formats.named_files import NamedFiles
from snapshot_explorer.storage import Entry, Storage

_LAST_VACUUM = f"{LOG}/_last_vacuum_info"
"""The file in which VACUUM LITE, which uses only the log, stores its progress."""
_STAGED = tuple(f"{LOG}/{name}/" for name in STAGED)
_AT_ONCE = 2_000
"""The number of commits whose actions are in memory at the same time."""


def named_files(storage: Storage, log: DeltaLog, listed: pa.Array) -> NamedFiles:
    """Return the files that any commit or checkpoint of the log names, and the files of the log.

    Reads every commit, and the state at each version that is only in a checkpoint.
    """
    listing = log.refresh()
    parts: list[Sequence[str | None]] = [_log_paths(listed)]
    unread = list(_unread(listing, listed))
    versions = list(listing.commits)
    for begin in range(0, len(versions), _AT_ONCE):
        try:
            actions = log.actions(versions[begin : begin + _AT_ONCE], infos=False)
            parts += [[*_paths(storage, rows)] for rows in (actions.adds, actions.removes)]
        except SnapshotExplorerError as error:
            unread.append(Message("The log could not be read: ", error))
            continue
        parts.append(actions.cdc.column("path").to_pylist())
    for version in _starts(listing):
        try:
            parts.append(list(_paths(storage, log.state(version).adds)))
        except SnapshotExplorerError as error:
            unread.append(Message(f"The checkpoint of version {version} could not be read: ", error))
    has_sidecars = any(path.startswith(f"{SIDECARS}/") for path in listed.to_pylist())
    return NamedFiles(
        paths=pa.concat_arrays([pa.array(part, pa.string()) for part in parts]),
        unread=tuple(unread),
        notes=("Sidecar files of checkpoints were not searched.",) if has_sidecars else (),
    )


def _unread(listing: LogListing, listed: pa.Array) -> Iterator[str]:
    """Yield a sentence about missing versions after the earliest loadable one: they may name any file."""
    first = earliest(listing)
    if first is None:
        yield "The log has no version that can be loaded."
        return
    versions = tuple(version for version in listing.versions if version >= first)
    gaps = Listing(versions=versions, identity=()).gaps(versions)
    yield from gaps_note(gaps, "files that only they name are unknown")
    for path in listed.to_pylist():
        staged = staged_version(path.rpartition("/")[2]) if path.startswith(_STAGED) else None
        if staged is not None and staged > listing.versions[-1]:
            yield f"{path} is a staged commit of version {staged}: a catalog decides whether it counts."


def _starts(listing: LogListing) -> list[int]:
    """Return the versions whose files are in a checkpoint but not in all commits before it."""
    commits = listing.commits
    return [
        version
        for version in sorted(listing.loadable)
        if version and (version - 1 not in listing.loadable or version not in commits)
    ]


def _paths(storage: Storage, actions: pa.Table) -> Iterator[str | None]:
    yield from actions.column("path").to_pylist()
    vectors = actions.column("deletion_vector")
    if vectors.null_count == len(vectors):
        return
    for path, vector in zip(actions.column("path").to_pylist(), vectors.to_pylist(), strict=True):
        if vector is not None:
            yield _vector_path(storage, vector, path)


def _vector_path(storage: Storage, vector: Mapping[str, object], path: str) -> str | None:
    try:
        vector_file = vector_of(vector, storage, path)
    except UnsupportedFeatureError:
        return str(vector["path_or_inline"])  # on another storage, or of an unknown kind
    return None if vector_file is None else vector_file.path


def _log_paths(listed: pa.Array) -> list[str]:
    in_log = [path for path in listed.to_pylist() if path.startswith(f"{LOG}/")]
    names = [path.removeprefix(f"{LOG}/") for path in in_log]
    entries = (Entry(name=name, is_folder=False, size_bytes=None, modified=None) for name in names if "/" not in name)
    return [
        *(file.path for file in log_files(entries)),
        *(path for path in in_log if path in (HINT, _LAST_VACUUM) or path.startswith((*_STAGED, f"{SIDECARS}/"))),
    ]
