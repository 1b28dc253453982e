"""Writes deletion vectors and roaring bitmaps as the formats' documents describe them, for tests of reading."""

import struct
import zlib


def bitmap(containers, *, runs=()):
    """A portable bitmap of (key, numbers) pairs; containers whose place is in `runs` are written as runs."""
    count = len(containers)
    bodies = [as_runs(numbers) if place in runs else plain(numbers) for place, (_, numbers) in enumerate(containers)]
    if runs:
        flags = bytearray((count + 7) // 8)
        for place in runs:
            flags[place // 8] |= 1 << place % 8
        head = struct.pack("<I", 12347 | (count - 1) << 16) + bytes(flags)
    else:
        head = struct.pack("<II", 12346, count)
    head += b"".join(struct.pack("<HH", key, len(numbers) - 1) for key, numbers in containers)
    if not runs or count >= 4:
        place = len(head) + 4 * count
        for body in bodies:
            head += struct.pack("<I", place)
            place += len(body)
    return head + b"".join(bodies)


def plain(numbers):
    if len(numbers) > 4096:
        bits = bytearray(8192)
        for number in numbers:
            bits[number // 8] |= 1 << number % 8
        return bytes(bits)
    return struct.pack(f"<{len(numbers)}H", *numbers)


def as_runs(numbers):
    pairs = []
    for number in numbers:
        if pairs and pairs[-1][0] + pairs[-1][1] + 1 == number:
            pairs[-1][1] += 1
        else:
            pairs.append([number, 0])
    return struct.pack("<H", len(pairs)) + b"".join(struct.pack("<HH", *pair) for pair in pairs)


def of(positions, *, runs=False):
    """A portable bitmap of positions, all containers as runs or none."""
    containers = {}
    for position in sorted(positions):
        containers.setdefault(position >> 16, []).append(position & 0xFFFF)
    return bitmap(list(containers.items()), runs=tuple(range(len(containers))) if runs else ())


def vector(body):
    """A vector: size, magic and bitmap, checksum."""
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def vector_32(positions, **how):
    return vector(bytes.fromhex("5e43f2d0") + of(positions, **how))


def vector_64(positions, **how):
    highs = sorted({position >> 32 for position in positions})
    parts = [
        struct.pack("<i", high) + of([place & 0xFFFFFFFF for place in positions if place >> 32 == high], **how)
        for high in highs
    ]
    return vector(bytes.fromhex("d1d33964") + struct.pack("<q", len(parts)) + b"".join(parts))
