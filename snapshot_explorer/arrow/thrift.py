"""The Thrift compact protocol, which Parquet uses for footers and page headers.

Source: Thrift compact protocol specification.
"""

from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.varints import unzigzag, varint, varint_bytes, zigzag

_TRUE, _FALSE, _BYTE, _DOUBLE = 1, 2, 3, 7
_INTEGERS = (4, 5, 6)
_ONE_BYTE = 0x80
_MAX_DEPTH = 32


@dataclass(slots=True)
class Field:
    """A field of a Thrift struct."""

    id: int
    kind: int
    """The number of its type."""
    value: "Value"


@dataclass(slots=True)
class ThriftList:
    """A Thrift list."""

    kind: int
    """The number of the type of its items."""
    values: "list[Value]"


Value = int | bytes | bool | list[Field] | ThriftList


class ThriftReader:
    """Reads values of the Thrift compact protocol, one after another."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    @property
    def position(self) -> int:
        """Return the number of bytes read."""
        return self._position

    def _read_byte(self) -> int:
        if self._position >= len(self._content):
            raise CorruptBytesError("its metadata is cut short")
        self._position += 1
        return self._content[self._position - 1]

    def _read_bytes(self, length: int) -> bytes:
        if length > len(self._content) - self._position:
            raise CorruptBytesError("its metadata is cut short")
        self._position += length
        return self._content[self._position - length : self._position]

    def _varint(self) -> int:
        value, self._position = varint(self._content, self._position)
        return value

    def struct(self, depth: int = 0) -> list[Field]:
        """Return the fields of a struct."""
        # Footers have thousands of fields, most of them integers of one byte: these are read here.
        content, size = self._content, len(self._content)
        fields: list[Field] = []
        last = 0
        while True:
            position = self._position
            if position >= size:
                raise CorruptBytesError("its metadata is cut short")
            head = content[position]
            self._position = position + 1
            if not head:
                return fields
            wire_type = head & 15
            last = last + (head >> 4) if head >> 4 else unzigzag(self._varint())
            value: Value
            position = self._position
            if wire_type in _INTEGERS and position < size and content[position] < _ONE_BYTE:
                number = content[position]
                value = (number >> 1) ^ -(number & 1)
                self._position = position + 1
            elif wire_type in (_TRUE, _FALSE):
                value = wire_type == _TRUE
            else:
                value = self._value(wire_type, depth + 1)
            fields.append(Field(last, wire_type, value))

    def _value(self, wire_type: int, depth: int) -> Value:
        if depth > _MAX_DEPTH:
            raise CorruptBytesError("its metadata is nested too deeply")
        match wire_type:
            case 1 | 2 | 3:
                return self._read_byte()
            case 4 | 5 | 6:
                return unzigzag(self._varint())
            case 7:
                return self._read_bytes(8)
            case 8:
                return self._read_bytes(self._varint())
            case 9 | 10:
                return self._items(depth)
            case 12:
                return self.struct(depth)
        raise CorruptBytesError(f"its metadata has a value of the unknown kind {wire_type}")

    def _items(self, depth: int) -> ThriftList:
        head = self._read_byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()  # noqa: PLR2004 - the nibble for longer lists
        if size > len(self._content) - self._position:
            raise CorruptBytesError("a list in its metadata is cut short")
        return ThriftList(head & 15, [self._value(head & 15, depth + 1) for _ in range(size)])


def footer(source: pa.NativeFile) -> list[Field]:
    """Return the metadata in the footer of a parquet file."""
    return ThriftReader(footer_bytes(source)).struct()


def footer_bytes(source: pa.NativeFile) -> bytes:
    """Return the metadata in the footer of a parquet file, not decoded."""
    size = source.size()
    source.seek(max(0, size - 8))
    length = int.from_bytes(bytes(source.read(4)), "little")
    if length > size - 8:
        raise CorruptBytesError("its footer is longer than the file")
    source.seek(size - 8 - length)
    return bytes(source.read(length))


def structs(tree: list[Field], number: int) -> list[list[Field]]:
    """Return the structs in a list field; none if the field is missing."""
    for field in tree:
        if field.id == number and isinstance(field.value, ThriftList):
            return [value for value in field.value.values if isinstance(value, list)]
    return []


def encode_struct(fields: list[Field]) -> bytes:
    """Return a struct as bytes."""
    out = bytearray()
    last = 0
    for field in fields:
        step = field.id - last
        is_short = 0 < step <= 15  # noqa: PLR2004 - the maximum of a nibble
        out += bytes([step << 4 | field.kind]) if is_short else bytes([field.kind]) + varint_bytes(zigzag(field.id))
        last = field.id
        if field.kind not in (_TRUE, _FALSE):
            out += _encode(field.kind, field.value)
    return bytes(out + b"\0")


def _encode(wire_type: int, value: Value) -> bytes:
    match value:
        case ThriftList():
            size = len(value.values)
            head = bytes([size << 4 | value.kind]) if size < 15 else bytes([0xF0 | value.kind]) + varint_bytes(size)  # noqa: PLR2004 - the maximum of a nibble
            return head + b"".join(_encode(value.kind, item) for item in value.values)
        case list():
            return encode_struct(value)
        case bytes():
            return value if wire_type == _DOUBLE else varint_bytes(len(value)) + value
        case _:
            return bytes([value]) if wire_type in (_TRUE, _FALSE, _BYTE) else varint_bytes(zigzag(value))
