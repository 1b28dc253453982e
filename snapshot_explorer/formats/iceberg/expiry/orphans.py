"""The files that Iceberg's metadata names, and the effect of `remove_orphan_files` on all other files.

Source: iceberg docs, "Spark Procedures" (remove_orphan_files); iceberg DeleteOrphanFilesSparkAction, ReachableFileUtil.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.formats.iceberg.expiry.settings import name_of
from snapshot_explorer.formats.iceberg.metadata.contents import Source, entries_of, manifests_of
from snapshot_explorer.formats.iceberg.metadata.manifests import live_entries
from snapshot_explorer.formats.iceberg.metadata.metadata_files import FOLDER, HINT, is_metadata_file, number_of
from snapshot_explorer.formats.iceberg.metadata.table_metadata import (
    IcebergSnapshot,
    TableMetadata,
    parse_table_metadata,
)
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage.same_files import match_files

_AGE = timedelta(days=3)
_AT_ONCE = 256
"""The maximum number of manifests whose entries are in memory at the same time."""
_LISTS_AT_ONCE = 2_000


def named_files(source: Source, listed: pa.Array) -> NamedFiles:
    """Return the files that the current metadata file references, through snapshots on any branch or none.

    Reads every manifest list and every manifest once.
    """
    metadata, locations = source.metadata, source.locations
    unread = [*_newer_files(metadata, listed)]
    recorded = [
        *_metadata_log(source, listed, unread),
        *(item.get("statistics-path") for item in (*metadata.statistics, *metadata.partition_statistics)),
        *metadata.snapshots.every("manifest_list"),
    ]
    parts = [pa.array([metadata.path, HINT], pa.string()), locations.many(pa.array(recorded, pa.string()).drop_null())]
    seen: set[str] = set()
    snapshots = list(metadata.snapshots.values())
    for begin in range(0, len(snapshots), _LISTS_AT_ONCE):
        for manifests in _manifests(source, snapshots[begin : begin + _LISTS_AT_ONCE], seen, unread):
            parts.append(single_chunk(manifests.column("location")))
            parts += _files(source, manifests, unread)
    return NamedFiles(
        paths=single_chunk(pa.chunked_array(parts)),
        unread=tuple(unread),
        notes=(f"{locations.note} Files left at the recorded location were not searched.",) if locations.note else (),
    )


def _metadata_log(source: Source, listed: pa.Array, unread: list[str]) -> list[str]:
    """Return the recorded paths of earlier metadata files, including paths that only the oldest existing files name.

    Source: iceberg ReachableFileUtil.metadataFileLocations.
    """
    storage = source.storage
    existing = listed.filter(pc.starts_with(listed, f"{FOLDER}/"))
    recorded = [path for _, path in source.metadata.metadata_log]
    known = {source.metadata.path}
    log = recorded
    while log:
        files = source.locations.many(pa.array(log, pa.string()))
        listed_as = dict(zip(existing.to_pylist(), existing.to_pylist(), strict=True))
        listed_as |= match_files(storage, existing, files).listed_as
        oldest = next((listed_as[path] for path in files.to_pylist() if path in listed_as), None)
        if oldest is None or oldest in known:
            break
        known.add(oldest)
        try:
            log = [path for _, path in parse_table_metadata(storage.read(oldest), oldest, storage.limits).metadata_log]
        except SnapshotExplorerError as error:
            unread.append(Message(f"The earlier metadata file {oldest} could not be read: ", error))
            break
        recorded += log
    return recorded


def _newer_files(metadata: TableMetadata, listed: pa.Array) -> Iterator[str]:
    """Yield a sentence about metadata files that may be newer than the current metadata file."""
    current = number_of(metadata.path.rpartition("/")[2])
    known = {path.rpartition("/")[2] for _, path in metadata.metadata_log} | {metadata.path.rpartition("/")[2]}
    for path in listed.to_pylist():
        folder, _, name = path.rpartition("/")
        if folder != FOLDER or not is_metadata_file(name) or name in known:
            continue
        number = number_of(name)
        if current is None or number is None or number >= current:
            yield (f"{path} may be newer than {metadata.path}, which was read: a catalog decides which one is current.")


def _manifests(
    source: Source, snapshots: Sequence[IcebergSnapshot], seen: set[str], unread: list[str]
) -> Iterator[pa.Table]:
    """Yield the MANIFEST_FILES of snapshots that were not seen before, in parts; after an error one by one."""
    try:
        lists = manifests_of(source, snapshots)
    except SnapshotExplorerError as error:
        if len(snapshots) == 1:
            unread.append(Message(f"The manifest list of snapshot {snapshots[0].id} could not be read: ", error))
            return
        for snapshot in snapshots:
            yield from _manifests(source, [snapshot], seen, unread)
        return
    rows = []
    for row, location in enumerate(lists.column("location").to_pylist()):
        if location not in seen:
            seen.add(location)
            rows.append(row)
    for begin in range(0, len(rows), _AT_ONCE):
        yield lists.take(pa.array(rows[begin : begin + _AT_ONCE], pa.int64()))


def _files(source: Source, manifests: pa.Table, unread: list[str]) -> list[pa.Array]:
    try:
        return [single_chunk(live_entries(entries_of(source, manifests).rows).column("location"))]
    except SnapshotExplorerError as error:
        if len(manifests) == 1:
            unread.append(Message(f"The manifest {manifests.column('path')[0].as_py()} could not be read: ", error))
            return []
    return [part for row in range(len(manifests)) for part in _files(source, manifests.slice(row, 1), unread)]


def clean_up(source: Source, files: pa.Table, now: datetime) -> CleanUp:
    """Return the outcome of `remove_orphan_files` for files that no snapshot names.

    Args:
        files: path and modified.
    """
    metadata = source.metadata
    hidden = tuple(
        f"{field['name']}="
        for spec in metadata.specs.values()
        for field in spec["fields"]
        if str(field["name"]).startswith(("_", "."))
    )
    is_off = not parse_flag(metadata.properties, "gc.enabled", default=True)
    rows = zip(files.column("path").to_pylist(), files.column("modified").to_pylist(), strict=True)
    name = name_of(source.storage.root).replace("'", "''")
    return CleanUp(
        files=[
            _clean_up_of(path, is_young=modified >= now - _AGE, hidden=hidden, is_off=is_off) for path, modified in rows
        ],
        rule="remove_orphan_files deletes files older than 3 days by default, except for those whose name, or whose "
        "folder's name, begins with _ or a dot.",
        commands=(("Spark SQL, dry run", f"CALL system.remove_orphan_files(table => '{name}', dry_run => true)"),),
    )


def _clean_up_of(path: str, *, is_young: bool, hidden: tuple[str, ...], is_off: bool) -> FileCleanUp:
    kind = _kind_of(path)
    is_hidden = any(
        part.startswith(("_", ".")) and not (hidden and part.startswith(hidden)) for part in path.split("/")
    )
    if is_off:
        return FileCleanUp(kind=kind, outcome="ignored", because="the table has gc.enabled=false")
    if is_hidden:
        return FileCleanUp(
            kind=kind, outcome="ignored", because="remove_orphan_files skips names that begin with _ or a dot"
        )
    if is_young:
        return FileCleanUp(kind=kind, outcome="kept", because="it is younger than 3 days")
    return FileCleanUp(kind=kind, outcome="deleted", because="no snapshot names it")


def _kind_of(path: str) -> str:
    folder, _, name = path.rpartition("/")
    if name.startswith(".") or name.endswith(".tmp"):
        return "temporary"
    if name.endswith(".stats"):
        return "statistics"
    if folder == FOLDER:
        return "manifest" if name.endswith(".avro") else "metadata"
    if name.endswith(".puffin"):
        return "deletion vector"
    if "-deletes." in name:
        return "deletes"
    return "data" if name.endswith((".parquet", ".orc", ".avro")) else "other"
