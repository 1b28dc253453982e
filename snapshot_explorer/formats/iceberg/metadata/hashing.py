"""Buckets of values: Murmur3 hashes of single values.

Source: iceberg specification, "Bucket Transform Details" and "32-bit Hash Requirements" (Appendix B).
"""

from decimal import Decimal, localcontext

import pyarrow as pa

from snapshot_explorer.formats.iceberg.metadata.types import IcebergDataType

_MASK = 0xFFFF_FFFF
_FIRST, _SECOND = 0xCC9E_2D51, 0x1B87_3593
_WORD = 4
_DIGITS = 76


def bucket(value: pa.Scalar, kind: IcebergDataType, buckets: int) -> int | None:
    """Return the bucket of a value; None for null.

    Args:
        value: A value in the Arrow type of the column.
        kind: The type of the column: a number, a time or text.
    """
    content = _bytes(value, kind)
    return None if content is None else (murmur3(content) & 0x7FFF_FFFF) % buckets


def _bytes(value: pa.Scalar, kind: IcebergDataType) -> bytes | None:
    if not value.is_valid:
        return None
    if kind.root == "decimal":
        return _unscaled(value.as_py(), kind.scale)
    if kind.root == "string":
        text: str = value.as_py()
        return text.encode()
    if kind.root in ("int", "long"):
        number: int = value.as_py()
    else:
        number = value.cast(pa.int32() if kind.root == "date" else pa.int64()).as_py()
    if kind.root.endswith("_ns"):
        number //= 1000
    return number.to_bytes(8, "little", signed=True)


def _unscaled(value: Decimal, scale: int) -> bytes:
    with localcontext(prec=_DIGITS):
        number = int(value.scaleb(scale))
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def murmur3(content: bytes) -> int:
    """Return the 32-bit x86 variant of Murmur3 with the seed 0, unsigned."""
    whole = len(content) // _WORD * _WORD
    found = 0
    for start in range(0, whole, _WORD):
        found ^= _mixed(int.from_bytes(content[start : start + _WORD], "little"))
        found = _rotated(found, 13)
        found = (found * 5 + 0xE654_6B64) & _MASK
    if whole < len(content):
        found ^= _mixed(int.from_bytes(content[whole:], "little"))
    found ^= len(content)
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        found = ((found ^ (found >> shift)) * factor) & _MASK
    return found ^ (found >> 16)


def _mixed(word: int) -> int:
    return (_rotated((word * _FIRST) & _MASK, 15) * _SECOND) & _MASK


def _rotated(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (32 - bits))) & _MASK
