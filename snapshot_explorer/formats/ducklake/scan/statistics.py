"""Bounds and partitions of data files, as the catalog records them: text, cast to the types of the columns.

A partition value is recorded by the file and by its position in the file's own spec.

Source: DuckLake specification 1.0, "ducklake_file_column_stats", "ducklake_file_partition_value"; reference,
"Statistics", "Partitions and sorting".
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.formats.ducklake.files import cast_texts, conform_leaf
from snapshot_explorer.formats.ducklake.metadata.data_types import NESTED, LakeField, arrow_type, root_of
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeLog, DuckLakeMetadata, Ints, numbers
from snapshot_explorer.formats.statistics import bounds_from

_WITHOUT_BOUNDS = frozenset(
    ("int128", "uint128", "interval", "timetz", "time_ns", "uuid", "blob", "geometry", "variant", "unknown", *NESTED)
)
"""Types whose statistics are not compared: the catalog has none, or not in the order of the values."""
_FLOATS = frozenset(("float32", "float64"))


def file_bounds(log: DuckLakeLog, metadata: DuckLakeMetadata, files: pa.Table, fields: Sequence[LakeField]) -> Bounds:
    """Return the bounds of files in columns, by the names of the columns. Opens the catalog once.

    They also cover rows that are deleted, or that a version does not see. All are unknown if the catalog was replaced
    by another one, in which ids mean other files.

    Args:
        files: Rows of ducklake_data_file, with data_file_id and record_count.
    """
    ids = single_chunk(files.column("data_file_id"))
    columns = {}
    with log.file.reading() as reader:
        is_same = metadata.is_of(reader)
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
        texts, is_known = _identity_values(metadata, files, field)
        if field.type in _FLOATS or not is_known.true_count:
            continue
        values = _typed_texts(texts, field)
        if values.null_count < len(values):
            values = pc.if_else(is_known, values, pa.scalar(None, values.type))
            counts = pc.if_else(texts.is_valid(), pa.scalar(0, pa.int64()), rows)
            columns[field.name] = values, values, pc.if_else(is_known, counts, pa.scalar(None, pa.int64()))
    return bounds_from(columns, rows) if columns else None


def partition_maps(metadata: DuckLakeMetadata, files: pa.Table) -> pa.MapArray:
    """Return for each file the text of each value by the column, or by the transform of it, as in FILES."""
    specs, of_files = np.unique(numbers(files, "partition_id", -1), return_inverse=True)
    names = [[_name(*item) for item in metadata.partition_fields(spec)] for spec in specs.tolist()]
    counts = np.asarray([len(own) for own in names], np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts[of_files])])
    owners = np.repeat(np.arange(len(files)), counts[of_files])
    indices = np.arange(len(owners)) - offsets[owners]
    starts = (np.cumsum(counts) - counts)[of_files[owners]]
    keys = pa.array([name for own in names for name in own], pa.string()).take(pa.array(starts + indices, pa.int64()))
    values, _ = _texts(metadata, numbers(files, "data_file_id")[owners], indices)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)


def partition_texts(metadata: DuckLakeMetadata, files: pa.Table) -> list[dict[str, str | None]]:
    """Return `partition_maps` as dictionaries; one for all files if none is partitioned."""
    maps = partition_maps(metadata, files)
    return list(map(dict, maps.to_pylist())) if len(maps.keys) else [{}] * len(maps)


def _identity_values(metadata: DuckLakeMetadata, files: pa.Table, field: LakeField) -> tuple[pa.Array, pa.Array]:
    """Return for each file the value of a column by which it is partitioned, as text, and whether it is known."""
    specs, of_files = np.unique(numbers(files, "partition_id", -1), return_inverse=True)
    indices = np.full(len(specs), -1, np.int64)
    for number, spec in enumerate(specs.tolist()):
        for index, (column, transform) in enumerate(metadata.partition_fields(spec)):
            if transform == "identity" and column is not None and column.id == field.id:
                indices[number] = index
    texts, is_known = _texts(metadata, numbers(files, "data_file_id"), indices[of_files])
    return texts, pc.and_(is_known, pa.array(indices[of_files] >= 0, pa.bool_()))


def _texts(metadata: DuckLakeMetadata, ids: Ints, indices: Ints) -> tuple[pa.Array, pa.Array]:
    """Return the values of files at indices of their specs, and which of them are recorded."""
    rows = metadata.rows["file_partition_value"]
    of_rows = numbers(rows, "partition_key_index", 0)
    width = 1 + max(int(of_rows.max(initial=0)), int(indices.max(initial=0)))
    recorded = pa.array(numbers(rows, "data_file_id", -1) * width + of_rows, pa.int64())
    positions = pc.index_in(pa.array(ids * width + indices, pa.int64()), value_set=recorded)
    return single_chunk(rows.column("partition_value")).take(positions), positions.is_valid()


def _name(field: LakeField | None, transform: str) -> str:
    column = "?" if field is None else field.name
    return column if transform == "identity" else f"{transform}({column})"
