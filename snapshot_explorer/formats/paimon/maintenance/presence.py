"""Which files versions use, and what is there of those that they need, from listings alone."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError
from snapshot_explorer.formats.expiry import Presence, check_gone, missing_files
from snapshot_explorer.formats.paimon.metadata.layout import MANIFESTS
from snapshot_explorer.formats.paimon.metadata.snapshots import Snapshot
from snapshot_explorer.model import Listing
from snapshot_explorer.storage import Storage


def presence(storage: Storage, lifetimes: pa.Table, snapshots: Sequence[Snapshot]) -> Presence:
    """Return what is there of what versions need: data files, and the lists and index manifests that snapshots name.

    A listing for each folder of data files, and one of the manifests. Index files are not looked for.
    """
    paths = single_chunk(lifetimes.column("path"))
    found = missing_files(storage, paths)
    there = {entry.name for entry in storage.list(MANIFESTS)}
    without = {}
    lost: set[str] = set()
    for one in snapshots:
        named = (one.base_manifest_list, one.delta_manifest_list, one.index_manifest)
        gone = [name for name in named if name is not None and name not in there]
        if gone:
            without[one.id] = f"{MANIFESTS}/{gone[0]} is not there"
            lost.update(f"{MANIFESTS}/{name}" for name in gone)
    check_gone(storage, [sorted(lost)])
    return Presence(
        gone=pc.is_in(paths, found.gone).to_numpy(zero_copy_only=False),
        unknown=pc.is_in(paths, found.unknown).to_numpy(zero_copy_only=False),
        without=without,
        through={one.id: "through its tag; the snapshot has expired" for one in snapshots if one.held == "tag"},
    )


def used(
    listing: Callable[[int], Listing], files: Callable[[int], pa.Table], changes: Callable[[Sequence[int]], pa.Table]
) -> frozenset[str] | str:
    """Return the paths of the data files that any version of a branch uses, or why that cannot be told.

    Reads the earliest version, each behind a gap, and what the others changed, by the branch's own functions.
    """
    try:
        found = listing(0)
        states = sorted(set(found.versions).difference(found.stateless))
        firsts = [version for version in states if version - 1 not in states]
        tables = [files(version) for version in firsts]
        rest = changes([version for version in states if version not in firsts])
    except (CorruptTableError, SnapshotNotFoundError) as error:
        return str(error)
    tables.append(rest.filter(pc.equal(rest["change"], "add")))
    return frozenset(path for rows in tables for path in rows["path"].to_pylist())
