"""Unions of 32-bit roaring bitmaps, with the same bytes as the Java library.

A container can have several representations of the same size. Java's choice depends on the original containers.

Own code, as the bytes are the value of a row, which must be Paimon's: pyroaring 1.2 returns the same numbers, but other
bytes for 37 of 600 random unions, and `bitmaps_64` needs the containers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snapshot_explorer.arrow.roaring import Positions, check_total, decode

_LIMIT = 1 << 32
_CONTAINER_BITS = 16
_WITH_RUNS = 12347
_WITHOUT_RUNS = 12346
_OFFSETS_FROM = 4
"""A bitmap with runs and fewer containers has no table of offsets."""
MAX_ARRAY = 4096
"""The maximum number of numbers of an array container. More numbers are stored as bits."""
_BITMAP_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class BitmapContainer:
    """The numbers of a bitmap with the same upper half."""

    numbers: Positions
    """Their lower halves, ascending. At least one."""
    is_run: bool
    """Whether Java stores them as runs."""


Bitmap = Mapping[int, BitmapContainer]
"""Containers by their upper halves, ascending."""


def parse(content: bytes) -> Bitmap:
    """Return a bitmap from its portable form. Ignores trailing bytes, as Java does.

    Raises:
        CorruptBytesError: The bytes are not a bitmap.
    """
    numbers, _ = decode(content, 0, _LIMIT)
    upper, starts = np.unique(numbers >> _CONTAINER_BITS, return_index=True)
    parts = np.split(numbers & 0xFFFF, starts[1:]) if len(starts) else []
    count = len(parts)
    runs = np.zeros(count, bool)
    if int.from_bytes(content[:2], "little") == _WITH_RUNS:
        flags = np.frombuffer(content[4 : 4 + (count + 7) // 8], np.uint8)
        runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
    return {
        key: BitmapContainer(numbers=part, is_run=is_run)
        for key, part, is_run in zip(upper.tolist(), parts, runs.tolist(), strict=True)
    }


def union(left: Bitmap, right: Bitmap) -> Bitmap:
    """Return the union, with containers in the forms that Java writes.

    Source: RoaringBitmap 0.9 and newer, RoaringBitmap.or, runOptimize.
    """
    together = {
        key: optimize(join(left[key], right[key]) if key in left and key in right else left.get(key) or right[key])
        for key in sorted({*left, *right})
    }
    check_total(sum(len(container.numbers) for container in together.values()))
    return together


def join(left: BitmapContainer, right: BitmapContainer) -> BitmapContainer:
    """Return the union of two containers with the same upper half, before optimization."""
    numbers = np.union1d(left.numbers, right.numbers)
    is_run = left.is_run or right.is_run
    other = right if left.is_run else left
    if is_run and not other.is_run and len(other.numbers) > MAX_ARRAY:
        is_run = False  # runs join a bitmap as bits
    return _efficient(BitmapContainer(numbers=numbers, is_run=is_run))


def run_count(numbers: Positions) -> int:
    """Return the number of runs of ascending numbers. At least one number is required."""
    return int(np.count_nonzero(np.diff(numbers) != 1)) + 1


def _efficient(container: BitmapContainer) -> BitmapContainer:
    """Return a container built from runs as runs, unless another form is smaller."""
    if not container.is_run:
        return container
    count = len(container.numbers)
    size = 2 + 4 * run_count(container.numbers)
    return BitmapContainer(numbers=container.numbers, is_run=size <= min(_BITMAP_BYTES, 2 + 2 * count))


def optimize(container: BitmapContainer) -> BitmapContainer:
    """Return a container in the form that Java writes."""
    if container.is_run:
        return _efficient(container)
    count = len(container.numbers)
    size = _BITMAP_BYTES if count > MAX_ARRAY else 2 * count
    return BitmapContainer(numbers=container.numbers, is_run=2 + 4 * run_count(container.numbers) < size)


def serialize(bitmap: Bitmap) -> bytes:
    """Return a bitmap in its portable form.

    Source: RoaringFormatSpec, "Standard 32-bit Roaring Bitmap".
    """
    containers = list(bitmap.values())
    flags = np.array([container.is_run for container in containers], bool)
    heads = np.array([(key, len(container.numbers) - 1) for key, container in bitmap.items()], "<u2").tobytes()
    bodies = [body_of(container) for container in containers]
    if flags.any():
        cookie = _WITH_RUNS | (len(containers) - 1) << 16
        start = cookie.to_bytes(4, "little") + np.packbits(flags, bitorder="little").tobytes()
    else:
        start = _WITHOUT_RUNS.to_bytes(4, "little") + len(containers).to_bytes(4, "little")
    offsets = b""
    if not flags.any() or len(containers) >= _OFFSETS_FROM:
        sizes = np.cumsum([len(start) + 8 * len(containers), *(len(body) for body in bodies)])
        offsets = sizes[:-1].astype("<u4").tobytes()
    return b"".join([start, heads, offsets, *bodies])


def body_of(container: BitmapContainer) -> bytes:
    """Return the serialized numbers of a container, without a header."""
    numbers: npt.NDArray[np.int64] = container.numbers
    if container.is_run:
        begins = np.flatnonzero(np.concatenate([[True], np.diff(numbers) != 1]))
        ends = np.append(begins[1:], len(numbers)) - 1
        pairs = np.stack([numbers[begins], numbers[ends] - numbers[begins]], axis=1)
        return len(pairs).to_bytes(2, "little") + pairs.astype("<u2").tobytes()
    if len(numbers) > MAX_ARRAY:
        bits = np.zeros(1 << _CONTAINER_BITS, bool)
        bits[numbers] = True
        return np.packbits(bits, bitorder="little").tobytes()
    return numbers.astype("<u2").tobytes()
