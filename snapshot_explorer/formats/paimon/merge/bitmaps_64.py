"""Unions of 64-bit roaring bitmaps, with the same bytes as the Java library.

Java stores 16-bit containers in slots, and an adaptive radix tree maps the upper six bytes of the numbers to a slot.
It writes both as they are in memory: the slots in the order of their allocation, unused slots included; nodes remain
large when children are removed, and list children in the order of insertion. This module keeps all of this, so that the
result has the same bytes: an insert has to find the same node as Java.

Own code, as no Python library writes this form, and the bytes are the value of a row, which must be Paimon's:
pyroaring's `BitMap64.serialize` writes the portable form of RoaringFormatSpec, which is different.
"""

import itertools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import check_total, container
from snapshot_explorer.formats.paimon.merge.bitmaps import (
    MAX_ARRAY,
    BitmapContainer,
    body_of,
    join,
    optimize,
    run_count,
)

KEY_BYTES = 6
_LEAF = 4
_CAPACITIES = (4, 16, 48, 256)
"""Children that a node can have, by its kind."""
_BODY_BYTES = (4, 16, 256, 32)
_WORD_BYTES = (4, 8, 8, 1)
"""A body consists of words that are written with their last byte first."""
_BY_POSITION, _BY_BITS = 2, 3
"""Kinds whose body has a position, or a bit, for each of the 256 bytes; the others list the bytes of children."""
_NO_CHILD = 0xFF
_NODE_HEAD, _LEAF_BODY = struct.Struct("<BHB"), struct.Struct(f"<{KEY_BYTES}sq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The location of a key's container."""

    key: bytes
    """The upper six bytes of its numbers."""
    slot: int
    """Position of the container in the bitmap's slots."""
    remains: bytes = b""
    """The rest of the prefix of a node whose only other child was removed. Java writes it, although it is unused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerNode:
    """Keys that begin with the same bytes."""

    kind: int
    """Index in `_CAPACITIES`."""
    prefix: bytes
    """The bytes that the keys share after the byte that leads to this node."""
    body: bytes
    """Java's bytes about the children, in reversed words. A list of bytes may be followed by old values."""
    children: Mapping[int, "InnerNode | Leaf"]
    """The children by the key's byte after the prefix. At least one."""


Tree = InnerNode | Leaf


def read_tree(content: bytes, index: int) -> tuple[Tree, Mapping[bytes, int], int]:
    """Return a tree, its slots by key, and the offset of its end.

    Raises:
        CorruptBytesError: The bytes are not a tree, or are cut short.

    Source: RoaringBitmap 1.2, Art.deserializeArt, Node.deserialize.
    """
    slots: dict[bytes, int] = {}
    try:
        tree, end = _node(content, index, b"", slots)
    except struct.error as error:
        raise CorruptBytesError(f"a tree of keys that is cut short at {len(content)} bytes") from error
    return tree, slots, end


def _node(content: bytes, index: int, path: bytes, slots: dict[bytes, int]) -> tuple[Tree, int]:
    kind, count, length = _NODE_HEAD.unpack_from(content, index)
    index += _NODE_HEAD.size
    prefix, index = content[index : index + length], index + length
    if kind == _LEAF:
        key, slot = _LEAF_BODY.unpack_from(content, index)
        if count or len(path) + length > KEY_BYTES or not key.startswith(path) or key in slots:
            raise CorruptBytesError(f"the key {key.hex()} behind {path.hex()}, with {length} bytes that remain")
        slots[key] = slot
        return Leaf(key=key, slot=slot, remains=prefix), index + _LEAF_BODY.size
    if kind > _LEAF or not 0 < count <= _CAPACITIES[kind] or len(path) + length >= KEY_BYTES:
        raise CorruptBytesError(f"a node of kind {kind} with {count} children behind {len(path)} and {length} bytes")
    body = _byte_swapped(kind, content[index : index + _BODY_BYTES[kind]])
    index += len(body)
    if len(body) < _BODY_BYTES[kind]:
        raise CorruptBytesError(f"a tree of keys that is cut short at {len(content)} bytes")
    children: dict[int, Tree] = {}
    for byte in _child_bytes(kind, body, count):
        children[byte], index = _node(content, index, path + prefix + bytes([byte]), slots)
    return InnerNode(kind=kind, prefix=prefix, body=body, children=children), index


def _byte_swapped(kind: int, body: bytes) -> bytes:
    size = _WORD_BYTES[kind]
    return b"".join(body[start : start + size][::-1] for start in range(0, len(body), size))


def _child_bytes(kind: int, body: bytes, count: int) -> list[int]:
    """Return the key bytes of a node's children, ascending."""
    if kind == _BY_POSITION:
        result = [byte for byte, position in enumerate(body) if position != _NO_CHILD]
        positions = {body[byte] for byte in result}
        if len(positions) != len(result) or any(position >= _CAPACITIES[kind] for position in positions):
            raise CorruptBytesError("a node whose children share a position, or are past its end")
    elif kind == _BY_BITS:
        result = np.flatnonzero(np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")).tolist()
    else:
        result = list(body[:count])
    if len(result) != count or any(left >= right for left, right in itertools.pairwise(result)):
        raise CorruptBytesError(f"a node of {count} children that lists {len(result)}, or not in order")
    return result


def insert(tree: Tree | None, leaf: Leaf) -> Tree:
    """Return a tree with one more leaf, whose key is new.

    Source: RoaringBitmap 1.2, Art.insert, Node4.insert, Node16.insert, Node48.insert, Node256.insert.
    """
    return leaf if tree is None else _below(tree, leaf, 0)


def _below(node: Tree, leaf: Leaf, depth: int) -> Tree:
    """Return a node with one more leaf below it; `depth` bytes of its key precede the node."""
    shared = node.key[depth:] if isinstance(node, Leaf) else node.prefix
    rest = leaf.key[depth:]
    common = next((at for at, (old, new) in enumerate(zip(shared, rest, strict=False)) if old != new), None)
    if common is not None:
        lower = (
            replace(node, remains=b"") if isinstance(node, Leaf) else replace(node, prefix=node.prefix[common + 1 :])
        )
        fork = InnerNode(kind=0, prefix=rest[:common], body=bytes(_BODY_BYTES[0]), children={})
        return _with_child(_with_child(fork, shared[common], lower), rest[common], leaf)
    if isinstance(node, Leaf):
        raise CorruptBytesError(f"the key {leaf.key.hex()} twice")
    byte = rest[len(shared)]
    if byte not in node.children:
        return _with_child(node, byte, leaf)
    child = _below(node.children[byte], leaf, depth + len(shared) + 1)
    return replace(node, children={**node.children, byte: child})


def _with_child(branch: InnerNode, byte: int, child: Tree) -> InnerNode:
    """Return a node with one more child, as the next larger kind if it is full."""
    kind, body, count = branch.kind, bytearray(branch.body), len(branch.children)
    if count == _CAPACITIES[kind]:
        kind, body = kind + 1, _grow(kind, body)
    if kind == _BY_POSITION:
        used_slots = {*body} - {_NO_CHILD}
        body[byte] = count if count not in used_slots else min({*range(count)} - used_slots)
    elif kind == _BY_BITS:
        body[byte >> 3] |= 1 << (byte & 7)
    else:
        body[: count + 1] = bytes(sorted([*body[:count], byte]))
    return InnerNode(kind=kind, prefix=branch.prefix, body=bytes(body), children={**branch.children, byte: child})


def _grow(kind: int, body: bytearray) -> bytearray:
    if kind + 1 == _BY_BITS:
        return bytearray(np.packbits(np.frombuffer(body, np.uint8) != _NO_CHILD, bitorder="little").tobytes())
    if kind + 1 < _BY_POSITION:
        return body + bytes(_BODY_BYTES[kind + 1] - len(body))
    positions = bytearray([_NO_CHILD]) * _BODY_BYTES[_BY_POSITION]
    for position, byte in enumerate(body):
        positions[byte] = position
    return positions


def write_tree(tree: Tree) -> bytes:
    """Return a tree as Java writes it."""
    if isinstance(tree, Leaf):
        return _NODE_HEAD.pack(_LEAF, 0, len(tree.remains)) + tree.remains + _LEAF_BODY.pack(tree.key, tree.slot)
    head = _NODE_HEAD.pack(tree.kind, len(tree.children), len(tree.prefix))
    children = (write_tree(tree.children[byte]) for byte in sorted(tree.children))
    return b"".join([head, tree.prefix, _byte_swapped(tree.kind, tree.body), *children])


_RUNS, _BITS, _ARRAY = 0, 1, 2
_NOT_TRIMMED = 0xFE
_MAX = 1 << 16
_HEAD, _SLOTS, _SLOT, _END = (struct.Struct(form) for form in ("<Bq", "<IBI", "<BBI", "<qii"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitmap64:
    """A set of 64-bit numbers in Java's representation."""

    tree: Tree | None = None
    """None without numbers."""
    slot_by_key: Mapping[bytes, int]
    """Slots by key, from the tree."""
    slots: Sequence[BitmapContainer | None]
    """Containers in the order of allocation, with gaps."""
    last: int = -1
    """The last allocated slot. Slots after it are unused."""


def parse(content: bytes) -> Bitmap64:
    """Return a bitmap from the form of Java's Roaring64Bitmap. Ignores trailing bytes, as Java does.

    Raises:
        CorruptBytesError: The bytes are not a bitmap.

    Source: RoaringBitmap 1.2, HighLowContainer.deserialize, Containers.deserialize.
    """
    if content[:1] == b"\x00":
        return Bitmap64(slot_by_key={}, slots=())
    try:
        tag, keys = _HEAD.unpack_from(content)
        tree, indices, index = read_tree(content, _HEAD.size)
        slots, last = _slots(content, index)
    except struct.error as error:
        raise CorruptBytesError(f"a bitmap that is cut short at {len(content)} bytes") from error
    filled = [slot for slot, container in enumerate(slots) if container is not None]
    if tag != 1 or keys != len(indices) or sorted(indices.values()) != filled:
        raise CorruptBytesError(
            f"a bitmap {tag} of {keys} keys with {len(indices)} leaves and {len(filled)} containers"
        )
    return Bitmap64(tree=tree, slot_by_key=indices, slots=slots, last=last)


def _slots(content: bytes, index: int) -> tuple[list[BitmapContainer | None], int]:
    arrays, mark, size = _SLOTS.unpack_from(content, index)
    index += _SLOTS.size
    if arrays != 1 or mark != _NOT_TRIMMED or size > len(content) - index:
        raise CorruptBytesError(f"{size} slots in {arrays} arrays of the mark {mark}")
    slots: list[BitmapContainer | None] = []
    total = 0
    for _ in range(size):
        if content[index : index + 1] == b"\x00":
            slots.append(None)
            index += 1
            continue
        made, index = _container(content, index)
        total += len(made.numbers)
        check_total(total)
        slots.append(made)
    number, array, last = _END.unpack_from(content, index)
    if array != 0 or number != size - slots.count(None) or not 0 <= last < size or any(slots[last + 1 :]):
        raise CorruptBytesError(f"{number} containers, the last in slot {last} of {size} and array {array}")
    return slots, last


def _container(content: bytes, index: int) -> tuple[BitmapContainer, int]:
    mark, kind, count = _SLOT.unpack_from(content, index)
    index += _SLOT.size
    is_run = kind == _RUNS
    if mark != 1 or not 0 < count <= _MAX or kind != _kind(count, is_run=is_run):
        raise CorruptBytesError(f"a container of kind {kind} with {count} numbers, marked {mark}")
    numbers, end = container(content, index, count, is_run=is_run)
    if is_run and run_count(numbers) != int.from_bytes(content[index : index + 2], "little"):
        raise CorruptBytesError("runs that touch")
    return BitmapContainer(numbers=numbers, is_run=is_run), end


def _kind(count: int, *, is_run: bool) -> int:
    if is_run:
        return _RUNS
    return _BITS if count > MAX_ARRAY else _ARRAY


def union(left: Bitmap64, right: Bitmap64) -> Bitmap64:
    """Return the union, with tree, slots and containers in the forms that Java writes.

    Containers that are only in the right bitmap follow the left bitmap's containers, in the order of their keys.

    Source: RoaringBitmap 1.2, Roaring64Bitmap.or, Roaring64Bitmap.runOptimize, Containers.addContainer.
    """
    tree, indices, slots, last = left.tree, dict(left.slot_by_key), list(left.slots), left.last
    for key in sorted(right.slot_by_key):
        newer = right.slots[right.slot_by_key[key]]
        if (slot := indices.get(key)) is None:
            last = indices[key] = last + 1
            if last == len(slots):
                slots += [None] * max(len(slots) // 2, 1)
            slots[last] = newer
            tree = insert(tree, Leaf(key=key, slot=last))
        elif (older := slots[slot]) is not None and newer is not None:
            slots[slot] = join(older, newer)
    check_total(sum(len(container.numbers) for container in slots if container is not None))
    # Unlike the 32-bit bitmap, Java discards the optimized form of a run container unless it is a run container
    best = [container if container is None or container.is_run else optimize(container) for container in slots]
    return Bitmap64(tree=tree, slot_by_key=indices, slots=best, last=last)


def serialize(bitmap: Bitmap64) -> bytes:
    """Return a bitmap in the form of Java's Roaring64Bitmap.

    Source: RoaringBitmap 1.2, HighLowContainer.serialize, Containers.serialize.
    """
    if bitmap.tree is None:
        return b"\x00"
    count = len(bitmap.slot_by_key)
    slots = (b"\x00" if container is None else _write(container) for container in bitmap.slots)
    start = [_HEAD.pack(1, count), write_tree(bitmap.tree), _SLOTS.pack(1, _NOT_TRIMMED, len(bitmap.slots))]
    return b"".join([*start, *slots, _END.pack(count, 0, bitmap.last)])


def _write(container: BitmapContainer) -> bytes:
    count = len(container.numbers)
    return _SLOT.pack(1, _kind(count, is_run=container.is_run), count) + body_of(container)
