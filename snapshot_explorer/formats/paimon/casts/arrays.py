"""Arrow values taken to numbers or Python and back, for casts."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa


class NotCastableError(ValueError):
    """A value that has no proven result under the new type; the message says which, not where."""


def each(values: pa.Array, kind: pa.DataType, function: Callable[[object], object]) -> pa.Array:
    """Return function of each value, run once per distinct value; null stays null."""
    encoded = values.dictionary_encode()
    mapped = pa.array([function(value) for value in encoded.dictionary.to_pylist()], kind)
    return mapped.take(encoded.indices)


def numbers(values: pa.Array) -> np.ndarray:
    """Return the values as numpy, with zeros for nulls; times as their integers."""
    if not pa.types.is_floating(values.type) and not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False))


def with_nulls(numbers: np.ndarray, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return numbers as Arrow values of a type of the same width, null where `values` is."""
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    plain = pa.array(numbers, mask=mask)
    return plain if plain.type == kind else plain.view(kind)
