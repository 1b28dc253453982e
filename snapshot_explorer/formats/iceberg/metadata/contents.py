"""The contents of snapshots: manifests, live files, and the files that each snapshot changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError, MissingFileError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.single_flight import SingleFlight
from snapshot_explorer.formats.iceberg.metadata.entries import (
    LIVE,
    STATISTICS,
    IcebergLiveFiles,
    Select,
    VersionMetadata,
)
from snapshot_explorer.formats.iceberg.metadata.locations import Locations
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA, read_manifest_lists
from snapshot_explorer.formats.iceberg.metadata.manifests import (
    ENTRIES,
    Entries,
    live_entries,
    nonempty_manifests,
    parse_manifests,
)
from snapshot_explorer.formats.iceberg.metadata.partition_tuples import PartitionTuples
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot, TableMetadata
from snapshot_explorer.formats.unread_versions import PartlyRead, Reasons, read_apart
from snapshot_explorer.storage import Storage

_LISTS_KEPT = 16
_READ_BYTES = 32 << 20
"""Bytes of manifests that are read concurrently, and in memory at the same time."""
_DECODED_BYTES = 1 << 20
"""Bytes of manifests, mostly compressed, whose entries are in memory at the same time before some are selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table's metadata file and the mapping of its paths. Picklable."""

    storage: Storage
    metadata: TableMetadata
    locations: Locations
    manifests: SingleFlight = field(default_factory=partial(SingleFlight, _LISTS_KEPT), compare=False, repr=False)
    """The MANIFEST_FILES of the snapshots that were read last, by their ids."""


def manifests_of(
    source: Source, snapshots: Sequence[IcebergSnapshot], *, select: Callable[[pa.Table], pa.Table] | None = None
) -> pa.Table:
    """Return the MANIFEST_FILES of snapshots, in their order. Reads their manifest lists concurrently.

    The lists of the last single snapshots are kept.

    Args:
        select: Returns the manifests to keep of some; by default all.
    """

    def read(select: Callable[[pa.Table], pa.Table] | None = None) -> pa.Table:
        try:
            return read_manifest_lists(source.storage, source.locations, snapshots, select=select)
        except MissingFileError as error:
            raise _missing(source, error) from error

    if len(snapshots) != 1:
        return read(select)
    result = source.manifests.get(snapshots[0].id, read)
    return result if select is None else select(result)


def entries_of(
    source: Source,
    manifests: pa.Table,
    *,
    contents: Sequence[bytes] | None = None,
    statistics: Sequence[str] = (),
    partitions: PartitionTuples | None = None,
    changed: bool = False,
) -> Entries:
    """Return the entries of manifests, deleted ones included; existing ones unless only `changed` are requested.

    Reads the manifests concurrently, unless their contents were read.

    Args:
        statistics: The columns of STATISTICS to decode.
    """
    if contents is None:
        contents = _contents(source, manifests)
    tuples = PartitionTuples(source.metadata.specs) if partitions is None else partitions
    return parse_manifests(
        manifests,
        contents,
        source.locations,
        tuples,
        column_ids=source.metadata.counted_columns,
        statistics=statistics,
        changed=changed,
        storage=source.storage,
    )


def readable_entries(
    source: Source, manifests: pa.Table, partitions: PartitionTuples | None = None
) -> tuple[pa.Table, Reasons]:
    """Return the entries of manifests without statistics, ENTRIES, and why the others cannot be read, by their row."""
    tuples = PartitionTuples(source.metadata.specs) if partitions is None else partitions

    def entries(group: Sequence[int]) -> pa.Table:
        chosen = manifests.take(pa.array(group, pa.int64()))
        rows = entries_of(source, chosen, partitions=tuples).rows
        index = rows.schema.get_field_index("manifest")
        field = rows.schema.field(index)
        return rows.set_column(index, field, pc.add(rows.column(index), pa.scalar(group[0], field.type)))

    read = (
        read_apart(entries, range(len(manifests)), source.storage)
        if len(manifests)
        else PartlyRead(parts=(), unread={})
    )
    return pa.concat_tables([ENTRIES.empty_table(), *(part for _, part in read.parts)]), read.unread


def live_files(
    source: Source,
    snapshot: IcebergSnapshot | None,
    *,
    statistics: Sequence[str] = (),
    deletes: bool = True,
    select: Select | None = None,
) -> IcebergLiveFiles:
    """Return the live files of a snapshot; none for None. Reads its manifest list, then its manifests.

    Arguments as for `live_of`.
    """
    manifests = manifests_of(source, [snapshot] if snapshot is not None else [])
    manifests = nonempty_manifests(manifests, "added_files", "existing_files")
    of_data = pc.equal(manifests.column("content"), DATA)
    rest = manifests.filter(pc.invert(of_data)) if deletes else manifests.slice(0, 0)
    return live_of(source, manifests.filter(of_data), rest, statistics=statistics, select=select)


def live_of(
    source: Source,
    of_data: pa.Table,
    of_deletes: pa.Table,
    *,
    statistics: Sequence[str] = (),
    select: Select | None = None,
) -> IcebergLiveFiles:
    """Return the live files in manifests of data files and of delete files.

    Only some manifests are in memory at a time, and of the data files those that are selected.

    Args:
        statistics: The columns of STATISTICS of data files; delete files have all.
        select: Returns the data files to keep, maybe with fewer columns.
    """
    every = pa.concat_tables([of_data, of_deletes])
    tuples = PartitionTuples(source.metadata.specs, pc.unique(every.column("spec_id")).to_pylist())
    none = pa.schema([*(ENTRIES.field(name) for name in LIVE.names), *STATISTICS]).empty_table()
    some = none.select([*LIVE.names, *statistics])
    data, deletes = [some if select is None else select(some, tuples)], [none]
    for manifests, contents in _read_in_turn(source, every):
        is_data = manifests.column("content")[0].as_py() == DATA
        names = statistics if is_data else STATISTICS.names
        entries = entries_of(source, manifests, contents=contents, statistics=names, partitions=tuples)
        files = live_entries(entries.rows).select([*LIVE.names, *names])
        if is_data:
            data.append(files if select is None else select(files, tuples))
        else:
            deletes.append(files)
    return IcebergLiveFiles(data=pa.concat_tables(data), deletes=pa.concat_tables(deletes), partitions=tuples.arrays())


def _read_in_turn(source: Source, manifests: pa.Table) -> Iterator[tuple[pa.Table, Sequence[bytes]]]:
    """Yield the manifests in MANIFEST_FILES and their contents, a few at a time that have one kind of content.

    More are read concurrently than are yielded at a time.
    """
    for begin, end in _runs(manifests, _READ_BYTES):
        together = manifests.slice(begin, end - begin)
        contents = _contents(source, together)
        of_data = together.filter(pc.equal(together.column("content"), DATA))
        for first, files in ((0, of_data), (len(of_data), together.slice(len(of_data)))):
            for start, stop in _runs(files, _DECODED_BYTES):
                yield files.slice(start, stop - start), contents[first + start : first + stop]


def _runs(manifests: pa.Table, limit: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of manifests of up to that many bytes, by their recorded lengths, or one manifest."""
    begin = total = 0
    for index, length in enumerate(pc.fill_null(manifests.column("length"), limit).to_pylist()):
        if index > begin and total + length > limit:
            yield begin, index
            begin, total = index, 0
        total += length
    if begin < len(manifests):
        yield begin, len(manifests)


def _contents(source: Source, manifests: pa.Table) -> list[bytes]:
    """Return the contents of the manifests in MANIFEST_FILES, read concurrently."""
    try:
        return source.storage.read_many(manifests.column("location").to_pylist(), immutable=True)
    except MissingFileError as error:
        raise _missing(source, error) from error


def version_metadata(source: Source, snapshot: IcebergSnapshot | None, schema: Mapping[str, Any]) -> VersionMetadata:
    """Return the metadata that a scan of a snapshot under a schema needs; no files for None. Reads nothing."""
    metadata = source.metadata
    return VersionMetadata(
        storage=source.storage,
        format_version=metadata.format_version,
        schema=schema,
        schemas=metadata.schemas,
        specs=metadata.specs,
        current_schema=metadata.current_schema,
        properties=metadata.properties,
        live=partial(_live, source, snapshot),
    )


def _live(
    source: Source, snapshot: IcebergSnapshot | None, statistics: Sequence[str], select: Select
) -> IcebergLiveFiles:
    return live_files(source, snapshot, statistics=statistics, select=select)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChanges:
    """The files that snapshots changed."""

    data: pa.Table
    """ENTRIES of data files that were added or deleted, in the order of the snapshots, and `owner`, the snapshot id."""
    partitions: PartitionTuples


def changed_files(source: Source, snapshots: Sequence[IcebergSnapshot], *, statistics: bool = False) -> CommitChanges:
    """Return the data files that snapshots added and deleted: entries of the manifests that each of them wrote.

    Reads their manifest lists, then the manifests that they wrote, each kind concurrently.

    Source: iceberg BaseSnapshot.cacheDataFileChanges.
    """
    manifests = nonempty_manifests(own_manifests(source, snapshots), "added_files", "deleted_files")
    of_data = manifests.filter(pc.equal(manifests.column("content"), DATA))
    tuples = PartitionTuples(source.metadata.specs)
    contents = _contents(source, of_data)
    return CommitChanges(data=_own_changes(source, of_data, contents, tuples, statistics=statistics), partitions=tuples)


def own_manifests(source: Source, snapshots: Sequence[IcebergSnapshot]) -> pa.Table:
    """Return the MANIFEST_FILES that the commits of snapshots wrote; the others in their lists were carried over.

    Compares sequence numbers, or snapshot ids without them: some tools rounded the ids in metadata files.
    """
    return manifests_of(source, snapshots, select=lambda listed: listed.filter(is_own(listed, snapshots)))


def is_own(manifests: pa.Table, snapshots: Sequence[IcebergSnapshot]) -> pa.Array:
    """Return for each manifest whether the commit of its snapshot wrote it; see `own_manifests`."""
    ids = pa.array([snapshot.id for snapshot in snapshots], pa.int64())
    indices = single_chunk(pc.index_in(manifests.column("snapshot_id"), ids))
    numbers = pa.array([snapshot.sequence_number for snapshot in snapshots], pa.int64()).take(indices)
    by_number = pc.equal(numbers, single_chunk(manifests.column("sequence_number")))
    by_id = pc.equal(manifests.column("snapshot_id"), manifests.column("added_snapshot_id"))
    return pc.fill_null(pc.if_else(pc.greater(numbers, 0), by_number, single_chunk(by_id)), fill_value=False)


def _own_changes(
    source: Source, manifests: pa.Table, contents: Sequence[bytes], tuples: PartitionTuples, *, statistics: bool
) -> pa.Table:
    """Return the entries of manifests that their own commits added or deleted, with the snapshot as `owner`."""
    result = entries_of(
        source,
        manifests,
        contents=contents,
        statistics=STATISTICS.names if statistics else (),
        partitions=tuples,
        changed=True,
    ).rows
    indices = single_chunk(result.column("manifest"))
    writers = single_chunk(manifests.column("added_snapshot_id")).take(indices)
    changed = pc.equal(result.column("snapshot_id"), writers)
    owners = single_chunk(manifests.column("snapshot_id")).take(indices)
    return result.append_column("owner", owners).filter(pc.fill_null(changed, fill_value=False))


def _missing(source: Source, error: MissingFileError) -> CorruptTableError:
    note = source.locations.note
    return CorruptTableError(
        Message(
            error,
            " The version's metadata names it, so the version cannot be read. ",
            f"{note} " if note else "",
            "Copy the missing file too, choose another version, or say where moved folders are with ",
            Hint("open_table", {"path": ..., "relocate": {"s3://old": "/new"}}),
            ".",
        )
    )
