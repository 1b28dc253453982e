"""Writes and reads BinaryRows, following the layout that Paimon documents: a slot per field, then what does not fit."""

import struct
from decimal import Context, Decimal

FIXED = {
    "BOOLEAN": "<?",
    "TINYINT": "<b",
    "SMALLINT": "<h",
    "INT": "<i",
    "DATE": "<i",
    "TIME": "<i",
    "BIGINT": "<q",
    "FLOAT": "<f",
    "DOUBLE": "<d",
}


def binary_row(kinds, values):
    """Return a row of values: integers for times, (milliseconds, nanoseconds) for longer timestamps."""
    arity = len(kinds)
    bits, slots, variable = bytearray((arity + 71) // 64 * 8), [], bytearray()
    start = len(bits) + 8 * arity
    for index, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        if value is None:
            bits[(index + 8) // 8] |= 1 << (index + 8) % 8
        slots.append(slot(kind, value, start, variable))
    return struct.pack(">i", arity) + bytes(bits) + b"".join(slots) + bytes(variable)


def slot(kind, value, start, variable):
    if kind.root in FIXED:
        return bytes(8) if value is None else struct.pack(FIXED[kind.root], value).ljust(8, b"\0")
    if kind.root == "DECIMAL":
        return decimal_slot(kind, value, start, variable)
    if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        if kind.precision <= 3:
            return struct.pack("<q", 0 if value is None else value)
        millis, nanos = (0, 0) if value is None else value
        variable += struct.pack("<q", millis)
        return struct.pack("<ii", nanos, start + len(variable) - 8)
    content = value.encode() if isinstance(value, str) else value
    if content is None:
        return bytes(8)
    if len(content) <= 7:
        return content.ljust(7, b"\0") + bytes([0x80 | len(content)])
    variable += content.ljust(-(-len(content) // 8) * 8, b"\0")
    return struct.pack("<ii", len(content), start + len(variable) - -(-len(content) // 8) * 8)


def decimal_slot(kind, value, start, variable):
    unscaled = None if value is None else int(Decimal(value).scaleb(kind.scale, Context(prec=60)))
    if kind.precision <= 18:
        return struct.pack("<q", unscaled or 0)
    raw = b"" if unscaled is None else unscaled.to_bytes(max(1, (unscaled.bit_length() + 8) // 8), "big", signed=True)
    variable += raw.ljust(16, b"\0")
    return struct.pack("<ii", len(raw), start + len(variable) - 16)


def integer_in(row, position, root):
    """Return an integer of a row; None if it is null."""
    arity = struct.unpack_from(">i", row)[0]
    if row[4 + (position + 8) // 8] >> (position + 8) % 8 & 1:
        return None
    return struct.unpack_from(FIXED[root], row, 4 + (arity + 71) // 64 * 8 + 8 * position)[0]
