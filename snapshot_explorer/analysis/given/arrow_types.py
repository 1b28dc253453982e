"""The types of formats in place of Arrow's further types, which other libraries use: wider, viewed or encoded ones."""

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message

_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}
"""Types that columns of tables do not have, and types with all of their values."""
_MAX_DIGITS = 38


def with_plain_types(rows: pa.Table) -> pa.Table:
    """Return rows in types that columns of tables have, with the same values.

    Raises:
        UnsupportedFeatureError: A value does not fit; the message names the column.
    """
    columns = []
    for index, field in enumerate(rows.schema):
        column, dtype = rows.column(index), plain_type(field.type)
        try:
            columns.append(column if dtype == field.type else _cast(column, dtype))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UnsupportedFeatureError(
                Message(
                    f"The column {field.name!r} of type {field.type} cannot be compared: {error}. Convert it, or leave "
                    "it out: ",
                    Hint("", {"exclude": [...]}),
                    ".",
                )
            ) from error
    fields = [pa.field(field.name, column.type) for field, column in zip(rows.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type that a table's column with these values has; the same type if a table can have it."""
    if isinstance(dtype, pa.BaseExtensionType):
        return plain_type(dtype.storage_type)
    if pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
        return plain_type(dtype.value_type)
    if pa.types.is_decimal(dtype) and dtype.precision <= _MAX_DIGITS:
        return pa.decimal128(dtype.precision, dtype.scale)
    return _plain_nested(dtype) if pa.types.is_nested(dtype) else _PLAIN.get(dtype, dtype)


def _plain_nested(dtype: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(dtype):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in dtype])
    if types.is_map(dtype):
        return pa.map_(plain_type(dtype.key_type), plain_type(dtype.item_type))
    if types.is_fixed_size_list(dtype):
        return pa.list_(plain_type(dtype.value_type), dtype.list_size)
    is_list = types.is_list(dtype) or types.is_large_list(dtype)
    is_view = types.is_list_view(dtype) or types.is_large_list_view(dtype)
    return pa.list_(plain_type(dtype.value_type)) if is_list or is_view else dtype


def _cast(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type):  # whose views pyarrow does not decode
        chunks = [pc.cast(chunk.dictionary, dtype).take(chunk.indices) for chunk in column.chunks]
        column = pa.chunked_array(chunks, dtype)
    return column if column.type == dtype else pc.cast(column, dtype)
