"""Deletion vectors as Iceberg, Paimon and DuckLake store them: length, magic number, bitmap and checksum.

Source: iceberg Puffin specification, "deletion-vector-v1 blob type"; paimon DeletionVector.read.
"""

import zlib

from snapshot_explorer.arrow import roaring
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import Positions

MAGIC = bytes.fromhex("d1d33964")
_WORD = 4


def checked_body(content: bytes, offset: int = 0) -> bytes:
    """Return magic number and bitmap of the vector at an offset, after verifying their checksum."""
    size = int.from_bytes(content[offset : offset + _WORD], "big", signed=True)
    start, end = offset + _WORD, offset + _WORD + size
    body, check = content[start : max(start, end)], content[end : end + _WORD]
    if size < _WORD or len(body) != size or len(check) != _WORD:
        raise CorruptBytesError(f"it has {size} bytes at {offset} of {len(content)}")
    if zlib.crc32(body) != int.from_bytes(check, "big"):
        raise CorruptBytesError("its checksum does not match")
    return body


def positions_of(body: bytes, limit: int) -> Positions:
    """Return the positions of a 64-bit bitmap after its magic number, ascending and below a limit."""
    if body[:_WORD] != MAGIC:
        raise CorruptBytesError(f"its magic number {body[:_WORD].hex()} is unknown")
    result, end = roaring.decode_64(body, _WORD, limit)
    check_end(body, end)
    return result


def check_end(body: bytes, end: int) -> None:
    """Check that a bitmap ends where its bytes do."""
    if end != len(body):
        raise CorruptBytesError(f"{len(body) - end} bytes follow the bitmap")
