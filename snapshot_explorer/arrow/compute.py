"""PyArrow's compute functions, with exact results in every allowed version. Imported as `pc`, for `pyarrow.compute`."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import pyarrow as pa
import pyarrow.compute

from snapshot_explorer.core.old_libraries import PYARROW_CHUNKS, PYARROW_IF_ELSE


def __getattr__(name: str) -> Any:
    return _function(name)


@cache
def _function(name: str) -> Any:
    """Return a function. As a name of the module it would shadow Python's own, such as `sum`."""
    function = getattr(pyarrow.compute, name)
    return _exact(name, function) if callable(function) and name.islower() else function


def _exact(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that passes columns on in a form for which the installed PyArrow computes the right values."""
    in_one_chunk, without_offset = PYARROW_CHUNKS.applies(), PYARROW_IF_ELSE.applies() and name == "if_else"
    if not in_one_chunk and not without_offset:
        return function

    @wraps(function)
    def exact(*arguments: Any, **options: Any) -> Any:
        columns = sum(isinstance(value, pa.Array | pa.ChunkedArray) for value in arguments)
        if in_one_chunk and columns > 1:
            arguments = tuple(map(_in_one_chunk, arguments))
        if without_offset:
            arguments = tuple(map(_without_offset, arguments))
        return function(*arguments, **options)

    return exact


def _in_one_chunk(value: Any) -> Any:
    if not isinstance(value, pa.ChunkedArray) or value.num_chunks == 1:
        return value
    combined = value.combine_chunks()
    return combined if isinstance(combined, pa.ChunkedArray) else pa.chunked_array([combined])


def _without_offset(value: Any) -> Any:
    """Return text or bytes as a copy if they are a slice; any other value as it is."""
    if isinstance(value, pa.ChunkedArray):
        return pa.chunked_array(list(map(_without_offset, value.chunks)), value.type)
    if isinstance(value, pa.Array) and value.offset and _is_text(value.type):
        return pa.concat_arrays([value.slice(0, 0), value])
    return value


def _is_text(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_binary(dtype) or types.is_large_binary(dtype)
    )
