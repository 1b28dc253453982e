"""Integer codes of values: equal for values that are equal in Java, or in Java's order."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.group_ids import Codes


def key_codes(rows: pa.Table, keys: Sequence[str]) -> Codes:
    """Return a code per row, equal for rows of equal key."""
    codes = np.zeros(rows.num_rows, np.int64)
    for index, name in enumerate(keys):
        column = equality_codes(rows.column(name))
        if not index:
            codes = column
            continue
        codes, column = _dense(codes), _dense(column)
        codes = codes * (int(column.max(initial=0)) + 1) + column
    return codes


def _dense(codes: Codes) -> Codes:
    """Return dense codes in the same order, unless they are already small."""
    least, most = int(codes.min(initial=0)), int(codes.max(initial=0))
    if least >= 0 and most <= max(2 * len(codes), 1 << 16):
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def equality_codes(values: pa.ChunkedArray) -> Codes:
    """Return a code per value, equal for values that are equal in Java: -0.0 differs from 0.0, NaN equals NaN."""
    whole = _whole_numbers(values)
    if whole is not None and not values.null_count:
        return whole
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    # The chunks share one dictionary, which the kernel builds over all of them.
    return np.concatenate(
        [np.zeros(0, np.int64), *(np.asarray(chunk.indices).astype(np.int64) for chunk in encoded.chunks)]
    )


def order_codes(values: pa.ChunkedArray, *, descending: bool = False) -> Codes:
    """Return a code per value, in Java's order of the values, nulls first.

    Floats are ordered by Float.compare (-0.0 before 0.0, NaN greatest), text and bytes by unsigned bytes.
    """
    whole = _whole_numbers(values)
    if whole is None:
        encoded = pc.dictionary_encode(values.combine_chunks())
        encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
        ranks = np.empty(len(encoded.dictionary), np.int64)
        ranks[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
        whole = ranks[np.asarray(encoded.indices.fill_null(0))] if len(ranks) else np.zeros(len(values), np.int64)
    dense = np.unique(whole, return_inverse=True)[1].astype(np.int64)
    ordered = -dense if descending else dense
    nulls = np.asarray(values.is_null())
    return np.where(nulls, np.int64(-len(values) - 1), ordered)


def _whole_numbers(values: pa.ChunkedArray) -> Codes | None:
    """Return numbers, times or booleans as integers of the same order; None for other types."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _integers(values)
    if pa.types.is_temporal(kind):
        return _integers(values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))  # noqa: PLR2004 - bits
    if pa.types.is_floating(kind):
        return _float_bits(np.asarray(values.cast(pa.float64()).fill_null(0.0)))
    return None


def _integers(values: pa.ChunkedArray) -> Codes:
    """Return integers, 0 for null."""
    known = values.fill_null(0) if values.null_count else values
    return np.asarray(known.cast(pa.int64())).astype(np.int64, copy=False)


def _float_bits(numbers: npt.NDArray[np.float64]) -> Codes:
    """Return floats as integers in the order of Double.compare. All NaN are equal and greatest."""
    canonical = np.where(np.isnan(numbers), np.float64(np.nan), numbers)
    bits = canonical.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def value_codes(values: pa.Array) -> Codes:
    """Return a code per value of any type, nested types included, equal for equal values."""
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [value_codes(values.field(index)) for index in range(kind.num_fields)]
        return _numbered(
            list(zip(np.asarray(values.is_valid()).tolist(), *(part.tolist() for part in parts), strict=True))
        )
    if pa.types.is_list(kind):
        items, offsets = value_codes(values.values).tolist(), np.asarray(values.offsets).tolist()
        valid = np.asarray(values.is_valid()).tolist()
        return _numbered(
            [tuple(items[a:b]) if ok else None for ok, a, b in zip(valid, offsets, offsets[1:], strict=False)]
        )
    return equality_codes(pa.chunked_array([values]))


def _numbered(values: Sequence[object]) -> Codes:
    seen: dict[object, int] = {}
    return np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, len(values))
