"""Roaring bitmaps in their portable form, decoded with numpy: sets of 32-bit numbers.

Untrusted input: every length is checked before bytes are read, and no set larger than the caller's limit is built.
"""

import numpy as np
import numpy.typing as npt

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import UnsupportedFeatureError

Positions = npt.NDArray[np.int64]
NOTHING: Positions = np.zeros(0, np.int64)
"""No positions."""

_WITHOUT_RUNS = 12346
_WITH_RUNS = 12347
_OFFSETS_FROM = 4
"""With runs, a bitmap of fewer containers has no table of offsets."""
_MAX_ARRAY = 4096
_BITMAP_BYTES = 8192
_CONTAINER = 1 << 16
MOST_NUMBERS = 1 << 25
"""The maximum number of values in a bitmap: runs of a few bytes represent many."""


def decode(content: bytes, start: int, limit: int) -> tuple[Positions, int]:
    """Return the numbers of a bitmap, ascending, and the offset of its end.

    Args:
        limit: All numbers must be below it, so that a few bytes cannot require much memory.

    Source: RoaringFormatSpec, "Standard 32-bit Roaring Bitmap".
    """
    cookie = _integer(content, start, 4)
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = _part(content, start + 4, (count + 7) // 8)
        runs = np.unpackbits(np.frombuffer(flags, np.uint8), bitorder="little")[:count].astype(bool)
        offset = start + 4 + len(flags)
        has_offsets = count >= _OFFSETS_FROM
    elif cookie == _WITHOUT_RUNS:
        count = _integer(content, start + 4, 4)
        if count > _CONTAINER:
            raise CorruptBytesError(f"a bitmap of {count} containers")
        runs = np.zeros(count, bool)
        offset, has_offsets = start + 8, True
    else:
        raise CorruptBytesError(f"no bitmap begins with {cookie}")
    heads = np.frombuffer(_part(content, offset, 4 * count), "<u2").reshape(count, 2).astype(np.int64)
    offset += 4 * count + (4 * count if has_offsets else 0)
    _check_heads(heads, limit)
    chunks = [np.zeros(0, np.int64)]
    for (key, count_minus_1), is_run in zip(heads.tolist(), runs.tolist(), strict=True):
        values, offset = container(content, offset, count_minus_1 + 1, is_run=is_run)
        chunks.append(values + (key << 16))
    numbers = np.concatenate(chunks)
    if len(numbers) and numbers[-1] >= limit:
        raise CorruptBytesError(f"position {numbers[-1]} where {limit} is the end")
    return numbers, offset


def decode_64(content: bytes, start: int, limit: int) -> tuple[Positions, int]:
    """Return the numbers of a 64-bit bitmap, ascending, and the offset of its end; arguments and errors as `decode`.

    Source: RoaringFormatSpec, "Extension for 64-bit Implementations".
    """
    count = int.from_bytes(content[start : start + 8], "little", signed=True)
    offset = start + 8
    chunks = [np.zeros(0, np.int64)]
    total, before = 0, -1
    for _ in range(count):
        high = int.from_bytes(content[offset : offset + 4], "little", signed=True)
        if offset + 4 > len(content) or high <= before:
            raise CorruptBytesError("it is cut short, or its parts are out of order")
        numbers, offset = decode(content, offset + 4, min(1 << 32, limit - (high << 32)))
        total += len(numbers)
        check_total(total)
        chunks.append(numbers + (high << 32))
        before = high
    if count < 0 or offset > len(content):
        raise CorruptBytesError(f"it has {count} parts in {len(content)} bytes")
    return np.concatenate(chunks), offset


def check_total(total: int) -> None:
    """Refuse more numbers than fit in memory."""
    if total > MOST_NUMBERS:
        raise UnsupportedFeatureError(
            f"A bitmap contains {total:,} positions; the limit is {MOST_NUMBERS:,}. Read the table with the "
            "engine that wrote it, or a version after its next compaction."
        )


def _check_heads(heads: Positions, limit: int) -> None:
    """Refuse containers out of order, or more numbers than there can be below the limit."""
    if np.any(heads[1:, 0] <= heads[:-1, 0]):
        raise CorruptBytesError("containers out of order")
    if len(heads) and int(heads[-1, 0]) << 16 >= limit:
        raise CorruptBytesError(f"position {int(heads[-1, 0]) << 16} or more where {limit} is the end")
    total = int(heads[:, 1].sum()) + len(heads)
    if total > limit:
        raise CorruptBytesError(f"{total} positions where {limit} is the end")
    check_total(total)


def container(content: bytes, offset: int, count: int, *, is_run: bool) -> tuple[Positions, int]:
    """Return the `count` numbers of a container, ascending, and the offset of its end."""
    if is_run:
        return _runs(content, offset, count)
    if count > _MAX_ARRAY:
        bits = np.frombuffer(_part(content, offset, _BITMAP_BYTES), np.uint8)
        values, offset = np.flatnonzero(np.unpackbits(bits, bitorder="little")), offset + _BITMAP_BYTES
    else:
        values, offset = np.frombuffer(_part(content, offset, 2 * count), "<u2"), offset + 2 * count
    numbers = values.astype(np.int64)
    if len(numbers) != count or np.any(numbers[1:] <= numbers[:-1]):
        raise CorruptBytesError(f"a container of {count} numbers that has {len(numbers)}, or is not in order")
    return numbers, offset


def _runs(content: bytes, offset: int, count: int) -> tuple[Positions, int]:
    """Return the numbers of a run container. Each run has a start and the number of values after it."""
    number = _integer(content, offset, 2)
    pairs = np.frombuffer(_part(content, offset + 2, 4 * number), "<u2").reshape(number, 2).astype(np.int64)
    starts, lengths = pairs[:, 0], pairs[:, 1] + 1
    ends = starts + lengths
    if np.any(starts[1:] < ends[:-1]) or np.any(ends > _CONTAINER) or int(lengths.sum()) != count:
        raise CorruptBytesError("runs that overlap, are out of order or have another total")
    before = np.cumsum(lengths) - lengths
    return np.arange(count) + np.repeat(starts - before, lengths), offset + 2 + 4 * number


def _part(content: bytes, offset: int, size: int) -> bytes:
    if offset < 0 or offset + size > len(content):
        raise CorruptBytesError(f"{size} bytes at {offset} of {len(content)}")
    return content[offset : offset + size]


def _integer(content: bytes, offset: int, size: int) -> int:
    return int.from_bytes(_part(content, offset, size), "little")
