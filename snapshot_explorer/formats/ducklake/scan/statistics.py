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
from snapshot_explorer.formats.ducklake.metadata.partitions import identity_values
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata
from snapshot_explorer.formats.statistics import bounds_from

_WITHOUT_BOUNDS = frozenset(
    ("int128", "uint128", "interval", "timetz", "time_ns", "uuid", "blob", "geometry", "variant", "unknown", *NESTED)
)
"""Types whose statistics are not compared: the catalog has none, or not in the order of the values."""
_FLOATS = frozenset(("float32", "float64"))


def file_bounds(log: DuckLakeLog, metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds:
    """Return the bounds of files in columns, by the names of the columns. Opens the catalog once.

    They also cover rows that are deleted, or that a version does not see. All are unknown if the catalog no longer has
    the newest snapshot of the metadata, by its time: it may be another catalog, in which ids mean other files.

    Args:
        files: Rows of ducklake_data_file.
    """
    ids, newest = single_chunk(files.column("data_file_id")), int(metadata.snapshot_ids[-1])
    columns = {}
    with log.place.file.reading() as reader:
        known = reader.read("snapshot", {"snapshot_id": newest}).column("snapshot_time").to_pylist()
        is_same = known == [metadata.value_at(newest, "snapshot_time")]
        for field in fields:
            unknown = pa.nulls(len(files), arrow_type(field))
            columns[field.name] = unknown, unknown, pa.nulls(len(files), pa.int64())
            if is_same and field.type not in NESTED:
                rows = reader.read("file_column_stats", {"table_id": metadata.table_id, "column_id": field.id})
                columns[field.name] = _ends(rows, ids, field)
    return bounds_from(columns, single_chunk(files.column("record_count")))


def _ends(rows: pa.Table, ids: pa.Array, field: LakeField) -> tuple[pa.Array, pa.Array, pa.Array]:
    positions = pc.index_in(ids, value_set=single_chunk(rows.column("data_file_id")))
    lower, upper, nulls, nan = (
        single_chunk(rows.column(name)).take(positions)
        for name in ("min_value", "max_value", "null_count", "contains_nan")
    )
    if field.type in _FLOATS:  # NaN is in neither bound
        is_known = pc.fill_null(pc.invert(nan), False)  # noqa: FBT003 - the value of nulls
        lower, upper = (pc.if_else(is_known, values, pa.scalar(None, pa.string())) for values in (lower, upper))
    return _typed_texts(lower, field), _typed_texts(upper, field), nulls


def _typed_texts(texts: pa.Array, field: LakeField) -> pa.Array:
    """Return values of texts in the catalog in the type of a column; null for all if one is not of the type."""
    if root_of(field.type) not in _WITHOUT_BOUNDS:
        try:
            return conform_leaf(cast_texts(texts, field), field)
        except (ValueError, pa.ArrowException, UnsupportedFeatureError):
            pass
    return pa.nulls(len(texts), arrow_type(field))


def partition_bounds(metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds | None:
    """Return the values of columns by which files are partitioned, as bounds; None if none of these columns is one."""
    rows = single_chunk(files.column("record_count"))
    columns = {}
    for field in fields:
        texts, is_known = identity_values(metadata, files, field)
        values = _typed_texts(texts, field)
        if field.type not in _FLOATS and is_known.true_count and values.null_count < len(values):
            values = pc.if_else(is_known, values, pa.scalar(None, values.type))
            counts = pc.if_else(texts.is_valid(), pa.scalar(0, pa.int64()), rows)
            columns[field.name] = values, values, pc.if_else(is_known, counts, pa.scalar(None, pa.int64()))
    return bounds_from(columns, rows) if columns else None
