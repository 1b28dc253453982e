"""The delete files that apply to each data file, by the metadata alone."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.formats.iceberg.metadata.entries import EQUALITY_DELETES, IcebergLiveFiles

_FILE_PATH = 2147483546
"""The field id of the column of position deletes that names the data file."""
_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicableDeletes:
    """Pairs of a data file and a delete file that applies to it, sorted by both."""

    data: _Indices
    deletes: _Indices
    """The row of the delete file in `IcebergLiveFiles.deletes`."""


def applicable_deletes(live: IcebergLiveFiles, unpartitioned: Collection[int]) -> ApplicableDeletes:
    """Return which delete files apply to which data files.

    If a deletion vector applies, position delete files do not. Equality deletes of unpartitioned specs apply to
    files of all partitions.

    Args:
        live: The live files of a version, with statistics of delete files.
        unpartitioned: Ids of partition specs without fields, or with void ones only.

    Source: iceberg specification, "Scan Planning"; iceberg DeleteFileIndex.
    """
    deletes = live.deletes
    if not len(deletes) or not len(live.data):
        return ApplicableDeletes(data=np.zeros(0, np.int64), deletes=np.zeros(0, np.int64))
    named = referenced_files(deletes)
    is_vector = pc.equal(deletes.column("file_format"), "puffin").to_numpy()
    is_equality = pc.equal(deletes.column("content"), EQUALITY_DELETES).to_numpy()
    numbers = deletes.column("sequence_number").to_numpy()
    files = _Files(live.data)
    by_path = _pairs_by_path(files, named)
    pairs = [by_path]
    for index in np.flatnonzero(named.is_null().to_numpy(zero_copy_only=False) & (numbers > 0)).tolist():
        spec_id = deletes.column("spec_id")[index].as_py()
        is_global = bool(is_equality[index]) and spec_id in unpartitioned
        rows = files.all() if is_global else files.of(spec_id, deletes.column("partition")[index].as_py())
        newest = numbers[index] - 1 if is_equality[index] else numbers[index]
        rows = rows[files.numbers[rows] <= newest]
        pairs.append((rows, np.full(len(rows), index, np.int64)))
    data, delete_indices = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    fits = files.numbers[data] <= numbers[delete_indices]
    data, delete_indices = data[fits], delete_indices[fits]
    with_vector = np.zeros(len(live.data), np.bool_)
    with_vector[data[is_vector[delete_indices]]] = True
    kept = is_vector[delete_indices] | is_equality[delete_indices] | ~with_vector[data]
    order = np.lexsort((delete_indices[kept], data[kept]))
    return ApplicableDeletes(data=data[kept][order], deletes=delete_indices[kept][order])


def referenced_files(deletes: pa.Table) -> pa.Array:
    """Return the recorded path of the only data file to which each delete file applies; null if there may be several.

    A position delete file whose first and last path are equal is for this file alone.

    Source: iceberg ContentFileUtil.referencedDataFile.
    """
    named = single_chunk(deletes.column("referenced_data_file"))
    of_equality = pc.equal(deletes.column("content"), EQUALITY_DELETES)
    lower, upper = (values_of(deletes.column(name), _FILE_PATH) for name in ("lower_bounds", "upper_bounds"))
    only = pc.if_else(pc.and_(pc.equal(lower, upper), pc.invert(of_equality)), lower, None)
    return pc.if_else(of_equality, None, pc.coalesce(named, _text(single_chunk(only))))


def _text(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.nulls(len(values), pa.string())


def _pairs_by_path(files: "_Files", named: pa.Array) -> tuple[_Indices, _Indices]:
    indices = pc.index_in(named, files.paths)
    matched = np.flatnonzero(indices.is_valid().to_numpy(zero_copy_only=False))
    return indices.drop_null().to_numpy().astype(np.int64), matched.astype(np.int64)


class _Files:
    def __init__(self, data: pa.Table) -> None:
        self.paths = single_chunk(data.column("path"))
        self.numbers: _Indices = data.column("sequence_number").to_numpy()
        spec_ids = data.column("spec_id").to_numpy().astype(np.int64)
        self._keys = spec_ids << 32 | data.column("partition").to_numpy().astype(np.int64)
        self._order = np.argsort(self._keys, kind="stable")
        self._sorted = self._keys[self._order]

    def all(self) -> _Indices:
        return self._order

    def of(self, spec_id: int, partition: int) -> _Indices:
        key = spec_id << 32 | partition
        begin, end = np.searchsorted(self._sorted, [key, key + 1])
        return self._order[begin:end]
