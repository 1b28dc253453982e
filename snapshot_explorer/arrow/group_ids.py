"""Group ids: equal numbers for equal values, nulls included."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.maps import values_of

Codes = npt.NDArray[np.int64]

_MAX_CODE = 2**62


def group_ids(columns: Sequence[pa.ChunkedArray | pa.Array]) -> Codes:
    """Return a number per row; rows that are equal in all columns have equal numbers."""
    codes = np.zeros(len(columns[0]), np.int64)
    distinct = 1
    for column in columns:
        if column.null_count == len(column):
            continue
        encoded = single_chunk(column).dictionary_encode(null_encoding="encode")
        number = len(encoded.dictionary)
        if distinct * number > _MAX_CODE:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            distinct = len(codes)
        codes = codes * number + encoded.indices.to_numpy(zero_copy_only=False)
        distinct *= number
    return codes


def codes_of_maps(column: pa.ChunkedArray | pa.Array) -> Codes:
    """Return a number per map from text to text; equal maps have equal numbers."""
    maps = single_chunk(column)
    by_position = _items_by_position(maps)
    if by_position is not None:
        return group_ids(by_position)
    names = pc.unique(maps.keys).to_pylist()
    values = [values_of(maps, name) for name in names]
    # A missing key and a null value look alike, so the id includes the keys and their number: joined alone, no key and
    # an empty key are the same.
    keys = pc.binary_join(pa.ListArray.from_arrays(maps.offsets, maps.keys.cast(pa.string())), "\0")
    return group_ids([maps.is_null(), pa.array(np.diff(maps.offsets.to_numpy())), keys, *values])


def _items_by_position(maps: pa.MapArray) -> list[pa.Array] | None:
    """Return the first items of all maps, the second ones and so on; None if not all maps have the same keys."""
    offsets = maps.offsets.to_numpy()
    lengths = np.diff(offsets)
    if maps.null_count or not len(lengths) or not lengths[0] or (lengths != lengths[0]).any():
        return None
    begin, end, each = int(offsets[0]), int(offsets[-1]), int(lengths[0])
    keys = maps.keys.slice(begin, end - begin).dictionary_encode().indices.to_numpy().reshape(-1, each)
    if (keys != keys[0]).any():
        return None
    return [maps.items.take(pa.array(np.arange(begin + index, end, each))) for index in range(each)]


def distinct_maps(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, Codes]:
    """Return the distinct maps of a column, in the order of first appearance, and the index of each row's map."""
    maps = single_chunk(column)
    encoded = pa.array(codes_of_maps(maps)).dictionary_encode()
    indices = encoded.indices.to_numpy().astype(np.int64)
    firsts = np.zeros(len(encoded.dictionary), np.int64)
    firsts[indices[::-1]] = np.arange(len(indices))[::-1]  # for repeated indices, NumPy stores the last value
    return maps.take(pa.array(firsts)), indices


def split_paths(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the folder of each path, with its trailing slash, and the name; joined they are the path."""
    parts = pc.split_pattern(single_chunk(column), "/", max_splits=1, reverse=True)
    offsets = parts.offsets.to_numpy()
    names = parts.values.take(pa.array(offsets[1:] - 1))
    folders = pc.binary_join_element_wise(parts.values.take(pa.array(offsets[:-1])), "", "/")
    has_no_folder = pa.array(np.diff(offsets) == 1)
    return pc.if_else(has_no_folder, "", folders), names
