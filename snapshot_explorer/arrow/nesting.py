"""Nested Arrow arrays rebuilt with other children."""

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc

TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
"""The types of texts and bytes of any length."""


def plain(values: pa.Array) -> pa.Array:
    """Return the values without a dictionary or an extension type around them."""
    while True:
        if isinstance(values, pa.DictionaryArray):
            values = values.dictionary_decode()
        elif isinstance(values, pa.ExtensionArray):
            values = values.storage
        else:
            return values


def as_list(values: pa.Array) -> pa.ListArray:
    """Return a list array with the lengths, nulls and items of an array of any type of list."""
    if not isinstance(values, pa.ListViewArray | pa.LargeListViewArray):
        return values if isinstance(values, pa.ListArray) else values.cast(pa.list_(values.type.value_field))
    # pyarrow 26 casts list views to arrays whose offsets are not valid.
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, values.flatten(), mask=values.is_null())


def with_items(values: pa.Array, dtype: pa.DataType, items: pa.Array) -> pa.Array:
    """Return a list array of another type, with the same lengths and nulls, and as many other items."""
    return pa.Array.from_buffers(dtype, len(values), values.buffers()[:2], offset=values.offset, children=[items])


def with_entries(values: pa.MapArray, dtype: pa.MapType, keys: pa.Array, items: pa.Array) -> pa.Array:
    """Return a map array of another type, with the same lengths and nulls and other keys and items."""
    keys.null_count  # noqa: B018 - counts the nulls: PYARROW_MAP_KEYS
    entries = pa.StructArray.from_arrays([keys, items], fields=[dtype.key_field, dtype.item_field])
    return pa.Array.from_buffers(dtype, len(values), values.buffers()[:2], offset=values.offset, children=[entries])


def with_fields(values: pa.StructArray, dtype: pa.StructType, children: list[pa.Array]) -> pa.Array:
    """Return a struct array of another type, with the same nulls and other children."""
    if not children:
        return pa.array([None if value is None else {} for value in values.to_pylist()], dtype)
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(dtype), mask=mask)
