"""Values of maps by key, for whole columns: many times as fast as `pyarrow.compute.map_lookup`."""

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.arrow.chunks import single_chunk


def values_of(maps: pa.ChunkedArray | pa.Array, key: object, *, last: bool = False) -> pa.Array:
    """Return the value of a key in each map; null without it.

    Args:
        key: A value of the type of the keys.
        last: Return the last value of a key that a map has several times; by default the first.
    """
    array = single_chunk(maps)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    begin, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = array.keys.slice(begin, count)
    hits = np.flatnonzero(pc.equal(keys, pa.scalar(key, array.type.key_type)).to_numpy(zero_copy_only=False))
    owners = np.searchsorted(offsets - begin, hits, side="right") - 1
    indices = np.full(len(array), -1, np.int64)
    order = slice(None) if last else slice(None, None, -1)
    indices[owners[order]] = hits[order]  # of a repeated index, the last value stays
    is_missing = indices < 0
    if array.null_count:
        is_missing |= np.asarray(array.is_null())
    return array.items.slice(begin, count).take(from_numpy(indices, is_missing if is_missing.any() else None))
