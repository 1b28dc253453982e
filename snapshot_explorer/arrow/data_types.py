"""Groups of Arrow types."""

import pyarrow as pa


def is_number(dtype: pa.DataType) -> bool:
    """Return whether values are integers, floats or decimals."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def has_distances(dtype: pa.DataType) -> bool:
    """Return whether values of a type can be subtracted: numbers, dates and timestamps."""
    return is_number(dtype) or bool(pa.types.is_date(dtype) or pa.types.is_timestamp(dtype))
