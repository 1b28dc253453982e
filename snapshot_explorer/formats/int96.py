"""INT96 timestamps of parquet files, read exactly.

Paimon stores TIMESTAMP(7) to (9) as INT96, Spark every timestamp unless told otherwise: a day and the nanoseconds in
it, which some writers make negative before 1970. What pyarrow makes of them wraps around outside of 1677 to 2262, and
nobody can tell afterwards. So it is given a footer
in which the column is plain bytes, 12 per value, which are stored in the very same way.

Source: parquet-format, "Types", "Metadata"; Thrift compact protocol.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.damage import DamageError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_INT96, _FIXED_BYTES = 3, 7
WIDTH = 12
"""Bytes of a value."""
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
_DEEPEST = 32
_UNIX_DAY = 2_440_588
"""The Julian day of 1970-01-01."""
_DAY_NANOS = 86_400_000_000_000


def bytes_metadata(source: pa.NativeFile) -> "pq.FileMetaData":
    """Return the metadata of a parquet file with its INT96 columns as 12 bytes. Reads the footer.

    Raises:
        DamageError: The footer is cut short or damaged.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    size = source.size()
    source.seek(max(0, size - 8))
    length = int.from_bytes(bytes(source.read(4)), "little")
    if length > size - 8:
        raise DamageError("its footer is longer than the file")
    source.seek(size - 8 - length)
    tree = _Reader(bytes(source.read(length))).struct(0)
    _patch(tree)
    footer = _struct(tree)
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"))


def timestamps(values: pa.FixedSizeBinaryArray, unit: str = "ns") -> pa.TimestampArray:
    """Return INT96 values as timestamps in a unit, ns or us; of what is finer the floor.

    Raises:
        pyarrow.ArrowInvalid: One does not fit: in nanoseconds it is before 1677 or after 2262.
    """
    raw = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * WIDTH : (values.offset + len(values)) * WIDTH]
    cells = raw.reshape(-1, WIDTH)
    nanos = cells[:, :8].copy().view("<i8").ravel()
    days = cells[:, 8:].copy().view("<i4").ravel().astype(np.int64) - _UNIX_DAY
    valid = np.asarray(values.is_valid())
    nanos, days = np.where(valid, nanos, 0), np.where(valid, days, 0)
    # Whole days and the rest are brought to one sign of the rest, so that the sum can be judged without wrapping.
    days, nanos = days + nanos // _DAY_NANOS, nanos % _DAY_NANOS
    size = {"ns": 1, "us": 1000}[unit]
    limit = np.iinfo(np.int64).max // (_DAY_NANOS // size)
    if bool(np.any((days >= limit) | (days < -limit))):
        raise pa.ArrowInvalid(f"timestamp out of range for {'nanoseconds' if unit == 'ns' else 'microseconds'}")
    moments = days * (_DAY_NANOS // size) + nanos // size
    return pa.array(moments, mask=~valid).view(pa.timestamp(unit))


@dataclass(slots=True)
class _Field:
    """A field of a Thrift struct."""

    id: int
    kind: int
    value: "int | bytes | bool | list[_Field] | _Items"


@dataclass(slots=True)
class _Items:
    """A Thrift list."""

    kind: int
    values: "list[int | bytes | bool | list[_Field] | _Items]"


_Value = int | bytes | bool | list[_Field] | _Items


class _Reader:
    """Reads values of the Thrift compact protocol, one after another."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def _byte(self) -> int:
        if self._at >= len(self._content):
            raise DamageError("its footer is cut short")
        self._at += 1
        return self._content[self._at - 1]

    def _take(self, length: int) -> bytes:
        if length > len(self._content) - self._at:
            raise DamageError("its footer is cut short")
        self._at += length
        return self._content[self._at - length : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:  # noqa: PLR2004 - bits of ten bytes, the most that a number takes
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the flag for more bytes
                return value
            shift += 7
        raise DamageError("a number in its footer is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int) -> list[_Field]:
        fields: list[_Field] = []
        last = 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            value: _Value = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)
            fields.append(_Field(last, kind, value))
        return fields

    def _value(self, kind: int, depth: int) -> _Value:
        if depth > _DEEPEST:
            raise DamageError("its footer is nested too deeply")
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return self._take(8)
            case 8:
                return self._take(self._varint())
            case 9 | 10:
                return self._items(depth)
            case 12:
                return self.struct(depth)
        raise DamageError(f"its footer has a value of the unknown kind {kind}")

    def _items(self, depth: int) -> _Items:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()  # noqa: PLR2004 - the nibble for longer lists
        if size > len(self._content) - self._at:
            raise DamageError("a list in its footer is cut short")
        return _Items(head & 15, [self._value(head & 15, depth + 1) for _ in range(size)])


def _patch(tree: list[_Field]) -> None:
    """Turn INT96 into 12 bytes: in the schema's elements, and in the metadata of each column chunk."""
    for element in _structs(tree, 2):
        for place, field in enumerate(element):
            if (field.id, field.value) == (1, _INT96):
                field.value = _FIXED_BYTES
                element[place + 1 : place + 1] = [_Field(2, _I32, WIDTH)]
                break
    for group in _structs(tree, 4):
        for chunk in _structs(group, 1):
            for metadata in (field.value for field in chunk if field.id == 3 and isinstance(field.value, list)):  # noqa: PLR2004 - the field's number
                for field in metadata:
                    if (field.id, field.value) == (1, _INT96):
                        field.value = _FIXED_BYTES


def _structs(tree: list[_Field], number: int) -> list[list[_Field]]:
    """Return the structs in the list that is a field."""
    for field in tree:
        if field.id == number and isinstance(field.value, _Items):
            return [value for value in field.value.values if isinstance(value, list)]
    return []


def _struct(fields: list[_Field]) -> bytes:
    out = bytearray()
    last = 0
    for field in fields:
        step = field.id - last
        out += bytes([step << 4 | field.kind]) if 0 < step <= 15 else bytes([field.kind]) + _zigzag(field.id)  # noqa: PLR2004 - what a nibble holds
        last = field.id
        if field.kind not in (_TRUE, _FALSE):
            out += _encoded(field.kind, field.value)
    return bytes(out + b"\0")


def _encoded(kind: int, value: _Value) -> bytes:
    match value:
        case _Items():
            size = len(value.values)
            head = bytes([size << 4 | value.kind]) if size < 15 else bytes([0xF0 | value.kind]) + _varint(size)  # noqa: PLR2004 - what a nibble holds
            return head + b"".join(_encoded(value.kind, item) for item in value.values)
        case list():
            return _struct(value)
        case bytes():
            return value if kind == _DOUBLE else _varint(len(value)) + value
        case _:
            return bytes([value]) if kind in (_TRUE, _FALSE, _BYTE) else _zigzag(value)


def _zigzag(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - what fits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
