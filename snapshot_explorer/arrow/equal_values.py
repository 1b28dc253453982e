"""Equality of values as they are stored: nulls are equal, NaN equals NaN, -0.0 differs from 0.0, maps have no order.

`comparable_column` returns a column in which equal values have equal bytes, so that its hashes and comparisons agree.
`same` compares two columns value by value.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.nesting import plain
from snapshot_explorer.arrow.variant_texts import comparable_texts, is_variant

Mask = npt.NDArray[np.bool_]

_UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def comparable_column(values: pa.Array) -> pa.Array:
    """Return a column of the same length in which two values are equal if and only if the original values are.

    Its leaves are integers, booleans, decimals and binary: floats become their bits, with one NaN; text and times their
    stored values; variants texts of their values. The entries of maps are sorted. Fields of structs are numbered, since
    their names may differ in case alone.
    """
    values = plain(values)
    dtype = values.type
    if pa.types.is_floating(dtype):
        return _bits(values)
    if pa.types.is_string(dtype):
        return values.view(pa.binary())
    if pa.types.is_large_string(dtype):
        return values.view(pa.large_binary())
    if pa.types.is_temporal(dtype) and not pa.types.is_interval(dtype):
        return values.view(pa.int32() if dtype.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    if pa.types.is_struct(dtype):
        return _comparable_struct(values)
    if pa.types.is_map(dtype):
        return _comparable_map(values)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype):
        return _list_of(values, comparable_column(values.flatten()))
    return values


def _bits(values: pa.Array) -> pa.Array:
    dtype = _UNSIGNED[values.type.bit_width]
    numbers = np.asarray(values.fill_null(0.0))
    canonical = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)
    mask = np.asarray(values.is_null()) if values.null_count else None
    return pa.array(canonical.view(dtype), mask=mask)


def _comparable_struct(values: pa.StructArray) -> pa.Array:
    if is_variant(values.type):
        return comparable_texts(values).view(pa.binary())
    # flatten() makes the fields of a null struct null, whatever is stored there.
    children = [comparable_column(child) for child in values.flatten()]
    present = pc.is_valid(values).cast(pa.int8())
    names = [str(index) for index in range(len(children))]
    return pa.StructArray.from_arrays([present, *children], names=["present", *names])


def _lengths(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the number of items of each list; 0 for null."""
    dtype = values.type
    if pa.types.is_fixed_size_list(dtype):
        return np.where(np.asarray(values.is_valid()), dtype.list_size, 0).astype(np.int64)
    if pa.types.is_map(dtype):
        counts = np.diff(np.asarray(values.offsets)).astype(np.int64)
        return np.where(np.asarray(values.is_valid()), counts, 0)
    return np.asarray(pc.list_value_length(values).fill_null(0)).astype(np.int64)


def _list_of(values: pa.Array, items: pa.Array) -> pa.Array:
    """Return lists with the same lengths and nulls, and other items; the items of null lists are left out."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(_lengths(values))])
    mask = values.is_null() if values.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), items, mask=mask)


def _comparable_map(values: pa.MapArray) -> pa.Array:
    """Return maps as lists of entries, sorted by key."""
    lengths = _lengths(values)
    owners = np.repeat(np.arange(len(values)), lengths)
    offsets = np.asarray(values.offsets)[:-1]
    starts = np.cumsum(lengths) - lengths
    indices = np.repeat(offsets - starts, lengths) + np.arange(int(lengths.sum()))
    keys, items = (comparable_column(part.take(pa.array(indices))) for part in (values.keys, values.items))
    order = np.lexsort([_ranks(keys), owners])
    entries = pa.StructArray.from_arrays(
        [keys.take(pa.array(order)), items.take(pa.array(order))], names=["key", "item"]
    )
    return _list_of(values, entries)


def _ranks(keys: pa.Array) -> npt.NDArray[np.int64]:
    """Return a number per key, equal for equal keys. Each type has its own order."""
    if pa.types.is_nested(keys.type):
        texts = [repr(key) for key in keys.to_pylist()]
        return (
            np.unique(np.array(texts, object), return_inverse=True)[1].astype(np.int64) if texts else np.zeros(0, int)
        )
    return np.asarray(pc.rank(keys, tiebreaker="dense")).astype(np.int64)


def same(left: pa.Array, right: pa.Array) -> Mask:
    """Return for each row whether two columns of one type have equal values."""
    return _same(comparable_column(left), comparable_column(right))


def _same(left: pa.Array, right: pa.Array) -> Mask:
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    if pa.types.is_struct(left.type):
        result = np.ones(len(left), bool)
        for index in range(left.type.num_fields):
            result &= _same(left.field(index), right.field(index))
        return result
    valid, other = np.asarray(left.is_valid()), np.asarray(right.is_valid())
    if pa.types.is_large_list(left.type):
        return _mask((valid == other) & _same_lists(left, right, valid & other))
    equal = pc.equal(left, right)
    if equal.null_count:
        equal = pc.fill_null(equal, False)  # noqa: FBT003 - pyarrow's
    return _mask(np.asarray(equal) | ~(valid | other))


def _same_lists(left: pa.Array, right: pa.Array, both: Mask) -> Mask:
    """Return for each row whether two lists are equal; True where one of them is null."""
    lengths = _lengths(left)
    result = _mask(~both | (lengths == _lengths(right)))
    compared = np.flatnonzero(both & result & (lengths > 0))
    if not len(compared):
        return result
    chosen = pa.array(compared)
    equal = _same(left.take(chosen).flatten(), right.take(chosen).flatten())
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[compared])[:-1]])
    result[compared] &= np.logical_and.reduceat(equal, starts)
    return result


def _mask(values: npt.ArrayLike) -> Mask:
    return np.asarray(values, bool)


def exact_keys(columns: Sequence[pa.Array]) -> list[str]:
    """Return a text per row, equal for rows that are equal. Slow: for the few rows that a hash does not distinguish."""
    values = [comparable_column(column).to_pylist() for column in columns]
    return [repr(row) for row in zip(*values, strict=True)]
