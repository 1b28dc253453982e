"""Buckets of values: Murmur3 hashes of single values.

Source: iceberg specification, "Bucket Transform Details" and "32-bit Hash Requirements" (Appendix B).
"""

from decimal import Decimal, localcontext

import pyarrow as pa

from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType

_MASK = 0xFFFF_FFFF
_FIRST, _SECOND = 0xCC9E_2D51, 0x1B87_3593
_WORD = 4
_DIGITS = 76


def bucket(value: pa.Scalar, data_type: IcebergDataType, buckets: int) -> int | None:
    """Return the bucket of a value; None for null.

    Args:
        value: A value in the Arrow type of the column.
        data_type: The type of the column: a number, a time or text.
    """
    content = _bytes(value, data_type)
    return None if content is None else (murmur3(content) & 0x7FFF_FFFF) % buckets


def _bytes(value: pa.Scalar, data_type: IcebergDataType) -> bytes | None:
    if not value.is_valid:
        return None
    if data_type.root == "decimal":
        return _unscaled(value.as_py(), data_type.scale)
    if data_type.root == "string":
        text: str = value.as_py()
        return text.encode()
    if data_type.root in ("int", "long"):
        number: int = value.as_py()
    else:
        number = value.cast(pa.int32() if data_type.root == "date" else pa.int64()).as_py()
    if data_type.root.endswith("_ns"):
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
    result = 0
    for start in range(0, whole, _WORD):
        result ^= _mixed(int.from_bytes(content[start : start + _WORD], "little"))
        result = _rotated(result, 13)
        result = (result * 5 + 0xE654_6B64) & _MASK
    if whole < len(content):
        result ^= _mixed(int.from_bytes(content[whole:], "little"))
    result ^= len(content)
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        result = ((result ^ (result >> shift)) * factor) & _MASK
    return result ^ (result >> 16)


def _mixed(word: int) -> int:
    return (_rotated((word * _FIRST) & _MASK, 15) * _SECOND) & _MASK


def _rotated(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (32 - bits))) & _MASK
