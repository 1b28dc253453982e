"""Bounds of the values in data files, from the statistics and the partition values of the catalog.

Source: DuckLake specification 1.0, "ducklake_file_column_stats"; reference, "Statistics".
"""

from collections.abc import Sequence

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.formats.ducklake.files.values import cast_texts, conform_leaf
from snapshot_explorer.formats.ducklake.metadata.data_types import NESTED, LakeField, arrow_type, root_of
from snapshot_explorer.formats.ducklake.metadata.log import DuckLakeLog
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata
from snapshot_explorer.formats.statistics import bounds_from

_WITHOUT_BOUNDS = frozenset(
    ("int128", "uint128", "interval", "timetz", "time_ns", "uuid", "blob", "geometry", "variant", "unknown", *NESTED)
)
"""Types whose statistics are not compared: the catalog has none, or not in the order of the values."""
_FLOATS = frozenset(("float32", "float64"))
_OF_SNAPSHOT = ["snapshot_id", "snapshot_time"]


def file_bounds(log: DuckLakeLog, metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds:
    """Return the bounds of files in columns, by the names of the columns. Opens the catalog once.

    They also cover rows that are deleted, or that a version does not see. All are unknown if the catalog no longer has
    the newest snapshot of the metadata, by its time: it may be another catalog, in which ids mean other files.

    Args:
        files: Rows of ducklake_data_file.
    """
    ids = single_chunk(files.column("data_file_id"))
    newest = metadata.snapshots.slice(len(metadata.snapshots) - 1)
    columns = {}
    with log.place.file.reading() as reader:
        known = reader.read("ducklake_snapshot", {"snapshot_id": int(metadata.snapshot_ids[-1])})
        is_same = known.select(_OF_SNAPSHOT).equals(newest.select(_OF_SNAPSHOT))
        for field in fields:
            if is_same and field.type not in NESTED:
                rows = reader.read("ducklake_file_column_stats", {"table_id": metadata.table_id, "column_id": field.id})
                columns[field.name] = _ends(rows, ids, field)
            else:
                unknown = pa.nulls(len(files), arrow_type(field))
                columns[field.name] = unknown, unknown, pa.nulls(len(files), pa.int64())
    return bounds_from(columns, single_chunk(files.column("record_count")))


def _ends(rows: pa.Table, ids: pa.Array, field: LakeField) -> tuple[pa.Array, pa.Array, pa.Array]:
    positions = pc.index_in(ids, value_set=single_chunk(rows.column("data_file_id")))
    known = {name: single_chunk(rows.column(name)) for name in ("min_value", "max_value", "null_count", "contains_nan")}
    lower, upper, nulls, nan = (values.take(positions) for values in known.values())
    if root_of(field.type) in _FLOATS:
        # NaN is in neither bound.
        is_known = pc.fill_null(pc.invert(nan), False)  # noqa: FBT003 - the value of nulls
        lower, upper = (pc.if_else(is_known, values, pa.scalar(None, pa.string())) for values in (lower, upper))
    return typed_texts(lower, field), typed_texts(upper, field), nulls


def typed_texts(texts: pa.Array, field: LakeField) -> pa.Array:
    """Return values of texts in the catalog in the type of a column; null for all if one is not of the type."""
    target = arrow_type(field)
    if root_of(field.type) in _WITHOUT_BOUNDS:
        return pa.nulls(len(texts), target)
    try:
        return conform_leaf(cast_texts(texts, field), field)
    except (ValueError, pa.ArrowException, UnsupportedFeatureError):
        return pa.nulls(len(texts), target)


def partition_bounds(metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds | None:
    """Return the values of columns by which files are partitioned, as bounds; None if none of these columns is one."""
    texts = partition_texts(metadata, files)
    columns = {}
    for field in fields:
        own = [values.get(field.id) for values in texts]
        if root_of(field.type) not in _FLOATS and any(value is not None for value in own):
            values = typed_texts(pa.array([None if value is None else value[0] for value in own], pa.string()), field)
            if values.null_count == len(values):
                continue
            is_null = [None if value is None else value[0] is None for value in own]
            counts = files.column("record_count").to_pylist()
            nulls = [None if null is None else count * null for null, count in zip(is_null, counts, strict=True)]
            columns[field.name] = values, values, pa.array(nulls, pa.int64())
    return bounds_from(columns, single_chunk(files.column("record_count"))) if columns else None


def partition_texts(metadata: DuckLakeMetadata, files: pa.Table) -> list[dict[int, tuple[str | None]]]:
    """Return for each file the values of its identity partitions as text, by column id."""
    values = metadata.partition_texts
    result = []
    for number, spec in zip(
        *(files.column(name).to_pylist() for name in ("data_file_id", "partition_id")), strict=True
    ):
        own = values.get(number, {})
        fields = metadata.partition_fields(spec) if own else ()
        result.append(
            {
                field.id: (own[index],)
                for index, (field, transform) in enumerate(fields)
                if transform == "identity" and field is not None and index in own
            }
        )
    return result


def named_partitions(metadata: DuckLakeMetadata, files: pa.Table) -> list[dict[str, str | None]]:
    """Return for each file its partition as text: the column, or the transform of it, to the value."""
    values = metadata.partition_texts
    names: dict[int | None, list[str]] = {}
    result = []
    for number, spec in zip(
        *(files.column(name).to_pylist() for name in ("data_file_id", "partition_id")), strict=True
    ):
        if spec not in names:
            names[spec] = [_name(field, transform) for field, transform in metadata.partition_fields(spec)]
        own = values.get(number, {})
        result.append({name: own.get(index) for index, name in enumerate(names[spec])})
    return result


def _name(field: LakeField | None, transform: str) -> str:
    column = "?" if field is None else field.name
    return column if transform == "identity" else f"{transform}({column})"
