"""Which rows changed between two versions, from the data files that commits added and removed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.changes.events import Events
from snapshot_explorer.formats.iceberg.metadata.contents import Changed, Source, changed_files, version_metadata
from snapshot_explorer.formats.iceberg.metadata.entries import LIVE, STATISTICS, LiveFiles
from snapshot_explorer.formats.iceberg.metadata.history import History
from snapshot_explorer.formats.iceberg.metadata.manifests import ADDED, DELETED
from snapshot_explorer.formats.iceberg.metadata.table_metadata import Snapshot
from snapshot_explorer.formats.iceberg.scan.planning import plan
from snapshot_explorer.model import ChangeMode, Split

_CHANGING = ("append", "overwrite", "delete")
"""Operations that change rows; `replace` only rearranges them."""


def splits_between(source: Source, history: History, first: int, last: int, mode: ChangeMode) -> list[Split]:
    """Return splits of the rows that changed after `first` up to `last`: by version, deletes before inserts.

    All rows of removed files are deleted rows, all rows of added files inserted ones, under the schema of the last
    version. Compactions change no rows. Reads the manifest lists of the commits, and the manifests that they wrote.

    Args:
        source: The table.
        history: The history that the versions are of.
        first: The version before the first included one.
        last: The last included version.
        mode: `auto` or `delta`.

    Raises:
        UnsupportedFeatureError: The mode is diff, a commit replaced the table, or one added deletes of rows.
        InvalidArgumentError: The mode is changelog: Iceberg keeps none.
        CorruptTableError: A file is missing or damaged; the message names it.
    """
    if mode == "changelog":
        raise no_changelog()
    if mode == "diff":
        raise refusal(features.DIFFERENCE)
    versions = [version for version in history.versions if first < version <= last]
    _check_history(history, versions)
    snapshots = [history.snapshots[version] for version in versions]
    chosen = [one for one in snapshots if one.summary.get("operation", "overwrite") in _CHANGING]
    changed = changed_files(source, chosen, deletes=True)
    _check_deletes(history, changed)
    found: list[Split] = []
    for ordinal, snapshot in enumerate(chosen):
        found += _of_commit(source, history, changed, snapshot, ordinal, history.snapshots[last])
    return found


def no_changelog() -> InvalidArgumentError:
    """Return the error for a changelog that is requested."""
    return InvalidArgumentError(
        "Iceberg tables have no changelog: commits do not record the rows that they changed. Use mode='delta', which "
        "finds them by the data files that commits added and removed."
    )


def _check_history(history: History, versions: Sequence[int]) -> None:
    """Refuse commits whose changes are not relative to the version before."""
    broken = [version for version in versions if version in history.commitless]
    if broken:
        raise refusal(features.CHANGES_ACROSS_REPLACEMENT, version=broken[0])


def _check_deletes(history: History, changed: Changed) -> None:
    if len(changed.deletes):
        version = history.numbers[changed.deletes.column("owner")[0].as_py()]
        raise refusal(features.CHANGES_WITH_DELETES, version=version)


def _of_commit(
    source: Source, history: History, changed: Changed, snapshot: Snapshot, ordinal: int, reading: Snapshot
) -> Iterator[Split]:
    entries = changed.data.filter(pc.equal(changed.data.column("owner"), snapshot.id))
    version = history.numbers[snapshot.id]
    for status, kind in ((DELETED, "-D"), (ADDED, "+I")):
        rows = entries.filter(pc.equal(entries.column("status"), status))
        for split in _splits(source, changed, rows, reading):
            detail = Events(
                files=split,
                kind="-D" if kind == "-D" else "+I",
                ordinal=ordinal,
                snapshot_id=snapshot.id,
                version=version,
                committed_at=history.time_of(version),
            )
            yield replace(split, raw=False, detail=detail)


def _splits(source: Source, changed: Changed, rows: pa.Table, reading: Snapshot) -> Sequence[Split]:
    """Return splits of all rows of data files, under the schema of a snapshot."""
    if not len(rows):
        return ()
    live = LiveFiles(
        data=rows.select(LIVE.names),
        deletes=pa.schema([*LIVE, *STATISTICS]).empty_table(),
        partitions=changed.partitions.arrays(),
    )
    return plan(replace(version_metadata(source, reading), live=lambda _: live), None).splits
