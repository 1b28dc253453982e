"""Integer codes of values: equal for values that are equal in Java, or ordered as in Java."""

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import Codes

_CODE_BITS = 63
"""Bits of a code: it is not negative."""
_TOO_MANY_BITS = 64
_WORD, _MAX_WORDS = 8, 8
"""The number of bytes that are compared at a time, and the maximum number of such steps: longer texts are numbered by a
hash table."""
_KEPT = np.array([2**64 - 2 ** (64 - 8 * count) for count in range(_WORD + 1)], np.uint64)
"""Masks of the first bytes of a word, by their number."""
_MAX_TEXT_BYTES = 2**31 - 2**20
"""Texts of more bytes do not fit into one array."""
_SAMPLED = 1000
"""The number of pairs of keys that are sampled to decide which method is faster."""
_FEW = 10
"""At most one pair in this many may agree in its first bits."""
_MAX_DIGITS = 18
"""Decimals of up to this many digits are 64-bit integers."""


def key_codes(rows: pa.Table, keys: Sequence[str]) -> Codes:
    """Return a code per row, equal for rows of equal key.

    The codes of sorted files mostly ascend: they are the first bits of the keys, without those that all keys share.
    Keys that are equal in these bits and differ later are numbered by a hash table, which takes several times as long.
    """
    columns = [rows.column(name) for name in keys]
    if len(columns) == 1 and (whole := _numbers(columns[0])) is not None:
        return whole
    if not rows.num_rows or any(column.null_count for column in columns):
        return _number_keys(columns)
    if rows.num_rows > _SAMPLED:
        first = np.linspace(0, rows.num_rows - 2, _SAMPLED).astype(np.int64)
        sample = [column.take(pa.array(np.stack([first, first + 1], axis=1).ravel())) for column in columns]
        if not _bits_are_faster(sample):
            return _number_keys(columns)
    codes, are_exact = _first_bits(columns)
    return codes if are_exact else _refine(columns, codes)


def _bits_are_faster(pairs: Sequence[pa.ChunkedArray]) -> bool:
    """Return whether most keys probably differ in their first bits, so that few need a hash table.

    Args:
        pairs: Keys of neighbors, which are the most similar ones in a sorted file: every even row and the next one.
    """
    texts = [values for values in pairs if _is_text(values.type)]
    if texts and all(2 * pc.count_distinct(values).as_py() < len(values) for values in texts):
        return False  # a hash table is fast for few distinct texts
    codes, are_exact = _first_bits(pairs)
    if are_exact:
        return True
    left = np.arange(0, len(codes), 2)
    alike = codes[left] == codes[left + 1]
    mixed = np.count_nonzero(alike & ~_are_equal(pairs, left, left + 1))
    return bool(mixed * _FEW <= len(left))


def _refine(columns: Sequence[pa.ChunkedArray], codes: Codes) -> Codes:
    """Return codes that are equal only for equal keys, from codes that are also equal for some others."""
    order = np.argsort(codes, kind="stable")
    ascending = codes[order]
    alike = ascending[1:] == ascending[:-1]
    differs = np.zeros(len(alike), bool)
    differs[alike] = ~_are_equal(columns, order[:-1][alike], order[1:][alike])
    if not differs.any():
        return codes
    groups = np.concatenate([np.zeros(1, np.int64), np.cumsum(~alike)])
    is_mixed = np.zeros(len(groups), bool)
    is_mixed[groups[1:][differs]] = True
    mixed = order[is_mixed[groups]]
    indices = pa.array(mixed)
    numbers = _dense(_number_keys([column.take(indices) for column in columns]))
    result = np.empty(len(codes), np.int64)
    result[order] = groups * (int(numbers.max()) + 1)
    result[mixed] += numbers
    return result


def _are_equal(columns: Sequence[pa.ChunkedArray], left: Codes, right: Codes) -> npt.NDArray[np.bool_]:
    result = np.ones(len(left), bool)
    for column in columns:
        whole = _numbers(column)
        if whole is not None:
            result &= whole[left] == whole[right]
        else:
            values = single_chunk(column)
            result &= np.asarray(pc.equal(values.take(pa.array(left)), values.take(pa.array(right)))).astype(bool)
    return result


def _first_bits(columns: Sequence[pa.ChunkedArray]) -> tuple[Codes, bool]:
    codes = np.zeros(len(columns[0]), np.uint64)
    room = _CODE_BITS
    for column in columns:
        for values, bits in _bits(column):
            if bits > room:
                if room:
                    codes = codes << np.uint64(room) | values >> np.uint64(bits - room)
                return codes.view(np.int64), False
            if bits:
                codes = codes << np.uint64(bits) | values
                room -= bits
    return codes.view(np.int64), True


def _bits(column: pa.ChunkedArray) -> Iterator[tuple[npt.NDArray[np.uint64], int]]:
    """Yield the bits in which the values differ, the first ones first, and their number."""
    whole = _numbers(column)
    if whole is not None:
        minimum = int(whole.min())
        yield whole.view(np.uint64) - np.uint64(minimum % 2**64), (int(whole.max()) - minimum).bit_length()
        return
    if _is_text(column.type) and column.nbytes <= _MAX_TEXT_BYTES:
        yield from _text_bits(single_chunk(column))
    else:
        yield np.zeros(len(column), np.uint64), _TOO_MANY_BITS


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_binary(dtype))


def _text_bits(texts: pa.Array) -> Iterator[tuple[npt.NDArray[np.uint64], int]]:
    _, indices, content = texts.buffers()
    offsets = np.frombuffer(indices, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    minimum, maximum = int(lengths.min()), int(lengths.max())
    end = min(maximum, _WORD * _MAX_WORDS)
    stored_bytes = np.frombuffer(content or b"", np.uint8)
    padded = np.concatenate([stored_bytes, np.zeros(end + _WORD, np.uint8)])
    words = np.ndarray(len(padded) - _WORD + 1, ">u8", buffer=padded, strides=(1,))  # a word begins at each byte
    for start in range(0, end, _WORD):
        word = words[starts + start].astype(np.uint64)
        if start + _WORD > minimum:  # the bytes after a shorter text belong to the next one
            word &= _KEPT[np.clip(lengths - start, 0, _WORD)]
        yield from _varying(word)
    if end < maximum:
        yield np.zeros(len(texts), np.uint64), _TOO_MANY_BITS
    yield (lengths - minimum).view(np.uint64), (maximum - minimum).bit_length()


def _varying(words: npt.NDArray[np.uint64]) -> Iterator[tuple[npt.NDArray[np.uint64], int]]:
    """Yield the runs of bits in which the words differ, the highest first, and the number of bits of each."""
    varying = int(np.bitwise_or.reduce(words ^ words[0]))
    while varying:
        top = varying.bit_length()
        bits = top - (~varying & (2**top - 1)).bit_length()
        yield words >> np.uint64(top - bits) & np.uint64(2**bits - 1), bits
        varying &= 2 ** (top - bits) - 1


def _numbers(values: pa.ChunkedArray) -> Codes | None:
    """Return values without nulls as integers with the same equality and order; None for other types."""
    if values.null_count:
        return None
    if pa.types.is_decimal128(values.type) and values.type.precision <= _MAX_DIGITS:
        parts = [np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2) for chunk in values.chunks if len(chunk)]
        slices = [(chunk.offset, chunk.offset + len(chunk)) for chunk in values.chunks if len(chunk)]
        low = 0 if sys.byteorder == "little" else 1
        cut = [part[start:end, low] for part, (start, end) in zip(parts, slices, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *cut])
    return _whole_numbers(values)


def _number_keys(columns: Sequence[pa.ChunkedArray]) -> Codes:
    """Return a code per row, equal for rows of equal key; nulls are equal."""
    codes = np.zeros(len(columns[0]), np.int64)
    for index, values in enumerate(columns):
        column = equality_codes(values)
        if not index:
            codes = column
            continue
        codes, column = _dense(codes), _dense(column)
        codes = codes * (int(column.max(initial=0)) + 1) + column
    return codes


def _dense(codes: Codes) -> Codes:
    """Return dense codes in the same order, unless they are already small."""
    minimum, maximum = int(codes.min(initial=0)), int(codes.max(initial=0))
    if minimum >= 0 and maximum <= max(2 * len(codes), 1 << 16):
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

    Floats are ordered by Float.compare (-0.0 before 0.0, NaN last), text and bytes by unsigned bytes.
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
    dtype = values.type
    if pa.types.is_boolean(dtype) or pa.types.is_integer(dtype):
        return _integers(values)
    if pa.types.is_temporal(dtype):
        return _integers(values.cast(pa.int32() if dtype.bit_width == 32 else pa.int64()))  # noqa: PLR2004 - bits
    if pa.types.is_floating(dtype):
        return _float_bits(np.asarray(values.cast(pa.float64()).fill_null(0.0)))
    return None


def _integers(values: pa.ChunkedArray) -> Codes:
    whole = values.cast(pa.int64())
    return np.asarray(whole.fill_null(0) if whole.null_count else whole).astype(np.int64, copy=False)


def _float_bits(numbers: npt.NDArray[np.float64]) -> Codes:
    """Return floats as integers in the order of Double.compare. All NaN are equal, and the maximum."""
    canonical = np.where(np.isnan(numbers), np.float64(np.nan), numbers)
    bits = canonical.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def value_codes(values: pa.Array) -> Codes:
    """Return a code per value of any type, nested types included, equal for equal values."""
    dtype = values.type
    if pa.types.is_struct(dtype):
        parts = [value_codes(values.field(index)) for index in range(dtype.num_fields)]
        return _number(
            list(zip(np.asarray(values.is_valid()).tolist(), *(part.tolist() for part in parts), strict=True))
        )
    if pa.types.is_list(dtype):
        items, offsets = value_codes(values.values).tolist(), np.asarray(values.offsets).tolist()
        valid = np.asarray(values.is_valid()).tolist()
        return _number(
            [tuple(items[a:b]) if ok else None for ok, a, b in zip(valid, offsets, offsets[1:], strict=False)]
        )
    return equality_codes(pa.chunked_array([values]))


def _number(values: Sequence[object]) -> Codes:
    seen: dict[object, int] = {}
    return np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, len(values))
