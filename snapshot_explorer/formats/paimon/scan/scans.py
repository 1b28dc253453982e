"""Scan planning of a version: its live files, the files that a condition skips, and the splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_rows import equal_rows
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.records import Bounds, PlannedPair, Predicate, ReadPlan, Split
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.paimon.files.deletion_vectors import Vectors, vectors_of
from snapshot_explorer.formats.paimon.frames.files import changes_frame
from snapshot_explorer.formats.paimon.metadata.contents import (
    METADATA,
    ManifestLists,
    PaimonState,
    check_known,
    read_changes,
    read_indexes_of,
    read_lists_of,
    read_state,
    state_lists,
)
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonField
from snapshot_explorer.formats.paimon.metadata.layout import manifest_path
from snapshot_explorer.formats.paimon.metadata.manifests import (
    FILE_COLUMNS,
    PLAN_COLUMNS,
    SCAN_COLUMNS,
    STATISTICS_COLUMNS,
    read_entries,
)
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions, data_paths, folders_of, partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.scan import planning
from snapshot_explorer.formats.paimon.scan.data_skipping import (
    Pruning,
    by_partition,
    manifests_with,
    without_partitions,
)
from snapshot_explorer.formats.paimon.scan.plans import PaimonFiles
from snapshot_explorer.formats.paimon.scan.statistics import bounds, key_bounds, whole_keys
from snapshot_explorer.formats.paimon.scan.visibility import is_included
from snapshot_explorer.formats.statistics import StatisticsFile, StatisticsFiles, by_path, rename_columns, with_bounds
from snapshot_explorer.storage import Storage

Mask = npt.NDArray[np.bool_]

_NAMED = ("name", "size_bytes")


def scan(
    storage: Storage,
    schemas: Schemas,
    snapshot: PaimonSnapshot,
    predicate: Predicate | None = None,
    *,
    level: int | None = None,
    lists: Callable[[], ManifestLists] | None = None,
) -> ReadPlan:
    """Return the splits of a version, and the files that the predicate skips.

    Files are skipped by partition, bucket, keys and statistics, all from manifests: no data file is opened. Manifests
    in which no partition can match are not read; all files skipped by partition are then one row of SKIPPED.

    Args:
        predicate: The condition on the rows; None for all rows.
        level: Read only the files of this level, as if there were no others.
        lists: Returns the version's `state_lists`, which may have been read already.

    Source: paimon AppendOnlyFileStoreScan, KeyValueFileStoreScan.
    """
    scanned = _scan_files(storage, schemas, snapshot, predicate, level=level, lists=lists)
    files, state, pruning = scanned.files, scanned.state, scanned.pruning
    splits, dropped = _plan_splits(storage, scanned, snapshot.id)
    if pruning is None:
        return ReadPlan(splits=tuple(splits), skipped=frames.SKIPPED.empty_table)
    if dropped.any():
        out = files.entries.select(["bucket", "rows", "size_bytes", "ruled_out"]).filter(pa.array(dropped))
        reasons = single_chunk(out.column("ruled_out")).dictionary_encode()
        texts = np.array(reasons.dictionary.to_pylist(), np.object_)
        pruning.skip(out, files.partitions.where(dropped), texts[reasons.indices.to_numpy()])

    def skipped() -> pa.Table:
        listed = pruning.skipped()
        if not state.unread:
            return listed
        return without_partitions(
            listed,
            files=None if state.files is None else state.files - pruning.files,
            rows=None if snapshot.total_rows is None else snapshot.total_rows - pruning.rows,
        )

    return ReadPlan(splits=tuple(splits), skipped=skipped)


def scan_pair(
    storage: Storage,
    schemas: Schemas,
    snapshots: Sequence[PaimonSnapshot],
    lists: Sequence[Callable[[], ManifestLists]],
) -> PlannedPair:
    """Return the splits of two versions of a branch, without groups of equal files; `lists` as in `scan`."""
    first, last = storage.together(
        *(
            partial(_scan_files, storage, schemas, snapshot, None, lists=read)
            for snapshot, read in zip(snapshots, lists, strict=True)
        )
    )
    shared = _shared_groups(first.files, first.state.indexes, last.files, last.state.indexes)
    splits = []
    for scanned, is_shared, snapshot in zip((first, last), shared, snapshots, strict=True):
        splits.append(tuple(_plan_splits(storage, scanned, snapshot.id, chosen=~is_shared)[0]))
    files, version = first.files, snapshots[0].id
    read = np.asarray(is_included(files.entries, files.schema, files.options, version))
    return PlannedPair(splits=(splits[0], splits[1]), shared_files=int((shared[0] & read).sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    state: PaimonState
    files: PaimonFiles
    """The files that are not skipped before splits are planned."""
    pruning: Pruning | None


def _scan_files(
    storage: Storage,
    schemas: Schemas,
    snapshot: PaimonSnapshot,
    predicate: Predicate | None,
    *,
    level: int | None = None,
    lists: Callable[[], ManifestLists] | None = None,
) -> _Scan:
    """Return the live files of a version that a predicate does not skip before splits are planned."""
    (schema, newest), listed = storage.together(
        partial(schemas.with_newest, snapshot.schema_id), lists or partial(state_lists, storage, snapshot)
    )
    pruning = None if predicate is None else Pruning(schema, newest.options, schemas, storage, predicate)
    state = read_state(
        storage,
        snapshot,
        lists=listed,
        keep=manifests_with(schema, predicate, storage),
        columns=PLAN_COLUMNS if pruning is None else SCAN_COLUMNS,
        begin=None if pruning is None else pruning.begin,
    )
    entries = state.entries.drop_columns(["is_new"])
    if level is not None:
        entries = entries.filter(pc.equal(entries.column("level"), level))
    files = PaimonFiles(
        entries=entries,
        partitions=partitions_of(entries.column("partition"), schema),
        schema=schema,
        file_schemas=file_schemas(schemas, entries),
        options=newest.options,
        storage=storage,
    )
    return _Scan(state=state, files=files, pruning=pruning)


def _plan_splits(
    storage: Storage, scanned: _Scan, version: int, *, chosen: Mask | None = None
) -> tuple[list[Split], Mask]:
    """Return the splits of files, and which of the files are skipped; see `planning.splits`."""
    files = scanned.files
    vectors = vectors_in(storage, scanned.state.indexes, files.schema, files.options, strict=True)
    splits, skipped = planning.splits(files, vectors, partial(file_paths, storage), version, chosen=chosen)
    if not scanned.state.adds_up:
        splits = [replace(split, rows=None, live_rows=None) for split in splits]
    return splits, skipped


def filtered_state(
    storage: Storage,
    snapshot: PaimonSnapshot,
    lists: ManifestLists,
    schema: PaimonSchema,
    predicate: Predicate | None,
    columns: Sequence[str] | None = FILE_COLUMNS,
) -> tuple[PaimonState, PaimonPartitions]:
    """Return the live files in the partitions that the predicate might match, with these columns of ENTRIES."""

    def select(entries: pa.Table) -> pa.Table:
        return entries.filter(
            pa.array(by_partition(partitions_of(entries.column("partition"), schema), schema, predicate))
        )

    state = read_state(
        storage,
        snapshot,
        lists=lists,
        keep=manifests_with(schema, predicate, storage),
        columns=columns,
        begin=None if predicate is None else lambda: select,
    )
    return state, partitions_of(state.entries.column("partition"), schema)


def file_schemas(schemas: Schemas, entries: pa.Table) -> Mapping[int, PaimonSchema]:
    """Return the schemas that files were written with, by id."""
    return schemas.by_id(pc.unique(entries.column("schema_id")).to_pylist())


def paths_of(
    storage: Storage,
    entries: pa.Table,
    partitions: PaimonPartitions,
    schema: PaimonSchema,
    options: Mapping[str, str],
    *,
    strict: bool,
) -> pa.Array:
    """Return the path of each entry's file; `strict` as in `partitions.data_paths`."""
    folders = folders_of(partitions, entries.column("bucket"), schema, options)
    return data_paths(entries, folders, storage, strict=strict)


def file_paths(storage: Storage, files: PaimonFiles) -> list[str]:
    """Return the path of each file. Raise for a location on another storage."""
    paths = paths_of(storage, files.entries, files.partitions, files.schema, files.options, strict=True)
    result: list[str] = paths.to_pylist()
    return result


def vectors_in(
    storage: Storage, indexes: pa.Table, schema: PaimonSchema, options: Mapping[str, str], *, strict: bool = False
) -> Vectors:
    """Return the deletion vectors among INDEX_ENTRIES; `strict` as in `deletion_vectors.vectors_of`."""
    if not len(indexes):
        return {}
    partitions = partitions_of(indexes.column("partition"), schema)
    folders = folders_of(partitions, indexes.column("bucket"), schema, options)
    return vectors_of(indexes, folders.to_pylist(), options, storage, strict=strict)


def changes_of(
    storage: Storage,
    schemas: Schemas,
    snapshots: Sequence[PaimonSnapshot],
    kinds: Sequence[str] = ("delta", "changelog"),
) -> pa.Table:
    """Return the CHANGES of commits: for each the files of its delta, then of its changelog; see `Paimon.changes`.

    Reads their lists and manifests concurrently, the newest schema, and the schema of the last commit.
    """
    return _by_version([_changes(storage, schemas, snapshots, kind, FILE_COLUMNS)[0] for kind in kinds], snapshots)


def changes_with_statistics(
    storage: Storage,
    schemas: Schemas,
    snapshots: Sequence[PaimonSnapshot],
    columns: Sequence[str],
    schema: PaimonSchema,
) -> tuple[pa.Table, pa.Table]:
    """Return CHANGES of the deltas of commits, and path, level, deletion_vector and statistics of the added files."""
    changes, entries = _changes(storage, schemas, snapshots, "delta", STATISTICS_COLUMNS)
    is_added = pc.equal(changes.column("change"), "add")
    added, entries = changes.filter(is_added), entries.filter(is_added)
    chosen = frozenset(columns)
    fields = [field for field in schema.fields if field.name in chosen]
    known = bounds(entries, fields, file_schemas(schemas, entries))
    return _by_version([changes], snapshots), with_bounds(added.select(["path", "level", "deletion_vector"]), known)


def statistics_files(
    storage: Storage, schemas: Schemas, snapshots: Sequence[PaimonSnapshot], fields: Sequence[PaimonField]
) -> StatisticsFiles:
    """Return the manifests of snapshots. Reads their manifest lists concurrently.

    Args:
        snapshots: Ascending.
        fields: The columns whose statistics are returned.
    """
    lists = storage.together(*(partial(_lists_of, storage, snapshot) for snapshot in snapshots))
    sizes = {
        (snapshot.id, manifest_path(name, snapshot.path)): size_bytes
        for snapshot, listed in zip(snapshots, lists, strict=True)
        if isinstance(listed, ManifestLists)
        for name, size_bytes in zip(*(listed.manifests.column(name).to_pylist() for name in _NAMED), strict=True)
    }
    files = [StatisticsFile(path=path, what="manifest", first=number, last=number) for number, path in sizes]
    unread = [
        f"The manifest lists of version {snapshot.id} could not be read: {error}"
        for snapshot, error in zip(snapshots, lists, strict=True)
        if isinstance(error, SnapshotExplorerError)
    ]
    names = {field.id: field.name for field in fields}
    return StatisticsFiles(
        files=by_path(files),
        read=lambda chosen: storage.together(
            *(
                partial(_recorded_bounds, storage, schemas, file.path, sizes[file.first, file.path], names)
                for file in chosen
            )
        ),
        unread=unread,
    )


def _lists_of(storage: Storage, snapshot: PaimonSnapshot) -> ManifestLists | SnapshotExplorerError:
    try:
        return read_lists_of(storage, snapshot, ("base", "delta", "changelog"))
    except SnapshotExplorerError as error:
        return error


def _recorded_bounds(
    storage: Storage, schemas: Schemas, path: str, size_bytes: int | None, names: Mapping[int, str]
) -> Sequence[Bounds]:
    content = storage.read(path, immutable=True)
    check_size(path, len(content), size_bytes, by=METADATA)
    entries, _ = read_entries([(path, content)], limits=storage.limits)
    result = []
    for number, written in file_schemas(schemas, entries).items():
        part = entries.filter(pc.equal(entries.column("schema_id"), number))
        chosen = [field for field in written.fields if field.id in names]
        known = [bounds(part, chosen, {number: written})]
        if written.trimmed_primary_keys:
            known += [key_bounds(part, written, {number: written}), whole_keys(part, written)]
        # In the types that were written: bounds of types that have changed since are recorded too.
        new_names = {field.name: names[field.id] for field in written.fields if field.id in names}
        result += [rename_columns(item, new_names) for item in known]
    return result


def _changes(
    storage: Storage, schemas: Schemas, snapshots: Sequence[PaimonSnapshot], kind: str, columns: Sequence[str] | None
) -> tuple[pa.Table, pa.Table]:
    """Return the CHANGES of one kind of list, and these columns of their ENTRIES, in the order of the snapshots."""
    (newest, schema), indexes, changes = storage.together(
        lambda: _schemas_of(schemas, snapshots),
        lambda: read_indexes_of(storage, snapshots),
        lambda: read_changes(storage, snapshots, kind, columns=columns),
    )
    check_known(snapshots, changes, kind)
    vectors = [vectors_in(storage, index, schema, newest.options) for index in indexes]
    partitions = partitions_of(changes.entries.column("partition"), schema)
    paths = paths_of(storage, changes.entries, partitions, schema, newest.options, strict=False)
    frame = changes_frame(snapshots, changes, kind, partitions=partitions, paths=paths, vectors=vectors)
    return frame, changes.entries


def _schemas_of(schemas: Schemas, snapshots: Sequence[PaimonSnapshot]) -> tuple[PaimonSchema, PaimonSchema]:
    if not snapshots:
        newest = schemas.newest()
        return newest, newest
    schema, newest = schemas.with_newest(snapshots[-1].schema_id)
    return newest, schema


def _by_version(tables: Sequence[pa.Table], snapshots: Sequence[PaimonSnapshot]) -> pa.Table:
    """Return the rows of several tables in the order of the requested versions, then in the order of the tables."""
    together = pa.concat_tables(tables)
    order = {item.id: position for position, item in enumerate(snapshots)}
    indices = pa.array([order[version] for version in together.column("version").to_pylist()], pa.int64())
    return together.take(pc.sort_indices(indices))


def _shared_groups(
    first: PaimonFiles, first_indexes: pa.Table, last: PaimonFiles, last_indexes: pa.Table
) -> tuple[Mask, Mask]:
    """Return for each file of two versions whether its partition and bucket have the same files in both.

    No file is shared if the versions' schemas differ, because the same files then return other rows.
    """
    entries = first.entries.select(PLAN_COLUMNS), last.entries.select(PLAN_COLUMNS)
    if first.schema != last.schema or first.options != last.options:
        return np.zeros(len(entries[0]), np.bool_), np.zeros(len(entries[1]), np.bool_)
    groups = _group_numbers([*entries, first_indexes, last_indexes])
    equal = [*equal_rows(entries[0], entries[1], "file_name"), *_equal_indexes(first_indexes, last_indexes)]
    differing = np.unique(np.concatenate([of_rows[~mask] for of_rows, mask in zip(groups, equal, strict=True)]))
    return ~np.isin(groups[0], differing), ~np.isin(groups[1], differing)


def _group_numbers(tables: list[pa.Table]) -> list[npt.NDArray[np.int64]]:
    """Return for each row of tables a number that rows of the same partition and bucket share."""
    partitions = pa.chunked_array(
        [chunk for table in tables for chunk in table.column("partition").chunks], pa.binary()
    )
    codes = single_chunk(partitions).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    buckets = np.concatenate([table.column("bucket").to_numpy().astype(np.int64) for table in tables])
    numbers = codes << 32 | buckets & 0xFFFFFFFF
    return np.split(numbers, np.cumsum([len(table) for table in tables])[:-1])


def _equal_indexes(first: pa.Table, last: pa.Table) -> tuple[Mask, Mask]:
    if first.equals(last):
        return np.ones(len(first), np.bool_), np.ones(len(last), np.bool_)
    rows = [[tuple(row.values()) for row in table.to_pylist()] for table in (first, last)]
    both = set(rows[0]) & set(rows[1])
    masks = [np.fromiter((row in both for row in keys), np.bool_, len(keys)) for keys in rows]
    return masks[0], masks[1]
