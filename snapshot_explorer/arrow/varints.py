"""Integers of variable length: seven bits in each byte, lowest first; the eighth bit is set if more bytes follow."""

from snapshot_explorer.arrow.corruption import CorruptBytesError

LONGEST = 10
"""The maximum number of bytes of a number with 64 bits."""
_MORE = 0x80


def varint(content: bytes, at: int, longest: int = LONGEST) -> tuple[int, int]:
    """Return the unsigned number at a position, and the position after it."""
    if at < len(content) and (first := content[at]) < _MORE:
        return first, at + 1
    number = shift = 0
    for byte in content[at : at + longest]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < _MORE:
            return number, at + shift // 7
    raise CorruptBytesError("a number is cut short or too long")


def unzigzag(number: int) -> int:
    """Return the signed number that an unsigned one stores: 0, -1, 1, -2 and so on for 0, 1, 2, 3."""
    return (number >> 1) ^ -(number & 1)


def zigzag(number: int) -> int:
    """Return the unsigned number that stores a signed one of 64 bits."""
    return (number << 1) ^ (number >> 63)


def varint_bytes(number: int) -> bytes:
    """Return the bytes of an unsigned number."""
    content = bytearray()
    while number >= _MORE:
        content.append(number & 0x7F | _MORE)
        number >>= 7
    return bytes([*content, number])
