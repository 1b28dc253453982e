"""Arrow arrays of Python and NumPy values, made without pandas.

pyarrow imports pandas when it converts its first value from Python. That takes 0.2 seconds, several times as long as
opening a table. So the few values needed to open a table are written into buffers. pyarrow converts many values.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MAX = 1_000
"""For more values, importing pandas is faster."""


def array(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Return an array of a list, as `pyarrow.array` does; texts, booleans and 64-bit integers without pandas."""
    make = _MAKERS.get(dtype.id)
    if make is None or len(values) > _MAX or "pandas" in sys.modules:
        return pa.array(values, dtype)
    if not values:
        return pa.nulls(0, dtype)
    present = [value for value in values if value is not None]
    python_type, buffers = make
    if not {python_type}.issuperset(map(type, present)):
        return pa.array(values, dtype)
    is_valid = None
    if len(present) < len(values):
        is_valid = _bits(np.fromiter((value is not None for value in values), np.bool_, len(values)))
    try:
        return pa.Array.from_buffers(dtype, len(values), [is_valid, *buffers(values)])
    except (OverflowError, UnicodeError):
        return pa.array(values, dtype)  # which raises the usual error


def from_numpy(values: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return an array of numbers or booleans, without a copy of numbers; null where the mask is True."""
    is_valid = None if mask is None else _bits(~mask)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [is_valid, _bits(values)])
    content = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [is_valid, content])


def to_numpy(values: pa.Array) -> npt.NDArray[Any]:
    """Return numbers without nulls, without a copy."""
    numbers: npt.NDArray[Any] = np.from_dlpack(values)
    return numbers


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table without rows."""
    return pa.Table.from_batches([], schema)


def scalar(value: Any, dtype: pa.DataType) -> pa.Scalar:
    """Return a text, a boolean, a 64-bit integer or None as a scalar."""
    return array([value], dtype)[0]


def _bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _texts(values: Sequence[str | None]) -> list[pa.Buffer]:
    content = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, content)])
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError
    return [pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(content))]


def _integers(values: Sequence[int | None]) -> list[pa.Buffer]:
    return [pa.py_buffer(np.array([value or 0 for value in values], np.int64))]


def _booleans(values: Sequence[bool | None]) -> list[pa.Buffer]:
    return [_bits(np.array([value is True for value in values]))]


_MAKERS: Mapping[int, tuple[type, Callable[[Sequence[Any]], list[pa.Buffer]]]] = {
    pa.string().id: (str, _texts),
    pa.int64().id: (int, _integers),
    pa.bool_().id: (bool, _booleans),
}
"""By Arrow type: the Python type of the values, and the function that creates their buffers."""
