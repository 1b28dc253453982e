"""Unions of roaring bitmaps of 64 bits, as the bytes that the Java library would write.

Java keeps containers of 16 bits in slots, and finds a slot by the upper six bytes of the numbers in a tree. It writes
both as they are in memory: the slots in the order in which they were taken, and spare ones that were not. All of that
is kept here, so that it comes out again.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import check_total, container
from snapshot_explorer.formats.paimon.merge.bitmaps import (
    GREATEST_ARRAY,
    Container,
    body_of,
    joined,
    optimised,
    run_count,
)
from snapshot_explorer.formats.paimon.merge.radix_trees import Leaf, Tree, inserted, read_tree, written

_RUNS, _BITS, _ARRAY = 0, 1, 2
_NOT_TRIMMED = 0xFE
_MOST = 1 << 16
"""Numbers in a container."""
_HEAD, _SLOTS, _SLOT, _END = (struct.Struct(form) for form in ("<Bq", "<IBI", "<BBI", "<qii"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitmap64:
    """A set of 64-bit numbers as Java holds it."""

    tree: Tree | None = None
    """None without numbers."""
    places: Mapping[bytes, int]
    """Slots by key: what the tree says."""
    slots: Sequence[Container | None]
    """Containers in the order in which they came, with gaps."""
    last: int = -1
    """The slot that was taken last; those behind it are spare."""


def parse(content: bytes) -> Bitmap64:
    """Return a bitmap from the form of Java's Roaring64Bitmap; bytes behind it are passed over, as Java does.

    Raises:
        CorruptBytesError: The bytes are no bitmap.
        UnsupportedFeatureError: It holds too many numbers.

    Source: RoaringBitmap 1.2, HighLowContainer.deserialize, Containers.deserialize.
    """
    if content[:1] == b"\x00":
        return Bitmap64(places={}, slots=())
    try:
        tag, keys = _HEAD.unpack_from(content)
        tree, places, place = read_tree(content, _HEAD.size)
        slots, last = _slots(content, place)
    except struct.error as error:
        raise CorruptBytesError(f"a bitmap that is cut short at {len(content)} bytes") from error
    filled = [slot for slot, held in enumerate(slots) if held is not None]
    if tag != 1 or keys != len(places) or sorted(places.values()) != filled:
        raise CorruptBytesError(f"a bitmap {tag} of {keys} keys with {len(places)} leaves and {len(filled)} containers")
    return Bitmap64(tree=tree, places=places, slots=slots, last=last)


def _slots(content: bytes, place: int) -> tuple[list[Container | None], int]:
    """Return the slots, and which was taken last."""
    arrays, mark, size = _SLOTS.unpack_from(content, place)
    place += _SLOTS.size
    if arrays != 1 or mark != _NOT_TRIMMED or size > len(content) - place:
        raise CorruptBytesError(f"{size} slots in {arrays} arrays of the mark {mark}")
    slots: list[Container | None] = []
    total = 0
    for _ in range(size):
        if content[place : place + 1] == b"\x00":
            slots.append(None)
            place += 1
            continue
        made, place = _container(content, place)
        total += len(made.numbers)
        check_total(total)
        slots.append(made)
    number, array, last = _END.unpack_from(content, place)
    if array != 0 or number != size - slots.count(None) or not 0 <= last < size or any(slots[last + 1 :]):
        raise CorruptBytesError(f"{number} containers, the last in slot {last} of {size} and array {array}")
    return slots, last


def _container(content: bytes, place: int) -> tuple[Container, int]:
    """Return the container of a slot, and where it ends."""
    mark, kind, count = _SLOT.unpack_from(content, place)
    place += _SLOT.size
    is_run = kind == _RUNS
    if mark != 1 or not 0 < count <= _MOST or kind != _kind(count, is_run=is_run):
        raise CorruptBytesError(f"a container of kind {kind} with {count} numbers, marked {mark}")
    numbers, end = container(content, place, count, is_run=is_run)
    if is_run and run_count(numbers) != int.from_bytes(content[place : place + 2], "little"):
        raise CorruptBytesError("runs that touch")
    return Container(numbers=numbers, is_run=is_run), end


def _kind(count: int, *, is_run: bool) -> int:
    if is_run:
        return _RUNS
    return _BITS if count > GREATEST_ARRAY else _ARRAY


def union(left: Bitmap64, right: Bitmap64) -> Bitmap64:
    """Return the union, in the forms that Java gives tree, slots and containers when it writes them.

    Containers that only the right has come behind those of the left, in the order of their keys.

    Raises:
        UnsupportedFeatureError: It holds too many numbers.

    Source: RoaringBitmap 1.2, Roaring64Bitmap.or, Roaring64Bitmap.runOptimize, Containers.addContainer.
    """
    tree, places, slots, last = left.tree, dict(left.places), list(left.slots), left.last
    for key in sorted(right.places):
        newer = right.slots[right.places[key]]
        if (slot := places.get(key)) is None:
            last = places[key] = last + 1
            if last == len(slots):
                slots += [None] * max(len(slots) // 2, 1)
            slots[last] = newer
            tree = inserted(tree, Leaf(key=key, slot=last))
        elif (older := slots[slot]) is not None and newer is not None:
            slots[slot] = joined(older, newer)
    check_total(sum(len(held.numbers) for held in slots if held is not None))
    # What optimising makes of runs, if it is not runs, Java does not put back here: other than with 32 bits
    best = [held if held is None or held.is_run else optimised(held) for held in slots]
    return Bitmap64(tree=tree, places=places, slots=best, last=last)


def serialised(bitmap: Bitmap64) -> bytes:
    """Return a bitmap in the form of Java's Roaring64Bitmap.

    Source: RoaringBitmap 1.2, HighLowContainer.serialize, Containers.serialize.
    """
    if bitmap.tree is None:
        return b"\x00"
    count = len(bitmap.places)
    slots = (b"\x00" if held is None else _written(held) for held in bitmap.slots)
    start = [_HEAD.pack(1, count), written(bitmap.tree), _SLOTS.pack(1, _NOT_TRIMMED, len(bitmap.slots))]
    return b"".join([*start, *slots, _END.pack(count, 0, bitmap.last)])


def _written(held: Container) -> bytes:
    count = len(held.numbers)
    return _SLOT.pack(1, _kind(count, is_run=held.is_run), count) + body_of(held)
