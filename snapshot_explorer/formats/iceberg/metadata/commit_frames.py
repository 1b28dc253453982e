"""The frames COMMITS and MANIFESTS of Iceberg versions."""

from collections.abc import Mapping, Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer import frames
from snapshot_explorer.formats.iceberg.metadata.contents import is_own
from snapshot_explorer.formats.iceberg.metadata.history import History, time_of
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DATA
from snapshot_explorer.formats.iceberg.metadata.partitioning import Spec, parse_spec, result_type, texts
from snapshot_explorer.formats.iceberg.metadata.schemas import Schema, parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import Snapshot, TableMetadata
from snapshot_explorer.formats.iceberg.metadata.types import is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.values import single_values
from snapshot_explorer.model import Kind, Readable

_COUNTERS = ("added-", "deleted-", "removed-", "total-")
_USERS = ("trino_user", "user")
_GREATEST = 2**63 - 1


def kind_of(snapshot: Snapshot) -> Kind:
    """Return the kind of a commit in the terms that all formats share.

    The metadata does not distinguish an UPDATE from a MERGE, nor these from an INSERT OVERWRITE of files: a commit that
    replaced data files, or added deletes, is an update.
    """
    summary = snapshot.summary
    match summary.get("operation"):
        case "append":
            return "append"
        case "delete":
            return "delete"
        case "replace":
            return "compact" if _count(summary, "deleted-data-files") else "maintenance"
        case "overwrite":
            if summary.get("replace-partitions") == "true" or snapshot.parent_id is None:
                return "overwrite"
            changed = _count(summary, "deleted-data-files") or _count(summary, "added-delete-files")
            return "update" if changed else "overwrite"
        case _:
            return "other"


def commits_frame(
    history: History, versions: Sequence[int], readable: Sequence[Readable | None], tags: Mapping[int, Sequence[str]]
) -> pa.Table:
    """Return the COMMITS frame of versions, in their order, from the metadata file alone.

    Counts are those that the writer recorded; null where it recorded none. Rows are unknown where position deletes are
    involved, bytes where delete files were added or removed: the writer records them together.
    """
    snapshots = [history.snapshots[version] for version in versions]
    counts = [_counts(one.summary) for one in snapshots]
    columns: dict[str, Sequence[object]] = {name: [one[name] for one in counts] for name in _counts({})}
    columns |= {
        "version": list(versions),
        "committed_at": [time_of(one.timestamp_ms) for one in snapshots],
        "readable": list(readable),
        "kind": [kind_of(one) for one in snapshots],
        "operation": [one.summary.get("operation") for one in snapshots],
        "user": [next((one.summary[name] for name in _USERS if name in one.summary), None) for one in snapshots],
        "identifier": [str(one.id) for one in snapshots],
        "schema_id": [one.schema_id for one in snapshots],
        "watermark": [None] * len(snapshots),
        "tags": [list(tags.get(version, ())) for version in versions],
        "details": [orjson.dumps(one.raw).decode() for one in snapshots],
    }
    return pa.table([columns[name] for name in frames.COMMITS.names], schema=frames.COMMITS)


def _counts(summary: Mapping[str, str]) -> dict[str, int | None]:
    """Return the counts in a summary. A counter that is absent is 0, if there is any."""
    is_counted = any(name.startswith(_COUNTERS) for name in summary)

    def count(name: str) -> int | None:
        return _count(summary, name) if is_counted else None

    has_positions = any(count(f"{word}-position-deletes") for word in ("added", "removed"))
    has_deletes = any(count(f"{word}-delete-files") for word in ("added", "removed"))
    return {
        "added_files": count("added-data-files"),
        "removed_files": count("deleted-data-files"),
        "added_rows": None if has_positions else count("added-records"),
        "removed_rows": None if has_positions else count("deleted-records"),
        "added_bytes": None if has_deletes else count("added-files-size"),
        "removed_bytes": None if has_deletes else count("removed-files-size"),
        "total_rows": None if count("total-position-deletes") else _given(summary, "total-records"),
    }


def _count(summary: Mapping[str, str], name: str) -> int:
    return _given(summary, name) or 0


def _given(summary: Mapping[str, str], name: str) -> int | None:
    """Return a counter of a summary; None if it is absent, or is not a count."""
    text = summary.get(name)
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 19:  # noqa: PLR2004 - digits of 64 bits
        return None
    return int(text) if int(text) <= _GREATEST else None


def manifests_frame(metadata: TableMetadata, manifests: pa.Table, snapshot: Snapshot, version: int) -> pa.Table:
    """Return the MANIFESTS frame of a version.

    Base are the manifests that earlier snapshots wrote, delta those that this one wrote, index those of delete files.
    The files that a base manifest adds are all that are live in it; those of delta without the carried over ones.

    Args:
        metadata: The metadata file.
        manifests: MANIFEST_FILES of the snapshot.
        snapshot: The snapshot.
        version: Its version.
    """
    count = len(manifests)
    own = is_own(manifests, [snapshot])
    of_data = pc.equal(manifests.column("content"), DATA)
    lists = pc.if_else(of_data, pc.if_else(own, "delta", "base"), "index")
    added, existing = manifests.column("added_files"), manifests.column("existing_files")
    minimum, maximum = _partition_bounds(metadata, manifests)
    columns = {
        "version": pa.repeat(pa.scalar(version, pa.int64()), count),
        "list": lists,
        "list_path": pa.repeat(pa.scalar(snapshot.manifest_list, pa.string()), count),
        "position": pa.array(range(count), pa.int64()),
        "path": manifests.column("location"),
        "size_bytes": manifests.column("length"),
        "added_files": pc.if_else(own, added, pc.add(added, existing)),
        "removed_files": pc.if_else(own, manifests.column("deleted_files"), 0),
        "schema_id": pa.nulls(count, pa.int64()),
        "partition_min": minimum,
        "partition_max": maximum,
    }
    table = pa.table([columns[name] for name in frames.MANIFESTS.names], schema=frames.MANIFESTS)
    parts = [table.filter(pc.equal(table.column("list"), name)) for name in ("base", "delta", "index")]
    return pa.concat_tables(parts)


def _partition_bounds(metadata: TableMetadata, manifests: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the least and the greatest partition values of manifests as text."""
    schema = parse_schema(metadata.current_schema)
    ends: list[pa.Array] = []
    for end in ("lower_bound", "upper_bound"):
        found: list[list[tuple[str, str | None]] | None] = [None] * len(manifests)
        spec_ids = manifests.column("spec_id").to_pylist()
        for spec_id in set(spec_ids) & set(metadata.specs):
            spec = parse_spec(metadata.specs[spec_id])
            places = [place for place, one in enumerate(spec_ids) if one == spec_id]
            summaries = [manifests.column("partitions")[place].as_py() for place in places]
            for place, row in zip(places, _texts(spec, schema, summaries, end), strict=True):
                found[place] = row
        ends.append(pa.array(found, frames.PARTITION))
    return ends[0], ends[1]


def _texts(
    spec: Spec, schema: Schema, summaries: Sequence[Sequence[Mapping[str, bytes | None]] | None], end: str
) -> list[list[tuple[str, str | None]] | None]:
    """Return one end of the partition values of manifests of one spec; None for a manifest without them."""
    known = [one is not None and len(one) == len(spec.fields) for one in summaries]
    columns: list[list[str | None]] = []
    names: list[str] = []
    for place, field in enumerate(spec.fields):
        path = schema.path(field.source_ids[0]) if len(field.source_ids) == 1 else ()
        source = path[-1].type if path and not is_nested(path[-1].type) and is_read(path[-1].type) else None
        kind = None if source is None else result_type(field.transform, source)
        if kind is None or field.transform.name == "void":
            continue
        values = [one[place][end] if one and there else None for one, there in zip(summaries, known, strict=True)]
        columns.append(texts(single_values(pa.array(values, pa.binary()), kind), field.transform.name))
        names.append(field.name)
    rows = zip(*columns, strict=True) if columns else [()] * len(summaries)
    return [list(zip(names, row, strict=True)) if there else None for row, there in zip(rows, known, strict=True)]
