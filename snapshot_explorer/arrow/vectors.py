"""Vectors: lists of a fixed length, whose items take memory even if the list is null."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc

MOST_ITEMS = 2**20
"""The maximum number of items of a vector. The largest vectors in use have some ten thousand."""
_BATCH_BYTES = 64 * 2**20
"""Bytes of vectors in a batch. Null vectors count too, though they take no bytes in a file."""


def from_lists(values: pa.ListArray, dtype: pa.FixedSizeListType, items: pa.Array) -> pa.Array:
    """Return lists as vectors.

    Args:
        items: The items of `values.values` in the type of the vectors' items.

    Raises:
        pyarrow.ArrowInvalid: A list has another length, or a null item.
    """
    size, offsets = dtype.list_size, values.offsets.to_numpy().astype(np.int64)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.diff(offsets)
    others = lengths[valid & (lengths != size)]
    if len(others):
        raise pa.ArrowInvalid(f"a vector has {others[0]} items")
    if valid.all():
        vector_items = items.slice(offsets[0], len(values) * size)
    else:
        at = offsets[:-1, None] + np.arange(size)
        vector_items = items.take(pa.array(at.ravel(), mask=np.repeat(~valid, size)))
    if vector_items.null_count != (len(values) - int(valid.sum())) * size:
        raise pa.ArrowInvalid("an item of a vector is null")
    return _vectors(dtype, valid, vector_items)


def from_bytes(values: pa.Array, dtype: pa.FixedSizeListType) -> pa.Array:
    """Return bytes, items in little-endian order one after another, as vectors.

    Raises:
        pyarrow.ArrowInvalid: A value has another length.
    """
    width = dtype.list_size * dtype.value_type.bit_width // 8
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    fixed = pc.fill_null(values.cast(pa.binary(width)), bytes(width)) if values.null_count else values
    fixed = fixed.cast(pa.binary(width))
    stored = np.dtype(dtype.value_type.to_pandas_dtype()).newbyteorder("<")
    content = fixed.buffers()[1] if len(fixed) else b""
    numbers = np.frombuffer(content, stored, len(fixed) * dtype.list_size, fixed.offset * width)
    return _vectors(dtype, valid, pa.array(numbers.astype(stored.newbyteorder("="))))


def _vectors(
    dtype: pa.FixedSizeListType, valid: "np.ndarray[tuple[int], np.dtype[np.bool_]]", items: pa.Array
) -> pa.Array:
    mask = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(dtype, len(valid), [mask], children=[items])


def as_lists(dtype: pa.DataType) -> pa.DataType:
    """Return a type with lists of any length in place of vectors, in which nulls take no memory."""
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(dtype.value_field.with_type(as_lists(dtype.value_type)))
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(as_lists(dtype.value_type)))
    if pa.types.is_struct(dtype):
        return pa.struct([part.with_type(as_lists(part.type)) for part in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(as_lists(dtype.key_type), dtype.item_field.with_type(as_lists(dtype.item_type)))
    return dtype


def portions(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in portions whose vectors take little memory, once they have the types of a schema."""
    width = sum(_bytes(dtype) for dtype in schema.types)
    rows = max(_BATCH_BYTES // width, 1) if width else batch.num_rows
    if rows >= batch.num_rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _bytes(dtype: pa.DataType) -> int:
    """Return the bytes that the vectors in one row of a type take even if the row is null."""
    if pa.types.is_fixed_size_list(dtype):
        item = dtype.value_type
        return int(dtype.list_size) * (_bytes(item) or 8)
    return sum(_bytes(part.type) for part in dtype) if pa.types.is_struct(dtype) else 0
