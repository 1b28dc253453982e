"""Numbers for rows: equal for rows that are equal in all columns, nested ones included."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.nesting import plain
from snapshot_explorer.formats.iceberg.deletes.equality import comparable

Codes = npt.NDArray[np.int64]


def row_codes(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> Codes:
    """Return a number per row, equal where all columns are.

    Nulls are equal, and so are all NaN; 0.0 and -0.0 differ. Entries of maps have no order.
    """
    codes = np.zeros(rows, np.int64)
    for column in columns:
        codes = _paired(codes, _codes(plain(single_chunk(column))))
    return codes


def _paired(left: Codes, right: Codes) -> Codes:
    """Return a number per pair, from 0 on."""
    pairs = left * (int(right.max(initial=0)) + 1) + right
    codes: Codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes


def _codes(values: pa.Array) -> Codes:
    """Return a number per value, from 0 up to the number of values, so that pairs of numbers fit 64 bits."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64)
    if isinstance(values, pa.StructArray):
        # flatten() makes the fields of a null struct null, whatever is stored there.
        return row_codes([values.is_valid(), *values.flatten()], len(values))
    if isinstance(values, pa.MapArray):  # which is a list, too
        return _of_maps(values)
    if isinstance(values, pa.ListArray):
        return _of_lists(values, _codes(plain(values.flatten())))
    encoded = comparable(values).dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _lengths(values: pa.ListArray | pa.MapArray) -> Codes:
    lengths = np.diff(np.asarray(values.offsets.to_numpy(), np.int64))
    return np.where(np.asarray(values.is_valid()), lengths, 0)


def _of_lists(values: pa.Array, items: Codes) -> Codes:
    """Return a number per list: lists are compared as the bytes of their items' numbers."""
    ends = 8 * np.cumsum(np.concatenate([np.zeros(1, np.int64), _lengths(values)]))
    valid = (
        None if not values.null_count else pa.py_buffer(np.packbits(np.asarray(values.is_valid()), bitorder="little"))
    )
    whole = pa.Array.from_buffers(
        pa.large_binary(), len(values), [valid, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(items))]
    )
    encoded = whole.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _of_maps(values: pa.MapArray) -> Codes:
    lengths = _lengths(values)
    offsets = np.asarray(values.offsets.to_numpy(), np.int64)[:-1]
    owners = np.repeat(np.arange(len(values)), lengths)
    firsts = np.cumsum(lengths) - lengths
    indices = pa.array(np.repeat(offsets - firsts, lengths) + np.arange(int(lengths.sum())))
    keys, items = _codes(plain(values.keys.take(indices))), _codes(plain(values.items.take(indices)))
    order = np.lexsort([keys, owners])
    return _of_lists(values, _paired(keys, items)[order])
