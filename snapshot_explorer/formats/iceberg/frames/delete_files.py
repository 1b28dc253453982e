"""The delete files of versions, which are listed apart from data files."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.capabilities import DeleteFiles
from snapshot_explorer.formats.iceberg.frames.files import files_frame
from snapshot_explorer.formats.iceberg.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.iceberg.metadata.contents import live_files, manifests_of
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA

_AT_ONCE = 2_000


@dataclass(frozen=True, kw_only=True)
class IcebergDeleteFiles(DeleteFiles):
    """The delete files of a branch."""

    metadata: BranchMetadata

    def manifests(self, versions: Sequence[int]) -> Sequence[frozenset[str]]:
        """Return for each version the manifests of its live delete files. Reads the manifest lists concurrently.

        Versions with the same manifests have the same deletes.
        """
        source, history = self.metadata.having(versions)
        snapshots = [history.snapshots[version] for version in versions]
        locations: dict[int, set[str]] = {snapshot.id: set() for snapshot in snapshots}
        for begin in range(0, len(snapshots), _AT_ONCE):
            chosen = manifests_of(source, snapshots[begin : begin + _AT_ONCE], select=_live_deletes)
            for snapshot, location in zip(
                chosen["snapshot_id"].to_pylist(), chosen["location"].to_pylist(), strict=True
            ):
                locations[snapshot].add(location)
        return [frozenset(locations[snapshot.id]) for snapshot in snapshots]

    def data_files(self, version: int) -> pa.Table:
        source, history = self.metadata.having([version])
        live = live_files(source, history.snapshots[version], deletes=False)
        return files_frame(source.metadata, live)


def _live_deletes(manifests: pa.Table) -> pa.Table:
    """Return the manifests of delete files that have live ones."""
    # Counts are null in lists of version 1, which has no deletes.
    live = pc.add(pc.fill_null(manifests["added_files"], 1), pc.fill_null(manifests["existing_files"], 1))
    return manifests.filter(pc.and_(pc.not_equal(manifests["content"], DATA), pc.greater(live, 0)))
