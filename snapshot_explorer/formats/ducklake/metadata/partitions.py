"""The partitions of data files, as the catalog records them: text, by file and by position in the file's own spec.

Source: DuckLake specification 1.0, "ducklake_file_partition_value"; reference, "Partitions and sorting".
"""

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField
from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata, Ints, numbers


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


def identity_values(metadata: DuckLakeMetadata, files: pa.Table, field: LakeField) -> tuple[pa.Array, pa.Array]:
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
