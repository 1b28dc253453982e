"""Nested Arrow arrays rebuilt with other children."""

from collections.abc import Callable, Sequence

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


def parts_of(dtype: pa.DataType) -> Sequence[pa.Field]:
    """Return the fields of a struct, the element of a list, or key and value of a map."""
    if pa.types.is_struct(dtype):
        return list(dtype)
    if pa.types.is_map(dtype):
        return (dtype.key_field, dtype.item_field)
    return (dtype.value_field,) if hasattr(dtype, "value_field") else ()


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


def with_parts(
    values: pa.Array, dtype: pa.DataType, convert: Callable[[int, Sequence[pa.Array]], pa.Array | None]
) -> pa.Array | None:
    """Return a struct, list or map array of another type, with the same lengths and nulls; None for other values.

    Args:
        convert: Returns a part of the result by its index, from the parts of the values: the fields of a struct, which
            are null in null structs, the items of a list, or the keys and the items of a map. None is a field of nulls.
    """
    if pa.types.is_struct(dtype) and isinstance(values, pa.StructArray):
        # Below a null struct, files may have any values.
        stored = values.flatten() if values.null_count else [values.field(i) for i in range(values.type.num_fields)]
        parts = [convert(index, stored) for index in range(dtype.num_fields)]
        children = [
            pa.nulls(len(values), field.type) if part is None else part
            for part, field in zip(parts, dtype, strict=True)
        ]
        return with_fields(values, dtype, children)
    if pa.types.is_map(dtype) and isinstance(values, pa.MapArray):
        entries = values.keys, values.items
        return with_entries(values, dtype, convert(0, entries), convert(1, entries))
    is_list = hasattr(values.type, "value_type") and not isinstance(values, pa.MapArray)
    if pa.types.is_list(dtype) and is_list:
        values = as_list(values)
        return with_items(values, dtype, convert(0, [values.values]))
    return None
