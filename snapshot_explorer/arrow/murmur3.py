"""Murmur3, the hash by which Paimon and Iceberg assign rows to buckets."""

_MASK = 0xFFFF_FFFF
_FIRST, _SECOND = 0xCC9E_2D51, 0x1B87_3593
_WORD = 4


def murmur3(content: bytes, seed: int = 0) -> int:
    """Return the hash of bytes by the 32-bit x86 variant, unsigned."""
    whole = len(content) // _WORD * _WORD
    result = seed
    for start in range(0, whole, _WORD):
        result ^= _mix(int.from_bytes(content[start : start + _WORD], "little"))
        result = (_rotate(result, 13) * 5 + 0xE654_6B64) & _MASK
    if whole < len(content):
        result ^= _mix(int.from_bytes(content[whole:], "little"))
    result ^= len(content)
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        result = ((result ^ (result >> shift)) * factor) & _MASK
    return result ^ (result >> 16)


def _mix(word: int) -> int:
    return (_rotate((word * _FIRST) & _MASK, 15) * _SECOND) & _MASK


def _rotate(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (32 - bits))) & _MASK
