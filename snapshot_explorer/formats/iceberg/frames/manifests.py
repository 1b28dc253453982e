"""The frames MANIFESTS and ENTRIES of Iceberg versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.formats.capabilities import MergedManifests
from snapshot_explorer.formats.iceberg.frames.files import change_words, changes_data, file_columns, partition_maps
from snapshot_explorer.formats.iceberg.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.iceberg.metadata.contents import is_own as is_own_manifest
from snapshot_explorer.formats.iceberg.metadata.contents import own_manifests
from snapshot_explorer.formats.iceberg.metadata.data_types import is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA
from snapshot_explorer.formats.iceberg.metadata.manifests import DELETED, EXISTING, Entries
from snapshot_explorer.formats.iceberg.metadata.partitions import Spec, parse_spec, result_type, texts
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema, parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot, TableMetadata
from snapshot_explorer.formats.iceberg.metadata.values import single_values


@dataclass(frozen=True, kw_only=True)
class IcebergManifests(MergedManifests):
    """The manifests of the snapshots of a branch."""

    metadata: BranchMetadata

    def of_delta(self, versions: Sequence[int]) -> frozenset[str] | None:
        source, history = self.metadata.having(versions)
        snapshots = [history.snapshots[version] for version in versions]
        manifests = own_manifests(source, snapshots)
        return frozenset(manifests.filter(pc.equal(manifests.column("content"), DATA)).column("location").to_pylist())


def manifests_frame(metadata: TableMetadata, manifests: pa.Table, snapshot: IcebergSnapshot, version: int) -> pa.Table:
    """Return the MANIFESTS frame of a version.

    Base manifests were written by earlier snapshots, delta manifests by this snapshot; index manifests list delete
    files. All live files of a base manifest count as added. A delta manifest's files count without carried over files.

    Args:
        manifests: MANIFEST_FILES of the snapshot.
    """
    count = len(manifests)
    own = is_own_manifest(manifests, [snapshot])
    of_data = pc.equal(manifests.column("content"), DATA)
    lists = pc.if_else(of_data, pc.if_else(own, "delta", "base"), "index")
    added, existing = manifests.column("added_files"), manifests.column("existing_files")
    minimum, maximum = _partition_bounds(metadata, manifests)
    columns = {
        "version": version,
        "list": lists,
        "list_path": snapshot.manifest_list,
        "position": pa.array(range(count), pa.int64()),
        "path": manifests.column("location"),
        "size_bytes": manifests.column("length"),
        "added_files": pc.if_else(own, added, pc.add(added, existing)),
        "removed_files": pc.if_else(own, manifests.column("deleted_files"), 0),
        "partition_min": minimum,
        "partition_max": maximum,
    }
    table = frames.table_of(frames.MANIFESTS, columns)
    parts = [table.filter(pc.equal(table.column("list"), name)) for name in ("base", "delta", "index")]
    return pa.concat_tables(parts)


def _partition_bounds(metadata: TableMetadata, manifests: pa.Table) -> tuple[pa.Array, pa.Array]:
    schema = parse_schema(metadata.current_schema)
    ends: list[pa.Array] = []
    for end in ("lower_bound", "upper_bound"):
        rows: list[list[tuple[str, str | None]] | None] = [None] * len(manifests)
        spec_ids = manifests.column("spec_id").to_pylist()
        for spec_id in set(spec_ids) & set(metadata.specs):
            spec = parse_spec(metadata.specs[spec_id])
            indices = [index for index, item in enumerate(spec_ids) if item == spec_id]
            summaries = [manifests.column("partitions")[index].as_py() for index in indices]
            for index, row in zip(indices, _texts(spec, schema, summaries, end), strict=True):
                rows[index] = row
        ends.append(pa.array(rows, frames.PARTITION))
    return ends[0], ends[1]


def _texts(
    spec: Spec, schema: IcebergSchema, summaries: Sequence[Sequence[Mapping[str, bytes | None]] | None], end: str
) -> list[list[tuple[str, str | None]] | None]:
    """Return one end of the partition values of manifests of one spec; None for a manifest without them."""
    known = [summary is not None and len(summary) == len(spec.fields) for summary in summaries]
    columns: list[list[str | None]] = []
    names: list[str] = []
    for index, field in enumerate(spec.fields):
        path = schema.path(field.source_ids[0]) if len(field.source_ids) == 1 else ()
        source = path[-1].type if path and not is_nested(path[-1].type) and is_read(path[-1].type) else None
        data_type = None if source is None else result_type(field.transform, source)
        if data_type is None or field.transform.name == "void":
            continue
        values = [
            item[index][end] if item and is_known else None for item, is_known in zip(summaries, known, strict=True)
        ]
        columns.append(texts(single_values(pa.array(values, pa.binary()), data_type), field.transform.name))
        names.append(field.name)
    rows = zip(*columns, strict=True) if columns else [()] * len(summaries)
    return [list(zip(names, row, strict=True)) if is_known else None for row, is_known in zip(rows, known, strict=True)]


def entries_frame(
    metadata: TableMetadata, snapshot: IcebergSnapshot, entries: Entries, *, writer: int | None, is_own: bool
) -> pa.Table:
    """Return the ENTRIES of a manifest of data files, as a version has them.

    Args:
        writer: The id of the snapshot that wrote the manifest.
        is_own: Whether the snapshot's commit wrote the manifest. If so, files that it carried over from other manifests
            are `existing`. Otherwise all live files in it count as added, and files that an earlier commit removed are
            left out.
    """
    rows = entries.rows
    is_deleted = pc.equal(rows.column("status"), DELETED)
    is_new = pc.fill_null(pc.equal(rows.column("snapshot_id"), writer), fill_value=False)
    rows = rows.filter(pc.or_(pc.invert(is_deleted), pc.and_(is_new, pa.scalar(is_own))))
    columns = file_columns(rows, partition_maps(metadata, entries.partitions.arrays()))
    words = change_words(rows)
    is_existing = pc.and_(single_chunk(pc.equal(rows.column("status"), EXISTING)), pa.scalar(is_own))
    columns["change"] = pc.if_else(is_existing, "existing", words)
    columns["data_change"] = pc.if_else(is_existing, False, changes_data(snapshot) if is_own else None)  # noqa: FBT003
    return frames.table_of(frames.ENTRIES, columns)
